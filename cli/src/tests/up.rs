//! `decree up`, and the acts of people on its cluster from other terminals.

use std::{
    io::{self, Read as _, Write},
    net::TcpStream,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{Ended, NO_TERMINAL, decree, decree_into, decree_reading};
use crate::Exit;

/// The maximum duration of a wait.
const DEADLINE: Duration = Duration::from_secs(60);

/// The written text, and whether the reader has closed the stream.
#[derive(Default)]
struct Screen {
    text: Mutex<(String, bool)>,
    changed: Condvar,
}

/// The writing end of a [`Screen`].
struct Pen(Arc<Screen>);

struct Up {
    screen: Arc<Screen>,
    thread: JoinHandle<(Exit, String)>,
    admin: String,
    server: String,
}

impl Write for Pen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut text = self.0.text.lock().unwrap_or_else(PoisonError::into_inner);
        if text.1 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        text.0.push_str(&String::from_utf8_lossy(bytes));
        self.0.changed.notify_all();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Up {
    fn start(flags: &[&str]) -> Self {
        let screen = Arc::new(Screen::default());
        let mut pen = Pen(Arc::clone(&screen));
        let free = ["up", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        let words: Vec<_> = free
            .iter()
            .chain(flags)
            .map(|it| (*it).to_owned())
            .collect();
        let thread = thread::spawn(move || {
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            decree_into("", &mut pen, NO_TERMINAL, &words)
        });
        let up = Self {
            screen,
            thread,
            admin: String::new(),
            server: String::new(),
        };
        let text = up.wait_for("decree demo quota 6 -n ");
        let after = |mark: &str| {
            let rest = text.split_once(mark).map_or("", |(_, rest)| rest);
            rest.lines().next().unwrap_or_default().to_owned()
        };
        Self {
            admin: after("export DECREE_ADMIN="),
            server: after("export DECREE_SERVER="),
            ..up
        }
    }

    /// Waits for a text in the output; returns the whole output.
    fn wait_for(&self, part: &str) -> String {
        let text = self.screen.text.lock().expect("no writer panics");
        let is_missing = |text: &mut (String, bool)| !text.0.contains(part);
        let waited = self
            .screen
            .changed
            .wait_timeout_while(text, DEADLINE, is_missing);
        let (text, waited) = waited.expect("no writer panics");
        assert!(!waited.timed_out(), "{part:?} is not in\n{}", text.0);
        text.0.clone()
    }

    fn demo(&self, words: &[&str]) -> Ended {
        decree(&[&["demo"], words, &["--admin", &self.admin]].concat())
    }

    /// Acts on the cluster, and returns the output.
    fn does(&self, words: &[&str]) -> String {
        let ended = self.demo(words);
        assert_eq!(
            (ended.exit, ended.err.as_str()),
            (Exit::Done, ""),
            "{words:?}"
        );
        ended.out
    }

    /// Asks the server.
    fn ask(&self, words: &[&str]) -> String {
        decree(&[words, &["--server", &self.server]].concat()).out
    }

    /// Ends the process like a reader that closes the stream: the next line that the process writes is its last.
    fn end(self) -> Exit {
        self.screen.text.lock().expect("no writer panics").1 = true;
        let mut replicas = ["8", "7"].iter().cycle();
        until("it writes nothing", || {
            // A ReplicaSet that is scaled to its current size writes nothing, and a process that has ended refuses.
            let replicas = replicas.next().expect("they come again");
            drop(self.demo(&["scale", "web-old", replicas]));
            self.thread.is_finished()
        });
        self.thread.join().expect("it ends").0
    }
}

/// Repeats until `is_so` holds.
fn until(otherwise: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < DEADLINE, "{otherwise}");
    }
}

#[test]
fn cluster_without_files_comes_to_rest_by_itself() {
    let up = Up::start(&[]);
    until("both are not in sync", || {
        let said = up.ask(&["get", "replicasets"]);
        said.matches("   In sync   ").count() == 2
    });
    up.end();
}

#[test]
fn person_takes_part_in_the_running_cluster() {
    let up = Up::start(&[]);
    assert_eq!(
        up.does(&["scale", "web-new", "3"]),
        "replicaset.apps/web-new scaled to 3\n"
    );
    up.wait_for("default/web-new: create 3 pods: TOO_FEW_REPLICAS: 0 active pods, 3 wanted\n");
    assert_eq!(
        up.does(&["cost", "web-old-9nstz", "-100"]),
        "pod/web-old-9nstz has deletion cost -100\n"
    );
    assert_eq!(
        up.does(&["delete", "web-old-2xk7d"]),
        "pod/web-old-2xk7d deleted\n"
    );
    up.wait_for("default/web-old: create 1 pod: TOO_FEW_REPLICAS: 6 active pods, 7 wanted\n");
    let failed = up.does(&["fail", "node-b"]);
    assert!(
        failed.starts_with("node/node-b does not answer, with "),
        "{failed}"
    );
    assert_eq!(up.does(&["restore", "node-b"]), "node/node-b answers\n");
    assert_eq!(
        up.does(&["quota", "1"]),
        "resourcequota/pods of default allows 1 pod\n"
    );
    up.does(&["scale", "web-old", "9"]);
    up.wait_for(": refused: Quota exceeded in default: ");
    assert_eq!(
        up.does(&["quota", "50"]),
        "resourcequota/pods of default allows 50 pods\n"
    );
    assert_eq!(up.end(), Exit::Done);
}

