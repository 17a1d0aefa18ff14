//! Questions to pods for their deletion costs, before victims are chosen among them.
//!
//! Only the pods among which the cost decides are asked: those that are equal to the pods on both sides of the cut by all earlier rules.
//!
//! **Invariant:** a ReplicaSet has at most one question, and its answer serves at most one choice, soon after it came. The choice is among the
//! pods of that time. Pods without an answer count as their annotations say.
//!
//! For advice, pods are asked each minute, and sooner if one has become ready. Answers count until the pod is asked again.

use std::collections::BTreeMap;

use super::{manage::candidates, rank};
use crate::{
    batch::PodRef,
    config::Config,
    held::{Held, HeldMap},
    index::{Index, SetId},
    object::{Key, ReplicaSet, Span, Timestamp, Uid},
    preferences::ScaleInCost,
    reason::{Reason, Rule},
    wording,
};

/// The time that the agent has for an answer, and the time that the server waits for it.
const ANSWER_WITHIN: Span = Span::seconds(2);
const WAIT_MAX: Span = Span::seconds(3);
/// The time that an answer may wait for its choice. Costs change.
const FRESH: Span = Span::seconds(5);
/// How much longer an answer counts as advice, if all ready pods were asked.
const ADVISES: Span = Span::seconds(55);
/// The most questions for advice that await an answer at a time, and the time until a ReplicaSet tries again. An agent answers many more than
/// these without asking a pod.
const ADVICE_ASKED_MAX: usize = 100;
const TRIES_AFTER: Span = Span::seconds(1);
/// The first delay before silent pods are asked again, which doubles, and the longest one, in seconds.
const AGAIN_AFTER: i64 = 1;
const AGAIN_AFTER_MAX: i64 = 30;
/// In nanoseconds.
const MILLISECOND: i64 = 1_000_000;
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
    /// The ReplicaSets of the questions that await an answer, by number.
    asked: BTreeMap<u64, SetId>,
    last: u64,
    last_sent: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Question {
    id: u64,
    key: Key,
    pods: Vec<PodRef>,
    costs: BTreeMap<Uid, i32>,
    step: Step,
    /// When the step ends.
    until: Timestamp,
    /// How often in a row pods were silent.
    silences: u32,
    /// Why the first of them was silent, as the agent says.
    failure: Box<str>,
    /// The kind of the source.
    source: Box<str>,
    /// How long the answer took, or the time that the server waits for it.
    took: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Asked,
    Answered,
    /// Some pods were silent, and are asked again.
    Waits,
}

/// Returns the costs for the choice of `count` victims, or `None` while the choice waits for them.
pub(super) fn answers(
    index: &mut Index,
    config: &Config,
    (id, count): (SetId, usize),
) -> Option<Answers> {
    let now = index.now;
    let set = &index.set(id)?.object;
    let preference = preference(set, config);
    let pods = preference.map_or_else(Vec::new, |_| comparable(index, id, count));
    if pods.is_empty() {
        index.questions.forget(id);
        return Some(Answers::default());
    }
    let known = index.questions.open.get(&id);
    let waits = |question: &Question| {
        preference.is_some_and(|it| it.waits) && pods.iter().any(|pod| question.is_silent(pod))
    };
    let is_under_way = |it: &Question| match it.step {
        Step::Asked => now < it.until,
        Step::Answered => false,
        Step::Waits => now < it.until && waits(it),
    };
    if known.is_some_and(is_under_way) {
        return None;
    }
    let is_usable = |it: &&Question| match it.step {
        Step::Asked => true,
        Step::Answered => now < it.until,
        Step::Waits => false,
    };
    let Some(question) = known.filter(is_usable) else {
        let source = preference.map_or_else(Box::default, ScaleInCost::kind);
        let of = (id, set.key.clone(), source);
        index.questions.ask(now, of, pods, BTreeMap::new());
        return None;
    };
    if waits(question) {
        index.questions.wait(now, id);
        return None;
    }
    let question = index.questions.forget(id)?;
    let reason = Reason::new(Rule::CostsAsked, question.answered());
    Some((question.costs, Some(reason)))
}

