//! The image of a release, built without a container engine, read back without this project's code.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{binaries, tools};

use crate::{
    release::{MACHINE, file, release, text_of},
    world,
};

const PROGRAMS: [&str; 3] = ["decree", "decree-agent", "decree-server"];

fn unpack(tar: &Path, folder: &Path) {
    fs::create_dir(folder).expect("there is room");
    let mut command = Command::new("tar");
    command.arg("-xf").arg(tar).arg("-C").arg(folder);
    assert!(command.status().expect("there is tar").success());
}

/// A blob of an image layout; its name and size match its content.
fn blob(layout: &Path, descriptor: &Value) -> PathBuf {
    let digest = descriptor["digest"].as_str().expect("it is text");
    let name = digest.strip_prefix("sha256:").expect("it is one");
    let path = layout.join("blobs/sha256").join(name);
    assert_eq!(sha256(&path), name);
    let size = fs::metadata(&path).expect("it is there").len();
    assert_eq!(descriptor["size"], size);
    path
}

fn sha256(file: &Path) -> String {
    let output = Command::new("sha256sum").arg(file).output();
    let output = output.expect("there is sha256sum");
    let text = String::from_utf8(output.stdout).expect("it is text");
    text.split(' ').next().expect("it begins so").to_owned()
}

fn read(file: &Path) -> Value {
    let text = fs::read(file).expect("it is there");
    serde_json::from_slice(&text).expect("it is JSON")
}

#[test]
fn image_holds_the_programs_and_runs_as_nobody_in_particular() {
    let release = tests::or_skip!(release());
    let folder = TempDir::new().expect("there is room");
    let layout = folder.path().join("layout");
    unpack(&file(release, &format!("-{MACHINE}-image.tar")), &layout);
    let version = read(&layout.join("oci-layout"))["imageLayoutVersion"].take();
    assert_eq!(version, "1.0.0");
    let index = read(&layout.join("index.json"));
    let manifest = read(&blob(&layout, &index["manifests"][0]));
    let config = read(&blob(&layout, &manifest["config"]));
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"], json!(["/decree-server"]));
    assert_eq!(config["os"], "linux");
    let name = &index["manifests"][0]["annotations"]["io.containerd.image.name"];
    let deployed = concat!("ghcr.io/decree-dev/decree:", env!("CARGO_PKG_VERSION"));
    assert_eq!(*name, deployed);

    let [layer] = &manifest["layers"].as_array().expect("it is a list")[..] else {
        panic!("{manifest} has other than one layer")
    };
    let packed = folder.path().join("layer.tar.gz");
    fs::copy(blob(&layout, layer), &packed).expect("there is room");
    let unzipped = Command::new("gzip").arg("-d").arg(&packed).status();
    assert!(unzipped.expect("there is gzip").success());
    let tar = packed.with_extension("");
    let diff = format!("sha256:{}", sha256(&tar));
    assert_eq!(config["rootfs"]["diff_ids"], json!([diff]));
    let root = folder.path().join("root");
    unpack(&tar, &root);
    let mut names: Vec<_> = fs::read_dir(&root)
        .expect("it was unpacked")
        .map(|entry| entry.expect("it is there").file_name())
        .collect();
    names.sort();
    assert_eq!(names, PROGRAMS);
    for name in PROGRAMS {
        let output = Command::new(root.join(name)).arg("--version").output();
        let told = output.expect("it may be run").stdout;
        let told = String::from_utf8(told).expect("it is text");
        assert_eq!(told, format!("{name} {}\n", text_of(release)));
    }
}

#[test]
fn only_static_programs_are_taken() {
    let python = tests::or_skip!(tools::python());
    let folder = TempDir::new().expect("there is room");
    let tar = folder.path().join("refused.tar");
    let mut image = Command::new(python);
    image.arg(binaries::checkout().join("deploy/image"));
    image.arg(&tar).arg("--programs").arg(world::stripped());
    let refused = image.output().expect("it was found");
    assert!(!refused.status.success());
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("is not static"), "{told}");
    assert!(!tar.exists());
}

#[test]
fn containerfile_and_script_build_the_same_programs() {
    let read = |file: &str| {
        let text = fs::read_to_string(binaries::checkout().join(file));
        text.expect("it is there")
    };
    let (container, script) = (read("deploy/Containerfile"), read("deploy/image"));
    let flags = "-C target-feature=+crt-static -C strip=symbols";
    for name in PROGRAMS {
        assert!(container.contains(&format!("--bin {name}")), "{name}");
        assert!(script.contains(&format!("\"{name}\"")), "{name}");
    }
    assert!(container.contains(flags) && script.contains(flags));
}
