//! Characters that a shell takes as they are.

/// Whether a character is an ASCII letter, a digit or one of `. _ : / @ -`. UIDs and names of clusters and objects have no other
/// characters.
pub(crate) fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "._:/@-".contains(letter)
}
