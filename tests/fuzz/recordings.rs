//! Recordings: a replay of an intact recording makes the same decisions, and a damaged recording is reported.

use decree::recording::v1::record::Step;
use server_session::recording::{
    Call, Difference, Encoder, EndReason, ReadError, Replay, Summary, end,
};
use server_session::{IncomingFrame, Now, Session};
use tests::rng::Rng;

use crate::author::{self, START};

/// The maximum length of the error for invalid bytes.
const ERROR_BYTES_MAX: usize = 8 << 10;

/// The result of a replay.
type Replayed = Result<(Vec<Difference>, Summary), (Vec<Difference>, String)>;

/// Returns the recording of a session, whose replay has no difference.
pub(crate) fn generate(rng: &mut Rng) -> Vec<u8> {
    let mut out = Vec::new();
    let mut records = author::records(rng).into_iter();
    let Some(Step::Frame(hello)) = records.next().and_then(|record| record.step) else {
        unreachable!("a session begins with a frame")
    };
    let config = author::config();
    let mut encoder = Encoder::begin(START, &config, "session-0", &hello, &mut out);
    let Ok(mut session) = Session::open(START, config, "session-0".to_owned(), hello) else {
        return out;
    };
    let mut now = START;
    poll(&mut session, &mut encoder, now, &mut out);
    for record in records {
        now = author::later(now, &record);
        match record.step {
            Some(Step::Frame(frame)) => {
                let frame = IncomingFrame::from(frame);
                encoder.call(now, Call::Frame(&frame), &mut out);
                session.handle_frame(now, frame);
            }
            Some(Step::Drain(_)) => {
                encoder.call(now, Call::Drain, &mut out);
                session.handle_drain(now);
            }
            Some(Step::Closed(_)) => {
                encoder.call(now, Call::Closed, &mut out);
                session.handle_closed(now);
            }
            _ => {
                encoder.call(now, Call::Timeout, &mut out);
                session.handle_timeout(now);
            }
        }
        poll(&mut session, &mut encoder, now, &mut out);
        if session.poll_end().is_some() {
            break;
        }
    }
    end(EndReason::Session, Some(&session), &mut out);
    let (differences, _) = replay(&out).expect("it was written here");
    assert!(differences.is_empty(), "{differences:?}");
    out
}

fn poll(session: &mut Session, encoder: &mut Encoder, now: Now, out: &mut Vec<u8>) {
    loop {
        let frame = session.poll_frame(now);
        while session.poll_report().is_some() {}
        encoder.call(now, Call::Poll(frame.as_ref()), out);
        if frame.is_none() {
            return;
        }
    }
}

/// Replays twice, and once more without the end.
pub(crate) fn check(bytes: &[u8]) {
    let replayed = replay(bytes);
    assert_eq!(shown(&replayed), shown(&replay(bytes)), "the same twice");
    if let Err((_, error)) = &replayed {
        assert!(error.len() <= ERROR_BYTES_MAX, "{} bytes", error.len());
    }
    let torn = replay(&bytes[..bytes.len() / 2]);
    let (whole, part) = (differences(&replayed), differences(&torn));
    let same = part.len() <= whole.len() && shown_all(part) == shown_all(&whole[..part.len()]);
    assert!(same, "a torn recording differs where the whole does not");
}

fn replay(bytes: &[u8]) -> Replayed {
    let failed = |found: Vec<_>| move |error: ReadError| (found, error.to_string());
    let mut replay = Replay::open(bytes).map_err(failed(Vec::new()))?;
    let mut differences = Vec::new();
    loop {
        match replay.next_difference() {
            Ok(Some(difference)) => differences.push(difference),
            Ok(None) => return Ok((differences, replay.summary())),
            Err(error) => return Err(failed(differences)(error)),
        }
    }
}

fn differences(replayed: &Replayed) -> &[Difference] {
    match replayed {
        Ok((differences, _)) | Err((differences, _)) => differences,
    }
}

fn shown(replayed: &Replayed) -> String {
    format!("{replayed:?}")
}

fn shown_all(differences: &[Difference]) -> String {
    format!("{differences:?}")
}
