//! A run on the real API server is recorded, and replays.
//!
//! The recordings in `tests/golden/recordings` come from this run. With `DECREE_KEEP_RECORDINGS` set, the run replaces them.

mod run;
mod sets;

use std::{env, fs, path::Path};

use tests::recordings;

use run::Run;

/// The names of the recordings of the run, by the end of their sessions.
const NAMES: [&str; 3] = ["1-agent-stopped", "2-server-drained", "3-agent-killed"];

#[tokio::test]
async fn recording_of_a_real_cluster_replays_and_holds_no_secret() {
    let run = tests::or_skip!(Run::begin("recorded").await);
    run.sets_grow().await;
    run.each_rule_chooses_a_victim().await;
    run.pods_and_a_node_are_lost().await;
    run.labels_move_pods().await;
    run.a_quota_refuses_pods().await;
    run.a_set_is_deleted().await;
    let run = run.agent_is_restarted().await;
    let run = run.server_is_replaced().await;
    let folder = run.end();

    let recordings = of_folder(folder.path());
    assert_eq!(recordings.len(), NAMES.len(), "one of each session");
    for (name, bytes) in NAMES.iter().zip(&recordings) {
        let (differences, _) = recordings::replay(bytes);
        assert_eq!(differences, [], "{name}");
        recordings::assert_no_secret(bytes);
    }
    recordings::assert_rich(recordings.iter().map(Vec::as_slice));
    if env::var_os("DECREE_KEEP_RECORDINGS").is_some() {
        let named: Vec<_> = NAMES.into_iter().zip(recordings).collect();
        recordings::keep(&named);
    }
}

/// The recordings of a server, the oldest first.
fn of_folder(folder: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder).expect("the server made it");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some()).collect();
    paths.sort();
    let read = |path| fs::read(path).expect("it is there");
    paths.into_iter().map(read).collect()
}
