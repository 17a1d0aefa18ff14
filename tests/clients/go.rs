//! The tests of the modules in Go, at a real server.

use std::process::Command;

use tests::{binaries, running::output_of, tools};

use crate::world;

/// The modules with tests; each finds the server in the environment variable `DECREE_SERVER`.
const MODULES: [&str; 3] = [
    "clients/go",
    "clients/go/kube",
    "examples/controller-runtime",
];

#[test]
fn tests_in_go_succeed() {
    tests::or_skip!(tools::go_examples());
    let server = world::server("127.0.0.1:0");
    for module in MODULES {
        let mut command = Command::new("go");
        command.current_dir(binaries::checkout().join(module));
        command.args(["test", "-count=1", "./..."]);
        output_of(command.env("DECREE_SERVER", server.address("grpc")));
    }
}
