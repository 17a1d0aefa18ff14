//! Pods are asked for their deletion costs before a choice among them.

use std::collections::BTreeMap;

use decree_core::{
    Action, ActionKind, Config, Controller, CostsWanted, Pod, Preferences, Rule, ScaleInCost, Span,
    State, Uid,
};
use proptest::prelude::*;

use crate::{
    objects::{START, pod, set, unready, with},
    rig::{Rig, victims},
};

const PROCEED: bool = false;
const WAIT: bool = true;
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn rig(waits: bool, replicas: i32, pods: Vec<Pod>) -> Rig {
    let config = Config {
        asks_costs: true,
        ..Config::default()
    };
    let mut web = set("web", replicas);
    web.preferences = Some(Box::new(Preferences {
        scale_in_cost: Some(ScaleInCost {
            source: "http://:8080/busy".into(),
            waits,
        }),
        ..Preferences::default()
    }));
    Rig::with(config).listed(vec![web], pods)
}

fn four(waits: bool, replicas: i32) -> Rig {
    rig(waits, replicas, NAMES.map(|name| pod(name, "web")).into())
}

impl Rig {
    /// Polls until nothing is left to do, and returns the victims and the questions.
    fn deleted(&mut self) -> (Vec<String>, Vec<CostsWanted>) {
        let batches = self.settle();
        let deletes = batches
            .iter()
            .filter(|it| it.action.kind() == ActionKind::Delete);
        let deleted = deletes.flat_map(victims).collect();
        let questions = std::iter::from_fn(|| self.controller.poll_question());
        (deleted, questions.collect())
    }

    fn question(&mut self) -> CostsWanted {
        let (deleted, mut questions) = self.deleted();
        assert_eq!((deleted.len(), questions.len()), (0, 1), "{questions:?}");
        questions.remove(0)
    }

    fn answers(&mut self, question: u64, costs: &[(&str, i32)]) -> (Vec<String>, Vec<CostsWanted>) {
        let costs = costs.iter().map(|(name, cost)| (uid_of(name), Ok(*cost)));
        self.controller
            .handle_costs(self.now, question, costs.collect());
        self.deleted()
    }

    fn said(&self) -> (State, String) {
        let view = self.view("web");
        let reasons = view
            .reasons
            .iter()
            .map(|it| format!("{:?}: {}", it.rule, it.detail));
        (view.state, reasons.collect::<Vec<_>>().join(" | "))
    }
}

fn uid_of(name: &str) -> Uid {
    pod(name, "web").uid
}

fn asked(question: &CostsWanted) -> Vec<&str> {
    question.pods.iter().map(|pod| &*pod.name).collect()
}

#[test]
fn busy_pods_stay_and_the_reasons_say_why() {
    let mut rig = four(PROCEED, 2);
    let question = rig.question();
    assert_eq!(
        (asked(&question), question.timeout),
        (NAMES.into(), Span::seconds(2))
    );
    let said = "CostsAsked: asked 4 pods for their costs, answers due in 3s | TooManyReplicas: 4 active pods, 2 desired";
    assert_eq!(rig.said(), (State::Waiting, said.to_owned()));
    let costs =
        [("a", 17), ("b", 0), ("c", 17), ("d", -3)].map(|(name, cost)| (uid_of(name), Ok(cost)));
    rig.controller
        .handle_costs(rig.now, question.id, costs.into());
    let batch = rig.batch_done();
    let reasons = batch
        .reasons
        .iter()
        .map(|it| format!("{:?} {}", it.rule, it.detail));
    assert_eq!(
        reasons.collect::<Vec<_>>(),
        [
            "TooManyReplicas 4 active pods, 2 desired",
            "CostsAsked asked 4 pods for their costs, 4 answered"
        ]
    );
    let Action::Delete(chosen) = &batch.action else {
        panic!("{batch:?}")
    };
    let chosen = chosen
        .iter()
        .map(|it| (&*it.pod.name, it.reason.rule, &*it.reason.detail));
    let cost = Rule::DeletionCost;
    assert_eq!(
        chosen.collect::<Vec<_>>(),
        [
            ("d", cost, "deletion cost -3 (asked) < 17 (asked)"),
            ("b", cost, "deletion cost 0 (asked) < 17 (asked)")
        ]
    );
    let (deleted, questions) = rig.deleted();
    assert_eq!((deleted.len(), questions), (0, vec![]), "it has converged");
}

