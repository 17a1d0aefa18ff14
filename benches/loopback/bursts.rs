//! One ReplicaSet from 0 to 600: the time until the first burst of 500 reaches the agent, and the time until the rest does.

use std::{sync::Arc, time::Instant};

use decree::v1::{self, batch::Action};
use tests::table::{head, quantile, row};
use tokio::runtime::Runtime;

use crate::{
    cluster::{self, Cluster},
    host::{Bare, Host},
    link::{Link, Step},
};

const ROUNDS: usize = 200;
const REPLICAS: i32 = 600;

/// The times of the first and the last burst, in milliseconds.
type Times = [f64; 2];

pub(crate) fn run(runtime: &Runtime) {
    head(
        "0 → 600 replicas, one ReplicaSet",
        &[
            "server",
            "500 at the agent, p50 ms",
            "p99 ms",
            "600 at the agent, p50 ms",
            "p99 ms",
        ],
    );
    let (log, marks) = runtime.block_on(record());
    let bare = (0..ROUNDS).map(|_| runtime.block_on(replay(&log, &marks)));
    print("bare stream", bare.collect());
    let decree = (0..ROUNDS).map(|_| runtime.block_on(live(&Host::decree(), false)).0);
    print("decree", decree.collect());
}

fn print(name: &str, times: Vec<Times>) {
    let mut cells = vec![name.to_owned()];
    for which in 0..2 {
        let mut times: Vec<_> = times.iter().map(|times| times[which]).collect();
        times.sort_by(f64::total_cmp);
        for share in [0.5, 0.99] {
            cells.push(format!("{:.2}", quantile(&times, share)));
        }
    }
    row(&cells);
}

async fn record() -> (Arc<Vec<Step>>, [usize; 3]) {
    let (_, log, marks) = live(&Host::decree(), true).await;
    (Arc::new(log), marks)
}

/// Scales up once. Returns the times and, if recorded, the steps, with the positions of the beginning and both ends.
async fn live(host: &Host, recorded: bool) -> (Times, Vec<Step>, [usize; 3]) {
    let sets = [cluster::replica_set("web", 0)];
    let mut link = if recorded {
        Link::open_recorded(host.address, &sets, &[]).await
    } else {
        Link::open(host.address, &sets, &[]).await
    };
    let mut world = Cluster::new(&sets);
    let mut marks = [link.written(), 0, 0];
    let mut times = [0.0; 2];
    let start = Instant::now();
    let scaled = world.scale("web", REPLICAS);
    link.send(cluster::events([scaled]));
    for end in 0..2 {
        loop {
            let batches = link.batches().await;
            let created = batches.iter().any(is_create);
            if created {
                times[end] = start.elapsed().as_secs_f64() * 1e3;
                marks[end + 1] = link.written();
            }
            for batch in batches {
                let followed = world.follow(batch);
                link.send(followed.outcomes);
            }
            if created {
                break;
            }
        }
    }
    (times, link.close(), marks)
}

/// Repeats the same steps with the bare service.
async fn replay(log: &Arc<Vec<Step>>, [begin, first, last]: &[usize; 3]) -> Times {
    let host = Host::bare(Bare::Replay {
        log: Arc::clone(log),
        ahead: 0,
    });
    let mut link = Link::connect(host.address).await;
    let mut start = Instant::now();
    let mut times = [0.0; 2];
    for (at, step) in log.iter().enumerate() {
        if at == *begin {
            start = Instant::now();
        }
        match step {
            Step::Sent(request) => link.send_as_it_is(request.clone()),
            Step::Received(_) => drop(link.next().await),
        }
        for (time, mark) in times.iter_mut().zip([first, last]) {
            if at + 1 == *mark {
                *time = start.elapsed().as_secs_f64() * 1e3;
            }
        }
    }
    times
}

fn is_create(batch: &v1::Batch) -> bool {
    matches!(batch.action, Some(Action::Create(_)))
}
