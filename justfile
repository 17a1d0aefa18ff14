# All chores, one line each.

# Shows this list.
default:
    @just --list

# Runs the demo on an embedded cluster.
demo:
    cargo run --bin decree -- demo

# Proves everything that can be proven offline.
test:
    cargo test --workspace

# Proves a change in one crate: all unit tests, and the tiers that concern it.
check crate:
    .ci/check {{crate}}

# Formats, lints and documents with warnings denied.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Checks licences, bans, duplicates and sources of the dependencies.
deny:
    cargo deny check licenses bans sources

# Lints the contract and makes the stubs of Go that the repository keeps.
buf:
    buf lint
    buf generate --path proto/decree/v1

# Runs many more seeds of the simulation.
sim runs="50000":
    DECREE_SIM_RUNS={{runs}} cargo test --release -p tests --test sim

# Tries so many inputs for each fuzz target.
fuzz inputs="1000000":
    DECREE_FUZZ_INPUTS={{inputs}} cargo test --release -p tests --test fuzz -- --nocapture

# Builds the documents as a site, target/book/index.html.
book:
    mdbook build

# Measures; the figures go to docs/performance.md.
bench:
    cargo bench -p tests

# Runs the gate as CI does; `just ci full` runs all that a release needs.
ci depth="gate":
    bash .ci/run {{depth}}
