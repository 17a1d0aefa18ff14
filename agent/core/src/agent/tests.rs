//! The agent as a whole, in tables: lists, changes, batches and their outcomes, with the link up and down.

use expect_test::expect_file;

use super::*;
use crate::tests::*;

mod story;

/// Tests that play the stories of a table.
macro_rules! tables {
    ($($name:ident: $file:literal,)*) => {$(
        #[test]
        fn $name() {
            story::play(&expect_file![$file]);
        }
    )*};
}

tables! {
    sessions_open_and_end: "tests/tables/session.txt",
    batches_are_executed: "tests/tables/batches.txt",
    effects_are_those_of_the_contract: "tests/tables/effects.txt",
    kinds_are_listed_and_watched: "tests/tables/watches.txt",
    restored_clusters_are_listed_anew: "tests/tables/history.txt",
    nodes_are_sent_whole_and_then_by_difference: "tests/tables/nodes.txt",
}
