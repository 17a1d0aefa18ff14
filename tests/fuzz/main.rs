//! Tier: what a peer, a file or a cluster may say, in any bytes, and what must be true of the answer whatever they are.
//!
//! # Theory of operation
//! A [`Target`] is three things: a generator of valid inputs in the format in which they come from outside, a check that takes any bytes, and a
//! folder of inputs that are kept, `corpus/<name>`.
//!
//! ```text
//! seed ─▶ input: generated │ taken from the corpus ─▶ mutated, more often than not ─▶ check
//!                                                        bytes, runs, numbers, splices
//! ```
//! A generator that needs answers to go on (a session) runs the machine itself, so that the depth is reached: outcomes
//! answer batches that were sent. A check asserts what is independent of the code under test: an account of its own, the
//! same result twice, two ways to the same end, a bound. That nothing panics goes without saying.
//!
//! | target | input | what is asserted |
//! | --- | --- | --- |
//! | `frames` | records of a session | guards, ids, what is in flight, no decision on a partial view, bounded answers, the same frames twice |
//! | `decide` | a `DecideRequest` | what is created, deleted, adopted and released follows from the counts; the order of the input does not matter |
//! | `manifests` | YAML or JSON | `decide -f` and `--manifest` end by the rules of exit codes, say where, print no control character |
//! | `watch` | the bytes of a watch | the same events however they are cut; JSON and protobuf are read alike |
//! | `selectors` | a selector and labels | refused or matched as a second implementation says |
//! | `configuration` | a TOML file | a file means what the same flags mean; a refusal names the file |
//! | `recordings` | a recording | a replay of what was recorded has no difference; a torn one differs nowhere before |
//!
//! An input is a function of the seed and its number: the same command tries the same inputs. A failure prints both, and writes the
//! input, made smaller, to a file that belongs into the corpus once the fault is mended. A check that takes a minute
//! of a processor, or waits for ten, is a failure too: it ends the process.
//!
//! ```sh
//! cargo test -p tests --test fuzz                                                    # the corpus, and 300 inputs for each target
//! DECREE_FUZZ_INPUTS=1000000 cargo test --release -p tests --test fuzz -- --nocapture
//! DECREE_FUZZ_INPUTS=1000000 DECREE_FUZZ_SECONDS=30 cargo test --release -p tests --test fuzz -- --nocapture
//! DECREE_FUZZ_SEED=7 DECREE_FUZZ_FIRST=4711 DECREE_FUZZ_INPUTS=1 cargo test -p tests --test fuzz frames
//! ```
//!
//! Deliberately outside: guidance by coverage, for which each target would have to be built a second time.

mod author;
mod configuration;
mod contract;
mod decide;
mod driver;
mod frames;
mod kubernetes;
mod manifests;
mod mutations;
mod progress;
mod recordings;
mod selectors;
mod watch;

use driver::Target;

/// Makes one test of each target.
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

    targets!(
        frames,
        decide,
        manifests,
        watch,
        selectors,
        configuration,
        recordings
    );
}
