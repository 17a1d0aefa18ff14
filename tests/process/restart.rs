//! Two real processes: they converge, and drain on SIGTERM. `kube` kills them.

use crate::world;

#[test]
fn two_processes_converge_and_drain() {
    let server = world::server("127.0.0.1:0");
    let address = server.address("grpc");
    let agent = world::agent(&address);
    world::wait_until_converged(&address, 2);

    server.terminate();
    server.wait_for_message("draining", 1);
    let ended = server.wait();
    assert_eq!(ended.code(), Some(0), "the server drained");
    agent.wait_for_message("the server drains", 1);
    let lines = agent.tail();
    let errors = lines
        .iter()
        .filter(|line| line.contains(r#""level":"ERROR""#));
    assert_eq!(errors.collect::<Vec<_>>(), [""; 0], "a drain is no error");
    agent.terminate();
    let ended = agent.wait();
    assert_eq!(ended.code(), Some(0), "the agent drained");
}
