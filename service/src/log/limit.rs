//! The limit of the lines that a peer can cause at will: those with a field `peer`, of the event or of the span around it, at level INFO or
//! above.

use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasher as _, RandomState},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tracing::{
    Event, Level, Subscriber,
    callsite::Identifier,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{Layer, layer::Context, registry::LookupSpan};

/// The maximum number of lines of each peer and place in the code in a minute.
const LINES_MAX: u32 = 5;
const MINUTE: Duration = Duration::from_secs(60);
/// The maximum number of counted peers and places. Beyond it, all further peers share the lines of a place.
const COUNTED_MAX: usize = 1024;

/// Leaves out further lines of a peer and place within a minute, after one that says so.
#[derive(Debug, Default)]
pub(super) struct PeerLimit {
    hasher: RandomState,
    /// The minutes of peers and places, by their hash.
    minutes: Mutex<HashMap<u64, Minute>>,
}

/// The lines of a peer and place since the first one of a minute.
#[derive(Debug)]
struct Minute {
    end: Instant,
    lines: u32,
}

/// The field `peer` of a span or an event.
#[derive(Clone, Debug, Default)]
struct Peer(Option<String>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for PeerLimit {
    fn on_new_span(&self, span: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        let mut peer = Peer::default();
        span.record(&mut peer);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(peer);
        }
    }

    fn event_enabled(&self, event: &Event<'_>, context: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if *metadata.level() > Level::INFO {
            return true;
        }
        let span = context.event_span(event);
        let peer = span.and_then(|span| span.extensions().get::<Peer>().cloned());
        let mut peer = peer.unwrap_or_default();
        event.record(&mut peer);
        let Some(peer) = peer.0 else { return true };
        let number = self.count(Instant::now(), metadata.callsite(), &peer);
        if number == LINES_MAX + 1 {
            let line = metadata.name();
            tracing::warn!(peer, line, "further lines are left out for a minute");
        }
        number <= LINES_MAX
    }
}

impl PeerLimit {
    /// Counts a line, and returns its number within its minute.
    fn count(&self, now: Instant, place: Identifier, peer: &str) -> u32 {
        let mut minutes = self.minutes.lock();
        let mut key = self.hasher.hash_one((&place, Some(peer)));
        if minutes.len() >= COUNTED_MAX && !minutes.contains_key(&key) {
            minutes.retain(|_, minute| now < minute.end);
            if minutes.len() >= COUNTED_MAX {
                key = self.hasher.hash_one((&place, None::<&str>));
            }
        }
        let begin = || Minute {
            end: now + MINUTE,
            lines: 0,
        };
        let minute = minutes.entry(key).or_insert_with(begin);
        if minute.end <= now {
            *minute = begin();
        }
        minute.lines = minute.lines.saturating_add(1);
        minute.lines
    }
}

impl Visit for Peer {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "peer" {
            self.0 = Some(format!("{value:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use parking_lot::MutexGuard;
    use tracing::{Dispatch, debug, dispatcher::with_default, error_span, info, warn};
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    const MAX: usize = LINES_MAX as usize;

    /// Counts the lines that are written.
    #[derive(Default)]
    struct Written(AtomicUsize);

    impl<S: Subscriber> Layer<S> for Written {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn written(logs: &Dispatch, act: impl FnOnce()) -> usize {
        let layer = logs.downcast_ref::<Written>().expect("it is there");
        with_default(logs, act);
        layer.0.swap(0, Ordering::Relaxed)
    }

    fn logs() -> Dispatch {
        let layers = tracing_subscriber::registry().with(PeerLimit::default());
        Dispatch::new(layers.with(Written::default()))
    }

    fn minutes(logs: &Dispatch) -> MutexGuard<'_, HashMap<u64, Minute>> {
        let limit = logs.downcast_ref::<PeerLimit>().expect("it is there");
        limit.minutes.lock()
    }

    #[test]
    fn peer_has_a_few_lines_a_minute_of_each_place() {
        let logs = logs();
        let flood = || {
            for number in 0..1_000 {
                info!(peer = "a", number, "opened");
                error_span!("session", peer = "b").in_scope(|| info!(number, "closed"));
            }
        };
        assert_eq!(written(&logs, flood), 2 * MAX);
        assert_eq!(written(&logs, flood), 0);
        for minute in minutes(&logs).values_mut() {
            minute.end -= MINUTE;
        }
        assert_eq!(written(&logs, flood), 2 * MAX, "a minute later");
    }

    #[test]
    fn lines_that_no_peer_causes_and_those_for_debugging_are_all_written() {
        let act = || {
            for _ in 0..2 * MAX {
                warn!("no peer");
                debug!(peer = "a", "for debugging");
            }
        };
        assert_eq!(written(&logs(), act), 4 * MAX);
    }

    #[test]
    fn any_number_of_peers_takes_bounded_room_and_lines() {
        let logs = logs();
        let act = || {
            for peer in 0..3 * COUNTED_MAX {
                for _ in 0..2 {
                    info!(peer, "opened");
                }
            }
        };
        assert_eq!(written(&logs, act), 2 * COUNTED_MAX + MAX);
        assert_eq!(minutes(&logs).len(), COUNTED_MAX + 1);
    }
}
