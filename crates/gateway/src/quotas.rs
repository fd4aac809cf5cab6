//! What is counted over all nodes, by rows: turns in flight, open connections.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::SignedDuration;

/// How long a row counts that its node does not keep: then the node is gone.
pub(crate) const KEPT: SignedDuration = SignedDuration::from_secs(30);

/// How often a node keeps its rows: it may miss one time.
pub(crate) const KEEP_EVERY: Duration = Duration::from_secs(10);

/// What this node has.
pub(crate) struct Quotas {
    /// This process among all nodes.
    pub(crate) node: String,
    ended: Arc<Mutex<Vec<String>>>,
}

impl Default for Quotas {
    fn default() -> Self {
        Self { node: uuid::Uuid::now_v7().to_string(), ended: Arc::default() }
    }
}

impl Quotas {
    /// A place under the id `id`.
    pub(crate) fn place(&self, id: String) -> Place {
        Place { id, ended: self.ended.clone() }
    }

    /// The ids of those that ended since the last time.
    pub(crate) fn ended(&self) -> Vec<String> {
        std::mem::take(&mut *self.ended.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// `place`, if `take` counts it; it is told what ended. Whoever stops waiting does not end it before it is counted: it
    /// would be counted for good.
    pub(crate) fn take<E>(
        &self,
        place: Place,
        take: impl FnOnce(&[String]) -> Result<bool, E>,
    ) -> Result<Option<Place>, E> {
        let ended = self.ended();
        match take(&ended) {
            Ok(taken) => Ok(taken.then_some(place)),
            Err(error) => {
                self.not_ended(ended);
                Err(error)
            }
        }
    }

    /// Those of `ids` are to be ended the next time: the store could not do it, and this node would count them for good.
    pub(crate) fn not_ended(&self, ids: Vec<String>) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).extend(ids);
    }
}

/// One that is counted for as long as this lives.
pub(crate) struct Place {
    id: String,
    ended: Arc<Mutex<Vec<String>>>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let id = std::mem::take(&mut self.id);
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).push(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_is_told_until_somebody_ended_it() {
        let quotas = Quotas::default();
        drop(quotas.place("a".into()));
        let ended = quotas.ended();
        assert_eq!((ended.clone(), quotas.ended()), (vec!["a".to_owned()], vec![]));
        drop(quotas.place("b".into()));
        quotas.not_ended(ended);
        assert_eq!(quotas.ended(), ["b", "a"]);
    }

    #[test]
    fn a_place_ends_once_it_was_counted() {
        let quotas = Quotas::default();
        let take = |id: &str, taken: Result<bool, ()>| {
            let before = quotas.ended();
            quotas.not_ended(before.clone());
            let seen = |ended: &[String]| {
                assert_eq!((ended, quotas.ended()), (before.as_slice(), vec![]), "it has not ended yet");
                taken
            };
            quotas.take(quotas.place(id.into()), seen).is_ok_and(|place| place.is_some())
        };
        assert!(take("a", Ok(true)));
        assert!(!take("b", Ok(false)));
        assert_eq!(quotas.ended(), ["b"], "what ended before was told to whoever counted the next");
        assert!(!take("c", Err(())));
        assert!(!take("d", Err(())));
        assert_eq!(quotas.ended(), ["c", "d"], "and is told again where nobody could count");
    }
}
