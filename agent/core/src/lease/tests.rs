//! Two processes and one lease, with a clock that is stepped by hand, in a table.

use std::collections::BTreeMap;

use expect_test::expect_file;

use super::*;
use crate::tests::{at, play};

const START: Timestamp = Timestamp::UNIX_EPOCH;

/// A lease as an API server keeps it.
#[derive(Default)]
struct Store {
    record: Option<Record>,
    version: u64,
}

impl Store {
    fn answer(&mut self, command: Command) -> Result<Record, ApiError> {
        let refused = |code| {
            Err(ApiError {
                code: Some(code),
                ..ApiError::default()
            })
        };
        match (command, &self.record) {
            (Command::Read, None) => refused(404),
            (Command::Read, Some(record)) => Ok(record.clone()),
            (Command::Create(_), Some(_)) => refused(409),
            (Command::Create(record), None) => Ok(self.put(record)),
            (Command::Replace(_), None) => refused(404),
            (Command::Replace(record), Some(old)) => {
                if record.resource_version != old.resource_version {
                    return refused(409);
                }
                Ok(self.put(record))
            }
        }
    }

    fn put(&mut self, record: Record) -> Record {
        self.version += 1;
        let resource_version = self.version.to_string();
        let object = if record.object.is_empty() {
            b"created".to_vec()
        } else {
            record.object.clone()
        };
        let stored = Record {
            resource_version,
            object,
            ..record
        };
        self.record.insert(stored).clone()
    }
}

fn config(duration: u64, margin: u64) -> LeaseConfig {
    LeaseConfig {
        identity: String::new(),
        namespace: "kube-system".into(),
        name: "decree-agent".into(),
        duration: Duration::from_secs(duration),
        margin: Duration::from_secs(margin),
        shared: false,
    }
}

fn lease(identity: &str) -> Lease {
    Lease::new(LeaseConfig {
        identity: identity.into(),
        ..config(15, 8)
    })
}

/// Lets a process make all its requests at a time.
fn step(lease: &mut Lease, store: &mut Store, now: Timestamp) {
    while let Some(command) = lease.poll_command(now) {
        let answer = store.answer(command);
        lease.handle_answer(now, answer);
    }
}

/// A process; those that share a lease have one identity.
fn process(name: &str, shared: bool) -> Lease {
    Lease::new(LeaseConfig {
        shared,
        ..lease(if shared { "both" } else { name }).config
    })
}

/// Processes by name, and their lease.
#[derive(Default)]
struct Table {
    store: Store,
    processes: BTreeMap<String, Lease>,
    /// The open requests, and their answers.
    requests: BTreeMap<String, Command>,
    answers: BTreeMap<String, Result<Record, ApiError>>,
}

impl Table {
    fn act(&mut self, statement: &str) -> Option<String> {
        let words: Vec<_> = statement.split_whitespace().collect();
        let word = |place: usize| words.get(place).copied().unwrap_or_default();
        let second = |place: usize| word(place).parse::<u64>().expect("a second");
        let name = word(1).to_owned();
        match word(0) {
            "process" => {
                self.processes
                    .insert(name, process(word(1), word(2) == "shared"));
            }
            "step" => {
                let now = at(second(2));
                step(self.processes.get_mut(&name)?, &mut self.store, now);
            }
            "run" => return Some(self.run(second(1), second(2), &words[3..])),
            "release" => {
                let process = self.processes.get_mut(&name)?;
                let Some(released) = process.release(at(second(2))) else {
                    panic!("{name} does not lead");
                };
                let written = self.store.answer(Command::Replace(released));
                written.expect("nobody wrote between");
            }
            "ask" => {
                let command = self.processes.get_mut(&name)?.poll_command(at(second(2)));
                let told = match &command {
                    Some(Command::Read) => "read",
                    Some(Command::Create(_)) => "create",
                    Some(Command::Replace(_)) => "replace",
                    None => "no request",
                };
                self.requests.extend(command.map(|it| (name, it)));
                return Some(told.to_owned());
            }
            "write" => {
                let answer = self.store.answer(self.requests.remove(&name)?);
                let told = format!("ok: {}", answer.is_ok());
                self.answers.insert(name, answer);
                return Some(told);
            }
            "hear" => {
                let answer = match word(3) {
                    "nothing" => Err(ApiError::no_answer("reset")),
                    "error" => Err(ApiError::default()),
                    _ => self.answers.remove(&name)?,
                };
                self.processes
                    .get_mut(&name)?
                    .handle_answer(at(second(2)), answer);
            }
            "put" => drop(self.store.put(record_of(&words[1..]))),
            "restore" => {
                self.store.version = 1;
                self.store.record = (words.len() > 1).then(|| Record {
                    resource_version: "1".into(),
                    ..record_of(&words[1..])
                });
            }
            "lead" => return Some(self.lead(second(1))),
            "store" => return Some(self.stored()),
            "went-back" => {
                let process = self.processes.get_mut(&name)?;
                let fall = process.poll_went_back();
                return Some(format!("version {fall:?}"));
            }
            other => panic!("{other} is no statement"),
        }
        None
    }

