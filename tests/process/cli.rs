//! The command line in a shell: exit codes, colors, and completion from a running cluster.

use std::{
    fs,
    net::TcpListener,
    process::{Command, Output},
};

use tempfile::TempDir;
use tests::running::{Running, Voice};

use crate::{monitoring::eventually, world};

/// A policy that permits no queries.
const NOBODY: &str = r#"
[[grant]]
identities = ["sub:agent"]
role = "agent"
clusters = ["*"]
"#;
/// The number of ReplicaSets before the last namespace: more than two pages of 500.
const MANY: usize = 1_100;

/// `decree up` with an embedded cluster.
struct Up {
    running: Running,
    server: String,
    admin: String,
    agent: String,
}

impl Up {
    fn start(manifest: &str, replica_sets: usize) -> Self {
        let running = world::up(manifest, &["--agent-admin", "127.0.0.1:0"]);
        let grpc = running.address("grpc");
        let up = Self {
            server: grpc,
            admin: running.address("admin"),
            agent: running.address("agent-admin"),
            running,
        };
        let server = format!("http://{}", up.server);
        let names = ["get", "rs", "-o", "name", "--server", &server];
        eventually("all ReplicaSets", || {
            let output = decree(&names);
            (output.stdout.iter().filter(|it| **it == b'\n').count() == replica_sets).then_some(())
        });
        up
    }
}

