//! What is counted over all nodes, by rows: turns in flight, open connections.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use pintle_domain::store::{GatewayUse, StoreError, TurnRoom, UseRoom};
use pintle_store::Store;

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
    /// A place for `one`, unless there are `limit` of its kind, or its tenant has no more room for `turns`. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    pub(crate) fn take(
        &self,
        store: &dyn Store,
        one: &GatewayUse,
        (limit, turns): (u32, Option<TurnRoom<'_>>),
    ) -> Result<Option<Place>, StoreError> {
        let now = Timestamp::now();
        // What ended here need not wait for its turn, and takes no commit of its own.
        let ended = self.ended();
        // Only from here on: the place of somebody who left before would be ended first, and then counted for good.
        let place = self.place(one.id.clone());
        let taken = store.take_use(one, UseRoom { limit, turns, ended: &ended }, (now, now + KEPT));
        let taken = taken.inspect_err(|_| self.not_ended(ended))?;
        Ok(taken.then_some(place))
    }

    /// A place under the id `id`.
    fn place(&self, id: String) -> Place {
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
    use pintle_domain::id::TenantId;
    use pintle_domain::store::UseKind;
    use pintle_store::Memory;

    use super::*;

    #[test]
    fn a_place_is_free_again_whoever_waited_for_it() {
        let (quotas, store) = (Quotas::default(), Memory::new());
        let take = |id: &str| {
            let (tenant, node) = (TenantId::default_tenant(), quotas.node.clone());
            let one = GatewayUse { id: id.into(), kind: UseKind::Turn, tenant, who: String::new(), node };
            quotas.take(&store, &one, (1, None)).unwrap()
        };
        // Nobody was there any more when it was counted.
        drop(take("a"));
        let counted = take("b");
        assert!(counted.is_some(), "the one before was given back");
        assert!(take("c").is_none(), "there is one");
        drop(counted);
        assert!(take("d").is_some());
    }

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
