//! The habits of kubectl users work here as well: names, formats, `-w`, `-l`.

use std::io::{self, Write};

use super::{
    NO_TERMINAL, decree_into, printed_as,
    system::{System, assert_says},
    victims,
};
use crate::Exit;

#[test]
fn replica_sets_are_named_and_printed_as_with_kubectl() {
    let system = System::start(&["demo"]);
    let out = |arguments: &[&str]| {
        let ended = system.decree(arguments);
        assert_eq!((ended.exit, ended.err.as_str()), (Exit::Done, ""));
        ended.out
    };
    let both = "replicaset.apps/web-5f6a8b\nreplicaset.apps/web-7d4b9c\n";
    assert_eq!(out(&["get", "rs", "-A", "-o", "name"]), both);
    assert_eq!(
        out(&["get", "rs/web-7d4b9c", "rs/web-5f6a8b", "-o", "name"]),
        both
    );
    let labeled = [
        "get",
        "rs",
        "-l",
        "app=web,pod-template-hash in (5f6a8b)",
        "-o",
        "name",
    ];
    assert_eq!(out(&labeled), "replicaset.apps/web-5f6a8b\n");
    let wide = out(&["get", "rs", "web-5f6a8b", "-o", "wide"]);
    assert_says(
        "CLUSTER   NAMESPACE   NAME         DESIRED   CURRENT   READY   AVAILABLE   STATE     TERMINATING   UNCONVERGED   LABELS…   CAUSE   MESSAGE\n\
         demo      default     web-5f6a8b   3         3         3       3           In sync   0             -             …app=web…   -\n",
        &wide,
    );
    let yaml = out(&["get", "rs", "web-5f6a8b", "-o", "yaml"]);
    assert!(
        yaml.starts_with("---\nreplicaSets:\n")
            && yaml.contains(" state: REPLICA_SET_STATE_IN_SYNC\n"),
        "{yaml}"
    );
    let explained = out(&["explain", "-n", "default", "web-5f6a8b", "rs/web-7d4b9c"]);
    assert!(
        explained.contains("\n\nName:        default/web-7d4b9c\n"),
        "{explained}"
    );
    let simulated = out(&[
        "simulate",
        "web-5f6a8b",
        "web-7d4b9c",
        "--replicas",
        "2",
        "-o",
        "json",
    ]);
    assert_eq!(victims(&simulated).lines().count(), 2, "{simulated}");
    for words in [
        &["get", "pods"][..],
        &["get", "sessions", "web"],
        &["get", "sessions", "-n", "shop"],
        &["get", "sessions", "-o", "name"],
        &["get", "rs", "-A", "web"],
    ] {
        assert_eq!(system.decree(words).exit, Exit::Usage, "{words:?}");
    }
}

#[test]
fn candidates_come_as_kubectl_takes_them_from_a_plugin() {
    let offered = |words: &[&str]| printed_as("/usr/local/bin/kubectl_complete-decree", words);
    let commands = offered(&["exp"]);
    assert_eq!(
        commands,
        "explain\tShow the state of a ReplicaSet, what it is waiting for, and why\n:4\n"
    );
    assert_eq!(offered(&["diff", "--unexp"]).lines().count(), 2);
    assert_eq!(
        offered(&["up", "--mode", "sh"]).lines().next(),
        Some("shadow\tChange nothing, and compare decisions with what another controller does")
    );
    assert_eq!(offered(&["completion", "nothing"]), ":4\n");
    let folder = tempfile::tempdir().expect("there is room");
    std::fs::create_dir(folder.path().join("state")).expect("it is new");
    let begun = folder.path().join("st").display().to_string();
    let paths = offered(&["decide", "-f", &begun]);
    assert!(paths.ends_with("/state/\n:6\n"), "{paths}");
}

#[test]
fn changed_replica_sets_are_printed_again() {
    let system = System::start(&["demo"]);
    let mut out = Lines::new(3);
    let watch = ["get", "rs", "web-5f6a8b", "-w", "--server", &system.url];
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| decree_into("", &mut out, NO_TERMINAL, &watch));
        system.clusters[0]
            .with(|it| it.scale("default", "web-5f6a8b", 5))
            .expect("it is there");
        let (exit, err) = watching.join().expect("it ends with its reader");
        assert_eq!((exit, err.as_str()), (Exit::Done, ""));
    });
    let text = out.text();
    assert!(
        text.starts_with("NAMESPACE   NAME         DESIRED"),
        "{text}"
    );
    assert!(
        text.lines()
            .nth(2)
            .is_some_and(|line| line.contains("web-5f6a8b   5 ")),
        "{text}"
    );
}

#[test]
fn wrong_names_are_told_all_at_once_and_what_is_known_is_printed() {
    let system = System::start(&["demo"]);
    let both = "error: ReplicaSets default/nope, default/none not found\n";
    for (words, out) in [
        (&["get", "rs", "nope", "web-5f6a8b", "none"][..], true),
        (&["get", "rs", "-w", "nope", "web-5f6a8b", "none"], true),
        (&["explain", "nope", "web-5f6a8b", "none"], true),
        (&["simulate", "nope", "web-5f6a8b", "none"], true),
        (&["watch", "nope", "web-5f6a8b", "none"], false),
    ] {
        let ended = system.decree(words);
        assert_eq!(ended.exit, Exit::No, "{words:?}");
        assert!(ended.err.starts_with(both), "{words:?}: {}", ended.err);
        assert_eq!(
            ended.out.contains("web-5f6a8b"),
            out,
            "{words:?}: {}",
            ended.out
        );
    }
    let nothing = system.decree(&["watch", "-n", "nope", "--count", "0"]);
    let said = "notice: No resources found in nope namespace. Waiting for decisions.\n";
    assert_eq!((nothing.exit, nothing.err.as_str()), (Exit::Done, said));
    let nothing = system.decree(&["simulate"]);
    assert_eq!(nothing.exit, Exit::Usage);
    assert!(nothing.err.contains("--drain NODE"), "{}", nothing.err);
}

/// A reader that closes the stream after some lines.
pub(super) struct Lines {
    text: Vec<u8>,
    left: usize,
}

impl Lines {
    pub(super) fn new(left: usize) -> Self {
        Self {
            text: Vec::new(),
            left,
        }
    }

    pub(super) fn text(self) -> String {
        String::from_utf8(self.text).expect("commands write text")
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.text.extend_from_slice(bytes);
        self.left = self
            .left
            .saturating_sub(bytes.iter().filter(|byte| **byte == b'\n').count());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.left {
            0 => Err(io::ErrorKind::BrokenPipe.into()),
            _ => Ok(()),
        }
    }
}
