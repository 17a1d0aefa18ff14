//! Tables as kubectl prints them: capital headers, columns as wide as their content and three spaces, no borders.
//!
//! On a terminal, a last cell that is too long stands below its row. If the other columns are too wide, the gaps are smaller, or a row
//! has several lines, each with the columns that fit.
//!
//! **Invariant:** no line is wider than the terminal, unless it is one long word.

use std::{io, io::Write, ops::Range};

use crate::page::{Page, one_line, severity_of};

/// The column of colored words.
const STATE: &str = "STATE";
/// The number of spaces between columns, and the least on a terminal.
const GAP: usize = 3;
const GAP_MIN: usize = 1;
/// The minimum width of a column with its gap, as in kubectl.
const COLUMN_MIN: usize = 6;
/// The additional indentation of the further lines of a row.
const HANGING: usize = 4;
/// The cell of something that is missing. A further line of such cells is left out.
pub(crate) const NONE: &str = "-";

/// Rows under headers. Owned by the command that prints it.
#[derive(Debug)]
pub(crate) struct Table {
    /// The cells of each row, and whether a line above the table says the last one too.
    rows: Vec<(Vec<String>, bool)>,
    stream: TableStream,
}

/// A table that is printed while its rows arrive; its columns grow and never shrink.
#[derive(Debug)]
pub(crate) struct TableStream {
    headers: Vec<String>,
    widths: Vec<usize>,
    page: Page,
}

/// The place of the columns in lines.
struct Layout {
    /// The spaces before each row, and between columns.
    indent: usize,
    gap: usize,
    /// The columns of each line of a row.
    lines: Vec<Range<usize>>,
}

fn one_lines(cells: impl IntoIterator<Item = String>) -> Vec<String> {
    cells.into_iter().map(|cell| one_line(&cell)).collect()
}

impl Table {
    pub(crate) fn new(page: Page, headers: impl IntoIterator<Item = &'static str>) -> Self {
        Self {
            rows: Vec::new(),
            stream: TableStream::new(page, headers),
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push((one_lines(cells), false));
    }

    /// Adds a row whose last cell a line above the table says too. It is left out where it does not fit beside the other cells.
    pub(crate) fn told_row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push((one_lines(cells), true));
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes the table; each line begins with `indent` spaces.
    pub(crate) fn write(mut self, out: &mut dyn Write, indent: usize) -> io::Result<()> {
        self.rows.insert(0, (self.stream.headers.clone(), false));
        self.rows
            .iter()
            .for_each(|(cells, _)| self.stream.widen(cells));
        let (layout, stream) = (self.stream.layout(indent), &self.stream);
        let mut rows = self.rows.iter();
        rows.try_for_each(|(cells, is_told)| stream.write_row(out, &layout, cells, *is_told))
    }
}

impl TableStream {
    pub(crate) fn new(page: Page, headers: impl IntoIterator<Item = &'static str>) -> Self {
        let headers: Vec<_> = headers.into_iter().map(str::to_owned).collect();
        Self {
            widths: vec![0; headers.len()],
            headers,
            page,
        }
    }

    /// Widens the columns to these minimum widths.
    pub(crate) fn at_least(mut self, widths: impl Into<Vec<usize>>) -> Self {
        self.widths = widths.into();
        self
    }

    pub(crate) fn write_headers(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.write(out, self.headers.clone())
    }

    pub(crate) fn write(
        &mut self,
        out: &mut dyn Write,
        cells: impl IntoIterator<Item = String>,
    ) -> io::Result<()> {
        let cells = one_lines(cells);
        self.widen(&cells);
        self.write_row(out, &self.layout(0), &cells, false)
    }

    pub(crate) fn widen(&mut self, cells: &[String]) {
        for (width, cell) in self.widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }

    /// The layout with the most columns on the first line, and of these the one with the widest gaps.
    fn layout(&self, indent: usize) -> Layout {
        let mut widths = self.widths.clone();
        // Nothing is beside the last column, so only its header must fit.
        if let (Some(width), Some(header)) = (widths.last_mut(), self.headers.last()) {
            *width = header.chars().count();
        }
        let columns = self.page.columns.unwrap_or(usize::MAX);
        let layouts = (GAP_MIN..=GAP).map(|gap| Layout::new(indent, gap, &widths, columns));
        let most = layouts.max_by_key(|layout| layout.lines[0].end);
        most.expect("there are gaps")
    }

