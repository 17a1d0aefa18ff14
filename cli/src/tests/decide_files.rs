//! `decree decide` from files as other programs write them.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use super::{
    Ended,
    decide::{NOON, decide, decide_json, list, node, pod, replica_set},
    decree,
    system::says,
};
use crate::{Colors, Exit, Io, args::FileArgs, input};

/// An object with a repeated key, and no ReplicaSet.
const TWICE: &str = "kind: Pod\nmetadata:\n  name: a\n  name: b\n";

/// Dumps of a cluster: the names and the texts of the files of each tool, and how often it skips something.
const DUMPS: [(&str, &str, &str); 4] = [
    (
        "must-gather",
        "
quay-io/namespaces/default/apps/replicasets.yaml SETS
quay-io/namespaces/default/core/events.yaml EVENTS
quay-io/namespaces/default/core/pods.yaml PODS
quay-io/namespaces/default/pods/web-a/web-a.yaml POD
quay-io/namespaces/default/pods/web-a/c/logs/current.log LOG
quay-io/namespaces/default/torn.yaml LOG
timestamp LOG",
        "2 other files, 2 other objects, 1 unreadable file, @/quay-io/namespaces/default/torn.yaml: document 1: …line 1…",
    ),
    (
        "velero",
        "
metadata/version LOG
resources/configmaps/namespaces/default/c.json OTHER
resources/pods/namespaces/default/web-a.json POD
resources/pods/v1-preferredversion/namespaces/default/web-a.json POD
resources/replicasets.apps/namespaces/default/web.json SET",
        "1 other file, 1 other object",
    ),
    (
        "sysdump",
        "
cilium-bugtool.tar.gz LOG
k8s-pods-20260501.yaml PODS
k8s-replicasets-20260501.yml SETS
k8s-version.json VERSION",
        "1 other file, 1 other object",
    ),
    (
        "cluster-info",
        "
default/events.json EVENTS
default/pods.json PODS
default/replicasets.json SETS
default/torn.json LOG
default/torn.yaml LOG
default/web-a/logs.txt LOG
nodes.json OTHER",
        "1 other file, 3 other objects, 2 unreadable files, @/default/torn.json: document 1: …",
    ),
];

/// The files of a dump with their texts. The items of lists have no kinds, as in API lists.
fn dump(files: &'static str) -> Vec<(&'static str, String)> {
    let bare = |mut object: Value| {
        let fields = object.as_object_mut().expect("an object");
        fields.retain(|key, _| key != "kind" && key != "apiVersion");
        object
    };
    let (set, pod) = (replica_set("web", 2), pod("web-a", "web"));
    let other = json!({"kind": "ConfigMap", "metadata": {"name": "c"}});
    let text = |path: &str, what: &str| {
        let object = match what {
            "LOG" => return "{ broken: [".to_owned(),
            "SET" => set.clone(),
            "POD" => pod.clone(),
            "SETS" => json!({"kind": "ReplicaSetList", "items": [bare(set.clone())]}),
            "PODS" => json!({"kind": "PodList", "items": [bare(pod.clone())]}),
            "EVENTS" => json!({"kind": "EventList", "items": [{"reason": "A"}, {"reason": "B"}]}),
            "VERSION" => json!({"gitVersion": "v1.36.3"}),
            _ => other.clone(),
        };
        if path.ends_with(".json") {
            object.to_string()
        } else {
            serde_saphyr::to_string(&object).expect("YAML")
        }
    };
    let rows = files.lines().filter_map(|row| row.split_once(' '));
    rows.map(|(path, what)| (path, text(path, what))).collect()
}

