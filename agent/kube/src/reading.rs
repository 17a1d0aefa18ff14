//! Lists in pages, and watches in frames of protobuf or lines of JSON.

use std::{collections::HashSet, hash::BuildHasher as _, sync::Arc, time::Duration};

use agent_core::{
    api::{ApiError, Kind},
    cluster::{EventStream, PageStream},
    watch::{List, WatchEvent},
};
use bytes::{Buf as _, Bytes, BytesMut};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use tokio::time::timeout;

use crate::{
    codec::{self, Page},
    connect::ResponseBody,
    objects::Unreadable,
    requests::{self, Scope},
    transport::{TOO_LONG, Transport},
};

/// An open watch. The reader's task does the work, so a slow reader slows the watch, and loses nothing.
#[derive(Debug)]
pub struct Events {
    body: ResponseBody,
    reader: EventReader,
}

/// A list that is read page by page.
#[derive(Debug)]
pub struct Pages {
    transport: Transport,
    scope: Arc<Scope>,
    kind: Kind,
    next: Next,
    /// How often the list has begun.
    begun: usize,
    /// The most objects of the next page.
    limit: usize,
    /// The tokens since the list began.
    tokens: Tokens,
}

/// The hashes of the tokens of a list, which tell whether it ends.
#[derive(Debug, Default)]
pub(crate) struct Tokens(HashSet<u64>);

#[derive(Clone, Debug)]
enum Next {
    First,
    After(String),
    Nothing,
}

/// The most objects of a page: what kubectl and client-go request.
pub(crate) const PAGE_MAX: usize = 500;
/// The most pages of a list: ten million objects.
const PAGES_MAX: usize = 20_000;
/// By which factor a page shrinks if it was too long.
pub(crate) const SHRINK: usize = 8;
/// How often a list begins again because its pages went out of date.
const LISTS_MAX: usize = 5;
/// How long a watch runs before the API server ends it.
pub(crate) const WATCH_SECONDS: u64 = 300;
/// How long a watch may be silent: bookmarks come about every minute.
const SILENCE_MAX: Duration = Duration::from_secs(90);
/// The most events of a chunk, all projected before the agent does anything else.
const CHUNK_MAX: usize = 256;
/// The longest event of a watch; an API server accepts objects of 3 MiB.
const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The length before each frame.
const LENGTH_BYTES: usize = 4;

pub(crate) fn list(transport: Transport, scope: Arc<Scope>, kind: Kind) -> Pages {
    Pages {
        transport,
        scope,
        kind,
        next: Next::First,
        begun: 1,
        limit: PAGE_MAX,
        tokens: Tokens::default(),
    }
}

/// Reads the newest version of a kind, with one object at most.
pub(crate) async fn newest_version(
    transport: &Transport,
    scope: &Scope,
    kind: Kind,
) -> Result<String, ApiError> {
    let path = scope.page(kind, 1, None)?;
    let page = transport.fetch(requests::read(&path, codec::OBJECTS)?);
    let page = codec::page(kind, true, &page.await?).map_err(unreadable)?;
    Ok(page.list.resource_version)
}

pub(crate) async fn watch(
    transport: &Transport,
    scope: &Scope,
    kind: Kind,
    from: &str,
) -> Result<Events, ApiError> {
    let path = scope.watch(kind, from, WATCH_SECONDS)?;
    let body = transport
        .open(requests::read(&path, codec::EVENTS)?)
        .await?;
    Ok(Events::new(body, kind))
}

/// Reads the events of a watch from its bytes, which may come in any pieces.
#[derive(Debug)]
pub struct EventReader {
    kind: Kind,
    /// The bytes that make no whole event yet.
    buffer: BytesMut,
    /// How many bytes of the buffer have no line end.
    searched: usize,
}

impl PageStream for Pages {
    /// Returns the next page; `None` after the last, or after an error. If the pages go out of date (410), the list begins again from the
    /// newest state, with a first page. It also begins again if a token would continue from an inconsistent state. A page that is too long
    /// is requested again with fewer objects, and each page that fits lets the next have twice as many. Endless pages are an error.
    async fn next(&mut self) -> Option<Result<List, ApiError>> {
        loop {
            let next = std::mem::replace(&mut self.next, Next::Nothing);
            let token = match &next {
                Next::First => None,
                Next::After(token) => Some(token.as_str()),
                Next::Nothing => return None,
            };
            match self.page(token).await {
                Err(error)
                    if error.code == Some(410) && token.is_some() && self.begun < LISTS_MAX =>
                {
                    self.begun += 1;
                    self.tokens = Tokens::default();
                    self.next = Next::First;
                }
                Err(error) if error.reason == TOO_LONG && self.limit > 1 => {
                    self.limit = self.limit.div_ceil(SHRINK);
                    self.next = next;
                }
                Err(error) => return Some(Err(error)),
                Ok(page) => {
                    self.limit = PAGE_MAX.min(2 * self.limit);
                    return Some(self.take(page));
                }
            }
        }
    }
}

