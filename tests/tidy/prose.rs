//! The style of the documents: the rules for words of CONTRIBUTING.md, as far as a program can check them.

use std::collections::BTreeMap;

use crate::files;

/// Words of the table "Not used" of docs/glossary.md that no document uses. The list only grows.
const NOT_WORDS: [&str; 24] = [
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
];
/// The maximum length of a sentence in words; a piece of code counts as one word.
const WORDS_MAX: usize = 30;
/// Relative clauses at the start of headings; a heading must name a task or a thing. A question of the FAQ ends with a question mark.
const CLAUSES: [&str; 8] = [
    "What", "Who", "Whoever", "Whose", "Where", "Which", "That", "How",
];
/// Exempt documents: a page generated from the contract, the decisions, which are never rewritten, and the glossary.
const SPARED: [&str; 3] = ["docs/api.md", "docs/decisions/", "docs/glossary.md"];

/// A piece of prose, without code or headings: a line, a list item, or a line of a table cell.
struct Text {
    line: usize,
    text: String,
}

#[test]
fn documents_use_the_words_of_the_glossary() {
    let glossary = std::fs::read_to_string(files::root().join("docs/glossary.md"));
    let glossary = glossary.expect("the document is there");
    let (_, table) = glossary.split_once("## Not used").expect("it lists them");
    let unlisted = |word: &&str| !table.contains(word.trim_end_matches('s'));
    let unlisted: Vec<_> = NOT_WORDS.into_iter().filter(unlisted).collect();
    assert!(unlisted.is_empty(), "docs/glossary.md lacks {unlisted:?}");
    let found =
        found_in_documents(|text| word_not_used(text).into_iter().map(str::to_owned).collect());
    assert!(found.is_empty(), "see docs/glossary.md: {found:#?}");
}

#[test]
fn sentences_of_documents_are_short() {
    let found = found_in_documents(|text| {
        let long = sentences(text).filter(|it| count(it) > WORDS_MAX);
        long.map(str::to_owned).collect()
    });
    assert!(found.is_empty(), "more than {WORDS_MAX} words: {found:#?}");
}

#[test]
fn headings_name_a_task_or_a_thing() {
    let mut count = 0;
    for file in files::with_ending(&[".md"]) {
        for (number, line) in lines(&file.text) {
            let Some(heading) = line.strip_prefix('#') else {
                continue;
            };
            count += 1;
            let heading = heading.trim_start_matches('#').trim();
            let first = heading.split(' ').next().unwrap_or_default();
            let is_clause = CLAUSES.contains(&first) && !heading.ends_with('?');
            assert!(!is_clause, "{}:{number}: {heading}", file.path);
        }
    }
    assert!(count > 300, "{count} headings: the search is broken");
}

/// Returns the findings of each document with any, with their places.
fn found_in_documents(find: impl Fn(&str) -> Vec<String>) -> BTreeMap<String, Vec<String>> {
    let found = documents().into_iter().map(|(path, texts)| {
        let of_line = |it: &Text| {
            let found = find(&it.text).into_iter();
            let line = it.line;
            found.map(move |what| format!("{line}: {what}"))
        };
        let found: Vec<_> = texts.iter().flat_map(of_line).collect();
        (path, found)
    });
    found.filter(|(_, found)| !found.is_empty()).collect()
}

/// Returns the documents that must follow the rules, by path.
fn documents() -> Vec<(String, Vec<Text>)> {
    let files = files::with_ending(&[".md"]).into_iter();
    let files = files.filter(|file| !SPARED.iter().any(|it| file.path.starts_with(it)));
    let documents: Vec<_> = files
        .map(|file| {
            let texts = texts(&file.text);
            (file.path, texts)
        })
        .collect();
    assert!(documents.len() > 30, "the search is broken");
    documents
}

/// Returns the numbered lines of a document outside of its fenced blocks.
fn lines(document: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    let lines = (1..).zip(document.lines());
    lines.filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

fn texts(document: &str) -> Vec<Text> {
    let lines = lines(document).filter(|(_, line)| !line.starts_with('#'));
    let cells = lines.flat_map(|(number, line)| {
        let is_row = line.starts_with('|');
        let parts = line.split(if is_row { " | " } else { "\n" });
        let parts = parts.flat_map(|part| part.split("<br>"));
        parts.map(move |part| (number, part.trim_matches(['|', ' '])))
    });
    let texts = cells.map(|(line, part)| {
        let text = without_code_and_addresses(part);
        Text { line, text }
    });
    texts.filter(|it| !it.text.is_empty()).collect()
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

/// Returns the first word of the table "Not used" in a text.
fn word_not_used(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let is_word = |text: &str, word: &str| {
        let mut found = text.match_indices(word);
        let is_letter = |it: Option<char>| it.is_some_and(char::is_alphabetic);
        found.any(|(at, word)| {
            let before = text[..at].chars().next_back();
            !is_letter(before) && !is_letter(text[at + word.len()..].chars().next())
        })
    };
    NOT_WORDS.into_iter().find(|word| is_word(&text, word))
}

/// Returns the sentences of a text. A colon also ends a sentence, as before a list.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |at: usize| text[..at].ends_with(['.', '!', '?', ':']);
    let mut rest = 0;
    let ends = text
        .match_indices(' ')
        .map(|(at, _)| at)
        .filter(move |at| is_end(*at));
    ends.chain([text.len()]).map(move |end| {
        let sentence = &text[rest..end];
        rest = end;
        sentence
    })
}

fn count(sentence: &str) -> usize {
    let words = sentence.split_whitespace();
    words
        .filter(|it| it.contains(char::is_alphanumeric))
        .count()
}

#[test]
fn what_is_not_prose_is_left_out() {
    let document = "# What\n\nOne [two](three.md#four). Five: `six seven`.\n\n```\neight\n```\n| a | b<br>c |\n";
    let found = texts(document);
    let found: Vec<_> = found.iter().map(|it| (it.line, &*it.text)).collect();
    let expected = [(3, "One two. Five: code."), (8, "a"), (8, "b"), (8, "c")];
    assert_eq!(found, expected);
    let parts: Vec<_> = sentences(found[0].1).map(count).collect();
    assert_eq!(parts, [2, 1, 1]);
    assert_eq!(word_not_used("It Gives way."), Some("gives way"));
    assert_eq!(word_not_used("unmended"), None);
}
