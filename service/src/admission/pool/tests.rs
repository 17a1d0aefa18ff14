//! Which newcomer gets a slot, which holder gives way, and who waits.

use std::{pin::pin, task::Waker};

use super::*;

type TestPool = Arc<Pool<&'static str, &'static str>>;
type Held = Slot<&'static str, &'static str>;

const FULL: &str = "full";

/// An owner by a name, or by the last part of an address.
fn owner(name: &'static str) -> Owner<&'static str> {
    match name.parse::<u8>() {
        Ok(last) => Owner::Unproven(IpAddr::from([10, 0, 0, last]).into()),
        Err(_) => Owner::Proven(name),
    }
}

fn take(pool: &TestPool, name: &'static str, weight: usize) -> Result<Held, &'static str> {
    pool.take(owner(name), weight, EndSignal::default())
}

/// Takes slots of weight 1 in this order, and expects success.
fn take_all(pool: &TestPool, names: &[&'static str]) -> Vec<Held> {
    let taken = names.iter().map(|name| take(pool, name, 1));
    taken.collect::<Result<_, _>>().expect("others give way")
}

fn ended(held: &[Held]) -> Vec<usize> {
    let ended = held.iter().enumerate().filter(|(_, it)| it.end.is_sent());
    ended.map(|(index, _)| index).collect()
}

fn is_ready(slot: &mut Held) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    pin!(slot.room()).as_mut().poll(&mut context).is_ready()
}

#[test]
fn owner_that_would_hold_most_gives_way() {
    use Yields::{Newest, Oldest};
    for (yields, held, newcomer, gives_way) in [
        (Oldest, ["a", "a", "a", "a"], "b", Some(0)),
        (Oldest, ["a", "a", "a", "a"], "a", Some(0)),
        (Oldest, ["a", "b", "b", "b"], "c", Some(1)),
        (Oldest, ["a", "b", "b", "c"], "c", Some(3)),
        (Oldest, ["a", "b", "c", "d"], "e", Some(0)),
        (Oldest, ["a", "b", "c", "d"], "d", Some(3)),
        (Oldest, ["a", "a", "a", "1"], "b", Some(3)),
        (Oldest, ["a", "1", "2", "2"], "3", Some(2)),
        (Oldest, ["a", "a", "b", "b"], "1", Some(0)),
        (Newest, ["a", "a", "a", "a"], "b", Some(3)),
        (Newest, ["a", "a", "a", "a"], "a", None),
        (Newest, ["a", "a", "b", "a"], "b", Some(3)),
        (Newest, ["a", "a", "b", "b"], "b", None),
        (Newest, ["a", "a", "b", "b"], "a", None),
        (Newest, ["a", "b", "c", "d"], "e", None),
        (Newest, ["a", "a", "a", "1"], "a", Some(3)),
        (Newest, ["a", "1", "1", "2"], "3", Some(2)),
        (Newest, ["a", "a", "a", "1"], "2", None),
    ] {
        let pool = Pool::new(4, yields, FULL);
        let held = take_all(&pool, &held);
        let newcomer = take(&pool, newcomer, 1);
        assert_eq!(
            ended(&held),
            Vec::from_iter(gives_way),
            "{yields:?} {held:?}"
        );
        assert_eq!(newcomer.is_err(), gives_way.is_none());
    }
}

#[test]
fn refused_newcomer_evicts_nobody() {
    for yields in [Yields::Oldest, Yields::Newest] {
        let pool = Pool::new(4, yields, FULL);
        let held = take_all(&pool, &["a", "a", "b", "c"]);
        let _settled: Vec<_> = held[1..].iter().map(|it| it.handle().settle()).collect();
        let newcomer = take(&pool, "d", 3);
        assert!(newcomer.is_err() && ended(&held).is_empty(), "{yields:?}");
        assert_eq!(take(&pool, "d", 1).is_ok(), yields == Yields::Oldest);
    }
}

#[test]
fn settled_slot_does_not_give_way_and_does_not_count_for_its_owner() {
    let pool = Pool::new(2, Yields::Oldest, FULL);
    let held = take_all(&pool, &["a", "a"]);
    let settled: Vec<_> = held.iter().map(|it| it.handle().settle()).collect();
    assert_eq!(take(&pool, "b", 1).err(), Some(FULL));
    drop(settled);
    let _newcomer = take(&pool, "b", 1).expect("it is settled no more");
    assert_eq!(ended(&held), [0]);
}

#[test]
fn proven_identity_counts_instead_of_the_network() {
    let pool = Pool::new(3, Yields::Oldest, FULL);
    let held = take_all(&pool, &["1", "1", "2"]);
    for slot in &held[..2] {
        slot.handle().prove(&"a");
    }
    assert_eq!(held[0].handle().identity(), Some("a"));
    assert_eq!(held[2].handle().identity(), None);
    let _newcomer = take(&pool, "b", 1).expect("another gives way");
    assert_eq!(ended(&held), [2]);
}

#[test]
fn successor_takes_the_room_of_its_predecessor() {
    let pool = Pool::new(2, Yields::Newest, FULL);
    let held = take_all(&pool, &["a", "b"]);
    held[0].handle().leave();
    let successor = take(&pool, "a", 1).expect("its predecessor leaves");
    assert!(ended(&held).is_empty(), "its end has another reason");
    assert!(take(&pool, "c", 1).is_err());
    drop(held);
    let _third = take(&pool, "c", 1).expect("there is room");
    assert!(!successor.end.is_sent());
}

#[test]
fn slot_that_grows_takes_from_owners_with_more_and_not_from_others() {
    let pool = Pool::new(10, Yields::Oldest, FULL);
    let older = take(&pool, "a", 6).expect("there is room");
    let mut younger = take(&pool, "b", 2).expect("there is room");
    younger.grow(3).expect("the other holds more");
    assert!(older.end.is_sent() && !younger.end.is_sent());
    assert_eq!(younger.grow(6), Err(FULL), "it holds most itself");
    assert_eq!(take(&pool, "c", 11).err(), Some(FULL), "more than there is");
}

#[test]
fn holder_that_grows_waits_until_the_evicted_one_has_left() {
    let pool = Pool::new(100, Yields::Newest, FULL);
    let mut small = take(&pool, "a", 30).expect("there is room");
    let mut held = [10, 20, 40].map(|weight| take(&pool, "b", weight).expect("there is room"));
    small.set_weight(31).expect("another holds more");
    assert_eq!(ended(&held), [2]);
    assert!(small.is_short() && !is_ready(&mut small));
    // It still grows until it has ended.
    held[2].set_weight(50).expect("it is told already");
    held[0]
        .set_weight(11)
        .expect("there is room without the one that leaves");
    assert_eq!(ended(&held), [2]);
    drop(held);
    assert!(is_ready(&mut small) && !small.is_short());
    small.set_weight(100).expect("there is room");
    assert_eq!(small.set_weight(101), Err(FULL));
}

#[test]
fn session_that_comes_back_evicts_no_other_of_its_owner() {
    let pool = Pool::new(100, Yields::Newest, FULL);
    let first = take(&pool, "a", 60).expect("there is room");
    for _ in 0..3 {
        let mut again = take(&pool, "a", 0).expect("it holds nothing yet");
        again.set_weight(40).expect("there is room");
        assert_eq!(again.set_weight(41), Err(FULL));
    }
    assert!(!first.end.is_sent());
}

#[test]
fn addresses_of_one_network_are_one_owner() {
    let of = |text: &str| PeerNetwork::from(text.parse::<IpAddr>().expect("an address"));
    assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
}
