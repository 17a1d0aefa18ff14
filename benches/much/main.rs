//! Load tests of one server: pods, clusters, events, time. The tables are in docs/performance.md.
//!
//! Server and agent are separate processes, as shipped; this process is their clusters. The part `reading` has
//! neither: a command reads the cluster. Words after `--` name the parts to run:
//! reading, cold, million, agents, steady. The environment sets the sizes: `DECREE_MUCH_PART=100` makes a hundredth of each
//! size, and `DECREE_MUCH_MINUTES`, `DECREE_MUCH_RATE` and `DECREE_MUCH_AGENTS` set one figure each.

mod agents;
mod api_server;
mod client;
mod cold;
mod measured;
mod million;
mod objects;
mod pace;
mod reading;
mod server;
mod sizes;
mod steady;

use std::env;

use tokio::runtime::Builder;

fn main() {
    let words: Vec<_> = env::args()
        .skip(1)
        .filter(|it| !it.starts_with("--"))
        .collect();
    let is_wanted = |part: &str| words.is_empty() || words.iter().any(|word| word == part);
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    if is_wanted("reading") {
        runtime.block_on(reading::run());
    }
    if is_wanted("cold") {
        runtime.block_on(cold::run());
    }
    if is_wanted("million") {
        runtime.block_on(million::run());
    }
    if is_wanted("agents") {
        runtime.block_on(agents::run());
    }
    if is_wanted("steady") {
        runtime.block_on(steady::run());
    }
}
