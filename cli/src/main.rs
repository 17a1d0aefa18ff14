//! The binary `decree`.

use std::{
    env,
    io::{BufWriter, IsTerminal, stderr, stdin, stdout},
    os::fd::{AsFd as _, OwnedFd},
    process::ExitCode,
};

use decree_cli::Colors;

fn main() -> ExitCode {
    decree_cli::answer_completion();
    let mut stdout = BufWriter::new(stdout().lock());
    let exit = decree_cli::run(
        env::args_os(),
        decree_cli::Io {
            keys: keys(),
            stdin: &mut stdin().lock(),
            stdout: &mut stdout,
            stderr: &mut stderr(),
            columns,
            utf8: is_utf8(),
            colors: colors(),
        },
    );
    exit.into()
}

/// The terminal on standard input, if it is one.
fn keys() -> Option<OwnedFd> {
    let stdin = stdin();
    let terminal = Some(stdin.as_fd()).filter(IsTerminal::is_terminal)?;
    terminal.try_clone_to_owned().ok()
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

/// Whether the locale is UTF-8, by the first of these variables that is set.
fn is_utf8() -> bool {
    let mut locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter();
    let locale = locale.find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
    locale.is_some_and(|locale| {
        let locale = locale.to_lowercase();
        locale.ends_with("utf-8") || locale.ends_with("utf8")
    })
}
