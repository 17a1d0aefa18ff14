//! Tables as kubectl prints them: capital headers, columns as wide as their content and three spaces, no borders.

use std::{io, io::Write};

use runtime::escaped;

use crate::{
    page,
    paint::{Paint, severity_of},
    streams::Io,
};

mod narrow;

use narrow::{CAUSE, Layout, column};

/// The column of colored words.
const STATE: &str = "STATE";
/// An empty cell.
const NOTHING: &str = "-";

/// Rows under headers. Owned by the command that prints it.
#[derive(Debug)]
pub(crate) struct Table {
    headers: Vec<String>,
    rows: Vec<Vec<String>>,
    /// The width of the terminal to which names are shortened.
    columns: Option<usize>,
    paint: Paint,
    has_headers: bool,
    /// Whether every line must fit the terminal.
    fits: bool,
}

/// A table that is printed while its rows arrive; its columns grow and never shrink.
#[derive(Debug)]
pub(crate) struct TableStream {
    widths: Vec<usize>,
    /// The column of colored words.
    states: Option<usize>,
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
            headers: headers.into_iter().map(str::to_owned).collect(),
            rows: Vec::new(),
            columns: None,
            paint: Paint::default(),
            has_headers: true,
            fits: false,
        }
    }

    /// Adapts the table to standard output: on a terminal, states have colors, and without `is_wide`, names are shortened to fit.
    pub(crate) fn on(mut self, io: &Io<'_>, is_wide: bool) -> Self {
        let terminal = (io.terminal)().filter(|_| !is_wide);
        self.columns = terminal.map(|terminal| terminal.columns);
        self.paint = io.paint();
        self
    }

    /// Fits every line into `columns` of a terminal: leaves out columns from the end, but no names and no causes.
    pub(crate) fn fit(mut self, columns: usize) -> Self {
        self.columns = Some(columns);
        self.fits = true;
        self
    }

    /// Leaves out the line of headers if `no_headers`.
    pub(crate) fn no_headers(mut self, no_headers: bool) -> Self {
        self.has_headers = !no_headers;
        self
    }

    /// The columns to show on this terminal.
    fn layout(&self) -> Layout {
        let mut needed = TableStream::new(vec![0; self.headers.len()]);
        self.lines().iter().for_each(|cells| needed.widen(cells));
        let table = narrow::Table {
            headers: &self.headers,
            needed: &needed.widths,
            room: self.columns.unwrap_or(usize::MAX),
        };
        if self.fits {
            table.fitted()
        } else {
            table.shortened()
        }
    }

    fn lines(&self) -> Vec<&Vec<String>> {
        let headers = Some(&self.headers).filter(|_| self.has_headers);
        headers.into_iter().chain(&self.rows).collect()
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().map(|cell| one_line(&cell));
        self.rows.push(cells.collect());
    }

    pub(crate) const fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes the table; each line begins with `indent`.
    pub(crate) fn write(&self, out: &mut dyn Write, indent: &str) -> io::Result<()> {
        let layout = self.layout();
        let shown = |cells: &[String]| -> Vec<String> {
            let short = |(at, width): &(usize, Option<usize>)| match width {
                Some(width) => narrow::middle(&cells[*at], *width),
                None => cells[*at].clone(),
            };
            layout.columns.iter().map(short).collect()
        };
        let headers = shown(&self.headers);
        let mut stream = TableStream {
            states: headers.iter().position(|header| header == STATE),
            paint: self.paint,
            ..TableStream::new(vec![0; headers.len()])
        };
        let lines: Vec<_> = self.lines().iter().map(|cells| shown(cells)).collect();
        lines.iter().for_each(|cells| stream.widen(cells));
        let cause = self.headers.iter().position(|header| header == CAUSE);
        let cause = cause.filter(|_| layout.is_below);
        let mut lines = lines.iter();
        if self.has_headers
            && let Some(headers) = lines.next()
        {
            writeln!(out, "{indent}{}", stream.line(headers))?;
        }
        for (cells, row) in lines.zip(&self.rows) {
            writeln!(out, "{indent}{}", stream.line(cells))?;
            let below = cause.map(|at| &row[at]).filter(|cause| *cause != NOTHING);
            if let Some(below) = below {
                let room = self.columns.unwrap_or(usize::MAX);
                let mut lines = page::wrap(&format!("  {below}"), room).into_iter();
                lines.try_for_each(|line| writeln!(out, "{indent}{line}"))?;
            }
        }
        Ok(())
    }
}

