//! Pods are asked for their deletion costs before a choice among them.

use std::collections::BTreeMap;

use decree_core::{ActionKind, Config, CostsWanted, Pod, Preferences, ScaleInCost, Span, Uid};
use proptest::prelude::*;

use crate::{
    objects::{START, pod, set, with},
    rig::{Rig, victims},
};

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
}

fn uid_of(name: &str) -> Uid {
    pod(name, "web").uid
}

#[test]
fn at_most_a_hundred_pods_are_asked_the_first_by_the_known_order() {
    let many = (0..150).map(|at| pod(&format!("p{at:03}"), "web"));
    let many = many.map(|pod| {
        let is_late = &*pod.name >= "p050";
        with(pod, |state| state.deletion_cost = i32::from(!is_late))
    });
    let question = rig(false, 149, many.collect()).question();
    let first = &*question.pods[0].name;
    assert_eq!((question.pods.len(), first), (100, "p050"));
}

#[test]
fn previews_ask_nobody() {
    let rig = four(true, 3);
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
