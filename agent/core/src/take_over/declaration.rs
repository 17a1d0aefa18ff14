//! The record of whether the built-in controller is on.

use jiff::Timestamp;

/// The annotation of the probe that holds the record. Its first word counts; the rest is for people.
pub const DECLARATION_ANNOTATION: &str = "decree.dev/built-in-replicaset-controller";

/// The longest record that is kept. It fits the names of a user, a controller and an agent.
const BYTES_MAX: usize = 512;

/// What a person or an agent has recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The first word of the record.
    pub built_in: BuiltIn,
    /// The record, for people.
    pub text: String,
}

/// The recorded state of the built-in controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltIn {
    /// A person has declared that it is off, so agents act.
    Off,
    /// A person has declared that it is on or will be, so agents stand by. Also any unknown word.
    On,
    /// An agent has found another controller on, and has stopped.
    FoundOn,
}

impl Declaration {
    /// Reads the value of the [annotation](DECLARATION_ANNOTATION).
    #[must_use]
    pub fn parse(value: &str) -> Self {
        let built_in = match value.split_whitespace().next() {
            Some("off") => BuiltIn::Off,
            Some("found-on") => BuiltIn::FoundOn,
            Some(_) | None => BuiltIn::On,
        };
        let text = value[..value.floor_char_boundary(BYTES_MAX)].to_owned();
        Self { built_in, text }
    }

    /// Returns the record of a person who turns the built-in controller off or on.
    #[must_use]
    pub fn by_person(now: Timestamp, is_off: bool, user: &str) -> Self {
        let word = if is_off { "off" } else { "on" };
        Self::parse(&format!("{word} since {now:.0}, declared by {user}"))
    }

    /// Returns the record of an agent that has stopped because `writer` answered.
    pub(super) fn found_on(now: Timestamp, writer: &str, agent: &str) -> Self {
        Self::parse(&format!(
            "found-on since {now:.0}: {writer} answered {agent}, which has stopped"
        ))
    }

    /// Returns the time of the record; `None` if it has another form.
    #[must_use]
    pub fn since(&self) -> Option<Timestamp> {
        let time = self.text.split_whitespace().nth(2)?;
        time.trim_end_matches([',', ':']).parse().ok()
    }
}
