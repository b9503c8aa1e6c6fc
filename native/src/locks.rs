//! How this crate takes its locks, which guard nothing but memory that can be used again.
//!
//! None is waited for without end: in a process that was forked while another thread held one, nobody is left to give it
//! back. And a lock that a panic has poisoned is as good as any other: what it guards is put there whole.

use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};

/// Tries, between which others have their turn. Who has no luck does without what the lock guards.
const TRIES: usize = 1000;

/// Take a lock; None: somebody keeps it.
pub fn taken<T>(lock: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..TRIES {
        match lock.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}

/// Give what is made at the first use. Threads that come at the same time each make one, and one of these stays: they
/// do not wait for each other.
pub fn made_once<T>(place: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    if let Some(made) = place.get() {
        return made;
    }
    let made = make();
    place.get_or_init(|| made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_once_is_made_without_keeping_others_waiting() {
        let place = OnceLock::new();
        // A second one is made while the first is being made, and is the one that stays.
        let first = made_once(&place, || *made_once(&place, || 2) + 1);
        assert_eq!((*first, *made_once(&place, || 4)), (2, 2));
    }

    #[test]
    fn a_lock_that_is_kept_is_not_waited_for() {
        let lock = Mutex::new(1);
        let guard = lock.lock().unwrap();
        assert!(taken(&lock).is_none());
        drop(guard);
        assert_eq!(taken(&lock).map(|guard| *guard), Some(1));
    }

    #[test]
    fn a_poisoned_lock_is_as_good_as_any() {
        let lock = Mutex::new(1);
        let poison = || {
            let _guard = lock.lock();
            panic!("with the lock in hand");
        };
        std::thread::scope(|scope| assert!(scope.spawn(poison).join().is_err()));
        assert!(lock.is_poisoned());
        assert_eq!(taken(&lock).map(|guard| *guard), Some(1));
    }
}
