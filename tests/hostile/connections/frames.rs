//! Frames of HTTP/2, byte by byte.

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The first stream of a client.
pub(super) const FIRST: u32 = 1;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;
pub(super) const ACK: u8 = 1;
const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
/// The payload of a reset: CANCEL.
pub(super) const CANCEL: [u8; 4] = [0, 0, 0, 8];

pub(super) fn number(word: &str) -> u32 {
    word.parse().expect("a number")
}

pub(super) fn size(bytes: u32) -> usize {
    usize::try_from(bytes).expect("it fits")
}

/// One frame of a step, and how often it is sent.
pub(super) fn frames(verb: &str, words: &[&str]) -> (u32, Vec<u8>) {
    let number = |at: usize| words.get(at).map_or(0, |word| number(word));
    match verb {
        "preface" => (1, [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()),
        "settings" => {
            let id = u16::try_from(number(1)).expect("an id").to_be_bytes();
            let setting = [&id[..], &number(2).to_be_bytes()].concat();
            let setting = if words.len() == 3 { &*setting } else { &[] };
            (number(0), frame(SETTINGS, 0, 0, setting))
        }
        "acks" => (number(0), frame(SETTINGS, ACK, 0, &[])),
        "pings" => (number(0), frame(PING, 0, 0, &[0; 8])),
        "priorities" => (number(0), frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 7])),
        "windows" => {
            let increment = number(2).to_be_bytes();
            (number(0), frame(WINDOW_UPDATE, 0, number(1), &increment))
        }
        "goaways" => (number(0), frame(GOAWAY, 0, 0, &[0; 8])),
        "answer" => {
            let status = header(":status", words[0]);
            let block = [status, header("content-type", "application/grpc")].concat();
            (1, frame(HEADERS, END_HEADERS, FIRST, &block))
        }
        "status" => {
            let flags = END_HEADERS | END_STREAM;
            let block = header("grpc-status", words[0]);
            (1, frame(HEADERS, flags, FIRST, &block))
        }
        _ => panic!("{verb} is no step"),
    }
}

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("frames are short");
    let head = [
        &length.to_be_bytes()[1..],
        &[kind, flags],
        &stream.to_be_bytes(),
    ];
    [&head.concat()[..], payload].concat()
}

/// Writes the headers of a call, one of them of `bytes` bytes.
pub(super) fn request(method: &str, bytes: u32) -> Vec<u8> {
    let path = match method {
        "Reconcile" | "Decide" | "Simulate" => format!("/decree.v1.DecisionService/{method}"),
        other => other.to_owned(),
    };
    let value = "a".repeat(size(bytes));
    let mut headers = vec![
        (":method", "POST"),
        (":scheme", "http"),
        (":path", &path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    headers.extend((bytes > 0).then_some(("x", &*value)));
    let headers = headers.into_iter();
    headers
        .flat_map(|(name, value)| header(name, value))
        .collect()
}

/// Writes a header as a literal without indexing.
pub(super) fn header(name: &str, value: &str) -> Vec<u8> {
    let mut written = vec![0];
    for text in [name, value] {
        length(text.len(), &mut written);
        written.extend_from_slice(text.as_bytes());
    }
    written
}

/// Writes a length with a prefix of seven bits.
fn length(length: usize, out: &mut Vec<u8>) {
    const PREFIX_MAX: usize = 127;
    let Some(mut rest) = length.checked_sub(PREFIX_MAX) else {
        out.push(length.to_le_bytes()[0]);
        return;
    };
    out.push(127);
    while rest >= 128 {
        out.push(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    out.push(rest.to_le_bytes()[0]);
}
