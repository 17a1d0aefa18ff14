//! Names that are shortened in the middle where lines are too long for a terminal.

/// The columns of names, and how short they may become.
const NAMES: [&str; 6] = [
    "CLUSTER",
    "NAMESPACE",
    "NAME",
    "POD",
    "REPLICASET",
    "SESSION",
];
pub(super) const SHORTEST: usize = 20;
/// How many characters of the last column, which may hold a sentence, count for the length of a line.
const LAST_MAX: usize = 40;

/// Returns how wide each column of names may be so that lines fit so many columns of a terminal, if they can; `None` for other columns.
/// `needed` are the widths that nothing is cut with, and `gapped` adds the gap to one.
pub(super) fn widths(
    headers: &[String],
    needed: &[usize],
    gapped: impl Fn(usize) -> usize,
    columns: usize,
) -> Vec<Option<usize>> {
    let mut widths = needed.to_vec();
    let is_name = |at: usize| {
        let header = headers.get(at).map(String::as_str);
        header.is_some_and(|header| NAMES.contains(&header))
    };
    let width = |widths: &[usize]| {
        let (last, others) = widths.split_last().unwrap_or((&0, &[]));
        let others = others.iter().map(|width| gapped(*width));
        others.sum::<usize>() + (*last).min(LAST_MAX)
    };
    while width(&widths) > columns {
        let names = widths.iter_mut().enumerate();
        let names = names.filter(|(at, _)| is_name(*at)).map(|(_, width)| width);
        match names.max() {
            Some(widest) if *widest > SHORTEST => *widest -= 1,
            _ => break,
        }
    }
    let widths = widths.into_iter().enumerate();
    widths
        .map(|(at, width)| is_name(at).then_some(width))
        .collect()
}

/// Returns a text of at most so many characters: where it has more, an ellipsis stands for those in the middle.
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
