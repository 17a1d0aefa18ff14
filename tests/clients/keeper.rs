//! The examples keep the desired number of real things when one is lost, when the server dies, and when the keeper dies during a scale-up.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use tests::running::{self, Running, Voice, free_address};

use crate::{language::Examples, world};

/// The desired number when the test kills the keeper during the scale-up.
const MANY: u32 = 20;

fn keep(examples: &Examples) {
    let folder = TempDir::new().expect("a folder");
    let folder = folder.path();
    let server = world::server(&free_address());
    let address = server.address("grpc");
    let keeper = start(examples, &address, folder, 3);
    wait_for(&keeper, "started", 3);
    for line in keeper.wait_for("its lines", |lines| Some(said(lines, "started"))) {
        let [_, name, id] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let written = fs::read_to_string(folder.join(name)).expect("it has a file");
        assert_eq!(written.trim(), id, "{line}");
    }
    world::wait_until_converged(&address, 3);

    lose_one(folder);
    wait_for(&keeper, "ended", 1);
    wait_for(&keeper, "started", 4);
    world::wait_until_converged(&address, 3);
    let kept = things(folder);
    assert_eq!(kept.len(), 3);

    server.kill();
    let server = world::server(&address);
    server.address("grpc");
    world::wait_until_converged(&address, 3);
    assert_eq!(
        things(folder),
        kept,
        "the restart of the server changed nothing"
    );

    keeper.kill();
    let mut keeper = start(examples, &address, folder, 3);
    wait_for(&keeper, "found", 3);
    world::wait_until_converged(&address, 3);
    assert_eq!(
        things(folder),
        kept,
        "the death of the keeper changed nothing"
    );

    keeper.tell(&MANY.to_string());
    keeper.wait_for("that the scale-up has begun", |lines| {
        said(lines, "started").first().cloned()
    });
    keeper.kill();
    let mut keeper = start(examples, &address, folder, MANY);
    world::wait_until_converged(&address, MANY);
    let many = things(folder);
    assert_eq!(many.len(), MANY as usize, "{many:?}");
    assert!(
        kept.iter().all(|one| many.contains(one)),
        "{kept:?} are among {many:?}"
    );

    keeper.tell("1");
    wait_for(&keeper, "stopped", MANY as usize - 1);
    world::wait_until_converged(&address, 1);
    assert_eq!(things(folder).len(), 1);
    keeper.close();
    wait_for(&keeper, "stopped", MANY as usize);
    assert_eq!(keeper.wait().code(), Some(0));
    assert_eq!(things(folder), Vec::<PathBuf>::new());
}

fn start(examples: &Examples, server: &str, folder: &Path, replicas: u32) -> Running {
    Running::start(examples.keeper(server, folder, replicas), Voice::Stdout)
}

/// Ends one process without the keeper.
fn lose_one(folder: &Path) {
    let id = fs::read_to_string(&things(folder)[0]).expect("it has a file");
    running::signal("KILL", id.trim().parse().expect("an id is a number"));
}

/// Ends the processes of a killed keeper, found by their files.
pub(crate) fn end_processes(folder: &Path) {
    let entries = fs::read_dir(folder).expect("the folder is there").flatten();
    for text in entries.filter_map(|entry| fs::read_to_string(entry.path()).ok()) {
        if let Ok(process) = text.trim().parse() {
            running::signal("KILL", process);
        }
    }
}

/// Returns the files of the kept things, sorted by name.
pub(crate) fn things(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let files = entries.map(|entry| entry.expect("it can be read").path());
    let is_kept = |path: &PathBuf| {
        !path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'))
    };
    let mut things: Vec<_> = files.filter(is_kept).collect();
    things.sort();
    things
}

/// Waits until exactly `count` lines begin with a word.
pub(crate) fn wait_for(keeper: &Running, word: &str, count: usize) {
    keeper.wait_for(&format!("{word} for the {count}th time"), |lines| {
        let found = said(lines, word);
        assert!(found.len() <= count, "more than {count}: {found:?}");
        (found.len() == count).then_some(())
    });
}

pub(crate) fn said(lines: &[String], word: &str) -> Vec<String> {
    let begins = |line: &&String| line.split(' ').next() == Some(word);
    lines.iter().filter(begins).cloned().collect()
}

test_each_language! { keep:
    fn keeper_in_go_neither_doubles_nor_loses_anything() in go;
    fn keeper_in_python_neither_doubles_nor_loses_anything() in python;
}
