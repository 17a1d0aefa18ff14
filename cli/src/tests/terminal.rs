//! The demonstration and `decree top` on a real pseudo-terminal: what its screen shows, what keys do, and that the terminal comes back as it was.
//!
//! The program on the terminal is this test binary itself, which runs one of the tests marked "on the terminal" with a variable set. Without
//! that variable these do nothing.

use std::{
    env,
    fs::File,
    io::{BufWriter, Read as _, Write as _, stderr, stdin, stdout},
    process::{Child, Command, ExitStatus},
    sync::{Arc, Condvar, Mutex},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::{
    fs::{Mode, OFlags},
    process::{Pid, Signal},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Termios, Winsize, tcgetattr, tcsetwinsize},
};

use super::system::System;
use crate::{Exit, Io, run};

/// Set for the program on the terminal: the arguments of `decree`, by spaces.
const ARGUMENTS: &str = "DECREE_TEST_ON_TERMINAL";
const DEADLINE: Duration = Duration::from_secs(60);

/// A program on a terminal of its own.
struct Session {
    child: Child,
    keys: File,
    /// The other end, so that its settings can be looked at.
    terminal: File,
    before: Termios,
    screen: Arc<(Mutex<vt100::Parser>, Condvar)>,
    reader: JoinHandle<()>,
}

// === impl Session ===

impl Session {
    /// Starts a test of this binary on a terminal of so many lines and columns.
    fn start(test: &str, (lines, columns): (u16, u16), variables: &[(&str, &str)]) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&keys).expect("ours");
        unlockpt(&keys).expect("ours");
        let path = ptsname(&keys, Vec::new()).expect("it has a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let terminal: File = rustix::fs::open(path, flags, Mode::empty())
            .expect("it is there")
            .into();
        let size = Winsize {
            ws_row: lines,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&terminal, size).expect("a terminal has a size");
        let before = tcgetattr(&terminal).expect("it is a terminal");
        let end = || terminal.try_clone().expect("a few more");
        let child = Command::new(env::current_exe().expect("a process knows its program"))
            .args(["--exact", test, "--nocapture", "--test-threads", "1"])
            .env("TERM", "xterm-256color")
            .env("RUST_BACKTRACE", "0")
            .env_remove("NO_COLOR")
            .envs(variables.iter().copied())
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn();
        let keys: File = keys.into();
        let screen = Arc::new((
            Mutex::new(vt100::Parser::new(lines, columns, 0)),
            Condvar::new(),
        ));
        let reader = read(keys.try_clone().expect("one more"), Arc::clone(&screen));
        Self {
            child: child.expect("it can be started"),
            keys,
            terminal,
            before,
            screen,
            reader,
        }
    }

    /// Starts `decree` on a terminal of 80 columns.
    fn decree(arguments: &str) -> Self {
        let variables = [(ARGUMENTS, arguments)];
        Self::start(
            "tests::terminal::decree_on_the_terminal",
            (24, 80),
            &variables,
        )
    }

    /// Waits until the screen shows something, and returns all that it shows.
    fn wait_for(&self, what: &str, is_shown: impl Fn(&vt100::Screen) -> bool) -> String {
        let (parser, changed) = &*self.screen;
        let parser = parser.lock().expect("no reader panics");
        let is_missing = |parser: &mut vt100::Parser| !is_shown(parser.screen());
        let waited = changed.wait_timeout_while(parser, DEADLINE, is_missing);
        let (parser, waited) = waited.expect("no reader panics");
        let text = parser.screen().contents();
        assert!(!waited.timed_out(), "{what} is not on the screen:\n{text}");
        text
    }

    fn wait_for_text(&self, part: &str) -> String {
        self.wait_for(part, |screen| screen.contents().contains(part))
    }

    /// Ends rest after rest until the text of the screen is such.
    fn skip_to(&mut self, what: &str, is_such: impl Fn(&str) -> bool) {
        let end = Instant::now() + DEADLINE;
        loop {
            let (parser, changed) = &*self.screen;
            let parser = parser.lock().expect("no reader panics");
            let text = parser.screen().contents();
            if is_such(&text.split_whitespace().collect::<Vec<_>>().join(" ")) {
                return;
            }
            assert!(Instant::now() < end, "{what} is not on the screen:\n{text}");
            let waited = changed.wait_timeout(parser, Duration::from_millis(100));
            drop(waited.expect("no reader panics"));
            self.press(b"\x1b[C");
        }
    }

    fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).expect("it reads");
    }

    fn signal(&self, signal: Signal) {
        let process = Pid::from_child(&self.child);
        rustix::process::kill_process(process, signal).expect("it runs");
    }

    /// Waits for its end. Its terminal must be as it was, with the cursor on it, and not the other screen.
    fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("it was started");
        let after = tcgetattr(&self.terminal).expect("it is a terminal");
        assert_eq!(
            (after.local_modes, after.input_modes, after.output_modes),
            (
                self.before.local_modes,
                self.before.input_modes,
                self.before.output_modes
            ),
        );
        // A reader comes to the end where nobody has the other end open.
        drop(self.terminal);
        self.reader.join().expect("it does not panic");
        let parser = self.screen.0.lock().expect("no reader panics");
        let screen = parser.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor());
        (status, screen.contents())
    }
}

