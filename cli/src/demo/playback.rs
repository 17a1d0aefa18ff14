//! How fast the story is told, and whether it is: what keys say about it. Pure.

use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The keys, as the screen names them.
pub(super) const KEYS: &str = "space pause · → next · ↑↓ speed · q quit";
/// The same in ASCII.
pub(super) const KEYS_ASCII: &str = "space pause, right next, up/down speed, q quit";

/// By how much rests are shortened, slowest first, and how that is written.
const SPEEDS: [(f64, &str); 5] = [
    (0.25, "1/4 speed"),
    (0.5, "1/2 speed"),
    (1.0, "speed 1"),
    (2.0, "speed 2"),
    (4.0, "speed 4"),
];

/// What a person wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// To hold the story, or to let it go on.
    Pause,
    /// To end this rest.
    Next,
    Faster,
    Slower,
    /// To leave.
    Quit,
    /// What SIGINT means where a terminal sends signals.
    Interrupt,
}

/// How the story is told at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Playback {
    pub(super) is_paused: bool,
    speed: usize,
}

/// Returns what a key means.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "all other keys mean nothing, and so will those to come"
)]
pub(super) fn wish(key: KeyEvent) -> Option<Wish> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            Some(Wish::Interrupt)
        }
        KeyCode::Char(' ') => Some(Wish::Pause),
        KeyCode::Right | KeyCode::Enter => Some(Wish::Next),
        KeyCode::Up => Some(Wish::Faster),
        KeyCode::Down => Some(Wish::Slower),
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => Some(Wish::Quit),
        _ => None,
    }
}

// === impl Playback ===

impl Default for Playback {
    fn default() -> Self {
        Self {
            is_paused: false,
            speed: 2,
        }
    }
}

impl Playback {
    /// Follows a wish about pause or speed.
    pub(super) fn follow(&mut self, wish: Wish) {
        match wish {
            Wish::Pause => self.is_paused = !self.is_paused,
            Wish::Faster => self.speed = (self.speed + 1).min(SPEEDS.len() - 1),
            Wish::Slower => self.speed = self.speed.saturating_sub(1),
            Wish::Next | Wish::Quit | Wish::Interrupt => {}
        }
    }

    /// Returns how much of a rest passes in so much time: nothing during a pause.
    pub(super) fn passes(self, elapsed: Duration) -> Duration {
        match self.is_paused {
            true => Duration::ZERO,
            false => elapsed.mul_f64(SPEEDS[self.speed].0),
        }
    }

    /// Says it in a word or two.
    pub(super) const fn word(self) -> &'static str {
        match self.is_paused {
            true => "PAUSED",
            false => SPEEDS[self.speed].1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_holds_a_rest_and_speed_shortens_it() {
        let second = Duration::from_secs(1);
        let mut playback = Playback::default();
        assert_eq!(playback.passes(second), second);
        playback.follow(Wish::Faster);
        assert_eq!(playback.passes(second), 2 * second);
        playback.follow(Wish::Pause);
        assert_eq!(
            (playback.passes(second), playback.word()),
            (Duration::ZERO, "PAUSED")
        );
        playback.follow(Wish::Pause);
        for _ in 0..9 {
            playback.follow(Wish::Slower);
        }
        assert_eq!(playback.passes(second), second / 4);
    }

    #[test]
    fn keys_mean_what_the_screen_says() {
        let plain = |code| wish(KeyEvent::new(code, KeyModifiers::NONE));
        assert_eq!(plain(KeyCode::Char(' ')), Some(Wish::Pause));
        assert_eq!(plain(KeyCode::Right), Some(Wish::Next));
        assert_eq!(plain(KeyCode::Up), Some(Wish::Faster));
        assert_eq!(plain(KeyCode::Down), Some(Wish::Slower));
        assert_eq!(plain(KeyCode::Char('q')), Some(Wish::Quit));
        assert_eq!(plain(KeyCode::Char('c')), None);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(wish(interrupt), Some(Wish::Interrupt));
    }
}
