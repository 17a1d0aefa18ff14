//! Tables as kubectl prints them: capital headers, columns as wide as their content and three spaces, no borders.

use std::{io, io::Write};

use service::escaped;

use crate::{
    page::Page,
    paint::{Paint, severity_of},
};

/// The column of colored words.
const STATE: &str = "STATE";
/// The number of spaces between columns.
const GAP: usize = 3;
/// The minimum width of a column with its gap, as in kubectl.
const COLUMN_MIN: usize = 6;

/// Rows under headers. Owned by the command that prints it.
#[derive(Debug)]
pub(crate) struct Table {
    headers: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    paint: Paint,
    has_headers: bool,
}

/// A table that is printed while its rows arrive; its columns grow and never shrink.
#[derive(Debug)]
pub(crate) struct TableStream {
    headers: Vec<String>,
    widths: Vec<usize>,
    paint: Paint,
}

/// Puts text on one line, and escapes characters that steer a terminal, turn the direction of writing or are invisible: much of
/// it comes from peers.
pub(crate) fn one_line(text: &str) -> String {
    escaped(&text.replace(['\n', '\r', '\t'], " "))
}

// === impl Table ===

impl Table {
    pub(crate) fn new(headers: impl IntoIterator<Item = &'static str>) -> Self {
        Self {
            headers: headers.into_iter().collect(),
            rows: Vec::new(),
            paint: Paint::default(),
            has_headers: true,
        }
    }

    pub(crate) const fn on(mut self, page: Page) -> Self {
        self.paint = page.paint;
        self
    }

    /// Leaves out the line of headers if `no_headers`.
    pub(crate) const fn no_headers(mut self, no_headers: bool) -> Self {
        self.has_headers = !no_headers;
        self
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
        let mut stream = TableStream::new(self.headers.iter().copied(), self.paint);
        let headers = self.has_headers.then(|| stream.headers.clone());
        let lines = || headers.iter().chain(&self.rows);
        lines().for_each(|cells| stream.widen(cells));
        lines().try_for_each(|cells| writeln!(out, "{indent}{}", stream.line(cells)))
    }
}

// === impl TableStream ===

impl TableStream {
    pub(crate) fn new(headers: impl IntoIterator<Item = &'static str>, paint: Paint) -> Self {
        let headers: Vec<_> = headers.into_iter().map(str::to_owned).collect();
        Self {
            widths: vec![0; headers.len()],
            headers,
            paint,
        }
    }

    /// Widens the columns to these minimum widths.
    pub(crate) fn at_least(mut self, widths: impl Into<Vec<usize>>) -> Self {
        self.widths = widths.into();
        self
    }

    pub(crate) fn write_headers(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let headers = self.headers.clone();
        self.write(out, &headers)
    }

    pub(crate) fn write(&mut self, out: &mut dyn Write, cells: &[String]) -> io::Result<()> {
        let cells: Vec<_> = cells.iter().map(|cell| one_line(cell)).collect();
        self.widen(&cells);
        writeln!(out, "{}", self.line(&cells))
    }

    /// Widens the columns to fit these cells.
    pub(crate) fn widen(&mut self, cells: &[String]) {
        for (width, cell) in self.widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }

    fn line(&self, cells: &[String]) -> String {
        let mut line = String::new();
        for ((header, width), cell) in self.headers.iter().zip(&self.widths).zip(cells) {
            let gap = (width + GAP).max(COLUMN_MIN) - cell.chars().count();
            if header == STATE {
                line.push_str(&self.paint.paint(severity_of(cell), cell));
            } else {
                line.push_str(cell);
            }
            line.extend(std::iter::repeat_n(' ', gap));
        }
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::tests::written as text;

    fn cells(texts: [&str; 3]) -> [String; 3] {
        texts.map(str::to_owned)
    }

    #[test]
    fn columns_fit_their_cells_and_no_cell_breaks_a_line_or_steers_a_terminal() {
        let mut table = Table::new(["NAME", "UP", "WHY"]);
        table.row(cells(["web", "10", "grün und\u{fc}bel"]));
        table.row(cells(["a-long-name", "2", ""]));
        table.row(cells(["a\nb", "\u{1b}[2J", "c\r"]));
        table.row(cells(["a\u{202e}b", "1", "\u{2066}"]));
        expect![[r#"
            NAME          UP          WHY
            web           10          grün undübel
            a-long-name   2
            a b           \u{1b}[2J   c
            a\u{202e}b    1           \u{2066}
        "#]]
        .assert_eq(&text(|out| table.write(out, "")));
    }

    #[test]
    fn states_have_colors_and_columns_stay_in_line() {
        let mut table = Table::new(["NAME", "STATE", "WHY"]);
        table.row(cells(["web", "In sync", "x"]));
        table.row(cells(["api", "Blocked", "y"]));
        let plain = text(|out| table.write(out, ""));
        table.paint = Paint::new(true);
        let colored = text(|out| table.write(out, ""));
        let in_sync = "\u{1b}[32mIn sync\u{1b}[0m   x";
        assert!(colored.contains(in_sync), "{colored}");
        let codes = ["\u{1b}[32m", "\u{1b}[31m", "\u{1b}[0m"];
        let without = codes
            .iter()
            .fold(colored, |text, code| text.replace(code, ""));
        assert_eq!(without, plain);
    }

    #[test]
    fn arriving_rows_only_widen_the_columns() {
        let mut stream = TableStream::new(["A", "B", "C"], Paint::default()).at_least([4, 0, 0]);
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
