//! The contract between servers and agents, as Rust types.
//!
//! The `.proto` files beside this file are the product. `build.rs` generates this crate from them.
//! `docs/protocol.md` states the rules of a session in words.
//!
//! The features `client` and `server` add the tonic code, and `json` adds canonical JSON. Without them the crate has only the messages.

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

/// The file format of session recordings, which is not part of the contract.
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

/// The contract and its imports as an encoded `google.protobuf.FileDescriptorSet`, comments included.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/decree.v1.bin"));

pub mod causes;
#[cfg(feature = "json")]
pub mod json;
