//! The programs of this workspace, as built.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use crate::running::output_of;

/// Returns the folder of the programs, which are built once for all tests of this process.
///
/// The programs belong to other packages, for which cargo gives a test no path. So they are built into the target folder and
/// profile of this test.
///
/// # Panics
/// With the output of cargo, if they do not build.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(build)
}

/// Returns the root of the checkout.
///
/// # Panics
/// Never: a package is in its checkout.
pub fn checkout() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the package lies in the checkout")
}

/// Returns a shell in the checkout that runs a script and ends at its first failure. These folders come first in its path, and the
/// programs of the workspace next.
///
/// # Panics
/// If a folder has a colon in its name.
pub fn shell(script: &str, folders: &[&Path]) -> Command {
    let before = env::var_os("PATH").unwrap_or_default();
    let first = folders.iter().copied().chain([folder()]);
    let path = env::join_paths(first.map(Path::to_owned).chain(env::split_paths(&before)));
    let mut shell = Command::new("bash");
    shell
        .args(["-euo", "pipefail", "-c", script])
        .current_dir(checkout())
        .env("PATH", path.expect("no folder has a colon"));
    shell
}

fn build() -> PathBuf {
    let test = env::current_exe().expect("a process knows its program");
    let profile = test
        .ancestors()
        .nth(2)
        .expect("cargo puts tests into target/<profile>/deps");
    let mut target = profile.parent().expect("the profile lies in the target");
    // If cargo has a target machine, the machine has a separate folder.
    if env::var_os("CARGO_BUILD_TARGET").as_deref() == target.file_name() {
        target = target.parent().expect("the machine lies in the target");
    }
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(checkout())
        .args(["build", "--quiet", "--locked", "--workspace", "--bins"])
        .env("CARGO_TARGET_DIR", target);
    // Cargo sets these for this test. They would rerun the build scripts that read them, here and in the next manual build.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_MANIFEST_") || text.starts_with("CARGO_PKG_") {
            cargo.env_remove(&name);
        }
    }
    if cfg!(debug_assertions) {
        cargo.args(["--profile", "test"]);
    } else {
        // As shipped.
        cargo.args(["--release", "--no-default-features"]);
    }
    output_of(&mut cargo);
    profile.to_owned()
}
