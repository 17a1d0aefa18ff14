//! Events that are due at a steady rate.

use std::time::{Duration, Instant};

use tokio::{sync::mpsc, time};

/// The interval of looks at the clock.
const TICK: Duration = Duration::from_millis(1);

/// The number of an event among the events of its taker, and its due time.
pub(crate) type Due = (usize, Instant);

/// Tells the takers in turn that an event is due, with its due time, so a late event counts as late.
pub(crate) async fn pace(rate: usize, length: Duration, takers: Vec<mpsc::Sender<Due>>) {
    let start = Instant::now();
    let total = (rate as f64 * length.as_secs_f64()) as usize;
    let mut told = 0;
    let mut ticks = time::interval(TICK);
    while told < total && !takers.is_empty() {
        ticks.tick().await;
        while told < total {
            let due = start + Duration::from_secs_f64(told as f64 / rate as f64);
            if due > Instant::now() {
                break;
            }
            let taker = &takers[told % takers.len()];
            // A taker that has ended says why itself.
            if taker.send((told / takers.len(), due)).await.is_err() {
                return;
            }
            told += 1;
        }
    }
}

/// Both ends of a queue of events that are due.
pub(crate) fn queue() -> (mpsc::Sender<Due>, mpsc::Receiver<Due>) {
    mpsc::channel(1_024)
}
