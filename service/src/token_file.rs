//! A token in a file. The kubelet projects the file into a pod and replaces it before the token expires.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use http::{HeaderMap, HeaderValue, header};
use thiserror::Error;

use crate::file;

/// The maximum length of a token, in bytes. A server refuses longer ones.
const BYTES_MAX: usize = 8 << 10;
/// The maximum size of the file, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// A file with a token, which may be replaced at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFile(PathBuf);

/// A token. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// Why a file gives no token.
#[derive(Debug, Error)]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error("--token-file {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The file does not contain a token.
    #[error("--token-file {} must hold one token: printable ASCII without spaces, at most {BYTES_MAX} bytes", path.display())]
    NoToken {
        /// The file.
        path: PathBuf,
    },
}

impl TokenFile {
    /// The file is only read when a token is needed.
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Reads the current token.
    ///
    /// # Errors
    /// If the file cannot be read, or does not contain a token.
    pub fn read(&self) -> Result<Token, TokenFileError> {
        let path = || self.0.clone();
        let bytes = file::read(&self.0, FILE_BYTES_MAX).map_err(|source| TokenFileError::Read {
            path: path(),
            source,
        })?;
        let token = bytes.trim_ascii();
        let is_token =
            (1..=BYTES_MAX).contains(&token.len()) && token.iter().all(u8::is_ascii_graphic);
        match str::from_utf8(token) {
            Ok(token) if is_token => Ok(Token(token.to_owned())),
            Ok(_) | Err(_) => Err(TokenFileError::NoToken { path: path() }),
        }
    }
}

impl Token {
    /// Adds the token to the headers of a call, marked as sensitive.
    pub fn authorize(&self, headers: &mut HeaderMap) {
        let value = HeaderValue::try_from(format!("Bearer {}", self.0));
        let mut value = value.expect("a token is printable ASCII");
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn file(content: &[u8]) -> (tempfile::TempDir, TokenFile) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        fs::write(&path, content).expect("it can be written");
        (folder, TokenFile::new(&path))
    }

    #[test]
    fn token_is_read_without_the_line_end_and_never_shown() {
        let (_folder, file) = file(b"abc.def.ghi\n");
        let token = file.read().expect("a token");
        let mut headers = HeaderMap::new();
        token.authorize(&mut headers);
        assert_eq!(headers["authorization"], "Bearer abc.def.ghi");
        assert!(headers["authorization"].is_sensitive());
        assert_eq!(format!("{token:?}"), "Token(…)");
    }

    #[test]
    fn file_without_a_token_is_named_and_not_quoted() {
        for content in [
            &b""[..],
            b" \n",
            b"secret a\nsecret b",
            "sécret".as_bytes(),
            &[b'x'; 9000],
        ] {
            let (_folder, file) = file(content);
            let error = file.read().expect_err("no token").to_string();
            assert!(
                error.contains("must hold one token") && !error.contains("secret"),
                "{error}"
            );
        }
        let absent = TokenFile::new(Path::new("/nonexistent/token")).read();
        assert!(matches!(absent, Err(TokenFileError::Read { .. })));
    }
}
