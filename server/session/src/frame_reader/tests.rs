//! The rules of a session's frames, without a stream.

use super::*;
use crate::session::tests::{begin, pod};
use crate::wire::{OBJECT_BYTES_MAX, raw_tests};
use bytes::Bytes;
use proptest::prelude::*;

/// Notes the arrivals, in full.
#[derive(Default)]
struct Log(Vec<String>);

impl Sink for Log {
    fn is_listed(&self, _: Kind) -> bool {
        true
    }

    fn last_list(&self, _: Kind) -> Option<ResourceVersion> {
        None
    }

    fn event(&mut self, event: Event) {
        self.0.push(format!("{event:?}"));
    }

    fn pod(&mut self, pod: &PodView<'_>) {
        self.event(Event::PodApplied(pod.to_pod()));
    }

    fn outcome(&mut self, outcome: Outcome) {
        self.0.push(format!("{outcome:?}"));
    }

    fn node(&mut self, change: NodeChange) {
        self.0.push(format!("{change:?}"));
    }

    fn takes_nodes(&self) -> bool {
        true
    }

    fn rejected(&mut self, rejected: Rejected) {
        self.0.push(format!("{rejected:?}"));
    }

    fn check(&mut self) -> Result<(), Refusal> {
        Ok(())
    }

    fn costs(&mut self, question: u64, costs: Vec<(Uid, Result<i32, Box<str>>)>) {
        self.0.push(format!("{question}: {costs:?}"));
    }

    fn view_age(&mut self, age: Span) {
        self.0.push(format!("{age:?}"));
    }
}

fn valid() -> v1::Pod {
    pod("web-x", "7")
}

/// Returns an item with a pod: of a list of pods, of events or of outcomes.
fn item_of(pod: v1::Pod, list: u32) -> Vec<u8> {
    match list {
        OBJECTS => pod.encode_to_vec(),
        EVENTS => v1::Event {
            event: Some(v1::event::Event::PodApplied(pod)),
        }
        .encode_to_vec(),
        _ => v1::Outcome {
            batch_id: 7,
            operation: 3,
            outcome: Some(v1::outcome::Outcome::Done(v1::Done {
                object: Some(v1::done::Object::Pod(pod)),
                ..v1::Done::default()
            })),
        }
        .encode_to_vec(),
    }
}

/// The lists of a frame, by their field numbers.
const OBJECTS: u32 = 4;
const EVENTS: u32 = 6;
const OUTCOMES: u32 = 7;
/// An unknown field, because of which prost reads its message.
const UNKNOWN: [u8; 3] = [0xf8, 0x07, 0x01];

fn field(number: u32, inner: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    prost::encoding::encode_key(
        number,
        prost::encoding::WireType::LengthDelimited,
        &mut bytes,
    );
    prost::encoding::encode_varint(inner.len() as u64, &mut bytes);
    bytes.extend_from_slice(inner);
    bytes
}

fn frame_of(list: u32, items: &[Vec<u8>]) -> IncomingFrame {
    let items: Vec<u8> = items.iter().flat_map(|item| field(1, item)).collect();
    Bytes::from(field(list, &items)).into()
}

/// Reads a frame while both lists are open, and returns the log.
fn log_of(frame: &IncomingFrame) -> (Result<(), Refusal>, Vec<String>) {
    let mut log = Log::default();
    let read = reader_with_open_lists().read(frame, &mut log);
    (read, log.0)
}

fn reader_with_open_lists() -> FrameReader {
    let mut reader = FrameReader::default();
    for kind in [v1::Kind::Pod, v1::Kind::ReplicaSet] {
        let begun = reader.read(&begin(kind).into(), &mut Log::default());
        assert_eq!(begun, Ok(()));
    }
    reader
}

