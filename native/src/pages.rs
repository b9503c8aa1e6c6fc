//! Memory for large tables that are looked into all over: zeros, on large pages where the system has them.
//!
//! A look into a table of some megabytes on pages of 4 KB first waits for the page's address. On pages of 2 MB it does not:
//! looking up known pretokens of English takes a seventh less time, of other scripts too (docs/log.md).

use std::marker::PhantomData;

use bytemuck::Pod;
use memmap2::{MmapMut, MmapOptions};

/// The size of a large page on x86-64, and on most of ARM.
const LARGE_PAGE: usize = 2 << 20;
/// What has so many bytes gets a large page: to have it made costs as much as a hundred small ones.
const ENOUGH: usize = LARGE_PAGE / 4;

/// So many items, one behind the other.
pub struct Pages<T> {
    map: MmapMut,
    /// Where the items begin in it, in bytes.
    first: usize,
    length: usize,
    items: PhantomData<T>,
}

impl<T: Pod> Pages<T> {
    /// Memory for so many items, at least one. What is beyond the last whole large page lies on small ones, if it is not all.
    ///
    /// # Panics
    ///
    /// Where there is no memory.
    pub fn new(length: usize) -> Pages<T> {
        let bytes = length * size_of::<T>();
        let is_large = bytes >= ENOUGH;
        let large = (bytes & !(LARGE_PAGE - 1)).max(LARGE_PAGE);
        let room = if is_large { bytes.max(LARGE_PAGE) + LARGE_PAGE } else { bytes.max(1) };
        let map = MmapOptions::new().len(room).map_anon();
        let map = map.unwrap_or_else(|error| panic!("no memory for a table of {bytes} bytes: {error}"));
        let first = if is_large { map.as_ptr().align_offset(LARGE_PAGE) } else { 0 };
        #[cfg(target_os = "linux")]
        if is_large {
            // Where the system has no large pages, small ones do.
            map.advise_range(memmap2::Advice::HugePage, first, large).unwrap_or_default();
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

/// Words one behind the other on such memory. There is room for more from the start, which takes no memory until it is
/// used: so nothing is copied as it grows, and it does not come in small pages, which the system takes five times as long
/// to make.
pub struct Words {
    pages: Pages<u32>,
    length: usize,
}

impl Words {
    /// None, and room for so many. Where there are more, they are moved.
    pub fn with_room(room: usize) -> Words {
        Words { pages: Pages::new(room), length: 0 }
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.length
    }

    /// All of them.
    #[inline(always)]
    pub fn all(&self) -> &[u32] {
        &self.pages.items()[..self.length]
    }

    /// Room for so many behind them, which count once `keep` says so.
    #[inline(always)]
    pub fn behind(&mut self, count: usize) -> &mut [u32] {
        if self.pages.length - self.length < count {
            self.move_to_more(count);
        }
        &mut self.pages.items_mut()[self.length..self.length + count]
    }

    /// So many of those behind them belong to them now.
    pub fn keep(&mut self, count: usize) {
        self.length += count;
        assert!(self.length <= self.pages.length);
    }

    #[cold]
    fn move_to_more(&mut self, count: usize) {
        let mut pages = Pages::new((2 * self.pages.length).max(self.length + count));
        pages.items_mut()[..self.length].copy_from_slice(self.all());
        self.pages = pages;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_when_there_are_more_than_room() {
        let mut words = Words::with_room(3);
        for number in 0..1000 {
            words.behind(4).copy_from_slice(&[number, number + 1, 7, 7]);
            words.keep(2);
        }
        assert_eq!(words.count(), 2000);
        assert!(words.all().chunks(2).zip(0..).all(|(pair, number)| pair == [number, number + 1]));
    }

    #[test]
    fn items_are_zero_and_stay_where_they_are() {
        for length in [1, 5, 4096, ENOUGH / 8, ENOUGH / 8 + 1, LARGE_PAGE / 8 - 1, 3 * LARGE_PAGE / 8 + 1] {
            let mut pages = Pages::<u64>::new(length);
            assert_eq!(pages.items().len(), length);
            assert!(pages.items().iter().all(|&item| item == 0));
            let numbers = 0..length as u64;
            pages.items_mut().iter_mut().zip(numbers.clone()).for_each(|(item, number)| *item = number);
            assert!(pages.items().iter().copied().eq(numbers));
        }
    }
}
