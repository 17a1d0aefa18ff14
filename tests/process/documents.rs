//! The commands in the documents print the documented output.

use std::{collections::BTreeSet, fs, process::Command};

use tests::{
    binaries,
    running::{Running, Voice, output_of},
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

/// Flags of other programs in the documents, such as kubeadm, k3s and etcdutl.
const OTHERS: &str = "--anonymous-auth --bin --build-arg --bump-revision --client-name --config --controllers --create-namespace \
    --election-timeout --for --from-file --kube-api-qps --kube-controller-manager-arg --locked --mark-compacted --overwrite --path --raw \
    --set --show-managed-fields --validity-period --workspace";
/// The programs and commands whose flags the documents name.
const COMMANDS: &str = "decree-server|decree-agent|decree-conformance|decree demo|decree up|\
    decree decide|decree simulate|decree get|decree explain|decree watch|decree diff|decree check|decree replay|decree resume|\
    decree take-over|decree hand-back|decree console";
const PAGES: &str = "README.md docs/architecture.md docs/cli.md docs/metrics.md docs/operations.md docs/preferences.md docs/protocol.md \
    docs/recordings.md docs/safeguards.md docs/security.md docs/settings.md docs/shadow.md docs/sharding.md docs/troubleshooting.md";

#[test]
fn flags_of_the_documents_exist() {
    let help = |command: &str| {
        let mut words = command.split(' ');
        let program = binaries::folder().join(words.next().expect("a program"));
        let [help, _] = output_of(Command::new(program).args(words).arg("--help"));
        help
    };
    let mut known: BTreeSet<_> = OTHERS.split(' ').map(str::to_owned).collect();
    for command in COMMANDS.split('|') {
        known.extend(flags(&help(command)));
    }
    let root = binaries::checkout();
    let mut named = BTreeSet::new();
    for page in PAGES.split(' ') {
        let text = fs::read_to_string(root.join(page)).expect("the document is there");
        let unknown: Vec<_> = flags(&text).filter(|flag| !known.contains(flag)).collect();
        assert!(
            unknown.is_empty(),
            "{page} speaks of {unknown:?}, which no program has"
        );
        named.extend(flags(&text));
    }
    let unused = OTHERS.split(' ').filter(|it| !named.contains(*it));
    assert_eq!(unused.collect::<Vec<_>>(), [""; 0], "no page names them");
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
