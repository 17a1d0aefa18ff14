//! The contract between servers and agents, as Rust types, which `build.rs` generates from the `.proto` files beside this file.
#![doc = include_str!("README.md")]

/// Version 1 of the contract.
pub mod v1 {
    #![allow(
        unused_qualifications,
        clippy::all,
        clippy::too_many_lines,
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

/// The services of servers and their imports as an encoded `google.protobuf.FileDescriptorSet`, comments included.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/decree.v1.bin"));

/// The same with the service that users provide: the whole contract.
pub const CONTRACT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/contract.bin"));

#[doc(hidden)]
pub mod causes;
#[cfg(feature = "json")]
pub mod json;