fn read(mut from: File, screen: Arc<(Mutex<vt100::Parser>, Condvar)>) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        // A pseudo-terminal whose other end is closed fails to be read.
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let mut parser = screen.0.lock().expect("nobody panics");
            parser.process(&bytes[..count]);
            screen.1.notify_all();
        }
    })
}

#[test]
fn decree_on_the_terminal() {
    let Ok(arguments) = env::var(ARGUMENTS) else {
        return;
    };
    let arguments = ["decree"].into_iter().chain(arguments.split(' '));
    let mut out = BufWriter::new(stdout().lock());
    let io = Io {
        stdin: &mut stdin().lock(),
        stdout: &mut out,
        stderr: &mut stderr(),
        terminal: true,
        utf8: true,
    };
    let exit = run(arguments.map(Into::into), io);
    assert_eq!(exit, Exit::Done);
}

#[test]
fn keys_hold_the_story_and_lead_through_it() {
    let mut session = Session::decree("demo");
    let text = session.wait_for_text("2xk7d NOT_READY");
    assert!(
        text.contains("node-a") && text.contains("space pause"),
        "{text}"
    );
    session.press(b" ");
    session.wait_for_text("PAUSED");
    session.press(b"\x1b[A");
    session.press(b" ");
    session.wait_for_text("speed 2");
    session.press(b"\x1b[B");
    session.wait_for_text("speed 1");
    session.press(b" ");
    session.wait_for_text("PAUSED");
    // It is held, and goes on step by step.
    session.press(b"\x1b[C");
    session.press(b"\x1b[C");
    session.wait_for_text("CROWDED_NODE    3 pods of this owner");
    session.press(b"q");
    let (status, text) = session.end();
    assert!(status.success(), "{text}");
}

#[test]
fn story_on_a_screen_tells_the_refusal_of_the_quota_and_ends_with_a_summary() {
    let mut session = Session::decree("demo");
    session.wait_for_text("space pause");
    session.skip_to("the refusal", |text| {
        text.contains("refused: pods \"web-new-") && text.contains("exceeded quota: pods")
    });
    session.skip_to("the end", |text| text.contains("the story has ended"));
    session.press(b"q");
    let (status, text) = session.end();
    assert!(status.success(), "{text}");
    assert!(text.contains("All 7 steps reached the goal"), "{text}");
}

#[test]
fn signals_and_ctrl_c_give_the_terminal_back() {
    for signal in [Signal::TERM, Signal::INT] {
        let session = Session::decree("demo");
        session.wait_for_text("space pause");
        session.signal(signal);
        let (status, text) = session.end();
        assert!(
            !status.success() && text.contains("interrupted before the end"),
            "{text}"
        );
    }
    let mut session = Session::decree("demo");
    session.wait_for_text("space pause");
    session.press(b"\x03");
    let (status, text) = session.end();
    assert!(
        !status.success() && text.contains("interrupted before the end"),
        "{text}"
    );
}

#[test]
fn top_is_drawn_until_q_or_a_signal_ends_it_and_gives_the_terminal_back() {
    let system = System::start(&["demo"]);
    let top = format!("top --interval 100ms --server {}", system.url);
    for ends in [
        |session: &mut Session| session.press(b"q"),
        |session: &mut Session| session.signal(Signal::TERM),
    ] {
        let mut session = Session::decree(&top);
        let text = session.wait_for_text("q quit");
        assert!(
            text.contains("decree top - ") && text.contains("default/web-7d4b9c"),
            "{text}"
        );
        ends(&mut session);
        let (status, text) = session.end();
        assert!(status.success(), "{text}");
    }
}

#[test]
fn panic_gives_the_terminal_back_and_is_told_after_that() {
    let variables = [("DECREE_TEST_PANIC_ON_SCREEN", "1")];
    let test = "demo::screen::tests::panics_on_a_screen";
    let session = Session::start(test, (24, 80), &variables);
    let (_, text) = session.end();
    assert!(text.contains("fell over"), "{text}");
}

#[test]
fn dumb_terminal_gets_lines() {
    let test = "tests::terminal::decree_on_the_terminal";
    let variables = [(ARGUMENTS, "demo"), ("TERM", "dumb")];
    let session = Session::start(test, (24, 80), &variables);
    let text = session.wait_for_text("$ decree simulate default/web-old");
    assert!(!text.contains("space pause"), "{text}");
    session.signal(Signal::TERM);
    session.end();
}

#[test]
fn colours_are_left_out_where_nobody_wants_them() {
    let test = "tests::terminal::decree_on_the_terminal";
    for (variables, is_coloured) in [
        (&[(ARGUMENTS, "demo")][..], true),
        (&[(ARGUMENTS, "demo"), ("NO_COLOR", "1")][..], false),
    ] {
        let mut session = Session::start(test, (24, 80), variables);
        session.wait_for_text("2xk7d NOT_READY");
        let parser = session.screen.0.lock().expect("no reader panics");
        let screen = parser.screen();
        let mut cells =
            (0..24).flat_map(|line| (0..80).filter_map(move |column| screen.cell(line, column)));
        let coloured = cells.any(|cell| cell.fgcolor() != vt100::Color::Default);
        assert_eq!(coloured, is_coloured);
        drop(parser);
        session.press(b"q");
        session.end();
    }
}
