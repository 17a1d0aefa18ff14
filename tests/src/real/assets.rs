//! The locations of the programs of a cluster.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use crate::tools;

/// The exit code of `tests/cluster/build` if the machine has no tools for a build.
const NOTHING_TO_BUILD_WITH: i32 = 69;

/// A file of `tests/cluster`.
pub(super) fn script(name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.join("cluster").join(name)
}

/// The folder of etcd, kube-apiserver and perhaps kube-controller-manager, whose first build may take minutes.
///
/// `None` without tools for a build, after a notice.
///
/// # Panics
/// If the build fails, and with `CI` set also without tools for a build.
pub(super) fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(|| built(&[])).as_deref()
}

/// The folder of kube-scheduler, built like the programs of [`folder`].
pub(super) fn scheduler() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(|| built(&["kube-scheduler"])).as_deref()
}

/// The folder of the ReplicaSet controller with optional faults, built like the programs of [`folder`].
pub(super) fn replicaset_controller() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER
        .get_or_init(|| built(&["replicaset-controller"]))
        .as_deref()
}

/// The folder of the programs of a cluster that serves Evictions, with their controllers, built like the programs of [`folder`].
pub(super) fn evictions() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| Some(built(&["evictions"])?.join("evictions")));
    folder.as_deref()
}

fn built(programs: &[&str]) -> Option<PathBuf> {
    let output = Command::new(script("build"))
        .args(programs)
        .stderr(Stdio::inherit())
        .output()
        .expect("bash can be started");
    let missing = output.status.code() == Some(NOTHING_TO_BUILD_WITH);
    if missing && env::var_os("CI").is_none_or(|it| it.is_empty()) {
        tools::notice("skipped: needs a real API server");
        return None;
    }
    assert!(output.status.success(), "tests/cluster/build failed");
    let folder = String::from_utf8(output.stdout).expect("the path is text");
    Some(folder.trim().into())
}
