//! A digest of a value, made from its `Debug` text, independent of the order of maps and sets.
//!
//! The digest reads the text while `Debug` writes it, and keeps none of it. A map or set is recognized by its brace without a
//! type name before it. Fields that only serve inspection (`MASKED`) do not count: no frame depends on them.

use std::fmt::{self, Debug, Write as _};

/// The fields for inspection only: the decisions, counts and reports of a session.
const MASKED: [&[u8]; 4] = [b"history", b"counters", b"stats", b"reported"];

/// Longer than the longest masked name.
const FIELD_MAX: usize = 16;

const FNV_OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const FNV_PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// Returns the digest of a value: 128 bits, the same in every run.
#[must_use]
pub fn digest(value: &impl Debug) -> u128 {
    let mut reader = Reader {
        open: vec![Group::new(Order::Kept)],
        quoted: false,
        escaped: false,
        before: *b"  ",
    };
    let written = write!(reader, "{value:?}");
    written.expect("the reader takes everything");
    reader.open.pop().map_or(0, Group::finish)
}

/// Reads the output of `Debug`.
struct Reader {
    open: Vec<Group>,
    quoted: bool,
    escaped: bool,
    /// The two bytes before the current one.
    before: [u8; 2],
}

/// The content of braces, brackets or parentheses.
struct Group {
    order: Order,
    hash: u128,
    /// The sum over the complete entries of a map or set.
    sum: u128,
    /// The name of the current field, if it has one.
    field: Vec<u8>,
    /// The hash before a masked field.
    masked: Option<u128>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// A list, a tuple, or one value.
    Kept,
    /// A struct, whose fields have names.
    Named,
    /// A map or a set.
    None,
}

// === impl Reader ===

impl Reader {
    fn read(&mut self, byte: u8) {
        if self.quoted {
            self.quoted = self.escaped || byte != b'"';
            self.escaped = byte == b'\\' && !self.escaped;
            return self.feed(byte);
        }
        match byte {
            b'{' | b'[' | b'(' => self.open.push(Group::new(self.order_of(byte))),
            b'}' | b']' | b')' => {
                let group = self.open.pop().map_or(0, Group::finish);
                if let Some(parent) = self.open.last_mut() {
                    parent.feed_digest(group);
                }
            }
            b' ' | b'\n' => {}
            b'"' => {
                self.quoted = true;
                self.feed(byte);
            }
            _ => self.feed(byte),
        }
        self.before = [self.before[1], byte];
    }

    fn order_of(&self, bracket: u8) -> Order {
        let [older, newer] = self.before;
        let named = newer == b' ' && (older.is_ascii_alphanumeric() || older == b'>');
        match bracket {
            b'{' if named => Order::Named,
            b'{' => Order::None,
            _ => Order::Kept,
        }
    }

    fn feed(&mut self, byte: u8) {
        let quoted = self.quoted;
        if let Some(group) = self.open.last_mut() {
            group.feed(byte, quoted);
        }
    }
}

impl fmt::Write for Reader {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| self.read(byte));
        Ok(())
    }
}

// === impl Group ===

impl Group {
    const fn new(order: Order) -> Self {
        Self {
            order,
            hash: FNV_OFFSET,
            sum: 0,
            field: Vec::new(),
            masked: None,
        }
    }

    fn feed(&mut self, byte: u8, quoted: bool) {
        if byte == b',' && !quoted {
            self.end_entry();
            return;
        }
        self.mix(byte);
        if self.order != Order::Named {
            return;
        }
        if byte == b':' && MASKED.contains(&self.field.as_slice()) {
            self.masked.get_or_insert(self.hash);
        }
        if self.field.len() < FIELD_MAX {
            self.field.push(byte);
        }
    }

    fn feed_digest(&mut self, digest: u128) {
        self.mix(b'(');
        self.hash = (self.hash ^ digest).wrapping_mul(FNV_PRIME);
    }

    const fn mix(&mut self, byte: u8) {
        self.hash = (self.hash ^ byte as u128).wrapping_mul(FNV_PRIME);
    }

    fn end_entry(&mut self) {
        match self.order {
            Order::Kept => self.mix(b','),
            Order::Named => {
                self.hash = self.masked.take().unwrap_or(self.hash);
                self.mix(b',');
                self.field.clear();
            }
            Order::None => {
                self.sum = self.sum.wrapping_add(finish(self.hash));
                self.hash = FNV_OFFSET;
            }
        }
    }

    fn finish(mut self) -> u128 {
        self.end_entry();
        match self.order {
            Order::Kept | Order::Named => finish(self.hash),
            Order::None => finish(self.sum),
        }
    }
}

/// Spreads each bit over all bits.
const fn finish(hash: u128) -> u128 {
    let hash = (hash ^ (hash >> 59)).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    hash ^ (hash >> 67)
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    #[test]
    fn order_of_maps_and_sets_does_not_count() {
        let forth: HashMap<_, _> = (0..50).map(|key| (key, "v")).collect();
        let back: HashMap<_, _> = (0..50).rev().map(|key| (key, "v")).collect();
        assert_eq!(digest(&forth), digest(&back));
        let set: HashSet<_> = ["a, b", "{c"].into();
        let other: HashSet<_> = ["{c", "a, b"].into();
        assert_eq!(digest(&Some(set)), digest(&Some(other)));
    }

    #[test]
    fn everything_else_counts() {
        assert_ne!(digest(&[1, 2]), digest(&[2, 1]));
        assert_ne!(digest(&["a b"]), digest(&["ab"]));
        let one = HashMap::from([(1, 2)]);
        let other = HashMap::from([(2, 1)]);
        assert_ne!(digest(&one), digest(&other));
        let (flat, nested) = ((vec![1, 2],), (vec![1], vec![2]));
        assert_ne!(digest(&flat), digest(&nested));
    }

    #[test]
    fn fields_for_inspection_do_not_count_and_their_neighbours_do() {
        #[derive(Debug)]
        #[expect(dead_code, reason = "read by Debug")]
        struct Machine {
            first: u32,
            history: Vec<(u32, &'static str)>,
            last: u32,
        }
        let machine = |first, history: &[_], last| {
            digest(&Machine {
                first,
                history: history.to_vec(),
                last,
            })
        };
        assert_eq!(machine(1, &[], 2), machine(1, &[(7, "a, } b")], 2));
        assert_ne!(machine(1, &[], 2), machine(1, &[], 3));
        assert_ne!(machine(1, &[], 2), machine(2, &[], 2));
    }
}