proptest! {
    #[test]
    fn items_are_read_where_they_stand_as_prost_reads_them(
        any in proptest::collection::vec(
            (proptest::option::of(raw_tests::pods()), raw_tests::damage()),
            1..5,
        ),
        list in prop::sample::select(&[OBJECTS, EVENTS][..]),
    ) {
        let items = any.into_iter().map(|(pod, damage)| {
            let item = item_of(pod.unwrap_or_else(valid), list);
            raw_tests::damaged(item, damage)
        });
        let items: Vec<_> = items.collect();
        let left_to_prost: Vec<_> = items.iter().map(|it| [&UNKNOWN, &it[..]].concat()).collect();
        let here = log_of(&frame_of(list, &items));
        let elsewhere = log_of(&frame_of(list, &left_to_prost));
        if let (Err(Refusal::Malformed(_)), _) = &elsewhere {
            prop_assert!(matches!(here.0, Err(Refusal::Malformed(_))), "{:?}", here);
        } else {
            prop_assert_eq!(here, elsewhere);
        }
    }
}

fn much() -> String {
    "x".repeat(OBJECT_BYTES_MAX)
}

/// A long text in a field of a later version.
fn later_text() -> Vec<u8> {
    field(15, much().as_bytes())
}

#[test]
fn pod_that_is_too_large_is_not_accepted_wherever_it_stands() {
    let mut pod = valid();
    pod.node_name = much();
    for list in [OBJECTS, EVENTS, OUTCOMES] {
        let (read, log) = log_of(&frame_of(list, &[item_of(pod.clone(), list)]));
        assert_eq!(read, Ok(()));
        let rejected = log.last().expect("something is taken");
        let says = |text| assert!(rejected.contains(text), "{text} in {rejected:.400}");
        says("web-x");
        says("bytes; at most 524288 are allowed");
        let outcomes = usize::from(list == OUTCOMES);
        assert_eq!(log.len(), 1 + outcomes, "{list}");
        assert!(outcomes == 0 || log[0].contains("after: None"), "{log:?}");
    }
}

#[test]
fn replica_set_that_is_too_large_is_quarantined_if_it_can_be_named() {
    let mut set = v1::ReplicaSet {
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        uid: "u2".to_owned(),
        selector: Some(v1::LabelSelector {
            match_expressions: vec![v1::LabelSelectorRequirement::default(); 300_000],
            ..v1::LabelSelector::default()
        }),
        ..v1::ReplicaSet::default()
    };
    let events = |set: &v1::ReplicaSet| {
        let event = v1::Event {
            event: Some(v1::event::Event::ReplicaSetApplied(set.clone())),
        };
        log_of(&frame_of(EVENTS, &[event.encode_to_vec()]))
    };
    let objects = |set: &v1::ReplicaSet| {
        let list = field(4, &field(2, &set.encode_to_vec()));
        log_of(&Bytes::from(list).into())
    };
    for (read, log) in [events(&set), objects(&set)] {
        assert_eq!(read, Ok(()));
        assert!(log[0].contains("Quarantine"), "{:.400}", log[0]);
    }
    set.uid.clear();
    for (read, log) in [events(&set), objects(&set)] {
        assert_eq!(read, Ok(()));
        assert!(log[0].starts_with("Rejected"), "{:.400}", log[0]);
    }
}

#[test]
fn long_texts_beside_an_object_do_not_make_it_too_large() {
    let event = [item_of(valid(), EVENTS), later_text()].concat();
    let (read, log) = log_of(&frame_of(EVENTS, &[event]));
    assert_eq!((read, log.len()), (Ok(()), 1));
    assert!(log[0].starts_with("PodApplied"), "{:.400}", log[0]);
}

#[test]
fn large_item_with_a_field_of_no_contract_is_malformed() {
    for list in [EVENTS, OUTCOMES] {
        let item = [&UNKNOWN[..], &item_of(valid(), list), &later_text()].concat();
        let (read, log) = log_of(&frame_of(list, &[item]));
        assert!(matches!(read, Err(Refusal::Malformed(_))), "{read:?}");
        assert!(log.is_empty());
    }
}
