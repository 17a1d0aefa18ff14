//! Names and phrases that the repository must not contain.

use crate::files::{self, File};

const BANNED_NAMES: [&str; 8] = [
    "util", "utils", "common", "helpers", "helper", "misc", "types", "mod",
];

/// The phrases are split in halves, so that this file does not break its own rules.
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
        .filter(|file| file.path.starts_with("server/") && file.path != "server/src/error.rs")
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

/// Words of docs/glossary.md that code must not use as names. The list only grows.
const NOT_NAMES: [&str; 14] = [
    "door", "survey", "borne", "buries", "burn", "desk", "dice", "flights", "forgive", "journal",
    "mischief", "seat", "tally", "woken",
];

/// Phrases of docs/glossary.md that no message and no document uses. The list only grows. The phrases are split in halves, as above.
const NOT_PHRASES: [(&str, &str); 4] = [
    ("who may know ", "whom"),
    ("the ho", "use"),
    ("stopped to an", "swer"),
    ("is not answered", " for"),
];

#[test]
fn words_of_our_own_making_are_not_used() {
    let lexicon = std::fs::read_to_string(files::root().join("docs/glossary.md"));
    let lexicon = lexicon.expect("the document is there");
    let (lexicon, table) = lexicon.split_once("## Not used").expect("it lists them");
    let phrases = NOT_PHRASES.map(|(start, end)| format!("{start}{end}"));
    for word in NOT_NAMES
        .iter()
        .copied()
        .chain(phrases.iter().map(String::as_str))
    {
        assert!(
            table.contains(word),
            "docs/glossary.md does not say what stands for {word}"
        );
        assert!(!lexicon.contains(word), "docs/glossary.md uses {word}");
    }
    for file in files::with_ending(&[".rs", ".md", ".proto"]) {
        for (number, line) in file.text.lines().enumerate() {
            let is_code = file.path.ends_with(".rs") && !line.trim_start().starts_with("//");
            let name = NOT_NAMES
                .iter()
                .find(|name| is_code && has_name(line, name));
            let spared = file.path == "docs/glossary.md" || file.path == "tests/tidy/words.rs";
            let phrase = phrases.iter().find(|phrase| line.contains(*phrase));
            let found = name.map(|it| (*it).to_owned()).or_else(|| phrase.cloned());
            let place = format!("{}:{}", file.path, number + 1);
            assert!(
                spared || found.is_none(),
                "{place}: {found:?}, see docs/glossary.md"
            );
        }
    }
}

/// Returns whether `word` is a part of a name in a line, as in `Door`, `open_door` and `DoorError`.
fn has_name(line: &str, word: &str) -> bool {
    let names = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    names.into_iter().flat_map(parts).any(|part| part == word)
}

/// Returns the parts of a name, in lowercase.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        if letter == '_' || (letter.is_uppercase() && was_lower) {
            parts.push(String::new());
        }
        was_lower = letter.is_lowercase();
        if letter != '_' {
            parts
                .last_mut()
                .expect("there is one")
                .extend(letter.to_lowercase());
        }
    }
    parts
}

#[test]
fn parts_of_names_are_seen_however_they_are_written() {
    for name in [
        "Door",
        "open_door",
        "DOOR_MAX",
        "DoorError",
        "let x = self.front_door();",
    ] {
        assert!(has_name(name, "door"), "{name}");
    }
    assert!(!has_name("indoors outdoor", "door"));
}
