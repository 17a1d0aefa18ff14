//! `decree sysdump`: one archive for a bug report, without names.
//!
//! **Invariant:** the archive has only numbers, and words of the contract under the keys in this file, in plain text. Every other
//! text, known or not, becomes a digest, the same for the same text in one archive. The digest is keyed by a secret of the
//! process, so nobody can test names against it.

use std::{
    collections::hash_map::RandomState,
    fs::OpenOptions,
    hash::BuildHasher as _,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use decree::v1;
use flate2::{Compression, write::GzEncoder};
use jiff::Timestamp;
use prost::Message;
use serde_json::{Value, json};

use crate::{
    args::{Named, SysdumpArgs},
    exit::{Exit, Failure},
    pages, proto_json,
    server::{self, Server},
    streams::Io,
    table::one_line,
};

/// The maximum number of explained ReplicaSets. The ReplicaSets that are not in sync come first.
const EXPLAINED_MAX: usize = 50;
/// Keys whose texts are words, numbers, times and versions of the contract.
const KEPT: [&str; 25] = [
    "action",
    "available",
    "batchId",
    "batchesInFlight",
    "class",
    "compared",
    "departure",
    "epoch",
    "inFlight",
    "last",
    "missed",
    "mode",
    "nextSync",
    "observedGeneration",
    "pods",
    "replicaSets",
    "rule",
    "serverVersion",
    "severity",
    "started",
    "state",
    "status",
    "subject",
    "time",
    "viewAge",
];

/// The name and the content of one file of the archive.
type Entry = (String, Value);

/// Replaces texts by digests.
struct Redactor {
    secret: RandomState,
    names: bool,
}

pub(crate) fn run(args: &SysdumpArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let entries = server::block_on(gather(args))?;
    let redactor = Redactor {
        secret: RandomState::new(),
        names: args.names,
    };
    let entries = entries.into_iter();
    let entries = entries.map(|(name, content)| (name, redactor.redact("", content)));
    let archive = archive(entries)
        .map_err(|error| Failure::new(Exit::No, format!("the archive cannot be made: {error}")))?;
    if args.out == Path::new("-") {
        io.stdout.write_all(&archive)?;
        return Ok(Exit::Done);
    }
    let path = one_line(&args.out.display().to_string());
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&args.out)
        .and_then(|mut file| file.write_all(&archive));
    written.map_err(|error| {
        Failure::new(Exit::No, format!("{path}: cannot be written: {error}"))
            .hint("name another file with --out; none is overwritten")
    })?;
    let names = if args.names {
        "with the names of objects in it"
    } else {
        "no object is named in it"
    };
    writeln!(io.stdout, "wrote {path}: {} bytes, {names}", archive.len())?;
    Ok(Exit::Done)
}

/// Requests everything that the server tells.
async fn gather(args: &SysdumpArgs) -> Result<Vec<Entry>, Failure> {
    let server = Server::connect(&args.server).await?;
    let sessions = server.sessions("").await?;
    let mut client = server.inspection();
    let sets = pages::replica_sets(&server, "", "").await?;
    let request = v1::ListDifferencesRequest::default();
    let differences = server.answer(client.list_differences(request).await)?;
    let about = json!({
        "time": Timestamp::now().to_string(), "serverVersion": sessions.server_version,
        "commandVersion": service::build_info::text(), "os": std::env::consts::OS, "arch": std::env::consts::ARCH,
    });
    let mut entries = vec![
        ("about.json".to_owned(), about),
        entry("sessions.json", "ListSessionsResponse", &sessions)?,
        entry("replica-sets.json", "ListReplicaSetsResponse", &sets)?,
        entry("differences.json", "ListDifferencesResponse", &differences)?,
    ];
    for (at, set) in suspects(sets).into_iter().enumerate() {
        // A ReplicaSet that was deleted meanwhile is no loss.
        if let Ok(explained) = client.get_replica_set(set).await {
            let name = format!("explain/{:02}.json", at + 1);
            entries.push(entry(name, "GetReplicaSetResponse", explained.get_ref())?);
        }
    }
    Ok(entries)
}

/// The ReplicaSets to explain.
fn suspects(sets: v1::ListReplicaSetsResponse) -> Vec<v1::GetReplicaSetRequest> {
    let mut sets = sets.replica_sets;
    sets.sort_by_key(|set| set.state() == v1::ReplicaSetState::InSync);
    let asked = sets.into_iter().take(EXPLAINED_MAX).map(|set| {
        let named = Named::from(set.replica_set.unwrap_or_default());
        named.request(&set.cluster)
    });
    asked.collect()
}

fn entry(
    name: impl Into<String>,
    kind: &'static str,
    message: &impl Message,
) -> Result<Entry, Failure> {
    Ok((name.into(), proto_json::value(kind, message)?))
}

fn archive(entries: impl Iterator<Item = Entry>) -> io::Result<Vec<u8>> {
    let packed = GzEncoder::new(Vec::new(), Compression::default());
    let mut archive = tar::Builder::new(packed);
    for (name, content) in entries {
        let mut text = serde_json::to_vec_pretty(&content)?;
        text.push(b'\n');
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        archive.append_data(&mut header, format!("decree-sysdump/{name}"), &*text)?;
    }
    archive.into_inner()?.finish()
}

impl Redactor {
    /// The redacted value under a key.
    fn redact(&self, key: &str, value: Value) -> Value {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
            Value::String(text) => self.redact_text(key, text).into(),
            Value::Array(values) => {
                let values = values.into_iter().map(|value| self.redact(key, value));
                values.collect()
            }
            Value::Object(fields) => {
                // The keys of labels are texts as well.
                let is_map = key == "templateLabels";
                let fields = fields.into_iter().map(|(field, value)| {
                    if is_map {
                        return (self.redact_text("", field), self.redact("", value));
                    }
                    let value = self.redact(&field, value);
                    (field, value)
                });
                Value::Object(fields.collect())
            }
        }
    }

    fn redact_text(&self, key: &str, text: String) -> String {
        let is_kept =
            self.names || text.is_empty() || KEPT.contains(&key) || key.ends_with("Version");
        if is_kept {
            text
        } else {
            format!("#{:016x}", self.secret.hash_one(&text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_digests_that_can_be_told_apart() {
        let redactor = Redactor {
            secret: RandomState::new(),
            names: false,
        };
        let told = json!({
            "replicaSet": {"namespace": "shop", "name": "secret-web"},
            "state": "REPLICA_SET_STATE_WAITING",
            "replicas": 3,
            "reasons": [{"rule": "RULE_BACKOFF", "detail": "pods \"secret-web-x\" is forbidden"}],
            "templateLabels": {"secret-key": "secret-web"},
            "unknownNewField": "secret-web",
        });
        let redacted = redactor.redact("", told.clone());
        let text = redacted.to_string();
        assert!(!text.contains("secret") && !text.contains("shop"), "{text}");
        assert_eq!(redacted["state"], told["state"]);
        assert_eq!(redacted["reasons"][0]["rule"], "RULE_BACKOFF");
        assert_eq!(redacted["replicas"], 3);
        assert_eq!(redacted["replicaSet"]["name"], redacted["unknownNewField"]);
        assert_ne!(
            redacted["replicaSet"]["name"],
            redacted["replicaSet"]["namespace"]
        );
    }
}
