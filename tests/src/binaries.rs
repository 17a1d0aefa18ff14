//! The programs of this workspace, built as they are.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// Returns the folder of the programs, which are built once for all tests of this process.
///
/// They are other packages' programs, for which cargo tells a test no path; so they are built into the folder that this
/// test comes from, in its profile.
///
/// # Panics
/// With what cargo says, where they do not build.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(build)
}

/// Returns the root of the checkout.
///
/// # Panics
/// Never: a package lies in its checkout.
#[must_use]
pub fn checkout() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the package lies in the checkout")
}

fn build() -> PathBuf {
    let test = env::current_exe().expect("a process knows its program");
    let profile = test
        .ancestors()
        .nth(2)
        .expect("cargo puts tests into target/<profile>/deps");
    let mut target = profile.parent().expect("the profile lies in the target");
    // Where cargo was told which machine to build for, that has a folder of its own.
    if env::var_os("CARGO_BUILD_TARGET").as_deref() == target.file_name() {
        target = target.parent().expect("the machine lies in the target");
    }
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(checkout())
        .args(["build", "--quiet", "--locked", "--workspace", "--bins"])
        .env("CARGO_TARGET_DIR", target);
    // Cargo sets these for this test; build scripts that look at them would run again, here and in the next build by hand.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_MANIFEST_") || text.starts_with("CARGO_PKG_") {
            cargo.env_remove(&name);
        }
    }
    if cfg!(debug_assertions) {
        cargo.args(["--profile", "test"]);
    } else {
        // As they are shipped.
        cargo.args(["--release", "--no-default-features"]);
    }
    let output = cargo.output().expect("cargo can be started");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo build failed:\n{told}");
    profile.to_owned()
}
