//! The commands of the documents print the documented output. `…` stands for anything.

use std::fs;

use super::{
    decree, root, split,
    system::{System, assert_says},
};

#[test]
fn commands_of_the_manual_say_what_it_says() {
    let page = fs::read_to_string(root().join("docs/cli.md")).expect("it is there");
    let names_the_cluster = page.contains("decree up -f docs/examples/web.yaml");
    assert!(names_the_cluster, "its examples need their cluster");
    let examples = examples(&page);
    assert!(
        examples.len() > 8,
        "only {} examples: the search is broken",
        examples.len()
    );
    let system = System::start(&["demo"]);
    for (command, expected) in examples {
        let words: Vec<_> = split(&command).iter().map(|it| from_root(it)).collect();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let ended = match words[0] {
            "watch" => system.decree_scaling("web-5f6a8b", 4, &words),
            "get" | "explain" | "simulate" => system.decree(&words),
            _ => decree(&words),
        };
        let said = ended.err + &ended.out;
        assert_says(
            &format!("$ decree {command}\n{expected}"),
            &format!("$ decree {command}\n{said}"),
        );
    }
}

/// The commands in blocks marked `console`, each with its output below it.
fn examples(manual: &str) -> Vec<(String, String)> {
    let blocks = manual
        .split("```console\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    let commands = blocks.flat_map(|block| block.split("$ decree ").skip(1));
    let parts = commands.filter_map(|text| text.split_once('\n'));
    parts
        .map(|(command, output)| (command.to_owned(), output.to_owned()))
        .collect()
}

/// Makes the path of a file of the checkout absolute.
fn from_root(word: &str) -> String {
    let file = root().join(word);
    if file.is_file() {
        file.display().to_string()
    } else {
        word.to_owned()
    }
}
