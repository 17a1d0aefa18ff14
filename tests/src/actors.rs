//! Server and agent as a world steps them: the real machines, without sockets.

mod agent;
mod clock;
mod decision_server;
pub mod malicious;
mod server;

pub use agent::{AgentActor, CREATES, OpenWatch, Process};
pub use clock::Clock;
pub use decision_server::DecisionServer;
pub use server::{Sent, ServerActor, disconnect, session_id};