fn tarred(files: &[(&str, String)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        // Also names that the builder refuses.
        let field = &mut header.as_old_mut().name;
        field[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        let added = archive.append(&header, text.as_bytes());
        added.expect("there is room");
    }
    archive.into_inner().expect("there is room")
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(bytes).expect("there is room");
    packed.finish().expect("there is room")
}

fn decide_in(path: &Path) -> Ended {
    let path = path.display().to_string();
    decree(&["decide", "-f", &path, "--now", NOON, "-o", "json"])
}

#[test]
fn files_are_read_in_every_encoding() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = list(&[replica_set("web", 2), pod("web-a", "web")]);
    let expected = decide_json(&text);
    let utf16 = |bytes: fn(u16) -> [u8; 2]| {
        let units = ["\u{feff}", &text].concat();
        units.encode_utf16().flat_map(bytes).collect::<Vec<_>>()
    };
    let plain = [
        ("a.le", utf16(u16::to_le_bytes)),
        ("a.be", utf16(u16::to_be_bytes)),
        ("a.gz", gzipped(text.as_bytes())),
    ];
    for (name, bytes) in plain {
        fs::write(folder.path().join(name), bytes).expect("there is room");
        let ended = decide_in(&folder.path().join(name));
        let decision: Value = serde_json::from_str(&ended.out).expect(&ended.err);
        assert_eq!(decision, expected, "{name}");
    }
    // A stream of gzip can consist of parts, and a part of zeros is short.
    let part = gzipped(&[b' '; 1 << 20]);
    let invalid_pod = list(&[json!({"kind": "Pod", "metadata": {"name": "a"}, "spec": 1})]);
    for (bytes, said) in [
        (vec![0xff, 0xfe, 0x00], "a: is neither UTF-8 nor UTF-16"),
        (vec![0x1f, 0x8b, 8, 0], "a: cannot be read"),
        (
            part.repeat(40),
            "a: cannot be read: files are limited to 250 times their size, unpacked",
        ),
        (
            tarred(&[("b.yaml", "a".repeat(600)), ("b/c.json", invalid_pod)]),
            "a/b/c.json: document 1: items[0]: ",
        ),
        (
            tarred(&[("/etc/../d.yaml", TWICE.to_owned())]),
            "a/etc/../d.yaml: line 4: \"name\" is repeated",
        ),
    ] {
        let file = folder.path().join("a");
        fs::write(&file, &bytes).expect("there is room");
        let ended = decide_in(&file);
        assert_eq!((ended.exit, ended.out.as_str()), (Exit::Usage, ""));
        assert!(ended.err.contains(said), "{}", ended.err);
    }
}

#[test]
fn dumps_are_read_as_folders_and_archives() {
    let expected = decide_json(&list(&[replica_set("web", 2), pod("web-a", "web")]));
    for (name, files, skipped) in DUMPS {
        let folder = tempfile::tempdir().expect("a folder");
        let dump = dump(files);
        for (path, text) in &dump {
            let file = folder.path().join("dump").join(path);
            fs::create_dir_all(file.parent().expect("a folder")).expect("there is room");
            fs::write(file, text).expect("there is room");
        }
        let tar = tarred(&dump);
        for (form, bytes) in [("a.tar.gz", gzipped(&tar)), ("a.tar", tar)] {
            fs::write(folder.path().join(form), bytes).expect("there is room");
        }
        for form in ["dump", "a.tar", "a.tar.gz"] {
            let path = folder.path().join(form);
            let ended = decide_in(&path);
            let decision: Value = serde_json::from_str(&ended.out).expect(&ended.err);
            assert_eq!(decision, expected, "{name} {form}");
            let skipped = skipped.replace('@', &path.display().to_string());
            let notice = format!("notice: skipped {skipped}\n");
            assert!(says(&notice, &ended.err), "{name} {form}: {}", ended.err);
        }
    }
}

