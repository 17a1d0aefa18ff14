//! The open streams, so that a stream ends when its caller loses the permission.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use server_access::{Admission, Denial};

use super::caller::Caller;
use crate::capacity::EndSignal;

#[derive(Debug, Default)]
pub(super) struct Streams(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    open: BTreeMap<u64, StreamEntry>,
    /// The id of the next stream.
    next: u64,
}

#[derive(Debug)]
pub(super) struct StreamEntry {
    pub(super) caller: Caller,
    /// The id and the admission, if the stream is a session.
    pub(super) session: Option<(String, Admission)>,
    pub(super) end_signal: EndSignal,
}

/// The entry of an open stream. Dropping it removes the entry.
#[derive(Debug)]
pub(crate) struct OpenStream {
    streams: Arc<Streams>,
    number: u64,
}

impl Streams {
    pub(super) fn open(self: &Arc<Self>, stream: StreamEntry) -> OpenStream {
        let mut table = self.0.lock();
        table.next += 1;
        let number = table.next;
        table.open.insert(number, stream);
        drop(table);
        OpenStream {
            streams: Arc::clone(self),
            number,
        }
    }

    /// Extends the caller's session of this id until the credential of this call expires. Returns `false` without such a session.
    pub(super) fn renew(&self, caller: &Caller, session_id: &str) -> bool {
        let mut table = self.0.lock();
        let mut open = table.open.values_mut();
        let found =
            open.find(|it| it.is_session(session_id) && it.caller.identity == caller.identity);
        let renewed = found.map(|stream| stream.caller.expires = caller.expires);
        renewed.is_some()
    }

    pub(super) fn identity_of(&self, session_id: &str) -> Option<String> {
        let table = self.0.lock();
        let found = table.open.values().find(|it| it.is_session(session_id));
        found.map(|stream| stream.caller.identity.to_string())
    }

    /// Returns the streams that `check` denies and that have not been told to end yet.
    pub(super) fn check(
        &self,
        check: impl Fn(&Caller, Option<&Admission>) -> Result<(), Denial>,
    ) -> Vec<(Caller, EndSignal, Denial)> {
        let table = self.0.lock();
        let live = table
            .open
            .values()
            .filter(|stream| !stream.end_signal.is_sent());
        let denied = live.filter_map(|stream| {
            let admission = stream.session.as_ref().map(|(_, admission)| admission);
            let denial = check(&stream.caller, admission).err()?;
            Some((stream.caller.clone(), stream.end_signal.clone(), denial))
        });
        denied.collect()
    }
}

impl StreamEntry {
    fn is_session(&self, session_id: &str) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|(id, _)| id == session_id)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.streams.0.lock().open.remove(&self.number);
    }
}
