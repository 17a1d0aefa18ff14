//! The commands in the documents print the documented output.

use std::{collections::BTreeSet, fs, process::Command};

use tests::{
    binaries,
    running::{Running, Voice},
    tools,
};

use crate::{console, world};

#[test]
fn calls_of_the_documents_answer_as_shown() {
    let grpcurl = tests::or_skip!(tools::grpcurl());
    let server = world::server("127.0.0.1:0");
    let address = server.address("grpc");
    let _agent = world::agent(&address);
    world::wait_until_converged(&address, 2);
    for step in console::steps("calls_of_the_documents_answer_as_shown") {
        step.run(&[grpcurl], &address);
    }
}

#[test]
fn decisions_of_the_documents_are_as_shown() {
    for step in console::steps("decisions_of_the_documents_are_as_shown") {
        step.run(&[binaries::folder()], "");
    }
}

/// Each program of a block starts, and an agent serves the embedded cluster of the documents.
#[test]
fn flags_of_the_documents_start_the_programs() {
    let server = world::server("127.0.0.1:0");
    let address = server.address("grpc");
    let manifest = binaries::checkout().join("docs/examples/web.yaml");
    for step in console::steps("flags_of_the_documents_start_the_programs") {
        for line in step.commands.lines() {
            let mut words = line.split_whitespace();
            let name = words.next().expect("a program");
            let flags: Vec<_> = words.collect();
            if name == "decree-server" {
                let mut command = world::for_grpc_alone(world::program(name));
                command.args(flags);
                Running::start(command, Voice::Stderr).address("grpc");
            } else {
                let agent = world::agent_set_up_with(&address, &manifest, &flags, &[]);
                world::wait_until_converged(&address, 2);
                agent.kill();
                world::wait_for_sessions(&address, 0);
            }
        }
    }
}

/// Flags of other programs in the documents.
const OTHERS: [&str; 30] = [
    // Of kubeadm.
    "--client-name",
    "--validity-period",
    // Of k3s.
    "--kube-controller-manager-arg",
    // Of etcdutl.
    "--bump-revision",
    "--mark-compacted",
    "--anonymous-auth",
    "--bench",
    "--bin",
    "--branch",
    "--build-arg",
    "--bins",
    "--controllers",
    "--create-namespace",
    "--election-timeout",
    "--enable-feature",
    "--for",
    "--kube-api-qps",
    "--locked",
    "--from-file",
    "--overwrite",
    "--path",
    "--raw",
    "--release",
    "--set",
    "--tag",
    "--test",
    "--tracing-config-file",
    "--workspace",
    "--python_out",
    "--grpc_python_out",
];

#[test]
fn flags_of_the_documents_exist() {
    let help = |program: &str, arguments: &[&str]| {
        let output = Command::new(binaries::folder().join(program))
            .args(arguments)
            .output();
        let output = output.expect("it is built");
        assert!(output.status.success(), "{program} {arguments:?}");
        String::from_utf8(output.stdout).expect("help is text")
    };
    let mut known: BTreeSet<_> = OTHERS.map(str::to_owned).into();
    known.extend(flags(&help("decree-server", &["--help"])));
    known.extend(flags(&help("decree-agent", &["--help"])));
    for command in [
        "demo",
        "up",
        "decide",
        "simulate",
        "get",
        "explain",
        "watch",
        "diff",
        "check",
        "replay",
        "resume",
        "take-over",
        "hand-back",
        "console",
    ] {
        known.extend(flags(&help("decree", &[command, "--help"])));
    }
    known.extend(flags(&help("decree", &["pki", "dev", "--help"])));
    for command in ["server", "agent"] {
        known.extend(flags(&help("decree-conformance", &[command, "--help"])));
    }
    let root = binaries::checkout();
    for page in [
        "README.md",
        "docs/architecture.md",
        "docs/cli.md",
        "docs/metrics.md",
        "docs/operations.md",
        "docs/protocol.md",
        "docs/recordings.md",
        "docs/safeguards.md",
        "docs/security.md",
        "docs/settings.md",
        "docs/shadow.md",
        "docs/sharding.md",
        "docs/troubleshooting.md",
    ] {
        let text = fs::read_to_string(root.join(page)).expect("the document is there");
        let unknown: Vec<_> = flags(&text).filter(|flag| !known.contains(flag)).collect();
        assert!(
            unknown.is_empty(),
            "{page} speaks of {unknown:?}, which no program has"
        );
    }
}

/// The words that begin with two dashes.
fn flags(text: &str) -> impl Iterator<Item = String> {
    let words = text
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-' && letter != '_');
    let flags = words.filter(|word| {
        word.strip_prefix("--")
            .is_some_and(|name| name.starts_with(|first: char| first.is_ascii_lowercase()))
    });
    flags.map(str::to_owned)
}
