//! The files of a release: two identical builds, with their checksums, and their programs at work.
//!
//! The tests use the programs that are built for tests, unless `DECREE_RELEASE` names a folder with the programs of a real
//! release.

use std::{
    collections::BTreeSet,
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use serde_json::Value;
use tempfile::TempDir;
use tests::{
    binaries,
    running::{Running, Voice, output_of, until_found},
    tools,
};

use crate::world;

/// The programs of a release.
pub(crate) const PROGRAMS: [&str; 4] = [
    "decree",
    "decree-agent",
    "decree-conformance",
    "decree-server",
];

/// This machine, and another target of releases, with its number in the header of a program.
pub(crate) const MACHINE: &str = env::consts::ARCH;
const OTHER: (&str, u16) = match MACHINE.as_bytes() {
    b"aarch64" => ("x86_64", 62),
    _ => ("aarch64", 183),
};

/// Writes programs of the other machine that consist of only their headers.
fn write_other_programs(folder: &Path) {
    let mut header = [0; 64];
    header[..6].copy_from_slice(b"\x7fELF\x02\x01");
    header[18..20].copy_from_slice(&OTHER.1.to_le_bytes());
    for name in PROGRAMS {
        fs::write(folder.join(name), header).expect("there is room");
    }
}

/// Runs the script on the programs that are built for tests, and on those of another machine.
fn make(folder: &Path) -> Output {
    let other = TempDir::with_prefix("decree-other-").expect("there is room");
    write_other_programs(other.path());
    let mut command = Command::new(tools::python().expect("it was looked for"));
    command
        .arg(binaries::checkout().join("deploy/release"))
        .arg(folder)
        .arg("--programs")
        .args([world::stripped(), other.path()])
        .args(["--dynamic", "--dirty", "--level", "1", "--beside", "go"]);
    // The tier `clients` builds the package of Python; here, it would be built twice.
    if let Some(mdbook) = tools::mdbook() {
        let folders = env::var_os("PATH").unwrap_or_default();
        let own = mdbook.parent().expect("it is in a folder").to_owned();
        let folders = [own].into_iter().chain(env::split_paths(&folders));
        command
            .env("PATH", env::join_paths(folders).expect("paths"))
            .arg("site");
    }
    command.output().expect("it was found")
}

/// Whether the release is a real one, with the packages of both clients.
fn is_real() -> bool {
    env::var_os("DECREE_RELEASE").is_some()
}

/// The version text of its programs: the named commit of a real release, or the commit of this test build.
pub(crate) fn text_of(release: &Path) -> String {
    if !is_real() {
        return service::build_info::text().to_owned();
    }
    let provenance = fs::read_to_string(release.join("PROVENANCE.txt")).expect("it is there");
    let mut commits = provenance
        .lines()
        .filter_map(|line| line.strip_prefix("commit:    "));
    let commit = commits.next().expect("it names the commit");
    format!(
        "{} (commit {})",
        service::build_info::VERSION,
        &commit[..12]
    )
}

/// The folder of a release. `None` without tools to make one.
pub(crate) fn release() -> Option<&'static Path> {
    static RELEASE: OnceLock<Option<(PathBuf, Option<TempDir>)>> = OnceLock::new();
    let made = RELEASE.get_or_init(|| {
        if let Some(folder) = env::var_os("DECREE_RELEASE") {
            return Some((folder.into(), None));
        }
        tools::python()?;
        let folder = TempDir::with_prefix("decree-release-").expect("there is room");
        let output = make(folder.path());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        Some((folder.path().to_owned(), Some(folder)))
    });
    made.as_ref().map(|(folder, _)| folder.as_path())
}

/// The one file of a release with this ending.
pub(crate) fn file(release: &Path, end: &str) -> PathBuf {
    let files = fs::read_dir(release).expect("it is a folder").flatten();
    let mut found = files.map(|file| file.path());
    let found = found.find(|path| path.to_string_lossy().ends_with(end));
    found.unwrap_or_else(|| panic!("no {end} in {}", release.display()))
}

/// The archive of the programs for a machine.
fn programs_of(release: &Path, machine: &str) -> PathBuf {
    file(release, &format!("-{machine}-linux.tar.gz"))
}

/// Unpacks an archive, and returns the one folder in it.
pub(crate) fn unpacked(archive: &Path, into: &Path) -> PathBuf {
    let mut tar = Command::new("tar");
    output_of(tar.arg("-xzf").arg(archive).arg("-C").arg(into));
    let mut entries = fs::read_dir(into).expect("it is a folder").flatten();
    entries.next().expect("it has a folder").path()
}

