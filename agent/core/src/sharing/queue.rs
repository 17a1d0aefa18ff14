//! The waiting input of one shard: the pages of its list, and the events after it.

use std::{collections::VecDeque, task::Poll};

use crate::{
    api::{ApiError, parse_version},
    watch::{List, Part, WatchEvent},
};

/// How many events a shard takes at once.
const CHUNK_MAX: usize = 256;

/// The queue of one list of a shard. Owned and changed by one [`Sharing`](super::Sharing).
#[derive(Debug)]
pub(super) struct ShardQueue {
    pub(super) number: u64,
    pub(super) state: State,
    pages: VecDeque<Result<List, ApiError>>,
    pub(super) events: VecDeque<WatchEvent>,
    /// The version of the newest event that was taken.
    taken: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No list has begun since the request.
    Asking,
    Listing,
    /// The last page has come.
    Listed,
    /// The list failed, or events are missing.
    Lost,
}

// === impl ShardQueue ===

impl ShardQueue {
    pub(super) const fn new(number: u64) -> Self {
        Self {
            number,
            state: State::Asking,
            pages: VecDeque::new(),
            events: VecDeque::new(),
            taken: None,
        }
    }

    pub(super) const fn is_fed(&self) -> bool {
        matches!(self.state, State::Listing | State::Listed)
    }

    /// Adds a page. True if it is news: an empty page between others is none.
    pub(super) fn push_page(&mut self, page: List) -> bool {
        if page.part.ends() {
            self.state = State::Listed;
        }
        let is_news = page.part != Part::Middle || page.count() > 0;
        if is_news {
            self.pages.push_back(Ok(page));
        }
        is_news
    }

    /// Ends the list without its last page.
    pub(super) fn fail(&mut self, error: ApiError) {
        self.pages.push_back(Err(error));
        self.events.clear();
        self.state = State::Lost;
    }

    /// Adds an event. True if it was taken. A bookmark replaces a waiting one.
    pub(super) fn push_event(&mut self, event: WatchEvent) -> bool {
        if !self.is_fed() {
            return false;
        }
        if let (Some(WatchEvent::Bookmark(last)), WatchEvent::Bookmark(next)) =
            (self.events.back_mut(), &event)
        {
            last.clone_from(next);
            return true;
        }
        self.events.push_back(event);
        true
    }

    /// Makes the shard list again, after it learns the version reached before. A list under way contains the lost changes, so the shard
    /// needs none of the waiting events.
    pub(super) fn lose(&mut self, reached: Option<u64>, error: &ApiError) {
        self.events.clear();
        if self.state == State::Listed {
            let reached = reached.map(|version| WatchEvent::Elsewhere(version.to_string()));
            self.events.extend(reached);
            self.events.push_back(WatchEvent::Error(error.clone()));
            self.state = State::Lost;
        }
    }

    /// Makes the shard list again because too many events wait for it, in any state of its list.
    pub(super) fn fall_behind(&mut self, error: ApiError) {
        match self.state {
            State::Listing => self.fail(error),
            State::Asking | State::Listed | State::Lost => self.lose(None, &error),
        }
    }

    /// True if the last event tells the shard to list again.
    pub(super) fn has_error(&self) -> bool {
        matches!(self.events.back(), Some(WatchEvent::Error(_)))
    }

    /// True if no event after this version has been taken.
    pub(super) fn continues(&self, from: &str) -> bool {
        let is_behind = parse_version(from).is_some_and(|from| Some(from) < self.taken);
        self.state == State::Listed && !is_behind
    }

    /// The next page, `None` after the last.
    pub(super) fn poll_page(&mut self) -> Poll<Option<Result<List, ApiError>>> {
        match (self.pages.pop_front(), self.state) {
            (Some(page), _) => Poll::Ready(Some(page)),
            (None, State::Asking | State::Listing) => Poll::Pending,
            (None, State::Listed | State::Lost) => Poll::Ready(None),
        }
    }

    /// The next events. Without events, `None` if the shard must list again or the watch `is_out`.
    pub(super) fn poll_events(&mut self, is_out: bool) -> Poll<Option<Vec<WatchEvent>>> {
        if self.events.is_empty() {
            let has_ended = is_out || self.state == State::Lost;
            return if has_ended {
                Poll::Ready(None)
            } else {
                Poll::Pending
            };
        }
        let count = self.events.len().min(CHUNK_MAX);
        let chunk: Vec<_> = self.events.drain(..count).collect();
        if self.events.is_empty() {
            self.events.shrink_to(CHUNK_MAX);
        }
        let versions = chunk.iter().filter_map(WatchEvent::version);
        self.taken = versions.filter_map(parse_version).max().max(self.taken);
        Poll::Ready(Some(chunk))
    }
}
