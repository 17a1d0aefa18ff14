//! UIDs in a compact form, for collections with many of them: of pods and of deleted objects. Nearly all UIDs are UUIDs.

use std::{cmp::Ordering, fmt, sync::Arc};

use crate::object::Uid;

/// The length of the text of a UUID.
const LENGTH: usize = 36;
/// The positions of the dashes in that text.
const DASHES: [usize; 4] = [8, 13, 18, 23];
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// A UID: 16 bytes if it is a UUID in lower case, as API servers write them, or else its text. UIDs sort as their texts do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompactUid(Repr);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Repr {
    Uuid([u8; 16]),
    Text(Arc<str>),
}

impl CompactUid {
    /// The UID with this text.
    pub fn of(text: &str) -> Self {
        Self(uuid(text).map_or_else(|| Repr::Text(text.into()), Repr::Uuid))
    }

    /// Whether the UID has this text.
    pub fn is(&self, text: &str) -> bool {
        match &self.0 {
            Repr::Uuid(own) => uuid(text) == Some(*own),
            Repr::Text(own) => **own == *text,
        }
    }

    /// The UID as a shared text.
    pub fn to_uid(&self) -> Uid {
        match &self.0 {
            Repr::Uuid(_) => Uid(self.text(&mut [0; LENGTH]).into()),
            Repr::Text(text) => Uid(Arc::clone(text)),
        }
    }

    /// The UID that sorts before all others. No object has it. Takes no memory, because each event asks for it.
    pub(crate) fn lowest() -> Self {
        Self(Repr::Text(Arc::default()))
    }

    /// The memory in bytes, without the value itself.
    pub(crate) fn bytes(&self) -> usize {
        match &self.0 {
            Repr::Uuid(_) => 0,
            Repr::Text(text) => text.len(),
        }
    }

    /// Returns the text, which is written to `buffer` if the UID is a UUID.
    fn text<'a>(&'a self, buffer: &'a mut [u8; LENGTH]) -> &'a str {
        let mut rest = match &self.0 {
            Repr::Uuid(own) => u128::from_be_bytes(*own),
            Repr::Text(text) => return text,
        };
        for (at, byte) in buffer.iter_mut().enumerate() {
            if DASHES.contains(&at) {
                *byte = b'-';
                continue;
            }
            rest = rest.rotate_left(4);
            *byte = DIGITS[(rest & 15) as usize];
        }
        std::str::from_utf8(buffer).unwrap_or_default()
    }
}

impl From<&Uid> for CompactUid {
    fn from(uid: &Uid) -> Self {
        Self::of(&uid.0)
    }
}

impl Ord for CompactUid {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Uuid(own), Repr::Uuid(others)) => own.cmp(others),
            (Repr::Text(own), Repr::Text(others)) => own.cmp(others),
            (Repr::Uuid(_), Repr::Text(_)) | (Repr::Text(_), Repr::Uuid(_)) => self
                .text(&mut [0; LENGTH])
                .cmp(other.text(&mut [0; LENGTH])),
        }
    }
}

impl PartialOrd for CompactUid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for CompactUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text(&mut [0; LENGTH]))
    }
}

/// Returns the bytes of a UUID in lower case; `None` for any other text.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let text: &[u8; LENGTH] = text.as_bytes().try_into().ok()?;
    if DASHES.iter().any(|at| text[*at] != b'-') {
        return None;
    }
    let mut number = 0_u128;
    for (at, byte) in text.iter().enumerate() {
        let digit = match byte {
            b'-' if DASHES.contains(&at) => continue,
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        number = number << 4 | u128::from(digit);
    }
    Some(number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn uid() -> impl Strategy<Value = String> {
        prop_oneof![
            "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "[01a]{8}-0000-0000-0000-00000000000[0-9a-gA-F]",
            "[0-9a-f-]{34,37}",
            ".{0,40}",
        ]
    }

    proptest! {
        #[test]
        fn uids_are_and_sort_as_their_texts(left in uid(), right in uid()) {
            let (one, other) = (CompactUid::of(&left), CompactUid::of(&right));
            prop_assert_eq!(one.cmp(&other), left.cmp(&right));
            prop_assert_eq!(one == other, left == right);
            prop_assert_eq!(one.is(&right), left == right);
            prop_assert!(one.is(&left));
            prop_assert_eq!(one.to_string(), &*left);
            prop_assert_eq!(&*one.to_uid().0, &*left);
        }
    }

    #[test]
    fn uuid_in_lower_case_takes_no_text() {
        let is_text = |text| CompactUid::of(text).bytes() > 0;
        assert!(!is_text("0b5ae02a-3fd9-4d6e-b7d6-00000000002a"));
        assert!(is_text("0B5AE02A-3FD9-4D6E-B7D6-00000000002A"));
        assert!(is_text("0b5ae02a-3fd9-4d6e-b7d6-00000000002ä"));
    }
}
