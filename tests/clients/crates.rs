//! The published crates, as packages: another package, outside of this workspace, has the dependencies and the program of each README.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use tests::{binaries, fenced, running::output_of};

use crate::world;

/// The crates, each with the place of its README in the package.
const CRATES: [(&str, &str); 2] = [
    ("decree-core", "README.md"),
    ("decree-api", "proto/README.md"),
];

/// The folder of the packages, where later runs build only what has changed.
const FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/crates");

#[test]
fn programs_of_the_crates_readmes_get_the_same_decision() {
    let outside = Path::new(FOLDER).join("outside");
    let programs = outside.join("src/bin");
    // Programs of earlier runs go.
    let _ = fs::remove_dir_all(&outside);
    fs::create_dir_all(&programs).expect("there is room");
    let (mut dependencies, mut patches) = (String::new(), String::new());
    for (name, readme) in CRATES {
        let package = packed(name);
        let readme = fs::read_to_string(package.join(readme)).expect("it is packed");
        let [toml, program] = &fenced::blocks(&readme)[..] else {
            panic!("the README of {name} has dependencies and a program")
        };
        let lines = toml.text.strip_prefix("[dependencies]\n");
        dependencies += lines.expect("it begins with dependencies");
        patches += &format!("{name} = {{ path = {package:?} }}\n");
        fs::write(programs.join(format!("{name}.rs")), &program.text).expect("there is room");
    }
    let manifest = format!(
        "[package]\nname = \"outside\"\nedition = \"2024\"\n[workspace]\n\
        [dependencies]\n{dependencies}[patch.crates-io]\n{patches}"
    );
    fs::write(outside.join("Cargo.toml"), manifest).expect("there is room");
    // Other crates have the versions of this workspace, which are on this machine.
    let lock = binaries::checkout().join("Cargo.lock");
    fs::copy(lock, outside.join("Cargo.lock")).expect("there is room");
    cargo(&outside, &["build", "--bins"]);

    let server = world::server("127.0.0.1:0");
    let address = format!("http://{}", server.address("grpc"));
    let [with_a_pod, without] = CRATES.map(|(name, _)| names(name, &address));
    assert_eq!(without.len(), 3);
    assert_eq!(with_a_pod, without[..2]);
}

/// Packs a crate and returns the unpacked folder.
fn packed(name: &str) -> PathBuf {
    let arguments = ["package", "--no-verify", "--allow-dirty", "--package"];
    cargo(binaries::checkout(), &[&arguments[..], &[name]].concat());
    let folder = Path::new(FOLDER).join("target/package");
    let package = format!("{name}-{}", env!("CARGO_PKG_VERSION"));
    let _ = fs::remove_dir_all(folder.join(&package));
    let mut tar = Command::new("tar");
    let archive = format!("{package}.crate");
    output_of(tar.current_dir(&folder).args(["-xzf", &archive]));
    folder.join(package)
}

fn cargo(folder: &Path, arguments: &[&str]) {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(folder).args(arguments);
    cargo.args(["--quiet", "--offline", "--target-dir"]);
    cargo.arg(Path::new(FOLDER).join("target"));
    output_of(&mut cargo);
}

/// Runs a program, and returns the names of the pods to create.
fn names(program: &str, server: &str) -> Vec<String> {
    let program = Path::new(FOLDER).join("target/debug").join(program);
    let output = Command::new(program).arg(server).output();
    let output = output.expect("it was built");
    let told = String::from_utf8_lossy(&output.stdout);
    let names = told.split('"').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}
