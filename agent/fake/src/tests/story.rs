//! Tables of stories: calls, time and faults, and the answers, objects and events that they lead to.
//!
//! A story begins with `# its name`, in a new cluster. A line has statements, separated by `; `. The line with `>` behind it has what they print.
//! `UPDATE_EXPECT=1` writes the tables anew.
//!
//! ```text
//! config idle|loss|no-nodes|log=N                    the cluster, in place of the default one
//! pod NAME, set NAME, namespace NAME, node NAME, quota PODS, object JSON     creates an object; a refusal is printed
//! … of=SET, in=NAMESPACE, restored, /POINTER=JSON    its owner, its namespace, whether it is restored, and its fields
//! patch KIND NAME …, adopt POD SET …                 a patch with these fields
//! keep; status …, stale-status …                     a status, on what the ReplicaSet `web` is now, or was at `keep`
//! replace …, scale SET N, pod-status NAME JSON       other writes
//! delete KIND NAME uid= version= how=                prints whether the object is gone
//! remove-pod, fail-node, recover-node NAME
//! pass MILLIS, settle, due, clock                    time
//! mark, version                                      marks the version; prints how far the version is beyond it
//! seen POD …, show KIND NAME /POINTER …, list KIND
//! watch NAME KIND VERSION, events NAME               versions are numbers, `now`, `mark`, `future`
//! close NAME, drop-watches KIND, compact KIND, bookmarks
//! backup, put-back closed|silent|expired
//! fault refuse=CODE|delay=MILLIS on= of= times=; clear; latency; count VERB KIND [CODE]
//! ```
//!
//! `$web` is the UID of the object `web`, and `$web'` that of the next object of this name.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use expect_test::ExpectFile;
use serde_json::{Value, json};

use super::{cluster, owned, pod, replica_set};
use crate::{
    ApiError, Cluster, ClusterConfig, DeleteOptions, Fault, Kind, NodeLoss, Object, OpenWatches,
    Propagation, Verb, WatchId, WatchPoll,
};

/// Plays the stories of a table, and compares what they print.
pub(super) fn play(table: &str, expected: &ExpectFile) {
    let (mut played, mut story) = (String::new(), Story::new());
    for line in table.lines().filter(|line| !line.starts_with('>')) {
        writeln!(played, "{line}").expect("it is a string");
        if line.starts_with('#') {
            story = Story::new();
            continue;
        }
        let statements = line.split("; ").filter(|it| !it.is_empty());
        statements.for_each(|it| story.act(it));
        if !story.printed.is_empty() {
            let printed = story.named(&story.printed.join(" | "));
            writeln!(played, "> {printed}").expect("it is a string");
            story.printed.clear();
        }
    }
    expected.assert_eq(&played);
}

struct Story {
    cluster: Cluster,
    backup: Option<Cluster>,
    kept: Value,
    mark: u64,
    watches: BTreeMap<String, WatchId>,
    /// The names of UIDs, the longest first.
    uids: Vec<(String, String)>,
    printed: Vec<String>,
}

/// The words of a statement: those without `=`, those with it, and the fields of an object.
struct Words<'a> {
    bare: Vec<&'a str>,
    named: BTreeMap<&'a str, &'a str>,
    fields: Vec<(&'a str, Value)>,
}

impl Story {
    fn new() -> Self {
        Self {
            cluster: cluster(),
            backup: None,
            kept: Value::Null,
            mark: cluster().version(),
            watches: BTreeMap::new(),
            uids: Vec::new(),
            printed: Vec::new(),
        }
    }

    fn act(&mut self, statement: &str) {
        let mut text = statement.to_owned();
        for (name, uid) in &self.uids {
            text = text.replace(name, uid);
        }
        let words = Words::of(&text);
        let cluster = &mut self.cluster;
        match words.at(0) {
            "config" => self.cluster = Cluster::new(config(&words)),
            "pod" | "set" | "namespace" | "node" | "quota" | "object" => self.create(&words),
            "pass" => cluster.advance(cluster.now() + Duration::from_millis(words.number(1))),
            "settle" => {
                while let Some(due) = cluster.next_due() {
                    cluster.advance(due);
                }
            }
            "keep" => self.kept = self.set(),
            "mark" => self.mark = cluster.version(),
            "backup" => self.backup = Some(cluster.clone()),
            "put-back" => {
                let backup = self.backup.as_ref().expect("there is a backup");
                cluster.put_back(backup, open(words.at(1)));
            }
            "close" => cluster.close_watch(self.watches[words.at(1)]),
            "drop-watches" => cluster.drop_watches(words.kind(1)),
            "compact" => cluster.compact(words.kind(1)),
            "bookmarks" => cluster.send_bookmarks(),
            "fault" => cluster.faults_mut().add(fault(&words)),
            "clear" => cluster.faults_mut().clear(),
            _ if self.write(&words) => {}
            _ => {
                let printed = self.answer(&words);
                self.printed.push(printed);
            }
        }
    }

