//! What an agent may do after each input, and what it asks for.

use super::*;
use crate::tests::at;

const OFF: Option<&str> = Some("off since 1970-01-01T00:00:00Z, declared by alice");
const OFF_AGAIN: Option<&str> = Some("off since 1970-01-01T00:01:00Z, declared by bob");
const ON: Option<&str> = Some("on since 1970-01-01T00:00:00Z, declared by alice");
const FOUND: Option<&str> =
    Some("found-on since 1970-01-01T00:00:20Z: k3s answered agent-0, which has stopped");

/// An input; a probe is its record, its generation and the last answered generation.
enum Input {
    Reads(Option<&'static str>, i64, i64),
    ReadsNone,
    Answers(Option<&'static str>, i64, i64),
    Refuses(u16),
    Leads(bool),
    Waits,
}

use Input::{Answers, Leads, Reads, ReadsNone, Refuses, Waits};

fn probe(record: Option<&str>, generation: i64, observed: i64) -> ProbeState {
    ProbeState {
        version: generation.to_string(),
        declaration: record.map(Declaration::parse),
        generation,
        observed,
        observer: "k3s".into(),
    }
}

fn error(code: u16) -> ApiError {
    ApiError {
        code: Some(code),
        ..ApiError::default()
    }
}

/// The verdict after an input, and the command that follows it.
fn step(take_over: &mut TakeOver, now: Timestamp, input: &Input) -> String {
    match *input {
        Reads(record, generation, observed) => {
            take_over.handle_read(now, Some(probe(record, generation, observed)));
        }
        ReadsNone => take_over.handle_read(now, None),
        Answers(record, generation, observed) => {
            take_over.handle_answer(now, Ok(probe(record, generation, observed)));
        }
        Refuses(code) => take_over.handle_answer(now, Err(error(code))),
        Leads(leads) => take_over.handle_lead(leads),
        Waits => {}
    }
    let command = match take_over.poll_command(now) {
        Some(Command::Ask) => ", ask",
        Some(Command::Create(None)) => ", create",
        Some(Command::Create(Some(record))) if record.built_in == BuiltIn::Off => ", create off",
        Some(Command::Create(Some(_))) => ", create on",
        Some(Command::Record(record, _)) => {
            assert_eq!(Some(&*record.text), FOUND, "it says who answered, and when");
            ", record"
        }
        None => "",
    };
    let Verdict { stage, why } = take_over.poll_verdict(now);
    let why = why.map(|why| match why {
        Why::Failed(error) => error.code.unwrap_or(0).to_string(),
        Why::On(record) => format!("{:?}", record.built_in),
        Why::Starting | Why::Undeclared => format!("{why:?}"),
    });
    let verdict = match (stage, why) {
        (Stage::StandBy, why) => why.unwrap_or_default(),
        (Stage::Lead, why) => format!("lead {}", why.unwrap_or_default()),
        (Stage::Act, _) => "act".to_owned(),
    };
    let verdict = verdict.trim().to_lowercase();
    if let Some(due) = take_over.poll_timeout() {
        assert!(due > now || !command.is_empty(), "it is due at {due}");
    }
    format!("{verdict}{command}")
}

/// An agent that has read the probe and asked before it leads, with a flag if there is no record.
fn able(record: Option<&'static str>) -> TakeOver {
    let mut take_over = TakeOver::new("agent-0".into(), record.is_none());
    let read = step(&mut take_over, at(0), &Reads(record, 1, 0));
    assert_eq!(read, "starting, ask");
    assert_eq!(step(&mut take_over, at(0), &Answers(record, 2, 0)), "lead");
    take_over
}

/// An agent that acts since second 2, after its question of generation 3.
fn acting(record: Option<&'static str>) -> TakeOver {
    let mut take_over = able(record);
    assert_eq!(step(&mut take_over, at(1), &Leads(true)), "lead, ask");
    assert_eq!(step(&mut take_over, at(1), &Answers(record, 3, 0)), "lead");
    assert_eq!(step(&mut take_over, at(2), &Waits), "act");
    take_over
}

fn follow(mut take_over: TakeOver, steps: &[(u64, Input, &str)]) {
    for (number, (second, input, expected)) in steps.iter().enumerate() {
        let then = step(&mut take_over, at(*second), input);
        assert_eq!(then, *expected, "step {number}");
    }
}

#[test]
fn agent_acts_only_by_a_declaration_and_the_record_wins_over_the_flag() {
    for (flag, record, expected) in [
        (false, None, "undeclared"),
        (false, ON, "on"),
        (false, FOUND, "foundon"),
        (false, Some(""), "on"),
        (false, Some("offline"), "on"),
        (false, OFF, "lead"),
        (true, None, "lead"),
        (true, ON, "on"),
        (true, FOUND, "foundon"),
        (true, OFF, "lead"),
    ] {
        let mut take_over = TakeOver::new("agent-0".into(), flag);
        let read = step(&mut take_over, at(0), &Reads(record, 1, 1));
        assert_eq!(read, "starting, ask");
        let asked = step(&mut take_over, at(0), &Answers(record, 2, 1));
        assert_eq!(asked, expected, "{record:?}");
        // However long nobody answers, and whoever answers: the record counts.
        let later = step(&mut take_over, at(59), &Reads(record, 2, 2));
        assert_eq!(later, expected, "{record:?}");
        assert_eq!(take_over.answered_by(), Some("k3s"));
    }
}

#[test]
fn question_must_be_open_for_two_seconds_before_the_agent_acts() {
    // A successor of an agent that acts has seen the open question before it leads.
    follow(
        able(OFF),
        &[
            (10, Leads(true), "lead, ask"),
            (10, Answers(OFF, 3, 0), "act"),
        ],
    );
    // The probe of the predecessor, an older version, was answered by it. Its answer does not count.
    follow(
        able(OFF),
        &[
            (5, Reads(OFF, 2, 2), "lead"),
            (9, Leads(true), "lead, ask"),
            (9, Reads(OFF, 2, 2), "lead"),
            (9, Answers(OFF, 3, 2), "lead"),
            (10, Waits, "lead"),
            (11, Waits, "act"),
        ],
    );
    // A question from before the lead does not count either.
    follow(
        able(OFF),
        &[
            (61, Waits, "lead, ask"),
            (61, Leads(true), "lead"),
            (61, Answers(OFF, 3, 0), "lead, ask"),
            (62, Answers(OFF, 4, 0), "act"),
        ],
    );
}

#[test]
fn any_answer_to_the_question_of_the_lead_stops_the_agent_for_good() {
    for record in [OFF, None] {
        follow(
            acting(record),
            &[
                (20, Reads(record, 3, 3), "foundon, record"),
                // Another agent has changed the probe meanwhile.
                (20, Refuses(409), "foundon"),
                (20, Reads(record, 4, 3), "foundon"),
                (24, Leads(false), "foundon"),
                (25, Waits, "foundon, record"),
                (25, Answers(FOUND, 4, 3), "foundon"),
                (80, Waits, "foundon"),
                // As after a restart, a flag does not start it again.
                (85, Waits, "foundon, ask"),
                (85, Answers(FOUND, 5, 3), "foundon"),
                (90, Reads(OFF_AGAIN, 5, 3), "lead"),
                (91, Leads(true), "lead, ask"),
                (91, Answers(OFF_AGAIN, 6, 3), "act"),
            ],
        );
    }
    // The answer comes before the agent acts.
    let mut early = able(OFF);
    step(&mut early, at(19), &Leads(true));
    follow(early, &[(20, Answers(OFF, 3, 3), "foundon, record")]);
    // A person declares anew before the stop is recorded: the stop is of the last declaration.
    follow(
        acting(OFF),
        &[
            (20, Reads(OFF, 3, 3), "foundon, record"),
            (20, Reads(OFF_AGAIN, 3, 3), "lead"),
            (20, Refuses(409), "lead"),
            (21, Leads(false), "lead"),
        ],
    );
}

#[test]
fn record_of_a_person_or_of_another_agent_stops_the_agent() {
    for (record, expected) in [(ON, "on"), (FOUND, "foundon")] {
        follow(
            acting(OFF),
            &[
                (20, Reads(record, 3, 0), expected),
                (21, Leads(false), expected),
                (22, Reads(OFF_AGAIN, 3, 0), "lead"),
            ],
        );
    }
}

#[test]
fn agent_that_cannot_change_the_probe_stands_by() {
    let new = || TakeOver::new("agent-0".into(), true);
    follow(
        new(),
        &[
            (0, Waits, "starting, ask"),
            (1, Refuses(401), "401"),
            (2, Reads(None, 1, 0), "401"),
            (5, Waits, "401"),
            (6, Waits, "401, ask"),
            (6, Answers(None, 2, 0), "lead"),
            // It goes on waiting for the Lease.
            (66, Waits, "lead, ask"),
            (66, Refuses(500), "lead 500"),
            (71, Waits, "lead 500, ask"),
            (71, Answers(None, 3, 0), "lead"),
            // The refusal of the question that the lead needs ends the lead.
            (80, Leads(true), "lead, ask"),
            (80, Refuses(403), "403"),
            (80, Leads(false), "403"),
            (85, Waits, "403, ask"),
            (85, Answers(None, 4, 0), "lead"),
        ],
    );
    // It must have read the probe, or it would see no answer.
    follow(
        new(),
        &[
            (0, Waits, "starting, ask"),
            (0, Answers(None, 2, 0), "starting"),
            (9, Reads(None, 2, 0), "lead"),
        ],
    );
}

#[test]
fn probe_that_is_gone_is_created_with_its_record() {
    let new = |flag| TakeOver::new("agent-0".into(), flag);
    follow(
        new(false),
        &[
            (0, Waits, "starting, ask"),
            (0, Refuses(404), "starting, create"),
            (0, Answers(None, 1, 0), "starting"),
            (0, Reads(None, 1, 0), "undeclared"),
        ],
    );
    // Another agent is faster; or the namespace is missing.
    for (code, expected) in [(409, "starting"), (404, "404")] {
        follow(
            new(true),
            &[
                (0, ReadsNone, "starting, create"),
                (0, Refuses(code), expected),
                (4, Waits, expected),
            ],
        );
    }
    // The agent goes on, and a new probe counts from its first generation.
    follow(
        acting(OFF),
        &[
            (20, ReadsNone, "act, create off"),
            (20, Answers(OFF, 1, 0), "act"),
            (20, Reads(OFF, 1, 1), "foundon, record"),
        ],
    );
    follow(
        acting(OFF),
        &[
            (20, Reads(OFF, 1, 1), "act, ask"),
            (20, Answers(OFF, 2, 1), "act"),
            (20, Reads(OFF, 2, 2), "foundon, record"),
            (20, Refuses(404), "foundon, create on"),
        ],
    );
}

#[test]
fn records_of_people_are_read_back() {
    for (is_off, text) in [(true, OFF), (false, ON)] {
        let record = Declaration::by_person(at(0), is_off, "alice");
        assert_eq!(Some(&*record.text), text);
        assert_eq!(Declaration::parse(&record.text), record);
        assert_eq!(record.since(), Some(at(0)));
    }
    assert_eq!(
        Declaration::parse(FOUND.unwrap_or_default()).since(),
        Some(at(20))
    );
    assert_eq!(Declaration::parse("off").since(), None);
    let long = format!("off {}", "ä".repeat(1_000));
    assert_eq!(Declaration::parse(&long).text.len(), 512);
}
