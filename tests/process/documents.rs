//! The commands that the documents show print what the documents show.

use tests::{binaries, tools};

use crate::{console, world};

#[test]
fn calls_of_the_documents_answer_as_shown() {
    let Some(grpcurl) = tools::grpcurl() else {
        return;
    };
    let server = world::server("127.0.0.1:0");
    let address = server.address("grpc");
    let _agent = world::agent(&address);
    world::wait_until_converged(&address, 2);
    for step in console::steps("calls_of_the_documents_answer_as_shown") {
        step.run(&[grpcurl], &address);
    }
}

#[test]
fn decisions_of_the_documents_are_as_shown() {
    for step in console::steps("decisions_of_the_documents_are_as_shown") {
        step.run(&[binaries::folder()], "");
    }
}
