//! A server that turned bad, in each of its ways: what it can do to a cluster, and to the agent.

use std::{
    fs,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tests::{
    admin,
    malicious::{Lie, MaliciousServer, Witness, cluster},
    running::{PATIENCE, Running},
};

use crate::world;

/// How many rounds a lie of batches is told.
const ROUNDS: u64 = 30;
/// What an agent of this little cluster may take, in KiB, in an unoptimized build.
const MEMORY_MAX_KIB: u64 = 256 * 1024;

/// A lie, the server that tells it, and an agent on a cluster of two ReplicaSets and pods that they have nothing to do with.
struct Stage {
    /// From before the agent could do anything.
    begun: Instant,
    server: MaliciousServer,
    agent: Running,
    _folder: TempDir,
}

impl Stage {
    fn set(lie: Lie) -> Self {
        Self::of(lie, &cluster(), &[])
    }

    fn of(lie: Lie, cluster: &str, flags: &[&str]) -> Self {
        let folder = TempDir::new().expect("a folder");
        let manifest = folder.path().join("cluster.yaml");
        fs::write(&manifest, cluster).expect("it can be written");
        let server = MaliciousServer::start(lie);
        let begun = Instant::now();
        let agent = world::flagged_agent_with(&server.address(), &manifest, flags);
        Self {
            begun,
            server,
            agent,
            _folder: folder,
        }
    }

    /// Waits until so much was seen, and returns all that was.
    fn seen(&self, enough: impl Fn(&Witness) -> bool) -> Witness {
        let read = |witness: &Witness| enough(witness).then(|| witness.clone());
        let seen = self.server.wait_for(PATIENCE, read);
        seen.unwrap_or_else(|| panic!("{:?}", self.agent.tail()))
    }

    /// Checks that nothing came of it, and that the agent stops when it is asked to.
    fn ends_well(self, seen: &Witness) {
        assert_eq!(seen.violations, [""; 0]);
        let memory = fs::read_to_string(format!("/proc/{}/status", self.agent.id()));
        let memory = memory.expect("the agent lives");
        let peak = memory.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB"));
        let peak: u64 = peak
            .and_then(|peak| peak.parse().ok())
            .expect("it is there");
        assert!(peak < MEMORY_MAX_KIB, "the agent took {peak} KiB");
        self.agent.terminate();
        assert_eq!(self.agent.wait().code(), Some(0), "the agent stops");
    }
}

/// Lets a server lie for some rounds of batches: no operation may take effect.
fn lies_in_vain(lie: Lie, rule: &str) {
    let stage = Stage::set(lie);
    let metrics = stage.agent.address("admin");
    let seen = stage.seen(|witness| witness.rounds > ROUNDS);
    assert_eq!((seen.done, seen.failed), (0, 0), "{lie:?}");
    assert!(seen.not_started >= ROUNDS, "{lie:?}: {}", seen.not_started);
    let metric = format!("decree_agent_operations_refused_total{{rule=\"{rule}\"}}");
    assert!(admin::metric(&metrics, &metric) > 0, "{lie:?}");
    stage.ends_well(&seen);
}

#[test]
fn surplus_pods_are_not_created() {
    lies_in_vain(Lie::CreateSurplus, "surplus");
}

#[test]
fn template_is_not_carried_into_another_namespace() {
    lies_in_vain(Lie::CreateElsewhere, "reference");
}

#[test]
fn pods_get_no_names_of_others() {
    lies_in_vain(Lie::NameAtWill, "name");
}

#[test]
fn wanted_pods_are_not_deleted() {
    lies_in_vain(Lie::DeleteEverything, "shortage");
}

#[test]
fn deletes_that_the_spec_allows_are_held_by_the_budget() {
    let flags = ["--budget-action=hold", "--delete-budget-replicaset=10"];
    let cluster = format!("{}{}", cluster(), crate::budget::idle("idle", 30));
    let stage = Stage::of(Lie::DeleteEverything, &cluster, &flags);
    let metrics = stage.agent.address("admin");
    let seen = stage.seen(|witness| witness.rounds > ROUNDS);
    assert_eq!((seen.done, seen.failed), (10, 0), "thirty are too many");
    let count = |metric: &str| admin::metric(&metrics, &format!("decree_agent_{metric}"));
    assert_eq!(
        count("budget_held{scope=\"replicaset\",operation=\"delete\"}"),
        1
    );
    assert!(count("operations_refused_total{rule=\"budget\"}") >= 20);
    stage.ends_well(&seen);
}

#[test]
fn pods_of_others_are_not_deleted() {
    lies_in_vain(Lie::DeleteOutside, "ownership");
}

#[test]
fn pods_that_match_are_not_released() {
    lies_in_vain(Lie::ReleaseMatching, "selector");
}

#[test]
fn pods_that_do_not_match_are_not_adopted() {
    lies_in_vain(Lie::AdoptOutside, "selector");
}

#[test]
fn false_status_is_not_written() {
    lies_in_vain(Lie::FalseStatus, "status");
}

#[test]
fn words_of_the_server_steer_no_terminal_and_fill_no_log() {
    let stage = Stage::set(Lie::Steer);
    let seen = stage.seen(|witness| witness.rounds > 3_000);
    let lines = stage.agent.wait_for("what it has to say", |lines| {
        let said = lines.iter().any(|line| line.contains("does not accept"));
        said.then(|| lines.to_vec())
    });
    let steers = |it: char| it.is_control() || ('\u{202a}'..='\u{2069}').contains(&it);
    for line in &lines {
        let line: serde_json::Value = serde_json::from_str(line).expect("each line is one object");
        let texts = line.as_object().expect("it is one").values();
        for text in texts.filter_map(serde_json::Value::as_str) {
            assert!(!text.contains(steers), "{text:?}");
            assert!(text.len() < 12 * 1024, "{} bytes", text.len());
        }
    }
    let at_will = lines.iter().filter(|line| line.contains("the server "));
    assert!(at_will.count() < 60, "{} lines", lines.len());
    stage.ends_well(&seen);
}

#[test]
fn lists_that_are_asked_for_without_end_are_paced() {
    let stage = Stage::set(Lie::AskForLists);
    let seen = stage.seen(|witness| witness.rounds > 10_000);
    // Measured around all that the agent did, so that a machine that is slow allows more and never less.
    let lasted = stage.begun.elapsed().as_secs();
    let most = 2 * (1 + lasted / 10 + 1);
    let lists = seen.lists.len() as u64;
    assert!(lists <= most, "{lists} lists in {lasted} s");
    stage.ends_well(&seen);
}

#[test]
fn sessions_that_end_at_once_are_paced() {
    for lie in [Lie::DrainAtOnce, Lie::RefuseAll] {
        let stage = Stage::set(lie);
        let seen = stage.seen(|witness| witness.sessions.len() >= 7);
        // Three at once, and then one a second. From before the first: between two, a busy machine may see the one before late.
        for (number, began) in seen.sessions.iter().enumerate().skip(3) {
            let least = Duration::from_secs(number as u64 - 2);
            let after = began.duration_since(stage.begun);
            assert!(after >= least, "{lie:?}: {number} after {after:?}");
        }
        stage.ends_well(&seen);
    }
}

#[test]
fn frame_of_countless_batches_is_not_built() {
    let stage = Stage::set(Lie::CountlessBatches);
    let refused = |lines: &[String]| {
        let says = |line: &&String| line.contains("the lists of a frame have more than");
        lines.iter().find(says).map(drop)
    };
    stage.agent.wait_for("why it leaves the server", refused);
    let seen = stage.seen(|witness| witness.sessions.len() > 1);
    stage.ends_well(&seen);
}

#[test]
fn server_that_reads_no_outcome_is_left() {
    let stage = Stage::set(Lie::ReadNoOutcome);
    stage
        .agent
        .wait_for_message("the server refuses this agent", 1);
    let seen = stage.seen(|witness| witness.sessions.len() > 1);
    stage.ends_well(&seen);
}
