//! Texts at the surface: documents, help, the contract, the console, and each text of the programs, such as errors, reasons, log messages
//! and the help of metrics. They use the terms of docs/glossary.md, in short sentences.

use clap::{Command, CommandFactory as _};

use crate::files;

/// The maximum length of a sentence in words; a piece of code counts as one word.
const WORDS_MAX: usize = 25;
/// A sentence does not begin with a relative clause as its subject, unless it is a question.
const CLAUSES: &str = "what whoever whatever whose";
/// A heading names a task or a thing, and does not begin with one of these words, unless it is a question.
const HEADINGS: &str = "What Who Whoever Whose Where Which That How";
/// Exempt files, such as the embedded cluster, which copies messages of Kubernetes; and sources that no user sees.
const SPARED: &str = "docs/glossary.md docs/api.md agent/fake/ tests/tidy/prose.rs";
const NOT_SEEN: &str = "tests/ benches/ /tests theme/ build.rs examples/";
/// A message that the agent copies from Kubernetes.
const COPIED: &str = "original ReplicaSet {} is gone: got uid {}, wanted {}";

#[test]
fn texts_have_the_terms_of_the_glossary_and_short_sentences() {
    let refused = refused();
    let mut found = Vec::new();
    for (place, text) in texts() {
        let text = plain(&text);
        let words = refused.iter().filter(|(it, _)| has(&text, it));
        found.extend(words.map(|(it, _)| format!("{place}: {it:?} in {text:?}")));
        let wrong = sentences(&text).into_iter().filter(|it| is_wrong(it));
        found.extend(wrong.map(|it| format!("{place}: {it}")));
    }
    assert!(found.is_empty(), "{} texts: {found:#?}", found.len());
}

#[test]
fn headings_and_names_have_the_terms_of_the_glossary() {
    let names = refused().into_iter().filter(|(_, in_names)| *in_names);
    let names: Vec<_> = names.map(|(word, _)| word).collect();
    let mut found = Vec::new();
    for file in files::with_ending(&[".md", ".rs"]) {
        let is_document = file.path.ends_with(".md");
        let is_wrong = |line: &&str| match line.strip_prefix('#') {
            Some(heading) if is_document => {
                let first = heading.trim_start_matches('#').split_whitespace().next();
                !line.ends_with('?') && HEADINGS.split(' ').any(|it| Some(it) == first)
            }
            _ if is_document || line.trim_start().starts_with("//") => false,
            _ => names.iter().any(|it| has_part(line, it)),
        };
        if !SPARED.contains(&file.path) {
            let wrong = prose(&file.text).filter(is_wrong);
            found.extend(wrong.map(|it| format!("{}: {it}", file.path)));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Returns the words of the table "Not used" of the glossary, each with whether names must not have it either.
fn refused() -> Vec<(String, bool)> {
    let glossary = files::read("docs/glossary.md");
    let (_, table) = glossary.split_once("## Not used").expect("it lists them");
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(2);
    let words = rows.flat_map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [words, _, names] = cells[..] else {
            panic!("the table has three columns: {row}")
        };
        let words = words.split(", ");
        words.map(move |it| (it.to_owned(), names == "yes"))
    });
    let words: Vec<_> = words.collect();
    assert!(words.len() > 50, "the search finds {words:?} only");
    words
}

/// Returns all texts that a person reads, with their places.
fn texts() -> Vec<(String, String)> {
    let mut found = Vec::new();
    help("decree-server", &decree_server::Args::command(), &mut found);
    help(
        "decree-agent",
        &decree_agent::AgentArgs::command(),
        &mut found,
    );
    help("decree", &decree_cli::command(), &mut found);
    let commands = found.len();
    assert!(commands > 200, "the commands have {commands} texts only");
    for file in files::with_ending(&[".md", ".proto", ".js", ".rs"]) {
        let (path, text) = (&file.path, &file.text);
        let is_seen = path.ends_with(".md") || !NOT_SEEN.split(' ').any(|it| path.contains(it));
        if !is_seen || SPARED.split(' ').any(|it| path.starts_with(it)) {
            continue;
        }
        let texts = match path.rsplit('.').next() {
            Some("md") => document(text),
            Some("proto") => comments(text),
            Some("js") => text.lines().flat_map(|it| literals(it, "'\"`")).collect(),
            _ => literals(
                text.split("\n#[cfg(test)]").next().unwrap_or_default(),
                "\"",
            ),
        };
        let texts = texts.into_iter().filter(|it| it.trim().contains(' '));
        let texts = texts.filter(|it| it != COPIED);
        found.extend(texts.map(|text| (path.clone(), text)));
    }
    assert!(found.len() > 5 * commands, "the files have few texts");
    found
}

/// Adds the help of a command and of its subcommands.
fn help(name: &str, command: &Command, found: &mut Vec<(String, String)>) {
    let arguments = command.get_arguments().flat_map(|it| {
        let values = it.get_possible_values();
        let values = values.into_iter().map(|it| it.get_help().cloned());
        let own = [it.get_help().cloned(), it.get_long_help().cloned()];
        own.into_iter().chain(values).collect::<Vec<_>>()
    });
    let own = [
        command.get_about().cloned(),
        command.get_long_about().cloned(),
    ];
    let texts = own.into_iter().chain(arguments).flatten();
    found.extend(texts.map(|it| (format!("{name} --help"), it.to_string())));
    for subcommand in command.get_subcommands() {
        help(
            &format!("{name} {}", subcommand.get_name()),
            subcommand,
            found,
        );
    }
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

/// Returns the texts of a document, without code or headings: lines, list items, and lines of table cells.
fn document(text: &str) -> Vec<String> {
    let lines = prose(text).filter(|line| !line.starts_with('#'));
    let cells = lines.flat_map(|line| line.split(if line.starts_with('|') { " | " } else { "\n" }));
    let parts = cells.flat_map(|cell| cell.split("<br>"));
    let parts = parts.map(|part| part.trim_matches(['|', ' ']));
    parts.map(str::to_owned).collect()
}

/// Returns the comments of a .proto file, each paragraph in one line.
fn comments(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.trim().strip_prefix("// "));
    let lines: Vec<_> = lines.map(|it| it.unwrap_or("\n")).collect();
    let text = lines.join(" ");
    text.lines().map(str::to_owned).collect()
}

/// Returns the texts in these quotes of a source, without comments.
fn literals(source: &str, quotes: &str) -> Vec<String> {
    let lines = source.lines().map(str::trim);
    let lines: Vec<_> = lines.filter(|it| !it.starts_with("//")).collect();
    let source = lines.join("\n").replace("\\\n", "").replace("'\"'", "");
    let (mut found, mut open, mut is_escaped) = (Vec::new(), None, false);
    for it in source.chars() {
        match &mut open {
            None => open = quotes.contains(it).then(|| (it, String::new())),
            Some((_, text)) if is_escaped => text.push(if it == 'n' { '\n' } else { it }),
            Some((quote, text)) if it == *quote => {
                found.push(std::mem::take(text));
                open = None;
            }
            Some((_, text)) => text.extend((it != '\\').then_some(it)),
        }
        is_escaped = open.is_some() && it == '\\' && !is_escaped;
    }
    found
}

/// Returns a text with a word in place of each code span and placeholder, and without emphasis and the addresses of links.
fn plain(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(at, part)| if at % 2 == 0 { part } else { "code" });
    let text = without(&parts.collect::<String>(), "](", ")", "");
    without(&text, "{", "}", "x").replace(['[', '*'], "")
}

