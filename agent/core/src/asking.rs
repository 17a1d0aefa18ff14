//! Questions of the server for the deletion costs of pods, answered from the source that the ReplicaSet names.
//!
//! **Invariant:** only a pod is asked that this agent itself sees as an active pod of the ReplicaSet, and only from the source in the annotation
//! that it has read itself, if the operator allows that. The server's word decides neither.

use std::{
    collections::{BTreeMap, VecDeque},
    str::FromStr,
    time::Duration,
};

use decree_api::v1;
use jiff::Timestamp;

use crate::{
    pace::{after, since},
    view::{View, pods},
};

/// The capability in Hello.
pub(crate) const CAPABILITY: &str = "costs";
/// The most pods that are asked at a time.
const CALLS_MAX: usize = 100;
/// The most pods of a question.
const PODS_MAX: usize = 100;
/// The most questions and their answers. The agent asks nobody because of further questions.
const QUESTIONS_MAX: usize = 1_000;
/// The most answers that may wait for a server that does not read them.
const ANSWERS_MAX: usize = 100_000;
/// The longest time for a question, whatever the server says.
const TIMEOUT_MAX: Duration = Duration::from_secs(10);
/// The longest reason why a pod has no cost.
const FAILURE_BYTES_MAX: usize = 128;
/// The failure of a pod that is not asked.
const NOT_ASKED: &str = "not an active pod of a ReplicaSet that prefers to be asked";

/// A source of costs, as an annotation names it: the answer to a GET at the pod's own address, `http://:PORT/PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostSource {
    /// The port.
    pub port: u16,
    /// The path, with a query if there is one.
    pub path: String,
}

/// A question to one pod, answered by [`Agent::handle_cost`](crate::agent::Agent::handle_cost).
#[derive(Clone, Debug, PartialEq)]
pub struct CostCall {
    /// The number to give back with the answer.
    pub id: u64,
    /// The pod, with the uid that it must have.
    pub pod: v1::ObjectRef,
    /// Where its cost is found.
    pub source: CostSource,
    /// How long it may take.
    pub timeout: Duration,
}

/// The questions of one session. Owned and changed by one [`Agent`](crate::agent::Agent).
#[derive(Clone, Debug, Default)]
pub(crate) struct Asking {
    questions: BTreeMap<u64, Question>,
    /// The calls in flight, each with its question and the place of its pod. Calls of an older session have none.
    calls: BTreeMap<u64, Option<(u64, usize)>>,
    waiting: VecDeque<(u64, usize)>,
    last_call: u64,
    answers: VecDeque<v1::Costs>,
}

#[derive(Clone, Debug)]
struct Question {
    /// Without one, no pod is asked.
    source: Option<CostSource>,
    until: Timestamp,
    pods: Vec<v1::ObjectRef>,
    answers: Vec<Option<Result<i32, String>>>,
}

impl FromStr for CostSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (port, path) = text.strip_prefix("http://:")?.split_once('/')?;
            let is_sound = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
            let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
            let port = port.parse().ok().filter(|port| *port != 0)?;
            let path = format!("/{path}");
            (is_number && path.bytes().all(is_sound)).then_some(Self { port, path })
        };
        read().ok_or_else(|| format!("{text:?} is not http://:PORT/PATH"))
    }
}

impl Asking {
    /// Takes a question.
    ///
    /// # Errors
    /// How the server breaks the protocol.
    pub(crate) fn handle_question(
        &mut self,
        now: Timestamp,
        view: &View,
        wanted: v1::CostsWanted,
    ) -> Result<(), String> {
        let v1::CostsWanted {
            id,
            replica_set,
            pods,
            timeout,
        } = wanted;
        let count = pods.len();
        if count > PODS_MAX || self.questions.contains_key(&id) {
            return Err(format!(
                "question {id} for {count} costs is open, or too large"
            ));
        }
        let unread = self.answers.len();
        if unread > ANSWERS_MAX {
            return Err(format!("{unread} answers with costs are not read"));
        }
        if self.questions.len() + unread >= QUESTIONS_MAX {
            let costs = Vec::new();
            self.answers.push_back(v1::Costs { id, costs });
            return Ok(());
        }
        let timeout = timeout.and_then(|it| Duration::try_from(it).ok());
        let timeout = timeout.unwrap_or(TIMEOUT_MAX).min(TIMEOUT_MAX);
        let set = replica_set.unwrap_or_default();
        let source = source_of(view, &set);
        let may_ask = |pod: &v1::ObjectRef| source.is_some() && is_own(view, &set, pod);
        let answer = |pod| (!may_ask(pod)).then(|| Err(NOT_ASKED.to_owned()));
        let question = Question {
            until: after(now, timeout),
            answers: pods.iter().map(answer).collect(),
            pods,
            source,
        };
        let open = question.answers.iter().enumerate();
        let open = open.filter(|(_, answer)| answer.is_none());
        self.waiting.extend(open.map(|(pod, _)| (id, pod)));
        self.questions.insert(id, question);
        self.finish_if_complete(id);
        Ok(())
    }

