//! The harness that the tiers share.

pub mod golden;
