//! docs/errors.md explains exactly the reasons that the programs use.

use std::{collections::BTreeSet, fs};

use decree_api::v1::{FailureClass, NotStartedCause};
use tests::binaries;

fn read(path: &str) -> String {
    fs::read_to_string(binaries::checkout().join(path)).expect("it is in the checkout")
}

/// Returns the first cells of the tables of some sections, each with the number of non-empty cells in its row.
fn explained(sections: &[&str]) -> BTreeSet<String> {
    let page = read("docs/errors.md");
    let sections = page
        .split("\n## ")
        .filter(|section| sections.iter().any(|title| section.starts_with(title)));
    let rows = sections.flat_map(|section| section.lines());
    let rows = rows.filter(|row| row.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [reason, cause, remedy] = cells[..] else {
            panic!("a reason has a cause and a remedy: {row}")
        };
        assert!(cause.ends_with('.') && remedy.ends_with('.'), "{row}");
        reason.trim_matches('`').to_owned()
    })
    .collect()
}

/// Returns the texts after a marker that look like reasons.
fn reasons(path: &str, marker: &str) -> BTreeSet<String> {
    let text = read(path);
    let (_, text) = text.split_once(marker).expect("the marker is there");
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let is_reason = |text: &&str| {
        text.len() > 3
            && text
                .bytes()
                .all(|byte| byte == b'_' || byte.is_ascii_uppercase())
    };
    let texts = text.split('"').skip(1).step_by(2);
    texts.filter(is_reason).map(str::to_owned).collect()
}

#[test]
fn each_reason_of_a_refusal_has_a_cause_and_a_remedy() {
    let mut known = reasons("server/src/error.rs", "fn nature(");
    // The reason of a status that a library made is the status code.
    for code in reasons("server/src/error.rs", "fn code_names(") {
        known.remove(&code);
    }
    known.extend(
        [
            "MESSAGE_TOO_LARGE",
            "INTERNAL_FAILURE",
            "UNIMPLEMENTED",
            "DEADLINE_EXCEEDED",
        ]
        .map(str::to_owned),
    );
    known.extend(reasons("server/session/src/refusal.rs", "fn reason("));
    known.extend(reasons("server/access/src/denial.rs", "fn reason("));
    let explained = explained(&["Refusals"]);
    let differ: Vec<_> = explained.symmetric_difference(&known).collect();
    assert!(
        differ.is_empty(),
        "either only known or only explained: {differ:?}"
    );
    let protocol = read("docs/protocol.md");
    let (_, table) = protocol
        .split_once("\n## Refusals")
        .expect("it has a section");
    let table = table.split("\n## ").next().unwrap_or_default();
    for reason in &explained {
        assert!(
            table.contains(&format!("\n| `{reason}` |")),
            "docs/protocol.md lacks {reason}"
        );
    }
}

#[test]
fn each_reason_of_a_field_has_a_cause_and_a_remedy() {
    let known = reasons("server/session/src/wire.rs", "fn as_str(");
    let explained = explained(&["Fields"]);
    let differ: Vec<_> = explained.symmetric_difference(&known).collect();
    assert!(
        differ.is_empty(),
        "either only known or only explained: {differ:?}"
    );
}

#[test]
fn each_class_of_a_failure_has_a_cause_and_a_remedy() {
    let classes = (1..).map_while(|number| FailureClass::try_from(number).ok());
    let causes = (1..).map_while(|number| NotStartedCause::try_from(number).ok());
    let known: BTreeSet<_> = classes
        .map(|class| class.as_str_name())
        .chain(causes.map(|cause| cause.as_str_name()))
        .map(str::to_owned)
        .collect();
    assert_eq!(explained(&["Outcomes"]), known);
}
