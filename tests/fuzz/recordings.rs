//! Recordings: a replay of an intact recording makes the same decisions, and a damaged recording is reported.

use server_session::recording::{Difference, ReadError, Replay, Summary};
use tests::rng::Rng;

use crate::author;

/// The maximum length of the error for invalid bytes.
const ERROR_BYTES_MAX: usize = 8 << 10;

/// The result of a replay.
type Replayed = Result<(Vec<Difference>, Summary), (Vec<Difference>, String)>;

/// Returns the recording of a session, whose replay has no difference if the session opened.
pub(crate) fn generate(rng: &mut Rng) -> Vec<u8> {
    let (_, recording) = author::session(rng);
    match replay(&recording) {
        Ok((differences, _)) => assert!(differences.is_empty(), "{differences:?}"),
        Err((_, error)) => assert!(error.contains("is refused"), "{error}"),
    }
    recording
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
