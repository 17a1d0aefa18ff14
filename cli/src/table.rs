//! Tables as kubectl prints them: capital headers, columns as wide as their content and three spaces, no borders.
//!
//! **Invariant:** on a terminal, a row fits its width, if single words do. Long names are shortened in the middle, and the last columns
//! that still do not fit are below their row.

use std::{io, io::Write};

use runtime::escaped;

use crate::{
    page::{HANGING, Page},
    paint::severity_of,
};

/// The column of colored words.
const STATE: &str = "STATE";
/// An empty cell.
const NOTHING: &str = "-";
/// The number of spaces between columns.
const GAP: usize = 3;
/// The minimum width of a column with its gap, as in kubectl.
const COLUMN_MIN: usize = 6;
/// The columns of names, which can be shortened.
const NAMES: [&str; 5] = ["CLUSTER", "NAMESPACE", "NAME", "POD", "REPLICASET"];
/// The minimum length of shortened names.
const SHORTEST: usize = 20;
/// The columns of text that needs no header below a row.
const TEXTS: [&str; 5] = ["CAUSE", "DETAIL", "MESSAGE", "PODS", "REASON"];

/// Rows under headers. Owned by the command that prints it.
#[derive(Debug)]
pub(crate) struct Table {
    headers: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    page: Page,
    has_headers: bool,
}

/// A table that is printed while its rows arrive; its columns grow and never shrink.
#[derive(Debug)]
pub(crate) struct TableStream {
    headers: Vec<String>,
    /// The widths at which no cell is shortened.
    needed: Vec<usize>,
    page: Page,
}

/// The widths of the columns in the line of a row. All further columns are below it.
type Layout = Vec<usize>;

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
            page: Page::default(),
            has_headers: true,
        }
    }

    pub(crate) const fn on(mut self, page: Page) -> Self {
        self.page = page;
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
        let room = self.page.columns.map(|it| it.saturating_sub(indent.len()));
        let page = Page {
            columns: room,
            ..self.page
        };
        let mut stream = TableStream::new(self.headers.iter().copied(), page);
        let headers = self.has_headers.then(|| stream.headers.clone());
        headers.iter().for_each(|cells| stream.widen(cells));
        self.rows.iter().for_each(|cells| stream.widen(cells));
        let layout = stream.layout();
        let headers = headers.map(|headers| stream.line(&layout, &headers));
        let rows = self.rows.iter();
        let rows = rows.flat_map(|cells| stream.lines(&layout, cells));
        let mut lines = headers.into_iter().chain(rows);
        lines.try_for_each(|line| writeln!(out, "{indent}{line}"))
    }
}

// === impl TableStream ===

impl TableStream {
    pub(crate) fn new(headers: impl IntoIterator<Item = &'static str>, page: Page) -> Self {
        let headers: Vec<_> = headers.into_iter().map(str::to_owned).collect();
        Self {
            needed: vec![0; headers.len()],
            headers,
            page,
        }
    }

    /// Widens the columns to these minimum widths.
    pub(crate) fn at_least(mut self, widths: impl Into<Vec<usize>>) -> Self {
        self.needed = widths.into();
        self
    }

    pub(crate) fn write_headers(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let headers = self.headers.clone();
        self.widen(&headers);
        writeln!(out, "{}", self.line(&self.layout(), &headers))
    }

    pub(crate) fn write(&mut self, out: &mut dyn Write, cells: &[String]) -> io::Result<()> {
        let cells: Vec<_> = cells.iter().map(|cell| one_line(cell)).collect();
        self.widen(&cells);
        let mut lines = self.lines(&self.layout(), &cells).into_iter();
        lines.try_for_each(|line| writeln!(out, "{line}"))
    }

    /// Widens the columns to fit these cells.
    pub(crate) fn widen(&mut self, cells: &[String]) {
        for (width, cell) in self.needed.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }

    /// The columns beside each other, from the first one on, as many as fit.
    fn layout(&self) -> Layout {
        let room = self.page.columns.unwrap_or(usize::MAX);
        let width = |line: &Layout| {
            let (last, others) = line.split_last().unwrap_or((&0, &[]));
            others.iter().map(|width| column(*width)).sum::<usize>() + last
        };
        let lines = (1..=self.needed.len()).rev().map(|count| {
            let mut line = self.needed[..count].to_vec();
            // The last column that remains is as short as it must be.
            let shortest = if count == 1 { 1 } else { SHORTEST };
            while width(&line) > room {
                let columns = self.headers.iter().zip(&mut line);
                let names = columns.filter(|(header, _)| NAMES.contains(&header.as_str()));
                match names.map(|(_, width)| width).max() {
                    Some(widest) if *widest > shortest => *widest -= 1,
                    _ => break,
                }
            }
            line
        });
        let mut lines = lines.skip_while(|line| line.len() > 1 && width(line) > room);
        lines.next().unwrap_or_default()
    }

