//! `decree top`, where it prints.

use serde_json::Value;

use super::{
    decree_into,
    kubectl::Lines,
    no_terminal,
    system::{System, assert_says},
};
use crate::{Exit, Terminal};

#[test]
fn one_interval_is_printed_with_sessions_and_replica_sets() {
    let system = System::start(&["demo"]);
    let ended = system.decree(&["top", "--once", "--interval", "100ms"]);
    assert_eq!((ended.exit, ended.err.as_str()), (Exit::Done, ""));
    assert_says(
        "CLUSTER   MODE      DEC/S   OPS/S   IN-FLIGHT   MEMORY   MEMORY%   OBJECTS%\n\
         demo      Enforce   0.0     0.0     0           1Mi      1%        1%\n\
         \n\
         REPLICASET           DEC/S   OPS/S   IN-FLIGHT   AVAILABLE   UNCONVERGED   STATE     CAUSE\n\
         default/web-5f6a8b   0.0     0.0     0           3/3         -             In sync   -\n\
         default/web-7d4b9c   0.0     0.0     0           20/20       -             In sync   -\n",
        &ended.out,
    );
    let one = ["top", "web-7d4b9c", "--interval", "100ms", "-o"];
    assert_eq!(
        system.decree(&[&one[..], &["name"]].concat()).out,
        "replicaset.apps/web-7d4b9c\n"
    );
    let json = system.decree(&[&one[..], &["json"]].concat()).out;
    let json: Value = serde_json::from_str(&json).expect("one object");
    assert_eq!(json["replicaSets"][0]["desired"], 20);
    assert_eq!(json["replicaSets"][0]["unconvergedSeconds"], Value::Null);
    let max = json["sessions"][0]["memoryBytesMax"].as_i64();
    assert!(max.is_some_and(|max| max > 1 << 20), "{json:#}");
}

#[test]
fn busiest_is_printed_first_while_it_works() {
    let system = System::start(&["demo"]);
    // Two tables of six lines and a gap: the scaled ReplicaSet is in one of them, and the test does not wait for the next.
    let mut out = Lines::new(40);
    let top = [
        "top",
        "--interval",
        "100ms",
        "--no-headers",
        "--server",
        &system.url,
    ];
    std::thread::scope(|scope| {
        let printing = scope.spawn(|| decree_into("", &mut out, no_terminal, &top));
        system.clusters[0]
            .with(|it| it.scale("default", "web-7d4b9c", 60))
            .expect("it is there");
        let (exit, err) = printing.join().expect("it ends with its reader");
        assert_eq!((exit, err.as_str()), (Exit::Done, ""));
    });
    let text = out.text();
    let busy = text.split("\n\n").find(|table| {
        let first = table.lines().next().unwrap_or_default();
        first.contains("web-7d4b9c") && !first.contains("   0.0   ")
    });
    assert!(busy.is_some(), "{text}");
}

#[test]
fn nothing_to_show_is_said() {
    let system = System::start(&[]);
    let ended = system.decree(&["top", "--once"]);
    assert_eq!((ended.exit, ended.out.as_str()), (Exit::No, ""));
    assert!(ended.err.contains("no agent is connected"), "{}", ended.err);
    let ended = system.decree(&["top", "--interval", "1ms"]);
    assert_eq!(ended.exit, Exit::Usage, "{}", ended.err);
}

#[test]
fn tables_on_a_terminal_take_the_place_of_those_before_and_fit_it() {
    const NARROW: fn() -> Option<Terminal> = || {
        Some(Terminal {
            columns: 40,
            lines: 24,
            can_place: true,
        })
    };
    let system = System::start(&["demo"]);
    // A title, two tables with a gap, and the same again.
    let mut out = Lines::new(14);
    let server = ["--server", system.url.as_str()];
    let top = [&["top", "--interval", "100ms"][..], &server].concat();
    let (exit, err) = decree_into("", &mut out, NARROW, &top);
    assert_eq!((exit, err.as_str()), (Exit::Done, ""));
    let text = out.text();
    let pages: Vec<_> = text.split("\u{1b}[H").skip(1).collect();
    assert_eq!(pages.len(), 2, "{text:?}");
    let page = pages[0].replace("\u{1b}[K", "").replace("\u{1b}[J", "");
    let (title, tables) = page.split_once('\n').expect("it has lines");
    assert!(title.starts_with("decree top - "), "{title}");
    assert_says(
        "CLUSTER   MODE      DEC/S   OPS/S\n\
         demo      Enforce   0.0     0.0\n\
         \n\
         REPLICASET           DEC/S   CAUSE\n\
         default/web-5f6a8b   0.0     -\n\
         default/web-7d4b9c   0.0     -\n",
        tables,
    );
}
