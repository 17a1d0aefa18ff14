//! The script for a controller that calls `Decide` on a timer, step by step.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
};

use decree_api::v1::{
    DecideRequest, DecideResponse, Decision, LabelSelector, ObjectRef, Pod, ReplicaSet, Victim,
};
use tokio::{
    sync::oneshot::Sender,
    time::{Duration, Instant, sleep, timeout},
};
use tonic::Status;

use crate::{
    history::{owns, selects},
    listener::Listener,
    peer::PATIENCE,
    score::{self, Notes, Verdict},
    script::{LETTERS, WANTED},
    subject::Subject,
};

/// The number of requests before one that must show the effects of an answer, because lists may be late.
const TURNS: usize = 5;
/// The time in which the kit notices the end of a call.
const GRACE: Duration = Duration::from_millis(200);

type Answer = Result<DecideResponse, Status>;
type Names = BTreeSet<String>;

/// A request, and the place for its answer.
pub(crate) type Call = (DecideRequest, Sender<Answer>);

/// The controller, with its last request.
struct Controller<'a, S: Subject> {
    subject: &'a S,
    running: Option<S::Running>,
    listener: Listener,
    notes: &'a mut Notes,
    replicas: usize,
    set: ReplicaSet,
    /// The names of the pods by uid, without pods that are being deleted.
    pods: BTreeMap<String, String>,
}

/// Plays all steps. The error is the step that makes further ones impossible.
pub(crate) async fn play(subject: &impl Subject, listener: Listener, notes: &mut Notes) -> Verdict {
    let mut it = Controller {
        subject,
        running: None,
        listener,
        notes,
        replicas: 0,
        set: ReplicaSet::default(),
        pods: BTreeMap::new(),
    };
    it.start(WANTED).await?;
    it.leave_unanswered().await?;
    it.expect(score::CREATED, [], &Names::new()).await?;
    let [first, second, third] = LETTERS.map(|letters| format!("{}-{letters}", it.set.name));
    it.create(score::CREATED, Some(first)).await?;
    it.create(score::TWICE, None).await?;
    it.create(score::TAKEN, Some(second)).await?;
    let name = it.names().pop_first().unwrap_or_default();
    let other = it.decided(&Names::new(), &[("another-uid".to_owned(), name)]);
    it.expect(score::OTHER_UID, [other], &it.names()).await?;
    let failures = [Status::unavailable("drain"), Status::resource_exhausted("")].map(Err);
    it.expect(score::FAILED, failures, &it.names()).await?;
    let quarantined = Decision {
        quarantined: Some("its selector is invalid".to_owned()),
        ..Decision::default()
    };
    let decisions = [None, Some(quarantined)];
    let answers = decisions.map(|decision| Ok(DecideResponse { decision }));
    it.expect(score::UNDECIDED, answers, &it.names()).await?;

    // The controller dies while it creates the third pod.
    let third = Names::from([third]);
    let answer = it.decided(&third, &[]);
    let _ = it.call().await?.send(answer.clone());
    sleep(GRACE / 4).await;
    it.start(WANTED).await?;
    let all = &it.names() | &third;
    it.expect(score::REVIVED, [answer], &all).await?;

    it.start(1).await?;
    it.create(score::REVIVED, None).await?;
    let pods = Vec::from_iter(it.pods.clone());
    for (rule, victims) in [(score::DELETED, 1), (score::ABSENT, 2)] {
        let left = pods.get(victims..).ok_or("there are too few pods")?;
        let left = left.iter().map(|(_, name)| name.clone()).collect();
        let answer = it.decided(&Names::new(), &pods[..victims]);
        it.expect(rule, [answer], &left).await?;
    }
    Ok(())
}

