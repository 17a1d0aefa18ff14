//! The examples that call `Decide` on a timer, in languages without a client, keep the desired number of files.
//!
//! Their lists are late. A loss, the death of the server, and the death of the example during a scale-up neither double nor lose anything.

use std::{fs, process::Command};

use conformance::Program;
use tempfile::TempDir;
use tests::{
    running::{Running, Voice, free_address},
    tools,
};

use crate::{
    keeper::{said, things, wait_for},
    world,
};

/// The desired number when the test kills the example during the scale-up. An example creates 20 a turn, so none reaches it.
const ENDLESS: usize = 100_000;

/// How many more there are than at the death of the example, in the end.
const MORE: usize = 10;

/// Lists are late by turns, of which there are more than one a second.
const TURNS: [&str; 4] = ["--lag", "3", "--every", "100"];

#[test]
fn decide_on_a_timer_in_typescript_neither_doubles_nor_loses_anything() {
    keep(&tests::or_skip!(typescript()));
}

#[test]
fn decide_on_a_timer_in_java_neither_doubles_nor_loses_anything() {
    keep(&tests::or_skip!(java()));
}

/// The test of the document does the same with the example in TypeScript.
#[tokio::test]
async fn example_on_a_timer_in_java_keeps_each_rule() {
    let mut command = tests::or_skip!(java());
    let folder = TempDir::new().expect("a folder");
    let flags = "--server {address} --replicas {replicas} --folder".split(' ');
    command.extend(flags.map(str::to_owned));
    command.push(folder.path().display().to_string());
    command.extend(TURNS.map(str::to_owned));
    let subject = Program { command };
    let score = conformance::run_unary(&subject).await.expect("it starts");
    assert!(score.is_full(), "{subject:?}: {score}");
}

fn typescript() -> Option<Vec<String>> {
    let program = tools::typescript_examples()?.join("keeper.js");
    Some(vec!["node".into(), program.display().to_string()])
}

fn java() -> Option<Vec<String>> {
    let target = tools::java_examples()?.join("target");
    let target = target.display();
    let path = format!("{target}/classes:{target}/lib/*");
    let words = ["java", "-cp", &path, "Keeper"];
    Some(words.map(str::to_owned).into())
}

fn keep(program: &[String]) {
    let folder = TempDir::new().expect("a folder");
    let folder = folder.path();
    let server = world::server(&free_address());
    let address = server.address("grpc");
    let start = |replicas: usize| {
        let mut command = Command::new(&program[0]);
        command.args(&program[1..]).args(["--server", &address]);
        command
            .args(["--replicas", &replicas.to_string()])
            .args(TURNS);
        command.arg("--folder").arg(folder);
        Running::start(command, Voice::Stdout)
    };
    let mut keeper = start(3);
    wait_for(&keeper, "started", 3);
    let kept = things(folder);
    fs::remove_file(&kept[0]).expect("it is there");
    wait_for(&keeper, "started", 4);
    assert_eq!(things(folder).len(), 3);

    server.kill();
    let server = world::server(&address);
    server.address("grpc");
    keeper.tell("4");
    wait_for(&keeper, "started", 5);
    keeper.tell(&ENDLESS.to_string());
    keeper.wait_for("that the scale-up continues", |lines| {
        (said(lines, "started").len() > 5).then_some(())
    });
    keeper.kill();
    let begun = things(folder);
    assert!(kept[1..].iter().all(|one| begun.contains(one)));

    let all = begun.len() + MORE;
    let mut keeper = start(all);
    wait_for(&keeper, "started", MORE);
    let many = things(folder);
    assert!(begun.iter().all(|one| many.contains(one)), "{many:?}");
    keeper.tell("1");
    wait_for(&keeper, "stopped", all - 1);
    assert_eq!(things(folder).len(), 1);
    keeper.close();
    wait_for(&keeper, "stopped", all);
    wait_for(&keeper, "started", MORE);
    // When it ends, its last list has shown the end of everything.
    assert_eq!(keeper.wait().code(), Some(0));
    assert!(things(folder).is_empty());
}
