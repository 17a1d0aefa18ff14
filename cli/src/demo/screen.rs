//! The screen of the demonstration, and the keys that are pressed on it.

use std::{
    io,
    time::{Duration, Instant},
};

use ratatui::crossterm::event;

use super::{
    picture::Picture,
    playback::{self, Playback, Wish},
};
use crate::terminal::DrawnTerminal;

/// The time between two drawings: a terminal over a slow line follows.
const FRAME: Duration = Duration::from_millis(40);

/// A terminal that is drawn on.
pub(super) struct Screen {
    terminal: DrawnTerminal,
    drawn: Option<Instant>,
    pub(super) playback: Playback,
    pub(super) picture: Picture,
}

// === impl Screen ===

impl Screen {
    /// Takes the terminal over.
    pub(super) fn open(picture: Picture) -> io::Result<Self> {
        Ok(Self {
            terminal: DrawnTerminal::open()?,
            drawn: None,
            playback: Playback::default(),
            picture,
        })
    }

    /// Draws, unless it was drawn just now.
    pub(super) fn draw(&mut self) -> io::Result<()> {
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < FRAME) {
            return Ok(());
        }
        let (picture, playback) = (&self.picture, self.playback);
        self.terminal.draw(|frame| picture.draw(playback, frame))?;
        self.drawn = Some(Instant::now());
        Ok(())
    }

    /// Returns what the next key says that was pressed, if one was. What it says about pause and speed is followed.
    pub(super) fn next_wish(&mut self) -> io::Result<Option<Wish>> {
        while event::poll(Duration::ZERO)? {
            let key = event::read()?.as_key_press_event();
            let Some(wish) = key.and_then(playback::wish) else {
                continue;
            };
            self.playback.follow(wish);
            self.drawn = None;
            return Ok(Some(wish));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    /// A test of this name is started again, as a program on a pseudo-terminal.
    const ON_TERMINAL: &str = "DECREE_TEST_PANIC_ON_SCREEN";

    /// Panics on a screen, where the process tier wants it to; elsewhere there is no terminal to take.
    #[test]
    #[should_panic(expected = "fell over")]
    fn panics_on_a_screen() {
        if env::var_os(ON_TERMINAL).is_some() {
            let mut screen = Screen::open(Picture::default()).expect("a terminal");
            screen.draw().expect("a terminal");
            assert!(env::var_os(ON_TERMINAL).is_none(), "fell over");
        }
        panic!("fell over");
    }
}
