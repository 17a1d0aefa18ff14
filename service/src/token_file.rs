//! A token in a file. The kubelet projects the file into a pod and replaces it before the token expires.

use std::path::Path;

use http::{HeaderMap, HeaderValue, header};

use crate::{Fault, file};

/// The maximum length of a token, in bytes. A server refuses longer ones.
const BYTES_MAX: usize = 8 << 10;
/// The maximum size of the file, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// A token, as the value of a header. `Debug` does not show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token(HeaderValue);

impl Token {
    /// Reads the current token of a file, which may be replaced at any time.
    ///
    /// # Errors
    /// If the file cannot be read, or does not contain a token.
    pub fn read(path: &Path) -> Result<Self, Fault> {
        let name = format!("--token-file {}", path.display());
        let bytes = match file::read(path, FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(source) => return Err(Fault::because(name, source)),
        };
        let token = bytes.trim_ascii();
        let is_token =
            (1..=BYTES_MAX).contains(&token.len()) && token.iter().all(u8::is_ascii_graphic);
        match HeaderValue::try_from([b"Bearer ", token].concat()) {
            Ok(mut value) if is_token => {
                value.set_sensitive(true);
                Ok(Self(value))
            }
            Ok(_) | Err(_) => Err(Fault::new(format!(
                "{name} must hold one token: printable ASCII without spaces, at most {BYTES_MAX} bytes"
            ))),
        }
    }

    /// Adds the token to the headers of a call, marked as sensitive.
    pub fn authorize(&self, headers: &mut HeaderMap) {
        headers.insert(header::AUTHORIZATION, self.0.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[allow(clippy::unwrap_in_result, reason = "a folder is always there")]
    fn read(content: &[u8]) -> Result<Token, Fault> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        fs::write(&path, content).expect("it can be written");
        Token::read(&path)
    }

    #[test]
    fn token_is_read_without_the_line_end_and_never_shown() {
        let token = read(b"abc.def.ghi\n").expect("a token");
        let mut headers = HeaderMap::new();
        token.authorize(&mut headers);
        assert_eq!(headers["authorization"], "Bearer abc.def.ghi");
        assert!(headers["authorization"].is_sensitive());
        assert_eq!(format!("{token:?}"), "Token(Sensitive)");
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
            let error = read(content).expect_err("no token").to_string();
            assert!(
                error.contains("must hold one token") && !error.contains("secret"),
                "{error}"
            );
        }
        let absent = Token::read(Path::new("/nonexistent/token")).expect_err("no file");
        assert_eq!(absent.to_string(), "--token-file /nonexistent/token");
    }
}
