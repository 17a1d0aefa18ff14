//! Recordings of sessions in the repository, and modified recordings.

use std::{
    fs,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
};

use decree_api::recording::v1::{Header, Record};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use prost::Message;
use server_session::recording::{Decisions, Difference, Replay, Summary};

/// A text in templates and annotations of every object that a recorded run creates. No recording must contain the text.
pub const CANARY: &str = "canary";
/// A label of every pod of a recorded run, which a recording must contain: it proves that the search for the canary works.
pub const ON_THE_WIRE: &str = "on-the-wire";
/// The ending of the files in the repository.
const ENDING: &str = ".recording.gz";

/// The parts of a recording.
#[derive(Clone, Debug)]
pub struct Recording {
    magic: Vec<u8>,
    /// The start of its session.
    pub header: Header,
    /// The calls of its session.
    pub records: Vec<Record>,
}

/// Returns the recordings of the repository, sorted by name.
///
/// # Panics
/// If a recording cannot be read.
pub fn kept() -> Vec<(String, Vec<u8>)> {
    kept_in(&folder())
}

/// Returns the recordings of a folder, sorted by name; none if the folder does not exist.
///
/// # Panics
/// If a recording cannot be read.
pub fn kept_in(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut kept: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.expect("the folder can be read").path();
            let name = path.file_name()?.to_str()?.strip_suffix(ENDING)?.to_owned();
            Some((name, unpacked(&path)))
        })
        .collect();
    kept.sort();
    kept
}

/// Replaces the recordings in the repository.
///
/// # Panics
/// If a file cannot be written.
pub fn keep(recordings: &[(&str, Vec<u8>)]) {
    for (name, _) in kept() {
        fs::remove_file(folder().join(name + ENDING)).expect("it is there");
    }
    for (name, bytes) in recordings {
        let file = fs::File::create(folder().join(format!("{name}{ENDING}")));
        let mut packer = GzEncoder::new(file.expect("a new file"), Compression::best());
        packer.write_all(bytes).expect("there is room");
        packer.finish().expect("there is room");
    }
}

/// Replays a recording to its end.
///
/// # Panics
/// If the recording is damaged.
pub fn replay(bytes: &[u8]) -> (Vec<Difference>, Summary) {
    let mut replay = Replay::open(bytes).expect("it is a recording");
    let mut differences = Vec::new();
    while let Some(difference) = replay.next_difference().expect("it is whole") {
        differences.push(difference);
    }
    (differences, replay.summary())
}

/// Checks that recordings together have enough of each kind of decision for a useful replay.
///
/// # Panics
/// If they have too few.
pub fn assert_rich<'a>(recordings: impl IntoIterator<Item = &'a [u8]>) {
    let decisions: Vec<_> = recordings
        .into_iter()
        .map(|bytes| replay(bytes).1.decisions)
        .collect();
    let enough = |what: &str, least: u64, count: fn(&Decisions) -> u64| {
        let all: u64 = decisions.iter().map(count).sum();
        assert!(all >= least, "{all} of {what}, fewer than {least}");
    };
    enough("create", 25, |it| it.creates);
    enough("delete", 10, |it| it.deletes);
    enough("adopt", 3, |it| it.adopts);
    enough("release", 2, |it| it.releases);
    enough("status", 25, |it| it.status_writes);
    assert!(decisions.len() >= 3, "an agent and a server were restarted");
}

/// Checks that a recording contains nothing from templates and annotations.
///
/// # Panics
/// If it does, or if the search finds nothing at all.
pub fn assert_no_secret(bytes: &[u8]) {
    let has = |text: &str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
    assert!(has(ON_THE_WIRE), "the search finds what is there");
    let secrets = [
        CANARY,
        "registry.invalid",
        "kube-api-access",
        "managedFields",
    ];
    let found: Vec<_> = secrets.into_iter().filter(|text| has(text)).collect();
    assert!(found.is_empty(), "{found:?} is in the recording");
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/recordings")
}

fn unpacked(path: &Path) -> Vec<u8> {
    let packed = fs::File::open(path).expect("it is there");
    let mut bytes = Vec::new();
    let read = GzDecoder::new(packed).read_to_end(&mut bytes);
    read.unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    bytes
}

impl Recording {
    /// Decodes a recording.
    ///
    /// # Panics
    /// If the recording is torn or damaged.
    pub fn decode(bytes: &[u8]) -> Self {
        let line = bytes.iter().position(|byte| *byte == b'\n');
        let (magic, mut rest) = bytes.split_at(line.expect("it begins with a line") + 1);
        let header = Header::decode_length_delimited(&mut rest).expect("it has a header");
        let mut records = Vec::new();
        while !rest.is_empty() {
            let record = Record::decode_length_delimited(&mut rest);
            records.push(record.expect("it is whole"));
        }
        Self {
            magic: magic.to_vec(),
            header,
            records,
        }
    }

    /// Encodes the recording.
    pub fn encode(&self) -> Vec<u8> {
        let Self {
            magic,
            header,
            records,
        } = self;
        let mut bytes = magic.clone();
        bytes.extend(header.encode_length_delimited_to_vec());
        let records = records.iter().map(Message::encode_length_delimited_to_vec);
        bytes.extend(records.flatten());
        bytes
    }
}
