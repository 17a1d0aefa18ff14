//! Tier: architecture and style, proven from the files themselves. Fast and offline.

mod dependencies;
mod documents;
mod files;
mod modules;
mod sizes;
mod words;
