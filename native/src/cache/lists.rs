//! Lists of ids among words: their number, then the ids. Most are short, so some are copied at once, in a length that is
//! known: that costs less than the call of a function that copies.

/// Ids that are copied at once, without a look at how many there are.
pub const AT_ONCE: usize = 16;

/// Append some of the words.
pub fn copy_some(words: &[u32], place: usize, count: usize, ids: &mut Vec<u32>) {
    match words[place..].first_chunk::<AT_ONCE>() {
        Some(words) if count <= AT_ONCE => {
            let length = ids.len() + count;
            ids.extend_from_slice(words);
            ids.truncate(length);
        }
        _ => ids.extend_from_slice(&words[place..place + count]),
    }
}

/// The words that `write` needs for so many ids, of which it uses one for each and one more.
pub fn room(count: usize) -> usize {
    1 + count.max(AT_ONCE)
}

/// Write a list of some of the words.
pub fn write(list: &mut [u32], words: &[u32], place: usize, count: usize) {
    list[0] = count as u32;
    match words[place..].first_chunk::<AT_ONCE>() {
        Some(words) if count <= AT_ONCE => list[1..=AT_ONCE].copy_from_slice(words),
        _ => list[1..=count].copy_from_slice(&words[place..place + count]),
    }
}

/// Append the ids of the list that begins there.
pub fn append(words: &[u32], place: usize, ids: &mut Vec<u32>) {
    copy_some(words, place + 1, words[place] as usize, ids);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_any_length_is_read_as_it_was_written() {
        let words: Vec<u32> = (100..140).collect();
        for (place, count) in [(0, 0), (3, 1), (5, AT_ONCE), (5, AT_ONCE + 1), (39, 1), (40, 0), (0, 40)] {
            let mut list = vec![7; room(count)];
            write(&mut list, &words, place, count);
            let mut ids = vec![1];
            append(&list, 0, &mut ids);
            assert_eq!((ids[0], &ids[1..]), (1, &words[place..place + count]));
        }
    }
}