/// Asks the pods of a ReplicaSet that gets advice, if it is time: the first ready ones in the order of deletion whose cost nobody else has
/// set. Returns the time of the next question, or as an error the time until which the advice waits.
pub(super) fn ask_for_advice(
    index: &mut Index,
    config: &Config,
    id: SetId,
) -> Result<Option<Timestamp>, Timestamp> {
    let now = index.now;
    let asked = index.questions.open.get(&id);
    let asked = asked.filter(|it| it.step == Step::Asked);
    if let Some((question, until)) = asked.map(|it| (it.id, it.until)) {
        if now < until {
            return Err(until);
        }
        index.questions.asked.remove(&question);
    }
    let set = index.set(id).filter(|set| !set.object.deleting);
    let preference = set.and_then(|set| preference(&set.object, config));
    let Some((set, preference)) = set.zip(preference) else {
        index.questions.forget(id);
        return Ok(None);
    };
    let known = index.questions.open.get(&id);
    let mut candidates = candidates(index, id);
    // Pods that are not asked again keep their answer.
    let answer = |uid| known.and_then(|it| it.costs.get_key_value(uid));
    let answers = candidates.iter().filter_map(|pod| answer(pod.uid));
    let mut costs: BTreeMap<_, _> = answers.map(|(uid, cost)| (uid.clone(), *cost)).collect();
    candidates.retain(|pod| pod.state.ready.ready && pod.state.advised_cost().is_some());
    let pods = rank::first(&candidates, now).into_iter();
    let pods: Vec<_> = pods.map(|at| candidates[at].id.pod_ref()).collect();
    if pods.len() < 2 {
        return Ok(None);
    }
    if let Some(question) = known {
        let is_new = |pod: &PodRef| !costs.contains_key(&pod.uid) && !question.asks(&pod.uid);
        let has_new = pods.iter().any(is_new);
        let next = question.until.plus(if has_new { Span(0) } else { ADVISES });
        if now < next {
            return Ok(Some(next));
        }
    }
    if index.questions.asked.len() >= ADVICE_ASKED_MAX {
        return Err(now.plus(TRIES_AFTER));
    }
    for pod in &pods {
        costs.remove(&pod.uid);
    }
    let of = (id, set.object.key.clone(), preference.kind());
    index.questions.ask(now, of, pods, costs);
    Err(now.plus(WAIT_MAX))
}

/// The source of costs that a ReplicaSet prefers, if the agent asks.
fn preference<'a>(set: &'a ReplicaSet, config: &Config) -> Option<&'a ScaleInCost> {
    let preference = set.preferences.as_deref()?.scale_in_cost.as_ref();
    preference.filter(|_| config.asks_costs)
}

/// Returns the pods to ask, the first ones in the order of deletion.
fn comparable(index: &Index, id: SetId, count: usize) -> Vec<PodRef> {
    let candidates = candidates(index, id);
    let pods = rank::comparable(&candidates, count, index.now).into_iter();
    pods.map(|at| candidates[at].id.pod_ref()).collect()
}

impl Questions {
    fn ask(
        &mut self,
        now: Timestamp,
        (set, key, source): (SetId, Key, Box<str>),
        pods: Vec<PodRef>,
        costs: BTreeMap<Uid, i32>,
    ) {
        self.last += 1;
        let question = Question {
            id: self.last,
            key,
            pods,
            costs,
            step: Step::Asked,
            until: now.plus(WAIT_MAX),
            silences: self.open.get(&set).map_or(0, |it| it.silences),
            failure: Box::default(),
            source,
            took: WAIT_MAX,
        };
        self.open.insert(set, question);
        self.asked.insert(self.last, set);
    }

    /// Takes the answer to a question. Returns its ReplicaSet if the choice can be made now.
    pub(crate) fn answer(
        &mut self,
        now: Timestamp,
        id: u64,
        costs: Vec<(Uid, Result<i32, Box<str>>)>,
    ) -> Option<SetId> {
        let set = self.asked.remove(&id)?;
        self.open.change(&set, |question| {
            for (pod, cost) in costs {
                match cost {
                    _ if !question.asks(&pod) => {}
                    Ok(cost) => _ = question.costs.entry(pod).or_insert(cost),
                    Err(why) if question.failure.is_empty() => question.failure = why,
                    Err(_) => {}
                }
            }
            question.took = Span(WAIT_MAX.0 - question.until.since(now).0);
            (question.step, question.until) = (Step::Answered, now.plus(FRESH));
        })?;
        Some(set)
    }

