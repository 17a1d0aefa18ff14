//! Which build this is.
//!
//! `DECREE_COMMIT` tells the commit to the compiler, as `deploy/release` and `deploy/image` do. A build that looked for it in the checkout
//! would compile anew at each commit, and name another repository's where the sources are unpacked within one; so a build to which nobody
//! tells it says that it is not known. It is a package of its own so that another commit has only the packages compiled that show it.

use std::sync::LazyLock;

/// The version of all packages of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit: its first 12 digits, followed by `-dirty` where there were changes beside it, or `unknown`.
pub const COMMIT: &str = commit(option_env!("DECREE_COMMIT"));

const UNKNOWN: &str = "unknown";
const DIGITS: usize = 12;

/// Returns version and commit in one text, such as `0.1.0 (commit 1f2e3d4c5b6a)`.
#[must_use]
pub fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| format!("{VERSION} (commit {COMMIT})"));
    &TEXT
}

const fn commit(told: Option<&'static str>) -> &'static str {
    match told {
        Some(told) if !told.is_empty() => {
            assert!(
                is_commit(told.as_bytes()),
                "DECREE_COMMIT is not 12 hexadecimal digits, with or without -dirty"
            );
            told
        }
        Some(_) | None => UNKNOWN,
    }
}

const fn is_commit(told: &[u8]) -> bool {
    let Some((digits, rest)) = told.split_at_checked(DIGITS) else {
        return false;
    };
    let mut at = 0;
    while at < DIGITS {
        if !matches!(digits[at], b'0'..=b'9' | b'a'..=b'f') {
            return false;
        }
        at += 1;
    }
    matches!(rest, b"" | b"-dirty")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_is_what_the_builder_told() {
        for told in ["0123456789ab", "0123456789ab-dirty"] {
            assert_eq!(commit(Some(told)), told);
        }
        for told in [None, Some("")] {
            assert_eq!(commit(told), "unknown");
        }
    }

    #[test]
    fn what_is_no_commit_ends_the_build() {
        for told in [
            "0123456789a",
            "0123456789abc",
            "0123456789AB",
            "0123456789ab-",
            "main",
        ] {
            assert!(!is_commit(told.as_bytes()), "{told}");
        }
    }

    #[test]
    fn text_has_version_and_commit() {
        assert_eq!(text(), format!("{VERSION} (commit {COMMIT})"));
    }
}
