//! The memory of all sessions. Beyond the maximum, the largest session of the owner that holds most is ended. The session that grew waits
//! until that memory is released. It is refused only if it is the largest session itself.
//!
//! An ended session that reconnects is empty. Until it has its lists, it counts with its former size, so that it does not cause the end of
//! the next largest session, and so on.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    hash::{BuildHasher as _, Hash, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::Notify;

use crate::end_signal::EndSignal;

/// The maximum number of ended sessions whose size is remembered.
const ENDED_MAX: usize = 1_000;

/// The memory of all sessions, and its maximum.
#[derive(Debug)]
pub struct Memory<R> {
    held: AtomicUsize,
    max: usize,
    /// The reason for the sessions that must end.
    refusal: R,
    entries: Mutex<Entries<R>>,
    /// Notified when memory is released.
    given_back: Notify,
    hasher: RandomState,
}

#[derive(Debug)]
struct Entries<R> {
    next: u64,
    by_id: BTreeMap<u64, MemoryEntry<R>>,
    /// The sizes of ended sessions, by a hash of owner and cluster. The latest is last.
    ended: VecDeque<(u64, usize)>,
}

#[derive(Debug)]
struct MemoryEntry<R> {
    /// A hash of the owner.
    owner: u64,
    /// A hash of owner and cluster.
    session: u64,
    held: Arc<AtomicUsize>,
    /// The size when the session was last ended, until the session has its lists.
    held_before: usize,
    end: EndSignal<R>,
    is_ending: bool,
}

/// The entry of one session, removed on drop.
#[derive(Debug)]
pub struct MemoryShare<R> {
    memory: Arc<Memory<R>>,
    id: u64,
    held: Arc<AtomicUsize>,
    is_short: bool,
    has_settled: bool,
}

// === impl Memory ===

impl<R: Clone> Memory<R> {
    /// `max` is in bytes. `refusal` is the reason for the sessions that must end.
    pub fn new(max: usize, refusal: R) -> Self {
        Self {
            held: AtomicUsize::new(0),
            max,
            refusal,
            entries: Mutex::new(Entries {
                next: 0,
                by_id: BTreeMap::new(),
                ended: VecDeque::new(),
            }),
            given_back: Notify::new(),
            hasher: RandomState::new(),
        }
    }

    /// The empty entry of an owner's session of a cluster. `end` ends the session.
    pub fn share(
        self: &Arc<Self>,
        owner: impl Hash + Copy,
        cluster: impl Hash,
        end: EndSignal<R>,
    ) -> MemoryShare<R> {
        let held = Arc::<AtomicUsize>::default();
        let session = self.hasher.hash_one((owner, cluster));
        let mut entries = self.entries();
        let before = entries.ended.iter().find(|(ended, _)| *ended == session);
        let entry = MemoryEntry {
            owner: self.hasher.hash_one(owner),
            session,
            held: Arc::clone(&held),
            held_before: before.map_or(0, |(_, held)| *held),
            end,
            is_ending: false,
        };
        let id = entries.next;
        entries.next += 1;
        entries.by_id.insert(id, entry);
        drop(entries);
        MemoryShare {
            memory: Arc::clone(self),
            id,
            held,
            is_short: false,
            has_settled: false,
        }
    }
}

impl<R> Memory<R> {
    fn entries(&self) -> MutexGuard<'_, Entries<R>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Entries ===

impl<R> Entries<R> {
    fn is_any_ending(&self) -> bool {
        self.by_id.values().any(|entry| entry.is_ending)
    }

    /// The largest session of the owner that holds most. Among equals, `grower`, or else the oldest.
    fn largest(&self, grower: u64) -> Option<u64> {
        let mut by_owner = HashMap::<u64, usize>::new();
        for entry in self.by_id.values() {
            *by_owner.entry(entry.owner).or_default() += entry.size();
        }
        let rank = |(id, entry): &(&u64, &MemoryEntry<R>)| {
            let of_owner = by_owner.get(&entry.owner).copied();
            (of_owner, entry.size(), **id == grower, u64::MAX - **id)
        };
        self.by_id.iter().max_by_key(rank).map(|(id, _)| *id)
    }

    /// Marks a session as ending. Remembers its size, unless the session ends only because of its former size. Returns the signal that ends
    /// it.
    fn end(&mut self, id: u64) -> Option<EndSignal<R>>
    where
        R: Clone,
    {
        let entry = self.by_id.get_mut(&id)?;
        entry.is_ending = true;
        let (session, end) = (entry.session, entry.end.clone());
        let held = entry.held.load(Ordering::Relaxed);
        let held = Some(held).filter(|held| *held >= entry.held_before);
        self.ended.retain(|(ended, _)| *ended != session);
        if self.ended.len() == ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.extend(held.map(|held| (session, held)));
        Some(end)
    }
}

// === impl MemoryEntry ===

impl<R> MemoryEntry<R> {
    fn size(&self) -> usize {
        self.held.load(Ordering::Relaxed).max(self.held_before)
    }
}

// === impl MemoryShare ===

impl<R: Clone> MemoryShare<R> {
    /// Sets the memory of the session. If its growth exceeds the maximum of all sessions, this session becomes short of memory. Another
    /// session is then told to end, unless one is already ending.
    ///
    /// # Errors
    /// If this session has grown and is the session that must end.
    pub fn hold(&mut self, bytes: usize) -> Result<(), R> {
        let before = self.held.swap(bytes, Ordering::Relaxed);
        if bytes <= before {
            let all = self
                .memory
                .held
                .fetch_sub(before - bytes, Ordering::Relaxed);
            if all > self.memory.max && bytes < before {
                self.memory.given_back.notify_waiters();
            }
            return Ok(());
        }
        let more = bytes - before;
        let max = self.memory.max;
        if self.memory.held.fetch_add(more, Ordering::Relaxed) + more <= max {
            return Ok(());
        }
        let mut entries = self.memory.entries();
        if !entries.is_any_ending()
            && let Some(largest) = entries.largest(self.id)
            && let Some(end) = entries.end(largest)
        {
            let refusal = self.memory.refusal.clone();
            if largest == self.id {
                return Err(refusal);
            }
            end.send(refusal);
        }
        self.is_short = true;
        Ok(())
    }

    /// Forgets the former size of the session, which has its lists now: it is as large as it holds.
    pub fn settle(&mut self) {
        if std::mem::replace(&mut self.has_settled, true) {
            return;
        }
        let mut entries = self.memory.entries();
        if let Some(entry) = entries.by_id.get_mut(&self.id) {
            entry.held_before = 0;
            let session = entry.session;
            entries.ended.retain(|(ended, _)| *ended != session);
        }
    }

    /// Whether the session must not grow before there is [room](Self::room).
    pub const fn is_short(&self) -> bool {
        self.is_short
    }

    /// Waits until a session that is short of memory may grow or try again.
    pub async fn room(&mut self) {
        loop {
            let given_back = self.memory.given_back.notified();
            let held = self.memory.held.load(Ordering::Relaxed);
            if held <= self.memory.max || !self.memory.entries().is_any_ending() {
                break;
            }
            given_back.await;
        }
        self.is_short = false;
    }
}

impl<R> Drop for MemoryShare<R> {
    fn drop(&mut self) {
        self.memory.entries().by_id.remove(&self.id);
        let held = self.held.load(Ordering::Relaxed);
        self.memory.held.fetch_sub(held, Ordering::Relaxed);
        // Also if nothing was held: others may wait for the end of this session.
        self.memory.given_back.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
