//! The terminal while the demonstration draws on it: taken over, read for keys, and given back however it ends.
//!
//! **Invariant:** a terminal that was taken over is given back when the [`Screen`] is dropped, by a panic too. What panics have to say
//! meanwhile is kept, and written to standard error after that.

use std::{
    env,
    io::{self, IsTerminal as _, Stdout, Write as _, stderr, stdin, stdout},
    panic::{self, PanicHookInfo},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use ratatui::{
    Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor, event, execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
    },
};

use super::{
    picture::Picture,
    playback::{self, Playback, Wish},
};

/// The time between two drawings: a terminal over a slow line follows.
const FRAME: Duration = Duration::from_millis(40);

/// A terminal that is drawn on.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    drawn: Option<Instant>,
    pub(super) playback: Playback,
    pub(super) picture: Picture,
    _taken: Taken,
}

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Sync + Send>;

/// The terminal, taken over. Gives it back when dropped.
struct Taken {
    panics: Arc<Mutex<Vec<String>>>,
    hook: Option<Hook>,
}

/// Returns whether a screen can be drawn, and keys can be read: both streams are terminals, and of a kind that can place text.
pub(super) fn is_possible() -> bool {
    let can_place = env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    can_place && stdin().is_terminal() && stdout().is_terminal()
}

// === impl Screen ===

impl Screen {
    /// Takes the terminal over.
    pub(super) fn open(picture: Picture) -> io::Result<Self> {
        let taken = Taken::take()?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        Ok(Self {
            terminal,
            drawn: None,
            playback: Playback::default(),
            picture,
            _taken: taken,
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

// === impl Taken ===

impl Taken {
    fn take() -> io::Result<Self> {
        enable_raw_mode()?;
        let panics = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&panics);
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push(panic.to_string());
        }));
        // From here on, dropping it gives the terminal back.
        let taken = Self {
            panics,
            hook: Some(hook),
        };
        execute!(stdout(), EnterAlternateScreen, cursor::Hide)?;
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // Where the terminal has gone there is nothing to give back, and nobody to say it to.
        let _ = execute!(stdout(), LeaveAlternateScreen, cursor::Show);
        let _ = disable_raw_mode();
        // A thread that panics may not change the hook; its process is about to end.
        if let Some(hook) = self.hook.take().filter(|_| !thread::panicking()) {
            panic::set_hook(hook);
        }
        let panics = self.panics.lock().unwrap_or_else(PoisonError::into_inner);
        for panic in panics.iter() {
            let _ = writeln!(stderr(), "{panic}");
        }
    }
}

#[cfg(test)]
mod tests {
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
