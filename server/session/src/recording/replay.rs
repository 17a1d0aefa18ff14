//! Decides again on the input of a recording, and finds the differences.

use std::{io::Read, sync::Arc};

use crate::{IncomingFrame, Now, Session, SessionIdentity};
use decree_api::v1::{self, batch::Action, reconcile_response::Frame};
use prost::Message;

use crate::recording::{
    encoder::session_end,
    inherited,
    output::{is_same, is_same_end},
    reader::{Ending, Opening, ReadError, Reader, TimedStep, decode},
    record::{Poll, Step},
};

/// An input of the session.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one is held at a time, and most are frames"
)]
pub enum Input {
    /// A frame of the agent; empty if its bytes are no frame.
    Frame(v1::ReconcileRequest),
    /// Time passed.
    Timeout,
    /// The server began to drain.
    Drain,
    /// The agent closed its half of the stream.
    Closed,
}

/// A call of the recorded session.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCall {
    /// The time of the call.
    pub now: Now,
    /// The input, with [`Replay::keep_inputs`]; `None` for other calls.
    pub input: Option<Input>,
    /// The recorded frame of a request for a frame, with [`Replay::keep_inputs`]; `None` without a frame, and for other calls.
    pub frame: Option<v1::ReconcileResponse>,
    /// The recorded end of the session, which is empty if the session continued; `None` before the end of the recording.
    pub end: Option<String>,
    /// The difference of this version from the recording, up to this call.
    pub difference: Option<Difference>,
}

/// A moment at which this version decides differently.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a replay has one at a time")]
pub enum Difference {
    /// Another frame, an additional frame, or a missing frame. Texts for people do not count.
    Frame {
        /// The time of the frame.
        now: Now,
        /// The recorded frame.
        recorded: Option<v1::ReconcileResponse>,
        /// The frame of this version.
        decided: Option<v1::ReconcileResponse>,
    },
    /// The session ends for another reason.
    End {
        /// The time of the end.
        now: Now,
        /// The recorded end; empty if the session did not end.
        recorded: String,
        /// The end in this version; empty if the session does not end.
        decided: String,
    },
}

/// The counts of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The number of frames of the agent, the Hello included.
    pub frames_in: u64,
    /// The number of frames to the agent.
    pub frames_out: u64,
    /// The decisions in them.
    pub decisions: Decisions,
    /// The end of the recording.
    pub ending: Ending,
}

/// The number of decisions, and of their operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Decisions of any kind: one batch each.
    pub batches: u64,
    /// Pods to create.
    pub creates: u64,
    /// Pods to delete.
    pub deletes: u64,
    /// Pods to adopt.
    pub adopts: u64,
    /// Pods to release.
    pub releases: u64,
    /// Statuses to write.
    pub status_writes: u64,
}

/// The replay of one recording.
#[derive(Debug)]
pub struct Replay<R> {
    reader: Reader<R>,
    session: Session,
    server_version: String,
    keep_inputs: bool,
    /// The counts so far; the reader knows the end.
    counts: Summary,
}

impl<R: Read> Replay<R> {
    /// Begins with the session's opening.
    ///
    /// # Errors
    /// If the bytes are no recording, or this version refuses the session.
    pub fn open(bytes: R) -> Result<Self, ReadError> {
        let (reader, opening) = Reader::open(bytes)?;
        let Opening {
            now,
            config,
            session_id,
            hello,
        } = opening;
        let server_version = config.server_version.clone().into_owned();
        let session = Session::open(now, config, session_id, hello);
        let session = session.map_err(ReadError::Refused)?;
        Ok(Self {
            reader,
            session,
            server_version,
            keep_inputs: false,
            counts: Summary {
                frames_in: 1,
                frames_out: 0,
                decisions: Decisions::default(),
                ending: Ending::Unmarked,
            },
        })
    }

    /// Makes calls contain their input or frame.
    pub fn keep_inputs(mut self) -> Self {
        self.keep_inputs = true;
        self
    }

    /// The identity of the session.
    pub const fn identity(&self) -> &Arc<SessionIdentity> {
        self.session.identity()
    }

