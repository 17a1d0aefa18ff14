//! Text in lines that fit a terminal of 80 columns: no escape sequences, nothing that is drawn twice.

/// How many columns a line may take.
const COLUMNS: usize = 80;
/// How much further the rest of a line that was broken is indented.
const HANGING: usize = 4;

/// Breaks a line at spaces so that it fits, if its words do.
pub(crate) fn wrap(line: &str) -> Vec<String> {
    wrap_at(line, COLUMNS)
}

/// Breaks a line at spaces so that it fits so many columns, if its words do.
pub(crate) fn wrap_at(line: &str, columns: usize) -> Vec<String> {
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let mut lines = Vec::new();
    let mut current = " ".repeat(indent);
    let mut is_empty = true;
    for word in text.split(' ') {
        let width = current.chars().count() + usize::from(!is_empty) + word.chars().count();
        if !is_empty && width > columns {
            lines.push(std::mem::replace(
                &mut current,
                " ".repeat(indent + HANGING),
            ));
            is_empty = true;
        }
        if !is_empty {
            current.push(' ');
        }
        current.push_str(word);
        is_empty = false;
    }
    lines.push(current);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words_and_hang() {
        let line = format!("  {}", ["twelve chars"; 9].join(" "));
        let lines = wrap(&line);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= COLUMNS));
        assert!(lines[1].starts_with("      t"), "{lines:?}");
        assert_eq!(lines.join(" ").split_whitespace().count(), 18);
    }

    #[test]
    fn short_lines_and_gaps_within_them_stay_as_they_are() {
        assert_eq!(wrap("  a   b"), ["  a   b"]);
        assert_eq!(wrap(""), [""]);
        assert_eq!(wrap(&"x".repeat(100)), ["x".repeat(100)]);
    }
}
