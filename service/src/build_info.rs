//! The version and commit of this build.
//!
//! The build scripts `deploy/release` and `deploy/image` pass the commit in `DECREE_COMMIT`. Reading it from the checkout would cause a new
//! build at each commit. It would also find another repository's commit if the sources are unpacked within one. Without the variable, the
//! commit is unknown. This is a separate package, so that a new commit rebuilds only the packages that show it.

use std::sync::LazyLock;

/// The version of all packages of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit: its first 12 digits, followed by `-dirty` if there were uncommitted changes, or `unknown`.
pub const COMMIT: &str = commit(option_env!("DECREE_COMMIT"));

/// Version and commit, such as `0.1.0 (commit 1f2e3d4c5b6a)`.
pub fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| format!("{VERSION} (commit {COMMIT})"));
    &TEXT
}

const fn commit(told: Option<&'static str>) -> &'static str {
    match told {
        Some(told) if !told.is_empty() => told,
        Some(_) | None => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_is_what_the_builder_told() {
        for told in ["0123456789ab", "0123456789ab-dirty"] {
            assert_eq!(commit(Some(told)), told);
        }
        assert_eq!((commit(None), commit(Some(""))), ("unknown", "unknown"));
        assert_eq!(text(), format!("{VERSION} (commit {COMMIT})"));
    }
}