impl Tokens {
    /// Takes the token of the next page.
    ///
    /// # Errors
    /// If the list would never end.
    pub(crate) fn take(&mut self, token: &str) -> Result<(), ApiError> {
        let hash = self.0.hasher().hash_one(token);
        if !self.0.insert(hash) {
            return Err(endless("a token comes again"));
        }
        if self.0.len() >= PAGES_MAX {
            return Err(endless(&format!("it has more than {PAGES_MAX} pages")));
        }
        Ok(())
    }
}

impl Pages {
    fn take(&mut self, page: Page) -> Result<List, ApiError> {
        if let Some(token) = page.next {
            self.tokens.take(&token)?;
            self.next = Next::After(token);
        }
        Ok(page.list)
    }

    async fn page(&self, token: Option<&str>) -> Result<Page, ApiError> {
        let path = self.scope.page(self.kind, self.limit, token)?;
        let request = requests::read(&path, codec::OBJECTS)?;
        let page = self.transport.fetch(request).await?;
        let read = codec::page(self.kind, token.is_none(), &page);
        read.map_err(|error| codec::status(&page).unwrap_or_else(|| unreadable(error)))
    }
}

impl EventStream for Events {
    /// Returns the next events; `None` once the watch has ended or is silent for too long.
    async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        loop {
            let chunk = self.reader.take_events();
            if !chunk.is_empty() {
                return Some(chunk);
            }
            if self.reader.is_full() {
                return Some(vec![self.reader.give_up()]);
            }
            self.read().await?;
        }
    }
}

impl Events {
    pub(crate) fn new(body: ResponseBody, kind: Kind) -> Self {
        let reader = EventReader::new(kind);
        Self { body, reader }
    }

    /// Returns the next line of a watch in JSON; `None` once the watch has ended, is silent for too long, or has a line that is too long.
    pub(crate) async fn next_line(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.reader.line() {
                return Some(line);
            }
            if self.reader.is_full() {
                return None;
            }
            self.read().await?;
        }
    }

    async fn read(&mut self) -> Option<()> {
        let frame = timeout(SILENCE_MAX, self.body.frame()).await;
        let frame = frame.ok()??.ok()?;
        if let Ok(data) = frame.into_data() {
            self.reader.push(&data);
        }
        Some(())
    }
}

impl EventReader {
    /// Creates the reader of a watch on this kind.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            buffer: BytesMut::new(),
            searched: 0,
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next complete events, at most 256; none if more bytes must come.
    pub fn take_events(&mut self) -> Vec<WatchEvent> {
        let kind = self.kind;
        let mut events = Vec::new();
        while events.len() < CHUNK_MAX {
            let event = match self.buffer.first() {
                // A frame begins with its length in four bytes. The first byte is 0 for each accepted length.
                Some(0) => self.frame().map(|frame| Some(codec::frame(kind, frame))),
                Some(_) => self.line().map(|line| {
                    let is_blank = line.iter().all(u8::is_ascii_whitespace);
                    (!is_blank).then(|| codec::line(kind, &line))
                }),
                None => None,
            };
            match event {
                Some(event) => events.extend(event),
                None => break,
            }
        }
        events
    }

    fn is_full(&self) -> bool {
        self.buffer.len() > EVENT_BYTES_MAX
    }

    /// Drops an event that is too long: only a new list tells its content.
    fn give_up(&mut self) -> WatchEvent {
        self.buffer.clear();
        self.searched = 0;
        let mebibytes = EVENT_BYTES_MAX / 1024 / 1024;
        codec::unreadable_event(&format!("it is longer than {mebibytes} MiB"))
    }

    fn frame(&mut self) -> Option<Bytes> {
        let length = u32::from_be_bytes(*self.buffer.first_chunk()?);
        let length = usize::try_from(length).ok()?;
        if self.buffer.len() - LENGTH_BYTES < length {
            return None;
        }
        self.buffer.advance(LENGTH_BYTES);
        Some(self.buffer.split_to(length).freeze())
    }

    fn line(&mut self) -> Option<Bytes> {
        let mut fresh = self.buffer[self.searched..].iter();
        let Some(length) = fresh.position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.searched + length);
        self.buffer.advance(1);
        self.searched = 0;
        Some(line.freeze())
    }
}

/// The error of a list that would never end.
fn endless(why: &str) -> ApiError {
    ApiError::no_answer(format!("the list does not end: {why}"))
}

/// Reads JSON of another kind.
pub(crate) fn decoded<'de, T: Deserialize<'de>>(text: &'de Bytes) -> Result<T, ApiError> {
    serde_json::from_slice(text).map_err(|error| unreadable(error.into()))
}

/// The error of an answer that is no list: no better than no answer.
pub(crate) fn unreadable(error: Unreadable) -> ApiError {
    ApiError::no_answer(format!("unreadable answer: {error}"))
}

#[cfg(test)]
mod tests;
