//! What `decree top` draws, and the keys that are pressed on it.

use std::{io, thread, time::Duration};

use ratatui::{
    Frame,
    crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
    layout::{Constraint, Layout, Rect},
    style::Modifier,
    widgets::{Paragraph, Row, Table},
};
use tokio::sync::mpsc;

use super::view::{Rows, View};
use crate::{args::Order, table::one_line, terminal::DrawnTerminal};

/// How often the reader of keys looks whether it is still wanted.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Between columns.
const SPACING: u16 = 2;
/// What the last line says.
const KEYS: &str = "q quit   sort by: d decisions   o operations   f in flight   u unconverged";

/// What a person wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Quit,
    Sort(Order),
    /// The size of the terminal has changed.
    Redraw,
}

/// A terminal that is drawn on.
pub(super) struct Screen {
    terminal: DrawnTerminal,
    wishes: mpsc::Receiver<Wish>,
}

// === impl Screen ===

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        let terminal = DrawnTerminal::open()?;
        // Keys are few, and those that nobody waits for are lost with the screen.
        let (sender, wishes) = mpsc::channel(16);
        thread::spawn(move || read(&sender));
        Ok(Self { terminal, wishes })
    }

    /// Returns the next wish; for ever waiting if keys cannot be read.
    pub(super) async fn wish(&mut self) -> Wish {
        match self.wishes.recv().await {
            Some(wish) => wish,
            None => std::future::pending().await,
        }
    }

    pub(super) fn draw(&mut self, title: &str, view: &View, is_wide: bool) -> io::Result<()> {
        self.terminal
            .draw(|frame| draw(frame, title, view, is_wide))
    }
}

fn read(wishes: &mpsc::Sender<Wish>) {
    while !wishes.is_closed() {
        let is_there = event::poll(LOOK_EVERY);
        let event = match is_there {
            Ok(true) => event::read(),
            Ok(false) => continue,
            Err(error) => Err(error),
        };
        let Ok(event) = event else { return };
        if let Some(wish) = wish(&event)
            && wishes.blocking_send(wish).is_err()
        {
            return;
        }
    }
}

fn wish(event: &Event) -> Option<Wish> {
    let key = match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => key,
        Event::Resize(_, _) => return Some(Wish::Redraw),
        Event::Key(_)
        | Event::FocusGained
        | Event::FocusLost
        | Event::Mouse(_)
        | Event::Paste(_) => {
            return None;
        }
    };
    let KeyEvent {
        code, modifiers, ..
    } = key;
    let has_control = modifiers.contains(KeyModifiers::CONTROL);
    if *code == KeyCode::Esc {
        return Some(Wish::Quit);
    }
    let KeyCode::Char(letter) = code else {
        return None;
    };
    match letter {
        // In raw mode it is a key and no signal.
        'c' if has_control => Some(Wish::Quit),
        'q' => Some(Wish::Quit),
        'd' => Some(Wish::Sort(Order::Decisions)),
        'o' => Some(Wish::Sort(Order::Operations)),
        'f' => Some(Wish::Sort(Order::InFlight)),
        'u' => Some(Wish::Sort(Order::Unconverged)),
        _ => None,
    }
}

/// Draws a line of title, the sessions, as many ReplicaSets as fit, and a line of keys.
fn draw(frame: &mut Frame<'_>, title: &str, view: &View, is_wide: bool) {
    let sessions = view.sessions(is_wide);
    let height = u16::try_from(sessions.rows.len()).unwrap_or(u16::MAX);
    // At least as much is left for the ReplicaSets.
    let height = height.saturating_add(2).min(frame.area().height / 2);
    let parts = [
        Constraint::Length(1),
        Constraint::Length(height),
        Constraint::Min(0),
        Constraint::Length(1),
    ];
    let [top, above, below, bottom] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Paragraph::new(title), top);
    draw_rows(frame, above, &sessions);
    let sets = view.replica_sets(is_wide, below.height.into());
    draw_rows(frame, below, &sets);
    frame.render_widget(Paragraph::new(KEYS), bottom);
}

fn draw_rows(frame: &mut Frame<'_>, area: Rect, rows: &Rows) {
    let cells: Vec<Vec<_>> = rows
        .rows
        .iter()
        .map(|cells| cells.iter().map(|cell| one_line(cell)).collect())
        .collect();
    let mut widths: Vec<_> = rows.headers.iter().map(|header| header.len()).collect();
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    fit(&mut widths, area.width.into());
    let widths = widths
        .into_iter()
        .map(|width| Constraint::Length(u16::try_from(width).unwrap_or(u16::MAX)));
    let header = Row::new(rows.headers.clone()).style(Modifier::REVERSED);
    let table = Table::new(cells.into_iter().map(Row::new), widths)
        .header(header)
        .column_spacing(SPACING);
    frame.render_widget(table, area);
}

/// Narrows the widest column, which is one of names, where all do not fit: figures stay whole.
fn fit(widths: &mut [usize], area: usize) {
    let gaps = usize::from(SPACING) * widths.len().saturating_sub(1);
    let over = (widths.iter().sum::<usize>() + gaps).saturating_sub(area);
    if let Some(widest) = widths.iter_mut().max() {
        *widest = widest.saturating_sub(over);
    }
}

#[cfg(test)]
mod tests;
