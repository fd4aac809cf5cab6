//! Which approvals people were told of here: that one waits and that it no longer does is told once, whoever notices it
//! first. A call may wait while nobody works its turn, and be decided in a terminal; so it is looked for in the store.
//! Pure.

use std::collections::{BTreeMap, VecDeque};

use pintle_domain::id::TenantId;

/// Most approvals of which it is remembered that their end was told: far more than are decided between two looks.
const MAX_ENDED: usize = 1000;

/// Approvals, by their ids.
pub(crate) type Ids = BTreeMap<String, TenantId>;

/// What was told.
#[derive(Debug, Default)]
pub(crate) struct Noticed {
    waiting: Ids,
    /// The ids of those that no longer wait, the oldest first.
    ended: VecDeque<String>,
    /// Whether it was looked since somebody came who listens.
    looked: bool,
}

/// What a look found.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Unnoticed {
    /// Those that wait, and nobody was told.
    pub(crate) new: Ids,
    /// Those that no longer wait, unless they do after all.
    pub(crate) gone: Ids,
}

impl Noticed {
    /// The approval `id` of `tenant` waits. Whether that is news.
    pub(crate) fn waits(&mut self, tenant: &TenantId, id: &str) -> bool {
        !self.is_over(id) && self.waiting.insert(id.to_owned(), tenant.clone()).is_none()
    }

    /// The approval `id` no longer waits. Whether that is news.
    pub(crate) fn ends(&mut self, id: &str) -> bool {
        self.waiting.remove(id);
        if self.is_over(id) {
            return false;
        }
        self.ended.push_back(id.to_owned());
        self.ended.drain(..self.ended.len().saturating_sub(MAX_ENDED));
        true
    }

    fn is_over(&self, id: &str) -> bool {
        self.ended.iter().any(|ended| ended == id)
    }

    /// Nobody listens: what happens until somebody does is nobody's news.
    pub(crate) fn sleep(&mut self) {
        (self.looked, self.waiting) = (false, BTreeMap::new());
    }

    /// What is to be told now that these wait in the store. Whoever has just come sees in a listing what waits.
    pub(crate) fn look(&mut self, waiting: Ids) -> Unnoticed {
        if !std::mem::replace(&mut self.looked, true) {
            self.waiting.extend(waiting);
            return Unnoticed::default();
        }
        let is_gone = |(id, _): &(&String, &TenantId)| !waiting.contains_key(*id);
        let gone = self.waiting.iter().filter(is_gone).map(|(id, tenant)| (id.clone(), tenant.clone())).collect();
        let is_new = |(id, _): &(String, TenantId)| !self.waiting.contains_key(id) && !self.is_over(id);
        Unnoticed { new: waiting.into_iter().filter(is_new).collect(), gone }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(ids: &[&str]) -> Ids {
        ids.iter().map(|id| ((*id).to_owned(), TenantId::from("t"))).collect()
    }

    fn looks(noticed: &mut Noticed, waiting: &[&str], new: &[&str], gone: &[&str]) {
        assert_eq!(noticed.look(some(waiting)), Unnoticed { new: some(new), gone: some(gone) }, "{waiting:?}");
    }

    #[test]
    fn what_waits_and_what_no_longer_does_is_told_once() {
        let (mut noticed, t) = (Noticed::default(), TenantId::from("t"));
        // Whoever comes sees it in a listing.
        looks(&mut noticed, &["a"], &[], &[]);
        assert!(noticed.waits(&t, "b") && !noticed.waits(&t, "b"));
        // One that was asked elsewhere, and one that was answered there.
        looks(&mut noticed, &["b", "c"], &["c"], &["a"]);
        assert!(noticed.waits(&t, "c") && noticed.ends("a"));
        looks(&mut noticed, &["b", "c"], &[], &[]);
        // The store was looked at before it was answered here.
        assert!(noticed.ends("b") && !noticed.ends("b"));
        looks(&mut noticed, &["b", "c"], &[], &[]);
        assert!(!noticed.waits(&t, "b"), "news that came late");
        // And before it was asked here: whoever looks at it again sees that it waits.
        assert!(noticed.waits(&t, "d"));
        looks(&mut noticed, &["c"], &[], &["d"]);
        noticed.sleep();
        looks(&mut noticed, &["e"], &[], &[]);
    }

    #[test]
    fn only_so_many_ends_are_remembered() {
        let mut noticed = Noticed::default();
        (0..=MAX_ENDED).for_each(|number| assert!(noticed.ends(&number.to_string())));
        assert_eq!((noticed.ended.len(), noticed.ends("0"), noticed.ends("5")), (MAX_ENDED, true, false));
    }
}
