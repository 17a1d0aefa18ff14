//! The files of a folder: their maximum size, order and modes, and a recorder that falls behind.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::PathBuf,
    time::Duration,
};

use decree_core::Timestamp;
use prometheus_client::registry::Registry;
use server_session::recording::{EndReason, Ending, Replay};
use server_session::{Now, Session};
use tempfile::TempDir;

use super::{
    writer::{Records, WAITING_BYTES_MAX, WAITING_MAX},
    *,
};

const MIB: u64 = 1 << 20;

struct Folder {
    folder: TempDir,
    recorder: Recorder,
    thread: WriterThread,
    metrics: Metrics,
}

impl Folder {
    fn new() -> Self {
        Self::within(TempDir::new().expect("a folder"))
    }

    fn within(folder: TempDir) -> Self {
        let metrics = Metrics::register(&mut Registry::default());
        let started = Recorder::start(&recording(&folder), metrics.clone());
        let (recorder, thread) = started.expect("it can be kept").expect("it is asked for");
        Self {
            folder,
            recorder,
            thread,
            metrics,
        }
    }

    fn session(&self, millisecond: i64) -> RecordedSession {
        let now = at(millisecond, 0);
        let id = format!("session-{millisecond}");
        let config = config();
        let mut recording = self.recorder.recording(now, &config, &id, &hello());
        recording.begin(now.wall, &id);
        let session = Session::open(now, config, id, hello()).expect("it is honoured");
        RecordedSession::new(session, Some(recording))
    }

    fn finish(self) -> (TempDir, Metrics) {
        self.thread.finish(FINISH_WITHIN);
        (self.folder, self.metrics)
    }
}

fn recording(folder: &TempDir) -> Recording {
    Recording {
        record: Some(folder.path().to_owned()),
        record_bytes_max: MIB,
    }
}

fn at(millisecond: i64, later: u64) -> Now {
    Now {
        wall: Timestamp(millisecond * 1_000_000),
        monotonic: Duration::from_millis(later),
    }
}

fn config() -> server_session::Config {
    let metrics = Metrics::register(&mut Registry::default());
    let config = crate::args::Config::default();
    let access = crate::access::Access::new(&config.access, metrics.clone()).expect("no files");
    let shared = crate::shared::Shared::new(config, metrics, access);
    shared.expect("it needs no file").session_config()
}

fn hello() -> v1::ReconcileRequest {
    let hello = v1::Hello {
        protocol_min: 1,
        protocol_max: 1,
        agent_instance: "agent-0".to_owned(),
        cluster_uid: "cluster-0".to_owned(),
        ..v1::Hello::default()
    };
    v1::ReconcileRequest {
        sequence: 1,
        frame: Some(v1::reconcile_request::Frame::Hello(hello)),
    }
}

/// A frame of about this size, which need not be valid.
fn frame_of(bytes: usize) -> v1::ReconcileRequest {
    let mut frame = hello();
    if let Some(v1::reconcile_request::Frame::Hello(hello)) = &mut frame.frame {
        hello.cluster_name = "x".repeat(bytes);
    }
    frame
}

fn files(folder: &TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path()).expect("it is there");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some())
        .collect();
    files.sort();
    files
}

/// Replays a file without a difference, and returns its end.
fn ending(path: &PathBuf) -> Ending {
    let bytes = fs::read(path).expect("it is there");
    let mut replay = Replay::open(&*bytes).expect("it is a recording");
    assert_eq!(replay.next_difference().expect("it is whole"), None);
    replay.summary().ending
}

/// The recordings that have ended for a reason.
fn ended(metrics: &Metrics, reason: &'static str) -> u64 {
    let ends = &metrics.recording_ends;
    ends.get_or_create_owned(&[("reason", reason)]).get()
}

#[test]
fn files_are_for_their_owner_alone() {
    let folder = Folder::new();
    drop(folder.session(1));
    let (folder, _) = folder.finish();
    let files = files(&folder);
    assert_eq!(files.len(), 1);
    let mode = fs::metadata(&files[0]).expect("it is there").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    assert_eq!(ending(&files[0]), Ending::Marked(EndReason::Session));
}

#[test]
fn session_that_is_freed_after_the_last_write_has_a_complete_recording() {
    let folder = Folder::new();
    let mut session = folder.session(1);
    session.end_recording();
    let (folder, _) = folder.finish();
    let ending = ending(&files(&folder)[0]);
    assert_eq!(ending, Ending::Marked(EndReason::Session));
    drop(session);
}

#[test]
fn ring_stays_within_its_bound_and_old_files_go_first() {
    let mut temporary = TempDir::new().expect("a folder");
    for run in 0..3 {
        let folder = Folder::within(temporary);
        for session in 0..4 {
            let mut session = folder.session(run * 10 + session);
            session.handle_part(at(0, 1), &frame_of(200 << 10).into(), &|| false);
        }
        (temporary, _) = folder.finish();
        let blocks = files(&temporary).into_iter().map(|file| {
            let size = fs::metadata(file).expect("it is there").size();
            size.div_ceil(4096)
        });
        let held = blocks.sum::<u64>() * 4096;
        assert!(held <= MIB, "{held} bytes");
    }
    let names = files(&temporary).into_iter().map(|path| {
        let name = path.file_stem().expect("named");
        name.to_string_lossy().into_owned()
    });
    let newest = [13, 20, 21, 22, 23].map(|number| format!("{number:0>13}-session-{number}"));
    assert_eq!(names.collect::<Vec<_>>(), newest);
}

#[test]
fn recording_that_has_used_its_share_ends_and_its_session_goes_on() {
    let folder = Folder::new();
    let mut session = folder.session(1);
    assert!(session.poll_frame(at(1, 1)).is_some(), "the welcome");
    // More than a quarter of the maximum.
    session.handle_part(at(1, 2), &frame_of(300 << 10).into(), &|| false);
    assert_eq!(session.identity().session_id, "session-1");
    drop(session);
    let (folder, metrics) = folder.finish();
    let files = files(&folder);
    assert_eq!(ending(&files[0]), Ending::Marked(EndReason::Full));
    assert_eq!(ended(&metrics, "full"), 1);
}

#[test]
fn queue_that_nobody_empties_takes_no_more_than_its_bounds() {
    for (count, bytes) in [(1, WAITING_BYTES_MAX), (WAITING_MAX, 0)] {
        let (queue, arriving) = Queue::new();
        let send = |bytes| {
            queue.send(Records {
                of: 0,
                begins: None,
                bytes: vec![0; bytes],
            })
        };
        for _ in 0..count {
            assert!(send(bytes));
        }
        assert!(!send(1));
        assert_eq!(queue.waiting.load(Ordering::Relaxed), count * bytes);
        drop(arriving);
    }
}

#[test]
fn second_server_is_refused_the_folder() {
    let folder = Folder::new();
    let metrics = Metrics::register(&mut Registry::default());
    let second = Recorder::start(&recording(&folder.folder), metrics);
    let refused = second.expect_err("the first one has it").to_string();
    assert!(refused.contains("another server"), "{refused}");
    folder.finish();
}

#[test]
fn disk_that_hangs_does_not_keep_the_server() {
    let (finish, _never_read) = sync_channel(1);
    let (_never_written, written) = sync_channel(1);
    let thread = WriterThread {
        finish,
        written,
        _lock: tempfile::tempfile().expect("a file"),
    };
    thread.finish(Duration::from_millis(1));
}
