//! Many batches: the order of their calls, and their outcomes.

use std::collections::BTreeMap;

use decree::v1::{FailureClass, outcome::Outcome as OutcomeKind};
use proptest::prelude::*;

use super::*;
use crate::{
    api::{ApiError, CreatePod, Kind, Reply},
    tests::*,
};

mod effects;
mod memory;
mod recheck;
mod traces;

/// Batches on a view, stepped by hand.
struct Rig {
    batches: Batches,
    view: View,
    guard: Guard,
    calls: BTreeMap<CallId, Request>,
}

impl Rig {
    fn new(pods: &[v1::Pod]) -> Self {
        let budget = budget::BudgetConfig::default();
        Self {
            batches: Batches::new(256, CreateLimits::default(), budget),
            view: view(pods),
            guard: guard(),
            calls: BTreeMap::new(),
        }
    }

    fn taking(action: Action, pods: &[v1::Pod]) -> Self {
        let mut rig = Self::new(pods);
        rig.batches
            .handle_batch(batch(1, action))
            .expect("nothing else is in flight");
        rig
    }

    /// Makes all calls that are due, and returns them in order.
    fn calls(&mut self) -> Vec<(CallId, Request)> {
        let mut made = Vec::new();
        while let Some(Call { id, request }) =
            self.batches
                .poll_call(Timestamp::UNIX_EPOCH, &mut self.view, &self.guard)
        {
            self.calls.insert(id, request.clone());
            made.push((id, request));
        }
        made
    }

    /// Makes the only call that is due.
    fn call(&mut self) -> (CallId, Request) {
        let mut made = self.calls();
        assert_eq!(made.len(), 1, "{made:?}");
        made.remove(0)
    }

    fn answer(&mut self, id: CallId, result: Result<Reply, ApiError>) {
        self.calls.remove(&id).expect("the call was made");
        self.batches
            .handle_reply(Timestamp::UNIX_EPOCH, &mut self.view, id, result);
    }

    fn take_of_another(&mut self, action: Action) {
        self.view.apply_replica_set(&replica_set_of_uid("rs2", 10));
        let owner = v1::ObjectRef {
            uid: "rs2".into(),
            ..owner()
        };
        let second = v1::Batch {
            replica_set: Some(owner),
            ..batch(2, action)
        };
        let taken = self.batches.handle_batch(second);
        taken.expect("it is the first of its ReplicaSet");
    }

    /// Answers the first call with success.
    fn answer_first(&mut self) {
        let (id, request) = self.calls.first_key_value().expect("a call was made");
        let (id, reply) = (*id, answer_to(request, 200));
        self.answer(id, reply);
    }

    fn outcomes(&mut self) -> Vec<(u32, &'static str)> {
        self.batches
            .outcomes
            .drain(..)
            .map(|outcome| (outcome.operation, word(&outcome)))
            .collect()
    }

    /// Checks that no batch is left, and that these outcomes came.
    fn ends_with(mut self, outcomes: &[(u32, &str)]) {
        assert_eq!(self.calls(), [], "no further call");
        assert_eq!(self.outcomes(), outcomes);
        assert_eq!(
            (self.batches.operations, self.batches.calls_in_flight()),
            (0, 0)
        );
    }

    fn ends_with_refusals(mut self) {
        assert_eq!(self.calls(), []);
        let mut outcomes = self.outcomes().into_iter();
        assert!(outcomes.all(|(_, word)| word == "NOT_STARTED_CAUSE_GUARD"));
    }
}

fn created(request: &Request) -> Result<Reply, ApiError> {
    let Request::CreatePod(CreatePod { name, .. }) = request else {
        panic!("{request:?} creates nothing")
    };
    replied(pod(name, 11))
}

#[test]
fn creates_ramp_up_and_each_has_its_outcome() {
    let mut rig = Rig::taking(create(5), &[]);
    for expected in [1, 2, 2] {
        let calls = rig.calls();
        assert_eq!(calls.len(), expected);
        for (id, request) in calls {
            rig.answer(id, created(&request));
        }
    }
    rig.ends_with(&[
        (0, "done"),
        (1, "done"),
        (2, "done"),
        (3, "done"),
        (4, "done"),
    ]);
}

