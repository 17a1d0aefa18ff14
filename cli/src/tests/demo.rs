//! `decree demo` as a shell without a terminal starts it.

use super::{decree, decree_reading, path};
use crate::Exit;

#[test]
fn story_is_told_to_its_end() {
    let told = decree(&["demo"]);
    assert_eq!(
        (told.exit, told.err.as_str()),
        (Exit::Done, ""),
        "{}",
        told.out
    );
    for part in [
        "step 1: scale up",
        "TOO_FEW_REPLICAS: 0 active pods, 6 wanted",
        "lose pods",
        "lose a node",
        "exceeded quota",
        "DELETION_COST",
        "default/web-new   3        3       3\n",
        "default/web-old   4        4       4\n",
        "everything converged in",
    ] {
        assert!(
            told.out.contains(part),
            "{part} is missing in:\n{}",
            told.out
        );
    }
    let victims = told
        .out
        .lines()
        .filter(|line| line.contains(": delete "))
        .count();
    assert_eq!(victims, 7, "{}", told.out);
    assert!(
        !told.out.contains('\u{1b}'),
        "no view is drawn without a terminal"
    );
}

#[test]
fn objects_from_files_are_brought_to_their_size() {
    let ended = decree(&["demo", "-f", &path("docs/examples/web.yaml")]);
    assert_eq!(
        (ended.exit, ended.err.as_str()),
        (Exit::Done, ""),
        "{}",
        ended.out
    );
    assert!(
        ended
            .out
            .contains("default/web-7d4b9c   20       20      20\n"),
        "{}",
        ended.out
    );
}

#[test]
fn step_that_does_not_converge_in_time_is_told_by_name() {
    let ended = decree(&["demo", "--deadline", "1ms"]);
    assert_eq!(ended.exit, Exit::No);
    let cause = "error: step \"scale up\" did not converge within 0.001 s: default/web-";
    assert!(ended.err.starts_with(cause), "{}", ended.err);
}

#[test]
fn objects_that_no_cluster_here_holds_are_refused_by_place() {
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
    let ended = decree_reading(service, &["demo", "-f", "-"]);
    assert_eq!((ended.exit, ended.out.as_str()), (Exit::Usage, ""));
    assert!(
        ended
            .err
            .starts_with("error: -: document 1: kind: \"Service\""),
        "{}",
        ended.err
    );
}

#[test]
fn port_that_is_taken_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let ended = decree(&["demo", "--listen", &address]);
    assert_eq!(ended.exit, Exit::No);
    assert!(
        ended.err.contains(&address) && ended.err.contains("--listen"),
        "{}",
        ended.err
    );
}
