//! Builds and starts the examples that use a client.

use std::{path::Path, process::Command};

use tests::{binaries, tools};

/// The programs of `examples/` in one language.
pub(crate) struct Examples {
    keeper: Vec<String>,
    decide: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

/// The command of a keeper's processes, which outlive every test, and which nothing else starts.
const PROCESS: &[&str] = &["sleep", "1000"];

impl Examples {
    pub(crate) fn go() -> Option<Self> {
        let programs = tools::go_examples()?;
        let program = |name| vec![text(&programs.join(name))];
        Some(Self {
            keeper: program("keeper"),
            decide: program("decide"),
            environment: Vec::new(),
        })
    }

    pub(crate) fn python() -> Option<Self> {
        let (python, packages) = (tools::python()?, tools::python_client()?);
        let program = |name| vec![text(python), text(&example("python").join(name))];
        Some(Self {
            keeper: program("keeper.py"),
            decide: program("decide.py"),
            environment: vec![("PYTHONPATH", text(packages))],
        })
    }

    pub(crate) fn keeper(&self, server: &str, folder: &Path, replicas: u32) -> Command {
        self.keeper_with(&[], server, folder, replicas)
    }

    pub(crate) fn keeper_with(
        &self,
        flags: &[String],
        server: &str,
        folder: &Path,
        replicas: u32,
    ) -> Command {
        let mut command = self.start(&self.keeper);
        command.args(flags);
        command.args(["--server", server, "--replicas", &replicas.to_string()]);
        command.arg("--folder").arg(folder);
        command.args(PROCESS);
        command
    }

    /// Returns the keeper's command as words, with the placeholders of the conformance kit.
    pub(crate) fn subject(&self, folder: &Path) -> Vec<String> {
        let flags = "--server {address} --replicas {replicas} --folder".split(' ');
        let flags = flags.map(str::to_owned);
        let command = PROCESS.iter().map(|word| (*word).to_owned());
        let variables = self
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        std::iter::once("env".to_owned())
            .chain(variables)
            .chain(self.keeper.iter().cloned())
            .chain(flags)
            .chain([text(folder)])
            .chain(command)
            .collect()
    }

    /// Returns the command that requests a decision for the snapshot on its input.
    pub(crate) fn decide(&self, server: &str) -> Command {
        let mut command = self.start(&self.decide);
        command.arg(server);
        command
    }

    fn start(&self, program: &[String]) -> Command {
        let mut command = Command::new(&program[0]);
        command
            .args(&program[1..])
            .envs(self.environment.iter().cloned());
        command
    }
}

fn example(language: &str) -> std::path::PathBuf {
    binaries::checkout().join("examples").join(language)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
