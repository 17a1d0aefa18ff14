//! Access to a live session from the rest of the server: what it shows, questions to its task, and a signal to end.

use std::{pin::pin, sync::Arc, time::Duration};

use decree_core::Timestamp;
use server_session::Session;
use service::admission::FairQueue;
use tokio::{
    select,
    sync::{mpsc, oneshot},
    task::yield_now,
    time::{Instant, timeout},
};

use super::shown::Shown;
use crate::{
    access::Caller,
    capacity::{EndSignal, SlotHandle},
    clock::Clock,
    error::Refusal,
};

/// How long a session works on a question before its own next step.
const SLICE: Duration = Duration::from_millis(1);
/// How long a caller waits for the answer of one session, the questions of others included.
const PATIENCE: Duration = Duration::from_secs(3);

/// A small step of a question, at a time of the wall clock. Returns whether the question is done. The session's own task makes the steps,
/// so nobody else touches the controller and there is no lock.
type Question = Box<dyn FnMut(&Session, Timestamp) -> bool + Send>;

/// A handle to one live session. Clones reach the same session.
#[derive(Clone, Debug)]
pub(crate) struct SessionHandle {
    questions: mpsc::Sender<Question>,
    /// The owners of questions take turns, with one question at a time.
    turn: FairQueue,
    pub(crate) shown: Arc<Shown>,
    pub(crate) end_signal: EndSignal,
    /// The slot of a registered session.
    pub(crate) slot: Option<SlotHandle>,
}

pub(crate) struct Questions {
    arriving: mpsc::Receiver<Question>,
    current: Option<Question>,
}

impl SessionHandle {
    pub(crate) fn new() -> (Self, Questions) {
        let (questions, arriving) = mpsc::channel(1);
        let handle = Self {
            questions,
            turn: FairQueue::of(1),
            shown: Arc::default(),
            end_signal: EndSignal::default(),
            slot: None,
        };
        let current = None;
        (handle, Questions { arriving, current })
    }

    /// Asks a question: the session repeats `step`, each time a little work, until it returns the answer.
    ///
    /// # Errors
    /// If the session ends, or does not answer in time.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        caller: &Caller,
        mut step: impl FnMut(&Session, Timestamp) -> Option<T> + Send + 'static,
    ) -> Result<T, Refusal> {
        let asked = async {
            let _turn = self.turn.peer(caller.owner()).enter().await;
            let (reply, answer) = oneshot::channel();
            let mut reply = Some(reply);
            let question: Question = Box::new(move |session, now| {
                // The caller may have given up.
                if reply.as_ref().is_none_or(oneshot::Sender::is_closed) {
                    return true;
                }
                let answer = step(session, now);
                let is_done = answer.is_some();
                if let Some((answer, reply)) = answer.and_then(|it| Some((it, reply.take()?))) {
                    drop(reply.send(answer));
                }
                is_done
            });
            let sent = self.questions.send(question).await;
            sent.map_err(|_| Refusal::SessionEnded)?;
            answer.await.map_err(|_| Refusal::SessionEnded)
        };
        let answer = timeout(PATIENCE, asked).await;
        answer.unwrap_or(Err(Refusal::DeadlineExceeded))
    }

    /// Waits until the session has ended and left the registry.
    pub(crate) async fn has_ended(&self) {
        self.questions.closed().await;
    }
}

impl Questions {
    /// Works on a question for a short time, if there is one.
    pub(crate) fn work(&mut self, session: &Session, clock: Clock) {
        let next = self.current.take();
        let Some(mut question) = next.or_else(|| self.arriving.try_recv().ok()) else {
            return;
        };
        let (now, until) = (clock.now().wall, Instant::now() + SLICE);
        while !question(session, now) {
            if Instant::now() >= until {
                self.current = Some(question);
                break;
            }
        }
    }

    /// Waits for a future, and works on questions meanwhile.
    pub(crate) async fn during<F: Future>(
        &mut self,
        session: &Session,
        clock: Clock,
        future: F,
    ) -> F::Output {
        let mut future = pin!(future);
        loop {
            select! {
                biased;
                output = &mut future => return output,
                () = yield_now(), if self.current.is_some() => {}
                Some(next) = self.arriving.recv(), if self.current.is_none() => {
                    self.current = Some(next);
                }
            }
            self.work(session, clock);
        }
    }
}
