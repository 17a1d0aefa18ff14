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
/// The most calls at a time. A namespace alone has half of them, as many as a question has pods.
pub const CALLS_MAX: usize = 2 * PODS_MAX;
/// The most pods of a question.
const PODS_MAX: usize = 100;
/// The longest names and UIDs in a question: no object that the server knows has longer ones.
const NAME_BYTES_MAX: usize = 253;
const UID_BYTES_MAX: usize = 128;
/// The most questions and their answers. The agent asks nobody because of further questions.
const QUESTIONS_MAX: usize = 1_000;
/// The most answers that may wait for a server that does not read them.
const ANSWERS_MAX: usize = 100_000;
/// The longest time for a question, whatever the server says.
const TIMEOUT_MAX: Duration = Duration::from_secs(10);
/// The longest reason why a pod has no cost.
const FAILURE_BYTES_MAX: usize = 128;
/// The failure of a pod whose time is over.
pub const NO_ANSWER: &str = "no answer in time";
/// The failure of a pod that is not asked.
const NOT_ASKED: &str = "not an active pod of a ReplicaSet that prefers to be asked";

/// A source of costs, as an annotation names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CostSource {
    /// One that knows pods one by one.
    Pod(PodSource),
    /// `grpc`: the service of the agent's operator, which gets all pods of a question.
    Service,
}

/// The place where the cost of one pod is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodSource {
    /// `http://:PORT/PATH`: the answer to a GET at the pod's own address.
    Http {
        /// The port.
        port: u16,
        /// The path, with a query if there is one.
        path: String,
    },
    /// `metric:NAME`: the value of the pod in the API of custom metrics.
    Metric(String),
}

/// The kinds of sources, which the operator of an agent permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CostKind {
    /// [`PodSource::Http`].
    Http,
    /// [`PodSource::Metric`].
    Metric,
    /// [`CostSource::Service`].
    Grpc,
}

/// A question for costs, answered by [`Agent::handle_costs`](crate::agent::Agent::handle_costs).
#[derive(Clone, Debug, PartialEq)]
pub struct CostCall {
    /// The number to give back with the answer.
    pub id: u64,
    /// The pods to ask about, each with the uid that it must have.
    pub asks: Asks,
    /// How long it may take.
    pub timeout: Duration,
}

/// The pods of a [`CostCall`].
#[derive(Clone, Debug, PartialEq)]
pub enum Asks {
    /// One pod, from this source.
    Pod(v1::ObjectRef, PodSource),
    /// All pods that can be asked about, from the service.
    Service(v1::RankRequest),
}

/// The questions of one session. Owned and changed by one [`Agent`](crate::agent::Agent).
#[derive(Clone, Debug, Default)]
pub(crate) struct Asking {
    questions: BTreeMap<u64, Question>,
    last_question: u64,
    /// The calls in flight.
    calls: BTreeMap<u64, Call>,
    last_call: u64,
    answers: VecDeque<v1::Costs>,
}

#[derive(Clone, Debug)]
struct Call {
    namespace: String,
    /// The question, and the places of the pods in it. Calls of an older session have none.
    of: Option<(u64, Vec<usize>)>,
}

#[derive(Clone, Debug)]
struct Question {
    replica_set: v1::ObjectRef,
    /// Without one, no pod is asked.
    source: Option<CostSource>,
    until: Timestamp,
    pods: Vec<v1::ObjectRef>,
    /// The places of the pods that are still to be asked.
    waiting: VecDeque<usize>,
    answers: Vec<Option<Result<i32, String>>>,
}

impl CostSource {
    /// The kind.
    pub const fn kind(&self) -> CostKind {
        match self {
            Self::Pod(PodSource::Http { .. }) => CostKind::Http,
            Self::Pod(PodSource::Metric(_)) => CostKind::Metric,
            Self::Service => CostKind::Grpc,
        }
    }
}

impl CostKind {
    /// The form of the flag that permits the kind.
    pub const fn flag(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Metric => "metric",
            Self::Grpc => "grpc=URL",
        }
    }
}

