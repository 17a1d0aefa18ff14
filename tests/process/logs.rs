//! The logs of server and agent: one format, so that one query finds both sides of a session.

use serde_json::{Map, Value};
use tests::running::Running;

use crate::world;

/// The session fields of every line about a session.
const SESSION: [&str; 4] = ["session", "cluster", "shard", "epoch"];
/// The length of a pretty line before its message.
const PREFIX_MAX: usize = 43;

fn objects(lines: &[String]) -> Vec<Map<String, Value>> {
    let object = |line: &String| match serde_json::from_str(line) {
        Ok(Value::Object(object)) => object,
        other => panic!("{line} is no object: {other:?}"),
    };
    lines.iter().map(object).collect()
}

/// Waits for a message, and returns its line.
fn line(process: &Running, message: &str) -> Value {
    process.line(message, |line| line["message"] == message)
}

fn session(line: &Value) -> Vec<&Value> {
    let span = &line["span"];
    let field = |name: &&str| {
        span.get(*name)
            .unwrap_or_else(|| panic!("{line:?} has no {name}"))
    };
    SESSION.iter().map(field).collect()
}

#[test]
fn lines_of_both_halves_have_the_same_fields_of_their_session() {
    let server = world::server("127.0.0.1:0");
    let address = server.address("grpc");
    let agent = world::agent(&address);
    world::wait_until_converged(&address, 2);
    let [served, attended] = [&server, &agent].map(|process| line(process, "session opened"));
    assert_eq!(session(&served), session(&attended));
    let finished = line(&agent, "operation finished");
    assert_eq!(session(&finished), session(&served));

    agent.terminate();
    let ended = line(&server, "session ended");
    assert_eq!(session(&ended), session(&served));
    for process in [&server, &agent] {
        for line in objects(&process.tail()) {
            for field in ["timestamp", "level", "target", "message"] {
                assert!(line[field].is_string(), "{line:?}");
            }
        }
    }
}

#[test]
fn pretty_lines_come_to_the_point() {
    let mut command = world::for_grpc_alone(world::program("decree-server"));
    command.args(["--log-format", "pretty"]);
    let server = Running::start(command, tests::running::Voice::Stderr);
    let address = server.wait_for("where it listens", |lines| {
        let line = lines.iter().find(|line| line.contains("listening"))?;
        line.split("address=").nth(1).map(str::to_owned)
    });
    let agent = world::agent(&address);
    let opened = server.wait_for("the session", |lines| {
        let mut lines = lines.iter();
        lines.find(|line| line.contains("session opened")).cloned()
    });
    let prefix = opened.find("session opened").expect("it was found by it");
    assert!(prefix <= PREFIX_MAX, "{opened}");
    assert!(
        opened.contains(" session=") && opened.contains(" cluster="),
        "{opened}"
    );
    assert!(
        !opened.contains('\u{1b}'),
        "no colors but on a terminal: {opened}"
    );
    drop(agent);
}
