//! What all requests for the console share.

use std::sync::{Arc, atomic::AtomicU32};

use admission::Places;

use crate::{backend::Backend, json::Json};

/// What the console is told of its server's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsoleConfig {
    /// How many pages are followed at a time; 0 turns the console off.
    pub streams_max: u8,
    /// Whether other machines may be shown the console in plain text.
    pub insecure: bool,
    /// The limits that the page of sessions shows.
    pub limits: SessionLimits,
}

/// What sessions may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionLimits {
    /// How many sessions there may be.
    pub sessions_max: usize,
    /// How many bytes they may hold together.
    pub memory_max: usize,
    /// How many bytes one may hold.
    pub session_memory_max: usize,
    /// How many objects one may hold.
    pub objects_max: usize,
}

/// The console of one server.
#[derive(Debug)]
pub(crate) struct ConsoleState {
    pub(crate) server: Arc<dyn Backend>,
    pub(crate) config: ConsoleConfig,
    pub(crate) json: Json,
    /// The places of streams; a newcomer displaces the oldest.
    pub(crate) places: Arc<Places<()>>,
    /// How many streams there are, which share the time that they may take.
    pub(crate) streams: AtomicU32,
}

// === impl ConsoleState ===

impl ConsoleState {
    pub(crate) fn new(server: Arc<dyn Backend>, config: ConsoleConfig) -> Self {
        let max = usize::from(config.streams_max);
        Self {
            server,
            config,
            json: Json::default(),
            places: Places::new(max, max),
            streams: AtomicU32::new(0),
        }
    }
}
