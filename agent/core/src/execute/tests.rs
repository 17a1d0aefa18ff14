//! Many batches: the order of their calls, and their outcomes.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{
    api::{ApiError, CreatePod, Reply, WriteStatus},
    tests::*,
};

mod advice;
mod memory;

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
        rig.batches.handle_batch(batch(1, action));
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
        self.batches.handle_batch(second);
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
}

fn created(request: &Request) -> Result<Reply, ApiError> {
    let Request::CreatePod(CreatePod { name, .. }) = request else {
        panic!("{request:?} creates nothing")
    };
    replied(pod(name, 11))
}

#[test]
fn created_pod_has_its_name_its_template_and_its_controller() {
    let mut rig = Rig::taking(create(1), &[]);
    rig.guard.config.api_version = "decree.dev/v1".into();
    let (_, request) = rig.call();
    let expected = CreatePod {
        namespace: "default".into(),
        name: "web-0".into(),
        generate_name: "web-".into(),
        controller: v1::OwnerReference {
            api_version: "decree.dev/v1".into(),
            ..controller()
        },
        template: template(),
        responds: false,
        timeout: CreateLimits::default().timeout,
    };
    assert_eq!(request, Request::CreatePod(expected));
}

#[test]
fn calls_name_their_objects_in_full() {
    let pods = [pod("a", 5), orphan("o", 5)];
    let called = |action| Rig::taking(action, &pods).call().1;
    let deletes = Request::DeletePod {
        pod: pod_ref("a"),
        resource_version: None,
    };
    assert_eq!(called(delete(&["a"])), deletes);
    let releases = Request::ReleasePod {
        pod: pod_ref("a"),
        owner_uid: "rs".into(),
    };
    assert_eq!(called(claim(&[], &["a"])), releases);
    let writes = Request::WriteStatus(WriteStatus {
        replica_set: owner(),
        resource_version: "10".into(),
        status: v1::ReplicaSetStatus {
            replicas: 2,
            ..v1::ReplicaSetStatus::default()
        },
        selector: replica_set(10, 1).projected.selector,
    });
    assert_eq!(called(write_status(2)), writes);
    let mut rig = Rig::taking(claim(&["o"], &[]), &pods);
    let (id, _) = rig.call();
    rig.answer(id, replied_set(replica_set(10, 1)));
    let adopts = Request::AdoptPod {
        pod: pod_ref("o"),
        controller: controller(),
    };
    assert_eq!(rig.call().1, adopts);
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
        (
            200,
            Request::AdoptPod { pod: it, .. }
            | Request::ReleasePod { pod: it, .. }
            | Request::AdvisePod { pod: it, .. },
        ) => replied(pod(&it.name, 12)),
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
