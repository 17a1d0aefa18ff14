//! Manifests, as `decree decide -f` and the agent's `--manifest` read them.

use std::{ffi::OsString, path::Path};

use decree_cli::{Exit, Io};
use serde_json::{Value, json};
use tests::rng::Rng;

use crate::kubernetes;

/// The maximum size of the output: a decision of 500 operations for each ReplicaSet, or an error of some lines.
const OUTPUT_BYTES_MAX: usize = 32 << 20;
const ERROR_BYTES_MAX: usize = 8 << 10;

/// Returns a file in one of the forms that kubectl and people write.
pub(crate) fn generate(rng: &mut Rng) -> Vec<u8> {
    let mut objects = vec![kubernetes::replica_set(rng)];
    objects.extend((0..rng.between(0, 5)).map(|_| kubernetes::object(rng)));
    let text = match rng.between(0, 3) {
        0 => json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string(),
        1 => objects.iter().map(yaml).collect::<Vec<_>>().join("---\n"),
        2 => {
            let items: Vec<_> = objects.iter().map(Value::to_string).collect();
            format!("apiVersion: v1\nkind: List\nitems: [{}]\n", items.join(","))
        }
        _ => objects
            .iter()
            .map(Value::to_string)
            .collect::<Vec<_>>()
            .join("\n"),
    };
    text.into_bytes()
}

fn yaml(object: &Value) -> String {
    serde_saphyr::to_string(object).expect("an object can be written")
}

/// Reads a file with both commands.
pub(crate) fn check(bytes: &[u8]) {
    let table = decide(bytes, "table");
    let (exit, stdout, stderr) = &table;
    assert!(table == decide(bytes, "table"), "the same twice");
    for text in [stdout, stderr] {
        let control = text.chars().find(|it| is_control(*it));
        assert!(control.is_none(), "{control:?} in {text:?}");
    }
    match exit {
        Exit::Done => assert!(stdout.starts_with("REPLICASET"), "{stdout}"),
        Exit::No | Exit::Usage => {
            assert!(stderr.contains("error: "), "{stderr}");
            assert!(stdout.is_empty(), "{stdout}");
            assert!(stderr.len() <= ERROR_BYTES_MAX, "{} bytes", stderr.len());
        }
        Exit::Unreachable | Exit::Refused => panic!("no server is asked: {exit:?}"),
    }
    assert!(stdout.len() <= OUTPUT_BYTES_MAX, "{} bytes", stdout.len());
    let (other, json, _) = decide(bytes, "json");
    assert_eq!(*exit, other, "both forms of output end alike");
    let values = serde_json::Deserializer::from_str(&json).into_iter::<Value>();
    assert!(values.into_iter().all(|it| it.is_ok()), "{json}");
    install(bytes);
}

fn decide(bytes: &[u8], output: &str) -> (Exit, String, String) {
    let arguments = [
        "decree",
        "decide",
        "-f",
        "-",
        "--now",
        "2026-05-02T00:00:00Z",
        "-o",
        output,
    ];
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let exit = decree_cli::run(
        arguments.map(OsString::from),
        Io {
            stdin: &mut &*bytes,
            stdout: &mut stdout,
            stderr: &mut stderr,
            columns: || None,
            colors: decree_cli::Colors::default(),
        },
    );
    let text = |bytes| String::from_utf8(bytes).expect("output is text");
    (exit, text(stdout), text(stderr))
}

/// Returns whether a terminal would interpret a character instead of showing it.
fn is_control(character: char) -> bool {
    let bidirectional = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (character.is_control() && character != '\n') || bidirectional
}

/// Adds the objects to a cluster. Accepted objects stay in the cluster.
fn install(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let file = Path::new("fuzzed.yaml");
    let checked = agent_fake::manifest::open(file, text).and_then(|contents| {
        agent_fake::manifest::check_all(&contents.documents)?;
        Ok(contents.documents)
    });
    let documents = match checked {
        Ok(documents) => documents,
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with("fuzzed.yaml"), "{text}");
            return;
        }
    };
    let mut cluster = agent_fake::Cluster::new(agent_fake::ClusterConfig::default());
    let _: Result<(), _> = agent_fake::manifest::install(&mut cluster, documents);
}
