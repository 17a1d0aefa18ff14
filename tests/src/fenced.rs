//! Fenced blocks of Markdown: the commands in the documents, and their output.
//!
//! A block of commands names its test in the info string, as in ` ```sh test=the_tour_answers_as_written `. A block for a step of
//! the tier `journey` has a word for the step, as in ` ```sh journey=goes-back `. The output of the commands may be in the next
//! block, whose info string says `output`.

/// The documents whose commands run in a cluster, or next to one.
pub const OPERATORS: [&str; 11] = [
    "README.md",
    "docs/operations.md",
    "docs/uninstall.md",
    "docs/console.md",
    "docs/settings.md",
    "docs/sharding.md",
    "docs/security.md",
    "docs/safeguards.md",
    "docs/metrics.md",
    "docs/recordings.md",
    "docs/break-glass.md",
];

/// One fenced block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The text after the opening fence.
    pub info: String,
    /// The lines between the fences.
    pub text: String,
    /// The line of the opening fence, from 1.
    pub line: usize,
}

/// Returns the blocks of a document in order. An unclosed block ends with the document.
pub fn blocks(document: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in document.lines().enumerate() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(info), None) => {
                open = Some(Block {
                    info: info.trim().to_owned(),
                    text: String::new(),
                    line: number + 1,
                });
            }
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some(mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    blocks.extend(open);
    blocks
}

impl Block {
    /// Returns the language, which is the first word of the info string.
    pub fn language(&self) -> &str {
        self.info.split(' ').next().unwrap_or_default()
    }

    /// Returns the test that runs the block.
    pub fn test(&self) -> Option<&str> {
        self.mark("test=")
    }

    /// Returns the word by which a journey finds the block.
    pub fn journey(&self) -> Option<&str> {
        self.mark("journey=")
    }

    /// Returns the check of `.ci/run` that runs the block.
    pub fn check(&self) -> Option<&str> {
        self.mark("ci=")
    }

    fn mark(&self, name: &str) -> Option<&str> {
        let mut words = self.info.split(' ');
        words.find_map(|word| word.strip_prefix(name))
    }

    /// Returns whether the block shows the output of the commands before it.
    pub fn is_output(&self) -> bool {
        self.info.split(' ').skip(1).any(|word| word == "output")
    }

    /// Returns whether the output is like the block, except for counts and times of a run: numbers, the width of columns, and all
    /// but the first column of a table by subject.
    pub fn is_like(&self, printed: &str) -> bool {
        words(&self.text) == words(printed)
    }
}

/// The words of a text that are the same in each run, with a `#` for each word that begins with a number.
fn words(text: &str) -> Vec<String> {
    let mut is_table = false;
    let of_line = |line: &str| {
        is_table = (is_table || line.starts_with("SUBJECT")) && !line.trim().is_empty();
        let words = line.split_whitespace();
        let words = words.take(if is_table { 1 } else { usize::MAX });
        let plain = |word: &str| {
            if word.starts_with(|first: char| first.is_ascii_digit()) {
                "#".to_owned()
            } else {
                word.to_owned()
            }
        };
        words.map(plain).collect::<Vec<_>>()
    };
    text.lines().flat_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_carry_their_test_and_their_output() {
        let document =
            "one\n```sh test=it_runs journey=goes\nls\npwd\n```\ntwo\n```json output\n{}\n```\n";
        let found = blocks(document);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].test(), Some("it_runs"));
        assert_eq!(
            (found[0].journey(), found[1].journey()),
            (Some("goes"), None)
        );
        assert_eq!(found[0].text, "ls\npwd\n");
        assert_eq!((found[0].line, found[0].language()), (2, "sh"));
        assert!(found[1].is_output() && !found[0].is_output());
    }

    #[test]
    fn numbers_of_a_run_may_differ_and_nothing_else() {
        let shown = &blocks("```text output\n12 differ, at 10:00:01.5Z\n```\n")[0];
        assert!(shown.is_like("3 differ, at 9:30:59.125Z\n"));
        assert!(!shown.is_like("3 agree, at 9:30:59.125Z\n"));
        assert!(!shown.is_like("differ, at 9:30:59.125Z\n"));
    }

    #[test]
    fn unclosed_block_ends_with_the_document() {
        assert_eq!(blocks("```\nrest")[0].text, "rest\n");
    }
}
