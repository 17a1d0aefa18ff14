//! A controller in each language that executes the commands of a test; `puppet/` has the programs.

use std::{path::Path, process::Command, thread};

use decree_api::v1::{LabelSelector, ObjectRef, Pod, ReplicaSet};
use prost::Message;
use tests::{
    binaries,
    objects::set_ref,
    running::{Running, Voice, output_of},
    tools,
};

/// The languages with a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Go,
    Python,
    /// Python with asyncio.
    AsyncPython,
}

/// The limits of an agent's calls.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) timeout_ms: u32,
    /// 0 means no limit.
    pub(crate) creates_per_second: f64,
    pub(crate) create_burst: u32,
    pub(crate) mode: i32,
    /// The time by which lists can be behind.
    pub(crate) settle_ms: u32,
}

/// Limits that no test reaches.
pub(crate) const LIMITS: Limits = Limits {
    timeout_ms: 600_000,
    creates_per_second: 0.0,
    create_burst: 100,
    mode: 0,
    settle_ms: 60_000,
};

/// A controller with an empty view.
pub(crate) struct Puppet {
    running: Running,
    answers: usize,
}

/// Runs a test concurrently for each language whose tools are installed. A failure names its language.
pub(crate) fn in_each_language(test: impl Fn(Language) + Sync) {
    let languages = [
        (Language::Go, tools::go_examples().is_some()),
        (Language::Python, tools::python_client().is_some()),
        (Language::AsyncPython, tools::python_client().is_some()),
    ];
    thread::scope(|scope| {
        for (language, _) in languages.into_iter().filter(|(_, is_there)| *is_there) {
            let thread = thread::Builder::new().name(format!("{language:?}"));
            let test = &test;
            let started = thread.spawn_scoped(scope, move || test(language));
            started.expect("there can be a thread");
        }
    });
}

/// Returns the ReplicaSet of the tests, with `replicas` desired pods.
pub(crate) fn replica_set(replicas: i32) -> ReplicaSet {
    let labels = [("app", "x"), ("tier", "web")].map(|(key, value)| (key.into(), value.into()));
    ReplicaSet {
        namespace: "local".into(),
        name: "set".into(),
        uid: "set-uid".into(),
        generation: 1,
        replicas: Some(replicas),
        selector: Some(LabelSelector {
            match_labels: [("app".into(), "x".into())].into(),
            ..LabelSelector::default()
        }),
        template_labels: labels.into(),
        ..ReplicaSet::default()
    }
}

pub(crate) fn reference() -> ObjectRef {
    set_ref(&replica_set(0))
}

/// Returns a pod as in a list. Its UID is its name.
pub(crate) fn pod(name: &str, node: &str) -> Pod {
    Pod {
        namespace: "local".into(),
        name: name.into(),
        uid: name.into(),
        labels: replica_set(0).template_labels,
        node_name: node.into(),
        controller: Some(decree_api::v1::OwnerReference {
            api_version: "apps/v1".into(),
            kind: "ReplicaSet".into(),
            name: "set".into(),
            uid: "set-uid".into(),
            ..decree_api::v1::OwnerReference::default()
        }),
        ..Pod::default()
    }
}

/// Encodes a message as a word of a command.
pub(crate) fn word(message: &impl Message) -> String {
    let bytes = message.encode_to_vec();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Puppet {
    pub(crate) fn start(language: Language, server: &str, limits: Limits) -> Self {
        let mut command = language.command();
        command.arg(server).arg(limits.timeout_ms.to_string());
        command.arg(limits.creates_per_second.to_string());
        command.args([limits.create_burst.to_string(), limits.mode.to_string()]);
        command.arg(limits.settle_ms.to_string());
        Self {
            running: Running::start(command, Voice::Stdout),
            answers: 0,
        }
    }

    /// Sends a command, and returns the response: `ok …` or `refused …`.
    pub(crate) fn tell(&mut self, command: &str) -> String {
        self.running.tell(command);
        let number = self.answers;
        self.answers += 1;
        self.running.wait_for("an answer", |lines| {
            let is_answer =
                |line: &&String| line.starts_with("ok ") || line.starts_with("refused ");
            lines.iter().filter(is_answer).nth(number).cloned()
        })
    }

    /// Sends a command that must succeed.
    pub(crate) fn obey(&mut self, command: &str) {
        let answer = self.tell(command);
        assert!(answer.starts_with("ok "), "{command}: {answer}");
    }

    /// Sends a command that must be refused, and returns the reason.
    pub(crate) fn refuse(&mut self, command: &str) -> String {
        let answer = self.tell(command);
        let why = answer.strip_prefix("refused ");
        why.unwrap_or_else(|| panic!("{command}: {answer}"))
            .to_owned()
    }

    /// Returns the pods of the view, each with its node.
    pub(crate) fn pods(&mut self) -> String {
        self.obey("pods");
        let said = self.said("pods");
        said.last().expect("it has answered").clone()
    }

    /// Returns the rest of each line that begins with a word.
    pub(crate) fn said(&self, word: &str) -> Vec<String> {
        self.running.wait_for(word, |lines| Some(said(lines, word)))
    }

    /// Waits for `count` lines that begin with a word, and returns the rest of each.
    pub(crate) fn wait_for(&self, word: &str, count: usize) -> Vec<String> {
        let what = format!("{word} {count} times");
        self.running.wait_for(&what, |lines| {
            let said = said(lines, word);
            (said.len() >= count).then_some(said)
        })
    }
}

fn said(lines: &[String], word: &str) -> Vec<String> {
    let rests = lines.iter().filter_map(|line| line.strip_prefix(word));
    rests.map(|rest| rest.trim().to_owned()).collect()
}

impl Language {
    fn command(self) -> Command {
        let programs = binaries::checkout().join("tests/clients/puppet");
        match self {
            Self::Go => Command::new(go_program(&programs)),
            Self::AsyncPython => {
                let mut command = Self::Python.command();
                command.env("PUPPET_ASYNC", "1");
                command
            }
            Self::Python => {
                let python = tools::python().expect("it is there");
                let mut command = Command::new(python);
                let packages = tools::python_client().expect("it is there");
                command.env("PYTHONPATH", packages);
                command.arg(programs.join("puppet.py"));
                command
            }
        }
    }
}

/// Builds the program. A repeated build takes no time.
fn go_program(programs: &Path) -> std::path::PathBuf {
    let program = binaries::folder().join("clients").join("puppet");
    let mut command = Command::new("go");
    command.current_dir(programs).args(["build", "-o"]);
    output_of(command.arg(&program).arg("."));
    program
}
