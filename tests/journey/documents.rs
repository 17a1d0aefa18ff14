//! The commands for a cluster in README.md and the documents.

use std::fs;

use tests::{binaries, fenced};

/// The folder in the documents that readers replace by their own.
const OVERLAY: &str = "deploy/kustomize/overlays/all-in-one";
const WORKLOAD: &str = "daemonset/decree-agent";

/// The commands of the blocks with a mark, in the order of the documents, as written.
///
/// # Panics
/// If there is none.
pub(crate) fn shown(mark: &str) -> String {
    let read = |name| fs::read_to_string(binaries::checkout().join(name));
    let texts = fenced::OPERATORS.map(|name| read(name).expect("the document is there"));
    let blocks = texts.iter().flat_map(|text| fenced::blocks(text));
    let blocks = blocks.filter(|block| block.journey() == Some(mark));
    let blocks: Vec<_> = blocks.map(|block| block.text).collect();
    assert!(!blocks.is_empty(), "no document has journey={mark}");
    blocks.concat()
}

/// The commands for another folder of manifests, and for other workloads, as the documents tell readers to rewrite them.
pub(crate) fn adapted(commands: &str, folder: &str, workloads: &[&str]) -> String {
    named(&commands.replace(OVERLAY, folder), WORKLOAD, workloads)
}

/// The commands with each line that has a name repeated for each other name.
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
