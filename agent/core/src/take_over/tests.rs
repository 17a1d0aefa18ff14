//! What an agent may do after each input, and what it asks for.

use expect_test::expect_file;

use super::*;
use crate::tests::{at, play, refusal};

const OFF: &str = "off since 1970-01-01T00:00:00Z, declared by alice";
const ON: &str = "on since 1970-01-01T00:00:00Z, declared by alice";
const FOUND: &str = "found-on since 1970-01-01T00:00:20Z: k3s answered agent-0, which has stopped";

/// A probe as `RECORD GENERATION OBSERVED`.
fn probe(words: &[&str]) -> ProbeState {
    let number = |place: usize| words[place].parse().expect("a generation");
    let record = match words[0] {
        "off" => Some(OFF),
        "off-again" => Some("off since 1970-01-01T00:01:00Z, declared by bob"),
        "on" => Some(ON),
        "found" => Some(FOUND),
        "offline" => Some("offline"),
        "empty" => Some(""),
        _ => None,
    };
    ProbeState {
        version: words[1].to_owned(),
        declaration: record.map(Declaration::parse),
        generation: number(1),
        observed: number(2),
        observer: "k3s".into(),
    }
}

fn new(flag: bool) -> TakeOver {
    TakeOver::new("agent-0".into(), flag)
}

/// Plays a statement without output.
fn quietly(take_over: &mut TakeOver, statement: &str) {
    drop(act(take_over, statement));
}

/// Plays a statement. Returns the verdict after an input, and the command that follows it.
fn act(take_over: &mut TakeOver, statement: &str) -> Option<String> {
    let words: Vec<_> = statement.split_whitespace().collect();
    match words[0] {
        "flag" => {
            *take_over = new(true);
            return None;
        }
        // It has read the probe and asked before it leads, with a flag if there is no record.
        "able" => {
            *take_over = new(words[1] == "none");
            quietly(take_over, &format!("0 reads {} 1 0", words[1]));
            quietly(take_over, &format!("0 answers {} 2 0", words[1]));
            return None;
        }
        // It acts since second 2, after its question of generation 3.
        "acting" => {
            quietly(take_over, &format!("able {}", words[1]));
            quietly(take_over, "1 leads");
            quietly(take_over, &format!("1 answers {} 3 0", words[1]));
            assert_eq!(act(take_over, "2 waits").as_deref(), Some("act"));
            return None;
        }
        "answered-by" => return Some(take_over.answered_by().unwrap_or("nobody").to_owned()),
        _ => {}
    }
    let now = at(words[0].parse().expect("a second"));
    match words[1] {
        "reads" => take_over.handle_read(now, Some(probe(&words[2..]))),
        "reads-none" => take_over.handle_read(now, None),
        "answers" => take_over.handle_answer(now, Ok(probe(&words[2..]))),
        "refuses" => {
            let code = words[2].parse().expect("a code");
            take_over.handle_answer(now, Err(refusal(code, "")));
        }
        "leads" | "follows" => take_over.handle_lead(words[1] == "leads"),
        "waits" => {}
        other => panic!("{other} is no statement"),
    }
    let command = match take_over.poll_command(now) {
        Some(Command::Ask) => ", ask",
        Some(Command::Create(None)) => ", create",
        Some(Command::Create(Some(record))) if record.built_in == BuiltIn::Off => ", create off",
        Some(Command::Create(Some(_))) => ", create on",
        Some(Command::Record(record, _)) => {
            assert_eq!(record.text, FOUND, "it says who answered, and when");
            ", record"
        }
        None => "",
    };
    let Verdict { stage, why } = take_over.poll_verdict(now);
    let why = why.map_or_else(String::new, |why| match why {
        Why::Failed(error) => error.code.unwrap_or(0).to_string(),
        Why::On(record) => format!("{:?}", record.built_in),
        Why::Starting | Why::Undeclared => format!("{why:?}"),
    });
    let verdict = match stage {
        Stage::StandBy => why,
        Stage::Lead => format!("lead {why}"),
        Stage::Act => "act".to_owned(),
    };
    if let Some(due) = take_over.poll_timeout() {
        assert!(due > now || !command.is_empty(), "it is due at {due}");
    }
    Some(format!("{}{command}", verdict.trim().to_lowercase()))
}

/// An input is a second and what comes: `reads` and `answers` a probe, as its record, its generation and the last answered generation.
#[test]
fn verdicts_are_those_of_the_table() {
    play(&expect_file!["tests/take_over.txt"], || new(false), act);
}

#[test]
fn records_of_people_are_read_back() {
    for (is_off, text) in [(true, OFF), (false, ON)] {
        let record = Declaration::by_person(at(0), is_off, "alice");
        assert_eq!(record.text, text);
        assert_eq!(Declaration::parse(&record.text), record);
        assert_eq!(record.since(), Some(at(0)));
    }
    assert_eq!(Declaration::parse(FOUND).since(), Some(at(20)));
    assert_eq!(Declaration::parse("off").since(), None);
    let long = format!("off {}", "ä".repeat(1_000));
    assert_eq!(Declaration::parse(&long).text.len(), 512);
}
