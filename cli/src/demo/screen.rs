//! Where the demonstration is seen: lines that stay, and on a terminal a view below them that is drawn again and again.

use std::io::{self, Write};

use super::scene::Standing;
use crate::table::Table;

/// How many ReplicaSets the view has room for.
const SETS_MAX: usize = 12;
/// How wide the bar of a ReplicaSet is.
const BAR: i64 = 20;
/// Goes up some lines and clears what is below: `ESC [ n A`, `ESC [ J`.
const CLEAR: &str = "\x1b[J";
/// Lets long lines end at the margin while the view is drawn, so that a line is a line.
const WRAP_OFF: &str = "\x1b[?7l";
const WRAP_ON: &str = "\x1b[?7h";

/// The output of one demonstration.
#[derive(Debug)]
pub(super) struct Screen {
    live: bool,
    /// How many lines of the view are on the terminal.
    drawn: usize,
}

/// What the view shows.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) heading: &'a str,
    pub(super) standings: &'a [Standing],
    pub(super) in_flight: i64,
    /// The last decisions, the newest last.
    pub(super) decisions: &'a [String],
}

// === impl Screen ===

impl Screen {
    pub(super) const fn new(live: bool) -> Self {
        Self { live, drawn: 0 }
    }

    pub(super) const fn is_live(&self) -> bool {
        self.live
    }

    /// Writes a line that stays.
    pub(super) fn line(&mut self, out: &mut dyn Write, text: &str) -> io::Result<()> {
        self.erase(out)?;
        writeln!(out, "{text}")?;
        out.flush()
    }

    /// Draws the view, where there is a terminal to draw it on.
    pub(super) fn draw(&mut self, out: &mut dyn Write, frame: &Frame<'_>) -> io::Result<()> {
        if !self.live {
            return Ok(());
        }
        self.erase(out)?;
        let text = frame.render()?;
        self.drawn = text.lines().count();
        write!(out, "{WRAP_OFF}{text}{WRAP_ON}")?;
        out.flush()
    }

    /// Takes the view away.
    pub(super) fn erase(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.drawn > 0 {
            write!(out, "\x1b[{}A{CLEAR}", self.drawn)?;
            self.drawn = 0;
        }
        Ok(())
    }
}

// === impl Frame ===

impl Frame<'_> {
    fn render(&self) -> io::Result<String> {
        let Self {
            heading,
            standings,
            in_flight,
            decisions,
        } = self;
        let mut out = Vec::new();
        writeln!(out, "\n{heading}   batches in flight: {in_flight}\n")?;
        let mut table = Table::new(["REPLICASET", "WANTED", "THERE", "READY", ""]);
        for standing in standings.iter().take(SETS_MAX) {
            let numbers = [standing.wanted, standing.there, standing.ready];
            let [wanted, there, ready] = numbers.map(|number| number.to_string());
            table.row([standing.path.clone(), wanted, there, ready, bar(standing)]);
        }
        table.write(&mut out, "  ")?;
        let left = standings.len().saturating_sub(SETS_MAX);
        if left > 0 {
            writeln!(out, "  and {left} more")?;
        }
        writeln!(out, "\n  LAST DECISIONS")?;
        decisions
            .iter()
            .try_for_each(|decision| writeln!(out, "  {decision}"))?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }
}

/// Draws ready, other and missing pods as a bar.
fn bar(standing: &Standing) -> String {
    let whole = standing.wanted.max(standing.there).max(1);
    let cells = |part: i64| usize::try_from(part * BAR / whole).unwrap_or(0);
    let (ready, there) = (cells(standing.ready), cells(standing.there));
    let missing = cells(whole).saturating_sub(there);
    [
        "█".repeat(ready),
        "▒".repeat(there.saturating_sub(ready)),
        "·".repeat(missing),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn standing(path: &str, wanted: i64, there: i64, ready: i64) -> Standing {
        let path = path.to_owned();
        Standing {
            path,
            wanted,
            there,
            ready,
            going: 0,
            told: true,
            failure: None,
        }
    }

    #[test]
    fn view_shows_replicas_batches_and_decisions() {
        let frame = Frame {
            heading: "step 1: scale up",
            standings: &[
                standing("default/web", 8, 6, 4),
                standing("default/db", 0, 0, 0),
            ],
            in_flight: 1,
            decisions: &["default/web create 2".to_owned()],
        };
        expect![[r#"

            step 1: scale up   batches in flight: 1

              REPLICASET    WANTED   THERE   READY
              default/web   8        6       4       ██████████▒▒▒▒▒·····
              default/db    0        0       0       ····················

              LAST DECISIONS
              default/web create 2
        "#]]
        .assert_eq(&frame.render().expect("a vector takes all"));
    }

    #[test]
    fn lines_that_stay_push_the_view_down() {
        let mut screen = Screen::new(true);
        let mut out = Vec::new();
        let frame = Frame {
            heading: "h",
            standings: &[],
            in_flight: 0,
            decisions: &[],
        };
        screen.draw(&mut out, &frame).expect("a vector takes all");
        let drawn = screen.drawn;
        screen.line(&mut out, "stays").expect("a vector takes all");
        let text = String::from_utf8(out).expect("only text was written");
        assert!(
            text.ends_with(&format!("\x1b[{drawn}A\x1b[Jstays\n")),
            "{text:?}"
        );
    }

    #[test]
    fn without_a_terminal_nothing_is_drawn() {
        let mut out = Vec::new();
        let frame = Frame {
            heading: "h",
            standings: &[],
            in_flight: 0,
            decisions: &[],
        };
        Screen::new(false)
            .draw(&mut out, &frame)
            .expect("a vector takes all");
        assert!(out.is_empty());
    }
}