impl FromStr for CostSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            if let Some(name) = text.strip_prefix("metric:") {
                let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-:".contains(&byte);
                // Only dots would lead to another resource.
                let is_name = name.bytes().any(|byte| byte.is_ascii_alphanumeric());
                let is_name = is_name && name.bytes().all(is_sound);
                return is_name.then(|| PodSource::Metric(name.to_owned()));
            }
            let (port, path) = text.strip_prefix("http://:")?.split_once('/')?;
            let is_sound = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
            let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
            let port = port.parse().ok().filter(|port| *port != 0)?;
            let path = format!("/{path}");
            let is_path = path.bytes().all(is_sound);
            (is_number && is_path).then_some(PodSource::Http { port, path })
        };
        match text {
            "grpc" => Ok(Self::Service),
            _ => read().map(Self::Pod).ok_or_else(|| {
                format!("{text:?} is none of: http://:PORT/PATH, metric:NAME, grpc")
            }),
        }
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
        self.check(&wanted)?;
        let v1::CostsWanted {
            id,
            replica_set,
            pods,
            timeout,
        } = wanted;
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
        let answers: Vec<_> = pods.iter().map(answer).collect();
        let is_open = |pod: &usize| answers[*pod].is_none();
        let question = Question {
            until: after(now, timeout),
            waiting: (0..pods.len()).filter(is_open).collect(),
            answers,
            pods,
            source,
            replica_set: set,
        };
        self.questions.insert(id, question);
        self.finish_if_complete(id);
        Ok(())
    }

    /// Checks that the numbers of questions grow, as a call names its question by number alone, and that a question is small.
    fn check(&mut self, wanted: &v1::CostsWanted) -> Result<(), String> {
        let (id, last, count) = (wanted.id, self.last_question, wanted.pods.len());
        if id <= last {
            return Err(format!("question {id} came after question {last}"));
        }
        if count > PODS_MAX {
            return Err(format!("question {id} is for {count} costs"));
        }
        let is_long = |it: &v1::ObjectRef| {
            it.namespace.len().max(it.name.len()) > NAME_BYTES_MAX || it.uid.len() > UID_BYTES_MAX
        };
        if wanted.pods.iter().chain(&wanted.replica_set).any(is_long) {
            return Err(format!("question {id} has a name or UID that is too long"));
        }
        self.last_question = id;
        Ok(())
    }

    /// Returns the next question to ask: the oldest one of the namespace with the fewest calls in flight. A namespace has no more calls than
    /// are free, so that slow pods do not hold up those of other namespaces.
    pub(crate) fn poll_call(&mut self, now: Timestamp) -> Option<CostCall> {
        let free = CALLS_MAX.saturating_sub(self.calls.len());
        let mut in_flight = BTreeMap::<&str, usize>::new();
        for call in self.calls.values() {
            *in_flight.entry(&call.namespace).or_default() += 1;
        }
        let calls = |it: &Question| in_flight.get(&*it.replica_set.namespace).copied();
        let questions = self.questions.iter_mut();
        let waiting = questions.filter(|(_, it)| !it.waiting.is_empty());
        let (id, question) = waiting.min_by_key(|(_, it)| calls(it))?;
        if calls(question).unwrap_or(0) >= free {
            return None;
        }
        let count = match question.source {
            Some(CostSource::Service) => question.waiting.len(),
            Some(CostSource::Pod(_)) | None => 1,
        };
        let places: Vec<_> = question.waiting.drain(..count).collect();
        let asks = question.asks(&places)?;
        let timeout = since(question.until, now);
        let call = Call {
            namespace: question.replica_set.namespace.clone(),
            of: Some((*id, places)),
        };
        self.last_call += 1;
        self.calls.insert(self.last_call, call);
        Some(CostCall {
            id: self.last_call,
            asks,
            timeout,
        })
    }

    pub(crate) fn handle_costs(&mut self, call: u64, costs: Vec<Result<i32, String>>) {
        if let Some((id, places)) = self.calls.remove(&call).and_then(|it| it.of)
            && let Some(question) = self.questions.get_mut(&id)
        {
            for (pod, cost) in places.into_iter().zip(costs) {
                question.answers[pod] = Some(cost);
            }
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

    /// Forgets all questions, also their numbers. Calls in flight still count as such.
    pub(crate) fn clear(&mut self) {
        self.questions.clear();
        self.last_question = 0;
        self.answers.clear();
        self.calls.values_mut().for_each(|call| call.of = None);
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
    /// The call for the pods at these places.
    fn asks(&self, places: &[usize]) -> Option<Asks> {
        let mut pods = places.iter().map(|pod| self.pods[*pod].clone());
        Some(match self.source.clone()? {
            CostSource::Pod(source) => Asks::Pod(pods.next()?, source),
            CostSource::Service => Asks::Service(v1::RankRequest {
                replica_set: Some(self.replica_set.clone()),
                pods: pods.collect(),
            }),
        })
    }

    fn answer(self, id: u64) -> v1::Costs {
        let answers = self.pods.into_iter().zip(self.answers);
        let costs = answers.map(|(pod, answer)| {
            let answer = answer.unwrap_or_else(|| Err(NO_ANSWER.to_owned()));
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
    // A custom metric is read by the name alone.
    view.pods.get(&pod.uid).is_some_and(is_of) && view.pods.is_named(pod)
}

#[cfg(test)]
mod tests;
