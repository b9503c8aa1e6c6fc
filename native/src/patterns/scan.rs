//! Looking at the windows of a text, 32 places at once.

use super::cover::WIDTH;
use super::windows::{Windows, AFTER, BEFORE, GROUPS, GROUPS_OF_BEGINNINGS};

/// Places a word of a bitmap.
const WORD: usize = 64;
/// Codes before the first one of a text and behind the last one.
const MARGIN: usize = WORD;

/// The codes of a text, and room for them.
#[derive(Default)]
pub struct Scanner {
    codes: Vec<u8>,
}

/// Whether this processor has what it takes.
pub fn is_possible() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::is_x86_feature_detected!("avx2")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

impl Scanner {
    /// Set, for each place of a classified text, a bit of `begins` if a piece begins there, and one of `unknown` if the
    /// window does not tell. Both have a word for each 64 places that are begun. What is said about the first
    /// three places and the last one is not to be relied on. Windows with a byte beyond ASCII do not tell.
    pub fn scan(&mut self, windows: &Windows, source: &[u8], begins: &mut [u64], unknown: &mut [u64]) {
        let words = source.len().div_ceil(WORD);
        assert!(begins.len() == words && unknown.len() == words, "a bit for each place");
        self.codes.resize(MARGIN + words * WORD + MARGIN, 0);
        #[cfg(target_arch = "x86_64")]
        if is_possible() {
            // SAFETY: the processor has AVX2, as was just asked.
            unsafe {
                x86::write_codes(windows, source, &mut self.codes[MARGIN..]);
                x86::scan(windows, &self.codes[MARGIN - BEFORE..], begins, unknown);
            }
            return add_beyond_ascii(source, unknown);
        }
        for (code, &byte) in self.codes[MARGIN..].iter_mut().zip(source) {
            *code = windows.codes.get(usize::from(byte)).copied().unwrap_or(0);
        }
        scan_slowly(windows, &self.codes[MARGIN - BEFORE..], begins, unknown);
        add_beyond_ascii(source, unknown);
    }
}

/// Windows with a byte beyond ASCII do not tell.
fn add_beyond_ascii(source: &[u8], unknown: &mut [u64]) {
    for (word, block) in source.chunks(WORD).enumerate() {
        if block.is_ascii() {
            continue;
        }
        for (place, _) in block.iter().enumerate().filter(|(_, byte)| !byte.is_ascii()) {
            let place = word * WORD + place;
            for seen_from in place.saturating_sub(AFTER)..=(place + BEFORE).min(source.len() - 1) {
                unknown[seen_from / WORD] |= 1 << (seen_from % WORD);
            }
        }
    }
}