#[test]
fn round_with_a_failure_is_awaited_and_is_the_last() {
    let mut rig = Rig::taking(create(6), &[]);
    let (first, request) = rig.call();
    rig.answer(first, created(&request));
    let round = rig.calls();
    rig.answer(round[0].0, Err(refusal(403, "Forbidden")));
    assert_eq!(rig.calls(), [], "the failure ends the ramp");
    rig.answer(round[1].0, created(&round[1].1));
    let (skipped, forbidden) = ("NOT_STARTED_CAUSE_SLOW_START", "FAILURE_CLASS_FORBIDDEN");
    rig.ends_with(&[
        (0, "done"),
        (1, forbidden),
        (3, skipped),
        (4, skipped),
        (5, skipped),
        (2, "done"),
    ]);
}

#[test]
fn terminating_namespace_stops_the_round_itself() {
    let mut rig = Rig::taking(create(7), &[]);
    rig.batches.calls_max = 1;
    for _ in 0..3 {
        let (id, request) = rig.call();
        rig.answer(id, created(&request));
    }
    let (id, _) = rig.call();
    let causes = vec!["NamespaceTerminating".into()];
    rig.answer(
        id,
        Err(ApiError {
            causes,
            ..refusal(403, "Forbidden")
        }),
    );
    assert_eq!(rig.calls(), [], "the rest of the round of 4 is not tried");
    let words: Vec<_> = rig.outcomes().into_iter().skip(3).collect();
    let skipped = "NOT_STARTED_CAUSE_SLOW_START";
    assert_eq!(
        words,
        [
            (3, "FAILURE_CLASS_NAMESPACE_TERMINATING"),
            (4, skipped),
            (5, skipped),
            (6, skipped)
        ]
    );
}

#[test]
fn created_pod_has_its_name_its_template_and_its_controller() {
    let (_, request) = Rig::taking(create(1), &[]).call();
    let expected = CreatePod {
        namespace: "default".into(),
        name: "web-0".into(),
        generate_name: "web-".into(),
        controller: controller(),
        template: template(),
        timeout: CreateLimits::default().timeout,
    };
    assert_eq!(request, Request::CreatePod(expected));
}

#[test]
fn create_without_labels_in_the_template_is_invalid() {
    let mut rig = Rig::new(&[]);
    let mut bare = replica_set(11, 2);
    bare.projected.template_labels.clear();
    rig.view.apply_replica_set(&bare);
    let of_it = v1::Batch {
        generation: 2,
        ..batch(1, create(1))
    };
    let taken = rig.batches.handle_batch(of_it);
    taken.expect("nothing else is in flight");
    assert_eq!(rig.calls(), []);
    rig.ends_with(&[(0, "FAILURE_CLASS_INVALID")]);
}

#[test]
fn name_that_exists_and_is_ours_counts_as_done() {
    let mut rig = Rig::taking(create(1), &[]);
    let (id, _) = rig.call();
    rig.answer(id, Err(refusal(409, "AlreadyExists")));
    let (id, request) = rig.call();
    assert_eq!(
        request,
        Request::ReadPod {
            namespace: "default".into(),
            name: "web-0".into()
        }
    );
    rig.answer(id, replied(pod("web-0", 9)));
    rig.ends_with(&[(0, "already existed")]);
}

#[test]
fn name_of_a_stranger_or_of_a_leaving_pod_is_taken() {
    for (there, why) in [
        (orphan("web-0", 9), "pod web-0 belongs to another"),
        (deleting(pod("web-0", 9)), "pod web-0 is being deleted"),
    ] {
        let mut rig = Rig::taking(create(1), &[]);
        let (id, _) = rig.call();
        rig.answer(id, Err(refusal(409, "AlreadyExists")));
        let (id, _) = rig.call();
        rig.answer(id, replied(there));
        let outcome = rig.batches.outcomes.pop_front().expect("it is over");
        let Some(OutcomeKind::Failed(failed)) = outcome.outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(failed.class(), FailureClass::NameTaken);
        assert_eq!(failed.message, why);
        rig.ends_with(&[]);
    }
}

