//! Where the programs of a cluster are.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

/// How `tests/cluster/build` says that it has nothing to build with.
const NOTHING_TO_BUILD_WITH: i32 = 69;

/// Returns a file of `tests/cluster`.
pub(super) fn script(name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.join("cluster").join(name)
}

/// Returns the folder of etcd, kube-apiserver and perhaps kube-controller-manager, which may take minutes to build the first time.
///
/// `None` where there is nothing to build them with, after saying so.
///
/// # Panics
/// Where the build fails, and with `CI` set also where there is nothing to build with.
pub(super) fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(|| built(&[])).as_deref()
}

/// Returns the folder of kube-scheduler, which is built as [`folder`]'s programs are.
pub(super) fn scheduler() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(|| built(&["kube-scheduler"])).as_deref()
}

/// Returns the folder of the ReplicaSet controller that can have a fault, which is built as [`folder`]'s programs are.
pub(super) fn replicaset_controller() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER
        .get_or_init(|| built(&["replicaset-controller"]))
        .as_deref()
}

fn built(programs: &[&str]) -> Option<PathBuf> {
    let output = Command::new(script("build"))
        .args(programs)
        .stderr(Stdio::inherit())
        .output()
        .expect("bash can be started");
    let missing = output.status.code() == Some(NOTHING_TO_BUILD_WITH);
    if missing && env::var_os("CI").is_none_or(|it| it.is_empty()) {
        eprintln!("skipped: needs a real API server");
        return None;
    }
    assert!(output.status.success(), "tests/cluster/build failed");
    let folder = String::from_utf8(output.stdout).expect("the path is text");
    Some(folder.trim().into())
}
