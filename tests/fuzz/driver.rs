//! Generates inputs, checks them, and reduces a failing input.

use std::{
    env, fs,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use tests::{binaries, depth::number, rng::Rng};

use crate::{mutations, progress::Progress};

/// The default number of inputs for each target.
const INPUTS: u64 = 300;
/// The maximum length of an input; longer inputs are cut.
const INPUT_BYTES_MAX: usize = 64 << 10;
/// The maximum number of runs to reduce a failing input.
const SHRINKS_MAX: usize = 2_000;
/// The number of inputs per thousand that start from the corpus.
const KEPT_PER_MILLE: u64 = 200;
/// The number of mutated inputs per thousand.
const MUTATED_PER_MILLE: u64 = 700;

/// An external format, and the properties of all its inputs.
pub(crate) struct Target {
    /// The name of the test and of its folder in the corpus.
    pub(crate) name: &'static str,
    /// Returns a valid input, which depends only on the generator.
    pub(crate) generate: fn(&mut Rng) -> Vec<u8>,
    /// Panics if a property does not hold.
    pub(crate) check: fn(&[u8]),
}

/// The settings of the environment.
struct Budget {
    seed: u64,
    first: u64,
    inputs: u64,
    time: Option<Duration>,
}

// === impl Target ===

impl Target {
    /// Checks the corpus, and then the requested number of inputs.
    pub(crate) fn run(&self) {
        let corpus = self.corpus();
        for (path, input) in &corpus {
            eprintln!("{}: {}", self.name, path.display());
            (self.check)(input);
        }
        let kept: Vec<_> = corpus.into_iter().map(|(_, input)| input).collect();
        let Budget {
            seed,
            first,
            inputs,
            time,
        } = Budget::read();
        let start = Instant::now();
        let mut bytes = 0;
        let mut done = 0;
        thread::scope(|scope| {
            let progress = Progress::watched(scope, |number| {
                eprintln!("{}", self.stuck(seed, number));
            });
            while done < inputs && time.is_none_or(|time| start.elapsed() < time) {
                let number = first + done;
                progress.begin(number);
                let input = self.input(seed, number, &kept);
                bytes += input.len();
                self.try_input(&input, seed, number, &progress);
                done += 1;
            }
        });
        eprintln!(
            "{}: {done} inputs, {bytes} bytes, {:.0} s, seed {seed}",
            self.name,
            start.elapsed().as_secs_f64()
        );
    }

    /// Returns the inputs of the corpus with their files, sorted by name.
    fn corpus(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(folder().join(self.name)).expect("each target has a corpus");
        let mut files: Vec<_> = entries
            .map(|entry| entry.expect("the folder can be read").path())
            .collect();
        files.sort();
        assert!(!files.is_empty(), "the corpus of {} is empty", self.name);
        let read = |path: PathBuf| {
            let input = fs::read(&path).expect("a file of the corpus can be read");
            (path, input)
        };
        files.into_iter().map(read).collect()
    }

    fn input(&self, seed: u64, number: u64, kept: &[Vec<u8>]) -> Vec<u8> {
        let mut rng = Rng::new(seed);
        let mut rng = Rng::new(rng.next_u64() ^ number.wrapping_mul(0x2545_F491_4F6C_DD1D));
        let mut input = if rng.chance(KEPT_PER_MILLE) {
            rng.pick(kept).clone()
        } else {
            (self.generate)(&mut rng)
        };
        if rng.chance(MUTATED_PER_MILLE) {
            for _ in 0..rng.between(1, 4) {
                mutations::mutate(&mut input, kept, &mut rng);
            }
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    }

    fn try_input(&self, input: &[u8], seed: u64, number: u64, progress: &Progress) {
        let Err(cause) = panic::catch_unwind(|| (self.check)(input)) else {
            return;
        };
        let small = self.shrink(input.to_vec(), number, progress);
        let path = env::temp_dir().join(format!("decree-fuzz-{}-{seed}-{number}", self.name));
        fs::write(&path, &small).expect("the folder for temporary files takes a file");
        eprintln!(
            "the input is in {}; again: {}",
            path.display(),
            self.again(seed, number)
        );
        panic::resume_unwind(cause);
    }

    fn stuck(&self, seed: u64, number: u64) -> String {
        let again = self.again(seed, number);
        format!(
            "{}: the check of input {number} does not end, or takes more than {} s of a processor; again: {again}",
            self.name,
            Progress::STUCK.as_secs()
        )
    }

    fn again(&self, seed: u64, number: u64) -> String {
        format!(
            "DECREE_FUZZ_SEED={seed} DECREE_FUZZ_FIRST={number} DECREE_FUZZ_INPUTS=1 cargo test -p tests --test fuzz {}",
            self.name
        )
    }

    /// Removes the parts of an input that the failure does not need.
    fn shrink(&self, mut input: Vec<u8>, number: u64, progress: &Progress) -> Vec<u8> {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(|_| {}));
        let fails = |input: &[u8]| panic::catch_unwind(AssertUnwindSafe(|| (self.check)(input)));
        let mut runs = 0;
        let mut piece = input.len() / 2;
        while piece > 0 && runs < SHRINKS_MAX {
            let mut at = 0;
            while at < input.len() && runs < SHRINKS_MAX {
                let end = input.len().min(at + piece);
                let shorter = [&input[..at], &input[end..]].concat();
                runs += 1;
                progress.begin(number);
                if fails(&shorter).is_err() {
                    input = shorter;
                } else {
                    at = end;
                }
            }
            piece /= 2;
        }
        panic::set_hook(hook);
        input
    }
}

// === impl Budget ===

impl Budget {
    fn read() -> Self {
        Self {
            seed: number("DECREE_FUZZ_SEED").unwrap_or(1),
            first: number("DECREE_FUZZ_FIRST").unwrap_or(0),
            inputs: number("DECREE_FUZZ_INPUTS").unwrap_or(INPUTS),
            time: number("DECREE_FUZZ_SECONDS").map(Duration::from_secs),
        }
    }
}

fn folder() -> PathBuf {
    binaries::checkout().join(Path::new("tests/fuzz/corpus"))
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