    fn create(&mut self, words: &Words<'_>) {
        let object = self.object(words);
        let created = if words.bare.contains(&"restored") {
            self.cluster.restore(object)
        } else {
            self.cluster.create(object)
        };
        if let Ok(object) = &created {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            let mut name = format!("${}", text("name"));
            while self.uids.iter().any(|(it, _)| *it == name) {
                name.push('\'');
            }
            self.uids.push((name, text("uid").to_owned()));
            self.uids
                .sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        }
        self.refusal(created);
    }

    fn object(&self, words: &Words<'_>) -> Value {
        let name = words.at(1);
        let mut object = match words.at(0) {
            "pod" => pod(name),
            "set" => replica_set(name, 1),
            "object" => json(name),
            "quota" => json!({
                "kind": "ResourceQuota",
                "metadata": {"name": "compute"},
                "spec": {"hard": {"pods": name}},
            }),
            word => json!({"kind": kind(word).name(), "metadata": {"name": name}}),
        };
        if let Some(set) = words.named.get("of") {
            let uid = self.uids.iter().find(|(it, _)| it[1..] == **set);
            let (_, uid) = uid.expect("its owner was created");
            let owner = json!({"kind": "ReplicaSet", "metadata": {"name": set, "uid": uid}});
            object = owned(object, &owner);
        }
        if let Some(namespace) = words.named.get("in") {
            object["metadata"]["namespace"] = json!(namespace);
        }
        words.change(object)
    }

    /// Makes a change whose answer is printed only if it is a refusal. Returns whether the statement is one.
    fn write(&mut self, words: &Words<'_>) -> bool {
        let (cluster, name) = (&mut self.cluster, words.at(1));
        let result = match words.at(0) {
            "patch" => {
                let (patch, name) = (words.change(json!({})), words.at(2));
                cluster.patch(words.kind(1), "default", name, &patch)
            }
            "adopt" => {
                let uid = |kind| {
                    let object = cluster.peek(kind, "default", words.at(kind as usize + 1));
                    object.expect("it is there")["metadata"]["uid"].clone()
                };
                let owner = json!({
                    "kind": "ReplicaSet",
                    "metadata": {"name": words.at(2), "uid": uid(Kind::ReplicaSet)},
                });
                let patch = owned(json!({"metadata": {"uid": uid(Kind::Pod)}}), &owner);
                cluster.patch(Kind::Pod, "default", name, &words.change(patch))
            }
            "status" => {
                let object = words.change(self.set());
                self.cluster.update_status(&object)
            }
            "stale-status" => cluster.update_status(&words.change(self.kept.clone())),
            "replace" => {
                let mut object = self.set();
                object["metadata"]["name"] = json!(name);
                self.cluster.replace_unchecked(words.change(object))
            }
            "scale" => {
                let replicas = words.at(2).parse().expect("a number of replicas");
                cluster.scale("default", name, replicas)
            }
            "pod-status" => cluster.set_pod_status("default", name, &json(words.at(2))),
            "remove-pod" => cluster.remove_pod_now("default", name),
            "fail-node" => cluster.fail_node(name).map(|()| Object::default()),
            "recover-node" => cluster.recover_node(name).map(|()| Object::default()),
            _ => return false,
        };
        self.refusal(result);
        true
    }

