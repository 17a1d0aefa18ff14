//! Names and phrases that the repository must not contain.

use crate::files::{self, File};

const BANNED_FILES: [&str; 8] = [
    "util", "utils", "common", "helpers", "helper", "misc", "types", "mod",
];
/// Work that is left for later, and history. The phrases are split in halves, so that this file does not break its own rules.
const LEFT: [(&str, &str); 4] = [("TO", "DO"), ("FIX", "ME"), ("XX", "X"), ("no lon", "ger ")];
/// Fails if `find` finds something in a file with one of these endings.
fn assert_none(endings: &[&str], find: impl Fn(&File) -> Vec<String>) {
    let found = files::with_ending(endings).into_iter().flat_map(|file| {
        let found = find(&file).into_iter();
        found.map(move |it| format!("{}: {it}", file.path))
    });
    let found: Vec<_> = found.collect();
    assert!(found.is_empty(), "{found:#?}");
}

fn lines_with(file: &File, is_wrong: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = file.text.lines().filter(|line| is_wrong(line));
    lines.map(|line| line.trim().to_owned()).collect()
}

#[test]
fn files_have_names_of_their_own_and_open_with_their_theory() {
    assert_none(&[".rs", ".py"], |file| {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let stem = name.split('.').next().unwrap_or_default();
        let is_silent = name.ends_with(".rs") && !file.text.starts_with("//! ");
        let is_wrong = is_silent || BANNED_FILES.contains(&stem);
        is_wrong.then(String::new).into_iter().collect()
    });
}

#[test]
fn nothing_is_left_for_later_and_no_comment_tells_history() {
    let left = LEFT.map(|(start, end)| format!("{start}{end}"));
    assert_none(&[".rs", ".proto", ".py", ".toml"], |file| {
        lines_with(file, |line| left.iter().any(|it| line.contains(it)))
    });
}

#[test]
fn the_status_of_a_call_is_written_in_one_place() {
    let maker = format!("Status{}", "::new(");
    assert_none(&[".rs"], |file| {
        let is_product = file.path.starts_with("server/") && !file.path.contains("tests");
        let is_free = !is_product || file.path == "server/src/error.rs";
        lines_with(file, |line| !is_free && line.contains(&maker))
    });
}
