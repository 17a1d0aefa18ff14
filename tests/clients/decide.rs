//! One decision without a session, requested in each language.

use std::fs::File;

use tests::{binaries, running::output_of};

use crate::{language::Examples, world};

/// The victims of docs/examples/decide.json, as docs/grpcurl.md shows them.
const ANSWER: &str = "web-starting phase Pending vs Running\nweb-cheap deletion cost -10 < 0\n";

test_each_language! { decide:
    fn decide_in_go_names_the_victims() in go;
    fn decide_in_python_names_the_victims() in python;
}

fn decide(examples: &Examples) {
    let server = world::server("127.0.0.1:0");
    let snapshot = File::open(binaries::checkout().join("docs/examples/decide.json"));
    let mut command = examples.decide(&server.address("grpc"));
    command.stdin(snapshot.expect("it is there"));
    let [printed, _] = output_of(&mut command);
    assert_eq!(printed, ANSWER);
}
