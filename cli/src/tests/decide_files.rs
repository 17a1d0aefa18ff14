//! `decree decide` from files as other programs write them.

use std::{fs, io::Write as _, path::Path};

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use super::{
    Ended,
    decide::{NOON, decide, decide_json, list, pod, replica_set},
    decree,
};
use crate::Exit;

#[test]
fn strings_that_look_like_numbers_beyond_f64_are_strings() {
    for text in ["12e45678", "4E8888", "1e400", "7e310", "nan", "inf"] {
        let mut set = replica_set("web", 0);
        let labels = json!({"app": "web", "commit": "COMMIT"});
        set["spec"]["selector"]["matchLabels"] = labels.clone();
        set["spec"]["template"]["metadata"]["labels"] = labels.clone();

        let mut pod = pod("web-a", "web");
        pod["metadata"]["labels"] = labels;
        let yaml = [&set, &pod].map(|object| serde_saphyr::to_string(object).expect("YAML"));
        let plain = yaml.join("---\n").replace("COMMIT", text);
        let ended = decide(&plain, &["-o", "json"]);
        let decision: Value = serde_json::from_str(&ended.out).expect(&ended.err);
        assert_eq!(decision["deletes"][0]["name"], "web-a", "{plain}");
    }
}

/// Files as a dump of a cluster has them: lists by namespace, other kinds, logs, and files of no objects.
fn dump() -> [(&'static str, String); 6] {
    let bare = |mut object: Value| {
        let fields = object.as_object_mut().expect("an object");
        fields.retain(|key, _| key != "kind" && key != "apiVersion");
        object
    };
    let sets = json!({"kind": "ReplicaSetList", "items": [bare(replica_set("web", 2))]});
    let pods = json!({"kind": "PodList", "items": [bare(pod("web-a", "web"))]});
    [
        (
            "default/apps/replicasets.yaml",
            serde_saphyr::to_string(&sets).expect("YAML"),
        ),
        ("default/core/pods.json", pods.to_string()),
        (
            "default/events.json",
            json!({"kind": "EventList", "items": []}).to_string(),
        ),
        ("default/web-a/logs.txt", "{ broken".to_owned()),
        ("broken.yaml", "a: b: c".to_owned()),
        ("version.json", json!({"gitVersion": "v1.36.3"}).to_string()),
    ]
}

fn zipped(files: &[(&str, String)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, text) in files {
        archive.start_file(*name, options).expect("there is room");
        archive.write_all(text.as_bytes()).expect("there is room");
    }
    archive.finish().expect("there is room").into_inner()
}

fn tarred(files: &[(&str, String)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        let added = archive.append_data(&mut header, name, text.as_bytes());
        added.expect("there is room");
    }
    archive.into_inner().expect("there is room")
}

fn decide_in(path: &Path, more: &[&str]) -> Ended {
    let path = path.display().to_string();
    let words = ["decide", "-f", &path, "--now", NOON, "-o", "json"];
    decree(&[&words, more].concat())
}

#[test]
fn files_folders_and_archives_are_read_in_every_encoding() {
    let expected = decide_json(&list(&[replica_set("web", 2), pod("web-a", "web")]));
    let folder = tempfile::tempdir().expect("a folder");
    let dump = dump();
    for (name, text) in &dump {
        let file = folder.path().join("dump").join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("there is room");
        fs::write(file, text).expect("there is room");
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&tarred(&dump)).expect("there is room");
    let text = list(&[replica_set("web", 2), pod("web-a", "web")]);
    let utf16 = |bytes: fn(u16) -> [u8; 2]| {
        let units = ["\u{feff}", &text].concat();
        units.encode_utf16().flat_map(bytes).collect::<Vec<_>>()
    };
    let plain = [
        ("a.le", utf16(u16::to_le_bytes)),
        ("a.be", utf16(u16::to_be_bytes)),
    ];
    for (name, bytes) in plain {
        fs::write(folder.path().join(name), bytes).expect("there is room");
        let ended = decide_in(&folder.path().join(name), &[]);
        let decision: Value = serde_json::from_str(&ended.out).expect(&ended.err);
        assert_eq!(decision, expected, "{name}");
    }
    for (bytes, said) in [
        (&[0xff, 0xfe, 0x00][..], "is neither UTF-8 nor UTF-16"),
        (&[0x1f, 0x8b, 8, 0], "cannot be read"),
    ] {
        let file = folder.path().join("a.torn");
        fs::write(&file, bytes).expect("there is room");
        let ended = decide_in(&file, &[]);
        assert_eq!((ended.exit, ended.out.as_str()), (Exit::Usage, ""));
        assert!(ended.err.contains(said), "{}", ended.err);
    }
    let archives = [
        ("a.tar", tarred(&dump)),
        ("a.tar.gz", packed.finish().expect("there is room")),
        ("a.zip", zipped(&dump)),
    ];
    for (name, bytes) in archives {
        fs::write(folder.path().join(name), bytes).expect("there is room");
    }
    for (name, more) in [
        ("dump", &["-R"][..]),
        ("a.tar", &[]),
        ("a.tar.gz", &[]),
        ("a.zip", &[]),
    ] {
        let path = folder.path().join(name);
        let ended = decide_in(&path, more);
        let decision: Value = serde_json::from_str(&ended.out).expect(&ended.err);
        assert_eq!(decision, expected, "{name}");
        let broken = path.join("broken.yaml");
        let notice = format!("notice: skipped {}: document 1: line 1: ", broken.display());
        assert!(ended.err.starts_with(&notice), "{name}: {}", ended.err);
        assert_eq!(ended.err.lines().count(), 1, "{name}: {}", ended.err);
    }
    // Without -R, only the files in the folder itself count.
    let ended = decide_in(&folder.path().join("dump"), &[]);
    let said = "error: the input holds no objects\n";
    assert_eq!(ended.exit, Exit::Usage);
    assert!(
        ended.err.contains(said) && ended.err.contains("-R"),
        "{}",
        ended.err
    );
}

#[test]
fn damaged_archives_are_refused_and_no_cut_makes_them_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a");
    for archive in [zipped(&dump()), tarred(&dump())] {
        for end in (300..archive.len()).step_by(97) {
            fs::write(&file, &archive[..end]).expect("there is room");
            let ended = decide_in(&file, &[]);
            let is_known = [Exit::Done, Exit::Usage, Exit::No].contains(&ended.exit);
            assert!(is_known, "cut at {end}: {}", ended.err);
        }
    }
}

#[test]
fn newer_of_two_states_counts() {
    let state = |version: &str, phase: &str| {
        let mut pod = pod("web-a", "web");
        pod["metadata"]["resourceVersion"] = version.into();
        pod["status"]["phase"] = phase.into();
        pod
    };
    let (old, new) = (state("9", "Running"), state("10", "Failed"));
    for objects in [[old.clone(), new.clone()], [new, old]] {
        let [one, other] = objects;
        let ended = decide(&list(&[replica_set("web", 1), one, other]), &["-o", "json"]);
        assert_eq!(
            ended.err,
            "notice: 1 object has two states; the newer counts\n"
        );
        assert!(
            ended.out.contains(r#""creates":{"count":1,"#),
            "{}",
            ended.out
        );
    }
}