#[test]
fn nobody_is_asked_whose_cost_decides_nothing() {
    let pods = |unready_pods: &[&str]| {
        let pods = NAMES.map(|name| {
            if unready_pods.contains(&name) {
                unready(pod(name, "web"))
            } else {
                pod(name, "web")
            }
        });
        pods.to_vec()
    };
    let proceed = PROCEED;
    let (deleted, questions) = rig(proceed, 3, pods(&["c"])).deleted();
    assert_eq!(
        (deleted, questions),
        (vec!["c".to_owned()], vec![]),
        "not ready"
    );
    let (deleted, questions) = rig(proceed, 0, pods(&[])).deleted();
    assert_eq!((deleted.len(), questions), (4, vec![]), "all go");
    assert_eq!(
        asked(&rig(proceed, 2, pods(&["c"])).question()),
        ["a", "b", "d"]
    );
    assert_eq!(
        asked(&rig(proceed, 3, pods(&["c", "b"])).question()),
        ["b", "c"]
    );
    let many = (0..150).map(|at| pod(&format!("p{at:03}"), "web"));
    let many = many.map(|pod| {
        let is_late = &*pod.name >= "p050";
        with(pod, |state| state.deletion_cost = i32::from(!is_late))
    });
    let mut rig = rig(proceed, 149, many.collect());
    let question = rig.question();
    assert_eq!(
        (question.pods.len(), asked(&question)[0]),
        (100, "p050"),
        "the first by the known order"
    );
}

#[test]
fn silent_pods_count_as_annotated_or_are_asked_again() {
    let mut proceeds = four(PROCEED, 3);
    let question = proceeds.question();
    proceeds.wait(Span::millis(2_999));
    assert_eq!(proceeds.deleted(), (vec![], vec![]));
    proceeds.wait(Span::millis(1));
    assert_eq!(proceeds.deleted(), (vec!["a".to_owned()], vec![]), "by uid");
    assert_eq!(
        proceeds.answers(question.id, &[("b", -1)]),
        (vec![], vec![]),
        "too late"
    );

    let mut waits = four(WAIT, 3);
    let mut question = waits.question();
    for after in [1, 2, 4, 8, 16, 30, 30] {
        let partial = [("a", 1), ("b", 2), ("c", 3), ("x", 4), ("a", 5)];
        assert_eq!(waits.answers(question.id, &partial), (vec![], vec![]));
        let said = format!(
            "CostsAsked: 1 of 4 pods did not answer, asked again in {after}s | TooManyReplicas: 4 active pods, 3 desired"
        );
        assert_eq!(waits.said(), (State::Waiting, said));
        assert_eq!(
            waits.answers(question.id, &[("d", 0)]),
            (vec![], vec![]),
            "it is over"
        );
        waits.wait(Span::seconds(after));
        question = waits.question();
    }
    waits.wait(Span::seconds(3));
    assert_eq!(waits.deleted(), (vec![], vec![]), "all are silent");
    assert!(
        waits.said().1.contains("4 of 4 pods did not answer"),
        "{:?}",
        waits.said()
    );
    waits.wait(Span::seconds(30));
    let question = waits.question();
    let all = [("a", 1), ("b", 0), ("c", 3), ("d", 4)];
    assert_eq!(
        waits.answers(question.id, &all),
        (vec!["b".to_owned()], vec![])
    );
}

