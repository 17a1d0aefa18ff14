//! The programs of the last release, for what this version promises to work with.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use super::{installed_once, or_skip, output, run};
use crate::binaries;

const PROGRAMS: [&str; 2] = ["decree-server", "decree-agent"];

/// A release, and the folder with its server and agent.
#[derive(Debug)]
pub struct Released {
    /// The tag, such as `v0.1.0`.
    pub tag: String,
    /// Where `decree-server` and `decree-agent` are.
    pub folder: PathBuf,
}

/// Returns the programs of the last release before this commit: those of the newest tag `v*` in its history, other than of a
/// pre-release. They are built when they are first wanted, which takes minutes, and kept outside the checkout.
///
/// Without such a tag this says so, and returns nothing.
///
/// # Panics
/// With `CI` set, where they do not build.
pub fn released() -> Option<&'static Released> {
    static RELEASED: OnceLock<Result<Option<Released>, String>> = OnceLock::new();
    let find = || last_tag()?.map(build).transpose();
    let released = or_skip("the last release", RELEASED.get_or_init(find))?;
    if released.is_none() {
        // Written past the test runner's capture: who runs the tests should know what was left out.
        let _ = writeln!(
            io::stderr(),
            "notice: no tag v* is in the history of this commit, so no program of an earlier release is tried"
        );
    }
    released.as_ref()
}

/// Returns the tag of the last release. Sources without a repository, as those of an archive, have none.
fn last_tag() -> Result<Option<String>, String> {
    let checkout = binaries::checkout();
    if !checkout.join(".git").exists() {
        return Ok(None);
    }
    let mut git = Command::new("git");
    git.current_dir(checkout).args([
        "tag",
        "--list",
        "v[0-9]*",
        "--merged=HEAD",
        "--no-contains=HEAD",
        "--sort=-version:refname",
    ]);
    Ok(newest(&output(&mut git)?).map(str::to_owned))
}

/// Returns the first of some tags, newest first, that is no pre-release.
fn newest(tags: &str) -> Option<&str> {
    tags.lines().find(|tag| !tag.contains('-'))
}

fn build(tag: String) -> Result<Released, String> {
    let commit = format!("{tag}^{{commit}}");
    let mut git = Command::new("git");
    git.current_dir(binaries::checkout());
    let commit = output(git.args(["rev-parse", "--short=12", &commit]))?;
    let name = format!("released/{tag}-{}", commit.trim());
    let install = |cache: &Path| {
        let folder = cache.join(name);
        if !PROGRAMS.iter().all(|it| folder.join(it).is_file()) {
            build_into(&folder, &tag).map_err(|why| format!("{tag} does not build: {why}"))?;
        }
        Ok(folder)
    };
    let folder = installed_once("released", install)?;
    Ok(Released { tag, folder })
}

/// Builds the programs of a tag in a checkout of its own, of which only they are kept.
fn build_into(folder: &Path, tag: &str) -> Result<(), String> {
    let work = folder.with_extension("build");
    let text = |error: io::Error| error.to_string();
    if work.exists() {
        fs::remove_dir_all(&work).map_err(text)?;
    }
    fs::create_dir_all(&work).map_err(text)?;
    let source = work.join("source");
    run(Command::new("git")
        .args(["clone", "--quiet", "--shared", "--branch", tag])
        .args([binaries::checkout(), &source]))?;
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(&source)
        .args(["build", "--quiet", "--locked"])
        .args(PROGRAMS.map(|program| format!("--package={program}")))
        .args(PROGRAMS.map(|program| format!("--bin={program}")))
        .env("CARGO_TARGET_DIR", work.join("target"))
        .env("CARGO_INCREMENTAL", "0");
    // What cargo says of this test would be taken for what it says of them.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_") {
            cargo.env_remove(name);
        }
    }
    run(&mut cargo)?;
    fs::create_dir_all(folder).map_err(text)?;
    for program in PROGRAMS {
        let (from, beside) = (work.join("target/debug").join(program), work.join(program));
        fs::copy(from, &beside).map_err(text)?;
        fs::rename(beside, folder.join(program)).map_err(text)?;
    }
    fs::remove_dir_all(&work).map_err(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_release_is_no_pre_release() {
        assert_eq!(newest("v0.10.0-rc.1\nv0.9.0\nv0.2.0\n"), Some("v0.9.0"));
        assert_eq!(newest("v0.1.0-rc.1\n"), None);
        assert_eq!(newest(""), None);
    }
}
