//! The order of deletion: upstream's vectors (spec 7.6) and scenarios (spec 12.1, 12.3), one by one.

mod choice;
mod properties;
mod values;

use super::*;
use crate::object::{Phase, PodState, Ready, Span, Uid};

const NOW: Timestamp = Timestamp::from_seconds(1_700_000_000);

const DAY: i64 = 86_400;

/// A pod with the defaults of the vectors: on a node, running, ready, created and ready 100 s ago.
#[derive(Clone, Debug)]
struct TestPod {
    uid: Uid,
    /// The UID in the form of the index.
    kept: CompactUid,
    node: Option<&'static str>,
    state: PodState,
    rank: u32,
}

fn pod(uid: &str) -> TestPod {
    TestPod {
        uid: Uid(uid.into()),
        kept: CompactUid::of(uid),
        node: Some("n"),
        state: PodState {
            phase: Phase::Running,
            ready: Ready {
                ready: true,
                since: ago(100),
            },
            created: ago(100),
            ..PodState::default()
        },
        rank: 1,
    }
}

fn ago(seconds: i64) -> Option<Timestamp> {
    ago_ns(seconds * 1_000_000_000)
}

fn ago_ns(nanoseconds: i64) -> Option<Timestamp> {
    Some(NOW.plus(Span(-nanoseconds)))
}

impl TestPod {
    fn on(self, node: &'static str) -> Self {
        Self {
            node: Some(node),
            ..self
        }
    }

    fn unassigned(self) -> Self {
        Self { node: None, ..self }
    }

    fn phase(mut self, phase: Phase) -> Self {
        self.state.phase = phase;
        self
    }

    fn not_ready(mut self) -> Self {
        self.state.ready = Ready::default();
        self
    }

    fn ready_since(mut self, since: Option<Timestamp>) -> Self {
        self.state.ready = Ready { ready: true, since };
        self
    }

    fn cost(mut self, deletion_cost: i32) -> Self {
        self.state.deletion_cost = deletion_cost;
        self
    }

    fn rank(self, rank: u32) -> Self {
        Self { rank, ..self }
    }

    fn restarts(mut self, restarts: i32, sidecar_restarts: i32) -> Self {
        (self.state.restarts, self.state.sidecar_restarts) = (restarts, sidecar_restarts);
        self
    }

    fn created(mut self, created: Option<Timestamp>) -> Self {
        self.state.created = created;
        self
    }

    fn candidate(&self) -> Candidate<'_, &str> {
        Candidate {
            id: &self.uid.0,
            node: self.node,
            state: &self.state,
            rank: self.rank,
            uid: &self.kept,
        }
    }
}

fn chosen(pods: &[TestPod], count: usize) -> Vec<Chosen<&str>> {
    let pods: Vec<_> = pods.iter().map(TestPod::candidate).collect();
    choose(&pods, count, NOW, &|_| Arc::default()).chosen
}

/// The UIDs of the victims, in order of choice.
fn uids(pods: &[TestPod], count: usize) -> Vec<&str> {
    chosen(pods, count)
        .into_iter()
        .map(|chosen| chosen.id)
        .collect()
}

/// Asserts that the first pod comes before the second, in any order of the input, and by which rule.
#[track_caller]
fn goes_first(first: &TestPod, second: &TestPod, rule: Rule) -> String {
    let pair = [first.clone(), second.clone()];
    let Chosen { id, reason, .. } = chosen(&pair, 1).remove(0);
    assert_eq!((id, reason.rule), (&*first.uid.0, rule), "{reason:?}");
    assert_eq!(
        uids(&[second.clone(), first.clone()], 1),
        [&*first.uid.0],
        "input turned round"
    );
    reason.detail.into_owned()
}

#[test]
fn unassigned_ready_pod_goes_before_assigned_pending_one() {
    let (i, j) = (
        pod("b").unassigned(),
        pod("a").phase(Phase::Pending).not_ready(),
    );
    assert_eq!(
        goes_first(&i, &j, Rule::Unassigned),
        "not assigned to a node"
    );
}

#[test]
fn phases_go_pending_unknown_running() {
    let pending = pod("c").on("n1").phase(Phase::Pending);
    let unknown = pod("b").on("n2").phase(Phase::Unknown);
    let running = pod("a");
    assert_eq!(
        goes_first(&pending, &unknown, Rule::Phase),
        "phase Pending vs Unknown"
    );
    goes_first(&unknown, &running, Rule::Phase);
    goes_first(&pod("z").phase(Phase::Other), &running, Rule::Phase);
}

#[test]
fn phase_without_a_name_counts_as_pending() {
    let (i, j) = (
        pod("b").phase(Phase::Other).cost(-1),
        pod("a").phase(Phase::Pending),
    );
    goes_first(&i, &j, Rule::DeletionCost);
}

#[test]
fn unknown_and_ready_goes_before_running_and_not_ready() {
    goes_first(
        &pod("b").phase(Phase::Unknown),
        &pod("a").not_ready(),
        Rule::Phase,
    );
}

#[test]
fn readiness_comes_before_cost() {
    let (i, j) = (pod("b").not_ready().cost(1000), pod("a").cost(-1000));
    assert_eq!(goes_first(&i, &j, Rule::NotReady), "not ready");
}

#[test]
fn cost_comes_before_rank() {
    let (i, j) = (pod("b").cost(-5).rank(1), pod("a").rank(9));
    assert_eq!(
        goes_first(&i, &j, Rule::DeletionCost),
        "deletion cost -5 < 0"
    );
    goes_first(
        &pod("b").cost(i32::MIN),
        &pod("a").cost(i32::MAX),
        Rule::DeletionCost,
    );
}

