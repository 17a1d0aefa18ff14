//! Mutations that change a small part of an input.

use std::ops::Range;

use proptest::{
    prelude::*,
    sample::{Index, select},
};

/// Bytes with a special meaning in some format.
const SPECIAL: &[u8] = b"\0\x01\x7f\x80\xff\n\r\t \"'{}[]:,-#&*!|>%@`\\/=.\x1b";
/// Texts that most fields allow and few programs expect.
const TEXTS: &[&str] = &[
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
/// Numbers: nine or ten bytes as in protobuf, or four as in frames.
const NUMBERS: &[&[u8]] = &[
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    &[0x80, 0x80, 0x80, 0x80, 0x10],
    &[0, 0xff, 0xff, 0xff],
];

/// The length of a run to the end of any input.
const REST: usize = 1 << 20;

/// A change at one place.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Puts bytes in the place of a run of this length.
    Splice(Index, usize, Vec<u8>),
    /// Repeats a run of this length so often, or removes it.
    Repeat(Index, usize, usize),
}

/// Draws a change, which may insert a part of one of the other inputs.
pub(crate) fn change(others: Vec<Vec<u8>>) -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    let length = || 0..=256_usize;
    let special = || select(SPECIAL).prop_map(|byte| vec![byte]);
    let byte = any::<u8>().prop_map(|byte| vec![byte]);
    let text = select(TEXTS).prop_map(|it| it.as_bytes().to_vec());
    let number = select(NUMBERS).prop_map(<[u8]>::to_vec);
    let part = (select(others), at(), length())
        .prop_map(|(other, at, length)| other[run(&other, at, length)].to_vec());
    prop_oneof![
        3 => (at(), prop_oneof![byte, special(), number])
            .prop_map(|(at, it)| Change::Splice(at, it.len(), it)),
        3 => (at(), prop_oneof![special(), text, part])
            .prop_map(|(at, it)| Change::Splice(at, 0, it)),
        2 => (at(), length(), prop_oneof![Just(0), 2..=21_usize])
            .prop_map(|(at, length, times)| Change::Repeat(at, length, times)),
        1 => at().prop_map(|at| Change::Repeat(at, REST, 0)),
    ]
}

impl Change {
    /// Changes an input.
    pub(crate) fn apply(self, input: &mut Vec<u8>) {
        match self {
            Self::Splice(at, length, bytes) => {
                let range = run(input, at, length);
                input.splice(range, bytes);
            }
            Self::Repeat(at, length, times) => {
                let range = run(input, at, length);
                let repeated = input[range.clone()].repeat(times);
                input.splice(range, repeated);
            }
        }
    }
}

/// Returns the bounds of a run.
fn run(input: &[u8], at: Index, length: usize) -> Range<usize> {
    let start = at.index(input.len().max(1));
    start..input.len().min(start + length)
}