    /// A row, and its cells that are below it.
    fn lines(&self, layout: &Layout, cells: &[String]) -> Vec<String> {
        let mut lines = vec![self.line(layout, cells)];
        let below = self.headers.iter().zip(cells).skip(layout.len());
        let below = below.filter(|(_, cell)| !["", NOTHING].contains(&cell.as_str()));
        let (texts, words): (Vec<_>, Vec<_>) =
            below.partition(|(header, _)| TEXTS.contains(&header.as_str()));
        let words = words
            .into_iter()
            .map(|(header, cell)| format!("{header} {cell}"));
        let words = words.collect::<Vec<_>>().join(", ");
        let texts = texts.into_iter().map(|(_, cell)| cell.clone());
        for text in [words].into_iter().chain(texts).filter(|it| !it.is_empty()) {
            lines.extend(self.page.wrap(&format!("  {text}"), HANGING));
        }
        lines
    }

    fn line(&self, layout: &Layout, cells: &[String]) -> String {
        let mut line = String::new();
        for ((header, width), cell) in self.headers.iter().zip(layout).zip(cells) {
            let cell = middle(cell, *width);
            let gap = column(*width).saturating_sub(cell.chars().count());
            if header == STATE {
                line.push_str(&self.page.paint.paint(severity_of(&cell), &cell))
            } else {
                line.push_str(&cell)
            }
            line.extend(std::iter::repeat_n(' ', gap));
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// The width of a column with its gap.
fn column(width: usize) -> usize {
    (width + GAP).max(COLUMN_MIN)
}

/// Truncates text to `width` characters, with an ellipsis in the middle.
fn middle(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let head = width / 2;
    let tail = width.saturating_sub(head + 1);
    let end = text.chars().skip(count - tail);
    text.chars().take(head).chain(['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{paint::Paint, tests::written as text};

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

    /// Checks a table of three ReplicaSets on a terminal of `columns`, which it must fit.
    fn check(columns: usize, expected: &Expect) {
        let headers = [
            "NAMESPACE",
            "NAME",
            "DESIRED",
            "READY",
            "STATE",
            "LABELS",
            "CAUSE",
        ];
        let mut table = Table::new(headers).on(Page {
            columns: Some(columns),
            paint: Paint::default(),
        });
        let long = "recommendations-canary-5d4c7b8f69";
        let quota = "Quota exceeded in payments: 404 of 300 pods";
        for row in [
            ["payments", long, "9", "3", "Blocked", "app=web", quota],
            ["shop", "web", "8", "8", "In sync", "<none>", "-"],
        ] {
            table.row(row.map(str::to_owned));
        }
        let text = text(|out| table.write(out, ""));
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(columns), "{columns}:\n{text}");
        expected.assert_eq(&text);
    }

    #[test]
    fn rows_fit_the_terminal_and_no_cell_is_left_out() {
        for (columns, expected) in [
            (
                140,
                expect![[r#"
                      NAMESPACE   NAME                                DESIRED   READY   STATE     LABELS    CAUSE
                      payments    recommendations-canary-5d4c7b8f69   9         3       Blocked   app=web   Quota exceeded in payments: 404 of 300 pods
                      shop        web                                 8         8       In sync   <none>    -
                "#]],
            ),
            (
                80,
                expect![[r#"
                    NAMESPACE   NAME                             DESIRED   READY   STATE     LABELS
                    payments    recommendations…ary-5d4c7b8f69   9         3       Blocked   app=web
                      Quota exceeded in payments: 404 of 300 pods
                    shop        web                              8         8       In sync   <none>
                "#]],
            ),
            (
                50,
                expect![[r#"
                NAMESPACE   NAME                   DESIRED   READY
                payments    recommenda…d4c7b8f69   9         3
                  STATE Blocked, LABELS app=web
                  Quota exceeded in payments: 404 of 300 pods
                shop        web                    8         8
                  STATE In sync, LABELS <none>
            "#]],
            ),
            (
                40,
                expect![[r#"
                NAMESPACE   NAME
                payments    recommendation…ry-5d4c7b8f69
                  DESIRED 9, READY 3, STATE Blocked,
                      LABELS app=web
                  Quota exceeded in payments: 404 of 300
                      pods
                shop        web
                  DESIRED 8, READY 8, STATE In sync,
                      LABELS <none>
            "#]],
            ),
        ] {
            check(columns, &expected);
        }
    }

    #[test]
    fn states_have_colors_and_columns_stay_in_line() {
        let mut table = Table::new(["NAME", "STATE", "WHY"]);
        table.row(cells(["web", "InSync", "x"]));
        table.row(cells(["api", "Quarantined", "y"]));
        let plain = text(|out| table.write(out, ""));
        table.page.paint = Paint::new(true);
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
        let mut stream = TableStream::new(["A", "B", "C"], Page::default()).at_least([4, 0, 0]);
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