// === impl TableStream ===

impl TableStream {
    /// `widths` are the minimum widths of the columns.
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

    /// Widens the columns to fit these cells.
    pub(crate) fn widen(&mut self, cells: &[String]) {
        for (width, cell) in self.widths.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }

    fn line(&self, cells: &[String]) -> String {
        let mut line = String::new();
        for (at, (width, cell)) in self.widths.iter().zip(cells).enumerate() {
            if self.states == Some(at) {
                line.push_str(&self.paint.paint(severity_of(cell), cell))
            } else {
                line.push_str(cell)
            }
            let gap = column(*width).saturating_sub(cell.chars().count());
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

    /// The output of `decree top` for three ReplicaSets on a terminal of `columns`, which it must fit.
    fn top(columns: usize) -> String {
        let headers = [
            "REPLICASET",
            "DEC/S",
            "OPS/S",
            "IN-FLIGHT",
            "AVAILABLE",
            "UNCONVERGED",
            "STATE",
            "CAUSE",
        ];
        let mut table = Table::new(headers);
        let long = "payments/recommendations-canary-5d4c7b8f69";
        let quota = "Quota exceeded in payments: 404 of 300 pods";
        table.row([long, "0.2", "0.0", "0", "3/9", "12m", "Blocked", quota].map(str::to_owned));
        table.row(["shop/web", "9.0", "40.5", "12", "8/8", "-", "In sync", "-"].map(str::to_owned));
        let text = text(|out| table.fit(columns).write(out, ""));
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(columns), "{columns}:\n{text}");
        text
    }

    #[test]
    fn top_fits_the_terminal_with_the_cause_below_where_it_is_narrow() {
        let wide = expect![[r#"
            REPLICASET             DEC/S   OPS/S   IN-FLIGHT   AVAILABLE   UNCONVERGED   CAUSE
            payments/r…d4c7b8f69   0.2     0.0     0           3/9         12m           Quota exceeded in payments: 404 of 300 pods
            shop/web               9.0     40.5    12          8/8         -             -
        "#]];
        let usual = expect![[r#"
            REPLICASET                   DEC/S   CAUSE
            payments/reco…y-5d4c7b8f69   0.2     Quota exceeded in payments: 404 of 300 pods
            shop/web                     9.0     -
        "#]];
        let narrow = expect![[r#"
            REPLICASET             DEC/S   OPS/S   IN-FLIGHT   AVAILABLE
            payments/r…d4c7b8f69   0.2     0.0     0           3/9
              Quota exceeded in payments: 404 of 300 pods
            shop/web               9.0     40.5    12          8/8
        "#]];
        let narrower = expect![[r#"
            REPLICASET                 DEC/S   OPS/S
            payments/rec…-5d4c7b8f69   0.2     0.0
              Quota exceeded in payments: 404 of 300
                  pods
            shop/web                   9.0     40.5
        "#]];
        for (columns, expected) in [(120, wide), (80, usual), (60, narrow), (40, narrower)] {
            expected.assert_eq(&top(columns));
        }
    }

    #[test]
    fn names_stay_however_narrow_it_is() {
        let mut table = Table::new(["CLUSTER", "REPLICASET", "OPS/S", "CAUSE"]);
        let cells = [
            "north-production-cluster",
            "payments/recommendations-5d4c7b8f69",
            "1.0",
            "-",
        ];
        table.row(cells.map(str::to_owned));
        expect![[r#"
            CLUSTER          REPLICASET
            north-p…luster   paymen…7b8f69
        "#]]
        .assert_eq(&text(|out| table.fit(30).write(out, "")));
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
        let mut stream = TableStream::new([4, 0, 0]);
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