/// The definition. Place k has the window `codes[k..k + WIDTH]`.
fn scan_slowly(windows: &Windows, codes: &[u8], begins: &mut [u64], unknown: &mut [u64]) {
    for (word, (begins, unknown)) in begins.iter_mut().zip(unknown).enumerate() {
        (*begins, *unknown) = (0, 0);
        for bit in 0..WORD {
            let window = &codes[word * WORD + bit..][..WIDTH];
            for group in 0..GROUPS {
                let allowing = |(place, &code): (usize, &u8)| windows.allowing(group, place)[code as usize];
                let products = window.iter().enumerate().map(allowing).fold(0xFF, |all, products| all & products);
                let told = if group < GROUPS_OF_BEGINNINGS { &mut *begins } else { &mut *unknown };
                *told |= u64::from(products != 0) << bit;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::super::cover::MOST_CODES;
    use super::*;

    const LANE: usize = 32;

    /// Sixteen bytes, twice.
    #[inline(always)]
    fn twice(bytes: &[u8; MOST_CODES]) -> __m256i {
        bytemuck::cast([*bytes, *bytes])
    }

    #[inline(always)]
    fn load(bytes: &[u8], at: usize) -> __m256i {
        let bytes: [u8; LANE] = bytes[at..at + LANE].try_into().expect("32 bytes");
        bytemuck::cast(bytes)
    }

    /// Write the code of each byte. A byte's upper half chooses one of eight tables of sixteen codes; a byte of another one
    /// is moved out of a table's reach, where it counts as 0.
    ///
    /// # Safety
    ///
    /// The processor has AVX2.
    // SAFETY: it is only unsafe to call it without AVX2.
    #[target_feature(enable = "avx2")]
    pub unsafe fn write_codes(windows: &Windows, source: &[u8], codes: &mut [u8]) {
        // What has code 0 throughout is not looked at.
        let mut tables = [(_mm256_setzero_si256(), _mm256_setzero_si256()); 8];
        let mut count = 0;
        for (row, table) in windows.codes.chunks_exact(MOST_CODES).enumerate() {
            if table.iter().any(|&code| code != 0) {
                let table: &[u8; MOST_CODES] = table.try_into().expect("sixteen codes");
                tables[count] = (_mm256_set1_epi8((row << 4) as i8), twice(table));
                count += 1;
            }
        }
        let tables = &tables[..count];
        let beyond = _mm256_set1_epi8(0x70);
        let write = |bytes: __m256i, to: &mut [u8]| {
            let to: &mut [u8; LANE] = to.try_into().expect("32 bytes");
            let mut all = _mm256_setzero_si256();
            for &(row, table) in tables {
                let places = _mm256_adds_epu8(_mm256_xor_si256(bytes, row), beyond);
                all = _mm256_or_si256(all, _mm256_shuffle_epi8(table, places));
            }
            *to = bytemuck::cast(all);
        };
        let whole = source.len() / LANE * LANE;
        for at in (0..whole).step_by(LANE) {
            write(load(source, at), &mut codes[at..at + LANE]);
        }
        if whole < source.len() {
            let mut last = [0; LANE];
            last[..source.len() - whole].copy_from_slice(&source[whole..]);
            write(load(&last, 0), &mut codes[whole..whole + LANE]);
        }
    }

    /// What `scan_slowly` does.
    ///
    /// # Safety
    ///
    /// The processor has AVX2.
    // SAFETY: it is only unsafe to call it without AVX2.
    #[target_feature(enable = "avx2")]
    pub unsafe fn scan(windows: &Windows, codes: &[u8], begins: &mut [u64], unknown: &mut [u64]) {
        let zero = _mm256_setzero_si256();
        let mut tables = [[zero; WIDTH]; GROUPS];
        for (group, tables) in tables.iter_mut().enumerate() {
            for (place, table) in tables.iter_mut().enumerate() {
                *table = twice(windows.allowing(group, place));
            }
        }
        for (word, (begins, unknown)) in begins.iter_mut().zip(unknown).enumerate() {
            let codes = &codes[word * WORD..word * WORD + WORD + WIDTH - 1];
            let mut untold = [0u32; 4];
            for half in 0..2 {
                let mut products = [zero; GROUPS];
                for place in 0..WIDTH {
                    let codes = load(codes, half * LANE + place);
                    for (products, tables) in products.iter_mut().zip(&tables) {
                        let allowing = _mm256_shuffle_epi8(tables[place], codes);
                        *products = if place == 0 { allowing } else { _mm256_and_si256(*products, allowing) };
                    }
                }
                let of_beginnings = _mm256_or_si256(products[0], products[1]);
                untold[half] = _mm256_movemask_epi8(_mm256_cmpeq_epi8(of_beginnings, zero)) as u32;
                untold[2 + half] = _mm256_movemask_epi8(_mm256_cmpeq_epi8(products[2], zero)) as u32;
            }
            *begins = !(u64::from(untold[0]) | u64::from(untold[1]) << 32);
            *unknown = !(u64::from(untold[2]) | u64::from(untold[3]) << 32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cover::MOST_CODES;
    use super::*;

    #[test]
    fn all_at_once_says_what_one_by_one_says() {
        let mut state = 1u32;
        let mut random = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as u8
        };
        let mut scanner = Scanner::default();
        for length in 0..if cfg!(miri) { 70 } else { 200usize } {
            let windows = Windows {
                codes: std::array::from_fn(|_| random() % MOST_CODES as u8),
                products: std::array::from_fn(|_| random() | random()),
            };
            let source: Vec<u8> = (0..length).map(|_| random() & if length % 2 == 0 { 0x7F } else { 0xFF }).collect();
            let words = length.div_ceil(WORD);
            let (mut begins, mut unknown) = (vec![7; words], vec![7; words]);
            scanner.scan(&windows, &source, &mut begins, &mut unknown);
            let mut codes = vec![0; MARGIN + (words + 1) * WORD];
            for (code, byte) in codes[MARGIN..].iter_mut().zip(&source) {
                *code = windows.codes.get(usize::from(*byte)).copied().unwrap_or(0);
            }
            let (mut expected, mut not_told) = (vec![0; words], vec![0; words]);
            scan_slowly(&windows, &codes[MARGIN - BEFORE..], &mut expected, &mut not_told);
            add_beyond_ascii(&source, &mut not_told);
            // What lies behind the text, or next to it, is not looked at.
            for place in BEFORE..length.saturating_sub(AFTER) {
                let bit = |bits: &[u64]| bits[place / WORD] >> (place % WORD) & 1;
                assert_eq!(bit(&begins), bit(&expected), "{place} of {length}");
                assert_eq!(bit(&unknown), bit(&not_told), "{place} of {length}");
            }
        }
    }
}
