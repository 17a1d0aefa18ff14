//! The programs of the last release, for the compatibility promises of this version.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use super::{installed_once, notice, or_skip, output, run};
use crate::binaries;

const PROGRAMS: [&str; 3] = ["decree-server", "decree-agent", "decree"];
/// The folder in which each release writes the number of its commit to `VERSION.commit`: not every clone has tags.
const COMMITS: &str = "tests/contract";

/// The files of a release for the cluster: its manifests and its chart.
const MANIFESTS: &str = "deploy";

/// A release, and the folder with its programs and manifests.
#[derive(Debug)]
pub struct Released {
    /// The tag, such as `v0.1.0`.
    pub tag: String,
    /// The folder with `decree-server`, `decree-agent`, `decree` and the folder `deploy`.
    pub folder: PathBuf,
}

/// The identity of a release: its tag, and the full number of its commit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    tag: String,
    commit: String,
}

/// Returns the programs and manifests of the last release: the commit in the newest file `tests/contract/VERSION.commit`. The first call
/// builds them, which takes minutes, and keeps them outside the checkout.
///
/// `None` with a notice, even with `CI` set, if the commit is missing and cannot be fetched, and was not built before: a shallow
/// clone has no history.
///
/// # Panics
/// With `CI` set, if they do not build.
pub fn released() -> Option<&'static Released> {
    static RELEASED: OnceLock<Result<Option<Released>, String>> = OnceLock::new();
    let released = or_skip(
        "the last release",
        RELEASED.get_or_init(|| provide(&last()?)),
    )?;
    if released.is_none() {
        notice(
            "notice: the commit of the last release is not in this clone and cannot be fetched, so its programs are not tried",
        );
    }
    released.as_ref()
}

fn last() -> Result<Name, String> {
    let text = |error: io::Error| error.to_string();
    let folder = binaries::checkout().join(COMMITS);
    let files = fs::read_dir(&folder).map_err(text)?.flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    let versions = names.filter_map(|name| name.strip_suffix(".commit").map(str::to_owned));
    let version = versions.max_by_key(|version| numbers(version));
    let version = version.ok_or_else(|| format!("{COMMITS} names no commit"))?;
    let commit = fs::read_to_string(folder.join(format!("{version}.commit"))).map_err(text)?;
    Ok(Name {
        tag: format!("v{version}"),
        commit: commit.trim().to_owned(),
    })
}

/// The programs of a release, built if possible and necessary.
fn provide(name: &Name) -> Result<Option<Released>, String> {
    let kept = format!("released/{}-{}", name.tag, &name.commit[..12]);
    let mut is_absent = false;
    let install = |cache: &Path| {
        let folder = cache.join(kept);
        let mut parts = PROGRAMS.iter().chain([&MANIFESTS]);
        let is_cached = parts.all(|part| folder.join(part).exists());
        is_absent = !is_cached && !is_here(&name.commit);
        if !is_cached && !is_absent {
            let built = build_into(&folder, &name.commit);
            built.map_err(|why| format!("{} does not build: {why}", name.tag))?;
        }
        Ok(folder)
    };
    let folder = installed_once("released", install)?;
    Ok((!is_absent).then(|| Released {
        tag: name.tag.clone(),
        folder,
    }))
}

/// Whether this clone has a commit; fetches it if necessary.
fn is_here(commit: &str) -> bool {
    let is_known = || {
        let object = format!("{commit}^{{commit}}");
        output(git().args(["cat-file", "-e", &object])).is_ok()
    };
    let fetch = || {
        let words = [
            "fetch",
            "--quiet",
            "--no-tags",
            "--depth=1",
            "origin",
            commit,
        ];
        // Nobody can answer a password prompt.
        output(git().args(words).env("GIT_TERMINAL_PROMPT", "0"))
    };
    is_known() || (fetch().is_ok() && is_known())
}

fn git() -> Command {
    let mut git = Command::new("git");
    git.current_dir(binaries::checkout()).stdin(Stdio::null());
    git
}

/// Builds the programs of a commit only from its files, and keeps only the programs and the manifests.
fn build_into(folder: &Path, commit: &str) -> Result<(), String> {
    let work = folder.with_extension("build");
    let text = |error: io::Error| error.to_string();
    if work.exists() {
        fs::remove_dir_all(&work).map_err(text)?;
    }
    let source = work.join("source");
    unpack(commit, &source)?;
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(&source)
        .args(["build", "--quiet", "--locked", "--workspace"])
        .args(PROGRAMS.map(|program| format!("--bin={program}")))
        .env("CARGO_TARGET_DIR", work.join("target"))
        .env("CARGO_INCREMENTAL", "0");
    // Cargo's variables for this test would affect the build.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_") {
            cargo.env_remove(name);
        }
    }
    run(&mut cargo)?;
    fs::create_dir_all(folder).map_err(text)?;
    let _ = fs::remove_dir_all(folder.join(MANIFESTS));
    fs::rename(source.join(MANIFESTS), folder.join(MANIFESTS)).map_err(text)?;
    for program in PROGRAMS {
        let (from, beside) = (work.join("target/debug").join(program), work.join(program));
        fs::copy(from, &beside).map_err(text)?;
        fs::rename(beside, folder.join(program)).map_err(text)?;
    }
    fs::remove_dir_all(&work).map_err(text)
}

/// Extracts the files of a commit to a folder.
fn unpack(commit: &str, folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let archive = folder.with_extension("tar");
    run(git()
        .args(["archive", "--output"])
        .arg(&archive)
        .arg(commit))?;
    run(Command::new("tar")
        .arg("-xf")
        .arg(&archive)
        .arg("-C")
        .arg(folder))?;
    fs::remove_file(archive).map_err(|error| error.to_string())
}

/// The numbers of a version, which define the order of versions.
fn numbers(version: &str) -> Vec<u64> {
    version.split('.').map_while(|it| it.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_the_order_of_their_numbers() {
        assert!(numbers("0.10.0") > numbers("0.9.2"));
    }

    #[test]
    fn commit_of_a_release_is_a_whole_number() {
        let name = last().expect("a file names it");
        assert_eq!(name.commit.len(), 40, "{name:?}");
        assert!(name.commit.bytes().all(|it| it.is_ascii_hexdigit()));
    }
}
