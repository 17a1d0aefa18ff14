//! `decree decide` from files as other programs write them.

use std::fs;

use serde_json::{Value, json};

use super::{
    decide::{NOON, decide, decide_json, list, pod, replica_set},
    decree,
};

#[test]
fn what_programs_print_is_read_as_kubectl_reads_it() {
    let (set, pod) = (replica_set("web", 2), pod("web-a", "web"));
    let text = list(&[set.clone(), pod.clone()]);
    let expected = decide_json(&text);
    let log = "==== START logs for container c of pod default/web-a ====\n{ broken\n==== END logs for container c of pod default/web-a ====\n";
    let none = json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": null});
    for input in [
        format!("{set}\n{log}{pod}\n{log}"),
        format!("{none}\n{text}"),
    ] {
        assert_eq!(decide_json(&input), expected, "{input}");
    }
    for (mark, bytes) in [
        ([0xff, 0xfe], u16::to_le_bytes as fn(u16) -> [u8; 2]),
        ([0xfe, 0xff], u16::to_be_bytes),
    ] {
        let units = text.encode_utf16().flat_map(bytes);
        let file = tempfile::NamedTempFile::new().expect("a file");
        let all: Vec<_> = mark.into_iter().chain(units).collect();
        fs::write(&file, all).expect("it can be written");
        let file = file.path().display().to_string();
        let ended = decree(&["decide", "-f", &file, "--now", NOON, "-o", "json"]);
        let decision: Value = serde_json::from_str(&ended.out).expect("JSON");
        assert_eq!(decision, expected);
    }
}

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
