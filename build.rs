//! Compiles the contract with protox, so that no `protoc` is needed, to prost messages and tonic services.

use std::{env, error::Error, fs, path::PathBuf};

/// What is served.
const SERVICES: [&str; 2] = [
    "decree/v1/decision_service.proto",
    "decree/v1/inspection_service.proto",
];
/// The service that users provide. It is no part of what reflection shows.
const OF_USERS: &str = "decree/v1/scale_in_service.proto";
/// What files hold.
const RECORDING: &str = "decree/recording/v1/recording.proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto/decree");
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(SERVICES)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(
        out.join("decree.v1.bin"),
        compiler.encode_file_descriptor_set(),
    )?;
    compiler.open_file(OF_USERS)?;
    fs::write(
        out.join("contract.bin"),
        compiler.encode_file_descriptor_set(),
    )?;
    compiler.open_file(RECORDING)?;
    tonic_prost_build::configure()
        .build_client(true)
        .build_server(true)
        .build_transport(env::var_os("CARGO_FEATURE_CONNECT").is_some())
        .client_mod_attribute(".", "#[cfg(feature = \"client\")]")
        .server_mod_attribute(".", "#[cfg(feature = \"server\")]")
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
