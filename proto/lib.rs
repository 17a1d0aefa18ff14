//! The contract between those who decide and those who execute, as Rust types.
//!
//! The `.proto` files beside this one are the product; this crate is what `build.rs` makes of them.
//! `docs/protocol.md` states the rules of a session in words.
//!
//! The features `client` and `server` add the tonic halves, and `json` canonical JSON; without them the crate is messages only.

/// Version 1 of the contract.
pub mod v1 {
    #![allow(
        unused_qualifications,
        clippy::all,
        clippy::use_self,
        reason = "generated; the documentation is in the .proto files"
    )]
    include!(concat!(env!("OUT_DIR"), "/decree.v1.rs"));
}

/// Recordings of sessions, version 1: the format of files, which is no part of the contract.
pub mod recording {
    /// Version 1 of the format.
    pub mod v1 {
        #![allow(
            unused_qualifications,
            clippy::all,
            reason = "generated; the documentation is in the .proto file"
        )]
        include!(concat!(env!("OUT_DIR"), "/decree.recording.v1.rs"));
    }
}

/// Holds the contract and everything it imports as an encoded `google.protobuf.FileDescriptorSet`, comments included.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/decree.v1.bin"));

pub mod causes;
#[cfg(feature = "json")]
pub mod json;
mod trace_context;

pub use trace_context::TraceContext;
