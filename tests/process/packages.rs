//! The files by which package managers find the programs of a release, each read by the rules of its package manager.

use std::{env, fs, path::Path, process::Command};

use tempfile::TempDir;
use tests::{
    binaries,
    running::{Running, Voice, output_of},
    tools,
};

use crate::release::{self, MACHINE, release};

/// The download address of archives in the files.
const DOWNLOADS: &str = "https://github.com/decree-dev/decree/releases/download/v";

fn read(release: &Path, name: &str) -> String {
    fs::read_to_string(release.join(name)).expect("it is text")
}

#[test]
fn krew_installs_the_plugin_of_a_release() {
    let Some(release) = release() else { return };
    let (Some(krew), Some(kubectls)) = (tools::krew(), tools::kubectls()) else {
        return;
    };
    let mut server = Command::new("python3");
    server.args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0"]);
    server.arg("--directory").arg(release);
    let server = Running::start(server, Voice::Stdout);
    let address = server.wait_for("its address", |lines| {
        let line = lines.iter().find(|line| line.starts_with("Serving"))?;
        let (_, rest) = line.split_once('(')?;
        Some(rest.split_once("/)")?.0.to_owned())
    });
    let from = format!("{DOWNLOADS}{}", service::build_info::VERSION);
    let manifest = read(release, "decree.yaml");
    assert!(manifest.contains(&from), "{manifest}");
    let folder = TempDir::with_prefix("decree-krew-").expect("there is room");
    let here = folder.path().join("decree.yaml");
    fs::write(&here, manifest.replace(&from, &address)).expect("there is room");
    // krew installs the plugin of each machine, with its checksum and its files.
    let kubectl = kubectls[0].parent().expect("it is in a folder");
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = [krew, kubectl].map(Path::to_owned).into_iter();
    let path = env::join_paths(folders.chain(env::split_paths(&path))).expect("paths");
    let mut validate = Command::new(krew.join("validate-krew-manifest"));
    validate.arg("-manifest").arg(&here).env("PATH", path);
    output_of(validate.env("HOME", folder.path()));
}

#[test]
fn homebrew_installs_the_programs_of_a_release() {
    let Some(release) = release() else { return };
    let Some(ruby) = tools::ruby() else { return };
    let prefix = TempDir::with_prefix("decree-homebrew-").expect("there is room");
    let mut install = Command::new(ruby);
    install.arg(binaries::checkout().join("tests/process/formula.rb"));
    install.arg(release.join("decree.rb")).arg(release);
    output_of(install.arg(prefix.path()));
    for file in ["bin/decree-agent", "share/man/man1/decree.1"] {
        assert!(prefix.path().join(file).is_file(), "{file}");
    }
}

#[test]
fn cargo_binstall_finds_the_programs_of_a_release() {
    let Some(release) = release() else { return };
    let folder = TempDir::with_prefix("decree-binstall-").expect("there is room");
    for package in ["cli", "agent", "server"] {
        let manifest = binaries::checkout().join(package).join("Cargo.toml");
        let manifest = fs::read_to_string(manifest).expect("it is text");
        let manifest: toml::Table = manifest.parse().expect("it is TOML");
        let told = &manifest["package"]["metadata"]["binstall"];
        let filled = |key: &str, binary: &str| {
            let text = told[key].as_str().expect("a text");
            text.replace("{ repo }", "https://github.com/decree-dev/decree")
                .replace("{ version }", service::build_info::VERSION)
                .replace("{ target-arch }", MACHINE)
                .replace("{ bin }", binary)
                .replace("{ binary-ext }", "")
        };
        let url = filled("pkg-url", "");
        let (at, archive) = url.rsplit_once('/').expect("a path");
        assert_eq!(at, format!("{DOWNLOADS}{}", service::build_info::VERSION));
        assert_eq!(told["pkg-fmt"].as_str(), Some("tgz"));
        let into = folder.path().join(package);
        fs::create_dir(&into).expect("there is room");
        release::unpacked(&release.join(archive), &into);
        for binary in manifest["bin"].as_array().expect("programs") {
            let name = binary["name"].as_str().expect("a name");
            assert!(into.join(filled("bin-dir", name)).is_file(), "{name}");
        }
    }
}
