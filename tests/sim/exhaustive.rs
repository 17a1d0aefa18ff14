//! Searches every state of bounded worlds ([`tests::explore`]), and of worlds with a deliberate fault, in which the search must find the fault.
//!
//! `DECREE_EXPLORE=wide` adds the wide worlds, which need an optimized build.

use std::env;

use tests::explore::{
    bounds::{Act, Bounds, Mutant},
    search::{Failure, search},
};

/// More states than any of these worlds has. A search that reaches this number is incomplete, and fails.
const STATES_MAX: usize = 20_000_000;

#[test]
fn every_state_of_bounded_worlds_keeps_the_promises() {
    let mut worlds = small();
    if env::var("DECREE_EXPLORE").is_ok_and(|extent| extent == "wide") {
        worlds.extend(wide());
    }
    for (name, bounds) in worlds {
        match search(&bounds, None, STATES_MAX) {
            Ok(found) => eprintln!("| {name} | {found} |"),
            Err(failure) => panic!("{name}: {failure}"),
        }
    }
}

#[test]
fn search_that_is_cut_off_fails() {
    let cut = search(&world(1, 1, 0, Act::Scale(3)), None, 1_000);
    assert_eq!(cut, Err(Failure::TooMany(1_000)));
}

#[test]
fn broken_worlds_are_found_by_a_shortest_path() {
    for (mutant, bounds, expected, steps) in broken() {
        match search(&bounds, Some(mutant), STATES_MAX) {
            Err(Failure::Violation { text, path }) => {
                eprintln!("| {mutant:?} | {text} | {} |", path.len());
                assert!(text.contains(expected), "{mutant:?}: {text}: {path:#?}");
                assert!(path.len() <= steps, "{mutant:?}: {text}: {path:#?}");
            }
            Err(failure @ Failure::TooMany(_)) => panic!("{mutant:?}: {failure}"),
            Ok(found) => panic!("nobody objects to {mutant:?} in {found}"),
        }
    }
}

#[test]
fn path_to_a_fault_is_told_step_by_step() {
    let bounds = Bounds::calm(1, 1, 3, vec![Act::Scale(1), Act::Replace(0)]);
    let found = search(&bounds, Some(Mutant::DropUidPrecondition), STATES_MAX);
    let told = found.expect_err("a deletion hits another pod").to_string();
    let steps = [
        "1. a user acts: Scale(1)",
        "2. agent 0 receives an event of its watch of ReplicaSets",
        "3. server 0 receives Events on connection 1",
        "4. agent 0 receives Batches (delete ",
        "5. a user acts: Replace(0)",
        "6. delete_pod ",
    ];
    for step in steps {
        assert!(told.contains(step), "{step:?} is not in\n{told}");
    }
}

/// The worlds to search in every build.
fn small() -> Vec<(&'static str, Bounds)> {
    let up = |replicas| world(1, 1, 0, Act::Scale(replicas));
    vec![
        ("0 to 3 pods", up(3)),
        ("3 to 1 pods", world(1, 1, 3, Act::Scale(1))),
        ("3 pods, one is deleted", world(1, 1, 3, Act::Kill(0))),
        (
            "0 to 2 pods, which become ready one by one",
            Bounds {
                readiness: true,
                ..up(2)
            },
        ),
        (
            "0 to 2 pods, one frame of the agent on its way at a time",
            Bounds {
                window: Some(1),
                ..up(2)
            },
        ),
        (
            "0 to 1 pods, the connection breaks once",
            Bounds {
                broken_connections: 1,
                ..up(1)
            },
        ),
        (
            "0 to 1 pods, one answer is lost",
            Bounds {
                lost_answers: 1,
                ..up(1)
            },
        ),
        (
            "0 to 1 pods, 2 servers, each dies once",
            servers_die(world(2, 1, 0, Act::Scale(1))),
        ),
        ("0 to 1 pods, the agent dies once", agents_die(up(1))),
    ]
}

/// The worlds to search in an optimized build.
fn wide() -> Vec<(&'static str, Bounds)> {
    let worlds = [deaths(), stops_and_losses(), users(), all_four()];
    worlds.into_iter().flatten().collect()
}

/// Either two servers or two agents, each of which dies once.
fn deaths() -> Vec<(&'static str, Bounds)> {
    let up = |servers, agents, replicas| world(servers, agents, 0, Act::Scale(replicas));
    let down = |servers, agents| world(servers, agents, 3, Act::Scale(1));
    vec![
        (
            "0 to 3 pods, 2 servers, each dies once",
            servers_die(up(2, 1, 3)),
        ),
        (
            "3 to 1 pods, 2 servers, each dies once",
            servers_die(down(2, 1)),
        ),
        (
            "0 to 1 pods, 2 agents, each dies once",
            agents_die(up(1, 2, 1)),
        ),
        (
            "3 pods, one is deleted, 2 agents, each dies once",
            agents_die(world(1, 2, 3, Act::Kill(0))),
        ),
        (
            "0 to 3 pods, 2 agents, each dies once, prompt",
            prompt(agents_die(up(1, 2, 3))),
        ),
        (
            "3 to 1 pods, 2 agents, each dies once, prompt",
            prompt(agents_die(down(1, 2))),
        ),
    ]
}

