//! Generates `DecisionService` of messages that are bytes: a session reads its frames item by item, and decisions are read and written by
//! the threads that compute them.

use tonic_build::manual::{Builder, Method, Service};

const BYTES: &str = "bytes::Bytes";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let method = |name: &str, route: &str| {
        let method = Method::builder().name(name).route_name(route);
        let method = method.input_type(BYTES).output_type(BYTES);
        method.codec_path("crate::codec::BytesCodec")
    };
    let reconcile = method("reconcile", "Reconcile");
    let service = Service::builder()
        .name("DecisionService")
        .package("decree.v1")
        .method(reconcile.client_streaming().server_streaming().build())
        .method(method("decide", "Decide").build())
        .method(method("simulate", "Simulate").build())
        .method(method("renew_session", "RenewSession").build())
        .build();
    Builder::new().build_client(false).compile(&[service]);
}
