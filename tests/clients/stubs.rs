//! The stubs in the repository match the contract.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use tempfile::TempDir;
use tests::{binaries, running::output_of, tools};

#[test]
fn stubs_in_go_are_those_of_the_contract() {
    let Some(buf) = tools::buf() else { return };
    let out = TempDir::new().expect("a folder");
    let mut generate = Command::new(buf);
    generate.current_dir(binaries::checkout());
    generate.args(["generate", "--path", "proto/decree/v1", "--output"]);
    output_of(generate.arg(out.path()));
    let folder = "clients/go/decree/v1";
    let made = files(&out.path().join(folder));
    let kept = files(&binaries::checkout().join(folder));
    assert!(made.keys().eq(kept.keys()), "{:?}", made.keys());
    let differ: Vec<_> = made
        .iter()
        .filter(|(name, text)| kept.get(*name) != Some(text))
        .map(|(name, _)| name)
        .collect();
    assert!(
        differ.is_empty(),
        "run `buf generate --path proto/decree/v1`: {differ:?} are of another contract"
    );
}

fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let entries = entries.map(|entry| entry.expect("it can be read"));
    entries
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read_to_string(entry.path()).expect("it is text"))
        })
        .collect()
}
