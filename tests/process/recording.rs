//! Recordings of a server whose disk is full, and the recordings of the repository, replayed by the command.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use decree_api::{
    recording::v1::record::Step,
    v1::{batch::Action, reconcile_response::Frame},
};
use tempfile::TempDir;
use tests::{
    binaries,
    recordings::{self, Recording},
};

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
    let full = replay(full, &[]);
    assert_eq!(full.status.code(), Some(0), "{full:?}");
    // The disk may have had no room for the mark either.
    let ends = ["could not be written", "the server was killed"];
    let notice = text(&full.stderr);
    assert!(ends.iter().any(|it| notice.contains(it)), "{full:?}");
    let whole = replay(whole, &[]);
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

#[test]
fn changed_decision_ends_the_command_with_1() {
    let folder = TempDir::new().expect("a folder");
    for (name, bytes) in recordings::kept() {
        let file = folder.path().join(&name);
        fs::write(&file, &bytes).expect("it can be written");
        let same = replay(&file, &[]);
        assert_eq!(same.status.code(), Some(0), "{name}: {same:?}");
        assert!(text(&same.stdout).contains("all agree"), "{same:?}");

        fs::write(&file, &bytes[..bytes.len() - 1]).expect("it can be written");
        let torn = replay(&file, &[]);
        assert_eq!(torn.status.code(), Some(0), "{torn:?}");
        assert!(text(&torn.stderr).contains("is torn"), "{torn:?}");

        fs::write(&file, one_created_less(&bytes)).expect("it can be written");
        let other = replay(&file, &[]);
        assert_eq!(other.status.code(), Some(1), "{name}: {other:?}");
        let differences = text(&other.stdout);
        assert!(differences.contains(": 1 difference"), "{differences}");
        assert!(differences.contains("  recorded  create"), "{differences}");
    }
}

/// Removes a name from the first created pods, as if a version had decided so.
fn one_created_less(bytes: &[u8]) -> Vec<u8> {
    let mut recording = Recording::decode(bytes);
    let polls = recording
        .records
        .iter_mut()
        .filter_map(|it| match &mut it.step {
            Some(Step::Poll(poll)) => poll.frame.as_mut()?.frame.as_mut(),
            _ => None,
        });
    let mut batches = polls.flat_map(|frame| match frame {
        Frame::Batches(batches) => batches.batches.as_mut_slice(),
        Frame::Welcome(_)
        | Frame::Resync(_)
        | Frame::Drain(_)
        | Frame::Heartbeat(_)
        | Frame::Rejection(_)
        | Frame::CostsWanted(_) => &mut [],
    });
    let create = batches.find_map(|batch| match &mut batch.action {
        Some(Action::Create(create)) => Some(create),
        _ => None,
    });
    create.expect("pods were created").names.pop();
    recording.encode()
}

/// The recordings of a folder, the oldest first.
fn recordings_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("it was made");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut recordings: Vec<_> = paths.filter(|path| path.extension().is_some()).collect();
    recordings.sort();
    recordings
}

fn replay(file: &Path, flags: &[&str]) -> Output {
    let mut command = world::program("decree");
    let output = command.arg("replay").args(flags).arg(file).output();
    output.expect("it was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