/// Returns a text with another one in place of each piece between two marks.
fn without(text: &str, begin: &str, end: &str, other: &str) -> String {
    let mut parts = text.split(begin);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + other + part.split_once(end).map_or(part, |(_, rest)| rest)
    })
}

/// Returns the sentences of a text. The end of a line and a colon also end a sentence, as before a list.
fn sentences(text: &str) -> Vec<String> {
    let marks = [". ", "! ", "? ", ": "];
    let text = marks.iter().fold(text.to_owned(), |text, it| {
        text.replace(it, &it.replace(' ', "\n"))
    });
    text.lines().map(|it| it.trim().to_owned()).collect()
}

fn is_wrong(sentence: &str) -> bool {
    let is_word = |it: &&str| it.contains(char::is_alphanumeric);
    let words: Vec<_> = sentence.split_whitespace().filter(is_word).collect();
    let first = words.first().map(|it| it.to_ascii_lowercase());
    let is_clause = CLAUSES.split(' ').any(|it| first.as_deref() == Some(it));
    words.len() > WORDS_MAX || is_clause && words.len() > 3 && !sentence.ends_with('?')
}

/// Returns whether a text has a word or phrase.
fn has(text: &str, phrase: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let is_word = |it: char| it.is_alphanumeric() || it == '-' || it == '_';
    let mut found = text.match_indices(phrase);
    found.any(|(at, _)| {
        !text[..at].ends_with(is_word) && !text[at + phrase.len()..].starts_with(is_word)
    })
}

/// Returns whether a line of code has a word, also as a part of a name, as in `Door`, `open_door` and `DoorError`.
fn has_part(line: &str, word: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    lower.match_indices(word).any(|(at, _)| {
        let (before, rest) = line.split_at(at);
        let begins = !before.ends_with(char::is_alphabetic) || rest.starts_with(char::is_uppercase);
        begins && !rest[word.len()..].starts_with(char::is_lowercase)
    })
}

#[test]
fn prose_and_words_are_found() {
    let text =
        "# What\n\nOne [two](three.md#four). Five: `six`.\n\n```\neight\n```\n| a | b<br>c |\n";
    let found: Vec<_> = document(text).iter().map(|it| plain(it)).collect();
    assert_eq!(found, ["", "One two. Five: code.", "", "a", "b", "c"]);
    let source = "f(\"a \\\"b\\\" \\\n   c\", '\"');\n// \"d\"\nlet g: &'h str = \"{i} j\";";
    assert_eq!(literals(source, "\""), ["a \"b\" c", "{i} j"]);
    assert_eq!(comments("// a\n// b\nc\n// d\n"), ["a b ", " d"]);
    assert_eq!(sentences("One. Two: three"), ["One.", "Two:", "three"]);
    assert!(is_wrong("What came is read.") && !is_wrong("What came to it?"));
    assert!(has("It Gives way.", "gives way") && !has("--mode shadow", "mode shadow"));
    assert!(has_part("DoorError", "door") && has_part("the_door();", "door"));
    assert!(!has_part("indoors outdoor", "door"));
}