#[test]
fn checksums_are_those_of_the_files_and_of_all_of_them() {
    let Some(release) = release() else { return };
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--strict", "--quiet", "SHA256SUMS"]);
    output_of(check.current_dir(release));
    let sums = fs::read_to_string(release.join("SHA256SUMS")).expect("it is there");
    let names = sums.lines().filter_map(|line| line.split("  ").nth(1));
    let summed: BTreeSet<_> = names.map(str::to_owned).collect();
    let files = fs::read_dir(release).expect("it is a folder").flatten();
    let names = files.map(|file| file.file_name().into_string().expect("it is text"));
    let there: BTreeSet<_> = names.filter(|name| name != "SHA256SUMS").collect();
    assert_eq!(there, summed);
    let packages = if is_real() { 3 } else { 1 };
    let site = usize::from(is_real() || tools::mdbook().is_some());
    let archives = summed.iter().filter(|name| name.ends_with("-linux.tar.gz"));
    let machines = archives.count();
    assert!(machines == 2 || is_real(), "{summed:?}");
    let expected = 6 + 2 * machines + packages + site;
    assert_eq!(summed.len(), expected, "{summed:?}");
}

#[test]
fn release_made_twice_is_the_same() {
    // A caller makes a real release twice, from two folders.
    if is_real() {
        return;
    }
    let Some(release) = release() else { return };
    let again = TempDir::with_prefix("decree-release-").expect("there is room");
    assert!(make(again.path()).status.success());
    let sums = |folder: &Path| fs::read_to_string(folder.join("SHA256SUMS")).expect("it is there");
    assert_eq!(sums(release), sums(again.path()));
    let refused = make(again.path());
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("is not empty"),
        "{said}"
    );
}

#[test]
fn programs_of_a_release_run_the_demo_and_a_session() {
    let Some(release) = release() else { return };
    let folder = TempDir::with_prefix("decree-unpacked-").expect("there is room");
    let programs = unpacked(&programs_of(release, MACHINE), folder.path());
    let program = |name: &str| {
        let mut command = Command::new(programs.join(name));
        command.current_dir(folder.path());
        command
    };
    for name in PROGRAMS {
        let output = program(name).arg("--version").output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, format!("{name} {}\n", text_of(release)));
    }
    output_of(program("decree").args(["demo", "--fast"]));

    let server = world::for_grpc_alone(program("decree-server"));
    let server = Running::start(server, Voice::Stderr);
    let address = format!("http://{}", server.address("grpc"));
    let mut agent = program("decree-agent");
    agent.args(["--cluster", "fake", "--admin", "off"]);
    agent.args(["--server", &address, "--manifest"]);
    agent.arg(binaries::checkout().join("docs/examples/web.yaml"));
    let _agent = Running::start(agent, Voice::Stderr);
    until_found("a ReplicaSet in sync", || {
        let mut get = program("decree");
        get.args(["get", "replicasets", "-o", "json", "--server", &address]);
        let output = get.output().expect("it runs");
        let sets: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let states = sets["replicaSets"].as_array().into_iter().flatten();
        let synced = states.filter(|set| set["state"] == "REPLICA_SET_STATE_IN_SYNC");
        (synced.count() > 0).then_some(()).ok_or(output)
    });
}

#[test]
fn release_for_another_machine_has_its_programs_and_the_same_pages() {
    let Some(release) = release() else { return };
    let of_other = format!("-{}-image.tar", OTHER.0);
    let entries = fs::read_dir(release).expect("it is a folder").flatten();
    let is_there = |name: &OsStr| name.to_string_lossy().ends_with(&of_other);
    if !entries
        .map(|entry| entry.file_name())
        .any(|it| is_there(&it))
    {
        assert!(is_real(), "no {of_other}");
        tools::notice(&format!(
            "notice: this release has no programs for {}",
            OTHER.0
        ));
        return;
    }
    let folder = TempDir::with_prefix("decree-unpacked-").expect("there is room");
    let [own, other] = [MACHINE, OTHER.0].map(|machine| {
        let into = folder.path().join(machine);
        fs::create_dir(&into).expect("there is room");
        unpacked(&programs_of(release, machine), &into)
    });
    let page = |programs: &Path| fs::read(programs.join("man/man1/decree.1")).expect("it is there");
    assert_eq!(page(&own), page(&other));
    let server = fs::read(other.join("decree-server")).expect("it is there");
    assert_eq!(server[18..20], OTHER.1.to_le_bytes());

    let image = folder.path().join("image");
    fs::create_dir(&image).expect("there is room");
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(file(release, &of_other));
    output_of(tar.arg("-C").arg(&image));
    let index = fs::read(image.join("index.json")).expect("it is there");
    let index: Value = serde_json::from_slice(&index).expect("it is JSON");
    let architecture = &index["manifests"][0]["platform"]["architecture"];
    assert_eq!(architecture == "arm64", OTHER.0 == "aarch64");
    if is_real() {
        run_under_emulation(&other);
    }
}

/// Runs the demo of another machine, if an emulator exists.
fn run_under_emulation(programs: &Path) {
    let mut demo = Command::new(format!("qemu-{}", OTHER.0));
    demo.arg(programs.join("decree")).args(["demo", "--fast"]);
    match demo.output() {
        Ok(demo) => {
            let said = String::from_utf8_lossy(&demo.stderr);
            assert!(demo.status.success(), "{said}");
        }
        Err(error) => tools::notice(&format!(
            "notice: programs for {} are not run: {error}",
            OTHER.0
        )),
    }
}

