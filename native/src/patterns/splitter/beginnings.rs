//! The numbers of the bits that are set in a bitmap, eight bits at a time: a table has the places of each byte's bits, so that
//! there is nothing to foretell.

use wide::u32x8;

use crate::extensions::{self, Extensions, Work};

/// Bits a word.
const WORD: usize = 64;
/// Bits a byte.
const BYTE: usize = 8;

/// For each byte, the places of its bits, and zeros behind them.
static PLACES: [u32x8; 256] = {
    let mut places = [u32x8::ZERO; 256];
    let mut byte = 0;
    while byte < places.len() {
        let (mut of_byte, mut count) = ([0; BYTE], 0);
        let mut bit = 0;
        while bit < BYTE {
            if byte >> bit & 1 == 1 {
                of_byte[count] = bit as u32;
                count += 1;
            }
            bit += 1;
        }
        places[byte] = u32x8::new(of_byte);
        byte += 1;
    }
    places
};

/// Put the numbers of the bits that are set in place of what is in `numbers`. The first bit is number `margin` below zero.
pub fn numbers_into(bits: &[u64], margin: usize, numbers: &mut Vec<u32>) {
    extensions::run(Extensions::detect(), Numbers { bits, margin, numbers });
}

struct Numbers<'a> {
    bits: &'a [u64],
    margin: usize,
    numbers: &'a mut Vec<u32>,
}

impl Work for Numbers<'_> {
    type Result = ();

    #[inline(always)]
    fn run(self, _: Option<Extensions>) {
        let Numbers { bits, margin, numbers } = self;
        let total: usize = bits.iter().map(|word| word.count_ones() as usize).sum();
        // What a byte writes beyond its bits is written over, or cut off.
        const ROOM: usize = WORD + BYTE;
        if numbers.len() < total + ROOM {
            numbers.resize(total + ROOM, 0);
        }
        let mut next = 0;
        for (index, &word) in bits.iter().enumerate().filter(|(_, &word)| word != 0) {
            let first = ((index * WORD) as u32).wrapping_sub(margin as u32);
            let room: &mut [u32; ROOM] = (&mut numbers[next..next + ROOM]).try_into().expect("room for a word");
            let counts = counts_up_to(word);
            for byte in 0..WORD / BYTE {
                let before = (counts << BYTE >> (BYTE * byte)) as u8;
                let first = first.wrapping_add((BYTE * byte) as u32);
                let room: &mut [u32; BYTE] = (&mut room[usize::from(before)..][..BYTE]).try_into().expect("eight");
                let places = PLACES[usize::from((word >> (BYTE * byte)) as u8)];
                *room = (places + u32x8::splat(first)).to_array();
            }
            next += word.count_ones() as usize;
        }
        numbers.truncate(next);
    }
}

/// In byte k, the number of bits in the bytes up to k.
#[inline(always)]
fn counts_up_to(word: u64) -> u64 {
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let fours = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let bytes = (fours + (fours >> 4)) & 0x0F0F_0F0F_0F0F_0F0F;
    bytes.wrapping_mul(0x0101_0101_0101_0101)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bits_have_their_numbers() {
        let mut numbers = vec![7; 1000];
        let mut word = 1u64;
        for round in 0..200u32 {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let dense = [u64::MAX, 0, word | word >> 7, word & word >> 3, 1 << (round % 64), 1 << 63];
            let bits = &dense[..round as usize % 7];
            let margin = if bits.first().is_some_and(|&first| first == u64::MAX) { 0 } else { 64 };
            let expected = (0..bits.len() * WORD).filter(|at| bits[at / WORD] >> (at % WORD) & 1 == 1);
            let expected: Vec<u32> = expected.map(|at| (at as u32).wrapping_sub(margin)).collect();
            for extensions in [None, Extensions::detect()] {
                let work = Numbers { bits, margin: margin as usize, numbers: &mut numbers };
                extensions::run(extensions, work);
                assert_eq!(numbers, expected);
            }
        }
    }
}
