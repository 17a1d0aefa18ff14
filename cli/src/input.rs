//! Files of objects, as kubectl prints them.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use decree_agent::manifest::{self, Document, ManifestError};
use thiserror::Error;

use crate::exit::{Exit, Failure};

/// Why files cannot be used.
#[derive(Debug, Error)]
pub(crate) enum InputError {
    #[error("{}: cannot be read: {source}", file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("{}: is not UTF-8", file.display())]
    Encoding { file: PathBuf },
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// Reads all objects of all files, one after the other; `-` is standard input.
pub(crate) fn read(files: &[PathBuf], stdin: &mut dyn Read) -> Result<Vec<Document>, InputError> {
    let mut documents = Vec::new();
    for file in files {
        let bytes = bytes(file, stdin).map_err(|source| InputError::Read {
            file: file.clone(),
            source,
        })?;
        let text =
            String::from_utf8(bytes).map_err(|_| InputError::Encoding { file: file.clone() })?;
        documents.extend(manifest::open(file, &text)?);
    }
    Ok(documents)
}

fn bytes(file: &Path, stdin: &mut dyn Read) -> io::Result<Vec<u8>> {
    if file != Path::new("-") {
        return fs::read(file);
    }
    let mut bytes = Vec::new();
    stdin.read_to_end(&mut bytes)?;
    Ok(bytes)
}

// === impl InputError ===

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        let hint = match &error {
            InputError::Read { .. } => "use a readable file, or - for standard input",
            InputError::Encoding { .. } | InputError::Manifest(_) => {
                "use the output of: kubectl get rs,pods -o json"
            }
        };
        Self::new(Exit::Usage, error.to_string()).hint(hint)
    }
}