    fn answer(&mut self, words: &Words<'_>) -> String {
        let cluster = &mut self.cluster;
        match words.at(0) {
            "delete" => {
                let (kind, options) = (words.kind(1), deletion(cluster, words));
                let deleted = cluster.delete(kind, words.namespace(kind), words.at(2), &options);
                let word = |gone| if gone { "gone" } else { "going" }.to_owned();
                deleted.map_or_else(|error| refused(&error), |it| word(it.gone))
            }
            "due" if cluster.next_due().is_none() => "nothing due".to_owned(),
            "clock" => cluster.now().to_string(),
            "version" => self.beyond(self.cluster.version()),
            "seen" => {
                let names = words.bare[1..].iter();
                let seen: Vec<_> = names.map(|name| self.seen(name)).collect();
                seen.join(", ")
            }
            "show" => self.shown(words),
            "list" => {
                let list = cluster.list(words.kind(1)).expect("no fault is on");
                let names: Vec<_> = list
                    .items
                    .iter()
                    .map(|it| crate::object::name(it))
                    .collect();
                format!("{} {}", names.join(" "), self.beyond(list.version))
            }
            "watch" => {
                let from = match words.at(3) {
                    "now" => cluster.version(),
                    "future" => cluster.version() + 1,
                    "mark" => self.mark,
                    _ => words.number(3),
                };
                match cluster.watch(words.kind(2), from) {
                    Ok(id) => drop(self.watches.insert(words.at(1).to_owned(), id)),
                    Err(error) => return refused(&error),
                }
                "watched".to_owned()
            }
            "events" => self.events(words.at(1)),
            "latency" => format!("{} ms", cluster.take_latency().as_millis()),
            "count" => {
                let (verb, kind) = (verb(words.at(1)), words.kind(2));
                let requests = cluster.requests();
                let code = words.bare.get(3).map(|it| it.parse().expect("a code"));
                let count = code.map_or_else(
                    || requests.count(verb, kind),
                    |code| requests.count_answered(verb, kind, code),
                );
                count.to_string()
            }
            other => panic!("{other} is no statement"),
        }
    }

    fn refusal(&mut self, result: Result<Object, ApiError>) {
        self.printed.extend(result.err().map(|it| refused(&it)));
    }

    fn set(&self) -> Value {
        let set = self.cluster.peek(Kind::ReplicaSet, "default", "web");
        Value::clone(set.expect("it is there"))
    }

    fn beyond(&self, version: u64) -> String {
        format!("@{:+}", version.cast_signed() - self.mark.cast_signed())
    }

    fn seen(&self, name: &str) -> String {
        let Some(pod) = self.cluster.peek(Kind::Pod, "default", name) else {
            return format!("no {name}");
        };
        let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str);
        let phase = text("/status/phase").unwrap_or_default();
        let mut seen = vec![name.to_owned(), phase.to_owned()];
        for (word, pointer) in [("on", "/spec/nodeName"), ("by", "/status/reason")] {
            seen.extend(text(pointer).map(|text| format!("{word} {text}")));
        }
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        seen.extend(conditions.filter(|it| it["type"] == "Ready").map(|ready| {
            let text = |field: &str| ready[field].as_str().unwrap_or("unknown");
            format!(
                "ready={} since {}",
                text("status"),
                text("lastTransitionTime")
            )
        }));
        seen.extend(text("/metadata/deletionTimestamp").map(|_| "deleting".to_owned()));
        seen.join(" ")
    }

    fn shown(&self, words: &Words<'_>) -> String {
        let (kind, name) = (words.kind(1), words.at(2));
        let Some(object) = self.cluster.peek(kind, words.namespace(kind), name) else {
            return format!("no {name}");
        };
        if words.bare.len() == 3 {
            return format!("{name} is there");
        }
        let pointers = words.bare[3..].iter();
        let values = pointers.map(|pointer| match object.pointer(pointer) {
            Some(value) => value.to_string(),
            None => "absent".to_owned(),
        });
        values.collect::<Vec<_>>().join(", ")
    }

    fn events(&mut self, name: &str) -> String {
        let mut told = vec![name.to_owned()];
        loop {
            let event = match self.cluster.poll_watch(self.watches[name]) {
                WatchPoll::Event(event) => event,
                WatchPoll::Expired(error) => {
                    told.push(format!("Error {}", error.code));
                    continue;
                }
                WatchPoll::Pending => break told.push("pending".to_owned()),
                WatchPoll::Closed => break told.push("closed".to_owned()),
            };
            let object = &event.object;
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
            let mut line = vec![format!("{:?}", event.kind)];
            let shown = ["/metadata/name", "/status/phase"].map(text);
            line.extend(shown.into_iter().flatten().map(str::to_owned));
            line.extend(text("/metadata/deletionTimestamp").map(|_| "deleting".to_owned()));
            let version = text("/metadata/resourceVersion").and_then(|it| it.parse().ok());
            line.push(self.beyond(version.expect("it has a version")));
            told.push(line.join(" "));
        }
        told.join(", ")
    }

    fn named(&self, text: &str) -> String {
        let uids = self.uids.iter().filter(|(_, uid)| !uid.is_empty());
        uids.fold(text.to_owned(), |text, (name, uid)| text.replace(uid, name))
    }
}

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        let mut words = Self {
            bare: Vec::new(),
            named: BTreeMap::new(),
            fields: Vec::new(),
        };
        for word in text.split_whitespace() {
            match word.split_once('=') {
                Some((pointer, value)) if word.starts_with('/') => {
                    words.fields.push((pointer, json(value)));
                }
                Some((name, value)) if !word.starts_with(['{', '[', '"']) => {
                    words.named.insert(name, value);
                }
                _ => words.bare.push(word),
            }
        }
        words
    }

    fn at(&self, place: usize) -> &'a str {
        self.bare.get(place).copied().unwrap_or_default()
    }

    fn number(&self, place: usize) -> u64 {
        self.at(place).parse().expect("it is a number")
    }

    fn kind(&self, place: usize) -> Kind {
        kind(self.at(place))
    }

    fn namespace(&self, kind: Kind) -> &'a str {
        let default = if kind.is_namespaced() { "default" } else { "" };
        self.named.get("in").copied().unwrap_or(default)
    }

    /// Sets the fields of the statement in an object; those between are made.
    fn change(&self, mut object: Value) -> Value {
        for (pointer, value) in &self.fields {
            let mut at = &mut object;
            for key in pointer[1..].split('/') {
                at = match key.parse::<usize>() {
                    Ok(place) => &mut at[place],
                    Err(_) => &mut at[key],
                };
            }
            *at = value.clone();
        }
        object
    }
}

