//! Which newcomer gets a place, and which holder is evicted.

use super::*;

fn source(last: u8) -> PeerNetwork {
    IpAddr::from([10, 0, 0, last]).into()
}

fn identity(uid: u32) -> Option<u32> {
    Some(uid)
}

fn is_held(place: &Place<u32>) -> bool {
    !place.taken.is_cancelled()
}

#[test]
fn newcomer_takes_the_place_held_longest() {
    let places = Places::<u32>::new(2, 2);
    let take = || {
        places
            .take(source(1), PlaceRank::Settled)
            .expect("one gives way")
    };
    let held = [take(), take(), take(), take()];
    assert_eq!(held.each_ref().map(is_held), [false, false, true, true]);
}

#[test]
fn place_of_one_that_is_settled_is_not_taken() {
    let places = Places::<u32>::new(2, 2);
    let take = || places.take(source(1), PlaceRank::Settled);
    let (first, second) = (take().expect("free"), take().expect("free"));
    let settled = first.handle().settle();
    let third = take().expect("the second gives way");
    assert_eq!((is_held(&first), is_held(&second)), (true, false));
    let _third = third.handle().settle();
    assert_eq!(take().err(), Some(Full));
    assert!(!places.has_room(PlaceRank::Settled));
    drop(settled);
    assert!(places.has_room(PlaceRank::Settled));
    let _fourth = take().expect("the first is settled no more");
    assert!(!is_held(&first));
}

#[test]
fn address_that_used_up_its_share_takes_from_itself() {
    let places = Places::<u32>::new(4, 2);
    let take = |last| {
        places
            .take(source(last), PlaceRank::Settled)
            .expect("one gives way")
    };
    let others = [take(1), take(2)];
    let own = [take(3), take(3), take(3)];
    assert!(others.iter().all(is_held));
    assert_eq!(own.each_ref().map(is_held), [false, true, true]);
}

#[test]
fn address_that_holds_most_gives_way_first() {
    let places = Places::<u32>::new(4, 4);
    let take = |last| {
        places
            .take(source(last), PlaceRank::Settled)
            .expect("one gives way")
    };
    let lonely = take(1);
    let many = [take(2), take(2), take(2)];
    let _newcomer = take(3);
    assert!(is_held(&lonely));
    assert_eq!(many.each_ref().map(is_held), [false, true, true]);
}

#[test]
fn place_goes_to_one_who_proves_an_identity_before_one_who_does_not() {
    let places = Places::<u32>::new(2, 2);
    let stranger = || places.take(source(1), PlaceRank::Unproven);
    let held = [stranger().expect("free"), stranger().expect("free")];
    assert_eq!(stranger().err(), Some(Full));
    let proven = |at| places.take_weight(source(2), identity(at), PlaceRank::Proven, 1);
    let _first = proven(1).expect("a stranger gives way");
    assert_eq!(held.each_ref().map(is_held), [false, true]);
    held[1].handle().prove(&2);
    assert_eq!(proven(3).err(), Some(Full), "nobody is unproven");
}

#[test]
fn identity_that_holds_most_gives_way_first_at_whatever_addresses() {
    let places = Places::<u32>::new(4, 4);
    let take = |last, uid| places.take_weight(source(last), identity(uid), PlaceRank::Settled, 1);
    let few = take(1, 1).expect("free");
    let many = [1, 2, 3].map(|last| take(last, 2).expect("free"));
    let again = take(1, 1).expect("one gives way");
    assert_eq!(many.each_ref().map(is_held), [false, true, true]);
    let more = take(4, 2).expect("one gives way");
    assert!(is_held(&few) && is_held(&again) && is_held(&more));
    assert_eq!(many.each_ref().map(is_held), [false, false, true]);
    assert_eq!(more.handle().identity(), identity(2));
}

#[test]
fn place_that_is_dropped_is_free_again() {
    let places = Places::<u32>::new(1, 1);
    drop(places.take(source(1), PlaceRank::Unproven).expect("free"));
    let place = places
        .take(source(2), PlaceRank::Unproven)
        .expect("free again");
    assert!(is_held(&place));
}

#[test]
fn what_grows_takes_from_those_before_it_and_not_from_itself() {
    let places = Places::<u32>::new(10, 10);
    let take = |last, weight| places.take_weight(source(last), None, PlaceRank::Settled, weight);
    let older = take(1, 6).expect("free");
    let younger = take(2, 2).expect("free");
    younger.grow(3).expect("the older gives way");
    assert_eq!((is_held(&older), is_held(&younger)), (false, true));
    assert_eq!(younger.grow(6), Err(Full), "it is the only one");
    assert_eq!(take(3, 11).err(), Some(Full), "more than there are");
    assert!(is_held(&younger));
}

#[test]
fn addresses_of_one_network_are_one_source() {
    let of = |text: &str| PeerNetwork::from(text.parse::<IpAddr>().expect("an address"));
    assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
}
