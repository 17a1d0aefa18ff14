//! Tables on narrow terminals: names are shortened in the middle, and if lines must fit the terminal, columns are left out.
//!
//! **Invariant:** no column of names is left out, and no cause is cut off.

/// The column of sentences that explain the state of a row.
pub(super) const CAUSE: &str = "CAUSE";
/// The number of spaces between columns.
const GAP: usize = 3;
/// The minimum width of a column with its gap, as in kubectl.
const COLUMN_MIN: usize = 6;
const NAMES: [&str; 6] = [
    "CLUSTER",
    "NAMESPACE",
    "NAME",
    "POD",
    "REPLICASET",
    "SESSION",
];
/// The minimum length of shortened names with other columns beside them.
pub(super) const SHORTEST: usize = 20;
/// The minimum length of shortened names with no other columns left.
const SHORTEST_ALONE: usize = 8;
/// The maximum number of characters of the last column that count for the length of a line. The last column may have a sentence,
/// which a terminal may break.
const LAST_MAX: usize = 40;

/// The columns to show, and their widths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The columns, each with the maximum length of its names; `None` for a column that is shown whole.
    pub(super) columns: Vec<(usize, Option<usize>)>,
    /// Whether the cause has separate lines, below its row.
    pub(super) is_below: bool,
}

/// The table to lay out, and the columns of the terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<'a> {
    pub(super) headers: &'a [String],
    /// The widths at which nothing is cut off.
    pub(super) needed: &'a [usize],
    pub(super) room: usize,
}

/// The width of a column with its gap.
pub(super) fn column(width: usize) -> usize {
    (width + GAP).max(COLUMN_MIN)
}

// === impl Table ===

impl Table<'_> {
    /// Shows all columns, with names short enough for the lines to fit, if possible.
    pub(super) fn shortened(self) -> Layout {
        let all: Vec<_> = (0..self.headers.len()).collect();
        let (columns, _) = self.shorten(&all, SHORTEST, LAST_MAX);
        let is_below = false;
        Layout { columns, is_below }
    }

    /// Leaves out columns from the end until lines fit, but neither names nor the cause. If names and the cause alone do not fit,
    /// the cause gets separate lines, which leaves room for other columns.
    pub(super) fn fitted(self) -> Layout {
        let all = 0..self.headers.len();
        if let Some(columns) = self.leave_out(all.clone().collect()) {
            let is_below = false;
            return Layout { columns, is_below };
        }
        let is_below = self.headers.iter().any(|header| header == CAUSE);
        let without_cause = all.clone().filter(|at| self.headers[*at] != CAUSE);
        let columns = self.leave_out(without_cause.collect());
        let columns = columns.unwrap_or_else(|| {
            let names: Vec<_> = all.filter(|at| self.is_name(*at)).collect();
            self.shorten(&names, SHORTEST_ALONE, usize::MAX).0
        });
        Layout { columns, is_below }
    }

    /// The remaining columns with which lines fit. `None` if the columns that always stay are too long.
    fn leave_out(self, mut shown: Vec<usize>) -> Option<Vec<(usize, Option<usize>)>> {
        loop {
            let (columns, fits) = self.shorten(&shown, SHORTEST, usize::MAX);
            if fits {
                return Some(columns);
            }
            let stays = |at: usize| self.is_name(at) || self.headers[at] == CAUSE;
            shown.remove(shown.iter().rposition(|at| !stays(*at))?);
        }
    }

    /// Shortens the longest names until a line of these columns fits. The `bool` says whether it does.
    fn shorten(
        self,
        shown: &[usize],
        shortest: usize,
        last_max: usize,
    ) -> (Vec<(usize, Option<usize>)>, bool) {
        let mut widths: Vec<_> = shown.iter().map(|at| self.needed[*at]).collect();
        let width = |widths: &[usize]| {
            let (last, others) = widths.split_last().unwrap_or((&0, &[]));
            let others = others.iter().map(|width| column(*width));
            others.sum::<usize>() + (*last).min(last_max)
        };
        while width(&widths) > self.room {
            let names = shown.iter().zip(&mut widths);
            let names = names.filter(|(at, _)| self.is_name(**at));
            match names.map(|(_, width)| width).max() {
                Some(widest) if *widest > shortest => *widest -= 1,
                _ => break,
            }
        }
        let fits = width(&widths) <= self.room;
        let columns = shown.iter().zip(widths);
        let columns = columns.map(|(at, width)| (*at, self.is_name(*at).then_some(width)));
        (columns.collect(), fits)
    }

    fn is_name(self, at: usize) -> bool {
        NAMES.contains(&self.headers[at].as_str())
    }
}

/// Truncates text to `width` characters, with an ellipsis in the middle.
pub(super) fn middle(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let head = width / 2;
    let tail = width.saturating_sub(head + 1);
    let end = text.chars().skip(count - tail);
    text.chars().take(head).chain(['…']).chain(end).collect()
}
