//! Two processes and one lease, with a clock that is stepped by hand.

use super::*;

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

fn lease(identity: &str) -> Lease {
    Lease::new(LeaseConfig {
        identity: identity.into(),
        namespace: "kube-system".into(),
        name: "decree-agent".into(),
        duration: Duration::from_secs(15),
        margin: Duration::from_secs(8),
        shared: false,
    })
}

fn at(seconds: u64) -> Timestamp {
    after(START, Duration::from_secs(seconds))
}

/// Lets a process make all its requests at a time.
fn step(lease: &mut Lease, store: &mut Store, now: Timestamp) {
    while let Some(command) = lease.poll_command(now) {
        let answer = store.answer(command);
        lease.handle_answer(now, answer);
    }
}

fn epoch(lease: &Lease, now: Timestamp) -> Option<i64> {
    lease.lead(now).map(|lead| lead.epoch)
}

#[test]
fn first_to_ask_leads_at_once() {
    let (mut one, mut two, mut store) = (lease("one"), lease("two"), Store::default());
    step(&mut one, &mut store, START);
    step(&mut two, &mut store, START);
    assert_eq!((epoch(&one, START), epoch(&two, START)), (Some(0), None));
    let record = store.record.expect("it was created");
    assert_eq!(record.holder, "one");
    assert_eq!(record.duration, Duration::from_secs(15));
    assert_eq!(
        (record.acquired, record.renewed),
        (Some(START), Some(START))
    );
}

#[test]
fn renewed_lease_stays_and_keeps_its_number() {
    let (mut one, mut two, mut store) = (lease("one"), lease("two"), Store::default());
    for second in 0..100 {
        step(&mut one, &mut store, at(second));
        step(&mut two, &mut store, at(second));
        assert_eq!(epoch(&one, at(second)), Some(0), "at {second} s");
        assert_eq!(epoch(&two, at(second)), None, "at {second} s");
    }
}

#[test]
fn replaced_lease_keeps_what_is_not_known_of_it() {
    let (mut one, mut two, mut store) = (lease("one"), lease("two"), Store::default());
    let described = Record {
        object: b"labels".to_vec(),
        ..Record::default()
    };
    store.put(described);
    let kept = |store: &Store| store.record.clone().map(|it| (it.holder, it.object));
    let held_by = |holder: &str| Some((holder.to_owned(), b"labels".to_vec()));
    step(&mut one, &mut store, START);
    assert_eq!(kept(&store), held_by("one"));
    step(&mut one, &mut store, at(2));
    assert_eq!(kept(&store), held_by("one"));
    let released = one.release(at(3)).expect("it leads");
    store.put(released);
    assert_eq!(kept(&store), held_by(""));
    step(&mut two, &mut store, at(4));
    assert_eq!(kept(&store), held_by("two"));
}

#[test]
fn renewed_lease_keeps_the_time_when_it_was_acquired() {
    let (mut one, mut two, mut store) = (lease("one"), lease("two"), Store::default());
    let times = |store: &Store| store.record.clone().map(|it| (it.acquired, it.renewed));
    step(&mut one, &mut store, START);
    step(&mut one, &mut store, at(2));
    assert_eq!(times(&store), Some((Some(START), Some(at(2)))));
    step(&mut two, &mut store, at(3));
    step(&mut two, &mut store, at(19));
    assert_eq!(times(&store), Some((Some(at(19)), Some(at(19)))));
}

#[test]
fn lead_ends_before_another_begins() {
    let (mut one, mut two, mut store) = (lease("one"), lease("two"), Store::default());
    step(&mut one, &mut store, START);
    let mut lost = None;
    let mut begun = None;
    for second in 0..30 {
        step(&mut two, &mut store, at(second));
        if one.is_lost(at(second)) {
            lost.get_or_insert(second);
        }
        if let Some(epoch) = epoch(&two, at(second)) {
            begun.get_or_insert((second, epoch));
        }
    }
    assert_eq!((lost, begun), (Some(10), Some((16, 1))));
    step(&mut one, &mut store, at(30));
    assert!(
        one.is_lost(at(30)),
        "a lead that is over does not come back"
    );
}

#[test]
fn released_lease_is_taken_at_the_next_look() {
    let (mut one, mut two, mut store) = (lease("one"), lease("two"), Store::default());
    step(&mut one, &mut store, START);
    step(&mut two, &mut store, START);
    let released = one.release(at(1)).expect("it leads");
    store
        .answer(Command::Replace(released))
        .expect("nobody wrote between");
    step(&mut two, &mut store, at(2));
    assert_eq!((epoch(&one, at(2)), epoch(&two, at(2))), (None, Some(1)));
}

#[test]
fn write_without_an_answer_is_looked_up() {
    let (mut one, mut store) = (lease("one"), Store::default());
    step(&mut one, &mut store, START);
    let command = one.poll_command(at(2)).expect("a renewal is due");
    store.answer(command).expect("it is its own");
    one.handle_answer(at(3), Err(ApiError::no_answer("reset")));
    step(&mut one, &mut store, at(6));
    assert_eq!(epoch(&one, at(15)), Some(0));
}

