//! The package for Python: what it costs, what it contains, and its README.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;
use tests::{
    binaries, fenced,
    running::{Running, Voice, output_of},
    tools,
};

use crate::world;

/// The number of random sessions, which take a few seconds.
const SEEDS: &str = "1000";

/// Runs a program in Python, and returns what it prints.
fn python(words: &[&str]) -> Option<String> {
    let (python, packages) = (tools::python()?, tools::python_client()?);
    let mut command = Command::new(python);
    command.env("PYTHONPATH", packages).args(words);
    let [printed, _] = output_of(&mut command);
    Some(printed)
}

const CLUSTERS: &str = "
from decree_client import Agent, AsyncAgent
class Whole:
    def create(self, owner, name): pass
    def delete(self, pod, reason): pass
class WithoutCreate:
    def delete(self, pod, reason): pass
class Async(Whole):
    async def delete(self, pod, reason): pass
class Generator(Whole):
    def write_status(self, replica_set, status): yield
for agent, cluster in [(Agent, Whole), (Agent, WithoutCreate), (Agent, Async), (Agent, Generator), (AsyncAgent, Async), (AsyncAgent, WithoutCreate)]:
    try:
        agent(cluster(), 'c')
        print('fine')
    except TypeError as error:
        print(error)
";

#[test]
fn cluster_with_a_wrong_method_is_a_type_error_at_once() {
    let Some(told) = python(&["-c", CLUSTERS]) else {
        return;
    };
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(
        lines,
        [
            "fine",
            "WithoutCreate.create: there is no such method",
            "Async.delete: it is async; use an AsyncAgent",
            "Generator.write_status: it is a generator function, whose call does nothing",
            "fine",
            "WithoutCreate.create: there is no such method",
        ]
    );
}

fn benchmark() -> String {
    let program = binaries::checkout().join("tests/clients/benchmark.py");
    program.to_string_lossy().into_owned()
}

/// Returns the numbers after a word in the output of the benchmark.
fn numbers(told: &str, word: &str) -> Vec<usize> {
    let mut words = told.split_whitespace().skip_while(|one| *one != word);
    words.next();
    words.map_while(|one| one.parse().ok()).collect()
}

#[test]
fn create_costs_the_same_for_a_hundred_things_and_for_ten_thousand() {
    let Some(told) = python(&[&benchmark(), "--lines"]) else {
        return;
    };
    let [few, many] = numbers(&told, "lines-a-create")[..] else {
        panic!("{told}")
    };
    assert!(many < few + few / 10, "{told}");
    assert!(few < 500, "{told}");
}

/// Indexes, outcomes, rounds and the order of changes, in random sessions without threads or time.
#[test]
fn rules_hold_whatever_calls_do_and_whenever() {
    let program = binaries::checkout().join("tests/clients/rules.py");
    let program = program.to_string_lossy();
    let Some(told) = python(&[&program, "0", SEEDS]) else {
        return;
    };
    assert_eq!(told, "kept\n");
}

#[test]
fn creates_start_no_thread_for_each_frame_or_call() {
    let server = world::server("127.0.0.1:0");
    let address = server.address("grpc");
    for more in [None, Some("--asyncio")] {
        let program = benchmark();
        let mut words = vec![&*program, &address, "--things", "500", "--creates", "1000"];
        words.extend(more);
        let Some(told) = python(&words) else { return };
        assert_eq!(numbers(&told, "creates"), [1000], "{told}");
        // The calls of a batch, the stream, and those of gRPC.
        assert!(numbers(&told, "threads")[0] < 50, "{told}");
    }
}

#[test]
fn package_has_types_a_readme_and_a_license() {
    let Some(packages) = tools::python_client() else {
        return;
    };
    let read = |name: &Path| fs::read_to_string(packages.join(name));
    read(Path::new("decree_client/py.typed")).expect("it says that it has types");
    assert!(!packages.join("decree").exists(), "another package of PyPI");
    let entries = fs::read_dir(packages).expect("it is there").flatten();
    let mut folders = entries.map(|entry| entry.path());
    let is_info = |path: &PathBuf| path.extension().is_some_and(|it| it == "dist-info");
    let info = folders.find(is_info).expect("it was installed");
    let metadata = read(&info.join("METADATA")).expect("it is there");
    assert!(
        metadata.contains("# Decree client for Python"),
        "{metadata}"
    );
    read(&info.join("licenses/LICENSE")).expect("it is there");
}

#[test]
fn package_is_typed_strictly() {
    let (Some(mypy), Some(packages)) = (tools::mypy(), tools::python_client()) else {
        return;
    };
    let config = binaries::checkout().join("clients/python/pyproject.toml");
    let mut command = Command::new(mypy);
    command.current_dir(packages).args(["-m", "mypy"]);
    command.args(["--cache-dir", "/dev/null", "--python-version", "3.10"]);
    command.args(["--package", "decree_client", "--config-file"]);
    output_of(command.arg(config));
}

#[test]
fn programs_of_the_readme_keep_files() {
    let (Some(python), Some(packages)) = (tools::python(), tools::python_client()) else {
        return;
    };
    let readme = fs::read_to_string(binaries::checkout().join("clients/python/README.md"));
    let blocks = fenced::blocks(&readme.expect("it is there"));
    let programs = blocks
        .iter()
        .filter_map(|block| Some((block.info.strip_prefix("python file=")?, &block.text)));
    let programs: Vec<_> = programs.collect();
    assert_eq!(programs.len(), 2, "with threads, and with asyncio");
    for (name, text) in programs {
        let server = world::server("127.0.0.1:0");
        let address = server.address("grpc");
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join(name), text).expect("there is room");
        let mut command = Command::new(python);
        command
            .current_dir(folder.path())
            .env("PYTHONPATH", packages)
            .args([name, &address]);
        let _agent = Running::start(command, Voice::Stderr);
        world::wait_until_converged(&address, 3);
        let files = fs::read_dir(folder.path().join("files"));
        assert_eq!(files.expect("it is there").count(), 3, "{name}");
    }
}
