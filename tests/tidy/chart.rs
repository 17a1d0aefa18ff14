//! The files of the chart are regular files, so that its folder can be copied.

use std::fs;

use crate::files;

const CHART: &str = "deploy/helm/decree";

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
    assert!(looked_at > 10, "the walk is broken");
}
