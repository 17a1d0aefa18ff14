//! Recordings of a server whose disk is full, replayed by the command.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use tempfile::TempDir;
use tests::binaries;

use crate::{console, world};

const MANIFEST: &str = "apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web, namespace: default}
spec:
  replicas: 7
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: registry.example/app}]}
";

#[test]
fn full_disk_ends_a_recording_with_one_line_and_the_next_session_is_recorded_again() {
    const ENDED: &str = "recording ended before its session";
    let folder = TempDir::new().expect("a folder");
    let manifest = folder.path().join("web.yaml");
    fs::write(&manifest, MANIFEST).expect("it can be written");
    let kept = folder.path().join("recordings");
    let server = world::limited_recording_server(&kept);
    let address = server.address("grpc");
    let agent = world::agent_with(&address, &manifest);
    world::wait_until_converged(&address, 1);
    server.wait_for_message(ENDED, 1);
    agent.kill();
    world::wait_for_sessions(&address, 0);

    world::lift_limit(server.id());
    let agent = world::agent_with(&address, &manifest);
    world::wait_until_converged(&address, 1);
    agent.kill();
    world::wait_for_sessions(&address, 0);
    assert_eq!(server.messages(ENDED), 1, "{:#?}", server.tail());
    server.terminate();
    assert_eq!(server.wait().code(), Some(0));

    let [full, whole] = &recordings_of(&kept)[..] else {
        panic!("one of each session: {:?}", recordings_of(&kept))
    };
    let full = replay(full);
    assert_eq!(full.status.code(), Some(0), "{full:?}");
    // The disk may have had no room for the mark either.
    let ends = ["could not be written", "the server was killed"];
    let notice = text(&full.stderr);
    assert!(ends.iter().any(|it| notice.contains(it)), "{full:?}");
    let whole = replay(whole);
    assert_eq!(whole.status.code(), Some(0), "{whole:?}");
    assert_eq!(text(&whole.stderr), "");
    for step in console::steps(
        "full_disk_ends_a_recording_with_one_line_and_the_next_session_is_recorded_again",
    ) {
        let mut replay = binaries::shell(&step.commands, &[]);
        let output = replay.current_dir(folder.path()).output();
        let output = output.expect("there is a shell");
        assert_eq!(output.status.code(), Some(0), "{}: {output:?}", step.place);
    }
}

/// The recordings of a folder, the oldest first.
fn recordings_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("it was made");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut recordings: Vec<_> = paths.filter(|path| path.extension().is_some()).collect();
    recordings.sort();
    recordings
}

fn replay(file: &Path) -> Output {
    let mut command = world::program("decree");
    let output = command.arg("replay").arg(file).output();
    output.expect("it was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
