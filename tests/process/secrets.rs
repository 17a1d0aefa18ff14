//! Secrets in every input of every program, and no output that has them, at the most verbose log level.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
    thread,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use tempfile::TempDir;
use tests::{
    binaries,
    running::{signal, until_found},
};

/// The secret in the inputs.
const CANARY: &str = "Canary7f3a9Secret";
/// A user and a password, as in a URL.
const USER: &str = "user:Canary7f3a9Secret@";

/// The programs that read a kubeconfig.
const OF_A_CLUSTER: [&str; 3] = [
    "decree-agent --cluster kubernetes --mode shadow --leader-elect=false --admin off",
    "decree check --only cluster",
    "decree up --cluster kubernetes",
];

/// The line of an agent that has used its credentials.
const USED: &str = "identifies the cluster, cannot be read";

/// A run of a program.
struct Run {
    command: Command,
    folder: TempDir,
    /// The word after which a program that does not end is ended.
    until: Option<&'static str>,
}

impl Run {
    fn of(line: &str) -> Self {
        Self::new(&line.split(' ').collect::<Vec<_>>())
    }

    fn new(line: &[&str]) -> Self {
        let mut command = Command::new(binaries::folder().join(line[0]));
        command
            .args(&line[1..])
            .env_clear()
            .env("HOME", "/nonexistent")
            .env("PATH", "/usr/bin:/bin")
            .env("DECREE_LOG_LEVEL", "trace")
            .stdin(Stdio::null());
        if line[0] == "decree" && line[1] == "up" {
            command.args(["--log-level", "trace", "--admin", "127.0.0.1:0"]);
            command.args(["--agent-admin", "off", "--listen", "127.0.0.1:0"]);
        }
        Self {
            command,
            folder: TempDir::new().expect("there is room"),
            until: None,
        }
    }

    fn args<'a>(mut self, args: impl IntoIterator<Item = &'a str>) -> Self {
        self.command.args(args);
        self
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Gives the path of a file with this text as the value of a flag.
    fn file(mut self, flag: &str, text: &str) -> Self {
        let path = self.folder.path().join(flag.trim_start_matches('-'));
        fs::write(&path, text).expect("there is room");
        self.command.arg(flag).arg(path);
        self
    }

    fn until(mut self, word: &'static str) -> Self {
        self.until = Some(word);
        self
    }

    /// Runs the program to its end, or until its word, and checks all that it has printed.
    fn check(mut self) {
        let path = self.folder.path().join("output");
        let output = File::create(&path).expect("there is room");
        self.command
            .stdout(output.try_clone().expect("it is open"))
            .stderr(output);
        let mut child = self.command.spawn().expect("it was built");
        let read = || fs::read_to_string(&path).expect("it is text");
        until_found("its end", || {
            let text = read();
            let is_reached = self.until.is_some_and(|word| text.contains(word));
            let has_ended = child.try_wait().expect("it is ours").is_some();
            if is_reached && !has_ended {
                signal("TERM", child.id());
            }
            if has_ended { Ok(()) } else { Err(text) }
        });
        let text = read();
        assert!(!text.is_empty(), "{:?} says nothing", self.command);
        if let Some(word) = self.until {
            assert!(
                text.contains(word),
                "{:?} never says {word}: {text}",
                self.command
            );
        }
        assert_secret(&text, CANARY, &format!("{:?}", self.command));
    }
}

/// Checks that a text has no form of a secret.
pub(crate) fn assert_secret(text: &str, secret: &str, what: &str) {
    let bytes = format!("{:?}", secret.as_bytes());
    let forms = [
        secret.to_owned(),
        STANDARD.encode(secret).trim_end_matches('=').to_owned(),
        bytes.trim_matches(['[', ']']).to_owned(),
    ];
    let mut lines = text.lines();
    let leak = lines.find(|line| forms.iter().any(|form| line.contains(form)));
    assert_eq!(leak, None, "{what} prints a secret");
}

/// A kubeconfig with these fields of its cluster and its user.
fn kubeconfig(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
         clusters:\n- name: a\n  cluster: {cluster}\nusers:\n- name: a\n  user: {user}\n"
    )
}

