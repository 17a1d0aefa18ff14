//! A quota refuses every pod: the number of writes meanwhile, and the time from the raised quota to the first pod.

use std::{
    env,
    time::{Duration, Instant},
};

use tests::table::{head, row};
use tokio::time::{self, timeout};

use crate::{
    contender::{Arena, Contender, Guest},
    objects::replica_set,
    requests::Writes,
    watching,
};

/// The minutes of refusal, unless `DECREE_BENCH_MINUTES` sets them.
const MINUTES: u32 = 5;
const REPLICAS: usize = 10;
/// Longer than the longest backoff of the peer, which is 1,000 s.
const PATIENCE: Duration = Duration::from_secs(1_100);
struct Measured {
    minutes: Vec<Writes>,
    after_the_raise: Duration,
}

/// Prints the table. Both controllers wait at the same time, each with its own API server.
pub(crate) async fn run(guest: Guest) {
    let minutes = env::var("DECREE_BENCH_MINUTES").ok();
    let minutes = minutes.map_or(MINUTES, |text| text.parse().expect("a number of minutes"));
    let [peer, decree] = Contender::BOTH.map(|contender| measure(contender, minutes, guest));
    let measured = tokio::join!(peer, decree);
    let title = format!("A quota refuses {REPLICAS} pods for {minutes} minutes, and is raised");
    let columns = [
        "controller",
        "creates refused, by minute",
        "all writes, by minute",
        "first pod after s",
    ];
    head(&title, &columns);
    for (contender, measured) in Contender::BOTH.into_iter().zip([measured.0, measured.1]) {
        print(contender, &measured);
    }
}

fn print(contender: Contender, measured: &Measured) {
    let texts = |of: fn(Writes) -> u64| {
        let counts = measured.minutes.iter().map(|it| of(*it).to_string());
        counts.collect::<Vec<_>>().join(", ")
    };
    let seconds = measured.after_the_raise.as_secs_f64();
    row(&[
        contender.name().to_owned(),
        texts(|it| it.forbidden),
        texts(Writes::all),
        format!("{seconds:.1}"),
    ]);
}

async fn measure(contender: Contender, minutes: u32, guest: Guest) -> Measured {
    let arena = contender.start(guest).await;
    arena.namespace.allow_pods(0).await;
    let mut before = Writes::read(arena.api()).await;
    let sets = arena.namespace.replica_set("");
    let created = arena
        .api()
        .create(&sets, &replica_set("web", REPLICAS))
        .await;
    created.expect("it is valid");
    let mut ends = time::interval(Duration::from_secs(60));
    ends.tick().await;
    let mut counted = Vec::new();
    for _ in 0..minutes {
        ends.tick().await;
        let now = Writes::read(arena.api()).await;
        counted.push(now - before);
        before = now;
    }
    Measured {
        minutes: counted,
        after_the_raise: raise(&arena).await,
    }
}

/// Raises the quota, and returns the time until the first pod.
async fn raise(arena: &Arena) -> Duration {
    let mut events = watching::pods(arena.api(), &arena.namespace.pod(""), "app%3Dweb").await;
    arena.namespace.raise_quota(100).await;
    let start = Instant::now();
    let event = timeout(PATIENCE, events.recv()).await;
    event.expect("it is tried again").expect("it is watched");
    start.elapsed()
}
