//! Which session ends, and which ones wait for it.

use std::{
    pin::{Pin, pin},
    task::{Context, Waker},
};

use super::*;

fn is_ready(room: Pin<&mut impl Future<Output = ()>>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    room.poll(&mut context).is_ready()
}

fn share(
    memory: &Arc<Memory<&'static str>>,
    owner: &str,
    cluster: &str,
) -> (MemoryShare<&'static str>, EndSignal<&'static str>) {
    let end = EndSignal::default();
    (memory.share(owner, cluster, end.clone()), end)
}

#[test]
fn session_that_grows_beyond_the_bound_is_refused_where_it_is_the_largest() {
    let memory = Arc::new(Memory::new(100, "too much"));
    let (mut first, ended) = share(&memory, "a", "c");
    let (mut second, _) = share(&memory, "b", "c");
    assert!(first.hold(60).is_ok());
    assert!(second.hold(40).is_ok());
    assert!(second.hold(40).is_ok(), "who does not grow is left alone");
    assert!(first.hold(61).is_err());
    assert!(!ended.is_sent(), "it is told by the refusal");
    drop(first);
    assert!(second.hold(100).is_ok());
    assert!(second.hold(101).is_err());
}

#[test]
fn session_that_grows_beyond_the_bound_waits_for_the_largest_to_give_back() {
    let memory = Arc::new(Memory::new(100, "too much"));
    let [(mut large, ended), (mut small, spared), (mut other, _)] =
        ["a", "b", "c"].map(|owner| share(&memory, owner, "c"));
    assert!(large.hold(70).is_ok());
    assert!(small.hold(30).is_ok());
    assert!(small.hold(31).is_ok());
    assert!(ended.is_sent() && small.is_short());
    assert!(other.hold(80).is_ok(), "one ends at a time");
    assert!(other.is_short());
    {
        let mut room = pin!(small.room());
        assert!(!is_ready(room.as_mut()));
        drop(large);
        assert!(is_ready(room.as_mut()));
    }
    assert!(!small.is_short() && !spared.is_sent());
    assert!(is_ready(pin!(other.room())), "it may ask again");
    assert!(other.hold(81).is_err(), "and now it is the largest");
}

#[test]
fn owner_of_many_small_sessions_is_the_one_that_gives_way() {
    let memory = Arc::new(Memory::new(100, "too much"));
    let (mut single, spared) = share(&memory, "single", "c");
    assert!(single.hold(30).is_ok());
    let mut many =
        ["1", "2", "3", "4", "5", "6", "7"].map(|cluster| share(&memory, "many", cluster));
    for (share, _) in &mut many {
        assert!(share.hold(10).is_ok());
    }
    assert!(single.hold(31).is_ok());
    assert!(!spared.is_sent());
    assert!(many[0].1.is_sent(), "the oldest of the largest");
}

#[test]
fn session_that_comes_back_counts_as_large_as_it_was() {
    let memory = Arc::new(Memory::new(100, "too much"));
    let (mut largest, ended) = share(&memory, "a", "c");
    let (mut second, spared) = share(&memory, "b", "c");
    assert!(largest.hold(55).is_ok());
    assert!(second.hold(45).is_ok());
    assert!(second.hold(46).is_ok());
    assert!(ended.is_sent());
    drop(largest);
    for _ in 0..3 {
        let (mut again, _) = share(&memory, "a", "c");
        assert!(again.hold(54).is_ok());
        assert!(again.hold(55).is_err(), "no turns with the next largest");
        assert!(!spared.is_sent());
    }
}

#[test]
fn sessions_wait_no_longer_than_the_one_that_ends_even_if_it_holds_nothing() {
    let memory = Arc::new(Memory::new(100, "too much"));
    let [(mut large, _), (mut small, _), (mut other, _)] =
        ["a", "b", "c"].map(|owner| share(&memory, owner, "c"));
    assert!(large.hold(55).is_ok());
    assert!(small.hold(35).is_ok());
    assert!(other.hold(10).is_ok());
    assert!(small.hold(36).is_ok());
    drop(large);
    let (again, ended) = share(&memory, "a", "c");
    assert!(other.hold(50).is_ok());
    assert!(small.hold(51).is_ok());
    assert!(ended.is_sent(), "it counts as large as it was");
    let mut room = pin!(small.room());
    assert!(!is_ready(room.as_mut()));
    drop(again);
    assert!(is_ready(room.as_mut()));
}

#[test]
fn former_size_counts_until_the_session_has_its_lists_or_was_ended_for_it() {
    let memory = Arc::new(Memory::new(100, "too much"));
    let [(mut large, ended), (mut other, spared), (mut third, _)] =
        ["a", "b", "c"].map(|owner| share(&memory, owner, "c"));
    assert!(large.hold(55).is_ok() && other.hold(45).is_ok() && other.hold(46).is_ok());
    assert!(ended.is_sent());
    drop(large);
    // It comes back with 14 bytes, and is ended for the 55 of before, once.
    let (mut small, ended) = share(&memory, "a", "c");
    assert!(small.hold(14).is_ok() && third.hold(41).is_ok());
    assert!(ended.is_sent() && !spared.is_sent());
    drop(small);
    let (mut small, ended) = share(&memory, "a", "c");
    assert!(small.hold(14).is_ok() && third.hold(42).is_ok());
    assert!(!ended.is_sent() && spared.is_sent());
}

#[test]
fn session_with_its_lists_is_as_large_as_it_is() {
    let memory = Arc::new(Memory::new(100, "too much"));
    let (mut large, _) = share(&memory, "a", "c");
    let (mut other, _) = share(&memory, "b", "c");
    assert!(large.hold(55).is_ok() && other.hold(45).is_ok() && other.hold(46).is_ok());
    drop(large);
    for _ in 0..2 {
        let (mut small, ended) = share(&memory, "a", "c");
        assert!(small.hold(14).is_ok() && other.hold(46).is_ok());
        small.settle();
        let (mut third, _) = share(&memory, "c", "c");
        assert!(third.hold(40).is_ok() && third.hold(41).is_ok());
        assert!(!ended.is_sent(), "another holds more");
        drop((small, third));
    }
}
