//! `decree demo` as a shell starts it.

use super::{Ended, decree, system::says};
use crate::Exit;

/// The parts in their order. `…` stands for anything.
const PARTS: &str =
    "A server, an agent and a cluster of three nodes, all in this process. Ctrl-C ends…
1. Ask which pods would go
$ decree simulate web-old --replicas 2
…delete   web-old-2xk7d   NOT_READY …
$ decree demo scale web-old 2
replicaset.apps/web-old scaled to 2
…Last scale-down: 7 → 2 …
2. Kill the server during a scale-up
…The server is killed; at least … of 40 pods exist.
…ok: 40 creates made 40 pods: none was created twice, and none was deleted
…
3. Stop a rogue server and a mistake
…delete all pods of web-new: 0 done, 40 refused: 40 pods are active, 0 being deleted, 40 desired
delete 2 pods of others: 0 done, 2 refused: pod default/web-old-…
create 40 more pods: 0 done, 40 refused: 40 pods are active, 0 being created, 40 desired
ok: the agent did none of it
…Held back:   by the agent: …
$ decree resume web-new --agent http://127.0.0.1:…
4. Explain what a quota refuses
…Refused:     QUOTA…
5. Compare with another controller
…Unexplained: 1
…ok: the agent in shadow mode wrote nothing

All 5 parts went as expected, in … s.
…
  decree up --cluster kubernetes
";

#[test]
fn each_part_goes_as_told() {
    let Ended { exit, out, err } = decree(&["demo", "--fast"]);
    assert_eq!((exit, err.as_str()), (Exit::Done, ""), "{out}");
    let joined = out.replace("\n    ", " ");
    assert!(says(PARTS, &joined), "{PARTS}\nsaid:\n{out}");
}

#[test]
fn part_that_does_not_come_to_its_end_is_named() {
    let ended = decree(&["demo", "--deadline", "1ms"]);
    assert_eq!(ended.exit, Exit::No);
    let expected = "error: …after 0.001 s, …\nhint: allow more time with --deadline, …\n";
    assert!(says(expected, &ended.err), "{}", ended.err);
}