#[test]
fn objects_that_kubectl_prints_are_applied() {
    let up = Up::start(&[]);
    let set = "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: api, namespace: shop}\nspec:\n  replicas: 2\n  \
        selector: {matchLabels: {app: api}}\n  template:\n    metadata: {labels: {app: api}}\n    spec: {containers: [{name: c, image: i}]}\n";
    let apply = |text: &str| {
        let words = ["demo", "apply", "-f", "-", "--admin", &up.admin];
        decree_reading(text, &words)
    };
    let created = apply(set);
    assert_eq!(
        (created.exit, created.out.as_str()),
        (Exit::Done, "replicaset.apps/api created\n"),
        "{}",
        created.err
    );
    up.wait_for("shop/api: create 2 pods");
    let changed = apply(&set.replace("replicas: 2", "replicas: 4"));
    assert_eq!(
        (changed.exit, changed.out.as_str()),
        (Exit::Done, "replicaset.apps/api configured\n"),
        "{}",
        changed.err
    );
    up.wait_for("shop/api: create 2 pods: TOO_FEW_REPLICAS: 2 active pods, 4 wanted\n");
    let api = up.ask(&["get", "rs", "api", "-n", "shop", "-o", "json"]);
    assert!(api.contains(r#""replicas":4,"#), "{api}");
    let into = |text: &str, namespace: &str| {
        let words = [
            "demo", "apply", "-f", "-", "-n", namespace, "--admin", &up.admin,
        ];
        decree_reading(text, &words)
    };
    let elsewhere = into(set, "other");
    let said =
        "error: -: document 1: the object is in namespace shop, not other\nhint: leave out -n\n";
    assert_eq!(
        (elsewhere.exit, elsewhere.err.as_str()),
        (Exit::Usage, said)
    );
    let made = into(&set.replace(", namespace: shop", ""), "other");
    assert_eq!(made.out, "replicaset.apps/api created\n", "{}", made.err);
    up.wait_for("other/api: create 2 pods");
    let folder = tempfile::tempdir().expect("there is room");
    let files = [("good.yaml", "2"), ("bad.yaml", "\"3\"")].map(|(file, replicas)| {
        let file = folder.path().join(file).display().to_string();
        let set = set.replace("replicas: 2", &format!("replicas: {replicas}"));
        std::fs::write(&file, set).expect("there is room");
        file
    });
    let refused = up.demo(&["apply", "-f", &files[0], "-f", &files[1]]);
    assert_eq!((refused.exit, refused.out.as_str()), (Exit::No, ""));
    let place = format!("{}: document 1: ReplicaSet", files[1]);
    assert!(refused.err.contains(&place), "{}", refused.err);
    assert!(
        refused
            .err
            .contains("must be a whole number of 32 bits, without quotes"),
        "{}",
        refused.err
    );
    let service = apply("kind: Service\nmetadata: {name: web}\n");
    assert_eq!((service.exit, service.out.as_str()), (Exit::No, ""));
    assert_eq!(up.end(), Exit::Done);
}

#[test]
fn acts_that_cannot_be_done_say_why() {
    let up = Up::start(&[]);
    let scaled = up.demo(&["scale", "nowhere", "1"]);
    assert_eq!((scaled.exit, scaled.out.as_str()), (Exit::No, ""));
    let said = "error: ReplicaSet default/nowhere not found\nhint: list what exists with: decree get replicasets\n";
    assert_eq!(scaled.err, said);
    assert_eq!(up.demo(&["fail", "node-x"]).exit, Exit::No);
    assert_eq!(up.demo(&["scale", "web-old", "-1"]).exit, Exit::Usage);
    let address = up.server.trim_start_matches("http://").to_owned();
    assert_eq!(up.end(), Exit::Done);
    let gone = decree(&["demo", "fail", "node-a", "--admin", &address]);
    assert_eq!(gone.exit, Exit::Unreachable);
    assert!(gone.err.contains("decree up"), "{}", gone.err);
}

#[test]
fn flags_of_the_other_kind_of_cluster_are_refused() {
    let file = super::path("docs/examples/web.yaml");
    for (flags, cause) in [
        (
            vec!["--context", "kind", "-f", &file],
            "--filename fills the embedded cluster",
        ),
        (
            vec!["--cluster", "fake", "--context", "kind"],
            "--kubeconfig and --context name a real cluster",
        ),
        (vec!["-n", "shop"], "--namespace is for a real cluster"),
    ] {
        let ended = decree(&[&["up"], flags.as_slice()].concat());
        assert_eq!(ended.exit, Exit::Usage, "{flags:?}: {}", ended.err);
        assert!(ended.err.contains(cause), "{}", ended.err);
    }
    let ended = decree(&["up", "--kubeconfig", "/nowhere/config"]);
    assert_eq!(ended.exit, Exit::Usage);
    assert!(ended.err.contains("/nowhere/config"), "{}", ended.err);
}

#[test]
fn request_for_another_host_is_refused_before_its_body() {
    let up = Up::start(&[]);
    let mut connection = TcpStream::connect(&up.admin).expect("it listens");
    let head = "POST /demo/act HTTP/1.1\r\nHost: rebound.example\r\nContent-Type: application/json\r\n\
        Content-Length: 1000000\r\nConnection: close\r\n\r\n";
    connection.write_all(head.as_bytes()).expect("it is read");
    let mut answer = Vec::new();
    // No body follows, so a server that waits for one does not respond.
    let _ = connection.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert_eq!(up.end(), Exit::Done);
}
