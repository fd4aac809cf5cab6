//! The sessions that are worked now: one run at a time in each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pintle_domain::store::SessionKey;

use crate::run::Run;

/// The runs at work, by session.
#[derive(Default)]
pub(crate) struct Lanes(Mutex<HashMap<SessionKey, Arc<Run>>>);

/// The place of a session that nobody else takes while this lives.
pub(crate) struct Lane<'a> {
    lanes: &'a Lanes,
    key: Option<SessionKey>,
}

impl Lanes {
    /// Takes the session for `run`, or says who works it.
    pub(crate) fn take(&self, run: &Arc<Run>) -> Result<(), Arc<Run>> {
        let mut lanes = self.lanes();
        if let Some(at_work) = lanes.get(&run.key) {
            return Err(at_work.clone());
        }
        lanes.insert(run.key.clone(), run.clone());
        Ok(())
    }

    /// The run of a session.
    pub(crate) fn of(&self, key: &SessionKey) -> Option<Arc<Run>> {
        self.lanes().get(key).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Run>> {
        self.lanes().values().cloned().collect()
    }

    /// Gives the session back when the result is dropped.
    pub(crate) fn hold(&self, key: SessionKey) -> Lane<'_> {
        Lane { lanes: self, key: Some(key) }
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<SessionKey, Arc<Run>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane<'_> {
    /// Somebody else gives it back.
    pub(crate) fn stays(mut self) {
        self.key = None;
    }
}

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            self.lanes.lanes().remove(key);
        }
    }
}
