//! Characters that a shell takes as they are.

/// Returns whether a character is a letter, a digit or one of `. _ : / @ -` of ASCII: the uids and names of clusters have no other,
/// nor have the names of objects.
pub(crate) fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "._:/@-".contains(letter)
}