    /// Asks again later: the ReplicaSet prefers to wait for silent pods.
    fn wait(&mut self, now: Timestamp, set: SetId) {
        let id = self.open.change(&set, |question| {
            let after = AGAIN_AFTER << question.silences.min(10);
            question.step = Step::Waits;
            question.until = now.plus(Span::seconds(after.min(AGAIN_AFTER_MAX)));
            question.silences += 1;
            question.id
        });
        if let Some(id) = id {
            self.asked.remove(&id);
        }
    }

    pub(crate) fn forget(&mut self, set: SetId) -> Option<Question> {
        let question = self.open.remove(&set)?;
        self.asked.remove(&question.id);
        Some(question)
    }

    pub(crate) fn poll(&mut self) -> Option<CostsWanted> {
        let (id, set) = self.asked.range(self.last_sent + 1..).next()?;
        self.last_sent = *id;
        let question = self.open.get(set)?;
        Some(CostsWanted {
            id: question.id,
            key: question.key.clone(),
            pods: question.pods.clone(),
            timeout: ANSWER_WITHIN,
        })
    }

    /// Returns the answers of the pods of a ReplicaSet that gets advice; `None` if it was never asked.
    pub(super) fn costs(&self, set: SetId) -> Option<&BTreeMap<Uid, i32>> {
        self.open.get(&set).map(|it| &it.costs)
    }

    /// Returns until when the ReplicaSet waits for costs; `None` if it does not wait.
    pub(crate) fn waits_until(&self, set: SetId) -> Option<Timestamp> {
        let question = self.open.get(&set)?;
        (question.step != Step::Answered).then_some(question.until)
    }

    /// Returns why the ReplicaSet deletes no pods, if it waits for costs, or how many pods have answered for advice.
    pub(crate) fn explain(&self, set: SetId, now: Timestamp) -> Option<Reason> {
        let question = self.open.get(&set)?;
        let silent = question.pods.len() - question.answers();
        let pods = wording::count(question.pods.len(), "pod");
        let (why, until) = (question.why(), wording::until(question.until, now));
        let detail = match question.step {
            Step::Asked if now < question.until => {
                format!("asked {pods} for their costs, answers due in {until}")
            }
            Step::Asked | Step::Answered => question.answered(),
            Step::Waits => {
                format!("{silent} of {pods} did not answer{why}, asked again in {until}")
            }
        };
        Some(Reason::new(Rule::CostsAsked, detail))
    }
}

impl Question {
    fn asks(&self, pod: &Uid) -> bool {
        self.pods.iter().any(|asked| asked.uid == *pod)
    }

    /// Whether a pod was asked and has not answered.
    fn is_silent(&self, pod: &PodRef) -> bool {
        self.pods.contains(pod) && !self.costs.contains_key(&pod.uid)
    }

    /// The number of asked pods that have answered.
    fn answers(&self) -> usize {
        let asked = self.pods.iter();
        asked
            .filter(|pod| self.costs.contains_key(&pod.uid))
            .count()
    }

    fn answered(&self) -> String {
        let (asked, why) = (wording::count(self.pods.len(), "pod"), self.why());
        let (source, answered) = (&self.source, self.answers());
        let took = self.took.0 / MILLISECOND;
        format!("asked {asked} for their costs ({source}), {answered} answered in {took} ms{why}")
    }

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
            asked: _,
            last: _,
            last_sent: _,
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
            costs,
            step: _,
            until: _,
            silences: _,
            failure,
            source,
            took: _,
        } = self;
        let texts = pods.iter().map(|pod| pod.name.len() + pod.uid.0.len());
        let texts = texts.chain(costs.keys().map(|uid| uid.0.len()));
        let own =
            size_of::<Self>() + key.name.len() + key.uid.0.len() + failure.len() + source.len();
        own + texts.sum::<usize>() + (1 + pods.len() + costs.len()) * POD
    }
}
