//! The tables of all commands on a terminal of 80 columns, of objects with long names and long causes.

use agent_fake::{Cluster, Kind};
use serde_json::{Value, json};

use super::{decree_on, system::System, text};
use crate::Exit;

const COLUMNS: usize = 80;
const CLUSTER: &str = "production-of-the-northern-regions-europe-1";
const NAMESPACE: &str = "payments-and-invoices-of-the-northern-regions-production";
/// The name before its number.
const NAME: &str = "checkout-api-of-a-release-that-helm-named-7d4b9c7f6d";

/// The lines of each command that prints a table; the others print text that is broken, or no table. `@NAME` is a ReplicaSet of
/// `@NS`. The tables of `diff` are in its own tests, and `up` and `demo` print those of `watch` and other commands.
const COMMANDS: &str = "
check:
completion:
console:
decide: decide -f @FILE; decide -f @FILE --replica-set @NS/@NAME --replicas 0 -o wide
demo:
demo drain:
demo fail:
demo quota:
demo restore:
demo resume:
demo scale:
diff:
explain: explain @NS/@NAME default/web-7d4b9c; explain @NS/@NAME --all -o wide; explain default/web-5f6a8b --all
get: get rs; get rs -o wide; get sessions; get sessions -o wide; get rs -f @FILE
hand-back:
man:
replay:
resume:
simulate: simulate @NS/@NAME --replicas 0; simulate @NS/@NAME default/web-7d4b9c --replicas 50 -o wide
simulate: simulate --drain node-a; simulate --drain node-a -o wide; simulate --quota 1 -n @NS
take-over:
up:
version:";
/// The commands that print tables while they run.
const FOLLOWING: [&str; 2] = ["watch --count 4", "get rs -w"];

fn commands(command: &clap::Command, above: &str) -> Vec<String> {
    let below = command.get_subcommands();
    let below = below.flat_map(|it| {
        let path = format!("{above} {}", it.get_name());
        commands(it, path.trim())
    });
    let runs = !above.is_empty() && !command.is_subcommand_required_set();
    runs.then(|| above.to_owned())
        .into_iter()
        .chain(below)
        .collect()
}

/// Adds ReplicaSets, each with more pods than a quota of their namespace has room for.
fn fill(cluster: &mut Cluster) {
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"namespace": NAMESPACE, "name": "pods"}, "spec": {"hard": {"pods": "3"}},
        }),
    ];
    objects.extend((0..5).map(|number| {
        let labels = json!({"app": format!("{NAME}-{number}")});
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"namespace": NAMESPACE, "name": format!("{NAME}-{number}")},
            "spec": {
                "replicas": 4, "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        })
    }));
    for object in objects {
        cluster.create(object).expect("it is new");
    }
}

/// All ReplicaSets and pods as a file, and the name of a ReplicaSet of [`NAMESPACE`] with a pod.
fn objects(cluster: &mut Cluster) -> (String, String) {
    let all = [Kind::ReplicaSet, Kind::Pod].map(|kind| {
        let all = cluster.objects(kind).map(|object| (**object).clone());
        all.collect::<Vec<Value>>()
    });
    let mut pods = all[1].iter();
    let pod = pods.find(|pod| pod["metadata"]["namespace"] == NAMESPACE);
    let pod = pod.expect("the quota has room");
    let name = pod["metadata"]["ownerReferences"][0]["name"].as_str();
    let name = name.expect("a name").to_owned();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": all.concat()});
    (list.to_string(), name)
}

/// Each line fits, or is one word.
fn assert_fits(line: &str, out: &str) {
    assert!(!out.is_empty(), "{line}");
    for printed in out.lines() {
        let is_word = printed.split_whitespace().count() < 2;
        let fits = printed.chars().count() <= COLUMNS;
        assert!(fits || is_word, "decree {line}: {printed:?} in:\n{out}");
    }
}

#[test]
fn tables_fit_a_terminal_of_80_columns() {
    let rows = || COMMANDS.lines().filter_map(|line| line.split_once(':'));
    let mut known: Vec<_> = rows().map(|(command, _)| command.to_owned()).collect();
    known.dedup();
    let mut all = commands(&crate::command(), "");
    all.retain(|path| path != "watch");
    all.sort();
    assert_eq!(all, known, "each command is listed");

    let mut system = System::start(&[CLUSTER]);
    system.clusters[0].with(fill);
    let refused = format!("…5 ReplicaSets: Quota exceeded in {NAMESPACE}…");
    system.until("get rs", &refused);
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("objects.json");
    let (list, name) = system.clusters[0].with(objects);
    std::fs::write(&file, list).expect("there is room");
    let words = [
        ("@FILE", file.display().to_string()),
        ("@NAME", name.clone()),
        ("@NS", NAMESPACE.to_owned()),
    ];
    system.columns = || Some(COLUMNS);
    let lines = rows().flat_map(|(_, lines)| lines.split("; ").map(str::trim));
    for line in lines.filter(|line| !line.is_empty()) {
        let filled = words.iter();
        let filled = filled.fold(line.to_owned(), |line, (word, text)| {
            line.replace(word, text)
        });
        let words: Vec<_> = filled.split(' ').collect();
        let out = if line.contains("-f @FILE") {
            let mut out = Vec::new();
            let (exit, err) = decree_on(system.columns, "", &mut out, "decree", &words);
            assert_eq!(exit, Exit::Done, "{filled}: {err}");
            text(out)
        } else {
            let ended = system.decree(&words);
            assert_eq!(ended.exit, Exit::Done, "{filled}: {}", ended.err);
            ended.out
        };
        assert_fits(&filled, &out);
        if line == "get rs" {
            assert_eq!(out.matches("Quota exceeded").count(), 1, "{out}");
        }
    }
    for line in FOLLOWING {
        let words: Vec<_> = line.split(' ').collect();
        let act = || {
            system.clusters[0]
                .with(|it| it.scale(NAMESPACE, &name, 1))
                .expect("it is there");
            if line.contains("-w") {
                system.stop.cancel();
            }
        };
        assert_fits(line, &system.decree_while(&words, Some(&act)).out);
    }
}
