//! Keys of the pretoken cache: up to 15 bytes of text and their number, in 16 bytes that are compared at once.

use bytemuck::{Pod, Zeroable};

/// Bytes of text in a key.
pub const SHORT: usize = 15;

/// See the module. Of a pretoken that is longer there is only its hash, with a tag that no entry has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Key([u64; 2]);

/// What is taken of 16 bytes, by the number of bytes that count, and what is added.
#[derive(Clone, Copy)]
struct Masks {
    kept: [u64; 2],
    tag: u64,
}

const MASKS: [Masks; 32] = {
    let mut masks = [Masks { kept: [0; 2], tag: 0 }; 32];
    let mut length = 0;
    while length < masks.len() {
        let kept = if length == 0 || length > SHORT { 0 } else { u128::MAX >> (128 - 8 * length) };
        masks[length] = Masks { kept: [kept as u64, (kept >> 64) as u64], tag: (length as u64) << 56 };
        length += 1;
    }
    masks
};

impl Key {
    /// The key of the empty pretoken, and of what is passed over.
    pub const NOTHING: Key = Key([0; 2]);

    /// The key of the first `length` of these bytes. Of a longer one it is as good as none.
    #[inline(always)]
    pub fn new(bytes: &[u8; 16], length: u8) -> Key {
        let masks = &MASKS[usize::from(length) % MASKS.len()];
        let word = u128::from_le_bytes(*bytes);
        Key([word as u64 & masks.kept[0], (word >> 64) as u64 & masks.kept[1] | masks.tag])
    }

    /// The same of fewer than 16 bytes.
    #[cold]
    pub fn at_end(bytes: &[u8], length: u8) -> Key {
        Key::of(&bytes[..usize::from(length).min(bytes.len())])
    }

    /// The key of all of these bytes.
    pub fn of(bytes: &[u8]) -> Key {
        let mut first = [0; 16];
        let length = bytes.len().min(16);
        first[..length].copy_from_slice(&bytes[..length]);
        Key::new(&first, bytes.len().min(SHORT + 1) as u8)
    }

    /// The key of a pretoken that is too long, with the hash that it carries.
    pub fn of_long(hash: u64) -> Key {
        Key([hash, MASKS[SHORT + 1].tag])
    }

    /// The hash of `of_long`; None: it is short.
    pub fn long_hash(self) -> Option<u64> {
        (self.0[1] == MASKS[SHORT + 1].tag).then_some(self.0[0])
    }

    /// Half of the key, with the first eight bytes of text.
    #[inline(always)]
    pub fn first_half(self) -> u64 {
        self.0[0]
    }

    /// A number that depends on all of the key, in its highest bits most.
    #[inline(always)]
    pub fn hash(self) -> u64 {
        let [low, high] = self.0;
        low.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(high.wrapping_mul(0xC2B2_AE3D_27D4_EB4F))
    }
}
