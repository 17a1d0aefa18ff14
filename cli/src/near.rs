//! Names in messages: names that are similar to another name, and the first of many names.

use std::borrow::Borrow;

/// The nearest name to a word, if it is so near that it was probably meant.
pub(crate) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = match word.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    let distances = names.map(|name| (strsim::osa_distance(word, name), name));
    let near = distances.filter(|(distance, _)| *distance <= most);
    near.min().map(|(_, name)| name)
}

/// The first of many names, and the number of the others, such as `a, b and 3 more`.
pub(crate) fn first_of(names: &[impl Borrow<str>], most: usize) -> String {
    let shown = names[..names.len().min(most)].join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Whether a shell takes a character as it is: an ASCII letter, a digit or one of `. _ : / @ -`. UIDs and names of clusters and objects
/// have no other characters.
pub(crate) fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "._:/@-".contains(letter)
}