fn refused(error: &ApiError) -> String {
    let causes = error.causes.join(", ");
    let text = format!("{} {}: {error} {causes}", error.code, error.reason);
    text.trim_end().to_owned()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn kind(word: &str) -> Kind {
    match word {
        "pod" => Kind::Pod,
        "set" => Kind::ReplicaSet,
        "namespace" => Kind::Namespace,
        "quota" => Kind::ResourceQuota,
        "node" => Kind::Node,
        other => panic!("{other} is no kind"),
    }
}

fn verb(word: &str) -> Verb {
    match word {
        "create" => Verb::Create,
        "delete" => Verb::Delete,
        other => panic!("{other} is no verb"),
    }
}

fn open(word: &str) -> OpenWatches {
    match word {
        "closed" => OpenWatches::Closed,
        "silent" => OpenWatches::Silent,
        "expired" => OpenWatches::Expired,
        other => panic!("watches are not {other}"),
    }
}

fn deletion(cluster: &Cluster, words: &Words<'_>) -> DeleteOptions {
    let named = |name: &str| words.named.get(name).copied();
    let version = named("version").map(|it| match it {
        "now" => cluster.version().to_string(),
        other => other.to_owned(),
    });
    DeleteOptions {
        uid: named("uid").map(str::to_owned),
        resource_version: version,
        propagation: match named("how") {
            None | Some("background") => Propagation::Background,
            Some("foreground") => Propagation::Foreground,
            Some("orphan") => Propagation::Orphan,
            Some(other) => panic!("{other} is no way to delete"),
        },
    }
}

fn config(words: &Words<'_>) -> ClusterConfig {
    let mut config = ClusterConfig::default();
    match words.at(1) {
        "idle" => config.kubelet.schedule_after = Duration::MAX,
        "no-nodes" => config.nodes.clear(),
        "loss" => {
            config.node_loss = NodeLoss {
                unknown_after: Duration::from_secs(1),
                evict_after: Duration::from_secs(2),
                remove_after: Duration::from_secs(3),
            };
        }
        _ => config.watch_log_max = words.named["log"].parse().expect("it is a number"),
    }
    config
}

fn fault(words: &Words<'_>) -> Fault {
    let named = |name: &str| words.named.get(name).copied();
    let mut fault = match (named("refuse"), named("delay")) {
        (Some("500"), _) => Fault::refuse(ApiError::new(500, "InternalError", "etcd is asleep")),
        (Some(_), _) => Fault::refuse(ApiError::too_many_requests(7)),
        (None, millis) => {
            let millis = millis.and_then(|it| it.parse().ok());
            Fault::delay(Duration::from_millis(millis.expect("it is a number")))
        }
    };
    fault = named("on")
        .into_iter()
        .fold(fault, |it, on| it.on(verb(on)));
    fault = named("of")
        .into_iter()
        .fold(fault, |it, of| it.of(kind(of)));
    let times = named("times").map(|it| it.parse().expect("it is a number"));
    times.into_iter().fold(fault, Fault::times)
}
