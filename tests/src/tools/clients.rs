//! The clients and examples in other languages, built with their own tools.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use super::{installed_once, or_skip, python, run};
use crate::binaries;

tools! {
    /// Returns the folder of the programs of examples/go, which are built.
    go_examples, "Go", installed_once("go-examples", |_| {
        run(Command::new("go").arg("version")).map(|()| build_go_examples())
    });
    /// Returns the folder of the programs of examples/typescript, which are built with what they need.
    typescript_examples, "Node", installed_once("typescript-examples", |_| {
        run(Command::new("npm").arg("--version")).map(|()| build_typescript_examples())
    });
    /// Returns the folder of examples/java, which is built with what it needs.
    java_examples, "Java with Maven", installed_once("java-examples", |_| {
        run(Command::new("mvn").arg("--version")).map(|()| build_java_examples())
    });
}

/// Returns the folder of the packages of clients/python, as pip installs them from a source distribution.
///
/// # Panics
/// With `CI` set, if there is no Python, or they do not build.
pub fn python_client() -> Option<&'static Path> {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let python = python()?;
    Some(FOLDER.get_or_init(|| build_python_client(python)))
}

fn build_go_examples() -> PathBuf {
    let folder = built_clients().join("go");
    let built = run(Command::new("go")
        .current_dir(binaries::checkout().join("examples/go"))
        .args(["build", "-o"])
        .arg(folder.join(""))
        .arg("./..."));
    built.expect("examples/go builds");
    folder
}

fn build_python_client(python: &Path) -> PathBuf {
    // The package would have the modules that an earlier checkout had.
    let _ = fs::remove_dir_all(built_clients().join("python"));
    let copy = copied("python", &["proto", "LICENSE", "clients/python"]);
    let (packages, sources) = (copy.join("packages"), copy.join("sources"));
    let build =
        "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])";
    let archived = run(Command::new(python)
        .current_dir(copy.join("clients/python"))
        .args(["-c", build])
        .arg(&sources));
    archived.expect("clients/python makes a source distribution");
    let mut archives = fs::read_dir(&sources).expect("it is there").flatten();
    let archive = archives.next().expect("it is there").path();
    let built = run(Command::new(python)
        .args("-m pip install --quiet --no-build-isolation --no-deps --target".split(' '))
        .args([&packages, &archive]));
    built.expect("clients/python builds");
    packages
}

fn build_typescript_examples() -> PathBuf {
    let copy = copied("typescript", &["buf.yaml", "proto", "examples/typescript"]);
    let folder = copy.join("examples/typescript");
    for arguments in [
        &["install", "--no-audit", "--no-fund"][..],
        &["run", "build"],
    ] {
        let built = run(Command::new("npm").current_dir(&folder).args(arguments));
        built.expect("examples/typescript builds");
    }
    folder.join("dist")
}

fn build_java_examples() -> PathBuf {
    let folder = copied("java", &["proto", "examples/java"]).join("examples/java");
    let mut maven = Command::new("mvn");
    maven.current_dir(&folder);
    let built = run(maven.args(["--quiet", "--batch-mode", "package"]));
    built.expect("examples/java builds");
    folder
}

/// Copies parts of the checkout, because some tools write files beside their output.
fn copied(language: &str, parts: &[&str]) -> PathBuf {
    let copy = built_clients().join(language);
    for part in parts {
        let to = copy.join(part);
        let folder = to.parent().expect("it is in the copy");
        fs::create_dir_all(folder).expect("the target can be written");
        // Sources that an earlier checkout had would be built too.
        let _ = fs::remove_dir_all(to.join("src"));
        let mut command = Command::new("cp");
        command
            .args(["-r", "-T"])
            .arg(binaries::checkout().join(part));
        run(command.arg(to)).expect("it can be copied");
    }
    copy
}

/// The folder of programs of other languages, beside Rust's.
fn built_clients() -> PathBuf {
    let folder = binaries::folder().join("clients");
    fs::create_dir_all(&folder).expect("the target can be written");
    folder
}
