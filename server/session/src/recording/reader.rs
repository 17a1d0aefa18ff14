//! Reads a recording, without trust in its content.

use std::{
    io::{self, Read},
    time::Duration,
};

use crate::{Config, Now};
use bytes::Bytes;
use decree_api::{
    recording::v1::{EndReason, Header, SessionConfig},
    v1,
};
use decree_core::{Span, Timestamp};
use prost::Message;
use thiserror::Error;

use crate::recording::{
    encoder::MAGIC,
    record::{Record, Step},
};

/// The largest record, which limits the memory of a reader: far more than a frame, and the fields around it.
const RECORD_BYTES_MAX: u64 = (64 << 20) + 1024;
const VARINT_BYTES_MAX: u32 = 10;

/// Why a recording cannot be read. Positions are bytes from its beginning.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The bytes cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The first line is not the first line of a recording.
    #[error("is not a recording: its first line is not \"decree recording 1\"")]
    Foreign,
    /// The recording ends before the session begins.
    #[error("ends at byte {0}, before its session begins")]
    Empty(u64),
    /// A record is not one of a recording.
    #[error("is damaged: {1}, at byte {0}")]
    Damaged(u64, String),
    /// This version refuses the session.
    #[error("its session is refused by this version: {0}")]
    Refused(crate::Refusal),
}

/// The end of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A mark.
    Marked(EndReason),
    /// No mark, between two records: the server was killed, or still writes.
    Unmarked,
    /// The middle of the record that begins at this byte.
    Torn(u64),
}

/// Reads records, one at a time.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    bytes: R,
    /// The number of bytes read.
    at: u64,
    now: Now,
    ending: Option<Ending>,
}

/// The beginning of a session.
pub(crate) struct Opening {
    pub(crate) now: Now,
    pub(crate) config: Config,
    pub(crate) session_id: String,
    pub(crate) hello: v1::ReconcileRequest,
}

pub(crate) struct TimedStep {
    pub(crate) now: Now,
    pub(crate) step: Step,
    /// The position of the record.
    pub(crate) at: u64,
}

/// The bytes of a record, or the end of the recording.
type Piece = Result<Vec<u8>, Ending>;

impl<R: Read> Reader<R> {
    /// Reads the first line and the header.
    pub(crate) fn open(mut bytes: R) -> Result<(Self, Opening), ReadError> {
        let mut line = Vec::new();
        let length = MAGIC.len() as u64;
        bytes.by_ref().take(length).read_to_end(&mut line)?;
        if line.is_empty() || !MAGIC.starts_with(&line) {
            return Err(ReadError::Foreign);
        }
        let mut reader = Self {
            bytes,
            at: line.len() as u64,
            now: Now {
                wall: Timestamp::default(),
                monotonic: Duration::ZERO,
            },
            ending: None,
        };
        let at = reader.at;
        let Ok(header) = reader.piece()? else {
            return Err(ReadError::Empty(reader.at));
        };
        let header: Header = decode(at, header)?;
        let opening = opening(header);
        let incomplete = || ReadError::Damaged(at, "the header lacks a field".to_owned());
        let opening = opening.ok_or_else(incomplete)?;
        reader.now = opening.now;
        Ok((reader, opening))
    }

    pub(crate) fn next_step(&mut self) -> Result<Option<TimedStep>, ReadError> {
        if self.ending.is_some() {
            return Ok(None);
        }
        let at = self.at;
        let bytes = match self.piece()? {
            Ok(bytes) => bytes,
            Err(ending) => {
                self.ending = Some(ending);
                return Ok(None);
            }
        };
        let record: Record = decode(at, bytes)?;
        let unknown = || ReadError::Damaged(at, "no step that this version knows".to_owned());
        let step = record.step.ok_or_else(unknown)?;
        let (elapsed, drift) = (record.elapsed_nanos, record.drift_nanos);
        let Now { wall, monotonic } = self.now;
        self.now = Now {
            wall: wall.plus(Span(drift.saturating_add_unsigned(elapsed))),
            monotonic: monotonic.saturating_add(Duration::from_nanos(elapsed)),
        };
        if let Step::End(end) = &step {
            let after = self.at;
            if self.byte()?.is_some() {
                let why = "something follows the end";
                return Err(ReadError::Damaged(after, why.to_owned()));
            }
            self.ending = Some(Ending::Marked(end.reason()));
        }
        Ok(Some(TimedStep {
            now: self.now,
            step,
            at,
        }))
    }