#[test]
fn renewal_counts_from_when_it_was_asked() {
    let (mut one, mut store) = (lease("one"), Store::default());
    step(&mut one, &mut store, START);
    let command = one.poll_command(at(2)).expect("a renewal is due");
    let answer = store.answer(command);
    one.handle_answer(at(9), answer);
    assert_eq!(one.lead(at(9)).map(|lead| lead.until), Some(at(12)));
}

#[test]
fn lease_in_other_hands_ends_the_lead_at_once() {
    let (mut one, mut store) = (lease("one"), Store::default());
    step(&mut one, &mut store, START);
    let record = store.record.clone().expect("it was created");
    let holder = "two".to_owned();
    store.put(Record { holder, ..record });
    step(&mut one, &mut store, at(2));
    step(&mut one, &mut store, at(4));
    assert!(one.is_lost(at(4)));
}

#[test]
fn deleted_lease_is_made_again_with_its_number() {
    let (mut one, mut two, mut store) = (lease("one"), lease("two"), Store::default());
    step(&mut one, &mut store, START);
    let released = one.release(START).expect("it leads");
    store.put(released);
    step(&mut two, &mut store, at(1));
    store.record = None;
    for second in 2..8 {
        step(&mut two, &mut store, at(second));
    }
    assert_eq!(epoch(&two, at(8)), Some(1));
    let record = store.record.expect("it was made again");
    assert_eq!(record.transitions, 1);
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
            if epoch(&two, at(second)).is_some() {
                begun = begun.or_else(|| Some(at(second)));
            }
        }
        let begun = begun.expect("the other leads in the end");
        assert!(latest <= begun, "{renewed_last}: {latest} is after {begun}");
    }
}

#[test]
fn lease_of_another_that_is_deleted_is_waited_for() {
    let (mut one, mut two, mut store) = (lease("one"), lease("two"), Store::default());
    step(&mut one, &mut store, START);
    step(&mut two, &mut store, START);
    store.record = None;
    let begun = (1..60).find(|second| {
        step(&mut two, &mut store, at(*second));
        epoch(&two, at(*second)).is_some()
    });
    assert_eq!(begun, Some(16));
    assert_eq!(epoch(&two, at(16)), Some(1), "numbers only grow");
}

#[test]
fn renewal_without_an_answer_is_followed_by_another_at_once() {
    let (mut one, mut store) = (lease("one"), Store::default());
    step(&mut one, &mut store, START);
    let renewal = one.poll_command(at(2));
    assert!(matches!(renewal, Some(Command::Replace(_))), "{renewal:?}");
    one.handle_answer(at(7), Err(ApiError::default()));
    step(&mut one, &mut store, at(7));
    assert_eq!(epoch(&one, at(16)), Some(0), "it is renewed at 7 s");

    let refused = one.poll_command(at(9));
    assert!(refused.is_some());
    one.handle_answer(at(9), Err(ApiError::default()));
    assert_eq!(one.poll_command(at(10)), None, "it is tried every 2 s");
}

#[test]
fn restarted_process_does_not_take_the_lease_of_its_predecessor_for_its_own() {
    let (mut one, mut store) = (lease("agent-1-a"), Store::default());
    step(&mut one, &mut store, START);
    let mut restarted = lease("agent-1-b");
    for second in 0..15 {
        step(&mut restarted, &mut store, at(second));
        assert_eq!(epoch(&restarted, at(second)), None, "at {second} s");
    }
    step(&mut restarted, &mut store, at(16));
    assert_eq!(epoch(&restarted, at(16)), Some(1));
}

