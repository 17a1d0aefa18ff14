//! The time of a decision in the core. The table is in docs/performance.md.

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use decree_core::Action;
use tests::load::{Ages, Load};

/// The numbers of pods of the compared ReplicaSets.
const SIZES: [u32; 4] = [10, 100, 1_000, 10_000];

/// The number of pods of the ReplicaSet in the benchmark of victims.
const MANY: u32 = 10_000;

criterion_group!(benches, steady, replacing, choosing);
criterion_main!(benches);

/// One pod event and the sync that it causes, in ReplicaSets of growing size.
fn steady(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("steady");
    for pods in SIZES {
        let mut load = Load::at_rest(1, pods, Ages::Spread);
        group.bench_function(BenchmarkId::from_parameter(pods), |bencher| {
            bencher
                .iter_custom(|iterations| (0..iterations).map(|_| steady_event(&mut load)).sum());
        });
    }
    group.finish();
}

fn steady_event(load: &mut Load) -> Duration {
    let event = load.steady_event();
    let start = Instant::now();
    load.apply(event);
    let batch = load.poll();
    let spent = start.elapsed();
    assert!(batch.is_none(), "a steady event changes nothing");
    spent
}

/// From the event of a lost pod to the batch that replaces it.
fn replacing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("replacing");
    for pods in SIZES {
        let mut load = Load::at_rest(1, pods, Ages::Spread);
        group.bench_function(BenchmarkId::from_parameter(pods), |bencher| {
            bencher.iter_custom(|iterations| (0..iterations).map(|_| replacement(&mut load)).sum());
        });
    }
    group.finish();
}

fn replacement(load: &mut Load) -> Duration {
    let event = load.lost_pod_event();
    let start = Instant::now();
    load.apply(event);
    let batch = load.poll();
    let spent = start.elapsed();
    let batch = batch.expect("there is a pod too few");
    assert!(matches!(&batch.action, Action::Create { names, .. } if names.len() == 1));
    load.obey(&batch);
    load.settle();
    spent
}

/// From the sync of a ReplicaSet with surplus pods to the batch with the victims and their reasons.
fn choosing(criterion: &mut Criterion) {
    for (name, ages) in [
        ("choosing", Ages::Spread),
        ("choosing, one instant", Ages::Same),
    ] {
        let mut group = criterion.benchmark_group(name);
        for count in [1, 500] {
            let mut load = Load::at_rest(1, MANY, ages);
            group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
                bencher.iter_custom(|iterations| {
                    (0..iterations).map(|_| choice(&mut load, count)).sum()
                });
            });
        }
        group.finish();
    }
}

/// Reduces the desired replicas by `count`, measures the choice of victims, and restores them.
fn choice(load: &mut Load, count: u32) -> Duration {
    load.scale(replicas(MANY - count));
    let start = Instant::now();
    let batch = load.poll();
    let spent = start.elapsed();
    let batch = batch.expect("there are too many pods");
    assert!(matches!(&batch.action, Action::Delete(victims) if victims.len() == count as usize));
    load.obey(&batch);
    load.settle();
    for _ in 0..count {
        load.add_pod(None);
    }
    load.scale(replicas(MANY));
    load.settle();
    spent
}

fn replicas(count: u32) -> i32 {
    i32::try_from(count).expect("loads are small")
}
