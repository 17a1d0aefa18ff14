//! Messages of agents and clusters, as far as they are repeated.

/// The maximum number of characters that are repeated.
const WORDS_MAX: usize = 160;

/// Returns the beginning of a peer's text, in one line and without a period at its end. Leaves out characters that control a terminal,
/// change the direction of writing or are invisible.
pub(super) fn short(text: &str) -> String {
    let words = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    // What is after the limit is not copied: a text may have 32 KiB, and a list has many.
    let seen = |word: &str| -> String {
        let letters = word.chars().filter(|letter| !is_unseen(*letter));
        letters.take(WORDS_MAX + 1).collect()
    };
    let words = words.map(seen).filter(|word| !word.is_empty());
    let line = words.take(WORDS_MAX + 1).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(WORDS_MAX) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.trim_end_matches('.').to_owned(),
    }
}

const fn is_unseen(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_are_one_short_line_that_steers_nothing() {
        assert_eq!(
            short(" no\r\n\tway,\u{1b}[2J \u{202e}it\u{200b} is.. "),
            "no way, [2J it is"
        );
        assert_eq!(short(""), "");
        assert_eq!(short("\u{202e}\n"), "");
        let long = short(&"é".repeat(1_000));
        assert_eq!(long, format!("{}…", "é".repeat(WORDS_MAX)));
        let words = short(&"four ".repeat(1_000));
        assert!(
            words.chars().count() <= WORDS_MAX + 1 && words.ends_with("four…"),
            "{words}"
        );
    }
}
