//! The files of a folder of recordings, and the room that is left.

use std::{
    collections::VecDeque,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use server_core::Timestamp;

/// How the name of a recording ends. No other file of the folder is touched.
const EXTENSION: &str = "recording";
/// What a file takes at least, as file systems count: many small ones fill a disk, too.
const BLOCK: u64 = 4096;
/// The file that is locked while a server records here.
const LOCK: &str = ".lock";
/// A recording may use this part of all room, so that one busy session does not push out all others.
const SHARE: u64 = 4;

/// The recordings of a folder, oldest first, and how many bytes they may take together.
#[derive(Debug)]
pub(super) struct Ring {
    folder: PathBuf,
    bytes_max: u64,
    /// What all files take, those that are written included.
    bytes: u64,
    /// The files that have ended, with what they take.
    ended: VecDeque<(PathBuf, u64)>,
}

/// Locks a folder, which is made if need be. `None` if another process has it.
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

/// Returns the name of a session's recording: names sort by time.
pub(super) fn name(started: Timestamp, session_id: &str) -> String {
    let milliseconds = started.0.max(0) / 1_000_000;
    format!("{milliseconds:013}-{session_id}.{EXTENSION}")
}

/// Returns what a file of this length takes.
fn cost(length: u64) -> u64 {
    length.div_ceil(BLOCK).max(1).saturating_mul(BLOCK)
}

// === impl Ring ===

impl Ring {
    /// Finds the recordings that are there; the oldest go if they are too many for the bound.
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

    /// Returns how many bytes one recording may have.
    pub(super) const fn share(&self) -> u64 {
        self.bytes_max / SHARE
    }

    /// Begins a file. `None` if there is no room for it.
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

    /// Makes room for a file to grow; old files go for it. Returns whether there is.
    pub(super) fn grow(&mut self, from: u64, to: u64) -> bool {
        let more = cost(to) - cost(from);
        let is_room = self.make_room(more);
        if is_room {
            self.bytes += more;
        }
        is_room
    }

    /// Takes a file that has ended, and was as long as this when it was last given room.
    pub(super) fn end(&mut self, path: PathBuf, length: u64) {
        self.ended.push_back((path, cost(length)));
    }

    /// Removes the oldest that have ended until so many more fit, and returns whether they do.
    fn make_room(&mut self, more: u64) -> bool {
        while self.bytes.saturating_add(more) > self.bytes_max {
            let Some((path, bytes)) = self.ended.pop_front() else {
                return false;
            };
            if let Err(error) = fs::remove_file(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(file = %path.display(), %error, "old recording not removed");
                self.ended.push_front((path, bytes));
                return false;
            }
            self.bytes = self.bytes.saturating_sub(bytes);
        }
        true
    }
}
