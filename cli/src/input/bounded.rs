//! Limits of what the files of a command unpack to.

use std::{
    cell::Cell,
    io::{self, Read},
    rc::Rc,
};

/// The maximum number of bytes of all files, unpacked. The largest clusters fit, and a small file that unpacks without end does not.
const BYTES_MAX: u64 = 2 << 30;
/// The maximum ratio of unpacked to packed bytes beyond [`FREE_BYTES`]. The output of kubectl has 50 to 100.
const RATIO_MAX: u64 = 250;
const FREE_BYTES: u64 = 16 << 20;

/// What the files of a command have used of the limits.
#[derive(Debug, Default)]
pub(super) struct Used {
    packed: Cell<u64>,
    unpacked: Cell<u64>,
}

/// Counts the bytes of files as they are stored.
pub(super) struct Packed<R> {
    inner: R,
    used: Rc<Used>,
}

/// Reads at most as many unpacked bytes as are left.
pub(super) struct Bounded<R> {
    inner: R,
    used: Rc<Used>,
}

impl Used {
    /// How many bytes can still be unpacked.
    fn left(&self) -> u64 {
        let unpacked = self.unpacked.get();
        self.by_ratio().min(BYTES_MAX).saturating_sub(unpacked)
    }

    fn by_ratio(&self) -> u64 {
        let packed = self.packed.get();
        packed.saturating_mul(RATIO_MAX).saturating_add(FREE_BYTES)
    }

    fn refusal(&self) -> io::Error {
        let limit = if self.by_ratio() < BYTES_MAX {
            "files are limited to 250 times their size, unpacked"
        } else {
            "the files of a command are limited to 2 GiB, unpacked"
        };
        io::Error::new(io::ErrorKind::FileTooLarge, limit)
    }
}

impl<R> Packed<R> {
    pub(super) const fn new(inner: R, used: Rc<Used>) -> Self {
        Self { inner, used }
    }
}

impl<R: Read> Read for Packed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.used.packed.set(self.used.packed.get() + read as u64);
        Ok(read)
    }
}

impl<R> Bounded<R> {
    pub(super) const fn new(inner: R, used: Rc<Used>) -> Self {
        Self { inner, used }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Beyond the limit, one byte tells whether this is the end.
        let left = self.used.left();
        let most = usize::try_from(left.max(1)).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        let read = self.inner.read(&mut buffer[..most])?;
        if read as u64 > self.used.left() {
            return Err(self.used.refusal());
        }
        self.used
            .unpacked
            .set(self.used.unpacked.get() + read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_beyond_each_limit_are_refused() {
        let far = BYTES_MAX;
        for (packed, before, bytes, fits) in [
            (0, 0, 5, true),
            (0, FREE_BYTES - 5, 5, true),
            (0, FREE_BYTES - 5, 6, false),
            (2, FREE_BYTES + 495, 5, true),
            (2, FREE_BYTES + 495, 6, false),
            (far, BYTES_MAX - 5, 5, true),
            (far, BYTES_MAX - 5, 6, false),
        ] {
            let used = Rc::new(Used::default());
            used.unpacked.set(before);
            used.packed.set(packed);
            let mut text = Vec::new();
            let read = Bounded::new(&b"abcdef"[..bytes], Rc::clone(&used)).read_to_end(&mut text);
            let case = (packed, before, bytes);
            assert_eq!(read.is_ok(), fits, "{case:?}");
            let kind = read.map_err(|error| error.kind()).err();
            assert!(fits || kind == Some(io::ErrorKind::FileTooLarge));
        }
    }

    #[test]
    fn stored_bytes_are_counted() {
        let used = Rc::new(Used::default());
        let mut text = Vec::new();
        let mut packed = Packed::new(&b"abcdef"[..], Rc::clone(&used));
        packed.read_to_end(&mut text).expect("it is in memory");
        assert_eq!((text.len(), used.packed.get()), (6, 6));
    }
}
