//! Draws inputs with proptest, checks them, and reduces a failing input.

use std::{
    env, fs, panic,
    path::PathBuf,
    sync::mpsc::{self, RecvTimeoutError, SyncSender},
    thread,
    time::{Duration, Instant},
};

use proptest::{
    collection::vec,
    prelude::*,
    sample::select,
    test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner},
};
use tests::{binaries, depth::number, rng::Rng};

use crate::mutations::{Change, change};

/// The default number of inputs for each target.
const INPUTS: u64 = 300;
/// The maximum length of an input; longer inputs are cut.
const INPUT_BYTES_MAX: usize = 64 << 10;
/// The maximum number of runs to reduce a failing input.
const SHRINKS_MAX: u32 = 2_000;
/// The maximum duration of a check, which usually takes milliseconds.
const HANGS: Duration = Duration::from_mins(10);

/// An external format, and the properties of all its inputs.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    /// The name of the test and of its folder in the corpus.
    pub(crate) name: &'static str,
    /// Returns a valid input, which depends only on the generator.
    pub(crate) generate: fn(&mut Rng) -> Vec<u8>,
    /// Panics if a property does not hold.
    pub(crate) check: fn(&[u8]),
}

impl Target {
    /// Checks the corpus, and then the requested number of inputs.
    ///
    /// # Panics
    /// If a property does not hold, or a check does not end.
    pub(crate) fn run(self) {
        let seed = number("DECREE_FUZZ_SEED").unwrap_or(1);
        let (begins, begun) = mpsc::sync_channel(1);
        let checks = thread::spawn(move || self.check_all(seed, &begins));
        let mut last = 0;
        loop {
            match begun.recv_timeout(HANGS) {
                Ok(number) => last = number,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("a check does not end; again: {}", self.again(seed, last))
                }
            }
        }
        if let Err(cause) = checks.join() {
            panic::resume_unwind(cause);
        }
    }

    /// Checks all inputs. Sends the number of each input before its check.
    fn check_all(self, seed: u64, begins: &SyncSender<u64>) {
        let kept = self.corpus();
        let first: u64 = number("DECREE_FUZZ_FIRST").unwrap_or(0);
        let inputs = number("DECREE_FUZZ_INPUTS").unwrap_or(INPUTS);
        let time = number("DECREE_FUZZ_SECONDS").map(Duration::from_secs);
        let strategy = self.inputs(kept);
        let start = Instant::now();
        let mut done = 0;
        while done < inputs && time.is_none_or(|time| start.elapsed() < time) {
            let number = first + done;
            begins.send(number).expect("the test waits");
            self.try_input(&strategy, seed, number);
            done += 1;
        }
        let seconds = start.elapsed().as_secs();
        eprintln!("{}: {done} inputs, {seconds} s, seed {seed}", self.name);
    }

    /// Checks the inputs of the corpus, and returns them.
    fn corpus(self) -> Vec<Vec<u8>> {
        let entries = fs::read_dir(folder().join(self.name)).expect("each target has a corpus");
        let mut files: Vec<_> = entries
            .map(|entry| entry.expect("the folder can be read").path())
            .collect();
        files.sort();
        assert!(!files.is_empty(), "the corpus of {} is empty", self.name);
        let checked = files.into_iter().map(|path| {
            eprintln!("{}: {}", self.name, path.display());
            let input = fs::read(&path).expect("a file of the corpus can be read");
            (self.check)(&input);
            input
        });
        checked.collect()
    }

    /// The inputs: generated or from the corpus, and mutated more often than not.
    fn inputs(self, kept: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
        let seeds = any::<u64>().no_shrink();
        let generated = seeds.prop_map(move |seed| (self.generate)(&mut Rng::new(seed)));
        let inputs = prop_oneof![4 => generated, 1 => select(kept.clone())];
        let changes = prop_oneof![3 => Just(Vec::new()), 7 => vec(change(kept), 1..=4)];
        (inputs, changes).prop_map(|(mut input, changes)| {
            let changes: Vec<Change> = changes;
            changes.into_iter().for_each(|it| it.apply(&mut input));
            input.truncate(INPUT_BYTES_MAX);
            input
        })
    }

    /// Checks the input of a number, which depends only on the seed and the number.
    fn try_input(self, strategy: &impl Strategy<Value = Vec<u8>>, seed: u64, number: u64) {
        let seeds = [seed, number, 0, 0].map(u64::to_le_bytes);
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, seeds.as_flattened());
        let config = Config {
            cases: 1,
            failure_persistence: None,
            max_shrink_iters: SHRINKS_MAX,
            ..Config::default()
        };
        let checked = TestRunner::new_with_rng(config, rng).run(strategy, |input| {
            (self.check)(&input);
            Ok(())
        });
        let (reason, input) = match checked {
            Ok(()) => return,
            Err(TestError::Fail(reason, input)) => (reason, input),
            Err(TestError::Abort(reason)) => panic!("no input: {reason}"),
        };
        let path = env::temp_dir().join(format!("decree-fuzz-{}-{seed}-{number}", self.name));
        fs::write(&path, &input).expect("the folder for temporary files takes a file");
        let (path, again) = (path.display(), self.again(seed, number));
        panic!("{reason}\nthe input is in {path}; again: {again}");
    }

    fn again(self, seed: u64, number: u64) -> String {
        format!(
            "DECREE_FUZZ_SEED={seed} DECREE_FUZZ_FIRST={number} DECREE_FUZZ_INPUTS=1 cargo test -p tests --test fuzz {}",
            self.name
        )
    }
}

fn folder() -> PathBuf {
    binaries::checkout().join("tests/fuzz/corpus")
}

#[test]
fn failing_input_is_reduced_and_named() {
    let target = Target {
        name: "decide",
        generate: |rng| vec![0; rng.between(10, 20) as usize],
        check: |input| assert!(input.len() < 10 || input[0] != 0, "it begins with zero"),
    };
    let strategy = target.inputs(vec![vec![1]]);
    let found = panic::catch_unwind(|| {
        (0..20).for_each(|number| target.try_input(&strategy, 1, number));
    });
    let text = found.expect_err("most inputs begin with zero");
    let text = text.downcast_ref::<String>().expect("a text");
    assert!(text.contains("it begins with zero"), "{text}");
    assert!(
        text.contains("DECREE_FUZZ_SEED=1 DECREE_FUZZ_FIRST="),
        "{text}"
    );
}

#[test]
fn corpus_is_small_and_belongs_to_targets() {
    let mut bytes = 0;
    for entry in fs::read_dir(folder()).expect("the corpus is in the checkout") {
        let folder = entry.expect("it can be read").path();
        let name = folder.file_name().and_then(|name| name.to_str());
        let source = binaries::checkout().join(format!("tests/fuzz/{}.rs", name.expect("a name")));
        assert!(source.exists(), "{} has no target", folder.display());
        for file in fs::read_dir(&folder).expect("it is a folder") {
            let file = file.expect("it can be read").metadata();
            bytes += file.expect("it has a size").len();
        }
    }
    assert!(bytes <= 500_000, "the corpus has {bytes} bytes");
}
