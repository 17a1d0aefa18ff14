//! Tables as kubectl prints them: capital headers, columns as wide as their content and three spaces, no borders.

use std::{io, io::Write};

use runtime::escaped;

use crate::{
    paint::{Paint, severity_of},
    streams::Io,
};

mod narrow;

/// The column of words that have a color.
const STATE: &str = "STATE";
/// What separates columns.
const GAP: usize = 3;
/// The least width of a column with its gap, as kubectl has it.
const COLUMN_MIN: usize = 6;
/// How many characters of a name stay at least.
const NAME_MIN: usize = 12;

/// Rows under headers. Owned by the command that prints it.
#[derive(Debug)]
pub(crate) struct Table {
    headers: Vec<String>,
    rows: Vec<Vec<String>>,
    /// How wide the terminal is that it is shortened for.
    columns: Option<usize>,
    paint: Paint,
    has_headers: bool,
    /// How many of the first columns are names, which stay however narrow it gets.
    names: usize,
    /// Whether the last column stays too.
    keeps_last: bool,
}

/// A table that is printed while its rows arrive; its columns grow and never shrink.
#[derive(Debug)]
pub(crate) struct Stream {
    widths: Vec<usize>,
    /// Which column has the words that have a color.
    states: Option<usize>,
    paint: Paint,
}

/// Returns the width of a column with its gap.
fn column(width: usize) -> usize {
    (width + GAP).max(COLUMN_MIN)
}

/// Returns a text in one line, in which no character steers a terminal, turns the direction of writing or stays unseen: much of it
/// comes from elsewhere.
pub(crate) fn one_line(text: &str) -> String {
    escaped(&text.replace(['\n', '\r', '\t'], " "))
}

// === impl Table ===

impl Table {
    pub(crate) fn new(headers: impl IntoIterator<Item = &'static str>) -> Self {
        Self {
            headers: headers.into_iter().map(str::to_owned).collect(),
            rows: Vec::new(),
            columns: None,
            paint: Paint::default(),
            has_headers: true,
            names: 1,
            keeps_last: false,
        }
    }

    /// Suits the table to standard output: on a terminal, states have colors, and names are shortened where lines would be too long for it and not
    /// all that is known is wanted.
    pub(crate) fn on(self, io: &Io<'_>, is_wide: bool) -> Self {
        let terminal = (io.terminal)().filter(|_| !is_wide);
        Self {
            columns: terminal.map(|terminal| terminal.columns),
            paint: io.paint(),
            ..self
        }
    }

    /// Returns the lines with their names as short as the terminal wants them.
    fn shortened(&self) -> Vec<Vec<String>> {
        let lines = self.lines().into_iter();
        let Some(columns) = self.columns else {
            return lines.cloned().collect();
        };
        let mut needed = Stream::new(vec![0; self.headers.len()]);
        lines.clone().for_each(|cells| needed.widen(cells));
        let widths = narrow::widths(&self.headers, &needed.widths, column, columns);
        let short = |(cell, width): (&String, &Option<usize>)| match width {
            Some(width) => narrow::middle(cell, *width),
            None => cell.clone(),
        };
        let lines = lines.map(|cells| cells.iter().zip(&widths).map(short).collect());
        lines.collect()
    }

    /// Says how many of the first columns are names.
    pub(crate) fn names(self, names: usize) -> Self {
        Self { names, ..self }
    }

    /// Says whether the last column stays however narrow it gets.
    pub(crate) fn keeps_last(self, keeps_last: bool) -> Self {
        Self { keeps_last, ..self }
    }

    /// Leaves out columns from the end until the table is no wider than this, but never those of names. Where the last column stays, names are
    /// shortened in the middle for it, and at last its own end is left out.
    pub(crate) fn fit(mut self, columns: usize) -> Self {
        let kept = usize::from(self.keeps_last);
        while self.headers.len() > self.names + kept && self.width() > columns {
            let left_out = self.headers.len() - 1 - kept;
            self.headers.remove(left_out);
            self.rows.iter_mut().for_each(|cells| {
                cells.remove(left_out);
            });
        }
        if self.keeps_last {
            let mut longest = self.longest_name();
            while longest > NAME_MIN && self.width() > columns {
                longest -= 1;
                let names = self
                    .rows
                    .iter_mut()
                    .flat_map(|cells| &mut cells[..self.names]);
                names.for_each(|name| *name = narrow::middle(name, longest));
            }
            let over = self.width().saturating_sub(columns);
            let last = self
                .rows
                .iter()
                .filter_map(|cells| Some(cells.last()?.chars().count()));
            let room = last.max().unwrap_or(0).saturating_sub(over);
            for cell in self.rows.iter_mut().filter_map(|cells| cells.last_mut()) {
                if cell.chars().count() > room {
                    *cell = cell
                        .chars()
                        .take(room.saturating_sub(1))
                        .chain(['…'])
                        .collect();
                }
            }
        }
        self
    }