#[test]
fn changes_meanwhile_are_decided_with_the_costs_that_came() {
    let mut rig = four(WAIT, 3);
    let question = rig.question();
    rig.delete_pod(&pod("a", "web"));
    assert_eq!(rig.deleted(), (vec![], vec![]), "as many as desired");
    assert_eq!(
        rig.answers(question.id, &[("b", -1)]),
        (vec![], vec![]),
        "nobody waits for it"
    );

    let mut rig = four(WAIT, 2);
    let question = rig.question();
    rig.delete_pod(&pod("a", "web"));
    rig.apply_pod(pod("e", "web"));
    rig.apply_pod(pod("f", "web"));
    assert_eq!(rig.deleted(), (vec![], vec![]), "one question at a time");
    // Of those that were not asked, the annotations count, also for those that wait for silent pods.
    let costs = [("b", 5), ("c", 6), ("d", -1)];
    let (deleted, questions) = rig.answers(question.id, &costs);
    assert_eq!(
        (deleted, questions),
        (["d", "e", "f"].map(str::to_owned).into(), vec![])
    );

    let mut rig = four(PROCEED, 3);
    let question = rig.question();
    let mut web = set("web", 3);
    rig.apply_replica_set(web.clone());
    assert_eq!(
        rig.deleted(),
        (vec!["a".to_owned()], vec![]),
        "nobody prefers it any more"
    );
    web.replicas = 3;
    assert_eq!(rig.answers(question.id, &[("b", -1)]), (vec![], vec![]));
}

#[test]
fn sessions_without_the_capability_and_previews_ask_nobody() {
    let mut rig = four(WAIT, 3);
    let preview = rig.simulate("web", 2);
    assert_eq!(preview.deletes.len(), 2);
    let mut around = rig.surroundings("default", "web", usize::MAX);
    around.give_costs([("c".into(), -7)].into());
    let given = around
        .decide(None, &|| true)
        .expect("nothing ends it")
        .expect("it is known");
    let given: Vec<_> = given
        .deletes
        .iter()
        .map(|it| (&*it.pod.name, &*it.reason.detail))
        .collect();
    assert_eq!(given, [("c", "deletion cost -7 (asked) < 0")]);
    rig.controller = Controller::new(Config::default());
    assert_eq!(rig.deleted(), (vec![], vec![]));
}

proptest! {
    /// The model has the open question, the time at which its step ends, and how often pods were silent.
    #[test]
    fn any_answers_at_any_time_choose_as_the_model(
        steps in proptest::collection::vec((0..5_u8, 0..3_u64, 0..5_usize, -2..3_i32), 0..40),
        waits in any::<bool>(),
    ) {
        let mut rig = four(waits, 3);
        let (mut id, mut until, mut is_open, mut silences) = (rig.question().id, START.plus(Span::seconds(3)), true, 0);
        for (step, off, answered, cost) in steps {
            let came = if step < 2 {
                rig.wait(Span::millis([700, 4_000][usize::from(step)]));
                (is_open && rig.now >= until).then(BTreeMap::new)
            } else {
                // The costs differ, and none equals an annotation.
                let costs = NAMES.iter().take(answered).zip([4, 1, 2, 3]);
                let costs: BTreeMap<_, _> = costs.map(|(name, by)| (*name, 10 * cost + by)).collect();
                let all = costs.iter().map(|(name, cost)| (uid_of(name), Ok(*cost))).collect();
                rig.controller.handle_costs(rig.now, id.saturating_sub(off), all);
                (is_open && off == 0).then_some(costs)
            };
            let asks_again = !is_open && rig.now >= until;
            let victim = came.as_ref().filter(|costs| !waits || costs.len() == NAMES.len());
            let victim = victim.and_then(|costs| NAMES.iter().min_by_key(|name| costs.get(*name).unwrap_or(&0)));
            let (deleted, questions) = rig.deleted();
            prop_assert_eq!(deleted.first().map(String::as_str), victim.copied());
            prop_assert_eq!(questions.len(), usize::from(asks_again));
            if victim.is_some() {
                break;
            }
            if came.is_some() {
                (is_open, until) = (false, rig.now.plus(Span::seconds(1 << silences).min(Span::seconds(30))));
                silences += 1;
            }
            if let Some(question) = questions.first() {
                (id, is_open, until) = (question.id, true, rig.now.plus(Span::seconds(3)));
            }
        }
    }
}
