//! Lines that a peer can cause at will: one a minute of each peer and kind.
//!
//! The first line is written at once, the last one of its minute at the end of that minute, with the number left out between them. So the
//! log has the latest state, and says how much it lacks.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use tracing::{Level, callsite::Identifier};

use super::line::Line;

/// How long lines of a kind wait after one was written.
pub(super) const MINUTE: Duration = Duration::from_secs(60);
/// The maximum number of peers and kinds that are told apart. All others share a line for each place in the code.
pub(super) const KINDS_MAX: usize = 1024;
/// The field with the peer. Only lines with this field are limited.
const PEER: &str = "peer";
/// The fields whose values, of which there are few, tell kinds apart.
const KINDS: [&str; 2] = ["kind", "reason"];

/// The kinds of the last minute, with the last line of each that was left out.
#[derive(Debug, Default)]
pub(super) struct Repeats(HashMap<Kind, Window>);

/// What makes two lines the same.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Kind {
    /// The place in the code.
    callsite: Identifier,
    /// The peer and the values of [`KINDS`]; `None` beyond [`KINDS_MAX`].
    told_apart: Option<[String; 3]>,
}

/// The minute after a line.
#[derive(Debug)]
struct Window {
    until: Instant,
    omitted: u64,
    last: Option<Line>,
}

impl Repeats {
    /// Returns the line if it is to be written now.
    pub(super) fn admit(&mut self, now: Instant, line: Line) -> Option<Line> {
        let is_limited = line.level <= Level::INFO;
        let Some(peer) = line.text(PEER).filter(|_| is_limited) else {
            return Some(line);
        };
        let [kind, reason] = KINDS.map(|name| line.text(name).unwrap_or_default());
        let mut kind = Kind {
            callsite: line.callsite.clone(),
            told_apart: Some([peer, kind, reason]),
        };
        if self.0.len() >= KINDS_MAX && !self.0.contains_key(&kind) {
            kind.told_apart = None;
        }
        if let Some(window) = self.0.get_mut(&kind) {
            window.omitted += 1;
            window.last = Some(line.shortened());
            return None;
        }
        self.0.insert(kind, Window::since(now));
        Some(line)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the lines whose minute is over, the oldest first.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Line> {
        let mut due = Vec::new();
        self.0.retain(|_, window| {
            if now < window.until {
                return true;
            }
            let Window { omitted, last, .. } = std::mem::replace(window, Window::since(now));
            let Some(mut line) = last else { return false };
            // The line itself is not left out.
            line.omitted = omitted - 1;
            due.push(line);
            true
        });
        due.sort_by_key(|line| line.time);
        due
    }
}

impl Window {
    fn since(now: Instant) -> Self {
        Self {
            until: now + MINUTE,
            omitted: 0,
            last: None,
        }
    }
}
