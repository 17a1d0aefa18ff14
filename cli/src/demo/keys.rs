//! The key `q`, which ends the demo as Ctrl-C does.

use std::{
    io,
    os::fd::OwnedFd,
    thread::{self, JoinHandle},
};

use rustix::{
    io::Errno,
    process::getpgrp,
    termios::{
        LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
    },
};
use tokio_util::sync::CancellationToken;

/// The time for which the terminal waits for a key, in tenths of a second.
const WAIT: u8 = 1;

/// Reads keys. Dropping it restores the terminal.
#[derive(Debug)]
pub(super) struct Keys {
    ended: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

// === impl Keys ===

impl Keys {
    /// Cancels `stop` on the key `q`. `None` if the terminal belongs to another program.
    pub(super) fn listen(terminal: OwnedFd, stop: &CancellationToken) -> io::Result<Option<Self>> {
        if tcgetpgrp(&terminal) != Ok(getpgrp()) {
            return Ok(None);
        }
        let before = tcgetattr(&terminal)?;
        let mut at_once = before.clone();
        at_once
            .local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO);
        at_once.special_codes[SpecialCodeIndex::VMIN] = 0;
        at_once.special_codes[SpecialCodeIndex::VTIME] = WAIT;
        tcsetattr(&terminal, OptionalActions::Now, &at_once)?;
        let ended = stop.child_token();
        let (stop, until) = (stop.clone(), ended.clone());
        let thread = thread::Builder::new()
            .name("keys".to_owned())
            .spawn(move || read(&terminal, &before, &stop, &until))?;
        Ok(Some(Self {
            ended,
            thread: Some(thread),
        }))
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.ended.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn read(terminal: &OwnedFd, before: &Termios, stop: &CancellationToken, until: &CancellationToken) {
    let mut key = [0];
    while !until.is_cancelled() {
        match rustix::io::read(terminal, &mut key) {
            Ok(1) if key == *b"q" => stop.cancel(),
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    let _ = tcsetattr(terminal, OptionalActions::Now, before);
}
