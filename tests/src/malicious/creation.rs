//! Creates as an honest server words them.

use decree::v1::{self, batch::Action};

/// How many operations a batch of a lie has.
pub(super) const OPERATIONS: u64 = 500;
/// The letters of suffixes.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Returns the suffix of a name that no other round and index has.
pub(super) fn suffix(round: u64, index: u64) -> String {
    let mut number = round * OPERATIONS + index;
    let letters = (0..5).map(|_| {
        let letter = ALPHABET[usize::try_from(number % 27).expect("it is small")];
        number /= 27;
        char::from(letter)
    });
    letters.collect()
}

pub(super) fn create(generate_name: &str, names: Vec<String>) -> Action {
    Action::Create(v1::Create {
        names,
        generate_name: generate_name.to_owned(),
        slow_start_initial: 500,
    })
}
