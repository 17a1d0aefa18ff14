//! Identities with the real binaries: replaced tokens, and the recipes of the documents.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
    thread,
    time::Duration,
};

use tempfile::TempDir;
use tests::{
    issuer::{ISSUER, Issuer},
    pki,
    running::{Running, Voice, until_found},
    tools,
};

use crate::{console, secrets, world};

const POLICY: &str = r#"
[[grant]]
identities = ["sub:agent"]
role = "agent"
clusters = ["*"]

[[grant]]
identities = ["sub:viewer"]
role = "viewer"
clusters = ["*"]
"#;

/// How long the first token of an agent counts.
const LIFE: Duration = Duration::from_mins(1);

/// A server that accepts the tokens of an issuer, and the folder of their files.
struct Guarded {
    server: Running,
    address: String,
    issuer: Issuer,
    folder: TempDir,
}

impl Guarded {
    fn start() -> Self {
        let folder = TempDir::new().expect("a folder");
        let issuer = Issuer::new(folder.path());
        let policy = folder.path().join("policy.toml");
        fs::write(&policy, POLICY).expect("it can be written");
        let mut command = world::for_grpc_alone(world::program("decree-server"));
        command
            .env("DECREE_LOG_LEVEL", "trace")
            .args(["--access-interval", "50ms"])
            .args(["--token-issuer", ISSUER, "--token-keys"])
            .arg(issuer.file())
            .arg("--policy")
            .arg(policy);
        let server = Running::start(command, Voice::Stderr);
        let address = server.address("grpc");
        Self {
            server,
            address,
            issuer,
            folder,
        }
    }

    /// Puts a token into a file in one step, as kubelet does.
    fn write(&self, file: &str, token: &str) -> PathBuf {
        let path = self.folder.path().join(file);
        let next = path.with_extension("next");
        fs::write(&next, token).expect("it can be written");
        fs::rename(&next, &path).expect("it can be written");
        path
    }

    fn agent(&self, token: &Path) -> Running {
        let mut command = world::program("decree-agent");
        command
            .env("DECREE_LOG_LEVEL", "trace")
            .args(["--cluster", "fake", "--admin", "off", "--manifest"])
            .arg("docs/examples/web.yaml")
            .args(["--server", &format!("http://{}", self.address)])
            .arg("--token-file")
            .arg(token);
        Running::start(command, Voice::Stderr)
    }

    fn sessions(&self, token: &Path) -> Output {
        let mut command = world::program("decree");
        let server = format!("http://{}", self.address);
        command.args(["get", "sessions", "--server", &server, "-o", "json"]);
        let output = command.arg("--token-file").arg(token).output();
        output.expect("it was built")
    }
}

#[test]
fn session_of_an_agent_outlives_the_token_that_opened_it_and_no_token_is_logged() {
    let guarded = Guarded::start();
    let viewer = guarded.write("viewer", &guarded.issuer.token("viewer"));
    let short = |subject| {
        guarded
            .issuer
            .sign(&Issuer::claims(subject, LIFE.as_secs().cast_signed()))
    };
    let [token, next] = [short("agent"), guarded.issuer.token("agent")];
    let first = guarded.write("agent", &token);
    let lapsing = guarded.write("lapsing", &short("viewer"));
    let agent = guarded.agent(&first);
    guarded.server.wait_for_message("session opened", 1);
    guarded.write("agent", &next);
    agent.wait_for_message("session renewed with another token", 1);
    // A token that was signed together with the agent's first one shows when that one has expired.
    thread::park_timeout(LIFE);
    until_found("the end of a token", || {
        let asked = guarded.sessions(&lapsing);
        (!asked.status.success()).then_some(()).ok_or(asked)
    });
    let sessions = guarded.sessions(&viewer);
    let sessions: serde_json::Value = serde_json::from_slice(&sessions.stdout).expect("JSON");
    assert_eq!(sessions["sessions"].as_array().map(Vec::len), Some(1));
    assert_eq!(guarded.server.messages("session ended"), 0);
    for (what, lines) in [("agent", agent.lines()), ("server", guarded.server.lines())] {
        for token in [&token, &next] {
            // The signature too is a secret: the rest can be guessed.
            let signature = token.rsplit('.').next().unwrap_or_default();
            secrets::assert_secret(&lines.join("\n"), signature, what);
        }
    }
}

#[test]
fn calls_with_a_token_answer_as_shown() {
    let grpcurl = tests::or_skip!(tools::grpcurl());
    let guarded = Guarded::start();
    let agent = guarded.write("agent", &guarded.issuer.token("agent"));
    let viewer = guarded.write("viewer", &guarded.issuer.token("viewer"));
    let _agent = guarded.agent(&agent);
    guarded.server.wait_for_message("session opened", 1);
    for step in console::steps("calls_with_a_token_answer_as_shown") {
        step.run_with(&[grpcurl], &guarded.address, &[("TOKEN_FILE", &viewer)]);
    }
}

#[test]
fn calls_with_a_certificate_answer_as_shown() {
    tests::or_skip!(tools::openssl());
    let grpcurl = tests::or_skip!(tools::grpcurl());
    let folder = TempDir::new().expect("a folder");
    pki::trial(folder.path(), 365);
    let set = folder.path().join(pki::TRIAL);
    let policy = folder.path().join("policy.toml");
    let grant = "[[grant]]\nidentities = [\"spiffe://decree.local/viewer\"]\nrole = \"viewer\"\nnames = [\"*\"]\n";
    fs::write(&policy, grant).expect("it can be written");
    let mut command = world::for_grpc_alone(world::program("decree-server"));
    command.arg("--policy").arg(&policy);
    for (flag, file) in [
        ("--tls-cert", "server.crt"),
        ("--tls-key", "server.key"),
        ("--tls-ca", "ca.crt"),
    ] {
        command.arg(flag).arg(set.join(file));
    }
    let server = Running::start(command, Voice::Stderr);
    let address = server.address("grpc");
    for step in console::steps("calls_with_a_certificate_answer_as_shown") {
        step.run_with(&[grpcurl], &address, &[("PKI", &set)]);
    }
}

#[test]
fn calls_at_a_unix_socket_answer_as_shown() {
    let grpcurl = tests::or_skip!(tools::grpcurl());
    let folder = TempDir::new().expect("a folder");
    let socket = folder.path().join("decree.sock");
    let mut command = world::program("decree-server");
    command
        .args(["--admin", "off", "--listen"])
        .arg(format!("unix:{}", socket.display()));
    let server = Running::start(command, Voice::Stderr);
    server.address("grpc");
    for step in console::steps("calls_at_a_unix_socket_answer_as_shown") {
        step.run_with(&[grpcurl], "", &[("SOCKET", &socket)]);
    }
}