/// An API server that refuses everything, for as long as the tests run.
fn refusing() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut request = [0; 4096];
                while matches!(stream.read(&mut request), Ok(1..)) {
                    let answer = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}";
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// A user whose credentials a plugin prints.
const EXEC: &str = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: 'PLUGIN', args: [CANARY], \
                    env: [{name: A, value: CANARY}], interactiveMode: Never}}";

/// A row of `secrets.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    #[serde(default = "away")]
    cluster: String,
    #[serde(default)]
    user: String,
    #[serde(default)]
    plugin: String,
    #[serde(default)]
    used: bool,
}

fn away() -> String {
    "{server: 'http://127.0.0.1:1'}".to_owned()
}

impl Row {
    fn all() -> Vec<Self> {
        let path = binaries::checkout().join("tests/process/secrets.toml");
        let text = fs::read_to_string(path).expect("it is there");
        let mut rows: BTreeMap<String, Vec<Self>> = toml::from_str(&text).expect("it is a table");
        rows.remove("row").expect("it has rows")
    }

    /// The kubeconfig, with its plugin in a folder.
    fn kubeconfig(&self, folder: &Path, api: SocketAddr) -> String {
        let pem = |body: &str| STANDARD.encode(format!("-----BEGIN PRIVATE KEY-----{body}\n"));
        let wrong = format!("\n{CANARY}!\n-----END PRIVATE KEY-----");
        let plugin = folder.join("plugin");
        let filled = |text: &str| {
            text.replace("PLUGIN", &plugin.display().to_string())
                .replace("FOLDER", &folder.display().to_string())
                .replace("CANARY", CANARY)
                .replace("HALF_PEM", &pem(&format!(" {CANARY}")))
                .replace("WRONG_PEM", &pem(&wrong))
                .replace("API", &api.to_string())
        };
        let script = filled(&self.plugin);
        let user = match (&*self.user, &*self.plugin) {
            ("", "") => "{}",
            ("", _) => EXEC,
            (user, _) => user,
        };
        let is_script = user == EXEC || user.contains("cmd-path");
        let head = if is_script { "#!/bin/sh\n" } else { "" };
        fs::write(&plugin, format!("{head}{script}\n")).expect("there is room");
        let permissions = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&plugin, permissions).expect("it is ours");
        kubeconfig(&filled(&self.cluster), &filled(user))
    }
}

#[test]
fn kubeconfig_and_what_its_plugins_print_stay_secret() {
    let api = refusing();
    for row in Row::all() {
        for line in OF_A_CLUSTER {
            let run = Run::of(line);
            let config = row.kubeconfig(run.folder.path(), api);
            let run = run.file("--kubeconfig", &config);
            if row.used && line.starts_with("decree-agent") {
                run.until(USED).check();
            } else {
                run.check();
            }
        }
    }
}

/// A URL with a password, in a flag of each program that takes one, and its variable.
const URL_FLAGS: [(&[&str], &str, Option<&str>); 5] = [
    (AGENT, "--server", Some("DECREE_SERVER")),
    (AGENT, "--admin", Some("DECREE_ADMIN")),
    (SERVER, "--listen", Some("DECREE_LISTEN")),
    (
        &["decree", "get", "sessions"],
        "--server",
        Some("DECREE_SERVER"),
    ),
    (&["decree", "check", "--only", "agent"], "--agent", None),
];
const AGENT: &[&str] = &["decree-agent", "--cluster", "fake"];
const SERVER: &[&str] = &["decree-server"];

/// Forms of a URL that no flag but that of a proxy takes.
fn urls() -> [String; 5] {
    [
        format!("http://{USER}127.0.0.1:1"),
        format!("https://{USER}127.0.0.1:1/path?query"),
        format!("{USER}127.0.0.1:1"),
        format!("http://user:pass/{CANARY}@127.0.0.1:1"),
        format!("http://user:pass {CANARY}@127.0.0.1:1"),
    ]
}