    /// Returns the next pod to ask.
    pub(crate) fn poll_call(&mut self, now: Timestamp) -> Option<CostCall> {
        while self.calls.len() < CALLS_MAX {
            let (id, pod) = self.waiting.pop_front()?;
            if let Some(question) = self.questions.get(&id)
                && let Some(source) = question.source.clone()
            {
                self.last_call += 1;
                self.calls.insert(self.last_call, Some((id, pod)));
                return Some(CostCall {
                    id: self.last_call,
                    pod: question.pods[pod].clone(),
                    source,
                    timeout: since(question.until, now),
                });
            }
        }
        None
    }

    pub(crate) fn handle_cost(&mut self, call: u64, cost: Result<i32, String>) {
        if let Some((id, pod)) = self.calls.remove(&call).flatten()
            && let Some(question) = self.questions.get_mut(&id)
        {
            question.answers[pod] = Some(cost);
            self.finish_if_complete(id);
        }
    }

    /// Answers the questions whose time is over, with the costs that have come.
    pub(crate) fn handle_timeout(&mut self, now: Timestamp) {
        let over = self.questions.extract_if(.., |_, it| it.until <= now);
        let answers = over.map(|(id, question)| question.answer(id));
        self.answers.extend(answers);
    }

    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        self.questions.values().map(|it| it.until).min()
    }

    pub(crate) fn poll_answer(&mut self) -> Option<v1::Costs> {
        self.answers.pop_front()
    }

    pub(crate) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Forgets all questions. Calls in flight still count as such.
    pub(crate) fn clear(&mut self) {
        self.questions.clear();
        self.waiting.clear();
        self.answers.clear();
        self.calls.values_mut().for_each(|call| *call = None);
    }

    fn finish_if_complete(&mut self, id: u64) {
        let is_complete = |it: &Question| it.answers.iter().all(Option::is_some);
        if self.questions.get(&id).is_some_and(is_complete)
            && let Some(question) = self.questions.remove(&id)
        {
            self.answers.push_back(question.answer(id));
        }
    }
}

impl Question {
    fn answer(self, id: u64) -> v1::Costs {
        let answers = self.pods.into_iter().zip(self.answers);
        let costs = answers.map(|(pod, answer)| {
            let answer = answer.unwrap_or_else(|| Err("no answer in time".to_owned()));
            let failure = answer.as_ref().err();
            let mut failure =
                failure.map_or_else(String::new, |why| format!("{}: {why}", pod.name));
            failure.truncate(failure.floor_char_boundary(FAILURE_BYTES_MAX));
            v1::PodCost {
                uid: pod.uid,
                cost: answer.ok(),
                failure,
            }
        });
        let costs = costs.collect();
        v1::Costs { id, costs }
    }
}

/// The source that a ReplicaSet names, as this agent has read it.
fn source_of(view: &View, set: &v1::ObjectRef) -> Option<CostSource> {
    let known = view.templates.newest(&set.uid);
    let known = known.filter(|it| it.namespace == set.namespace && it.name == set.name)?;
    let preference = known.preferences.as_ref()?.scale_in_cost.as_ref()?;
    preference.source.parse().ok()
}

/// Whether a pod is an active one of a ReplicaSet.
fn is_own(view: &View, set: &v1::ObjectRef, pod: &v1::ObjectRef) -> bool {
    let key = pods::key(&set.namespace, &set.uid);
    let is_of = |it: &pods::Pod| it.state.is_active() && *it.controller == *key;
    view.pods.get(&pod.uid).is_some_and(is_of) && pod.namespace == set.namespace
}

#[cfg(test)]
mod tests;
