//! Limits that the tests set lower, and a fault that they ask for.
//!
//! Places in a chunk of text are numbers of 31 bits (`cache.rs`). So a text that goes through in one piece, and each
//! pretoken of a longer one, is shorter than 2 GiB; what is longer is an error of its document.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::cache::SKIP;
use crate::error::{Error, Result};

static LONGEST: AtomicUsize = AtomicUsize::new(SKIP as usize - 1);
static FAULT: AtomicBool = AtomicBool::new(false);

/// The number of bytes that a text may have which goes through in one piece.
pub fn longest() -> usize {
    LONGEST.load(Relaxed)
}

/// Whether a text, or a pretoken, is short enough.
pub fn checked_length(length: usize) -> Result<()> {
    if length <= longest() {
        return Ok(());
    }
    let message =
        format!("{length} bytes that cannot be cut are more than the native engine takes at once ({})", longest());
    Err(Error::encode(message).coded("text-too-long").hinted("split the document"))
}

/// Panic, where a test wants it.
#[inline]
pub fn fault_of_test() {
    if FAULT.load(Relaxed) {
        panic!("a test asked for it");
    }
}

/// For tests: set the limit, and whether there is a fault in everything. None: the limit as it is meant.
pub fn set_for_test(longest: Option<usize>, has_fault: bool) {
    LONGEST.store(longest.unwrap_or(SKIP as usize - 1), Relaxed);
    FAULT.store(has_fault, Relaxed);
}
