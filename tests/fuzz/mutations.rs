//! Mutations that change a small part of an input.

use tests::rng::Rng;

/// Bytes with a special meaning in some format.
const SPECIAL: &[u8] = b"\0\x01\x7f\x80\xff\n\r\t \"'{}[]:,-#&*!|>%@`\\/=.\x1b";
/// Texts that most fields allow and few programs expect.
const TEXTS: [&str; 14] = [
    "-1",
    "0",
    "9223372036854775808",
    "1e999",
    "null",
    "~",
    "true",
    "..",
    "\u{202e}",
    "\u{0430}",
    "\u{feff}",
    "\u{1b}[2J",
    "&a [*a, *a]",
    "<<: *a",
];

/// Changes an input at one place.
pub(crate) fn mutate(input: &mut Vec<u8>, others: &[Vec<u8>], rng: &mut Rng) {
    match rng.between(0, 9) {
        0 => {
            if let Some(at) = place(input, rng) {
                input[at] ^= 1 << rng.between(0, 7);
            }
        }
        1 => {
            if let Some(at) = place(input, rng) {
                input[at] = *rng.pick(SPECIAL);
            }
        }
        2 => insert(input, rng, |rng| vec![*rng.pick(SPECIAL)]),
        3 => insert(input, rng, |rng| (*rng.pick(&TEXTS)).as_bytes().to_vec()),
        4 => {
            let (start, end) = run(input, rng);
            input.drain(start..end);
        }
        5 => {
            let (start, end) = run(input, rng);
            let times = usize::try_from(rng.between(1, 20)).expect("small");
            let repeated = input[start..end].repeat(times);
            input.splice(end..end, repeated);
        }
        6 => {
            let (start, end) = run(input, rng);
            let moved: Vec<_> = input.drain(start..end).collect();
            let at = place(input, rng).unwrap_or(0);
            input.splice(at..at, moved);
        }
        7 => {
            if let Some(at) = place(input, rng) {
                input.truncate(at);
            }
        }
        8 => splice(input, others, rng),
        _ => overwrite_with_number(input, rng),
    }
}

fn insert(input: &mut Vec<u8>, rng: &mut Rng, make: fn(&mut Rng) -> Vec<u8>) {
    let at = place(input, rng).unwrap_or(0);
    let bytes = make(rng);
    input.splice(at..at, bytes);
}

/// Continues an input with the end of another one.
fn splice(input: &mut Vec<u8>, others: &[Vec<u8>], rng: &mut Rng) {
    let other = rng.pick(others);
    let (start, end) = run(other, rng);
    let at = place(input, rng).unwrap_or(0);
    input.splice(at..at, other[start..end].iter().copied());
}

/// Overwrites bytes with a number: eight bytes as in protobuf, or four as in frames.
fn overwrite_with_number(input: &mut Vec<u8>, rng: &mut Rng) {
    let at = place(input, rng).unwrap_or(0);
    let number: &[u8] = match rng.between(0, 3) {
        0 => &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        1 => &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
        2 => &[0x80, 0x80, 0x80, 0x80, 0x10],
        _ => &[0, 0xff, 0xff, 0xff],
    };
    let end = input.len().min(at + number.len());
    input.splice(at..end, number.iter().copied());
}

/// Returns a position to change; `None` in an empty input.
fn place(input: &[u8], rng: &mut Rng) -> Option<usize> {
    let last = input.len().checked_sub(1)?;
    Some(usize::try_from(rng.between(0, last as u64)).expect("it is a place"))
}

/// Returns the bounds of a run of at most 256 bytes.
fn run(input: &[u8], rng: &mut Rng) -> (usize, usize) {
    let start = place(input, rng).unwrap_or(0);
    let length = usize::try_from(rng.between(0, 256)).expect("small");
    (start, input.len().min(start + length))
}
