//! The build script that passes the commit of a build to the compiler.

use std::{fs, path::Path, process::Command};

use tempfile::TempDir;
use tests::{binaries, running::output_of, tools};

#[test]
fn builds_for_a_release_are_told_the_commit_and_nothing_else_is() {
    let python = tests::or_skip!(tools::python());
    let told = |root: &Path| {
        let mut script = Command::new(python);
        script
            .arg(root.join("deploy/release"))
            .arg("--environment")
            .env_remove("DECREE_COMMIT")
            .current_dir(root);
        let [said, _] = output_of(&mut script);
        let mut lines = said.lines().map(str::to_owned);
        lines.find_map(|line| Some(line.strip_prefix("export DECREE_COMMIT=")?.to_owned()))
    };
    let head = Command::new("git")
        .args(["rev-parse", "HEAD"])
        .current_dir(binaries::checkout())
        .output();
    let head = head.expect("there is git").stdout;
    if let Some(head) = head.get(..12).map(String::from_utf8_lossy) {
        let told = told(binaries::checkout()).expect("there is a commit");
        assert!(
            [head.to_string(), format!("{head}-dirty")].contains(&told),
            "{told} of {head}"
        );
    }
    // Unpacked sources have no commit, not even the commit of a repository around them.
    let around = TempDir::with_prefix("decree-sources-").expect("there is room");
    let sources = around.path().join("sources/deploy");
    fs::create_dir_all(&sources).expect("there is room");
    output_of(Command::new("git").arg("init").arg(around.path()));
    for name in ["release", "image", "clients", "packages"] {
        let script = binaries::checkout().join("deploy").join(name);
        fs::copy(script, sources.join(name)).expect("there is room");
    }
    assert_eq!(told(&around.path().join("sources")), None);
}