#[test]
fn lease_that_leaves_no_time_for_creates_is_refused_with_one_that_does() {
    let config = |duration: u64, margin: u64| LeaseConfig {
        shared: false,
        identity: "one".into(),
        namespace: "kube-system".into(),
        name: "decree-agent".into(),
        duration: Duration::from_secs(duration),
        margin: Duration::from_secs(margin),
    };
    assert_eq!(config(15, 8).check(), Ok(()));
    let refused = config(10, 8).check().expect_err("it is too short");
    assert_eq!(
        refused.to_string(),
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

/// Two processes share a lease, and one stops renewing. A write of the other must not extend the lead beyond what the first one knows.
#[test]
fn lead_by_what_another_renewed_lasts_from_when_it_was_last_looked_at() {
    let shared = || {
        let lease = lease("both");
        Lease::new(LeaseConfig {
            shared: true,
            ..lease.config
        })
    };
    let (mut store, mut one, mut other) = (Store::default(), shared(), shared());
    step(&mut one, &mut store, at(0));
    step(&mut other, &mut store, at(0));
    let until = |lease: &Lease, now| lease.lead(now).map(|lead| lead.until);
    // The next question is asked in time, and its answer comes late: the write that it shows may be as old as the last answer.
    let question = one.poll_command(at(2)).expect("it asks again");
    step(&mut other, &mut store, at(3));
    let answer = store.answer(question);
    one.handle_answer(at(7), answer);
    assert_eq!(until(&one, at(7)), Some(at(10)), "from 0 s on");
    assert_eq!(until(&other, at(7)), Some(at(13)));
    assert!(one.is_lost(at(10)));
}

#[test]
fn conflict_of_a_shared_lease_is_looked_at_at_once() {
    let config = LeaseConfig {
        shared: true,
        ..lease("both").config
    };
    let (mut store, mut one) = (Store::default(), Lease::new(config.clone()));
    let mut other = Lease::new(config);
    step(&mut one, &mut store, at(0));
    // Both read, and both write.
    let now = at(2);
    let read = one.poll_command(now).expect("it reads");
    let answer = store.answer(read);
    one.handle_answer(now, answer);
    let write = one.poll_command(now).expect("it writes");
    step(&mut other, &mut store, now);
    let refused = store.answer(write);
    assert!(refused.is_err(), "the other was faster");
    one.handle_answer(now, refused);
    step(&mut one, &mut store, now);
    assert!(one.lead(now).is_some_and(|lead| lead.until == at(12)));
}

/// A lease that is held, its store as of a version before, and a process that stands by.
fn restored_to(record: Option<Record>) -> (Lease, Store, Lease) {
    let (mut leader, mut standby) = (lease("a"), lease("b"));
    let mut store = Store::default();
    for second in 0..20 {
        step(&mut leader, &mut store, at(second));
        step(&mut standby, &mut store, at(second));
    }
    assert_eq!(epoch(&leader, at(20)), Some(0));
    store.record = record.map(|record| Record {
        resource_version: "1".into(),
        ..record
    });
    store.version = 1;
    (leader, store, standby)
}

fn record_of(holder: &str, transitions: i64) -> Record {
    Record {
        holder: holder.into(),
        duration: Duration::from_secs(if holder.is_empty() { 1 } else { 15 }),
        transitions,
        ..Record::default()
    }
}

/// Lets both run for a minute. Returns who led at each second.
fn go_on(leader: &mut Lease, store: &mut Store, standby: &mut Lease) -> Vec<(bool, bool)> {
    let mut led = Vec::new();
    for second in 20..80 {
        // The standby process is always faster.
        step(standby, store, at(second));
        step(leader, store, at(second));
        led.push((
            leader.lead(at(second)).is_some(),
            standby.lead(at(second)).is_some(),
        ));
    }
    led
}

#[test]
fn lease_that_was_given_back_in_the_backup_makes_no_two_leaders() {
    for record in [
        Some(record_of("", 7)),
        Some(record_of("x", 7)),
        Some(record_of("a", 0)),
        None,
    ] {
        let (mut leader, mut store, mut standby) = restored_to(record.clone());
        let led = go_on(&mut leader, &mut store, &mut standby);
        let both = led.iter().filter(|led| **led == (true, true)).count();
        assert_eq!(both, 0, "{record:?}: {led:?}");
        assert!(
            led.last() != Some(&(false, false)),
            "somebody leads at last"
        );
    }
}

#[test]
fn number_of_a_lead_does_not_fall_with_its_lease() {
    let (mut leader, mut store, mut standby) = (lease("a"), Store::default(), lease("b"));
    store.put(record_of("", 6));
    for second in 0..20 {
        step(&mut leader, &mut store, at(second));
        step(&mut standby, &mut store, at(second));
    }
    assert_eq!(epoch(&leader, at(20)), Some(7));
    store.record = Some(Record {
        resource_version: "1".into(),
        ..record_of("x", 2)
    });
    go_on(&mut leader, &mut store, &mut standby);
    assert_eq!(epoch(&standby, at(79)), Some(8));
}

#[test]
fn version_that_goes_back_is_told_once() {
    let (mut leader, mut store, mut standby) = restored_to(Some(record_of("x", 7)));
    assert_eq!(leader.poll_went_back(), None);
    go_on(&mut leader, &mut store, &mut standby);
    for lease in [&mut leader, &mut standby] {
        let went_back = lease.poll_went_back().expect("it went back");
        assert!(went_back.to < went_back.from, "{went_back:?}");
        assert_eq!(lease.poll_went_back(), None);
    }
}

#[test]
fn older_state_of_a_shared_lease_is_no_renewal() {
    let shared = |identity| {
        let lease = lease(identity);
        Lease::new(LeaseConfig {
            shared: true,
            ..lease.config
        })
    };
    let (mut lease, mut store) = (shared("a"), Store::default());
    step(&mut lease, &mut store, at(0));
    store.put(record_of("a", 0));
    store.put(record_of("a", 0));
    step(&mut lease, &mut store, at(4));
    let until = lease.lead(at(4)).expect("it leads").until;
    store.record = Some(Record {
        resource_version: "1".into(),
        ..record_of("a", 0)
    });
    let command = lease.poll_command(at(6)).expect("it is due");
    assert_eq!(command, Command::Read);
    let answer = store.answer(command);
    lease.handle_answer(at(6), answer);
    let after = lease.lead(at(6)).expect("it leads").until;
    assert_eq!(after, until, "nobody has renewed it");
}
