//! The state that all requests for the console share.

use std::sync::Arc;

use decree::json::Json;
use prost::Message;
use service::admission::{Pool, Yields};

use crate::backend::Backend;

/// The part of the server's configuration that the console needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsoleConfig {
    /// The maximum number of pages that are followed at a time; 0 turns the console off.
    pub streams_max: u8,
    /// Whether other machines may use the console in plain text.
    pub insecure: bool,
    /// The maximum number of sessions.
    pub sessions_max: usize,
    /// The maximum memory of all sessions together, in bytes.
    pub memory_max: usize,
}

/// The console of one server.
#[derive(Debug)]
pub(crate) struct ConsoleState {
    pub(crate) server: Arc<dyn Backend>,
    pub(crate) config: ConsoleConfig,
    json: Json,
    /// The slots of streams. A newcomer evicts the oldest stream of the network with most.
    pub(crate) pool: Arc<Pool<(), ()>>,
    /// Shared with each stream, to count the streams: they share the allowed time.
    pub(crate) streams: Arc<()>,
}

impl ConsoleState {
    pub(crate) fn new(server: Arc<dyn Backend>, config: ConsoleConfig) -> Self {
        let max = usize::from(config.streams_max);
        Self {
            server,
            config,
            json: Json::default(),
            pool: Pool::new(max, Yields::Oldest, ()),
            streams: Arc::default(),
        }
    }

    /// A message of the contract in the JSON of the pages, the same as `decree -o json` prints, by the message's name; `null` if JSON cannot
    /// express a value, such as a time after the year 9999.
    pub(crate) fn json(&self, name: &str, message: &impl Message) -> String {
        let text = self.json.text(name, message);
        text.unwrap_or_else(|_| "null".to_owned())
    }
}