#[test]
fn classes_of_outcomes_are_the_words_of_the_contract() {
    let class_of = |outcome: &v1::Outcome| {
        let Report::Finished { class, .. } = Report::finished(outcome) else {
            panic!("{outcome:?} has no class")
        };
        class
    };
    for (class, word) in [
        (FailureClass::NameTaken, "name_taken"),
        (FailureClass::NamespaceTerminating, "namespace_terminating"),
        (FailureClass::Timeout, "timeout"),
    ] {
        let failed = v1::Failed {
            class: class.into(),
            ..v1::Failed::default()
        };
        let outcome = v1::Outcome {
            outcome: Some(OutcomeKind::Failed(failed)),
            ..v1::Outcome::default()
        };
        assert_eq!(class_of(&outcome), word);
    }
    assert_eq!(class_of(&v1::Outcome::default()), "not_started");
}

#[test]
fn lost_reply_of_a_create_is_resolved_by_the_name() {
    let after_reading = |answer: Result<Reply, ApiError>| {
        let mut rig = Rig::taking(create(1), &[]);
        let (id, _) = rig.call();
        rig.answer(id, Err(ApiError::no_answer("connection reset")));
        let (id, _) = rig.call();
        rig.answer(id, answer);
        rig.outcomes()
    };
    assert_eq!(
        after_reading(replied(pod("web-0", 11))),
        [(0, "already existed")]
    );
    assert_eq!(
        after_reading(replied(orphan("web-0", 11))),
        [(0, "FAILURE_CLASS_NAME_TAKEN")]
    );
    assert_eq!(
        after_reading(Err(refusal(404, "NotFound"))),
        [(0, "FAILURE_CLASS_TIMEOUT")]
    );
    assert_eq!(
        after_reading(Err(refusal(503, ""))),
        [(0, "FAILURE_CLASS_TIMEOUT")]
    );
}

#[test]
fn create_of_a_generation_that_is_not_at_hand_is_not_started() {
    let mut rig = Rig::new(&[]);
    let unknown = v1::Batch {
        generation: 2,
        ..batch(1, create(2))
    };
    rig.batches
        .handle_batch(unknown)
        .expect("nothing else is in flight");
    assert_eq!(rig.calls(), []);
    rig.ends_with(&[
        (0, "NOT_STARTED_CAUSE_GUARD"),
        (1, "NOT_STARTED_CAUSE_SLOW_START"),
    ]);
}

#[test]
fn second_batch_of_a_replica_set_is_refused_while_one_is_in_flight() {
    let mut rig = Rig::taking(create(2), &[]);
    let refused = rig.batches.handle_batch(batch(2, create(1)));
    assert_eq!(
        refused.expect_err("one is in flight").cause,
        NotStartedCause::Guard
    );
    assert_eq!(rig.outcomes(), [(0, "NOT_STARTED_CAUSE_GUARD")]);
    assert_eq!(rig.batches.operations, 2, "the first is as it was");
}

#[test]
fn calls_in_flight_are_bounded_and_batches_take_turns() {
    let mut rig = Rig::taking(
        delete(&["a", "b", "c"]),
        &[pod("a", 1), pod("b", 2), pod("c", 3)],
    );
    rig.batches.calls_max = 2;
    rig.take_of_another(create(1));
    let verbs: Vec<_> = rig
        .calls()
        .iter()
        .map(|(_, request)| request.verb())
        .collect();
    assert_eq!(verbs, ["delete_pod", "create_pod"]);
}