    /// Lets all processes, or those of these names, make their requests each second. Returns who leads, and from when.
    fn run(&mut self, from: u64, to: u64, names: &[&str]) -> String {
        let mut told: Vec<(u64, String)> = Vec::new();
        for second in from..to {
            for (name, process) in &mut self.processes {
                if names.is_empty() || names.contains(&name.as_str()) {
                    step(process, &mut self.store, at(second));
                }
            }
            let leaders: Vec<_> = self
                .processes
                .iter()
                .filter_map(|(name, it)| Some(format!("{name} {}", it.lead(at(second))?.epoch)))
                .collect();
            let leaders = leaders.join(" and ");
            if told.last().is_none_or(|(_, last)| *last != leaders) {
                told.push((second, leaders));
            }
        }
        let told = told
            .iter()
            .map(|(second, leaders)| format!("{second} s: {leaders}"));
        told.collect::<Vec<_>>().join(", ")
    }

    fn lead(&self, second: u64) -> String {
        let told = self.processes.iter().map(|(name, it)| {
            let after = |time: Timestamp| time.duration_since(START).as_secs();
            match it.lead(at(second)) {
                Some(lead) => {
                    let (until, creates) = (after(lead.until), after(lead.creates_until));
                    format!(
                        "{name} leads as {} until {until} s, creates {creates} s",
                        lead.epoch
                    )
                }
                None if it.is_lost(at(second)) => format!("{name} has lost"),
                None => format!("{name} waits"),
            }
        });
        told.collect::<Vec<_>>().join(", ")
    }

    fn stored(&self) -> String {
        let Some(record) = &self.store.record else {
            return "no lease".to_owned();
        };
        let after = |time: Option<Timestamp>| time.map(|it| it.duration_since(START).as_secs());
        format!(
            "{:?} for {} s, acquired {:?}, renewed {:?}, {} transitions, {}",
            record.holder,
            record.duration.as_secs(),
            after(record.acquired),
            after(record.renewed),
            record.transitions,
            String::from_utf8_lossy(&record.object)
        )
    }
}

/// The record `HOLDER TRANSITIONS CONTENT`; `nobody` stands for a lease that was given back.
fn record_of(words: &[&str]) -> Record {
    let holder = words[0].replace("nobody", "");
    let transitions = words.get(1).map(|it| it.parse().expect("a number"));
    Record {
        duration: Duration::from_secs(if holder.is_empty() { 1 } else { 15 }),
        holder,
        transitions: transitions.unwrap_or_default(),
        object: words.get(2).copied().unwrap_or_default().into(),
        ..Record::default()
    }
}

/// `step` makes all requests of a process at a second, and `run` those of all or of the named ones, in the order of their names, each second
/// of a range. `ask`, `write` and `hear` are one request in three parts.
#[test]
fn leads_are_those_of_the_table() {
    play(&expect_file!["tests/lease.txt"], Table::default, Table::act);
}

/// A create takes effect before another leads, whenever it is sent and however long it takes.
#[test]
fn create_takes_effect_before_another_leads() {
    let margin = Duration::from_secs(8);
    for renewed_last in 0..20 {
        let (mut one, mut two, mut store) = (lease("one"), lease("two"), Store::default());
        let (mut latest, mut begun) = (START, None);
        for second in 0..60 {
            // The last renewal that the leader knows of; it creates as long as its lead allows.
            if second <= renewed_last {
                step(&mut one, &mut store, at(second));
            }
            if let Some(lead) = one.lead(at(second)) {
                latest = latest.max(lead.creates_until + margin);
            }
            step(&mut two, &mut store, at(second));
            if two.lead(at(second)).is_some() {
                begun = begun.or_else(|| Some(at(second)));
            }
        }
        let begun = begun.expect("the other leads in the end");
        assert!(latest <= begun, "{renewed_last}: {latest} is after {begun}");
    }
}

#[test]
fn lease_that_leaves_no_time_for_creates_is_refused_with_one_that_does() {
    assert_eq!(config(15, 8).check(), Ok(()));
    let refused = config(10, 8).check().expect_err("it is too short");
    assert_eq!(
        refused,
        "a lease of 10 s leaves no time for creates: one may take effect up to 8 s after its timeout, \
         so the lease must last 11 s or longer"
    );
    for margin in 0..100 {
        let needed = (0..200).find(|duration| config(*duration, margin).check().is_ok());
        let duration = Duration::from_secs(needed.expect("one will do"));
        let left = duration - duration * 2 / 15;
        let margin = Duration::from_secs(margin);
        assert!(left >= margin + CREATE_TIMEOUT_MIN, "{margin:?}");
    }
}
