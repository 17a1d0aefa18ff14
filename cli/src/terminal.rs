//! The terminal while a command draws on it: taken over, and given back however that ends.
//!
//! **Invariant:** a terminal that was taken over is given back when the [`DrawnTerminal`] is dropped, by a panic too. What panics have to
//! say meanwhile is kept, and written to standard error after that.

use std::{
    env,
    io::{self, IsTerminal as _, Stdout, Write as _, stderr, stdin, stdout},
    panic::{self, PanicHookInfo},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use ratatui::{
    Frame, Terminal,
    backend::CrosstermBackend,
    crossterm::{
        cursor, execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
    },
};

/// A terminal that is drawn on.
pub(crate) struct DrawnTerminal {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    _taken: Taken,
}

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Sync + Send>;

/// The terminal, taken over. Gives it back when dropped.
struct Taken {
    panics: Arc<Mutex<Vec<String>>>,
    hook: Option<Hook>,
}

/// Returns whether a terminal can be drawn on, and keys can be read: both streams are terminals, and of a kind that can place text.
pub(crate) fn is_possible() -> bool {
    let can_place = env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    can_place && stdin().is_terminal() && stdout().is_terminal()
}

// === impl DrawnTerminal ===

impl DrawnTerminal {
    /// Takes the terminal over.
    pub(crate) fn open() -> io::Result<Self> {
        let taken = Taken::take()?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        Ok(Self {
            terminal,
            _taken: taken,
        })
    }

    /// Draws a frame.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(|_| ())
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
