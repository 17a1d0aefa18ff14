//! A server accepts other machines only with identities and permissions for them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use tempfile::TempDir;
use tests::{
    issuer::{ISSUER, Issuer},
    running::{Running, Voice},
};

use crate::{transport::set_with, world::program};

const LOOPBACK: &str = "127.0.0.1:0";
const EVERYWHERE: &str = "0.0.0.0:0";

/// The proof of identity that a server requires of its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    PlainText,
    Tls,
    Certificates,
    OptionalCertificates,
    Tokens,
    Both,
}

const PROOFS: [Proof; 6] = [
    Proof::PlainText,
    Proof::Tls,
    Proof::Certificates,
    Proof::OptionalCertificates,
    Proof::Tokens,
    Proof::Both,
];

/// The grants of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grants {
    Missing,
    Agents,
    Anyone,
}

const GRANTS: [Grants; 3] = [Grants::Missing, Grants::Agents, Grants::Anyone];

/// The files of all servers of a test.
struct Files {
    folder: TempDir,
    issuer: Issuer,
}

impl Files {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        set_with(&folder.path().join("pki"), &[]);
        let issuer = Issuer::new(folder.path());
        let files = Self { folder, issuer };
        for (name, identity) in [("agents", "sub:agent"), ("anyone", "anonymous")] {
            let grant = format!(
                "[[grant]]\nidentities = [\"{identity}\"]\nrole = \"viewer\"\nnames = [\"*\"]\n"
            );
            fs::write(files.path(name), grant).expect("there is room");
        }
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn server(&self, listen: &str, proof: Proof) -> Command {
        let mut command = program("decree-server");
        command.args(["--admin", "off", "--listen", listen]);
        let pki = |name: &str| self.path("pki").join(name);
        if proof != Proof::PlainText {
            command.arg("--tls-cert").arg(pki("server.crt"));
            command.arg("--tls-key").arg(pki("server.key"));
        }
        if matches!(
            proof,
            Proof::Certificates | Proof::OptionalCertificates | Proof::Both
        ) {
            command.arg("--tls-ca").arg(pki("ca.crt"));
        }
        if proof == Proof::OptionalCertificates {
            command.args(["--tls-client-auth", "optional"]);
        }
        if matches!(proof, Proof::Tokens | Proof::Both) {
            command.args(["--token-issuer", ISSUER, "--token-keys"]);
            command.arg(self.issuer.file());
        }
        command
    }

    fn with(&self, mut command: Command, grants: Grants) -> Command {
        match grants {
            Grants::Missing => &mut command,
            Grants::Agents => command.arg("--policy").arg(self.path("agents")),
            Grants::Anyone => command.arg("--policy").arg(self.path("anyone")),
        };
        command
    }
}

/// The error of a server that other machines could reach without protection.
fn refusal(proof: Proof, grants: Grants) -> Option<&'static str> {
    match (proof, grants) {
        (Proof::PlainText, _) => Some("plain text"),
        (Proof::Tls, Grants::Missing) => Some("everyone there may do everything; give --tls-ca"),
        (Proof::Tls, Grants::Agents) => Some("grants `anonymous` nothing; give --tls-ca"),
        (Proof::Certificates | Proof::OptionalCertificates, Grants::Missing) => {
            Some("everyone with a certificate of --tls-ca may do everything; give --policy")
        }
        (Proof::Tokens, Grants::Missing) => {
            Some("everyone with a token of --token-issuer may do everything; give --policy")
        }
        (Proof::Both, Grants::Missing) => Some("a certificate of --tls-ca or a token of"),
        (Proof::Tls, Grants::Anyone)
        | (
            Proof::Certificates | Proof::OptionalCertificates | Proof::Tokens | Proof::Both,
            Grants::Agents | Grants::Anyone,
        ) => None,
    }
}

fn pairs() -> impl Iterator<Item = (Proof, Grants)> {
    let proofs = PROOFS.into_iter();
    proofs.flat_map(|proof| GRANTS.map(|grants| (proof, grants)))
}

fn starts(command: Command) -> Running {
    let server = Running::start(command, Voice::Stderr);
    server.wait_for_message("serving", 1);
    server
}

/// The error of a server that does not start.
fn error_of(mut command: Command) -> String {
    let output = command.output().expect("it was built");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let mut lines = said.lines().map(serde_json::from_str::<Value>);
    let error = lines.find_map(|line| line.ok()?["error"].as_str().map(str::to_owned));
    error.unwrap_or_else(|| panic!("no line says an error: {said}"))
}

#[test]
fn this_machine_is_served_as_it_asks() {
    let files = Files::new();
    for (proof, grants) in pairs() {
        drop(starts(files.with(files.server(LOOPBACK, proof), grants)));
    }
}

#[test]
fn other_machines_are_let_in_where_proof_and_policy_are_asked_for() {
    let files = Files::new();
    for (proof, grants) in pairs() {
        let command = files.with(files.server(EVERYWHERE, proof), grants);
        let Some(says) = refusal(proof, grants) else {
            let lines = starts(command).tail();
            let warns = lines.iter().any(|line| line.contains("--insecure"));
            assert!(!warns, "{lines:#?}");
            continue;
        };
        let error = error_of(command);
        for part in [says, "--listen 0.0.0.0:0", "unix:PATH", "--insecure"] {
            assert!(error.contains(part), "{proof:?}, {grants:?}: {error}");
        }
    }
}

#[test]
fn insecure_lets_them_in_and_warns_of_what_is_not_asked() {
    let files = Files::new();
    for (proof, grants) in pairs() {
        let mut command = files.with(files.server(EVERYWHERE, proof), grants);
        command.arg("--insecure");
        let lines = starts(command).tail();
        let warns = lines.iter().any(|line| line.contains("--insecure: "));
        let what = format!("{proof:?}, {grants:?}: {lines:#?}");
        assert_eq!(warns, refusal(proof, grants).is_some(), "{what}");
    }
}

#[test]
fn policy_in_the_error_can_be_copied() {
    let files = Files::new();
    for (given, with) in [
        (Proof::Tls, Proof::Certificates),
        (Proof::Certificates, Proof::Certificates),
        (Proof::Tokens, Proof::Tokens),
        (Proof::Both, Proof::Both),
    ] {
        let error = error_of(files.server(EVERYWHERE, given));
        let policy = copied(&error, files.folder.path());
        let mut command = files.server(EVERYWHERE, with);
        command.arg("--policy").arg(policy);
        drop(starts(command));
    }
}

/// Puts the policy in an error message into a file.
fn copied(error: &str, folder: &Path) -> PathBuf {
    let (_, shown) = error.split_once("such as: ").expect("it shows one");
    let (shown, _) = shown.split_once(", or listen").expect("it goes on");
    let path = folder.join("copied.toml");
    fs::write(&path, shown).expect("there is room");
    path
}

#[test]
fn policy_that_cannot_be_read_is_named_and_lets_nobody_in() {
    let files = Files::new();
    fs::write(files.path("agents"), "grant = 3").expect("there is room");
    for proof in [Proof::Tls, Proof::Certificates] {
        let command = files.with(files.server(EVERYWHERE, proof), Grants::Agents);
        let error = error_of(command);
        assert!(error.contains("--policy"), "{error}");
    }
}
