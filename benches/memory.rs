//! The memory of a pod in the core, in bytes, counted by the allocator. The table is in docs/internals/benchmarks.md.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tests::load::{Ages, Load};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The number of ReplicaSets without pods in the mean size of a ReplicaSet.
const REPLICA_SETS: u32 = 1_000;
/// The number of events in the mean allocations per event.
const EVENTS: usize = 10_000;

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn main() {
    println!("| ReplicaSets | pods in each | bytes a pod | allocations an event |");
    println!("| ---: | ---: | ---: | ---: |");
    for (replica_sets, pods) in [(1, 10_000), (1, 100_000), (1_000, 10), (1_000, 100)] {
        let mut load = Load::at_rest(replica_sets, pods, Ages::Spread);
        let allocations = allocations_per_event(&mut load);
        let bytes = held_by(load) / (replica_sets as usize * pods as usize);
        println!("| {replica_sets} | {pods} | {bytes} | {allocations:.1} |");
    }
    let alone = held_by(Load::at_rest(REPLICA_SETS, 0, Ages::Spread)) / REPLICA_SETS as usize;
    println!("\nA ReplicaSet without pods takes {alone} bytes.");
}

/// The bytes that the controller of a load holds, which its drop frees. The memory of the load itself does not count.
fn held_by(load: Load) -> usize {
    let controller = load.into_controller();
    let region = Region::new(ALLOCATOR);
    drop(controller);
    let stats = region.change();
    stats.bytes_deallocated - stats.bytes_allocated
}

/// The mean number of allocations from a steady event to the end of its sync, without the allocations of the event itself.
fn allocations_per_event(load: &mut Load) -> f64 {
    let events: Vec<_> = (0..EVENTS).map(|_| load.steady_event()).collect();
    let region = Region::new(ALLOCATOR);
    load.stay_steady(events);
    let stats = region.change();
    (stats.allocations + stats.reallocations) as f64 / EVENTS as f64
}
