//! Names and phrases that have no place here.

use crate::files::{self, File};

const BANNED_NAMES: [&str; 8] = [
    "util", "utils", "common", "helpers", "helper", "misc", "types", "mod",
];

/// Written in two halves, so that this file does not break its own rules.
fn banned_phrases() -> Vec<String> {
    [
        ("to", "do!("),
        ("TO", "DO"),
        ("FIX", "ME"),
        ("no lon", "ger "),
        ("un", "implemented!("),
        ("dbg", "!("),
        ("XX", "X"),
    ]
    .map(|(start, end)| format!("{start}{end}"))
    .to_vec()
}

#[test]
fn no_file_is_named_after_nothing() {
    for file in files::with_ending(&[".rs", ".py"]) {
        let stem = file
            .path
            .rsplit('/')
            .next()
            .and_then(|name| name.split('.').next())
            .unwrap_or_default()
            .to_owned();
        assert!(
            !BANNED_NAMES.contains(&stem.as_str()),
            "{} says nothing of what it holds",
            file.path
        );
    }
}

#[test]
fn nothing_is_left_for_later_and_no_comment_tells_history() {
    let phrases = banned_phrases();
    for file in files::with_ending(&[".rs", ".proto", ".py", ".toml"]) {
        for (number, line) in file.text.lines().enumerate() {
            let found = phrases.iter().find(|phrase| line.contains(*phrase));
            assert!(found.is_none(), "{}:{}: {found:?}", file.path, number + 1);
        }
    }
}

#[test]
fn source_does_not_unwrap() {
    let unwrap = format!(".unwrap{}", "()");
    let places: Vec<_> = sources()
        .iter()
        .flat_map(|file| lines_with(file, &unwrap))
        .collect();
    assert!(places.is_empty(), "{places:#?}");
}

#[test]
fn every_crate_and_module_opens_with_its_theory() {
    for file in files::with_ending(&[".rs"]) {
        assert!(
            file.text.starts_with("//! "),
            "{} does not open with what it is for",
            file.path
        );
    }
}

#[test]
fn the_status_of_a_call_is_written_in_one_place() {
    let maker = format!("Status{}", "::new(");
    let places: Vec<_> = sources()
        .iter()
        .filter(|file| file.path.starts_with("server/src") && file.path != "server/src/error.rs")
        .flat_map(|file| lines_with(file, &maker))
        .collect();
    assert!(
        places.is_empty(),
        "only server/src/error.rs makes statuses: {places:#?}"
    );
}

fn sources() -> Vec<File> {
    let files = files::with_ending(&[".rs"]);
    files
        .into_iter()
        .filter(|file| file.path.contains("src/") && !file.path.contains("tests"))
        .collect()
}

fn lines_with(file: &File, phrase: &str) -> Vec<String> {
    let lines = file.text.lines().enumerate();
    lines
        .filter(|(_, line)| line.contains(phrase))
        .map(|(number, _)| format!("{}:{}", file.path, number + 1))
        .collect()
}
