//! Replays shadow-mode sessions beside the built-in controller: its correct decisions are no surprise.

use std::path::{Path, PathBuf};

use decree::v1::{self, Departure};
use server_recording::Replay;

/// The recordings, each with its minimum number of comparisons.
const RECORDINGS: [(&str, u64); 2] = [
    ("rollouts-quiet.recording", 50),
    ("rollouts-busy.recording", 155),
];

/// The folder of the recordings, beside the checkout; they are not part of the repository.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/evidence/shadow")
}

fn judged(bytes: &[u8]) -> v1::ListDifferencesResponse {
    let mut replay = Replay::open(bytes).expect("it is a recording");
    // Only the comparisons matter here, not the decisions of this version.
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
