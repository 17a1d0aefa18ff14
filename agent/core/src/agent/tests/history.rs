//! A cluster whose versions go back.

use super::*;
use crate::{history::WentBack, note::Reason};

/// The versions that went back, as reported; checks the events for people.
fn told(rig: &mut Rig) -> Vec<(u64, u64)> {
    let mut told = Vec::new();
    let mut noted = 0;
    while let Some(report) = rig.agent.poll_report() {
        if let Report::WentBack(WentBack { from, to, .. }) = report {
            told.push((from, to));
        } else if let Report::Noted(note) = report {
            noted += usize::from(note.reason == Reason::VersionsWentBack);
        }
    }
    assert_eq!(noted, told.len());
    told
}

/// Opens the next session, in which these pods are listed.
fn begin_anew(rig: &mut Rig, version: &str, pods: &[v1::Pod]) {
    rig.links.clear();
    while rig.links.is_empty() {
        rig.wait();
    }
    rig.connect();
    rig.answer_lists(version, pods);
}

#[test]
fn create_whose_version_went_back_has_no_outcome_and_ends_the_session() {
    let mut rig = Rig::open(&[]);
    rig.applied(pod("other", 50));
    rig.frames();
    create_pod(&mut rig);
    rig.answer(replied(pod("web-0", 12)));
    assert_eq!(told(&mut rig), [(50, 12)]);
    assert_eq!(rig.links, [LinkCommand::Abort]);
    assert_eq!(rig.outcomes(), [""; 0]);
    begin_anew(&mut rig, "13", &[pod("web-0", 12)]);
    assert_eq!(told(&mut rig), []);
    assert_eq!(rig.agent.session_id(), Some(SESSION));
    assert_eq!(rig.watches[&Kind::Pod].1, "13", "another history");
}

#[test]
fn answers_that_come_after_the_versions_went_back_tell_nothing_more() {
    let mut rig = Rig::open(&[]);
    rig.applied(pod("other", 50));
    rig.receive_batch(batch(1, create(2)));
    rig.answer(replied(pod("web-0", 51)));
    assert_eq!(rig.calls.len(), 1, "the second create is under way");
    answer_question(&mut rig, Kind::Pod, "7");
    assert_eq!(told(&mut rig), [(51, 7)]);
    rig.answer(replied(pod("web-1", 52)));
    assert_eq!(told(&mut rig), []);
    assert_eq!(rig.outcomes(), [""; 0]);
    begin_anew(&mut rig, "9", &[]);
    assert_eq!(rig.watches[&Kind::Pod].1, "9", "no write forbids the list");
}

/// Advances time until the newest version of a kind is requested, and answers.
fn answer_question(rig: &mut Rig, kind: Kind, version: &str) {
    rig.questions.clear();
    while !rig.questions.contains_key(&kind) {
        // The server is not silent meanwhile.
        rig.receive(ServerFrame::Heartbeat(v1::Heartbeat::default()));
        rig.wait();
        rig.frames();
    }
    let (id, answer) = (rig.questions[&kind], Ok(version.to_owned()));
    rig.agent.handle_version(rig.now, kind, id, &answer);
    rig.effects();
}

#[test]
fn quiet_cluster_is_asked_and_one_that_grows_is_well() {
    for kind in Kind::ALL {
        let mut rig = Rig::open(&[]);
        answer_question(&mut rig, kind, "10");
        assert!(since(rig.now, START) <= Duration::from_secs(30));
        assert_eq!(told(&mut rig), []);
        answer_question(&mut rig, kind, "9");
        assert_eq!(told(&mut rig), [(10, 9)]);
        assert_eq!(rig.links, [LinkCommand::Abort]);
    }
}

#[test]
fn list_after_410_that_is_older_than_what_was_seen_ends_the_session() {
    let mut rig = Rig::open(&[]);
    rig.applied(pod("other", 50));
    let id = rig.watches[&Kind::Pod].0;
    let gone = refusal(410, "Expired");
    rig.agent
        .handle_watch_closed(rig.now, Kind::Pod, id, Some(&gone));
    while !rig.lists.contains_key(&Kind::Pod) {
        rig.wait();
    }
    rig.answer_lists("49", &[]);
    assert_eq!(told(&mut rig), [(50, 49)]);
    assert_eq!(rig.links, [LinkCommand::Abort]);
}

#[test]
fn list_of_the_next_session_that_is_older_than_what_was_seen_begins_another() {
    let mut rig = Rig::open(&[]);
    rig.applied(pod("other", 50));
    rig.lose();
    begin_anew(&mut rig, "20", &[]);
    assert_eq!(told(&mut rig), [(50, 20)]);
    begin_anew(&mut rig, "20", &[]);
    assert_eq!(told(&mut rig), []);
    assert_eq!(rig.agent.session_id(), Some(SESSION));
}
