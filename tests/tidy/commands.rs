//! Something runs every command that the documents show.

use std::collections::BTreeSet;

use tests::fenced::{self, Block};

use crate::files;

/// Blocks that nothing runs unchanged: the beginning of each, and why.
const NOT_RUN: &str = r#"git clone https://github.com/decree-dev/decree | builds for minutes what is built already
deploy/image decree.tar | takes a build of the image, and kind
kubectl -n kube-system get configmap kubeadm-config | takes kubeadm
git worktree add "$release" | not every clone has the commit
kubectl apply -k deploy/kustomize/cert-manager | takes cert-manager
kubectl apply -f examples/eviction-webhook/certificate.yaml | takes cert-manager
kubectl get --raw /openid/v1/jwks | takes the keys of the reader's cluster
decree simulate deployment/web -n shop --replicas 3 --context prod | takes a context of the reader
kubectl -n batch annotate deployment/worker decree.dev/scale-in | takes a workload of the reader
decree up --cluster kubernetes --mode advise | takes a workload of the reader
kubectl -n decree-system delete statefulset/decree-agent | takes a server of the reader
go -C examples/go build | starts an agent of the reader; a test of the example gives it certificates
tar -xzf decree- | takes a release, whose tests unpack it and run the demo
sha256sum --check SHA256SUMS | makes a release again
apt-get install chromium | installs, and starts a tier"#;
/// The test that runs some pages from the beginning to the end, with its own list.
const NEWCOMER: &str = "tests/process/newcomer.rs";

#[test]
fn each_command_of_the_pages_is_run_or_the_list_says_why_not() {
    let sources = files::with_ending(&[".rs"]);
    let newcomer = sources.iter().find(|file| file.path == NEWCOMER);
    let newcomer = &newcomer.expect("it follows pages").text;
    let not_run = NOT_RUN.lines().filter_map(|line| line.split(" | ").next());
    let not_run: BTreeSet<_> = not_run.collect();
    let mut listed = BTreeSet::<&str>::new();
    let (mut marks, mut run) = (0, 0);
    for files::File { path, text } in files::with_ending(&[".md"]) {
        let is_page =
            path == "README.md" || path.starts_with("docs/") && path.matches('/').count() == 1;
        let is_followed = newcomer.contains(&format!("follow(\"{path}\")"));
        for block in fenced::blocks(&text) {
            let place = format!("{path}:{}", block.line);
            let is_marked = is_run(&block, &sources, &place);
            marks += usize::from(is_marked);
            if !is_page || is_followed || block.language() != "sh" {
                continue;
            }
            run += usize::from(is_marked);
            let reason = not_run.iter().find(|it| block.text.starts_with(**it));
            listed.extend(reason);
            assert!(
                is_marked != reason.is_some(),
                "{place}: is run by a mark, or stands in {}, and not both",
                file!()
            );
        }
    }
    let is_found = run > 50 && marks > run;
    assert!(is_found, "{run} of {marks} are run: the search is broken");
    assert_eq!(listed, not_run, "no document has what is listed");
}

/// Returns whether a test runs a block.
///
/// # Panics
/// If the marks of the block name something that does not exist.
fn is_run(block: &Block, sources: &[files::File], place: &str) -> bool {
    let marks = [block.test(), block.journey(), block.check()];
    if let Some(test) = block.test() {
        assert!(
            files::has_function(sources, test),
            "{place}: no test is called {test}"
        );
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
