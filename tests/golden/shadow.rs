//! Recordings of sessions in shadow mode beside the built-in controller, judged again: what it did rightly is no surprise.

use std::path::{Path, PathBuf};

use decree::v1::{self, Departure};
use server_recording::Replay;

/// The recordings, and how many comparisons each must hold at least.
const RECORDINGS: [(&str, u64); 2] = [
    ("rollouts-quiet.recording", 50),
    ("rollouts-busy.recording", 155),
];

/// Where the recordings lie, beside the checkout; they are not part of the repository.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/evidence/shadow")
}

/// Judges a recorded session again.
fn judged(bytes: &[u8]) -> v1::ListDifferencesResponse {
    let mut replay = Replay::open(bytes).expect("it is a recording");
    // What this version sends is not of interest, but only what it finds.
    while replay.next_difference().expect("it is whole").is_some() {}
    let found = replay.session().differences("", "");
    found.expect("the session was in shadow mode")
}

#[test]
fn rollouts_beside_the_built_in_controller_hold_no_surprise() {
    for (name, least) in RECORDINGS {
        let path = folder().join(name);
        let Ok(bytes) = std::fs::read(&path) else {
            eprintln!("skipped: there is no {}", path.display());
            continue;
        };
        let found = judged(&bytes);
        let is_surprise = |one: &&v1::Difference| one.departure() == Departure::Unspecified;
        let surprises: Vec<_> = found.differences.iter().filter(is_surprise).collect();
        assert!(surprises.is_empty(), "{name}: {surprises:#?}");
        assert!(found.compared >= least, "{name}: {}", found.compared);
        eprintln!(
            "{name}: {} compared, {:?}",
            found.compared, found.agreements
        );
        let by_others = found.deleted_by_others;
        eprintln!(
            "  {} explained, {by_others} deleted by others",
            found.differences.len()
        );
    }
}
