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
    pki,
    running::{Running, Voice},
    tools,
};

use crate::{last_words::assert_ends, world::program};

const EVERYWHERE: &str = "0.0.0.0:0";

/// The flags for the proof of identity that a server requires of its peers. If other machines could reach it: its error without
/// a policy, with one for agents, and with one for anyone.
const PROOFS: [(&str, [Option<&str>; 3]); 7] = [
    ("", [Some("plain text"); 3]),
    (IN_PLAIN_TEXT, [Some("plain text"); 3]),
    ("TLS", [Some(OF_EVERYONE), Some(OF_NOBODY), None]),
    (CERTIFICATES, [Some(OF_THE_CA), None, None]),
    (OPTIONAL, [Some(OF_THE_CA), None, None]),
    (TOKENS, [Some(OF_THE_ISSUER), None, None]),
    (BOTH, [Some(OF_EITHER), None, None]),
];
const CERTIFICATES: &str = "TLS --tls-ca decree-pki/ca.crt";
const IN_PLAIN_TEXT: &str = "--token-issuer ISSUER --token-keys KEYS";
const TOKENS: &str = "TLS --token-issuer ISSUER --token-keys KEYS";
const BOTH: &str = "TLS --tls-ca decree-pki/ca.crt --token-issuer ISSUER --token-keys KEYS";
const OPTIONAL: &str = "TLS --tls-ca decree-pki/ca.crt --tls-client-auth optional";
const OF_EVERYONE: &str = "everyone there may do everything; give --tls-ca";
const OF_NOBODY: &str = "grants `anonymous` nothing; give --tls-ca";
const OF_THE_ISSUER: &str =
    "everyone with a token of --token-issuer may do everything; give --policy";
const OF_EITHER: &str = "a certificate of --tls-ca or a token of";
const OF_THE_CA: &str = "everyone with a certificate of --tls-ca may do everything; give --policy";
/// The flags for a policy: none, one for agents, and one for anyone.
const POLICIES: [&str; 3] = ["", "--policy agents", "--policy anyone"];

/// The files of all servers of a test.
struct Files {
    folder: TempDir,
    issuer: Issuer,
}

impl Files {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        pki::trial(folder.path(), 365);
        let issuer = Issuer::new(folder.path());
        for (name, identity) in [("agents", "sub:agent"), ("anyone", "anonymous")] {
            let grant = format!(
                "[[grant]]\nidentities = [\"{identity}\"]\nrole = \"viewer\"\nnames = [\"*\"]\n"
            );
            fs::write(folder.path().join(name), grant).expect("there is room");
        }
        Self { folder, issuer }
    }

    /// A server with these flags, which name its files from their folder.
    fn server(&self, flags: &str) -> Command {
        let flags = flags
            .replace(
                "TLS",
                "--tls-cert decree-pki/server.crt --tls-key decree-pki/server.key",
            )
            .replace("ISSUER", ISSUER)
            .replace("KEYS", &self.issuer.file().to_string_lossy());
        let mut command = program("decree-server");
        command
            .args(["--admin", "off", "--listen", EVERYWHERE])
            .args(flags.split_whitespace())
            .current_dir(self.folder.path());
        command
    }
}

/// The flags of a server, and its error if other machines could reach it.
fn servers() -> impl Iterator<Item = (String, Option<&'static str>)> {
    let proofs = PROOFS.into_iter();
    proofs.flat_map(|(proof, errors)| {
        let policies = POLICIES.into_iter().zip(errors);
        policies.map(move |(policy, error)| (format!("{proof} {policy}"), error))
    })
}

fn starts(command: Command) -> Running {
    let server = Running::start(command, Voice::Stderr);
    server.wait_for_message("serving", 1);
    server
}

/// The error of a server that does not start.
fn error_of(mut command: Command) -> String {
    let said = assert_ends(&mut command, 1, &[]);
    let mut lines = said.lines().map(serde_json::from_str::<Value>);
    let error = lines.find_map(|line| line.ok()?["error"].as_str().map(str::to_owned));
    error.unwrap_or_else(|| panic!("no line says an error: {said}"))
}

#[test]
fn other_machines_are_let_in_where_proof_and_policy_are_asked_for() {
    tests::or_skip!(tools::openssl());
    let files = Files::new();
    for (flags, refusal) in servers() {
        let command = files.server(&flags);
        let insecure = files.server(&format!("{flags} --insecure"));
        let lines = starts(insecure).tail();
        let warns = lines.iter().any(|line| line.contains("--insecure: "));
        assert_eq!(warns, refusal.is_some(), "{flags}: {lines:#?}");
        let Some(says) = refusal else {
            let lines = starts(command).tail();
            let warns = lines.iter().any(|line| line.contains("--insecure"));
            assert!(!warns, "{lines:#?}");
            continue;
        };
        let error = error_of(command);
        for part in [says, "--listen 0.0.0.0:0", "unix:PATH", "--insecure"] {
            assert!(error.contains(part), "{flags}: {error}");
        }
    }
}

#[test]
fn policy_in_the_error_can_be_copied() {
    tests::or_skip!(tools::openssl());
    let files = Files::new();
    for (given, with) in [
        ("TLS", CERTIFICATES),
        (CERTIFICATES, CERTIFICATES),
        (TOKENS, TOKENS),
        (BOTH, BOTH),
    ] {
        let error = error_of(files.server(given));
        let policy = copied(&error, files.folder.path());
        let mut command = files.server(with);
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
