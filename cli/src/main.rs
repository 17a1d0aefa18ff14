//! The binary `decree`.

use std::{
    env,
    io::{BufWriter, IsTerminal, stderr, stdin, stdout},
    process::ExitCode,
};

fn main() -> ExitCode {
    decree_cli::answer_completion();
    let terminal = stdout().is_terminal();
    let mut stdout = BufWriter::new(stdout().lock());
    let exit = decree_cli::run(
        env::args_os(),
        decree_cli::Io {
            stdin: &mut stdin().lock(),
            stdout: &mut stdout,
            stderr: &mut stderr(),
            terminal,
            utf8: is_utf8(),
        },
    );
    exit.into()
}

/// Returns whether the locale is of UTF-8, as the first of these variables that is set says.
fn is_utf8() -> bool {
    let mut locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter();
    let locale = locale.find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
    locale.is_some_and(|locale| {
        let locale = locale.to_lowercase();
        locale.ends_with("utf-8") || locale.ends_with("utf8")
    })
}
