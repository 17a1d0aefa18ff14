//! The tests that wait the longest. Tests begin in the order of their names, so these begin first.
//!
//! The tier `journey` mostly waits, and cargo runs one binary at a time. So it is a module here, and its own binary runs only by its name.

#[path = "../journey/main.rs"]
mod journeys;
#[path = "shadow.rs"]
mod shadow;
#[path = "shards.rs"]
mod shards;