    fn longest_name(&self) -> usize {
        let names = self.rows.iter().flat_map(|cells| &cells[..self.names]);
        names.map(|name| name.chars().count()).max().unwrap_or(0)
    }

    fn width(&self) -> usize {
        let lines = self.lines();
        let mut stream = Stream::new(vec![0; self.headers.len()]);
        lines.iter().for_each(|cells| stream.widen(cells));
        let widths = lines.iter().map(|cells| stream.line(cells).chars().count());
        widths.max().unwrap_or(0)
    }

    fn lines(&self) -> Vec<&Vec<String>> {
        let headers = Some(&self.headers).filter(|_| self.has_headers);
        headers.into_iter().chain(&self.rows).collect()
    }

    /// Leaves out the line of headers where `no_headers` says so.
    pub(crate) fn no_headers(self, no_headers: bool) -> Self {
        Self {
            has_headers: !no_headers,
            ..self
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().map(|cell| one_line(&cell));
        self.rows.push(cells.collect());
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes the table; each line begins with `indent`.
    pub(crate) fn write(&self, out: &mut dyn Write, indent: &str) -> io::Result<()> {
        let lines = self.shortened();
        let mut stream = Stream {
            states: self.headers.iter().position(|header| header == STATE),
            paint: self.paint,
            ..Stream::new(vec![0; self.headers.len()])
        };
        lines.iter().for_each(|cells| stream.widen(cells));
        lines
            .iter()
            .try_for_each(|cells| writeln!(out, "{indent}{}", stream.line(cells)))
    }
}

// === impl Stream ===

impl Stream {
    /// Returns a table whose columns are at least so wide.
    pub(crate) fn new(widths: impl Into<Vec<usize>>) -> Self {
        Self {
            widths: widths.into(),
            states: None,
            paint: Paint::default(),
        }
    }

    pub(crate) fn write(&mut self, out: &mut dyn Write, cells: &[String]) -> io::Result<()> {
        let cells: Vec<_> = cells.iter().map(|cell| one_line(cell)).collect();
        self.widen(&cells);
        writeln!(out, "{}", self.line(&cells))
    }

    /// Makes the columns as wide as these cells.
    pub(crate) fn widen(&mut self, cells: &[String]) {
        for (width, cell) in self.widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }

    fn line(&self, cells: &[String]) -> String {
        let mut line = String::new();
        for (at, (width, cell)) in self.widths.iter().zip(cells).enumerate() {
            let column = column(*width);
            if self.states == Some(at) {
                line.push_str(&self.paint.paint(severity_of(cell), cell))
            } else {
                line.push_str(cell)
            }
            line.extend(std::iter::repeat_n(
                ' ',
                column.saturating_sub(cell.chars().count()),
            ));
        }
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn cells(texts: [&str; 3]) -> [String; 3] {
        texts.map(str::to_owned)
    }

    fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).expect("a vector takes all");
        String::from_utf8(out).expect("only text was written")
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_three_spaces() {
        let mut table = Table::new(["NAME", "UP", "WHY"]);
        table.row(cells(["web", "10", "grün und\u{fc}bel"]));
        table.row(cells(["a-long-name", "2", ""]));
        expect![[r#"
            NAME          UP    WHY
            web           10    grün undübel
            a-long-name   2
        "#]]
        .assert_eq(&text(|out| table.write(out, "")));
    }

    #[test]
    fn columns_go_from_the_end_where_it_is_narrow_and_names_stay() {
        let table = |columns| {
            let mut table = Table::new(["CLUSTER", "NAME", "UP", "WHY"]).names(2);
            table.row(["kind", "default/web", "10", "because"].map(str::to_owned));
            text(|out| table.fit(columns).write(out, ""))
        };
        let whole = "CLUSTER   NAME          UP    WHY\nkind      default/web   10    because\n";
        assert_eq!(table(37), whole);
        let narrower = "CLUSTER   NAME          UP\nkind      default/web   10\n";
        assert_eq!(table(36), narrower);
        let names = "CLUSTER   NAME\nkind      default/web\n";
        assert_eq!((table(21), table(5)), (names.to_owned(), names.to_owned()));
    }

    #[test]
    fn names_are_shortened_in_the_middle_and_the_last_column_stays() {
        let table = |columns| {
            let mut table = Table::new(["NAME", "UP", "CAUSE"]).keeps_last(true);
            table.row(
                [
                    "payments/ledger-5f6a8b9c7",
                    "10",
                    "Quota exceeded: 404 of 300",
                ]
                .map(str::to_owned),
            );
            text(|out| table.fit(columns).write(out, ""))
        };
        expect![[r#"
            NAME                        CAUSE
            payments/ledger-5f6a8b9c7   Quota exceeded: 404 of 300
        "#]]
        .assert_eq(&table(59));
        expect![[r#"
            NAME               CAUSE
            payments…6a8b9c7   Quota exceeded: 404 of 300
        "#]]
        .assert_eq(&table(45));
        expect![[r#"
            NAME           CAUSE
            paymen…8b9c7   Quota exceeded…
        "#]]
        .assert_eq(&table(30));
    }

    #[test]
    fn cells_cannot_break_a_line_or_steer_a_terminal_or_turn_its_direction() {
        let mut table = Table::new(["NAME", "UP", "WHY"]);
        table.row(cells(["a\nb", "\u{1b}[2J", "c\r"]));
        table.row(cells(["a\u{202e}b", "1", "\u{2066}"]));
        expect![[r#"
            NAME         UP          WHY
            a b          \u{1b}[2J   c
            a\u{202e}b   1           \u{2066}
        "#]]
        .assert_eq(&text(|out| table.write(out, "")));
    }

    #[test]
    fn names_are_shortened_in_the_middle_until_lines_fit_a_terminal() {
        let table = |columns| {
            let mut table = Table::new(["NAMESPACE", "NAME", "STATE", "REASON"]);
            let long = format!("a-{}-5d4c7", "long-".repeat(12));
            table.row(["shop", &long, "InSync", &"because ".repeat(20)].map(str::to_owned));
            table.row(["shop", "web", "Waiting", ""].map(str::to_owned));
            table.columns = columns;
            text(|out| table.write(out, ""))
        };
        let name = |text: &str| {
            let line = text.lines().nth(1).expect("a row");
            line.split_whitespace().nth(1).expect("a name").to_owned()
        };
        let whole = table(None);
        assert!(name(&whole).len() > 60, "{whole}");
        assert_eq!(table(Some(200)), whole);
        let fits = table(Some(100));
        assert_eq!(name(&fits).chars().count(), 100 - 40 - 12 - 10 - 3);
        assert!(name(&fits).starts_with("a-long-") && name(&fits).ends_with("-5d4c7"));
        assert!(
            fits.contains("web ") && fits.contains("because because"),
            "{fits}"
        );
        assert_eq!(name(&table(Some(10))).chars().count(), narrow::SHORTEST);
    }

    #[test]
    fn states_have_colors_and_columns_stay_in_line() {
        let mut table = Table::new(["NAME", "STATE", "WHY"]);
        table.row(cells(["web", "InSync", "x"]));
        table.row(cells(["api", "Quarantined", "y"]));
        let plain = text(|out| table.write(out, ""));
        table.paint = Paint::new(true);
        let colored = text(|out| table.write(out, ""));
        assert!(
            colored.contains("\u{1b}[32mInSync\u{1b}[0m        x"),
            "{colored}"
        );
        let codes = ["\u{1b}[32m", "\u{1b}[31m", "\u{1b}[0m"];
        let without = codes
            .iter()
            .fold(colored, |text, code| text.replace(code, ""));
        assert_eq!(without, plain);
    }

    #[test]
    fn arriving_rows_only_widen_the_columns() {
        let mut stream = Stream::new([4, 0, 0]);
        let lines = text(|out| {
            stream.write(out, &cells(["a", "b", "c"]))?;
            stream.write(out, &cells(["longer", "b", "c"]))?;
            stream.write(out, &cells(["a", "b", "c"]))
        });
        expect![[r#"
            a      b     c
            longer   b     c
            a        b     c
        "#]]
        .assert_eq(&lines);
    }
}
