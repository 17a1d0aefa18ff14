//! The two halves as a world steps them: the real machines, without sockets.

mod agent;
mod server;

pub use agent::{AgentActor, CREATES, OpenWatch, Process};
pub use server::{Sent, ServerActor, disconnect};