fn decree(arguments: &[&str]) -> Output {
    let mut command = world::program("decree");
    command.args(arguments);
    command.output().expect("it is built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An address without a listener.
fn nowhere() -> String {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    port.expect("a port is free").to_string()
}

/// Commands that end with each code, some of each: words that begin with @ are addresses and files. The tests of the package run the
/// others.
const CASES: [(&str, i32); 22] = [
    ("get rs --server http://@SERVER", 0),
    ("get rs --server http://@LONELY", 1),
    ("get rs --no-such-flag", 2),
    ("get rs --server http://@GONE", 3),
    ("get rs --server http://@CLOSED", 4),
    ("get rs --server http://@SERVER --token-file @FILE", 2),
    ("watch --server http://@CLOSED", 4),
    ("diff --server http://@SERVER", 2),
    ("diff --server http://@CLOSED", 4),
    ("check --only server --server http://@SERVER", 0),
    ("check --only server --server http://@GONE", 1),
    ("demo resume web-5f6a8b --admin @ADMIN", 0),
    ("resume", 2),
    ("resume -n default --all", 2),
    ("demo scale web-5f6a8b 2 --admin @ADMIN", 0),
    ("demo scale nope 2 --admin @ADMIN", 1),
    ("demo scale web-5f6a8b 2 --admin @GONE", 3),
    ("demo scale web-5f6a8b 2 --admin @AGENT", 4),
    ("decide -f @FILE", 2),
    ("replay docs/examples/session.recording", 1),
    ("man @NEW", 0),
    ("man @FILE", 1),
];

#[test]
fn exit_codes_are_as_documented() {
    let up = Up::start("docs/examples/web.yaml", 2);
    let lonely = world::server("127.0.0.1:0");
    let folder = TempDir::new().expect("there is room");
    let policy = folder.path().join("policy.toml");
    fs::write(&policy, NOBODY).expect("it can be written");
    let mut closed = world::for_grpc_alone(world::program("decree-server"));
    closed.arg("--policy").arg(&policy);
    let closed = Running::start(closed, Voice::Stderr);
    let words = [
        ("@SERVER", up.server.clone()),
        ("@ADMIN", up.admin.clone()),
        ("@AGENT", up.agent.clone()),
        ("@LONELY", lonely.address("grpc")),
        ("@CLOSED", closed.address("grpc")),
        ("@GONE", nowhere()),
        ("@FILE", policy.display().to_string()),
        ("@NEW", folder.path().join("new").display().to_string()),
    ];
    let fill = |line: &str| {
        let filled = words.iter();
        filled.fold(line.to_owned(), |line, (word, text)| {
            line.replace(word, text)
        })
    };
    for (line, code) in CASES {
        check(&fill(line), code);
    }
    let elsewhere = decree(&["demo", "resume", "shop/web-5f6a8b", "--admin", &up.admin]);
    let said =
        "error: ReplicaSet shop/web-5f6a8b not found\nhint: it exists in namespace default\n";
    assert_eq!(text(&elsewhere.stderr), said);
    up.running.terminate();
    assert!(up.running.wait().success());
}

fn check(line: &str, code: i32) {
    let words: Vec<_> = line.split(' ').collect();
    let output = decree(&words);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "decree {line}: {said}");
    // Failed checks and differing decisions are the answer of these commands.
    let is_answer = ["check --only server", "replay docs"];
    let is_answer = is_answer.iter().any(|it| line.starts_with(it));
    let is_said = code == 0 || said.starts_with("error: ") || is_answer;
    assert!(is_said, "decree {line}: {said}");
}

#[test]
fn colors_are_for_terminals_that_want_them() {
    // With `script`, standard output and standard error are a terminal.
    let on_terminal = |variables: &[(&str, &str)], line: &str| {
        let program = world::program("decree");
        let program = program.get_program().to_string_lossy().into_owned();
        let mut command = Command::new("script");
        command.args(["-qec", &format!("{program} {line}"), "/dev/null"]);
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        command.envs(variables.iter().copied());
        text(&command.output().expect("util-linux has it").stdout)
    };
    let gone = nowhere();
    let lines = [
        format!("get rs --server http://{gone}"),
        format!("check --only server --server http://{gone}"),
        "get --help".to_owned(),
        "gte".to_owned(),
    ];
    for line in &lines {
        let colored = on_terminal(&[], line);
        assert!(colored.contains("\u{1b}["), "decree {line}: {colored}");
        for plain in [[("NO_COLOR", "1")], [("TERM", "dumb")]] {
            let said = on_terminal(&plain, line);
            assert!(!said.contains('\u{1b}'), "{plain:?} decree {line}: {said}");
        }
        let words: Vec<_> = line.split(' ').collect();
        let output = decree(&words);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(!said.contains('\u{1b}'), "decree {line}: {said}");
    }
}

/// The candidates of a shell for the last of these words, with this server in the environment.
fn offered(server: &str, words: &[&str]) -> Vec<String> {
    let mut command = world::program("decree");
    command
        .env("COMPLETE", "fish")
        .env("DECREE_SERVER", format!("http://{server}"))
        .args(["--", "decree"])
        .args(words);
    let output = command.output().expect("it is built");
    let text = text(&output.stdout);
    let words = text.lines().filter_map(|line| line.split('\t').next());
    let words = words.filter(|word| !word.starts_with('-'));
    words.map(str::to_owned).collect()
}

#[test]
fn completion_finds_names_beyond_the_first_page() {
    let folder = TempDir::new().expect("there is room");
    let manifest = folder.path().join("many.yaml");
    let mut many = String::new();
    for number in 0..MANY {
        many.push_str(&replica_set("billing", &format!("invoice-{number:04}"), 0));
    }
    many.push_str(&replica_set("payments", "ledger-5f6a8b", 2));
    many.push_str(&replica_set("default", "web-5f6a8b", 0));
    fs::write(&manifest, many).expect("it can be written");
    let up = Up::start(&manifest.display().to_string(), MANY + 2);
    for (words, expected) in [
        (&["explain", "pay"][..], "payments/ledger-5f6a8b"),
        (&["get", "rs", "payments/led"], "payments/ledger-5f6a8b"),
        (&["resume", "web"], "web-5f6a8b"),
        (&["explain", "billing/invoice-1099"], "billing/invoice-1099"),
        (&["get", "rs", "-n", "pay"], "payments"),
        (&["get", "rs", "--cluster", ""], "demo"),
    ] {
        assert_eq!(offered(&up.server, words), [expected], "{words:?}");
    }
    let billing = offered(&up.server, &["explain", "billing/"]);
    assert_eq!((billing.len(), &*billing[0]), (500, "billing/invoice-0000"));
    assert_eq!(offered(&nowhere(), &["explain", "pay"]), [""; 0]);
    up.running.terminate();
    assert!(up.running.wait().success());
}

fn replica_set(namespace: &str, name: &str, replicas: u32) -> String {
    format!(
        "---\n\
         {{\"apiVersion\": \"apps/v1\", \"kind\": \"ReplicaSet\", \"metadata\": {{\"namespace\": \"{namespace}\", \"name\": \"{name}\"}}, \
         \"spec\": {{\"replicas\": {replicas}, \"selector\": {{\"matchLabels\": {{\"app\": \"{name}\"}}}}, \
         \"template\": {{\"metadata\": {{\"labels\": {{\"app\": \"{name}\"}}}}, \"spec\": {{\"containers\": [{{\"name\": \"c\", \"image\": \"i\"}}]}}}}}}}}\n"
    )
}
