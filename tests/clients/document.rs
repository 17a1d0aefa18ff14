//! Follows docs/write-an-agent.md literally.

use std::{fs, path::Path, process::Command};

use conformance::{RULES, Rule, UNARY_RULES};
use tempfile::TempDir;
use tests::{
    binaries,
    fenced::{self, Block},
    running::{Running, Voice, output_of, until_found},
    tools,
};

use crate::{keeper::end_processes, world};

/// The address in the document.
const DOCUMENTED: &str = "localhost:50051";

#[test]
fn agent_of_the_document_keeps_files() {
    tests::or_skip!(tools::go_examples());
    let server = world::server("127.0.0.1:0");
    let address = server.address("grpc");
    let folder = TempDir::new().expect("a folder");
    let steps = steps("agent_of_the_document_keeps_files");
    let (run, build) = steps.split_last().expect("there are steps");
    for step in build {
        if let Some(file) = file_of(step) {
            fs::write(folder.path().join(file), &step.text).expect("its folder was made");
            continue;
        }
        output_of(&mut shell(step, folder.path(), &address));
    }
    let _agent = Running::start(shell(run, folder.path(), &address), Voice::Stderr);
    world::wait_until_converged(&address, 3);
    let files = folder.path().join("pool/files");
    let kept = names(&files);
    assert_eq!(kept.len(), 3);
    fs::remove_file(files.join(&kept[0])).expect("it is there");
    until_found("another file", || {
        let there = names(&files);
        (there.len() == 3).then_some(()).ok_or(there)
    });
    assert!(
        !names(&files).contains(&kept[0]),
        "a name is not used again"
    );
}

#[test]
fn conformance_of_the_examples_is_full() {
    let programs = tests::or_skip!(tools::go_examples());
    let keeper = programs.join("keeper");
    conform("conformance_of_the_examples_is_full", &keeper, RULES);
}

#[test]
fn conformance_of_an_example_on_a_timer_is_full() {
    let programs = tests::or_skip!(tools::typescript_examples());
    let keeper = programs.join("keeper.js");
    conform(
        "conformance_of_an_example_on_a_timer_is_full",
        &keeper,
        UNARY_RULES,
    );
}

fn conform(test: &str, keeper: &Path, rules: &[Rule]) {
    let folder = TempDir::new().expect("a folder");
    let steps = steps(test);
    for step in steps.iter().filter(|step| file_of(step).is_none()) {
        let output = shell(step, binaries::checkout(), "")
            .env("KEEPER", keeper)
            .env("FOLDER", folder.path())
            .output();
        let output = output.expect("there is a shell");
        end_processes(folder.path());
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{printed}");
        let count = rules.len();
        assert!(
            printed.ends_with(&format!("score: {count} of {count}\n")),
            "{printed}"
        );
    }
}

/// Returns the blocks that name a test, and the blocks with files.
fn steps(test: &str) -> Vec<Block> {
    let page = fs::read_to_string(binaries::checkout().join("docs/write-an-agent.md"));
    let blocks = fenced::blocks(&page.expect("the document is there"));
    let is_step = |block: &Block| block.test() == Some(test) || file_of(block).is_some();
    blocks.into_iter().filter(is_step).collect()
}

/// Returns the file name of a block, if the block is a file.
fn file_of(block: &Block) -> Option<&str> {
    let mut words = block.info.split(' ');
    words.find_map(|word| word.strip_prefix("file="))
}

fn shell(step: &Block, folder: &Path, server: &str) -> Command {
    let mut shell = binaries::shell(&step.text.replace(DOCUMENTED, server), &[]);
    shell
        .current_dir(folder)
        .env("CHECKOUT", binaries::checkout());
    shell
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut names: Vec<_> = entries
        .map(|entry| {
            entry
                .expect("it can be read")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}
