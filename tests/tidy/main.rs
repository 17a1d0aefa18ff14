//! Tier: architecture and style, proven from the files themselves. Fast and offline.

mod clock;
mod commands;
mod dependencies;
mod documents;
mod files;
mod forms;
mod gate;
mod pictures;
mod prose;
mod readme;
mod sizes;
mod words;
