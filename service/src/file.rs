//! Files that may be replaced while the process runs: read up to a maximum size, and compared by content.
//!
//! The kubelet replaces a volume by changing a symbolic link. inotify does not report that for the files behind the link, so the files
//! are read again and compared.

use std::{
    fs::OpenOptions,
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// Reads a file of at most `max` bytes. Does not block on a pipe, and does not read a device or a log to its end that was named by mistake.
/// A file system that hangs blocks the call without limit.
///
/// # Errors
/// If the file is not regular, cannot be read, or is larger.
pub fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    let kind = file.metadata()?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        let message = "is a pipe, a socket or a device, and must be a file that can be read again";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        let message = format!("is larger than {max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// The last content of a source that is read repeatedly.
#[derive(Clone, Debug)]
pub struct LastRead<T>(Option<T>);

// === impl LastRead ===

impl<T: Clone + PartialEq> LastRead<T> {
    /// Starts with the first content.
    pub const fn new(first: T) -> Self {
        Self(Some(first))
    }

    /// The content if it differs from the last one; of successive errors, only the first.
    pub fn change<E>(&mut self, read: Result<T, E>) -> Option<Result<T, E>> {
        let now = read.as_ref().ok();
        if self.0.as_ref() == now {
            return None;
        }
        self.0 = now.cloned();
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_read_up_to_its_bound_and_a_device_is_not_read_to_its_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, "12345").expect("it can be written");
        assert_eq!(read(&path, 5).expect("it fits"), b"12345");
        let error = read(&path, 4).expect_err("it does not fit");
        assert_eq!(error.to_string(), "is larger than 4 bytes");
        let endless = read(Path::new("/dev/zero"), 1 << 10).expect_err("it has no end");
        assert_eq!(endless.kind(), io::ErrorKind::InvalidInput);
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo runs").success());
        let error = read(&pipe, 5).expect_err("nobody writes to it");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn change_is_seen_once_and_so_is_a_failure() {
        let mut last = LastRead::new(1);
        assert_eq!(last.change(Ok::<_, ()>(1)), None);
        assert_eq!(last.change(Ok::<_, ()>(2)), Some(Ok(2)));
        assert_eq!(last.change(Err("away")), Some(Err("away")));
        assert_eq!(last.change(Err("away still")), None);
        assert_eq!(last.change(Ok::<_, ()>(2)), Some(Ok(2)), "it is back");
    }
}