#[test]
fn surplus_pod_on_crowded_node_goes_first() {
    let (i, j) = (
        pod("b").rank(3).ready_since(ago(30 * DAY)),
        pod("a").on("m").rank(2).ready_since(ago(0)),
    );
    let detail = goes_first(&i, &j, Rule::CrowdedNode);
    assert_eq!(
        detail,
        "3 pods of this owner on n vs 2 pods of this owner on m"
    );
    goes_first(
        &pod("b").rank(u32::MAX),
        &pod("a").rank(0),
        Rule::CrowdedNode,
    );
}

#[test]
fn ready_since_an_unknown_time_goes_before_a_known_one() {
    let (i, j) = (pod("b").ready_since(None), pod("a").ready_since(ago(1)));
    assert_eq!(
        goes_first(&i, &j, Rule::ReadyRecently),
        "ready for an unknown time vs 1s"
    );
    goes_first(&i, &pod("a").ready_since(ago(0)), Rule::ReadyRecently);
}

#[test]
fn ready_more_recently_goes_first_by_powers_of_two() {
    let (i, j) = (
        pod("b").ready_since(ago(10)),
        pod("a").ready_since(ago(100)),
    );
    assert_eq!(
        goes_first(&i, &j, Rule::ReadyRecently),
        "ready for 10s vs 1m40s"
    );
    let (i, j) = (
        pod("b").ready_since(ago(2 * 3600)),
        pod("a").ready_since(ago(5 * 3600)),
    );
    goes_first(&i, &j, Rule::ReadyRecently);
    goes_first(
        &pod("b").ready_since(ago(0)),
        &pod("a").ready_since(ago(30 * DAY)),
        Rule::ReadyRecently,
    );
}

#[test]
fn future_is_younger_than_the_last_nanosecond() {
    goes_first(
        &pod("b").ready_since(ago(-5)),
        &pod("a").ready_since(ago_ns(1)),
        Rule::ReadyRecently,
    );
    goes_first(
        &pod("a").ready_since(ago(-5)),
        &pod("b").ready_since(ago(0)),
        Rule::Uid,
    );
}

#[test]
fn same_power_of_two_goes_by_uid_and_restarts_do_not_count() {
    let i = pod("b").ready_since(ago(100)).restarts(0, 0);
    let j = pod("a").ready_since(ago(110)).restarts(9000, 0);
    assert_eq!(
        goes_first(&j, &i, Rule::Uid),
        "ready for 1m50s and 1m40s, the same age bucket: restarts are not compared, uid a < b"
    );
    let (i, j) = (pod("b").restarts(9000, 0), pod("a").ready_since(ago(110)));
    goes_first(&j, &i, Rule::Uid);
}

#[test]
fn more_restarts_go_first_when_readiness_is_equal() {
    let (i, j) = (
        pod("b").not_ready().restarts(4, 0),
        pod("a").not_ready().restarts(3, 0),
    );
    assert_eq!(goes_first(&i, &j, Rule::Restarts), "4 restarts vs 3");
    goes_first(
        &pod("b").restarts(4, 0),
        &pod("a").restarts(3, 0),
        Rule::Restarts,
    );
    goes_first(
        &pod("b").ready_since(None).restarts(1, 0),
        &pod("a").ready_since(None),
        Rule::Restarts,
    );
}

#[test]
fn sidecar_restarts_count_after_the_regular_ones() {
    let (i, j) = (
        pod("b").not_ready().restarts(2, 5),
        pod("a").not_ready().restarts(2, 0),
    );
    assert_eq!(
        goes_first(&i, &j, Rule::Restarts),
        "5 sidecar restarts vs 0"
    );
    let (i, j) = (
        pod("b").not_ready().restarts(3, 0),
        pod("a").not_ready().restarts(2, 99),
    );
    goes_first(&i, &j, Rule::Restarts);
}

#[test]
fn created_more_recently_goes_first_by_powers_of_two() {
    let (i, j) = (pod("b").created(None), pod("a").created(ago(1)));
    assert_eq!(
        goes_first(&i, &j, Rule::CreatedRecently),
        "an unknown time old vs 1s"
    );
    let (i, j) = (pod("b").created(ago(10)), pod("a").created(ago(100)));
    assert_eq!(
        goes_first(&i, &j, Rule::CreatedRecently),
        "10s old vs 1m40s"
    );
    goes_first(
        &pod("b").created(ago(0)),
        &pod("a").created(ago(30 * DAY)),
        Rule::CreatedRecently,
    );
    assert_eq!(
        goes_first(
            &pod("a").created(ago(110)),
            &pod("b").created(ago(100)),
            Rule::Uid,
        ),
        "1m50s old and 1m40s, the same age bucket, uid a < b"
    );
}

#[test]
fn equal_in_all_goes_by_uid() {
    let said = "tie by every other rule, uid a < b";
    assert_eq!(goes_first(&pod("a"), &pod("b"), Rule::Uid), said);
    let (i, j) = (pod("a").not_ready(), pod("b").not_ready());
    assert_eq!(goes_first(&i, &j, Rule::Uid), said);
}

#[test]
fn crowded_node_comes_before_restarts_and_age() {
    goes_first(
        &pod("b").rank(2),
        &pod("a").restarts(9, 9),
        Rule::CrowdedNode,
    );
    goes_first(
        &pod("b").rank(2).created(ago(30 * DAY)),
        &pod("a").created(ago(0)),
        Rule::CrowdedNode,
    );
}

#[test]
fn not_ready_since_matters_to_nobody() {
    let not_ready = |mut pod: TestPod, since| {
        let ready = false;
        pod.state.ready = Ready { ready, since };
        pod
    };
    let i = not_ready(pod("b"), ago(1000)).restarts(1, 0);
    let j = not_ready(pod("a"), ago(1));
    goes_first(&i, &j, Rule::Restarts);
}