#[test]
fn passwords_of_urls_stay_secret() {
    for url in &urls() {
        for (line, flag, variable) in URL_FLAGS {
            Run::new(line).args([flag, url]).check();
            Run::new(line).args([&*format!("{flag}={url}")]).check();
            if let Some(variable) = variable {
                Run::new(line).env(variable, url).check();
            }
        }
        Run::new(AGENT).args([&**url]).check();
        // Without a scheme, it would be the name of a file.
        if url.contains("://") {
            let keys = ["--token-issuer", "a", "--token-keys", url];
            Run::new(SERVER).args(keys).check();
            let run = Run::new(SERVER).args(keys);
            run.file("--token-keys-ca", "").check();
        }
    }
}

#[test]
fn passwords_of_proxies_in_the_environment_stay_secret() {
    let target = kubeconfig("{server: 'https://192.0.2.1'}", "{}");
    let (good, bad) = (
        [
            format!("http://{USER}127.0.0.1:1"),
            format!("{USER}{}", refusing()),
        ],
        [format!("ftp://{USER}a"), format!("http://{USER}a b")],
    );
    for line in OF_A_CLUSTER {
        let run = |url| {
            let run = Run::of(line).file("--kubeconfig", &target);
            run.env("HTTPS_PROXY", url)
        };
        for url in &good {
            if line.starts_with("decree-agent") {
                run(url).until(USED).check();
            } else {
                run(url).check();
            }
        }
        bad.iter().for_each(|url| run(url).check());
    }
}

#[test]
fn keys_of_tls_are_named_and_not_quoted() {
    let pem = |body: &str| format!("-----BEGIN PRIVATE KEY-----{body}-----END PRIVATE KEY-----\n");
    let keys = [
        pem(CANARY),
        pem(&format!("\n{CANARY}!\n")),
        pem(&format!("\n{}\n", STANDARD.encode(CANARY))),
        format!("-----BEGIN PRIVATE KEY----- {CANARY}\n"),
        format!("-----BEGIN {CANARY}\n"),
        format!("-----BEGIN {CANARY}-----\n"),
        CANARY.to_owned(),
    ];
    let flags = ["--tls-key", "--tls-cert", "--tls-ca", "--tls-crl"];
    let server = ["--server", "https://127.0.0.1:1"];
    let get = [&["decree", "get", "sessions"], &server[..]].concat();
    let agent = [AGENT, &server].concat();
    for text in &keys {
        for line in [&get[..], &agent, SERVER] {
            for broken in flags {
                let content = |flag| if flag == broken { text } else { "" };
                let give = |run: Run, flag| run.file(flag, content(flag));
                flags.into_iter().fold(Run::new(line), give).check();
            }
        }
    }
}

#[test]
fn files_of_access_are_named_and_not_quoted() {
    let server = ["--server", "http://127.0.0.1:1"];
    let get = [&["decree", "get", "sessions"], &server[..]].concat();
    let agent = [AGENT, &["--admin", "off"], &server].concat();
    for text in [
        CANARY.to_owned(),
        format!("a {CANARY}"),
        format!("{CANARY}\n{CANARY}"),
    ] {
        Run::new(&get).file("--token-file", &text).check();
        let run = Run::new(&agent).file("--token-file", &text);
        run.until("the server is away").check();
    }
    let grant = |identities: &str, rest: &str| {
        format!("[[grant]]\nidentities = {identities} # {CANARY}\nrole = {rest}\n")
    };
    for text in [
        format!("# {CANARY}\ngrant = {CANARY}\n"),
        format!("# {CANARY}\ngrant = \"{CANARY}\"\n"),
        grant(&format!("[\"{CANARY}\"]"), "\"admin\""),
        grant(&format!("\"{CANARY}\""), "\"admin\""),
        grant("[\"dns:a\"]", &format!("\"agent\"\nnames = \"{CANARY}\"")),
        grant("[\"dns:a\"]", &format!("1 # {CANARY}")),
    ] {
        Run::new(SERVER).file("--policy", &text).check();
    }
    for text in [
        CANARY.to_owned(),
        format!("{{\"keys\": \"{CANARY}\"}}"),
        format!("{{\"keys\": [{{\"kty\": \"EC\", \"d\": \"{CANARY}\"}}]}}"),
        format!("{{\"keys\": [{{\"kty\": {{\"{CANARY}\": 1}}}}]}}"),
    ] {
        let run = Run::new(SERVER).args(["--token-issuer", "a"]);
        run.file("--token-keys", &text).check();
    }
}
