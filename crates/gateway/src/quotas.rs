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
}
