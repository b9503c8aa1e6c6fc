//! Hashing of short byte strings: two multiplications a word, good enough for vocabularies and pretokens. And asking
//! for memory before it is needed.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A number whose bits are as good as random.
pub const FIRST: u64 = 0x9E37_79B9_7F4A_7C15;
/// Another one.
pub const SECOND: u64 = 0xC2B2_AE3D_27D4_EB4F;

/// Multiply to 128 bits and put the halves together.
#[inline(always)]
pub fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Hash a byte string.
#[inline]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64 ^ FIRST;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        hash = fold(hash ^ u64::from_le_bytes(word.try_into().expect("8 bytes")), SECOND);
    }
    let mut last = [0u8; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    fold(hash ^ u64::from_le_bytes(last), FIRST)
}

/// The hasher of `FastMap`.
#[derive(Default)]
pub struct FastHasher(u64);

impl Hasher for FastHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = fold(self.0 ^ hash_bytes(bytes), SECOND);
    }
    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = fold(self.0 ^ value ^ FIRST, SECOND);
    }
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

/// A map for keys that nobody chooses to our harm: the entries of a tokenizer, the states of a machine.
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;

/// Ask for the memory of an item that will be looked at soon.
#[inline(always)]
pub fn prefetch<T>(items: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        // SAFETY: prefetching has no effect but on speed, whatever the address. Measured: docs/log.md.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().wrapping_add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, at);
}
