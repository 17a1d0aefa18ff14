//! The memory of a controller, and what it leaves alone when there is too little: the largest objects.

use super::{Controller, ReadySync, RunningSync};
use crate::{
    held::Held,
    index::{Room, forgetting},
    queue::Priority,
    report::ControllerReport,
};

/// One part in this many of the memory is kept free beside objects that come back, so that these do not go again at once.
const SPARE: usize = 64;
/// The memory of the UID of an abandoned ReplicaSet, in bytes.
const ABANDONED_BYTES: usize = 200;

/// Keeps the memory of the controller within `max` bytes. If it takes more, the content of the largest objects is forgotten, the largest
/// first, and the ReplicaSets that need that content are quarantined. They come back when their content comes again: with a change of
/// theirs, or with a list that is requested when there is room. Returns `false` if the rest takes more than `max`.
pub fn keep_within(controller: &mut Controller, max: usize) -> bool {
    let (bytes, spare) = (controller.bytes(), max / SPARE);
    let beside = bytes - controller.index.bytes();
    controller.index.room = Room {
        max: max.saturating_sub(beside),
        spare,
    };
    if bytes <= max {
        return true;
    }
    for id in forgetting::forget_largest(&mut controller.index, bytes - max + spare) {
        if let Some(set) = controller.index.set(id)
            && let Some(quarantine) = set.quarantine()
        {
            let key = set.object.key.clone();
            let report = ControllerReport::BeyondMemory { key, quarantine };
            controller.reports.push_back(report);
        }
        controller.queue.add(id, Priority::Live);
    }
    controller.bytes() <= max
}

impl Held for Controller {
    fn bytes(&self) -> usize {
        let Self {
            config: _,
            index,
            // Not more than nodes.
            changed_nodes: _,
            nodes_awaited: _,
            queue,
            reports,
            // At most one of each kind, with a constant cause.
            requests: _,
            quarantined,
            miscounted,
            unavailable,
            obstacles,
            streams: _,
            unconfirmed: _,
            went_back: _,
            running,
            abandoned,
            in_flight,
            waiting,
            answered,
            without_room,
            lists_at: _,
            next_batch: _,
            clock: _,
        } = self;
        index.bytes()
            + queue.bytes()
            + reports.bytes()
            + quarantined.bytes()
            + miscounted.bytes()
            + unavailable.bytes()
            + obstacles.bytes()
            + running.bytes()
            + abandoned.len() * ABANDONED_BYTES
            + in_flight.bytes()
            + waiting.bytes()
            + answered.bytes()
            + without_room.bytes()
    }
}

impl Held for RunningSync {
    fn bytes(&self) -> usize {
        let Self { batch: _, step } = self;
        size_of::<Self>() + step.bytes()
    }
}

impl Held for ReadySync {
    fn bytes(&self) -> usize {
        let Self { set: _, answered } = self;
        let answered = answered.as_ref();
        let answered = answered.map_or(0, |(step, result)| step.bytes() + result.bytes());
        size_of::<Self>() + answered
    }
}
