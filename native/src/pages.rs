//! Memory for large tables that are looked into all over: zeros, on large pages where the system has them.
//!
//! A look into a table of some megabytes on pages of 4 KB first waits for the page's address. On pages of 2 MB it does not:
//! looking up known pretokens of English takes a seventh less time, of other scripts too (docs/log.md).

use std::marker::PhantomData;

use bytemuck::Pod;
use memmap2::{MmapMut, MmapOptions};

/// The size of a large page on x86-64, and on most of ARM.
const LARGE_PAGE: usize = 2 << 20;

/// So many items, one behind the other.
pub struct Pages<T> {
    map: MmapMut,
    /// Where the items begin in it, in bytes.
    first: usize,
    length: usize,
    items: PhantomData<T>,
}

impl<T: Pod> Pages<T> {
    /// Memory for so many items, at least one. What is beyond the last whole large page lies on small ones.
    ///
    /// # Panics
    ///
    /// Where there is no memory.
    pub fn new(length: usize) -> Pages<T> {
        let bytes = length * size_of::<T>();
        let is_large = bytes >= LARGE_PAGE;
        let room = if is_large { bytes + LARGE_PAGE } else { bytes.max(1) };
        let map = MmapOptions::new().len(room).map_anon();
        let map = map.unwrap_or_else(|error| panic!("no memory for a table of {bytes} bytes: {error}"));
        let first = if is_large { map.as_ptr().align_offset(LARGE_PAGE) } else { 0 };
        #[cfg(target_os = "linux")]
        if is_large {
            // Where the system has no large pages, small ones do.
            map.advise_range(memmap2::Advice::HugePage, first, bytes & !(LARGE_PAGE - 1)).unwrap_or_default();
        }
        Pages { map, first, length, items: PhantomData }
    }

    /// The items.
    #[inline(always)]
    pub fn items(&self) -> &[T] {
        bytemuck::cast_slice(&self.map[self.first..self.first + self.length * size_of::<T>()])
    }

    /// The items, to be changed.
    #[inline(always)]
    pub fn items_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.map[self.first..self.first + self.length * size_of::<T>()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_zero_and_stay_where_they_are() {
        for length in [1, 5, 4096, 3 * LARGE_PAGE / 8 + 1] {
            let mut pages = Pages::<u64>::new(length);
            assert_eq!(pages.items().len(), length);
            assert!(pages.items().iter().all(|&item| item == 0));
            let numbers = 0..length as u64;
            pages.items_mut().iter_mut().zip(numbers.clone()).for_each(|(item, number)| *item = number);
            assert!(pages.items().iter().copied().eq(numbers));
        }
    }
}
