//! Files that may be replaced while the process runs: read up to a maximum size, and compared by content.
//!
//! The kubelet replaces a volume by changing a symbolic link. inotify does not report that for the files behind the link, so the files
//! are read again and compared.

use std::{
    fs::OpenOptions,
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{task::spawn_blocking, time::timeout};

/// How long a read on another thread may take.
const PATIENCE: Duration = Duration::from_secs(5);

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

/// The last content of files that may change, with which each read is compared.
#[derive(Debug)]
pub struct Reloaded<T> {
    /// The last content; `None` after a read that failed.
    last: Mutex<Option<T>>,
    /// Held by the thread that reads. A file system that hangs must not block a second thread.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl<T: Clone + PartialEq + Send + 'static> Reloaded<T> {
    /// Starts with the first content.
    pub fn new(first: T) -> Self {
        Self {
            last: Mutex::new(Some(first)),
            turn: Arc::default(),
        }
    }

    /// Reads on another thread. The content if it differs from the last one; of successive errors, only the first. `failed` is the error of
    /// a file system that does not answer in time.
    pub async fn changed<E: Send + 'static>(
        &self,
        read: impl FnOnce() -> Result<T, E> + Send + 'static,
        failed: impl FnOnce(io::Error) -> E,
    ) -> Option<Result<T, E>> {
        let mut answer = None;
        if let Ok(turn) = Arc::clone(&self.turn).try_lock_owned() {
            let reading = spawn_blocking(move || {
                let _turn = turn;
                read()
            });
            answer = timeout(PATIENCE, reading).await.ok().and_then(Result::ok);
        }
        let late = || io::Error::new(io::ErrorKind::TimedOut, "its file system does not answer");
        let read = answer.unwrap_or_else(|| Err(failed(late())));
        let mut last = self.last.lock();
        let now = read.as_ref().ok();
        if last.as_ref() == now {
            return None;
        }
        *last = now.cloned();
        Some(read)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::time::advance;

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

    #[tokio::test]
    async fn change_is_seen_once_and_so_is_a_failure() {
        let file = Reloaded::new(1);
        for (read, seen) in [
            (Ok(1), None),
            (Ok(2), Some(Ok(2))),
            (Err("away"), Some(Err("away"))),
            (Err("away still"), None),
            // It is back.
            (Ok(2), Some(Ok(2))),
        ] {
            assert_eq!(file.changed(move || read, |_| "late").await, seen);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn file_system_that_hangs_is_a_failure_and_blocks_one_thread() {
        let file = Reloaded::new(1);
        let (answer, hangs) = mpsc::sync_channel(1);
        let hanging = file.changed(move || hangs.recv().map_err(|_| "gone"), |_| "late");
        let (seen, ()) = tokio::join!(hanging, advance(2 * PATIENCE));
        assert_eq!(seen, Some(Err("late")));
        let again = file.changed(|| Ok(2), |_| "late").await;
        assert_eq!(again, None, "it is not read again");
        drop(answer);
    }
}
