//! The targets of the workspace, from cargo.

use std::{env, path::PathBuf, process::Command};

use serde_json::Value;

use crate::files;

pub(super) fn all() -> Vec<PathBuf> {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .current_dir(files::root())
        .args([
            "metadata",
            "--offline",
            "--no-deps",
            "--format-version",
            "1",
        ])
        .output()
        .expect("cargo can be run");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets: Vec<_> = packages
        .flat_map(|package| package["targets"].as_array().into_iter().flatten())
        .filter_map(|target| target["src_path"].as_str())
        .map(PathBuf::from)
        .collect();
    assert!(targets.len() > 15, "cargo tells of {targets:?} only");
    targets
}
