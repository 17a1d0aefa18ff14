//! The files of a folder of recordings, and the free space.

use std::{
    collections::VecDeque,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use decree_core::Timestamp;

/// The extension of recordings. Other files of the folder are not touched.
const EXTENSION: &str = "recording";
/// The minimum space of a file, as file systems count. Many small files fill a disk, too.
const BLOCK: u64 = 4096;
/// The file that is locked while a server records into the folder.
const LOCK: &str = ".lock";
/// A recording may use this part of all space, so that one busy session does not evict all other recordings.
const SHARE: u64 = 4;

/// The recordings of a folder, oldest first, and their maximum size.
#[derive(Debug)]
pub(super) struct Ring {
    folder: PathBuf,
    bytes_max: u64,
    /// The size of all files, open ones included.
    bytes: u64,
    /// The closed files, with their sizes.
    ended: VecDeque<(PathBuf, u64)>,
}

/// Locks a folder, and creates it if necessary. `None` if another process has locked it.
pub(super) fn lock(folder: &Path) -> io::Result<Option<File>> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    let file = options.open(folder.join(LOCK))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The file name of a session's recording. Names sort by time.
pub(super) fn name(started: Timestamp, session_id: &str) -> String {
    let milliseconds = started.0.max(0) / 1_000_000;
    format!("{milliseconds:013}-{session_id}.{EXTENSION}")
}

/// The space that a file of this length takes.
fn cost(length: u64) -> u64 {
    length.div_ceil(BLOCK).max(1).saturating_mul(BLOCK)
}

impl Ring {
    /// Finds the existing recordings, and deletes the oldest ones beyond the maximum size.
    pub(super) fn open(folder: PathBuf, bytes_max: u64) -> io::Result<Self> {
        let mut ended = Vec::new();
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            let metadata = entry.metadata()?;
            if metadata.is_file() && path.extension().is_some_and(|it| it == EXTENSION) {
                ended.push((path, cost(metadata.len())));
            }
        }
        ended.sort();
        let mut ring = Self {
            folder,
            bytes_max,
            bytes: ended.iter().map(|(_, bytes)| bytes).sum(),
            ended: ended.into(),
        };
        ring.make_room(0);
        Ok(ring)
    }

    /// The maximum size of one recording.
    pub(super) const fn share(&self) -> u64 {
        self.bytes_max / SHARE
    }

    /// Creates a file. `None` if there is no space for it.
    pub(super) fn create(&mut self, name: &str) -> io::Result<Option<(PathBuf, File)>> {
        if !self.make_room(BLOCK) {
            return Ok(None);
        }
        let path = self.folder.join(name);
        let mut options = OpenOptions::new();
        let file = options.create_new(true).append(true).mode(0o600);
        let file = file.open(&path)?;
        self.bytes += cost(0);
        Ok(Some((path, file)))
    }

    /// Makes space for a file to grow, by deleting old files. Returns `false` if that is not enough.
    pub(super) fn grow(&mut self, from: u64, to: u64) -> bool {
        let more = cost(to) - cost(from);
        let is_room = self.make_room(more);
        if is_room {
            self.bytes += more;
        }
        is_room
    }

    /// Takes a closed file, with the length for which it last got space.
    pub(super) fn end(&mut self, path: PathBuf, length: u64) {
        self.ended.push_back((path, cost(length)));
    }

    /// Deletes the oldest closed files until `more` bytes fit. Returns `false` if that is not enough.
    fn make_room(&mut self, more: u64) -> bool {
        while self.bytes.saturating_add(more) > self.bytes_max {
            let Some((path, bytes)) = self.ended.pop_front() else {
                return false;
            };
            if let Err(error) = fs::remove_file(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(peer = "all", file = %path.display(), %error, "old recording not removed");
                self.ended.push_front((path, bytes));
                return false;
            }
            self.bytes = self.bytes.saturating_sub(bytes);
        }
        true
    }
}
