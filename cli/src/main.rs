//! The binary `decree`.

use std::{
    env,
    io::{BufWriter, IsTerminal, stderr, stdin, stdout},
    process::ExitCode,
};

use decree_cli::Colors;

fn main() -> ExitCode {
    decree_cli::answer_completion();
    let mut stdout = BufWriter::new(stdout().lock());
    let exit = decree_cli::run(
        env::args_os(),
        decree_cli::Io {
            stdin: &mut stdin().lock(),
            stdout: &mut stdout,
            stderr: &mut stderr(),
            columns,
            colors: colors(),
        },
    );
    exit.into()
}

/// The width of the terminal on standard output, if it is one. A terminal that does not tell its size has the traditional size.
fn columns() -> Option<usize> {
    let stdout = stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stdout).ok();
    let columns = size.map(|size| usize::from(size.ws_col));
    columns.filter(|columns| *columns > 0).or(Some(80))
}

/// Whether this kind of terminal obeys escape sequences.
fn obeys_escapes() -> bool {
    env::var_os("TERM").is_some_and(|kind| !kind.is_empty() && kind != "dumb")
}

/// Terminals show colors, unless `NO_COLOR` is set.
fn colors() -> Colors {
    let is_plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_colored = !is_plain && obeys_escapes();
    Colors {
        stdout: is_colored && stdout().is_terminal(),
        stderr: is_colored && stderr().is_terminal(),
    }
}
