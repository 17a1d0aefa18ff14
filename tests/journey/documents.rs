//! The commands for a cluster as README.md and the documents have them.

use std::fs;

use tests::{binaries, fenced};

/// What the documents name, and have their readers replace by what they use.
const OVERLAY: &str = "deploy/kustomize/overlays/all-in-one";
const WORKLOAD: &str = "daemonset/decree-agent";

/// Returns the commands of the blocks with a mark, in the order of the documents: as they stand.
///
/// # Panics
/// Where there is none.
pub(crate) fn shown(mark: &str) -> String {
    let read = |name| fs::read_to_string(binaries::checkout().join(name));
    let texts = fenced::OPERATORS.map(|name| read(name).expect("the document is there"));
    let blocks = texts.iter().flat_map(|text| fenced::blocks(text));
    let blocks = blocks.filter(|block| block.journey() == Some(mark));
    let blocks: Vec<_> = blocks.map(|block| block.text).collect();
    assert!(!blocks.is_empty(), "no document has journey={mark}");
    blocks.concat()
}

/// Returns commands as the documents have them rewritten for another folder of manifests, and for other workloads.
pub(crate) fn adapted(commands: &str, folder: &str, workloads: &[&str]) -> String {
    named(&commands.replace(OVERLAY, folder), WORKLOAD, workloads)
}

/// Returns commands with each line that has a name repeated for each of some others, in its place.
pub(crate) fn named(commands: &str, name: &str, others: &[&str]) -> String {
    let mut text = String::new();
    for line in commands.lines() {
        let lines = if line.contains(name) {
            others.iter().map(|it| line.replace(name, it)).collect()
        } else {
            vec![line.to_owned()]
        };
        for line in lines {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}