#[test]
fn heavy_batch_leaves_room_for_light_ones_and_both_come_to_their_end() {
    let names: Vec<_> = (0..40).map(|at| format!("p{at}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let pods: Vec<_> = names.iter().map(|name| pod(name, 1)).collect();
    let mut rig = Rig::taking(delete(&names), &pods);
    rig.batches.calls_max = 16;
    assert_eq!(rig.calls().len(), 16);
    rig.take_of_another(create(1));
    rig.answer_first();
    assert_eq!(rig.call().1.verb(), "create_pod");
    for _ in 0..10 {
        rig.answer_first();
        assert!(rig.calls().is_empty(), "the heavy one has its share");
    }
    while !rig.calls.is_empty() {
        rig.answer_first();
        rig.calls();
    }
    assert_eq!(rig.batches.operations, 0);
    assert_eq!(rig.outcomes().len(), 41);
}

/// The server counts an operation until its outcome, and sends as many more: a batch that is half done counts half.
#[test]
fn operation_is_in_flight_until_its_outcome() {
    let mut rig = Rig::taking(delete(&["a", "b"]), &[pod("a", 1), pod("b", 2)]);
    assert_eq!(rig.batches.operations, 2);
    rig.calls();
    rig.answer_first();
    assert_eq!(rig.batches.operations, 1);
    rig.answer_first();
    assert_eq!(rig.batches.operations, 0);
}

#[test]
fn stopping_ends_what_has_not_begun_and_lets_the_rest_end() {
    let mut rig = Rig::taking(create(4), &[]);
    let (id, request) = rig.call();
    rig.batches.stop(NotStartedCause::NotEnforcing, "stopping");
    let not = "NOT_STARTED_CAUSE_NOT_ENFORCING";
    assert_eq!(rig.outcomes(), [(1, not), (2, not), (3, not)]);
    rig.answer(id, created(&request));
    rig.ends_with(&[(0, "done")]);
}

#[test]
fn write_of_an_abandoned_batch_still_reaches_the_view() {
    let mut rig = Rig::taking(create(1), &[]);
    let (id, request) = rig.call();
    rig.batches.abandon();
    assert_eq!(
        rig.batches.calls_in_flight(),
        1,
        "the call is still in flight"
    );
    rig.answer(id, created(&request));
    assert_eq!(rig.view.own_write(Kind::Pod), Some(11));
    rig.ends_with(&[]);
}

fn any_answer() -> impl Strategy<Value = u16> {
    prop_oneof![6 => Just(200_u16), 1 => Just(403), 1 => Just(404), 1 => Just(409), 1 => Just(504), 1 => Just(0)]
}

fn answer_to(request: &Request, code: u16) -> Result<Reply, ApiError> {
    let reason = if matches!(request, Request::CreatePod(_)) {
        "AlreadyExists"
    } else {
        ""
    };
    match (code, request) {
        (200, Request::CreatePod(_)) => created(request),
        (200, Request::WriteStatus(_) | Request::ReadReplicaSet { .. }) => {
            replied_set(replica_set(12, 1))
        }
        (200, Request::DeletePod { pod: it, .. }) => replied(deleting(pod(&it.name, 12))),
        (200, Request::AdoptPod { pod: it, .. } | Request::ReleasePod { pod: it, .. }) => {
            replied(pod(&it.name, 12))
        }
        (200, Request::ReadPod { name, .. }) => replied(pod(name, 12)),
        (0, _) => Err(ApiError::no_answer("reset")),
        (code, _) => Err(refusal(code, reason)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(5), ..ProptestConfig::default() })]

    /// Whatever the cluster answers, in whatever order, and whenever the agent stops: each operation has one outcome.
    #[test]
    fn each_operation_has_exactly_one_outcome(
        which in 0..4_usize,
        size in 1..12_usize,
        calls_max in 1..6_usize,
        answers in proptest::collection::vec((any_answer(), any::<prop::sample::Index>()), 200),
        stop_at in proptest::option::of(0..20_usize),
    ) {
        let names: Vec<String> = (0..size).map(|index| format!("p{index}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (orphans, owned) = names.split_at(size / 2);
        let action = [create(size), delete(&names), claim(orphans, owned), write_status(1)][which].clone();
        let mut pods: Vec<_> = owned.iter().map(|name| pod(name, 5)).collect();
        let as_orphan = |name: &&str| if which == 2 { orphan(name, 5) } else { pod(name, 5) };
        pods.extend(orphans.iter().map(as_orphan));
        let mut rig = Rig::taking(action, &pods);
        rig.batches.calls_max = calls_max;
        let total = rig.batches.operations;
        for (step, (code, pick)) in answers.iter().enumerate() {
            if stop_at == Some(step) {
                rig.batches.stop(NotStartedCause::NotEnforcing, "stopping");
            }
            rig.calls();
            prop_assert!(rig.calls.len() <= calls_max);
            if rig.calls.is_empty() {
                break;
            }
            let (id, request) = rig.calls.iter().nth(pick.index(rig.calls.len())).expect("in range");
            let (id, reply) = (*id, answer_to(request, *code));
            rig.answer(id, reply);
        }
        let mut operations: Vec<_> = rig.outcomes().into_iter().map(|(operation, _)| operation).collect();
        operations.sort_unstable();
        prop_assert_eq!(operations, (0..u32::try_from(total).expect("small")).collect::<Vec<_>>());
        prop_assert_eq!(rig.batches.operations, 0);
    }
}
