//! `decree demo` as a shell starts it.

use std::fs;

use agent_fake::{Cluster, ClusterConfig, Kind};

use super::{Ended, decree, decree_reading, root, system::says};
use crate::{Exit, sandbox::beginning};

/// The animated picture of the demo. Each of its lines is a line of the demo, where `…` and a `tspan` stand for anything.
const PICTURE: &str = "docs/demo.svg";

#[test]
fn picture_shows_what_the_demo_prints() {
    let picture = fs::read_to_string(root().join(PICTURE)).expect("it is in the checkout");
    let shown = shown(&picture);
    let Ended { exit, out, err } = decree(&["demo", "--fast"]);
    assert_eq!((exit, err.as_str()), (Exit::Done, ""), "{out}");
    let [shown, said] = [shown, out].map(|it| it.replace("\n    ", " "));
    assert!(says(&shown, &said), "{PICTURE}:\n{shown}\nsaid:\n{said}");
}

/// A status that is yet to be written would be a row of the demo's first answer. And on a terminal, where the demo pauses between its
/// steps, shadow mode would report each status that is missing for 30 s.
#[test]
fn clusters_of_the_demo_lack_no_status() {
    let mut cluster = Cluster::new(ClusterConfig::default());
    beginning::install(&mut cluster, false).expect("they are valid");
    let kinds = [Kind::ReplicaSet, Kind::Pod];
    let objects = kinds.into_iter().flat_map(|kind| cluster.objects(kind));
    let objects: String = objects.map(|it| format!("{it}\n")).collect();
    let ended = decree_reading(&objects, &["decide", "-f", "-", "-o", "json"]);
    let statuses = ended.out.matches("\"status\":null").count();
    assert_eq!(statuses, 2, "{}{}", ended.out, ended.err);
}

/// The lines of a picture, with `…` in place of each `tspan`.
fn shown(picture: &str) -> String {
    let texts = picture.split("<text ").skip(1).filter_map(|it| {
        let (_, text) = it.split_once('>')?;
        let mut parts = text.split_once("</text>")?.0.split("<tspan>");
        let first = parts.next()?.to_owned();
        Some(parts.fold(first, |line, part| {
            line + "…" + part.split_once("</tspan>").map_or("", |(_, rest)| rest)
        }))
    });
    let lines: String = texts.map(|line| line + "\n").collect();
    [("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")]
        .into_iter()
        .fold(lines, |text, (from, to)| text.replace(from, to))
}

#[test]
fn part_that_does_not_come_to_its_end_is_named() {
    let ended = decree(&["demo", "--deadline", "1ms"]);
    assert_eq!(ended.exit, Exit::No);
    let expected = "error: …after 0.001 s, …\nhint: allow more time with --deadline, …\n";
    assert!(says(expected, &ended.err), "{}", ended.err);
}