/// Agents that are paused and resumed, and calls without a response.
fn stops_and_losses() -> Vec<(&'static str, Bounds)> {
    let lost = |bounds| Bounds {
        lost_answers: 1,
        ..bounds
    };
    let up = |servers, agents, replicas| world(servers, agents, 0, Act::Scale(replicas));
    vec![
        (
            "0 to 1 pods, 2 agents, one is stopped once",
            Bounds {
                pauses: 1,
                ..up(1, 2, 1)
            },
        ),
        ("0 to 3 pods, one answer is lost", lost(up(1, 1, 3))),
        (
            "0 to 1 pods, one answer is lost, the connection breaks once",
            Bounds {
                broken_connections: 1,
                ..lost(up(1, 1, 1))
            },
        ),
        (
            "0 to 1 pods, 2 servers, each dies once, one answer is lost",
            lost(servers_die(up(2, 1, 1))),
        ),
        (
            "1 pod, it and the next are deleted, one answer is lost",
            lost(Bounds::calm(1, 1, 1, vec![Act::Kill(0); 2])),
        ),
    ]
}

/// Users who do two things, in any order.
fn users() -> Vec<(&'static str, Bounds)> {
    let world = |replicas, acts| Bounds::calm(1, 1, replicas, acts);
    vec![
        (
            "3 to 1 pods while one is deleted",
            world(3, vec![Act::Scale(1), Act::Kill(0)]),
        ),
        (
            "3 to 1 and to 2 pods",
            world(3, vec![Act::Scale(1), Act::Scale(2)]),
        ),
        (
            "2 pods, one is deleted, one replaced",
            world(2, vec![Act::Kill(0), Act::Replace(0)]),
        ),
    ]
}

/// Two servers and two agents, each of which dies once.
fn all_four() -> Vec<(&'static str, Bounds)> {
    let four = |replicas, act| prompt(servers_die(agents_die(world(2, 2, replicas, act))));
    vec![
        (
            "0 to 1 pods, 2 servers, 2 agents, each dies once, prompt",
            four(0, Act::Scale(1)),
        ),
        (
            "3 pods, one is deleted, 2 servers, 2 agents, each dies once, prompt",
            four(3, Act::Kill(0)),
        ),
    ]
}

/// Worlds with a deliberate fault, each with the expected finding and the maximum number of steps to it.
fn broken() -> Vec<(Mutant, Bounds, &'static str, usize)> {
    let up = |agents| world(1, agents, 0, Act::Scale(1));
    let one_too_many = "2 pods, 1 were wanted at most";
    vec![
        (
            Mutant::DropUidPrecondition,
            Bounds::calm(1, 1, 3, vec![Act::Scale(1), Act::Replace(0)]),
            "a deletion of ",
            10,
        ),
        (Mutant::SkipBarrier, agents_die(up(1)), one_too_many, 50),
        (Mutant::IgnoreTimeout, agents_die(up(1)), one_too_many, 50),
        (
            Mutant::RetryUnderAnotherName,
            Bounds {
                lost_answers: 1,
                ..up(1)
            },
            one_too_many,
            25,
        ),
        (Mutant::ForgetOutcomes, up(1), "0 pods, 1 wanted", 150),
        (
            Mutant::TakeLeaseAtOnce,
            up(2),
            "begins a write in epoch 0, the newest is 1",
            25,
        ),
        (
            Mutant::IgnoreLeaseLoss,
            Bounds { pauses: 1, ..up(2) },
            "begins a write without the Lease",
            25,
        ),
        (
            Mutant::LoseDeletions,
            world(1, 1, 1, Act::Kill(0)),
            "0 pods, 1 wanted",
            150,
        ),
        (
            Mutant::IgnoreSupersession,
            Bounds {
                broken_connections: 1,
                ..up(1)
            },
            "has 2 sessions of one cluster",
            10,
        ),
    ]
}

fn world(servers: usize, agents: usize, replicas: i32, act: Act) -> Bounds {
    Bounds::calm(servers, agents, replicas, vec![act])
}

fn servers_die(bounds: Bounds) -> Bounds {
    Bounds {
        server_crashes: 1,
        ..bounds
    }
}

fn agents_die(bounds: Bounds) -> Bounds {
    Bounds {
        agent_crashes: 1,
        ..bounds
    }
}

fn prompt(bounds: Bounds) -> Bounds {
    Bounds {
        prompt: true,
        ..bounds
    }
}
