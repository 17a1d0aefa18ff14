//! Steps that send one frame of HTTP/2, so often.

use tests::http2::{END_HEADERS, GOAWAY, HEADERS, PING, PREFACE, SETTINGS, frame, header};

/// The first stream of a client.
pub(super) const FIRST: u32 = 1;

const PRIORITY: u8 = 2;
const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;
pub(super) const ACK: u8 = 1;
const END_STREAM: u8 = 1;
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
