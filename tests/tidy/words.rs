//! Names and phrases that the repository must not contain, and the style of its documents: the rules for words of CONTRIBUTING.md, as far as a
//! program can check them.

use crate::files::{self, File};

const BANNED_FILES: [&str; 8] = [
    "util", "utils", "common", "helpers", "helper", "misc", "types", "mod",
];
/// Work that is left for later, and history. The phrases are split in halves, so that this file does not break its own rules.
const LEFT: [(&str, &str); 4] = [("TO", "DO"), ("FIX", "ME"), ("XX", "X"), ("no lon", "ger ")];
/// Words of the table "Not used" of docs/glossary.md that code must not use as names. The list only grows.
const NOT_NAMES: [&str; 14] = [
    "door", "survey", "borne", "buries", "burn", "desk", "dice", "flights", "forgive", "journal",
    "mischief", "seat", "tally", "woken",
];
/// Phrases of this table that no document uses. The list only grows.
const NOT_PHRASES: [&str; 28] = [
    "whoever",
    "decide otherwise",
    "decides otherwise",
    "did otherwise",
    "does otherwise",
    "say otherwise",
    "says otherwise",
    "mended",
    "gives way",
    "give way",
    "goes on",
    "stand-in",
    "attends",
    "looks after",
    "of any make",
    "of another make",
    "mode shadow",
    "mode dry-run",
    "mode enforce",
    "is tried",
    "are tried",
    "shared out",
    "holds against",
    "held against",
    "who may know whom",
    "the house",
    "stopped to answer",
    "is not answered for",
];
/// The maximum length of a sentence in words; a piece of code counts as one word.
const WORDS_MAX: usize = 30;
/// Relative clauses at the start of headings; a heading must name a task or a thing. A question of the FAQ ends with a question mark.
const CLAUSES: [&str; 8] = [
    "What", "Who", "Whoever", "Whose", "Where", "Which", "That", "How",
];
/// Exempt documents: a page generated from the contract, the decisions, which are never rewritten, and the glossary.
const SPARED: [&str; 3] = ["docs/api.md", "docs/decisions/", "docs/glossary.md"];

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

#[test]
fn words_that_the_glossary_replaces_are_not_used() {
    let glossary = std::fs::read_to_string(files::root().join("docs/glossary.md"));
    let glossary = glossary.expect("the document is there");
    let (_, table) = glossary.split_once("## Not used").expect("it lists them");
    let all = NOT_NAMES.iter().chain(&NOT_PHRASES);
    let unlisted: Vec<_> = all
        .filter(|it| !table.contains(it.trim_end_matches('s')))
        .collect();
    assert!(unlisted.is_empty(), "docs/glossary.md lacks {unlisted:?}");
    assert_none(&[".rs"], |file| {
        let is_spared = file.path == "tests/tidy/words.rs";
        let is_code = |line: &str| !is_spared && !line.trim_start().starts_with("//");
        lines_with(file, |line| {
            is_code(line) && NOT_NAMES.iter().any(|it| has(line, it))
        })
    });
    assert_none(&[".md"], |file| {
        let texts = texts(file).into_iter();
        texts
            .filter(|text| NOT_PHRASES.iter().any(|it| has(text, it)))
            .collect()
    });
}

#[test]
fn sentences_of_documents_are_short() {
    assert_none(&[".md"], |file| {
        let texts = texts(file);
        let sentences = texts.iter().flat_map(|text| sentences(text));
        let long = sentences.filter(|it| count(it) > WORDS_MAX);
        long.map(str::to_owned).collect()
    });
}

#[test]
fn headings_name_a_task_or_a_thing() {
    assert_none(&[".md"], |file| {
        let headings = prose(&file.text).filter_map(|line| line.strip_prefix('#'));
        let headings = headings.map(|it| it.trim_start_matches('#').trim());
        let first = |it: &str| it.split(' ').next().unwrap_or_default().to_owned();
        let clauses = headings.filter(|it| CLAUSES.contains(&&*first(it)) && !it.ends_with('?'));
        clauses.map(str::to_owned).collect()
    });
}

/// Returns whether a text has a word, also as a part of a name, as in `Door`, `open_door` and `DoorError`.
fn has(text: &str, word: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.match_indices(word).any(|(at, _)| {
        let (before, rest) = text.split_at(at);
        let begins = !before.ends_with(char::is_alphabetic) || rest.starts_with(char::is_uppercase);
        begins && !rest[word.len()..].starts_with(char::is_lowercase)
    })
}

/// Returns the lines of a document outside of its fenced blocks.
fn prose(document: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    document.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Returns the pieces of prose of a document, without code or headings: lines, list items, and lines of table cells.
fn texts(file: &File) -> Vec<String> {
    if SPARED.iter().any(|it| file.path.starts_with(it)) {
        return Vec::new();
    }
    let lines = prose(&file.text).filter(|line| !line.starts_with('#'));
    let cells = lines.flat_map(|line| line.split(if line.starts_with('|') { " | " } else { "\n" }));
    let parts = cells.flat_map(|cell| cell.split("<br>"));
    parts
        .map(|part| without_code_and_addresses(part.trim_matches(['|', ' '])))
        .collect()
}

/// Returns a text with a word in place of each code span, and without the addresses of links.
fn without_code_and_addresses(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let text: String = parts
        .map(|(at, part)| if at % 2 == 0 { part } else { "code" })
        .collect();
    let mut parts = text.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    let text = parts.fold(first, |text, part| {
        text + part.split_once(')').map_or(part, |(_, rest)| rest)
    });
    text.replace('[', "")
}

/// Returns the sentences of a text. A colon also ends a sentence, as before a list.
fn sentences(text: &str) -> Vec<&str> {
    let ends = text.match_indices(' ').map(|(at, _)| at);
    let ends = ends.filter(|at| text[..*at].ends_with(['.', '!', '?', ':']));
    let mut begin = 0;
    let ends = ends.chain([text.len()]);
    ends.map(|end| &text[std::mem::replace(&mut begin, end)..end])
        .collect()
}

fn count(sentence: &str) -> usize {
    let words = sentence.split_whitespace();
    words
        .filter(|it| it.contains(char::is_alphanumeric))
        .count()
}

#[test]
fn prose_and_words_are_found() {
    let text = "# What\n\nOne [two](three.md#four). Five: `six seven`.\n\n```\neight\n```\n| a | b<br>c |\n";
    let (path, text) = (String::new(), text.to_owned());
    let found = texts(&File { path, text });
    assert_eq!(found, ["", "One two. Five: code.", "", "a", "b", "c"]);
    let counts: Vec<_> = sentences(&found[1]).into_iter().map(count).collect();
    assert_eq!(counts, [2, 1, 1]);
    for name in [
        "Door",
        "open_door",
        "DOOR_MAX",
        "DoorError",
        "self.front_door();",
    ] {
        assert!(has(name, "door"), "{name}");
    }
    assert!(has("It Gives way.", "gives way"));
    assert!(!has("indoors outdoor", "door") && !has("unmended", "mended"));
}