impl<S: Subject> Controller<'_, S> {
    /// Kills the controller and forgets its calls, and starts it with this number of replicas.
    async fn start(&mut self, replicas: usize) -> Verdict {
        self.running = None;
        sleep(GRACE).await;
        while self.listener.calls.try_recv().is_ok() {}
        self.replicas = replicas;
        let started = self.subject.start(&self.listener.address, replicas);
        self.running = Some(started.map_err(|error| format!("it does not start: {error}"))?);
        Ok(())
    }

    /// Waits until the controller gives a call up. The first call of a run has none before it.
    async fn leave_unanswered(&mut self) -> Verdict {
        let answer = self.call().await?;
        let until = Instant::now() + PATIENCE;
        while !answer.is_closed() && Instant::now() < until {
            if let Ok(Some((_, next))) = timeout(GRACE, self.listener.calls.recv()).await {
                sleep(GRACE).await;
                let open = || "it asks again while a call is open".to_owned();
                self.notes.hold(score::ONE_CALL, answer.is_closed(), open);
                let _ = next.send(self.decided(&Names::new(), &[]));
            }
        }
        self.notes.add(score::ONE_CALL, Ok(()));
        let open = || "the call is still open".to_owned();
        self.notes.hold(score::DEADLINE, answer.is_closed(), open);
        drop(answer);
        self.expect(score::DEADLINE, [], &self.names()).await
    }

    /// Requests a name together with all that exist, as for a list that is late.
    async fn create(&mut self, rule: &'static str, name: Option<String>) -> Verdict {
        let mut names = self.names();
        names.extend(name);
        let answer = self.decided(&names, &[]);
        self.expect(rule, [answer], &names).await
    }

    /// Answers the next calls, and compares the pods of a later request.
    async fn expect(
        &mut self,
        rule: &'static str,
        answers: impl IntoIterator<Item = Answer>,
        names: &Names,
    ) -> Verdict {
        let mut kept = self.pods.clone();
        kept.retain(|_, name| names.contains(name));
        let idle = self.decided(&Names::new(), &[]);
        for answer in answers.into_iter().chain(iter::repeat_n(idle, TURNS)) {
            let call = self.call().await;
            let asks = call.as_ref().map(drop).map_err(Clone::clone);
            self.notes.add(rule, asks);
            // No controller has given up a call that is answered at once.
            let _ = call?.send(answer);
        }
        let is_kept = kept.keys().all(|uid| self.pods.contains_key(uid));
        let is_once = is_kept && self.pods.len() == names.len();
        // A pod that was made twice breaks one rule.
        let doubles = [score::TWICE, score::REVIVED].map(|rule| self.notes.is_broken(rule));
        let is_right = self.names() == *names && (is_once || doubles.contains(&true));
        self.notes.hold(rule, is_right, || {
            format!("{:?} in place of {names:?} with {kept:?}", self.pods)
        });
        Ok(())
    }

    /// Waits for the next call, and verifies its request.
    async fn call(&mut self) -> Result<Sender<Answer>, String> {
        let call = timeout(PATIENCE, self.listener.calls.recv()).await;
        let call = call.ok().flatten();
        let (request, answer) = call.ok_or("the controller did not ask within 20 seconds")?;
        let set = request.replica_set.unwrap_or_default();
        let known = &self.set.uid;
        let is_same = known.is_empty() || *known == set.uid;
        let is_right = is_same && is_whole(&set, self.replicas);
        let found = || format!("{set:?}, after the uid {known:?}");
        self.notes.hold(score::SET, is_right, found);
        let mut pods = request.pods.iter();
        let odd = pods.find(|pod| !belongs(&set, pod, &request.pods));
        let odd = odd.map(|pod| format!("{pod:?}"));
        self.notes.add(score::PODS, odd.map_or(Ok(()), Err));
        let pods = request.pods.into_iter();
        let pods = pods.filter(|pod| pod.deletion_timestamp.is_none());
        self.pods = pods.map(|pod| (pod.uid, pod.name)).collect();
        self.set = set;
        Ok(answer)
    }

    fn names(&self) -> Names {
        self.pods.values().cloned().collect()
    }

    fn decided(&self, creates: &Names, deletes: &[(String, String)]) -> Answer {
        let victim = |(uid, name): &(String, String)| Victim {
            pod: Some(ObjectRef {
                namespace: self.set.namespace.clone(),
                name: name.clone(),
                uid: uid.clone(),
            }),
            ..Victim::default()
        };
        let decision = Some(Decision {
            creates: creates.iter().cloned().collect(),
            deletes: deletes.iter().map(victim).collect(),
            ..Decision::default()
        });
        Ok(DecideResponse { decision })
    }
}

fn is_whole(set: &ReplicaSet, replicas: usize) -> bool {
    let is_named = [&set.namespace, &set.name, &set.uid].map(String::is_empty) == [false; 3];
    let is_right = set.replicas == i32::try_from(replicas).ok();
    let selector = set.selector.clone().unwrap_or_default();
    let is_selected = selects(&selector, &set.template_labels);
    is_named && is_right && is_selected && selector != LabelSelector::default()
}

/// Whether a pod of a request has its own uid, and is one of the ReplicaSet.
fn belongs(set: &ReplicaSet, pod: &Pod, pods: &[Pod]) -> bool {
    let is_alone = pods.iter().filter(|other| other.uid == pod.uid).count() == 1;
    let owner = pod.controller.as_ref();
    let is_own = owner.is_some_and(|owner| owns(set, owner)) && pod.namespace == set.namespace;
    let selector = set.selector.as_ref();
    let is_selected = selector.is_some_and(|it| selects(it, &pod.labels));
    is_alone && is_own && is_selected && !pod.uid.is_empty()
}
