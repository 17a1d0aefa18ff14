//! Names in messages: names that are similar to another name, and the first of many names.

use std::borrow::Borrow;

/// The nearest name to a word, if it is so near that it was probably meant.
pub(crate) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = match word.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    let distances = names.map(|name| (distance(word, name), name));
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

/// The number of letters to insert, remove, replace or swap with the next one, to turn one word into the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<_> = other.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<_> = (0..=other.len()).collect();
    let mut last = None;
    for (row, letter) in one.chars().enumerate() {
        let mut current = vec![row + 1];
        for (at, wanted) in other.iter().enumerate() {
            let replaced = above[at] + usize::from(letter != *wanted);
            let mut least = replaced.min(above[at + 1] + 1).min(current[at] + 1);
            let is_swap = at > 0 && last == Some(*wanted) && other[at - 1] == letter;
            if is_swap && let Some(swapped) = before.get(at - 1) {
                least = least.min(swapped + 1);
            }
            current.push(least);
        }
        before = std::mem::replace(&mut above, current);
        last = Some(letter);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_differ_are_counted() {
        for (one, other, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("gte", "get", 1),
            ("get", "get", 0),
            ("explian", "explain", 1),
            ("kitten", "sitting", 3),
            ("grün", "grun", 1),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
            assert_eq!(distance(other, one), expected, "{other} {one}");
        }
    }

    #[test]
    fn only_what_is_near_is_meant() {
        let names = ["web-old", "web-new", "api"];
        let nearest = |word| nearest(word, names.into_iter());
        assert_eq!(nearest("web-odl"), Some("web-old"));
        assert_eq!(nearest("ap"), None);
        assert_eq!(nearest("apj"), Some("api"));
        assert_eq!(nearest("database"), None);
    }
}
