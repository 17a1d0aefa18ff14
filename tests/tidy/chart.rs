//! The files of the chart are regular files, so that its folder can be copied, and equal the files of the kustomizations.
//! `UPDATE_EXPECT=1` copies them again.

use std::{env, fs, path::Path};

use crate::files;

const CHART: &str = "deploy/helm/decree";

/// The files of the chart that a kustomization also has, with the path of the kustomization's file.
const COPIES: [(&str, &str); 3] = [
    (
        "files/dashboard.json",
        "deploy/kustomize/monitoring/rules/dashboard.json",
    ),
    (
        "files/rules.yaml",
        "deploy/kustomize/monitoring/rules/rules.yaml",
    ),
    (
        "files/replicasets.yaml",
        "deploy/kustomize/crd/replicasets.yaml",
    ),
];

#[test]
fn files_of_the_chart_are_those_of_the_kustomizations() {
    let root = files::root();
    for (copy, original) in COPIES {
        let text = |path: &Path| fs::read_to_string(path).expect("the checkout can be read");
        let (copy, original) = (root.join(CHART).join(copy), root.join(original));
        if env::var_os("UPDATE_EXPECT").is_some() {
            fs::copy(&original, &copy).expect("the checkout can be written");
        }
        let same = text(&copy) == text(&original);
        let (copy, original) = (copy.display(), original.display());
        assert!(
            same,
            "{copy} differs from {original}: UPDATE_EXPECT=1 copies it"
        );
    }
}

#[test]
fn chart_has_no_links() {
    let mut looked_at = 0;
    let mut folders = vec![files::root().join(CHART)];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).expect("the checkout can be read");
        for entry in entries.flatten() {
            let kind = entry.file_type().expect("the checkout can be read");
            let path = entry.path();
            assert!(!kind.is_symlink(), "{} is a link", path.display());
            looked_at += 1;
            if kind.is_dir() {
                folders.push(path);
            }
        }
    }
    assert!(looked_at > COPIES.len(), "the walk is broken");
}
