//! Questions to pods for their deletion costs, before victims are chosen among them.
//!
//! Only the pods among which the cost decides are asked: those that are equal to the pods on both sides of the cut by all earlier rules.
//!
//! **Invariant:** a ReplicaSet has at most one question, and its answer serves at most one choice, soon after it came. The choice is among the
//! pods of that time. Pods without an answer count as their annotations say.

use std::collections::{BTreeMap, BTreeSet};

use super::{manage::candidates, rank};
use crate::{
    batch::PodRef,
    config::{Config, Costs},
    held::{Held, HeldMap},
    index::{Index, SetId},
    object::{Key, Span, Timestamp, Uid},
    reason::{Reason, Rule},
    wording,
};

/// The time that the agent has for an answer, and the time that the server waits for it.
const ANSWER_WITHIN: Span = Span::seconds(2);
const WAIT_MAX: Span = Span::seconds(3);
/// The time that an answer may wait for its choice. Costs change.
const FRESH: Span = Span::seconds(5);
/// The first delay before silent pods are asked again, which doubles, and the longest one, in seconds.
const AGAIN_AFTER: i64 = 1;
const AGAIN_AFTER_MAX: i64 = 30;
/// The memory in bytes of a pod in a question, without its texts.
const POD: usize = 64;

/// A question for the agent: the costs of pods, each as the annotation for the deletion cost would state it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostsWanted {
    /// The number of the question, from 1.
    pub id: u64,
    /// The ReplicaSet.
    pub key: Key,
    /// The pods.
    pub pods: Vec<PodRef>,
    /// The time that the agent has.
    pub timeout: Span,
}

/// The costs that came for one choice, and the reason that says so.
pub(super) type Answers = (BTreeMap<Uid, i32>, Option<Reason>);

/// The questions of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Questions {
    open: HeldMap<SetId, Question>,
    /// The ReplicaSets of the questions that have not left.
    unsent: BTreeSet<SetId>,
    last: u64,
}

#[derive(Clone, Debug)]
struct Question {
    id: u64,
    key: Key,
    pods: Vec<PodRef>,
    step: Step,
    /// When the step ends.
    until: Timestamp,
    /// How often in a row pods were silent.
    silences: u32,
    /// Why the first of them was silent, as the agent says.
    failure: Box<str>,
}

#[derive(Clone, Debug)]
enum Step {
    Asked,
    Answered(BTreeMap<Uid, i32>),
    /// This number of pods was silent, and is asked again.
    Waits(usize),
}

/// Returns the costs for the choice of `count` victims, or `None` while the choice waits for them.
pub(super) fn answers(
    index: &mut Index,
    config: &Config,
    (id, count): (SetId, usize),
) -> Option<Answers> {
    let now = index.now;
    let preferences = index.set(id)?.object.preferences.as_deref();
    let preference = preferences.and_then(|it| it.scale_in_cost.as_ref());
    let waits = preference.map(|it| it.waits);
    let is_given = matches!(config.costs, Costs::Given(_));
    let pods = match waits {
        Some(_) if !is_given => comparable(index, id, count),
        Some(_) | None => Vec::new(),
    };
    if pods.is_empty() {
        index.questions.forget(id);
        return Some(Answers::default());
    }
    let say = |detail: String| Some(Reason::new(Rule::CostsAsked, detail));
    if config.costs == Costs::OfAnnotations {
        let detail = "no pod is asked for its cost here: the annotations of the pods count";
        return Some((BTreeMap::new(), say(detail.to_owned())));
    }
    let key = index.set(id)?.object.key.clone();
    let questions = &mut index.questions;
    let known = questions.open.get(&id);
    let silences = known.map_or(0, |it| it.silences);
    let costs = match known.map(|it| (&it.step, now < it.until)) {
        Some((Step::Asked | Step::Waits(_), true)) => return None,
        Some((Step::Answered(costs), true)) => costs.clone(),
        Some((Step::Asked, false)) => BTreeMap::new(),
        Some((Step::Answered(_) | Step::Waits(_), false)) | None => {
            questions.ask(now, (id, &key), pods, silences);
            return None;
        }
    };
    let question = known?;
    let silent = pods
        .iter()
        .filter(|pod| question.pods.contains(pod) && !costs.contains_key(&pod.uid));
    let silent = silent.count();
    if silent > 0 && waits == Some(true) {
        questions.wait(now, id, silent);
        return None;
    }
    let (asked, answered, why) = (question.pods.len(), costs.len(), question.why());
    let asked = wording::count(asked, "pod");
    let reason = say(format!(
        "asked {asked} for their costs, {answered} answered{why}"
    ));
    questions.forget(id);
    Some((costs, reason))
}

