//! A client authenticates by a certificate or by a token. The server rejects a client without either.

use std::{fs, path::PathBuf, process::Command};

use tempfile::TempDir;
use tests::{
    binaries,
    issuer::{ISSUER, Issuer},
    pki,
    running::{Running, Voice},
    tools,
};

use crate::language::Examples;

/// Clients that may keep processes: one with a certificate, one with a token.
const POLICY: &str = r#"
[[grant]]
identities = ["spiffe://decree.local/agent", "sub:keeper"]
role = "agent"
clusters = ["*"]
"#;

/// The certificates and tokens of a server and its clients, in a folder.
struct Proofs {
    folder: TempDir,
    issuer: Issuer,
}

impl Proofs {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        pki::trial(folder.path(), 365);
        let issuer = Issuer::new(folder.path());
        Self { folder, issuer }
    }

    fn certified(&self, name: &str) -> PathBuf {
        self.folder.path().join(pki::TRIAL).join(name)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("there is room");
        path
    }

    /// Starts a server that accepts either credential.
    fn server(&self) -> Running {
        let mut command = Command::new(binaries::folder().join("decree-server"));
        command.args(["--listen", "127.0.0.1:0", "--admin", "off"]);
        command.args(["--tls-client-auth", "optional"]);
        command.args(["--token-issuer", ISSUER]);
        for (flag, path) in [
            ("--tls-cert", self.certified("server.crt")),
            ("--tls-key", self.certified("server.key")),
            ("--tls-ca", self.certified("ca.crt")),
            ("--token-keys", self.issuer.file().to_owned()),
            ("--policy", self.file("policy.toml", POLICY)),
        ] {
            command.arg(flag).arg(path);
        }
        Running::start(command, Voice::Stderr)
    }
}

#[test]
fn keeper_in_python_proves_who_it_is_by_a_certificate_or_a_token() {
    tests::or_skip!(tools::openssl());
    let examples = tests::or_skip!(Examples::python());
    let proofs = Proofs::new();
    let server = proofs.server();
    let address = server.address("grpc").replace("127.0.0.1", "localhost");
    let flag = |flag: &str, path: PathBuf| format!("{flag}={}", path.display());
    let ca = flag("--tls-ca", proofs.certified("ca.crt"));
    let token = |subject: &str| {
        let file = proofs.file(subject, &proofs.issuer.token(subject));
        vec![ca.clone(), flag("--token-file", file)]
    };
    let certified = vec![
        ca.clone(),
        flag("--tls-cert", proofs.certified("agent.crt")),
        flag("--tls-key", proofs.certified("agent.key")),
    ];
    let keep = |flags: &[String], voice| {
        let folder = TempDir::new().expect("a folder");
        let command = examples.keeper_with(flags, &address, folder.path(), 3);
        (Running::start(command, voice), folder)
    };
    for flags in [certified, token("keeper")] {
        let (mut keeper, _folder) = keep(&flags, Voice::Stdout);
        keeper.wait_for("that three have started", |lines| {
            let started = lines.iter().filter(|line| line.starts_with("started "));
            (started.count() == 3).then_some(())
        });
        keeper.close();
        assert_eq!(keeper.wait().code(), Some(0));
    }
    for (flags, code) in [
        (token("stranger"), "PERMISSION_DENIED"),
        (vec![ca.clone()], "UNAUTHENTICATED"),
    ] {
        let (keeper, _folder) = keep(&flags, Voice::Stderr);
        keeper.wait_for(code, |lines| {
            lines.iter().any(|line| line.contains(code)).then_some(())
        });
    }
}
