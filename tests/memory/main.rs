//! Compares the memory that the core and a session count with the memory that the allocator counts: for the object shapes with the highest
//! cost per byte, and for every kind of input. Also counts the allocations of an event.

mod session;

use std::{
    alloc::System,
    sync::{Mutex, PoisonError},
};

use decree_api::v1;
use decree_core::{Config, Controller, Event, Kind, ResourceVersion, Timestamp, Uid};
use server_session::wire::decode;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tests::{
    load::{Ages, Load},
    objects::{pod, replica_set},
};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Held by each test, because the allocator counts for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

const NOW: Timestamp = Timestamp::from_seconds(1_700_000_000);

/// A shape of objects, and a function that makes the event of the object with a number.
type Row = (&'static str, u32, fn(u32) -> Event);

const ROWS: [Row; 7] = [
    ("pods of a ReplicaSet", 20_000, |n| {
        applied(pod(&format!("web-{n}"), "web").build())
    }),
    ("orphans with little", 20_000, |n| {
        applied(v1::Pod {
            namespace: "a".to_owned(),
            name: format!("p{n}"),
            uid: "u".to_owned(),
            ..v1::Pod::default()
        })
    }),
    ("orphans with labels of their own", 5_000, |n| {
        let label = |of| (format!("label-{of}"), format!("value-{n}"));
        applied(v1::Pod {
            controller: None,
            labels: (0..5).map(label).collect(),
            ..pod(&format!("p{n}"), "web").build()
        })
    }),
    (
        "pods with nodes, owners and reasons of their own",
        5_000,
        |n| {
            let mut pod = pod(&format!("p{n}"), &format!("web-{n}")).build();
            pod.node_name = format!("{n}-{}", "n".repeat(240));
            pod.waiting_reason = format!("{n}-{}", "w".repeat(120));
            applied(pod)
        },
    ),
    ("ReplicaSets with little", 3_000, |n| {
        set(v1::ReplicaSet {
            namespace: "a".to_owned(),
            name: format!("r{n}"),
            uid: "u".to_owned(),
            ..v1::ReplicaSet::default()
        })
    }),
    ("ReplicaSets with selectors of a thousand values", 50, |n| {
        let mut set = replica_set(&format!("web-{n}")).build();
        let selector = set.selector.get_or_insert_default();
        selector
            .match_expressions
            .push(v1::LabelSelectorRequirement {
                key: "a".to_owned(),
                operator: "In".to_owned(),
                values: (0..1_000).map(|value| format!("v{value}")).collect(),
            });
        self::set(set)
    }),
    ("deletions of what was never there", 20_000, |n| {
        Event::PodDeleted {
            namespace: "default".into(),
            name: format!("p{n}").as_str().into(),
            uid: Uid(format!("u{n}").into()),
            version: Some(ResourceVersion(u64::from(n) + 1)),
        }
    }),
];

fn applied(pod: v1::Pod) -> Event {
    Event::PodApplied(decode::pod(&pod).expect("a sound pod"))
}

fn set(set: v1::ReplicaSet) -> Event {
    let set = decode::replica_set(&set).expect("a ReplicaSet");
    Event::ReplicaSetApplied(Box::new(set))
}

/// Returns the memory of a controller with `count` objects: as the core counts it, and as the allocator counts it.
fn held(count: u32, event: fn(u32) -> Event) -> (usize, usize) {
    let (controller, real) = measured(|| {
        let mut controller = Controller::new(Config::default());
        for kind in [Kind::Pod, Kind::ReplicaSet] {
            controller.handle_event(NOW, Event::SnapshotBegin(kind));
        }
        for number in 0..count {
            controller.handle_event(NOW, event(number));
        }
        while controller.poll_report().is_some() {}
        controller
    });
    (controller.inspect().sizes().bytes, real)
}

#[test]
fn bytes_that_are_counted_are_those_that_are_held_or_somewhat_more() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (shape, count, event) in ROWS {
        let (counted, real) = held(count, event);
        let per_object = (counted / count as usize, real / count as usize);
        assert!(counted >= real, "{shape}: {per_object:?} bytes an object");
        assert!(
            counted <= 4 * real,
            "{shape}: {per_object:?} bytes an object"
        );
    }
}

/// Returns the value that `make` returns, and the memory that the value holds, as the allocator counts it.
fn measured<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let region = Region::new(ALLOCATOR);
    let made = make();
    let stats = region.change();
    (
        made,
        stats
            .bytes_allocated
            .saturating_sub(stats.bytes_deallocated),
    )
}

#[test]
fn steady_event_takes_one_allocation() {
    const EVENTS: usize = 1_000;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut load = Load::at_rest(10, 100, Ages::Spread);
    let events: Vec<_> = (0..EVENTS).map(|_| load.steady_event()).collect();
    let region = Region::new(ALLOCATOR);
    load.stay_steady(events);
    let stats = region.change();
    let per_event = (stats.allocations + stats.reallocations) as f64 / EVENTS as f64;
    assert!(per_event < 1.1, "{per_event} allocations an event");
}
