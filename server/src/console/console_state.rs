//! What all requests for the console share.

use std::sync::{Arc, atomic::AtomicU32};

use super::json::Json;
use crate::{capacity::Places, shared::Shared};

/// The console of one server.
#[derive(Debug)]
pub(super) struct ConsoleState {
    pub(super) shared: Arc<Shared>,
    pub(super) json: Json,
    /// The places of streams; a newcomer displaces the oldest.
    pub(super) places: Arc<Places>,
    /// How many streams there are, which share the time that they may take.
    pub(super) streams: AtomicU32,
}

// === impl ConsoleState ===

impl ConsoleState {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let max = usize::from(shared.config.limits.console_streams_max);
        Self {
            shared,
            json: Json::default(),
            places: Places::new(max, max),
            streams: AtomicU32::new(0),
        }
    }
}
