//! Files are small enough to read in one go. Clippy checks the length of functions.

use crate::files;

const FILE_MAX: usize = 500;

#[test]
fn files_are_short() {
    let long: Vec<_> = files::with_ending(&[".rs", ".py"])
        .into_iter()
        .filter(|file| file.text.lines().count() > FILE_MAX)
        .map(|file| format!("{}: {}", file.path, file.text.lines().count()))
        .collect();
    assert!(long.is_empty(), "longer than {FILE_MAX} lines: {long:#?}");
}
