//! The two halves as a world steps them: the real machines, without sockets.

mod agent;
mod clock;
pub mod foreign;
mod machine;
mod server;

pub use agent::{AgentActor, CREATES, OpenWatch, Process};
pub use clock::Clock;
pub use machine::Machine;
pub use server::{Sent, ServerActor, disconnect, session_id};
