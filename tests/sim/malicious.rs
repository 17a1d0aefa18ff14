//! A malicious server: for all its requests, the cluster stays within limits. With agents that obey, each limit is exceeded.

use tests::{
    actors::malicious::{Attack, Malice},
    malicious_server::{check, run},
};

/// The maximum number of hours until an agent without rules exceeds a limit before all others.
const HOURS: u64 = 40;
/// The limits that attacks on an agent without rules exceed.
const EXCEEDED: [(Attack, &str); 10] = [
    (Attack::CreateUnwanted, "never_more_than_wanted"),
    (Attack::CreateThousands, "never_more_than_wanted"),
    (Attack::CreateUnderBadName, "names_are_names"),
    (Attack::DeleteWanted, "never_fewer_than_wanted"),
    (Attack::TurnOver, "only_leaving_pods_are_replaced"),
    (Attack::DeleteEnded, "ended_pods_are_kept"),
    (Attack::AdoptOthers, "adopts_what_matches"),
    (Attack::AdoptToDelete, "never_fewer_than_wanted"),
    (Attack::ReleaseMatching, "releases_what_does_not_match"),
    (Attack::LieInStatus, "status_as_seen"),
];

/// `cargo test -p tests --test sim malicious -- --nocapture` prints the attacks that occurred.
#[test]
fn cluster_stays_within_limits_for_an_hour() {
    for survived in check() {
        println!("{survived:?}");
    }
}

#[test]
fn each_limit_is_exceeded_by_an_agent_without_rules() {
    for (attack, limit) in EXCEEDED {
        let malice = Malice {
            attack: Some(attack),
            is_obeyed: true,
        };
        // The first limit that an hour exceeds ends it.
        let mut failures = (0..HOURS).filter_map(|seed| run(seed, malice).err());
        let is_exceeded = failures.any(|failure| failure.checker == limit);
        assert!(is_exceeded, "{attack:?} never exceeds {limit} first");
    }
}
