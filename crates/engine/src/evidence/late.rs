//! Records that somebody waited for in vain, and that may be on their way all the same.

use std::sync::{Mutex, PoisonError};

use pintle_domain::record::EventRecord;
use pintle_domain::store::StoreError;

/// Between whoever waits for records and the store that writes them: of the two, one speaks first.
#[derive(Debug, Default)]
pub(super) struct AcknowledgementRace(Mutex<Known>);

#[derive(Debug, Default)]
enum Known {
    /// They are on their way.
    #[default]
    Nothing,
    /// The store said whether they are written.
    Written(bool),
    /// Nobody waits any more, and these are wanted even so.
    GivenUp(Vec<EventRecord>),
}

impl AcknowledgementRace {
    /// The store says how it went. What comes back is not written and has to be.
    #[must_use = "what is not kept leaves no evidence"]
    pub(super) fn hear(&self, how: &Result<(), StoreError>) -> Vec<EventRecord> {
        match self.put(Known::Written(how.is_ok())) {
            Known::GivenUp(records) if how.is_err() => records,
            Known::GivenUp(_) | Known::Nothing | Known::Written(_) => Vec::new(),
        }
    }

    /// Nobody waits any more. What comes back of `records` is not written and has to be; of the others the store has
    /// not spoken yet.
    #[must_use = "what is not kept leaves no evidence"]
    pub(super) fn give_up(&self, records: Vec<EventRecord>) -> Vec<EventRecord> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *known {
            Known::Written(true) => Vec::new(),
            Known::Written(false) => records,
            Known::Nothing | Known::GivenUp(_) => {
                *known = Known::GivenUp(records);
                Vec::new()
            }
        }
    }

    fn put(&self, known: Known) -> Known {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), known)
    }
}
