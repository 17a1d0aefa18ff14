//! The pages for newcomers run as written: each in its order, on the cluster that the page itself starts. In their output, `…`
//! stands for any text.

use std::fs;

use tempfile::TempDir;
use tests::{
    admin, binaries,
    fenced::{self, Block},
    running::{Running, Voice},
};

use crate::world;

/// The beginning of a block that starts the cluster of a page.
const UP: &str = "decree up -f ";
/// The number of ReplicaSets in the cluster.
const REPLICA_SETS: usize = 2;
const CONSOLE: &str = "<http://127.0.0.1:8080/console/>";
const ELLIPSIS: char = '…';
/// The blocks that do not run here, by their beginning, and why.
const NOT_RUN: [(&str, &str); 2] = [
    ("git clone ", "builds for minutes what is built already"),
    (
        "decree demo\n",
        "is what the gate runs, as the README has it",
    ),
];
/// The dump that a page reads, and an object in it.
const DUMP: &str = "must-gather.tar.gz";
const DUMPED: &str = "apiVersion: apps/v1
kind: ReplicaSet
metadata:
  namespace: shop
  name: web-7d4b9c
  uid: 07dc930
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: 3466e9a, controller: true}]
spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}}}
";

fn follow(page: &str) {
    let text = fs::read_to_string(binaries::checkout().join(page)).expect("it is there");
    let mut up = None;
    for block in fenced::blocks(&text) {
        let place = format!("{page}:{}", block.line);
        match block.language() {
            "console" => {
                let up = up.as_ref();
                let up = up.unwrap_or_else(|| panic!("{place}: the page has started nothing"));
                run_all(&place, &block, up);
            }
            "sh" if block.text.contains(DUMP) => read_dump(&place, &block.text),
            "sh" if block.text.starts_with(UP) => up = Some(start(&block.text)),
            "sh" => {
                let is_run = block.test().is_some() || block.journey().is_some();
                let is_listed = NOT_RUN.iter().any(|(it, _)| block.text.starts_with(it));
                assert!(is_run != is_listed, "{place} is run, or in the list");
            }
            _ => {}
        }
    }
    let up = up.expect("the page starts a cluster");
    if text.contains(CONSOLE) {
        let page = admin::get(&up.address("admin"), "/console/").expect("it is served");
        assert!(page.contains("<title>Decree</title>"), "{page}");
    }
}

/// Starts a cluster as a page does, on free ports, and returns after everything has settled.
fn start(command: &str) -> Running {
    let mut words = command.split_whitespace();
    let mut up = world::program(words.next().expect("it is a command"));
    up.args(words);
    up.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    up.args(["--agent-admin", "off", "--log-level", "info"]);
    let up = Running::start(up, Voice::Stderr);
    world::wait_until_converged(&up.address("grpc"), REPLICA_SETS);
    up
}

/// Runs commands next to a dump of a cluster.
fn read_dump(place: &str, commands: &str) {
    let folder = TempDir::new().expect("there is room");
    let namespace = folder.path().join("must-gather/namespaces/shop/apps");
    fs::create_dir_all(&namespace).expect("there is room");
    fs::write(namespace.join("replicasets.yaml"), DUMPED).expect("there is room");
    let script = format!("tar -czf {DUMP} must-gather\n{commands}");
    let mut shell = binaries::shell(&script, &[]);
    let output = shell.current_dir(folder.path()).output();
    let output = output.expect("there is a shell");
    let printed = String::from_utf8_lossy(&output.stdout);
    let is_done = output.status.success() && printed.contains("0 active pods, 3 desired");
    assert!(is_done, "{place}: {output:?}");
}

/// Runs the commands of a block, and compares the output with the text below each.
fn run_all(place: &str, block: &Block, up: &Running) {
    let commands = block.text.split("$ decree ").skip(1);
    for command in commands {
        let (command, shown) = command.split_once('\n').unwrap_or((command, ""));
        let printed = run(&format!("decree {command}"), up);
        assert!(
            is_like(shown, &printed),
            "{place}: decree {command} shows\n{shown}and prints\n{printed}"
        );
    }
}

fn run(command: &str, up: &Running) -> String {
    // Some commands end with a code that is no failure.
    let output = binaries::shell(&format!("{{ {command}; }} 2>&1 || :"), &[])
        .env("DECREE_SERVER", format!("http://{}", up.address("grpc")))
        .env("DECREE_ADMIN", up.address("admin"))
        .output();
    let output = output.expect("there is a shell");
    String::from_utf8(output.stdout).expect("what is printed is text")
}

/// Whether each line is as shown. A line of only `…` at the end stands for all further lines.
fn is_like(shown: &str, printed: &str) -> bool {
    let mut lines = printed.lines();
    let mut patterns = shown.lines().peekable();
    while let Some(pattern) = patterns.next() {
        let is_open = pattern.chars().eq([ELLIPSIS]) && patterns.peek().is_none();
        if is_open {
            return true;
        }
        if !lines.next().is_some_and(|line| has_parts(pattern, line)) {
            return false;
        }
    }
    lines.next().is_none()
}

/// Whether a line has the parts of a pattern in order, with the first and the last at its ends.
fn has_parts(pattern: &str, line: &str) -> bool {
    let Some((first, others)) = pattern.split_once(ELLIPSIS) else {
        return pattern == line;
    };
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<_> = others.split(ELLIPSIS).collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else {
            return false;
        };
        rest = behind;
    }
    rest.ends_with(last)
}

#[test]
fn quickstart_runs_as_written() {
    follow("docs/quickstart.md");
}

#[test]
fn how_tos_run_as_written() {
    follow("docs/howto.md");
}

#[test]
fn page_of_the_console_runs_as_written() {
    follow("docs/console.md");
}

#[test]
fn gaps_stand_for_any_text_and_nothing_else_differs() {
    assert!(is_like("a … c\nb\n…\n", "a b c\nb\nd\ne\n"));
    assert!(is_like("a…b…\n", "axbx\n"));
    assert!(!is_like("a … c\n", "a b d\n"));
    assert!(!is_like("a\n", "a\nb\n"));
    assert!(!is_like("a\nb\n", "a\n"));
}
