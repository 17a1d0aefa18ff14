//! Server and agent run soon after a wait: each of their threads has the short time slice of decision 57.

use std::{fs, thread, time::Duration};

use tests::running::Running;

use crate::world;

/// The time slice of decision 57, in nanoseconds.
const SHORT: &str = "100000";

#[test]
fn threads_of_both_halves_have_short_time_slices() {
    if !is_granted() {
        eprintln!("skipped: this system grants no time slices of another length (Linux 6.12 does)");
        return;
    }
    let server = world::server("127.0.0.1:0");
    let address = server.address("grpc");
    let agent = world::agent(&address);
    world::wait_until_converged(&address, 2);
    for program in [&server, &agent] {
        let slices = slices(program);
        let are_short = slices.iter().all(|slice| slice == SHORT);
        assert!(are_short && !slices.is_empty(), "{slices:?}");
    }
}

/// Whether the system grants a thread its requested time slice, and shows it to others.
fn is_granted() -> bool {
    let asked = Duration::from_micros(100);
    let granted = thread::spawn(move || {
        let requested = time_slice::request(asked);
        requested.and_then(|()| time_slice::of_this_thread())
    });
    let granted = granted.join().expect("it ends").ok().flatten();
    granted == Some(asked) && fs::exists("/proc/self/sched").is_ok_and(|it| it)
}

/// The time slice of each thread, in nanoseconds (proc(5), and the kernel's `kernel/sched/debug.c`).
fn slices(program: &Running) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{}/task", program.id())).expect("it runs");
    let threads = threads.map(|thread| thread.expect("it can be read").path().join("sched"));
    // A thread that waits for work may end meanwhile.
    let texts = threads.filter_map(|file| fs::read_to_string(file).ok());
    texts.filter_map(|text| slice(&text)).collect()
}

fn slice(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("se.slice"))?;
    let (_, value) = line.split_once(':')?;
    Some(value.trim().to_owned())
}
