//! One batch: its rounds, its guards and its end.

use proptest::prelude::*;

use super::*;

fn rounds(total: u32, initial: u32) -> Vec<usize> {
    let mut ramp = SlowStart::new(total, initial);
    let mut sizes = Vec::new();
    while let Some(round) = ramp.next_round() {
        sizes.push(round.len());
        round.for_each(|_| ramp.succeeded());
    }
    sizes
}

#[test]
fn rounds_double_until_all_have_begun() {
    assert_eq!(rounds(10, 1), [1, 2, 4, 3]);
    assert_eq!(rounds(500, 1), [1, 2, 4, 8, 16, 32, 64, 128, 245]);
    assert_eq!(rounds(7, 4), [4, 3]);
    assert_eq!(rounds(3, 100), [3]);
    assert_eq!(rounds(0, 1), [0_usize; 0]);
    assert_eq!(rounds(3, 0), [1, 2]);
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(3), ..ProptestConfig::default() })]

    /// Whatever fails, each operation either begins in one round or is named as never beginning, and upstream's bound holds:
    /// what begins is at most twice the successes, plus the first round.
    #[test]
    fn each_operation_begins_once_or_never(
        total in 0_u32..600,
        initial in 1_u32..8,
        fails in proptest::collection::vec(proptest::bool::weighted(0.05), 600),
    ) {
        let mut ramp = SlowStart::new(total, initial);
        let mut seen = vec![0_u32; total as usize];
        let mut successes = 0;
        let mut failed = false;
        while let Some(round) = ramp.next_round() {
            prop_assert!(!failed, "no round begins after a failure");
            prop_assert!(round.len() as u32 <= initial.max(successes * 2));
            for operation in round {
                seen[operation as usize] += 1;
                if fails[operation as usize] {
                    failed = true;
                    ramp.stop().for_each(|rest| seen[rest as usize] += 1);
                } else {
                    ramp.succeeded();
                    successes += 1;
                }
            }
        }
        prop_assert!(seen.iter().all(|times| *times == 1), "{seen:?}");
    }
}