#[test]
fn embedded_cluster_takes_the_newest_state_of_each_object_of_a_dump() {
    let folder = tempfile::tempdir().expect("a folder");
    let versions = ["9", "10", "8"].map(|version| {
        let mut pod = pod("web-a", "web");
        pod["metadata"]["resourceVersion"] = version.into();
        pod["spec"]["nodeName"] = format!("node-{version}").into();
        pod["spec"]["containers"][0]["image"] = "i".into();
        pod
    });
    let [one, other, third] = &versions;
    let other_kind = json!({"kind": "ConfigMap", "metadata": {"name": "c"}});
    for (name, text) in [
        ("a.json", list(&[one.clone(), other.clone()])),
        ("b.json", list(&[third.clone(), other_kind])),
        ("c.txt", String::new()),
    ] {
        fs::write(folder.path().join(name), text).expect("there is room");
    }
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut io = Io {
        stdin: &mut io::empty(),
        stdout: &mut out,
        stderr: &mut err,
        columns: || None,
        colors: Colors::default(),
    };
    let args = FileArgs {
        files: vec![folder.path().to_owned()],
    };
    let objects = input::read_for_cluster(&args, &mut io).expect("they are valid");
    let objects: Vec<_> = objects.iter().map(|it| &it.object).collect();
    assert_eq!(objects.iter().collect::<Vec<_>>(), [&other]);
    let said = String::from_utf8(err).expect("it is text");
    assert_eq!(said, "notice: skipped 1 other file, 1 other object\n");
}

#[test]
fn links_are_followed_within_a_folder_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |path: &str| folder.path().join(path);
    fs::create_dir_all(at("in/..data")).expect("there is room");
    fs::write(at("out.yaml"), replica_set("out", 1).to_string()).expect("there is room");
    fs::write(at("in/..data/web.yaml"), replica_set("web", 1).to_string()).expect("there is room");
    for (to, link) in [
        // As the volume of a ConfigMap has it.
        ("..data/web.yaml", "in/web.yaml"),
        ("../out.yaml", "in/out.yaml"),
        ("..", "in/around"),
        ("nowhere", "in/nowhere.yaml"),
    ] {
        std::os::unix::fs::symlink(to, at(link)).expect("there is room");
    }
    let ended = decide_in(&at("in"));
    assert_eq!((ended.exit, ended.out.lines().count()), (Exit::Done, 1));
    assert_eq!(ended.err, "notice: skipped 2 other files\n");
}

#[test]
fn damaged_archives_are_refused_and_no_cut_makes_them_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a");
    let archive = tarred(&dump(DUMPS[0].1));
    for end in (300..archive.len()).step_by(97) {
        fs::write(&file, &archive[..end]).expect("there is room");
        let ended = decide_in(&file);
        let is_known = [Exit::Done, Exit::Usage, Exit::No].contains(&ended.exit);
        assert!(is_known, "cut at {end}: {}", ended.err);
    }
}

#[test]
fn newer_of_two_states_of_a_node_counts() {
    let state = |version: &str, is_cordoned: bool| {
        let mut node = node("node-a", is_cordoned);
        node["metadata"]["resourceVersion"] = version.into();
        node
    };
    let mut set = replica_set("web", 1);
    set["metadata"]["annotations"] = json!({"decree.dev/surge-on-eviction": "true"});
    let mut only = pod("web-a", "web");
    only["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    let (old, new) = (state("9", false), state("10", true));
    for nodes in [[old.clone(), new.clone()], [new, old]] {
        let objects = [&[set.clone(), only.clone()][..], &nodes].concat();
        let ended = decide(&list(&objects), &["-o", "json"]);
        let notice = "notice: 1 object has two states; the newer counts\n";
        assert_eq!(ended.err, notice);
        let surges = ended.out.contains(r#""creates":{"count":1,"#);
        assert!(surges, "{}", ended.out);
    }
    let [one, other] = [false, true].map(|is_cordoned| node("node-a", is_cordoned));
    let ended = decide(&list(&[set, only, one, other]), &[]);
    let cause = "items[3]: node node-a is in the input twice, and differs from";
    assert!(ended.err.contains(cause), "{}", ended.err);
}
