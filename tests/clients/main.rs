//! Tier: the published crates, and clients and examples in other languages, built from the contract with their own tools and run against the real server.
//!
//! If the tools of a language are missing, its tests print a notice and are skipped; with `CI` set they fail.

/// Makes a test of each client, which passes its examples to `$check` if this machine has the language's tools.
macro_rules! test_each_language {
    ($check:path: $(fn $test:ident() in $language:ident;)*) => {
        $(
            #[test]
            fn $test() {
                $check(&tests::or_skip!(crate::language::Examples::$language()));
            }
        )*
    };
}

mod admission;
#[path = "../book/main.rs"]
mod book;
mod conformance;
mod coverage;
mod crates;
mod decide;
mod document;
mod embedded;
mod go;
mod keeper;
mod language;
mod play;
mod polling;
mod proof;
mod puppet;
mod python;
mod python_package;
mod rules;
mod scripted;
mod stubs;
mod timed;
mod unary;
mod world;
