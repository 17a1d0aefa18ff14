//! Runs the commands of a document as a reader would type them, and compares their output.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::{Deserializer, Value};
use tests::fenced::{self, Block};

use tests::binaries;

/// The address in documents.
const DOCUMENTED: &str = "localhost:50051";
/// The placeholder in a shown output for a text that varies by run.
const ELLIPSIS: &str = "…";

/// A block of commands, and their output in the document.
pub(crate) struct Step {
    pub(crate) place: String,
    pub(crate) commands: String,
    shown: Option<Block>,
}

/// The steps of all documents that name this test.
pub(crate) fn steps(test: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for file in documents() {
        let text = fs::read_to_string(&file).expect("a document can be read");
        let mut blocks = fenced::blocks(&text).into_iter().peekable();
        while let Some(block) = blocks.next() {
            if block.test() == Some(test) {
                steps.push(Step {
                    place: format!("{}:{}", file.display(), block.line),
                    commands: block.text,
                    shown: blocks.next_if(Block::is_output),
                });
            }
        }
    }
    assert!(!steps.is_empty(), "no document names {test}");
    steps
}

fn documents() -> Vec<PathBuf> {
    let root = binaries::checkout();
    let mut files = vec![root.join("README.md")];
    let folder = fs::read_dir(root.join("docs")).expect("there are documents");
    let paths = folder.map(|entry| entry.expect("it can be read").path());
    files.extend(paths.filter(|path| path.extension().is_some_and(|it| it == "md")));
    files.sort();
    files
}

impl Step {
    /// Runs the commands in the checkout, with the programs of the workspace and of `folders` in the path and `server` in place
    /// of the documented address. Compares their output with the documented one.
    pub(crate) fn run(&self, folders: &[&Path], server: &str) {
        self.run_with(folders, server, &[]);
    }

    /// Runs the commands like [`run`](Self::run), with these variables.
    pub(crate) fn run_with(&self, folders: &[&Path], server: &str, variables: &[(&str, &Path)]) {
        let output = self.output(folders, server, variables);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{}: {}\n{errors}",
            self.place,
            output.status
        );
        let printed = String::from_utf8(output.stdout).expect("what is printed is text");
        let Some(shown) = &self.shown else { return };
        let same = if shown.language() == "json" {
            let (shown, printed) = (values(&shown.text), values(&printed));
            shown.len() == printed.len() && shown.iter().zip(&printed).all(|(a, b)| is_like(a, b))
        } else {
            shown.text.trim() == printed.trim()
        };
        assert!(
            same,
            "{} shows\n{}but this is printed:\n{printed}",
            self.place, shown.text
        );
    }

    fn output(&self, folders: &[&Path], server: &str, variables: &[(&str, &Path)]) -> Output {
        binaries::shell(&self.commands.replace(DOCUMENTED, server), folders)
            .env("DECREE_SERVER", format!("http://{server}"))
            .envs(variables.iter().copied())
            .output()
            .expect("there is a shell")
    }
}

fn values(text: &str) -> Vec<Value> {
    let values = Deserializer::from_str(text).into_iter();
    values
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("no JSON ({error}):\n{text}"))
}

/// Whether `printed` is as shown, where a shown "…" stands for any text.
fn is_like(shown: &Value, printed: &Value) -> bool {
    match (shown, printed) {
        (Value::String(shown), Value::String(_)) if shown == ELLIPSIS => true,
        (Value::Array(shown), Value::Array(printed)) => {
            shown.len() == printed.len() && shown.iter().zip(printed).all(|(a, b)| is_like(a, b))
        }
        (Value::Object(shown), Value::Object(printed)) => {
            let like =
                |(key, a): (&String, &Value)| printed.get(key).is_some_and(|b| is_like(a, b));
            shown.len() == printed.len() && shown.iter().all(like)
        }
        (
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_),
            _,
        ) => shown == printed,
    }
}

#[test]
fn an_ellipsis_stands_for_one_text_and_nothing_else() {
    let is = |shown: &str, printed: &str| is_like(&values(shown)[0], &values(printed)[0]);
    assert!(is(r#"{"a":"…","b":[1]}"#, r#"{"b":[1],"a":"x"}"#));
    assert!(!is(r#"{"a":"…"}"#, r#"{"a":1}"#));
    assert!(!is(r#"{"a":1}"#, r#"{"a":1,"b":2}"#));
    assert!(!is("[1,2]", "[1]"));
}
