//! What a pod costs in the core, in bytes, counted by the allocator. The table is in docs/performance.md.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tests::load::{Ages, Load};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How many events the allocations per event are the mean of.
const EVENTS: usize = 10_000;

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn main() {
    println!("| ReplicaSets | pods in each | bytes a pod | allocations an event |");
    println!("| ---: | ---: | ---: | ---: |");
    for (replica_sets, pods) in [(1, 10_000), (1, 100_000), (1_000, 10), (1_000, 100)] {
        let region = Region::new(ALLOCATOR);
        let mut load = Load::at_rest(replica_sets, pods, Ages::Spread);
        let stats = region.change();
        let held = stats
            .bytes_allocated
            .saturating_sub(stats.bytes_deallocated);
        let bytes = held / (replica_sets as usize * pods as usize);
        let allocations = allocations_per_event(&mut load);
        println!("| {replica_sets} | {pods} | {bytes} | {allocations:.1} |");
    }
}

/// Returns the mean number of allocations from a steady event in to the end of its sync; the event itself is not counted.
fn allocations_per_event(load: &mut Load) -> f64 {
    let events: Vec<_> = (0..EVENTS).map(|_| load.steady_event()).collect();
    let region = Region::new(ALLOCATOR);
    for event in events {
        load.apply(event);
        assert!(load.poll().is_none(), "a steady event changes nothing");
    }
    let stats = region.change();
    (stats.allocations + stats.reallocations) as f64 / EVENTS as f64
}