#[test]
fn completions_pages_and_chart_of_a_release_are_those_of_the_checkout() {
    let Some(release) = release() else { return };
    let folder = TempDir::with_prefix("decree-unpacked-").expect("there is room");
    let programs = unpacked(&programs_of(release, MACHINE), folder.path());
    for shell in ["bash", "fish", "zsh"] {
        let script = fs::read(programs.join(format!("completions/decree.{shell}")));
        assert!(!script.expect("it is there").is_empty(), "{shell}");
    }
    for page in ["decree.1", "decree-decide.1", "decree-up.1"] {
        let page = fs::read_to_string(programs.join("man/man1").join(page));
        assert!(page.expect("it is there").contains(".SH SYNOPSIS"));
    }
    let notice = fs::read_to_string(programs.join("NOTICE.txt")).expect("it is there");
    let texts = [
        "tonic 0.",
        "The above copyright notice and this permission notice shall be",
    ];
    assert!(texts.iter().all(|it| notice.contains(it)), "{notice}");
    let Some(helm) = tools::helm() else { return };
    let rendered = |chart: &Path| {
        let mut command = Command::new(helm.join("helm"));
        command.args(["template", "decree"]).arg(chart);
        let values = "customResource=true,monitoring.alerts=true,topology=separate";
        command.args(["--set", values]).env("HOME", folder.path());
        let [rendered, _] = output_of(&mut command);
        rendered
    };
    let released = rendered(&file(release, "-chart.tgz"));
    assert!(released == rendered(&binaries::checkout().join("deploy/helm/decree")));
}

/// The names of the files in an archive.
fn content(archive: &Path) -> String {
    let is_zip = archive.extension().is_some_and(|it| it == "whl");
    let mut list = if is_zip {
        Command::new("python3")
    } else {
        Command::new("tar")
    };
    list.args(if is_zip {
        &["-m", "zipfile", "-l"][..]
    } else {
        &["-tzf"]
    });
    let [names, _] = output_of(list.arg(archive));
    names
}

/// The packages: the end of the file's name, its start, a stub in it and the agent.
const PACKAGES: &str = "\
.tar.gz client-go /decree/v1/batch.pb.go /agent/agent.go
-none-any.whl decree_client decree_client/v1/batch_pb2.py decree_client/agent.py
.tar.gz decree_client /proto/decree/v1/batch.proto /decree_client/agent.py";

#[test]
fn packages_of_a_release_have_the_stubs_and_the_agent() {
    let Some(release) = release() else { return };
    for row in PACKAGES.lines().take(if is_real() { 3 } else { 1 }) {
        let cells: Vec<_> = row.split_whitespace().collect();
        let [end, start, stub, agent] = cells[..] else {
            panic!("{row}")
        };
        let names = fs::read_dir(release).expect("it is a folder").flatten();
        let mut names = names.map(|file| file.file_name().to_string_lossy().into_owned());
        let is_it = |name: &String| {
            let middle = name.strip_suffix(end);
            name.contains(start)
                && middle.is_some_and(|it| {
                    it.ends_with(service::build_info::VERSION) || it.ends_with("-py3")
                })
        };
        let name = names
            .find(is_it)
            .unwrap_or_else(|| panic!("no {start}…{end}"));
        let content = content(&release.join(&name));
        assert!(
            content.contains(stub) && content.contains(agent),
            "{name}: {content}"
        );
    }
}

#[test]
fn site_of_a_release_has_the_documents() {
    let Some(release) = release() else { return };
    if !is_real() && tools::mdbook().is_none() {
        return;
    }
    let content = content(&file(release, "-site.tar.gz"));
    for page in [
        "/index.html",
        "/errors.html",
        "/api.html",
        "/decisions/index.html",
    ] {
        assert!(content.contains(page), "{page}");
    }
}

#[test]
fn list_of_materials_is_cyclonedx_and_names_what_the_programs_use() {
    let Some(release) = release() else { return };
    let list = file(release, ".cdx.json");
    let text = fs::read_to_string(&list).expect("it is there");
    let materials: Value = serde_json::from_str(&text).expect("it is JSON");
    let components = materials["components"].as_array().expect("it has some");
    let names: BTreeSet<_> = components
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    for (name, used) in [
        ("tonic", true),
        ("kube", true),
        ("decree-core", true),
        ("proptest", false),
        ("criterion", false),
        ("tests", false),
    ] {
        assert_eq!(names.contains(name), used, "{name}");
    }
    let python = tests::or_skip!(tools::cyclonedx());
    let validate = "import sys\n\
        from cyclonedx.schema import SchemaVersion\n\
        from cyclonedx.validation.json import JsonStrictValidator\n\
        wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())\n\
        sys.exit(str(wrong) if wrong else 0)";
    output_of(Command::new(python).args(["-c", validate]).arg(&list));
}
