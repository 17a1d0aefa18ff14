//! Configuration files of both programs: a file means the same as the equivalent flags.

use std::{cell::RefCell, ffi::OsString, fmt::Debug, fs};

use clap::Parser;
use tempfile::TempDir;
use tests::rng::Rng;

/// The maximum length of the error for a refused file.
const ERROR_BYTES_MAX: usize = 16 << 10;
const KEYS: [&str; 21] = [
    "listen",
    "admin",
    "probe",
    "drain-deadline",
    "heartbeat-interval",
    "hello-deadline",
    "deadline",
    "record",
    "record-bytes-max",
    "memory-max",
    "sessions-max",
    "session-memory-max",
    "log-level",
    "log-format",
    "server",
    "cluster",
    "namespace",
    "mode",
    "burst-replicas",
    "leader-elect",
    "nonsense",
];
const VALUES: [&str; 22] = [
    "1",
    "0",
    "-1",
    "5000",
    "1048576",
    "true",
    "false",
    "1.5",
    "\"5s\"",
    "\"0ms\"",
    "\"18446744073709551615m\"",
    "\"127.0.0.1:0\"",
    "\"127.0.0.1:8080?\"",
    "\"off\"",
    "\"http://127.0.0.1:1\"",
    "\"shadow\"",
    "\"info,decree=debug\"",
    "\"json\"",
    "[\"a\", \"b\"]",
    "[1, 2]",
    "[[1]]",
    "{ a = 1 }",
];

/// Returns a file with some keys.
pub(crate) fn generate(rng: &mut Rng) -> Vec<u8> {
    let lines = (0..rng.between(0, 5)).map(|_| {
        let (key, value) = (rng.pick(&KEYS), rng.pick(&VALUES));
        format!("{key} = {value}\n")
    });
    lines.collect::<String>().into_bytes()
}

/// Reads a file with both programs.
pub(crate) fn check(bytes: &[u8]) {
    compare::<decree_server::Args>(bytes);
    compare::<decree_agent::AgentArgs>(bytes);
}

fn compare<A: Parser + Debug>(bytes: &[u8]) {
    let file = written(bytes);
    let read = service::config::parse::<A>([
        OsString::from("program"),
        "--config".into(),
        file.clone().into(),
    ]);
    match read {
        Ok(read) => {
            let text = std::str::from_utf8(bytes).expect("a file that is read is text");
            let flags = flags(text).into_iter().map(OsString::from);
            let again = service::config::parse::<A>(
                [OsString::from("program"), "--config".into(), empty().into()]
                    .into_iter()
                    .chain(flags),
            );
            let again = again.unwrap_or_else(|error| panic!("refused as flags: {error}"));
            let (read, again) = (format!("{read:?}"), format!("{again:?}"));
            let without = |text: &str, file: &str| text.replace(file, "FILE");
            assert_eq!(without(&read, &file), without(&again, &empty()));
        }
        Err(error) => {
            let text = error.to_string();
            assert_eq!(error.exit_code(), 2, "{text}");
            assert!(text.contains(&file), "the file is not named: {text}");
            assert!(text.len() <= ERROR_BYTES_MAX, "{} bytes", text.len());
        }
    }
}

/// Returns the flags that are equivalent to a file.
fn flags(text: &str) -> Vec<String> {
    let table: toml::Table = text.parse().expect("it was read");
    let flag = |key: &str, value: &toml::Value| {
        let text = value.as_str().map(str::to_owned);
        let text = text.unwrap_or_else(|| value.to_string());
        format!("--{key}={text}")
    };
    let of_key = |(key, value): (String, toml::Value)| {
        let values = value.as_array().cloned();
        let values = values.unwrap_or_else(|| vec![value]);
        let flags = values.iter().map(|value| flag(&key, value));
        flags.collect::<Vec<_>>()
    };
    table.into_iter().flat_map(of_key).collect()
}

/// Writes a file into a folder of this thread, and returns its path.
fn written(bytes: &[u8]) -> String {
    file("fuzzed.toml", bytes)
}

fn empty() -> String {
    file("empty.toml", b"")
}

fn file(name: &str, bytes: &[u8]) -> String {
    thread_local! {
        static FOLDER: RefCell<Option<TempDir>> = const { RefCell::new(None) };
    }
    FOLDER.with_borrow_mut(|folder| {
        let folder = folder.get_or_insert_with(|| tempfile::tempdir().expect("a folder"));
        let path = folder.path().join(name);
        // ext4 writes a truncated file to the disk immediately, but not a new one.
        let _ = fs::remove_file(&path);
        fs::write(&path, bytes).expect("the folder takes a file");
        path.to_str().expect("the path is text").to_owned()
    })
}
