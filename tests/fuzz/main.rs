//! Tier: arbitrary bytes from a peer, a file or a cluster, and the properties of the result for all of them.
//!
//! # Theory of operation
//! A [`Target`] has three parts: a generator of valid inputs in the external format, a check that accepts any bytes, and a
//! folder of saved inputs, `corpus/<name>`.
//!
//! ```text
//! seed ─▶ input: generated │ taken from the corpus ─▶ mutated, more often than not ─▶ check ─▶ reduced by proptest, on failure
//!                                                        bytes, runs, numbers, splices
//! ```
//! A generator that needs responses (a session) runs the state machine itself to reach deep states: its outcomes
//! answer the batches that the session sent. A check asserts properties that do not depend on the code under test: a separate account, the
//! same result twice, two ways to the same result, a limit. No check may panic.
//!
//! | target | input | what is asserted |
//! | --- | --- | --- |
//! | `frames` | records of a session | guards, ids, what is in flight, no decision on a partial view, bounded answers, the same frames twice |
//! | `decide` | a `DecideRequest` | what is created, deleted, adopted and released follows from the counts; the order of the input does not matter |
//! | `manifests` | YAML or JSON | `decide -f` and `--manifest` end by the rules of exit codes, say where, print no control character |
//! | `watch` | the bytes of a watch | the same events however they are cut; JSON and protobuf are read alike |
//! | `recordings` | a recording | a replay of what was recorded has no difference; a torn one differs nowhere before |
//!
//! An input depends only on the seed and its number: the same command generates the same inputs. A failure prints both, and writes the
//! reduced input to a file. Add this file to the corpus after you fix the fault. A check that takes
//! ten minutes also fails.
//!
//! ```sh
//! cargo test -p tests --test fuzz                                                    # the corpus, and 300 inputs for each target
//! DECREE_FUZZ_INPUTS=1000000 cargo test --release -p tests --test fuzz -- --nocapture
//! DECREE_FUZZ_INPUTS=1000000 DECREE_FUZZ_SECONDS=30 cargo test --release -p tests --test fuzz -- --nocapture
//! DECREE_FUZZ_SEED=7 DECREE_FUZZ_FIRST=4711 DECREE_FUZZ_INPUTS=1 cargo test -p tests --test fuzz frames
//! ```
//!
//! Coverage guidance is out of scope, because it needs a second build of each target.

mod author;
mod contract;
mod decide;
mod driver;
mod frames;
mod kubernetes;
mod manifests;
mod mutations;
mod recordings;
mod watch;

use driver::Target;

/// Makes a test of each target.
macro_rules! targets {
    ($($name:ident),*) => {$(
        mod $name {
            #[test]
            fn holds_for_all_inputs() {
                super::Target {
                    name: stringify!($name),
                    generate: crate::$name::generate,
                    check: crate::$name::check,
                }
                .run();
            }
        }
    )*};
}

mod targets {
    use super::Target;

    targets!(frames, decide, manifests, watch, recordings);
}
