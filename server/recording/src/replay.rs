//! Decides again what was decided, and says where the two differ.

use std::{collections::VecDeque, io::Read, sync::Arc};

use decree::{recording::v1::record::Step, v1};
use prost::Message as _;
use server_session::{Identity, Now, Session};

use crate::{
    decisions::Decisions,
    encoder::session_end,
    reader::{Ending, Opening, ReadError, Reader, TimedStep},
    said::{Pair, Said},
};

/// How many inputs before a difference are kept at most: as many as a session takes before it is asked for work.
const INPUTS_MAX: usize = 64;

/// What the session was given before a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A frame of the agent.
    Frame(Now, v1::ReconcileRequest),
    /// Time passed.
    Timeout(Now),
    /// The server began to drain.
    Drain(Now),
    /// The agent closed its half of the stream.
    Closed(Now),
}

/// A moment at which this version does otherwise.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one is held at a time, and ends of sessions are the rare case"
)]
pub enum Difference {
    /// Another frame, or one where there was none, or none where there was one.
    Frame {
        /// When it was.
        now: Now,
        /// What was sent then.
        recorded: Option<v1::ReconcileResponse>,
        /// What this version sends.
        decided: Option<v1::ReconcileResponse>,
        /// What came since the session last had something to say, the latest [`Replay::keep_inputs`] of it; empty without that.
        after: Vec<Input>,
    },
    /// The session ends otherwise.
    End {
        /// When it was.
        now: Now,
        /// How it ended then; empty if it did not.
        recorded: String,
        /// How it ends here; empty if it does not.
        decided: String,
    },
}

/// What a replay has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How many frames of the agent there were, the Hello included.
    pub frames_in: u64,
    /// How many frames were sent.
    pub frames_out: u64,
    /// The decisions in them.
    pub decisions: Decisions,
    /// How the recording ends.
    pub ending: Ending,
}

/// The replay of one recording.
#[derive(Debug)]
pub struct Replay<R> {
    reader: Reader<R>,
    session: Session,
    server_version: String,
    keep_inputs: bool,
    inputs: VecDeque<Input>,
    /// Whether something was sent since the latest input.
    spoke: bool,
    /// The parts so far of a frame that was recorded part by part.
    parts: Option<v1::ReconcileRequest>,
    /// What was decided and is not compared yet, where the server that recorded paused.
    said: Option<Said>,
    frames_in: u64,
    frames_out: u64,
    decisions: Decisions,
}

// === impl Replay ===

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
            pauses,
        } = opening;
        let server_version = config.server_version.clone().into_owned();
        let session = Session::open(now, config, session_id, hello).map_err(ReadError::Refused)?;
        Ok(Self {
            reader,
            session,
            server_version,
            keep_inputs: false,
            inputs: VecDeque::new(),
            spoke: false,
            parts: None,
            said: pauses.then(Said::default),
            frames_in: 1,
            frames_out: 0,
            decisions: Decisions::default(),
        })
    }

    /// Makes differences name what came before them, at most 64 frames each.
    #[must_use]
    pub fn keep_inputs(mut self) -> Self {
        self.keep_inputs = true;
        self
    }

    /// Returns whose session it is.
    #[must_use]
    pub const fn identity(&self) -> &Arc<Identity> {
        self.session.identity()
    }

    /// Returns the session as far as it has come, to be asked.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the version of the server that recorded.
    #[must_use]
    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    /// Goes on to the next difference; `None` is the end of the recording.
    ///
    /// # Errors
    /// If the recording is damaged. All before that was compared.
    pub fn next_difference(&mut self) -> Result<Option<Difference>, ReadError> {
        while let Some(TimedStep { now, step, more }) = self.reader.next_step()? {
            let difference = self.take(now, step, more);
            while self.session.poll_report().is_some() {}
            if difference.is_some() {
                return Ok(difference);
            }
        }
        Ok(None)
    }

    /// Returns what was seen so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            frames_in: self.frames_in,
            frames_out: self.frames_out,
            decisions: self.decisions,
            ending: self.reader.ending(),
        }
    }

    fn take(&mut self, now: Now, step: Step, more: bool) -> Option<Difference> {
        let unsaid = match &step {
            Step::Poll(_) => None,
            Step::Frame(_) | Step::Timeout(_) | Step::Drain(_) | Step::Closed(_) | Step::End(_) => {
                self.said.as_mut().and_then(Said::rest)
            }
        };
        let unsaid = unsaid.map(|pair| self.difference(now, pair));
        match step {
            Step::Frame(part) if more => self.parts = Some(self.joined(part)),
            Step::Frame(frame) => {
                let frame = self.joined(frame);
                self.frames_in += 1;
                self.keep(|| Input::Frame(now, frame.clone()));
                self.session.handle_frame(now, frame);
            }
            Step::Timeout(_) => {
                self.keep(|| Input::Timeout(now));
                self.session.handle_timeout(now);
            }
            Step::Drain(_) => {
                self.keep(|| Input::Drain(now));
                self.session.handle_drain(now);
            }
            Step::Closed(_) => {
                self.keep(|| Input::Closed(now));
                self.session.handle_closed(now);
            }
            // Amid a frame nothing was decided.
            Step::Poll(poll) if poll.frame.is_none() && self.parts.is_some() => {}
            Step::Poll(poll) => return self.poll(now, poll.frame),
            Step::End(end) => return unsaid.or_else(|| self.end(now, end.session_end)),
        }
        unsaid
    }

    /// Returns a frame of the parts so far and one more: a session takes whole frames.
    fn joined(&mut self, part: v1::ReconcileRequest) -> v1::ReconcileRequest {
        let Some(mut frame) = self.parts.take() else {
            return part;
        };
        let merged = frame.merge(&*part.encode_to_vec());
        merged.expect("it was written as a message");
        frame
    }

    fn keep(&mut self, input: impl FnOnce() -> Input) {
        if !self.keep_inputs {
            return;
        }
        if std::mem::take(&mut self.spoke) {
            self.inputs.clear();
        }
        if self.inputs.len() == INPUTS_MAX {
            self.inputs.pop_front();
        }
        self.inputs.push_back(input());
    }

    fn poll(&mut self, now: Now, recorded: Option<v1::ReconcileResponse>) -> Option<Difference> {
        if let Some(frame) = &recorded {
            self.spoke = true;
            self.frames_out += 1;
            self.decisions.add(frame);
        }
        let pair = match &mut self.said {
            Some(said) => {
                said.add_all(std::iter::from_fn(|| self.session.poll_frame(now)));
                recorded.and_then(|recorded| said.compare(recorded))?
            }
            None => (recorded, self.session.poll_frame(now)),
        };
        (pair.0 != pair.1).then(|| self.difference(now, pair))
    }

    fn difference(&self, now: Now, (recorded, decided): Pair) -> Difference {
        Difference::Frame {
            now,
            recorded,
            decided,
            after: self.inputs.iter().cloned().collect(),
        }
    }

    fn end(&self, now: Now, recorded: String) -> Option<Difference> {
        let decided = session_end(&self.session);
        // A recording that ends before its session says nothing of its end.
        let marked = self.reader.ending() == Ending::Marked(crate::EndReason::Session);
        (marked && recorded != decided).then_some(Difference::End {
            now,
            recorded,
            decided,
        })
    }
}
