//! Something runs every command that the documents show.

use std::collections::BTreeSet;

use tests::fenced::{self, Block};

use crate::files;

/// Blocks that nothing runs unchanged, by their beginning, and why.
const NOT_RUN: [(&str, &str); 11] = [
    (
        "git clone https://github.com/decree-dev/decree",
        "builds for minutes what is built already",
    ),
    (
        "deploy/image decree.tar",
        "takes a build of the image, and kind",
    ),
    (
        "kubectl -n kube-system get configmap kubeadm-config",
        "takes kubeadm",
    ),
    (
        "git worktree add \"$release\"",
        "tags do not come with every clone",
    ),
    (
        "kubectl apply -k deploy/kustomize/cert-manager",
        "takes cert-manager, whose definitions `kube` has, and not its controller",
    ),
    (
        "kubectl apply -k deploy/kustomize/monitoring/pod-monitor",
        "takes the Prometheus operator, whose definitions `kube` has",
    ),
    (
        "decree-agent --budget-action hold",
        "shows flags of a program that goes on until it is stopped",
    ),
    (
        "decree resume default/web",
        "shows three ways, of which a reader takes one",
    ),
    (
        "kubectl annotate --overwrite replicaset/web",
        "shows three ways, of which a reader takes one",
    ),
    (
        "OTEL_EXPORTER_OTLP_ENDPOINT=",
        "shows variables of programs that go on until they are stopped",
    ),
    (
        "decree replay recordings/",
        "takes recordings of the reader",
    ),
];

#[test]
fn each_command_for_operators_is_run_or_the_list_says_why_not() {
    let sources = files::with_ending(&[".rs"]);
    let mut listed = BTreeSet::new();
    let mut run = 0;
    for path in fenced::OPERATORS {
        let text = std::fs::read_to_string(files::root().join(path));
        let blocks = fenced::blocks(&text.expect("the document is there"));
        for block in blocks.iter().filter(|block| block.language() == "sh") {
            let place = format!("{path}:{}", block.line);
            let is_marked = is_run(block, &sources, &place);
            run += usize::from(is_marked);
            let reason = NOT_RUN.iter().find(|(it, _)| block.text.starts_with(it));
            if let Some((begins, _)) = reason {
                listed.insert(*begins);
            }
            assert!(
                is_marked != reason.is_some(),
                "{place}: is run by a mark, or stands in {}, and not both",
                file!()
            );
        }
    }
    assert!(run > 20, "{run} are run: the search is broken");
    let all: BTreeSet<_> = NOT_RUN.iter().map(|(it, _)| *it).collect();
    assert_eq!(listed, all, "no document has what is listed");
}

#[test]
fn each_test_that_a_block_names_exists() {
    let sources = files::with_ending(&[".rs"]);
    let mut marks = 0;
    for document in files::with_ending(&[".md"]) {
        for block in fenced::blocks(&document.text) {
            let place = format!("{}:{}", document.path, block.line);
            marks += usize::from(is_run(&block, &sources, &place));
        }
    }
    assert!(marks > 40, "{marks} marks: the search is broken");
}

/// Returns whether a test runs a block.
///
/// # Panics
/// If the marks of the block name something that does not exist.
fn is_run(block: &Block, sources: &[files::File], place: &str) -> bool {
    let marks = [block.test(), block.journey(), block.check()];
    if let Some(test) = block.test() {
        let definition = format!("fn {test}(");
        let is_there = sources.iter().any(|file| file.text.contains(&definition));
        assert!(is_there, "{place}: no test is called {test}");
    }
    if let Some(word) = block.journey() {
        let quoted = format!("\"{word}\"");
        let mut steps = sources
            .iter()
            .filter(|it| it.path.starts_with("tests/journey/"));
        let is_there = steps.any(|file| file.text.contains(&quoted));
        assert!(is_there, "{place}: no journey runs {word}");
    }
    marks.iter().any(Option::is_some)
}