    /// Writes a row. If a line above the table tells its last cell, that cell is left out where it does not fit.
    fn write_row(
        &self,
        out: &mut dyn Write,
        layout: &Layout,
        cells: &[String],
        is_told: bool,
    ) -> io::Result<()> {
        let (columns, last) = (self.page.columns.unwrap_or(usize::MAX), cells.len() - 1);
        for (number, shown) in layout.lines.iter().enumerate() {
            let is_further = number > 0;
            let indent = layout.indent + if is_further { HANGING } else { 0 };
            let (mut line, mut used, mut below) = (" ".repeat(indent), indent, None);
            for at in shown.clone() {
                let (cell, width) = (&cells[at], cells[at].chars().count());
                let fits = used + width <= columns;
                if at == last && (!fits || is_told && is_further) {
                    below = Some(cell).filter(|_| !is_told);
                    break;
                }
                line.push_str(&self.painted(at, cell));
                let gap = (self.widths[at] + layout.gap).max(COLUMN_MIN) - width;
                line.extend(std::iter::repeat_n(' ', gap));
                used += width + gap;
            }
            let shown = &cells[shown.clone()];
            let is_empty = shown.iter().all(|cell| ["", NONE].contains(&cell.as_str()));
            match (line.trim_end(), shown) {
                ("", _) => {}
                _ if is_further && is_empty => {}
                (line, [_]) => self.page.write(out, 0, line)?,
                (line, _) => writeln!(out, "{line}")?,
            }
            if let Some(cell) = below {
                let indent = layout.indent + HANGING;
                self.page.write(out, indent, cell)?;
            }
        }
        Ok(())
    }

    fn painted(&self, at: usize, cell: &str) -> String {
        if self.headers[at] == STATE {
            self.page.paint.paint(severity_of(cell), cell)
        } else {
            cell.to_owned()
        }
    }
}

impl Layout {
    /// Puts as many columns of these widths on each line as fit.
    fn new(indent: usize, gap: usize, widths: &[usize], columns: usize) -> Self {
        let (mut lines, mut first, mut used) = (Vec::new(), 0, indent);
        for (at, width) in widths.iter().enumerate() {
            if at > first && used + width > columns {
                lines.push(first..at);
                (first, used) = (at, indent + HANGING);
            }
            used += (width + gap).max(COLUMN_MIN);
        }
        lines.push(first..widths.len());
        Self { indent, gap, lines }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{page::Paint, tests::written as text};

    fn cells(texts: [&str; 3]) -> [String; 3] {
        texts.map(str::to_owned)
    }

    #[test]
    fn columns_fit_their_cells_and_no_cell_breaks_a_line_or_steers_a_terminal() {
        let mut table = Table::new(Page::default(), ["NAME", "UP", "WHY"]);
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
        .assert_eq(&text(|out| table.write(out, 0)));
    }

    #[test]
    fn states_have_colors_and_columns_stay_in_line() {
        let written = |is_colored| {
            let page = Page {
                columns: None,
                paint: Paint::new(is_colored),
            };
            let mut table = Table::new(page, ["NAME", "STATE", "WHY"]);
            table.row(cells(["web", "In sync", "x"]));
            table.row(cells(["api", "Blocked", "y"]));
            text(|out| table.write(out, 0))
        };
        let (plain, colored) = (written(false), written(true));
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
        let mut stream = TableStream::new(Page::default(), ["A", "B", "C"]).at_least([4, 0, 0]);
        let lines = text(|out| {
            stream.write(out, cells(["a", "b", "c"]))?;
            stream.write(out, cells(["longer", "b", "c"]))?;
            stream.write(out, cells(["a", "b", "c"]))
        });
        expect![[r#"
            a      b     c
            longer   b     c
            a        b     c
        "#]]
        .assert_eq(&lines);
    }

    fn on(columns: usize, rows: &[[&str; 4]]) -> String {
        let page = Page {
            columns: Some(columns),
            ..Page::default()
        };
        let mut table = Table::new(page, ["NAME", "READY", "STATE", "CAUSE"]);
        for (at, row) in rows.iter().enumerate() {
            let cells = row.map(str::to_owned);
            if at == 1 {
                table.told_row(cells);
            } else {
                table.row(cells);
            }
        }
        text(|out| table.write(out, 1))
    }

    #[test]
    fn rows_that_are_wider_than_the_terminal_continue_below_or_have_smaller_gaps() {
        let rows = [
            ["web", "2", "Blocked", "Quota exceeded in shop"],
            ["ledger", "1", "Blocked", "Quota exceeded"],
            ["api", "3", "In sync", "-"],
        ];
        for (columns, expected) in [
            (
                44,
                expect![[r#"
                     NAME     READY   STATE     CAUSE
                     web      2       Blocked
                         Quota exceeded in shop
                     ledger   1       Blocked   Quota exceeded
                     api      3       In sync   -
                "#]],
            ),
            (
                27,
                expect![[r#"
                     NAME   READY STATE   CAUSE
                     web    2     Blocked
                         Quota exceeded in shop
                     ledger 1     Blocked
                     api    3     In sync -
                "#]],
            ),
            (
                26,
                expect![[r#"
                     NAME     READY   STATE
                         CAUSE
                     web      2       Blocked
                         Quota exceeded in
                             shop
                     ledger   1       Blocked
                     api      3       In sync
                "#]],
            ),
            (
                16,
                expect![[r#"
                     NAME     READY
                         STATE
                         CAUSE
                     web      2
                         Blocked
                         Quota
                             exceeded
                             in shop
                     ledger   1
                         Blocked
                     api      3
                         In sync
                "#]],
            ),
        ] {
            let shown = on(columns, &rows);
            let shown = shown
                .lines()
                .map(|it| it.strip_prefix(' ').expect("indented"));
            expected.assert_eq(&(shown.collect::<Vec<_>>().join("\n") + "\n"));
        }
    }
}
