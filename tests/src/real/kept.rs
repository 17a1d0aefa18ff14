//! One program of this workspace as a process, which always ends with the test binary.

use std::{
    path::Path,
    process::{Command, ExitStatus},
};

use crate::{
    binaries,
    running::{self, Running, Voice},
};

/// Prints the id of the process, and kills the process at the end of standard input.
const KEEPER: &str = r#"exec 3<&0
"$@" </dev/null 3<&- &
child=$!
{ while read -r _ <&3; do :; done; kill -KILL "$child"; } >/dev/null 2>&1 &
guard=$!
echo "{\"process\":$child}" >&2
wait "$child"
status=$?
kill "$guard"
exit "$status""#;

/// A running program that logs to standard error, killed on drop.
#[derive(Debug)]
pub(super) struct Kept {
    running: Running,
    process: u32,
}

impl Kept {
    /// Starts a program with flags, and with environment variables, which older versions ignore. A relative path names a program of this
    /// workspace.
    pub(super) fn start(program: &Path, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER]).arg(program);
        command
            .arg(binaries::folder().join(program))
            .args(flags)
            .envs(variables.iter().copied())
            .current_dir(binaries::checkout());
        let running = Running::start(command, Voice::Stderr);
        let process = running.wait_for("its number", |lines| {
            let mut lines = lines.iter();
            lines.find_map(|line| {
                line.strip_prefix("{\"process\":")?
                    .strip_suffix('}')?
                    .parse()
                    .ok()
            })
        });
        Self { running, process }
    }

    /// The running program.
    pub(super) fn running(&self) -> &Running {
        &self.running
    }

    pub(super) fn process(&self) -> u32 {
        self.process
    }

    pub(super) fn signal(&self, signal: &str) {
        running::signal(signal, self.process);
    }

    pub(super) fn wait(self) -> ExitStatus {
        self.running.wait()
    }
}
