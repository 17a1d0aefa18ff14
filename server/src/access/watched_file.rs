//! Files that may be replaced at any time.

use std::{
    convert::identity,
    io,
    path::{Path, PathBuf},
};

use service::{
    Fault,
    file::{self, Reloaded},
};

/// The maximum size of a file, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// A file of a `T`, read again when its content changes.
#[derive(Debug)]
pub(super) struct WatchedFile<T> {
    flag: &'static str,
    path: PathBuf,
    parse: fn(&Path, &[u8]) -> Result<T, Fault>,
    bytes: Reloaded<Vec<u8>>,
}

impl<T> WatchedFile<T> {
    pub(super) fn open(
        flag: &'static str,
        path: &Path,
        parse: fn(&Path, &[u8]) -> Result<T, Fault>,
    ) -> Result<(Self, T), Fault> {
        let bytes = file::read(path, BYTES_MAX).map_err(|error| unreadable(flag, path, error))?;
        let parsed = parse(path, &bytes)?;
        let file = Self {
            flag,
            path: path.to_owned(),
            parse,
            bytes: Reloaded::new(bytes),
        };
        Ok((file, parsed))
    }

    /// The content if it has changed, and the first of several equal errors.
    pub(super) async fn changed(&self) -> Option<Result<T, Fault>> {
        let path = self.path.clone();
        let read = move || file::read(&path, BYTES_MAX);
        let changed = self.bytes.changed(read, identity).await?;
        let changed = changed.map_err(|error| unreadable(self.flag, &self.path, error));
        Some(changed.and_then(|bytes| (self.parse)(&self.path, &bytes)))
    }
}

fn unreadable(flag: &str, path: &Path, source: io::Error) -> Fault {
    Fault::because(format!("{flag} {}", path.display()), source)
}
