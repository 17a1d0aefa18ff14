//! Decree beside kube-controller-manager, on the same real API server, one after the other in one run. The tables are in
//! docs/performance.md.
//!
//! ```text
//! cargo bench -p tests --bench kube                        # everything
//! cargo bench -p tests --bench kube -- scaling 1x1000 20x1000      # also counts the requests to the API servers
//! cargo bench -p tests --bench kube -- scaling 10x500 before       # fails if this build costs 15 % more
//! cargo bench -p tests --bench kube -- replacing           # further words: unix, up, before, and the number of losses
//! cargo bench -p tests --bench kube -- defaults
//! cargo bench -p tests --bench kube -- beside
//! DECREE_BENCH_MINUTES=5 cargo bench -p tests --bench kube -- refusing
//! cargo bench -p tests --bench kube -- scaling 10x500 as-service-account
//! cargo bench -p tests --bench kube -- drains 200
//! ```
//! Each contender gets its own API server and etcd, freshly started. All processes share the processors of this machine, so a
//! contender that leaves more of them to the API server is faster. No kubelet runs, so pods stay Pending and a deletion ends at
//! once. `DECREE_BENCH_ROUNDS` sets the number of rounds of `scaling`. `before` compares with the programs of another build, in the
//! folder in `DECREE_BEFORE`.

mod bare;
mod beside;
mod contender;
mod defaults;
mod drains;
mod meter;
mod objects;
mod refusing;
mod replacing;
mod requests;
mod scaling;
mod watching;

use std::env;

use contender::{Contender, Guest};
use tokio::runtime::Builder;

fn main() {
    let words: Vec<_> = env::args()
        .skip(1)
        .filter(|it| !it.starts_with("--"))
        .collect();
    let (guests, words): (Vec<_>, Vec<_>) = words
        .into_iter()
        .partition(|word| word == "as-service-account");
    let guest = if guests.is_empty() {
        Guest::Exempt
    } else {
        Guest::ServiceAccount
    };
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(run(&words, guest));
}

async fn run(words: &[String], guest: Guest) {
    if is_wanted(words, "scaling") {
        let shapes: Vec<_> = words
            .iter()
            .filter_map(|word| scaling::shape(word))
            .collect();
        let before = words.iter().any(|word| word == "before");
        let contenders = [Contender::BOTH, [Contender::Before, Contender::Decree]];
        scaling::run(&shapes, guest, contenders[usize::from(before)]).await;
    }
    if is_wanted(words, "replacing") {
        let others: Vec<_> = words
            .iter()
            .filter_map(|word| Contender::parse(word))
            .collect();
        replacing::run(guest, &others, losses(words)).await;
    }
    if is_wanted(words, "beside") {
        beside::run(guest).await;
    }
    if is_wanted(words, "refusing") {
        refusing::run(guest).await;
    }
    if is_wanted(words, "defaults") {
        defaults::run(guest).await;
    }
    if is_wanted(words, "drains") {
        drains::run(losses(words)).await;
    }
}

/// The named parts run; without names, all parts run.
fn is_wanted(words: &[String], part: &str) -> bool {
    words.is_empty() || words.iter().any(|word| word == part)
}

/// The number of losses or drains on the command line.
fn losses(words: &[String]) -> Option<usize> {
    words.iter().find_map(|word| word.parse().ok())
}
