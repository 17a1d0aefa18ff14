//! Compiles the contract with protox, so that no `protoc` is needed, to prost messages and tonic services.

use std::{env, error::Error, fs, path::PathBuf};

const FILES: [&str; 2] = [
    "decree/v1/decision_service.proto",
    "decree/v1/inspection_service.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto/decree");
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(FILES)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(
        out.join("decree.v1.bin"),
        compiler.encode_file_descriptor_set(),
    )?;
    tonic_prost_build::configure()
        .build_client(true)
        .build_server(true)
        .build_transport(false)
        .client_mod_attribute(".", "#[cfg(feature = \"client\")]")
        .server_mod_attribute(".", "#[cfg(feature = \"server\")]")
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
