//! A bound of what files unpack to.

use std::{
    cell::Cell,
    io::{self, Read},
    rc::Rc,
};

/// The maximum number of bytes of all files of a command, unpacked. The largest clusters fit, and a small file that unpacks without end
/// does not.
const BYTES_MAX: u64 = 2 << 30;

/// How many bytes can still be unpacked.
pub(super) type Left = Rc<Cell<u64>>;

/// All bytes of a command.
pub(super) fn all() -> Left {
    Rc::new(Cell::new(BYTES_MAX))
}

/// Reads at most as many bytes as are left.
pub(super) struct Bounded<R> {
    inner: R,
    left: Left,
}

// === impl Bounded ===

impl<R> Bounded<R> {
    pub(super) const fn new(inner: R, left: Left) -> Self {
        Self { inner, left }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 && !buffer.is_empty() {
            return match self.inner.read(&mut [0])? {
                0 => Ok(0),
                _ => Err(io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    "the files of a command are limited to 2 GiB, unpacked",
                )),
            };
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        let read = self.inner.read(&mut buffer[..most])?;
        self.left.set(left - read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_beyond_those_that_are_left_are_refused() {
        for (left, rest) in [(5, Some(0)), (6, Some(1)), (4, None)] {
            let left = Rc::new(Cell::new(left));
            let bounded = |bytes| Bounded::new(bytes, Rc::clone(&left));
            let mut text = Vec::new();
            let first = bounded(&b"ab"[..]).read_to_end(&mut text);
            let second = bounded(&b"cde"[..]).read_to_end(&mut text);
            let read = first.and(second).map(|_| left.get());
            assert_eq!(read.as_ref().ok(), rest.as_ref());
            let refused = read.map_err(|error| error.kind());
            assert!(rest.is_some() || refused == Err(io::ErrorKind::FileTooLarge));
        }
    }
}