/// Returns the pods to ask, the first ones in the order of deletion.
fn comparable(index: &Index, id: SetId, count: usize) -> Vec<PodRef> {
    let candidates = candidates(index, id);
    let pods = rank::comparable(&candidates, count, index.now).into_iter();
    pods.map(|at| candidates[at].id.pod_ref()).collect()
}

impl Questions {
    fn ask(&mut self, now: Timestamp, (set, key): (SetId, &Key), pods: Vec<PodRef>, silences: u32) {
        self.last += 1;
        let question = Question {
            id: self.last,
            key: key.clone(),
            pods,
            step: Step::Asked,
            until: now.plus(WAIT_MAX),
            silences,
            failure: Box::default(),
        };
        self.open.insert(set, question);
        self.unsent.insert(set);
    }

    /// Takes the answer to a question. Returns its ReplicaSet if the choice can be made now.
    pub(crate) fn answer(
        &mut self,
        now: Timestamp,
        id: u64,
        costs: Vec<(Uid, Result<i32, Box<str>>)>,
    ) -> Option<SetId> {
        let awaited = |it: &Question| it.id == id && matches!(it.step, Step::Asked);
        let mut open = self.open.iter();
        let set = *open.find(|(_, question)| awaited(question))?.0;
        self.open.change(&set, |question| {
            let mut came = BTreeMap::new();
            for (pod, cost) in costs {
                match cost {
                    _ if question.pods.iter().all(|asked| asked.uid != pod) => {}
                    Ok(cost) => _ = came.entry(pod).or_insert(cost),
                    Err(why) if question.failure.is_empty() => question.failure = why,
                    Err(_) => {}
                }
            }
            (question.step, question.until) = (Step::Answered(came), now.plus(FRESH));
        })?;
        Some(set)
    }

    /// Asks again later: `silent` pods have not answered, and the ReplicaSet prefers to wait for them.
    fn wait(&mut self, now: Timestamp, set: SetId, silent: usize) {
        self.open.change(&set, |question| {
            let after = AGAIN_AFTER << question.silences.min(10);
            question.step = Step::Waits(silent);
            question.until = now.plus(Span::seconds(after.min(AGAIN_AFTER_MAX)));
            question.silences += 1;
        });
    }

    pub(crate) fn forget(&mut self, set: SetId) {
        self.open.remove(&set);
    }

    pub(crate) fn poll(&mut self) -> Option<CostsWanted> {
        let question = std::iter::from_fn(|| self.unsent.pop_first());
        let question = question.filter_map(|set| self.open.get(&set)).next()?;
        Some(CostsWanted {
            id: question.id,
            key: question.key.clone(),
            pods: question.pods.clone(),
            timeout: ANSWER_WITHIN,
        })
    }

    /// Returns until when the ReplicaSet waits for costs; `None` if it does not wait.
    pub(crate) fn waits_until(&self, set: SetId) -> Option<Timestamp> {
        let question = self.open.get(&set)?;
        (!matches!(question.step, Step::Answered(_))).then_some(question.until)
    }

    /// Returns why the ReplicaSet deletes no pods, if it waits for costs.
    pub(crate) fn explain(&self, set: SetId, now: Timestamp) -> Option<Reason> {
        let question = self.open.get(&set)?;
        let (pods, until) = (question.pods.len(), wording::until(question.until, now));
        let (pods, why) = (wording::count(pods, "pod"), question.why());
        let detail = match &question.step {
            Step::Asked => format!("asked {pods} for their costs, answers due in {until}"),
            Step::Waits(silent) => {
                format!("{silent} of {pods} did not answer{why}, asked again in {until}")
            }
            Step::Answered(_) => return None,
        };
        Some(Reason::new(Rule::CostsAsked, detail))
    }
}

impl Question {
    fn why(&self) -> String {
        match &*self.failure {
            "" => String::new(),
            why => format!(" ({why})"),
        }
    }
}

impl Held for Questions {
    fn bytes(&self) -> usize {
        let Self {
            open,
            // At most one for each open question, which counts it.
            unsent: _,
            last: _,
        } = self;
        open.bytes()
    }
}

impl Held for Question {
    fn bytes(&self) -> usize {
        let Self {
            id: _,
            key,
            pods,
            step,
            until: _,
            silences: _,
            failure,
        } = self;
        let answered = match step {
            Step::Answered(costs) => costs.len(),
            Step::Asked | Step::Waits(_) => 0,
        };
        let texts = pods.iter().map(|pod| pod.name.len() + pod.uid.0.len());
        let own = size_of::<Self>() + key.name.len() + key.uid.0.len() + failure.len();
        own + POD + texts.sum::<usize>() + (pods.len() + answered) * POD
    }
}