    /// Returns the end of the recording, once all records are read.
    pub(crate) fn ending(&self) -> Ending {
        self.ending.clone().unwrap_or(Ending::Unmarked)
    }

    /// Reads a length and that number of bytes. The memory grows with the bytes that exist, not with the length.
    fn piece(&mut self) -> Result<Piece, ReadError> {
        let at = self.at;
        let mut length = 0_u64;
        for place in 0..VARINT_BYTES_MAX {
            let Some(byte) = self.byte()? else {
                let torn = (place > 0).then_some(Ending::Torn(at));
                return Ok(Err(torn.unwrap_or(Ending::Unmarked)));
            };
            length |= u64::from(byte & 0x7f) << (7 * place).min(63);
            if byte & 0x80 == 0 {
                return self.exactly(at, length);
            }
        }
        Err(ReadError::Damaged(at, "no record begins".to_owned()))
    }

    fn exactly(&mut self, at: u64, length: u64) -> Result<Piece, ReadError> {
        if length > RECORD_BYTES_MAX {
            let why =
                format!("a record of {length} bytes; at most {RECORD_BYTES_MAX} are possible");
            return Err(ReadError::Damaged(at, why));
        }
        let mut bytes = Vec::new();
        let read = self.bytes.by_ref().take(length).read_to_end(&mut bytes)? as u64;
        self.at += read;
        let is_whole = read == length;
        Ok(is_whole.then_some(bytes).ok_or(Ending::Torn(at)))
    }

    fn byte(&mut self) -> Result<Option<u8>, ReadError> {
        #[expect(clippy::unbuffered_bytes, reason = "the callers' readers are buffered")]
        let byte = self.bytes.by_ref().bytes().next().transpose()?;
        self.at += u64::from(byte.is_some());
        Ok(byte)
    }
}

/// Decodes the record at a position.
pub(crate) fn decode<M: Message + Default>(
    at: u64,
    bytes: impl Into<Bytes>,
) -> Result<M, ReadError> {
    let decoded = M::decode(bytes.into());
    decoded.map_err(|error| ReadError::Damaged(at, format!("a record cannot be decoded: {error}")))
}

/// Returns the beginning of a session; `None` if a field is absent.
fn opening(header: Header) -> Option<Opening> {
    let Header {
        server_version,
        session_id,
        config,
        wall_nanos,
        monotonic_nanos,
        hello,
    } = header;
    let SessionConfig {
        frame_bytes_max,
        objects_max,
        operations_in_flight_max,
        heartbeat_interval_nanos,
        drain_deadline_nanos,
        reconnect_after_nanos,
        work_per_poll: _,
        backoff_max_nanos,
        bytes_max,
    } = config?;
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    Some(Opening {
        now: Now {
            wall: Timestamp(wall_nanos),
            monotonic: Duration::from_nanos(monotonic_nanos),
        },
        config: Config {
            server_version: server_version.into(),
            frame_bytes_max: size(frame_bytes_max),
            objects_max: size(objects_max),
            operations_in_flight_max: size(operations_in_flight_max),
            bytes_max: match bytes_max {
                0 => usize::MAX,
                max => size(max),
            },
            backoff_max: match backoff_max_nanos {
                // What it was before it was recorded.
                0 => Duration::from_secs(1_000),
                max => Duration::from_nanos(max),
            },
            heartbeat_interval: Duration::from_nanos(heartbeat_interval_nanos),
            drain_deadline: Duration::from_nanos(drain_deadline_nanos),
            reconnect_after: Duration::from_nanos(reconnect_after_nanos),
        },
        session_id,
        hello: hello?,
    })
}
