//! The parts of the time of a replacement: a stamp at each border that a loss passes on its way to the new pod.
//!
//! The stamps of the API server come from its audit log, which both contenders have. The stamps within Decree are the spans that
//! Decree sends to a collector of the benchmark. The runs without borders have neither.

use std::{
    fs,
    time::{Duration, UNIX_EPOCH},
};

use jiff::Timestamp;
use serde_json::{Value, json};
use tests::{
    collector::{Collector, Span},
    real::AuditLog,
    table::{head, quantile_of, row},
};
use tokio::time::sleep;

use crate::{
    contender::{Contender, Guest, Terms},
    replacing::{Replaced, SIZES, Subject},
};

/// The number of lost pods of each contender, unless the command line names one.
const LOSSES: usize = 400;
/// The pause between two losses.
const REST: Duration = Duration::from_millis(20);
/// The borders, in the order in which a loss passes them.
const BORDERS: [&str; 9] = [
    "the agent takes the event of the watch",
    "its frame leaves the agent",
    "the frame is at the server's session",
    "the decision leaves the session",
    "the batch is at the agent",
    "the agent begins the call",
    "the POST is at the API server",
    "the API server answers it",
    "the replacement is on a watch",
];
/// The index of the first border of the API server.
const POSTED: usize = 6;

/// The times at the borders of one loss, in microseconds since the answer to its deletion. Negative times are before the answer.
type Passage = [f64; BORDERS.len()];

pub(crate) async fn run(collector: &Collector, losses: Option<usize>) {
    let losses = losses.unwrap_or(LOSSES);
    let columns = [
        "replicas",
        "border",
        "decree, µs",
        "since the last",
        "kube-controller-manager, µs",
    ];
    head(
        "Pod lost → replacement: the median at each border",
        &columns,
    );
    for size in SIZES {
        let audits = [creations(), creations()];
        let mut subjects = Vec::new();
        for (contender, audit) in Contender::BOTH.into_iter().zip(&audits) {
            let flags = audit.flags();
            let terms = Terms {
                guest: Guest::Exempt,
                api_server: &flags.each_ref().map(String::as_str),
                collector: (contender == Contender::Decree).then(|| collector.url()),
            };
            subjects.push(Subject::new(contender.start_with(terms).await, size).await);
        }
        let mut replaced = [Vec::new(), Vec::new()];
        for _ in 0..losses {
            for (subject, replaced) in subjects.iter_mut().zip(&mut replaced) {
                sleep(REST).await;
                replaced.push(subject.lose_one().await);
            }
        }
        let [peer, decree] = replaced;
        let spans = spans_of(collector, &decree);
        drop(subjects);
        let [peer_posts, decree_posts] = audits.each_ref().map(posts);
        let decree: Vec<_> = decree
            .iter()
            .filter_map(|it| passage(it, &decree_posts, Some(&spans)))
            .collect();
        let peer: Vec<_> = peer
            .iter()
            .filter_map(|it| passage(it, &peer_posts, None))
            .collect();
        print(size, &decree, &peer);
    }
}

fn print(size: usize, decree: &[Passage], peer: &[Passage]) {
    let median = |of: &dyn Fn(&Passage) -> f64, passages: &[Passage]| {
        quantile_of(&mut passages.iter().map(of).collect::<Vec<_>>(), 0.5)
    };
    for (at, border) in BORDERS.into_iter().enumerate() {
        let since = match at {
            0 => String::new(),
            _ => format!("{:.0}", median(&|it| it[at] - it[at - 1], decree)),
        };
        let of_peer = if at < POSTED {
            String::new()
        } else {
            format!("{:.0}", median(&|it| it[at], peer))
        };
        let of_decree = format!("{:.0}", median(&|it| it[at], decree));
        row(&[
            size.to_string(),
            border.to_owned(),
            of_decree,
            since,
            of_peer,
        ]);
    }
}

/// All spans after the end of the last loss, by their start.
fn spans_of(collector: &Collector, losses: &[Replaced]) -> Vec<Span> {
    let last = losses.last().expect("there are some");
    collector.wait_for("spans of the last loss", |spans| {
        let watched = spans.iter().rfind(|it| is_of(it, &last.lost))?;
        let mut outcomes = spans.iter().filter(|it| it.name == "outcome");
        outcomes.find(|it| it.start > watched.start).map(drop)
    });
    let mut spans = collector.spans();
    spans.sort_by_key(|span| span.start);
    spans
}

/// Whether a span is of a change of a pod.
fn is_of(span: &Span, pod: &str) -> bool {
    let name = span.attributes.get("k8s.pod.name");
    span.name == "watch" && name.is_some_and(|it| it == pod)
}

/// The times of a loss at the borders; `None` if a stamp is missing, for example because its span was dropped.
fn passage(replaced: &Replaced, posts: &[(f64, f64)], spans: Option<&[Span]>) -> Option<Passage> {
    let answered = replaced.answered.duration_since(UNIX_EPOCH).ok()?;
    let answered = answered.as_secs_f64() * 1e6;
    let seen = replaced.took.as_secs_f64() * 1e6;
    let post = posts
        .iter()
        .find(|(_, done)| (answered - 5e3..answered + seen + 5e3).contains(done));
    let (posted, done) = post?;
    let within = match spans {
        Some(spans) => stamps(spans, &replaced.lost, answered)?.map(|at| at - answered),
        None => [f64::NAN; POSTED],
    };
    let [taken, sent, received, decided, back, called] = within;
    let (posted, done) = (posted - answered, done - answered);
    Some([
        taken, sent, received, decided, back, called, posted, done, seen,
    ])
}

/// The times of a loss at the borders within Decree, in microseconds since 1970. A pod in deletion counts as lost, so the first
/// change that shows the deletion precedes the answer to it.
fn stamps(spans: &[Span], pod: &str, answered: f64) -> Option<[f64; POSTED]> {
    let earliest = answered - REST.as_secs_f64() * 1e6;
    let micros = |nanos: u64| nanos as f64 / 1e3;
    let mut changes = spans.iter().filter(|it| is_of(it, pod));
    let watch = changes.find(|it| micros(it.start) > earliest)?;
    let next = |name: &str| {
        let mut of_trace = spans.iter().filter(|it| it.trace_id == watch.trace_id);
        of_trace.find(|it| it.name == name)
    };
    Some([
        micros(watch.start),
        micros(next("frame")?.start),
        micros(next("receive")?.start),
        micros(next("decide")?.end),
        micros(next("batch")?.start),
        micros(next("create_pod")?.start),
    ])
}

/// An audit log of the creations of pods.
fn creations() -> AuditLog {
    let creations = json!({"level": "Metadata", "verbs": ["create"], "resources": [{"group": "", "resources": ["pods"]}]});
    AuditLog::of(&json!([creations, {"level": "None"}]))
}

/// The times at which the API server received and answered each creation of a pod, in microseconds since 1970.
fn posts(log: &AuditLog) -> Vec<(f64, f64)> {
    let log = fs::read_to_string(log.path()).expect("it was written");
    let posts = log.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        let at = |field: &str| {
            let time: Timestamp = line[field].as_str()?.parse().ok()?;
            Some(time.as_microsecond() as f64)
        };
        Some((at("requestReceivedTimestamp")?, at("stageTimestamp")?))
    });
    posts.collect()
}
