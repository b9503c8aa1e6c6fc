#!/usr/bin/env bash
# The tests of the crate native/: as they are, and those that reach its unsafe code once more under Miri, which notices
# what has no defined meaning. Without Miri they run optimized, with the checks of a debug build.
set -euo pipefail
cd "$(dirname "$0")/../native"

if ! command -v cargo >/dev/null; then
    echo "the tests of the crate native/ are not run: there is no cargo"
    exit 0
fi
cargo test --locked

# tests/cache.rs and tests/patterns.rs drive cache.rs, hash.rs and splitter.rs; tables.rs and slots.rs have their own.
# python.rs is the interpreter's side and table_file.rs maps a file: neither exists for Miri.
if cargo +nightly miri --version >/dev/null 2>&1; then
    export MIRIFLAGS="-Zmiri-disable-isolation"
    cargo +nightly miri test --locked --test cache --test patterns
    cargo +nightly miri test --locked --lib -- tables::tests slots:: cache:: splitter:: locks:: numbered_merges::
else
    echo "no Miri here (rustup component add --toolchain nightly miri): a checked build instead"
    CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true \
        cargo test --locked --release --target-dir target/checked
fi
