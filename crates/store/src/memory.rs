//! The records of this process alone, for embedders and tests.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::record::EventRecord;
use domain::store::{Done, RecordQuery, RecordStore, StoreError, StoredEvent};

use crate::row::stored;
use crate::timing::{HookTiming, Timings};

/// Most events that are held; the oldest go first. A long session leaves some hundreds, and each may hold on to a
/// whole conversation.
pub const MAX_EVENTS: usize = 4096;

/// Keeps the newest events until the process ends. As durable as the process.
#[derive(Debug, Default)]
pub struct Memory {
    // The engine's own records: they become rows when somebody looks, so that keeping costs next to nothing.
    events: Mutex<VecDeque<EventRecord>>,
}

impl Memory {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long hooks took, over the newest `limit` events that are no tests.
    pub fn hook_timings(&self, limit: usize) -> Vec<HookTiming> {
        let mut timings = Timings::default();
        for event in self.events().iter().rev().filter(|event| !event.who.is_test).take(limit) {
            let event = stored(event);
            timings.add(&event.at, event.hooks);
        }
        timings.finish()
    }

    fn events(&self) -> MutexGuard<'_, VecDeque<EventRecord>> {
        // A panic elsewhere leaves whole events behind, never half ones.
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordStore for Memory {
    fn keep(&self, records: Vec<EventRecord>, done: Done) {
        let mut events = self.events();
        events.extend(records);
        let too_many = events.len().saturating_sub(MAX_EVENTS);
        events.drain(..too_many);
        drop(events);
        done(Ok(()));
    }

    fn find(&self, query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
        let events = self.events();
        let last_turn = events.iter().rev().find(|event| !event.who.is_test).map(|event| &event.who.turn_id);
        let wanted = |event: &&EventRecord| {
            query.event_id.as_ref().is_none_or(|id| event.event_id.as_str().starts_with(id.as_str()))
                && query.tool.as_ref().is_none_or(|tool| event.tool.as_ref() == Some(tool))
                && (!query.last_turn || (!event.who.is_test && Some(&event.who.turn_id) == last_turn))
        };
        let mut found: Vec<StoredEvent> = events.iter().rev().filter(wanted).take(query.limit).map(stored).collect();
        found.reverse();
        Ok(found)
    }
}