    /// The session in its current state, for questions.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// The version of the recording server.
    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    /// Continues to the next difference; `None` at the end of the recording.
    ///
    /// # Errors
    /// If the recording is damaged. Everything before the damage was compared.
    pub fn next_difference(&mut self) -> Result<Option<Difference>, ReadError> {
        while let Some(call) = self.next_call()? {
            if call.difference.is_some() {
                return Ok(call.difference);
            }
        }
        Ok(None)
    }

    /// Repeats the next call of the session; `None` at the end of the recording.
    ///
    /// # Errors
    /// If the recording is damaged.
    pub fn next_call(&mut self) -> Result<Option<RecordedCall>, ReadError> {
        let Some(step) = self.reader.next_step()? else {
            return Ok(None);
        };
        let call = self.take(step)?;
        while self.session.poll_report().is_some() {}
        Ok(Some(call))
    }

    /// The counts so far.
    pub fn summary(&self) -> Summary {
        let ending = self.reader.ending();
        Summary {
            ending,
            ..self.counts
        }
    }

    fn take(&mut self, step: TimedStep) -> Result<RecordedCall, ReadError> {
        let TimedStep { now, step, at } = step;
        let mut call = RecordedCall {
            now,
            input: None,
            frame: None,
            end: None,
            difference: None,
        };
        match step {
            Step::Frame(frame) => {
                self.counts.frames_in += 1;
                let read = || v1::ReconcileRequest::decode(frame.clone()).unwrap_or_default();
                call.input = self.keep(|| Input::Frame(read()));
                self.session.handle_frame(now, IncomingFrame::from(frame));
            }
            Step::Inherited(inherited) => {
                let (left, ago) = inherited::read(inherited);
                self.session.inherit(now, left, ago);
            }
            Step::Timeout(_) => {
                call.input = self.keep(|| Input::Timeout);
                self.session.handle_timeout(now);
            }
            Step::Drain(_) => {
                call.input = self.keep(|| Input::Drain);
                self.session.handle_drain(now);
            }
            Step::Closed(_) => {
                call.input = self.keep(|| Input::Closed);
                self.session.handle_closed(now);
            }
            Step::Poll(Poll { frame }) => {
                let frame = frame.map(|frame| decode(at, frame)).transpose()?;
                if self.keep_inputs {
                    call.frame.clone_from(&frame);
                }
                call.difference = self.poll(now, frame);
            }
            Step::End(end) => {
                call.difference = self.end(now, &end.session_end);
                call.end = Some(end.session_end);
            }
        }
        Ok(call)
    }

    fn keep(&self, input: impl FnOnce() -> Input) -> Option<Input> {
        self.keep_inputs.then(input)
    }

    fn poll(&mut self, now: Now, recorded: Option<v1::ReconcileResponse>) -> Option<Difference> {
        if let Some(frame) = &recorded {
            self.counts.frames_out += 1;
            self.counts.decisions.add(frame);
        }
        let decided = self.session.poll_frame(now);
        let is_same = is_same(recorded.as_ref(), decided.as_ref());
        (!is_same).then_some(Difference::Frame {
            now,
            recorded,
            decided,
        })
    }

    fn end(&self, now: Now, recorded: &str) -> Option<Difference> {
        let decided = session_end(&self.session);
        // A recording that ends before its session does not contain the session's end.
        let marked = self.reader.ending() == Ending::Marked(crate::recording::EndReason::Session);
        (marked && !is_same_end(recorded, &decided)).then(|| Difference::End {
            now,
            recorded: recorded.to_owned(),
            decided,
        })
    }
}

impl Decisions {
    /// Adds the decisions of a frame of the server.
    fn add(&mut self, frame: &v1::ReconcileResponse) {
        let Some(Frame::Batches(batches)) = &frame.frame else {
            return;
        };
        for batch in &batches.batches {
            self.batches += 1;
            match &batch.action {
                Some(Action::Create(create)) => self.creates += create.names.len() as u64,
                Some(Action::Delete(delete)) => self.deletes += delete.victims.len() as u64,
                Some(Action::Claim(claim)) => {
                    self.adopts += claim.adopts.len() as u64;
                    self.releases += claim.releases.len() as u64;
                }
                Some(Action::WriteStatus(_)) => self.status_writes += 1,
                Some(Action::Advise(_)) | None => {}
            }
        }
    }
}
