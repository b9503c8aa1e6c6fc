//! A set of numbers in one table, so that it can lie in a file: open addressing, at most half full.

use crate::hash::fold;
use crate::stored_struct;
use crate::tables::Table;

const EMPTY: u64 = u64::MAX;

/// A set of numbers below `u64::MAX`.
pub struct NumberSet {
    slots: Table<u64>,
    shift: u32,
}
stored_struct!(NumberSet { slots, shift });

impl NumberSet {
    /// Build from the members, each as often as it likes.
    pub fn new(members: &[u64]) -> NumberSet {
        let size = (members.len() * 2).next_power_of_two().max(2);
        let shift = 64 - size.trailing_zeros();
        let mut slots = vec![EMPTY; size];
        for &member in members {
            let slot = find(&slots, shift, member);
            slots[slot] = member;
        }
        NumberSet { slots: slots.into(), shift }
    }

    /// Whether it has a number.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        self.slots[find(&self.slots, self.shift, number)] == number
    }
}

/// The slot that has a number, or where it belongs.
#[inline(always)]
fn find(slots: &[u64], shift: u32, number: u64) -> usize {
    let mut slot = (fold(number, 0x9E37_79B9_7F4A_7C15) >> shift) as usize;
    while slots[slot] != EMPTY && slots[slot] != number {
        slot = (slot + 1) & (slots.len() - 1);
    }
    slot
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_its_members_and_nothing_else() {
        let members: Vec<u64> = (0..1000).map(|n| ((n * n) << 21) | n).chain([0, 0, u64::MAX - 1]).collect();
        let set = NumberSet::new(&members);
        assert!(members.iter().all(|&member| set.contains(member)));
        assert!((0..1000)
            .map(|n| ((n * n) << 21) | (n + 1))
            .all(|number| members.contains(&number) == set.contains(number)));
        assert!(!NumberSet::new(&[]).contains(0));
    }
}
