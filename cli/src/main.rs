//! The binary `decree`.

use std::{
    env,
    io::{BufWriter, IsTerminal, stderr, stdin, stdout},
    process::ExitCode,
};

fn main() -> ExitCode {
    let terminal = stdout().is_terminal();
    let mut stdout = BufWriter::new(stdout().lock());
    let exit = decree_cli::run(
        env::args_os(),
        decree_cli::Io {
            stdin: &mut stdin().lock(),
            stdout: &mut stdout,
            stderr: &mut stderr(),
            terminal,
        },
    );
    exit.into()
}
