//! The room that requests take while they are worked: all of them together, and those of one tenant.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most bytes of requests that are worked at the same time: a few of the largest, or thousands of usual ones.
const MAX_WORKED_BYTES: usize = 512 << 20;

/// Most of them of one tenant: whatever it sends, there is room for the others.
const MAX_SHARE_BYTES: usize = MAX_WORKED_BYTES / 2;

/// In what steps requests take of these bytes.
const ROOM_BYTES: usize = 64 << 10;

/// How many steps a request of `bytes` takes.
fn steps_of(bytes: usize) -> usize {
    bytes / ROOM_BYTES + 1
}

/// All of the room.
pub(crate) struct Rooms {
    all: Arc<Semaphore>,
    /// By tenant; of those alone that have something of it.
    shares: Mutex<BTreeMap<String, Weak<Semaphore>>>,
}

impl Default for Rooms {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_WORKED_BYTES / ROOM_BYTES)), shares: Mutex::default() }
    }
}

impl Rooms {
    /// Room for a request of `bytes` of the tenant `whose`, if there is any. Where there is nobody else, that has no
    /// name.
    pub(crate) fn take(&self, whose: &str, bytes: usize) -> Option<Room> {
        let steps = u32::try_from(steps_of(bytes)).ok()?;
        let share = self.share(whose).try_acquire_many_owned(steps).ok()?;
        let all = self.all.clone().try_acquire_many_owned(steps).ok()?;
        Some(Room([all, share]))
    }

    fn share(&self, whose: &str) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.retain(|_, share| share.strong_count() > 0);
        if let Some(share) = shares.get(whose).and_then(Weak::upgrade) {
            return share;
        }
        let bytes = if whose.is_empty() { MAX_WORKED_BYTES } else { MAX_SHARE_BYTES };
        let share = Arc::new(Semaphore::new(bytes / ROOM_BYTES));
        shares.insert(whose.to_owned(), Arc::downgrade(&share));
        share
    }
}

/// The room of one request, of all and of its tenant's; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Room([OwnedSemaphorePermit; 2]);

impl Room {
    /// Takes what a request of `bytes` needs beside. `false`: there is not so much.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        for permit in &mut self.0 {
            let more = steps_of(bytes).saturating_sub(permit.num_permits());
            let Ok(more) = u32::try_from(more) else { return false };
            match permit.semaphore().clone().try_acquire_many_owned(more) {
                Ok(more) => permit.merge(more),
                Err(_) => return false,
            }
        }
        true
    }

    /// Gives back what a request of `bytes` does not need.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        for permit in &mut self.0 {
            let more = permit.num_permits().saturating_sub(steps_of(bytes));
            drop(permit.split(more));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGEST: usize = 64 << 20;

    /// How many of the largest requests of `whose` there is room for.
    fn largest(rooms: &Rooms, whose: &str) -> Vec<Room> {
        std::iter::from_fn(|| rooms.take(whose, LARGEST - 1)).collect()
    }

    #[test]
    fn one_tenant_leaves_room_for_the_others() {
        let rooms = Rooms::default();
        let theirs = largest(&rooms, "a");
        assert_eq!(theirs.len(), MAX_SHARE_BYTES / LARGEST);
        assert!(rooms.take("a", 0).is_none());
        assert_eq!(largest(&rooms, "b").len(), MAX_SHARE_BYTES / LARGEST);
        drop(theirs);
        assert!(rooms.take("a", 0).is_some());
        assert_eq!(largest(&Rooms::default(), "").len(), MAX_WORKED_BYTES / LARGEST);
    }

    #[test]
    fn a_request_takes_what_came_of_it_and_gives_the_rest_back() {
        let rooms = Rooms::default();
        let left = |rooms: &Rooms| rooms.all.available_permits();
        let all = left(&rooms);
        let mut room = rooms.take("a", 0).unwrap();
        assert_eq!(left(&rooms), all - 1);
        assert!(room.grow(10 * ROOM_BYTES) && room.grow(ROOM_BYTES));
        assert_eq!(left(&rooms), all - 11);
        assert!(!room.grow(MAX_SHARE_BYTES));
        room.shrink(2 * ROOM_BYTES);
        assert_eq!(left(&rooms), all - 3);
        drop(room);
        assert_eq!(left(&rooms), all);
    }
}
