//! Decree beside kube-controller-manager, on the same real API server, one after the other in one run. The tables are in
//! docs/performance.md.
//!
//! ```text
//! cargo bench -p tests --bench kube                        # everything
//! cargo bench -p tests --bench kube -- scaling 1x1000 20x1000
//! cargo bench -p tests --bench kube -- replacing
//! cargo bench -p tests --bench kube -- beside
//! cargo bench -p tests --bench kube -- scaling 10x500 as-service-account
//! ```
//! Each contender gets an API server and an etcd of its own, freshly started, and everything shares the processors of this machine:
//! who leaves more of them to the API server is faster. No kubelet runs, so pods stay Pending and a deleted one is gone at once.

mod bare;
mod beside;
mod contender;
mod meter;
mod objects;
mod plot;
mod replacing;
mod scaling;
mod watching;

use std::env;

use contender::Guest;
use tokio::runtime::Builder;

fn main() {
    let words: Vec<_> = env::args()
        .skip(1)
        .filter(|it| !it.starts_with("--"))
        .collect();
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(run(&words));
}

async fn run(words: &[String]) {
    let (guests, words): (Vec<_>, Vec<_>) =
        words.iter().partition(|word| *word == "as-service-account");
    let guest = if guests.is_empty() {
        Guest::Exempt
    } else {
        Guest::ServiceAccount
    };
    let is_wanted = |part: &str| words.is_empty() || words.iter().any(|word| *word == part);
    if is_wanted("scaling") {
        let shapes: Vec<_> = words
            .iter()
            .filter_map(|word| scaling::shape(word))
            .collect();
        scaling::run(&shapes, guest).await;
    }
    if is_wanted("replacing") {
        replacing::run(guest).await;
    }
    if is_wanted("beside") {
        beside::run(guest).await;
    }
}
