//! A puppet and a scripted server, and their conversation.

use decree_api::v1::{
    FailureClass, NotStartedCause, Pod, ReplicaSet, done::Object, event, outcome::Outcome,
};

use crate::{
    puppet::{LIMITS, Language, Limits, Puppet, reference, replica_set, word},
    scripted::{Scripted, Session},
};

pub(crate) fn set_command(set: &ReplicaSet) -> String {
    format!("apply-replica-set {}", word(set))
}

/// Returns the message of an outcome that failed with this class.
#[track_caller]
pub(crate) fn failed(outcome: &Outcome, class: FailureClass) -> &str {
    match outcome {
        Outcome::Failed(failed) if failed.failure_class() == class => &failed.message,
        Outcome::Failed(_) | Outcome::Done(_) | Outcome::NotStarted(_) => panic!("{outcome:?}"),
    }
}

/// Returns the message of an outcome whose operation never started.
#[track_caller]
pub(crate) fn not_started(outcome: &Outcome, cause: NotStartedCause) -> &str {
    match outcome {
        Outcome::NotStarted(one) if one.cause() == cause => &one.message,
        Outcome::Failed(_) | Outcome::Done(_) | Outcome::NotStarted(_) => panic!("{outcome:?}"),
    }
}

/// Returns the pod of a successful outcome.
#[track_caller]
pub(crate) fn made(outcome: &Outcome) -> &Pod {
    match outcome {
        Outcome::Done(done) => match &done.object {
            Some(Object::Pod(pod)) => pod,
            Some(Object::ReplicaSet(_) | Object::Gone(_)) | None => panic!("{outcome:?}"),
        },
        Outcome::Failed(_) | Outcome::NotStarted(_) => panic!("{outcome:?}"),
    }
}

/// A puppet and the server of its session.
pub(crate) struct Play {
    pub(crate) puppet: Puppet,
    pub(crate) server: Scripted,
    pub(crate) session: Session,
}

impl Play {
    /// Starts both, with a ReplicaSet of `replicas` desired pods.
    pub(crate) fn start(language: Language, limits: Limits, replicas: i32) -> Self {
        Self::told("run", language, limits, replicas)
    }

    /// Starts both, with an agent that waits for its first list of pods.
    pub(crate) fn before_the_first_list(language: Language, replicas: i32) -> Self {
        Self::told("begin", language, LIMITS, replicas)
    }

    fn told(how: &str, language: Language, limits: Limits, replicas: i32) -> Self {
        let mut server = Scripted::start();
        let mut puppet = Puppet::start(language, &server.address, limits);
        puppet.obey(&set_command(&replica_set(replicas)));
        puppet.obey(how);
        let session = server.session();
        Self {
            puppet,
            server,
            session,
        }
    }

    /// Requests creates, and returns the outcomes.
    pub(crate) fn create(&mut self, names: &[&str]) -> Vec<Outcome> {
        self.session.create(&reference(), names);
        self.outcomes(names.len())
    }

    pub(crate) fn create_one(&mut self, name: &str) -> Outcome {
        self.create(&[name]).remove(0)
    }

    pub(crate) fn delete(&mut self, name: &str) -> Outcome {
        self.session.delete(&reference(), name);
        self.outcomes(1).remove(0)
    }

    pub(crate) fn outcomes(&mut self, count: usize) -> Vec<Outcome> {
        let outcomes = self.server.outcomes(&mut self.session, count);
        let outcomes = outcomes.into_iter().map(|one| one.outcome);
        outcomes.map(|one| one.expect("it says what")).collect()
    }

    pub(crate) fn event(&mut self) -> event::Event {
        let event = self.server.event(&mut self.session);
        event.event.expect("it says what")
    }

    /// Waits for the end of the session, and for the next session.
    pub(crate) fn next_session(mut self) -> Self {
        self.server.wait_until_closed(self.session);
        let session = self.server.session();
        Self { session, ..self }
    }

    /// Stops the agent, and returns the puppet after the agent has ended.
    pub(crate) fn stop(mut self) -> Puppet {
        self.puppet.obey("stop");
        self.server.wait_until_closed(self.session);
        self.puppet.wait_for("stopped", 1);
        self.puppet
    }

    pub(crate) fn scale(&mut self, replicas: i32, generation: i64) {
        let set = ReplicaSet {
            generation,
            ..replica_set(replicas)
        };
        self.puppet.obey(&set_command(&set));
    }
}
