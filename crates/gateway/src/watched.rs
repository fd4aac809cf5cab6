//! What one connection watches of the executions of hooks. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use pintle_domain::execution::Execution;
use pintle_domain::id::HookId;

/// What one connection watches.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    all: Option<Timestamp>,
    hooks: BTreeMap<HookId, Timestamp>,
}

impl Watch {
    /// Begins to watch a hook, or every hook; or no longer does.
    pub(crate) fn set(&mut self, hook: Option<HookId>, since: Option<Timestamp>) {
        match (hook, since) {
            (None, None) => *self = Self::default(),
            (None, since) => self.all = since,
            (Some(hook), None) => drop(self.hooks.remove(&hook)),
            (Some(hook), Some(since)) => drop(self.hooks.insert(hook, since)),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_none() && self.hooks.is_empty()
    }

    /// Whether `row` is one of those that are watched.
    pub(crate) fn wants(&self, row: &Execution) -> bool {
        let of_hook = || self.hooks.get(row.hook_id.as_ref()?).copied();
        [self.all, of_hook()].into_iter().flatten().any(|since| row.created_at >= since)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_connection_watches_one_hook_or_all() {
        let (a, b) = (HookId::from("a"), HookId::from("b"));
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let mut watch = Watch::default();
        assert!(watch.is_empty());
        watch.set(Some(a.clone()), Some(at(1)));
        watch.set(Some(b.clone()), Some(at(1)));
        watch.set(Some(a), None);
        assert_eq!((watch.all, watch.hooks.keys().collect::<BTreeSet<_>>()), (None, BTreeSet::from([&b])));
        watch.set(None, Some(at(2)));
        watch.set(Some(b), None);
        assert!(!watch.is_empty());
        watch.set(None, None);
        assert!(watch.is_empty());
    }
}
