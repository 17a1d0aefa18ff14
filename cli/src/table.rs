//! Tables as kubectl prints them: capital headers, columns as wide as their content and three spaces, no borders.

use std::{io, io::Write};

use runtime::escaped;

/// What separates columns.
const GAP: usize = 3;
/// The least width of a column with its gap, as kubectl has it.
const COLUMN_MIN: usize = 6;

/// Rows under headers. Owned by the command that prints it.
#[derive(Debug)]
pub(crate) struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

/// A table that is printed while its rows arrive; its columns grow and never shrink.
#[derive(Debug)]
pub(crate) struct Stream<const N: usize> {
    widths: [usize; N],
}

/// Returns a text in one line, in which no character steers a terminal, turns the direction of writing or stays unseen: much of it
/// comes from elsewhere.
pub(crate) fn one_line(text: &str) -> String {
    escaped(&text.replace(['\n', '\r', '\t'], " "))
}

// === impl Table ===

impl<const N: usize> Table<N> {
    pub(crate) fn new(headers: [&str; N]) -> Self {
        Self {
            rows: vec![headers.map(str::to_owned)],
        }
    }

    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| one_line(&cell)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// Writes the table; each line begins with `indent`.
    pub(crate) fn write(&self, out: &mut dyn Write, indent: &str) -> io::Result<()> {
        let mut stream = Stream { widths: [0; N] };
        for row in &self.rows {
            stream.widen(row);
        }
        for row in &self.rows {
            writeln!(out, "{indent}{}", stream.line(row))?;
        }
        Ok(())
    }
}

// === impl Stream ===

impl<const N: usize> Stream<N> {
    /// Returns a table whose columns are at least so wide.
    pub(crate) const fn new(widths: [usize; N]) -> Self {
        Self { widths }
    }

    pub(crate) fn write(&mut self, out: &mut dyn Write, cells: &[String; N]) -> io::Result<()> {
        let cells = cells.each_ref().map(|cell| one_line(cell));
        self.widen(&cells);
        writeln!(out, "{}", self.line(&cells))
    }

    fn widen(&mut self, cells: &[String; N]) {
        for (width, cell) in self.widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }

    fn line(&self, cells: &[String; N]) -> String {
        let mut line = String::new();
        for (width, cell) in self.widths.iter().zip(cells) {
            let column = (width + GAP).max(COLUMN_MIN);
            line.push_str(cell);
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
