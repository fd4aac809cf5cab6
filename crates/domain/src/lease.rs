//! Leases: which of several nodes works a session, so that no two of them ever do.
//!
//! Two clocks are in it, and neither believes the other. The database says when a lease is free again; a node says, by
//! its own clock, when it can no longer be sure that it has one, and that is earlier. A moment is the time since some
//! beginning of the clock that it belongs to.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// How long a lease lasts that nobody renews, by the clock of the database. Source: the page of the gateway.
pub const LEASE_TIME: Duration = Duration::from_secs(10);

/// How often a node renews all that it has. Source: the page of the gateway.
pub const RENEW_EVERY: Duration = Duration::from_secs(3);

/// After so long without a renewal a node stops its turns by itself, by a clock that counts suspension: early enough
/// that their children are gone before somebody else may begin. Source: the page of the gateway.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(7);

/// The number of a lease. It only grows, over all sessions: whatever was written under a smaller one of the same
/// session came from somebody who has it no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The row of a session in the database; `N` names a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRow<N> {
    /// The newest fence.
    pub fence: Fence,
    /// Who has it and until when; nobody after it was given back.
    pub owner: Option<(N, Duration)>,
}

impl<N: Clone + Eq> LeaseRow<N> {
    /// The row once `node` took the session at `now`, with `next` as the fence, which is larger than any before. A lease
    /// that runs out at `now` is free.
    ///
    /// # Errors
    /// Somebody has it.
    pub fn taken(before: Option<&Self>, (node, next): (&N, Fence), now: Duration) -> Result<Self, N> {
        match before.and_then(|row| row.owner_at(now)) {
            Some(owner) => Err(owner.clone()),
            None => Ok(Self { fence: next, owner: Some((node.clone(), now + LEASE_TIME)) }),
        }
    }

    /// Who has it at `now`.
    pub fn owner_at(&self, now: Duration) -> Option<&N> {
        self.owner.as_ref().filter(|(_, until)| now < *until).map(|(node, _)| node)
    }

    /// The row once `node` renewed it; nothing if it is not theirs any more, or has run out.
    #[must_use]
    pub fn renewed(&self, node: &N, fence: Fence, now: Duration) -> Option<Self> {
        let theirs = self.fence == fence && self.owner_at(now) == Some(node);
        theirs.then(|| Self { fence, owner: Some((node.clone(), now + LEASE_TIME)) })
    }

    /// The row once `node` gave it back; nothing if it is not theirs.
    #[must_use]
    pub fn released(&self, node: &N, fence: Fence) -> Option<Self> {
        let theirs = self.fence == fence && self.owner.as_ref().is_some_and(|(owner, _)| owner == node);
        theirs.then_some(Self { fence, owner: None })
    }

    /// Whether what was made under `fence` may still be written.
    pub fn accepts(&self, fence: Fence) -> bool {
        self.fence == fence
    }
}

/// A lease as the node that took it knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OwnLease {
    fence: Fence,
    /// When that was asked which the database said yes to last: it counted no later from there.
    sure_at: Duration,
    is_lost: bool,
}

/// All leases of one node, by its own clock; `K` names a session.
#[derive(Clone, Debug)]
pub struct OwnLeases<K> {
    leases: BTreeMap<K, OwnLease>,
}

impl<K> Default for OwnLeases<K> {
    fn default() -> Self {
        Self { leases: BTreeMap::new() }
    }
}

impl<K: Clone + Ord> OwnLeases<K> {
    /// The database granted what was asked for at `asked`.
    pub fn granted(&mut self, key: K, fence: Fence, asked: Duration) {
        self.leases.insert(key, OwnLease { fence, sure_at: asked, is_lost: false });
    }

    /// Whether the lease `fence` of `key` is this node's at `now`, for sure.
    pub fn stands(&self, key: &K, fence: Fence, now: Duration) -> bool {
        self.leases.get(key).is_some_and(|own| own.fence == fence && own.stands(now))
    }

    /// Whether there is one of `key`, lost or not.
    pub fn has(&self, key: &K) -> bool {
        self.leases.contains_key(key)
    }

    /// Whether there is none at all.
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// What is to be renewed.
    pub fn to_renew(&self, now: Duration) -> Vec<(K, Fence)> {
        let standing = self.leases.iter().filter(|(_, own)| own.stands(now));
        standing.map(|(key, own)| (key.clone(), own.fence)).collect()
    }

    /// The database answered what was asked at `asked` about `wanted`: it renewed `renewed`. The rest is somebody else's.
    pub fn answered(&mut self, asked: Duration, wanted: &[(K, Fence)], renewed: &[(K, Fence)]) {
        for (key, fence) in wanted {
            let own = self.leases.get_mut(key).filter(|own| own.fence == *fence);
            let Some(own) = own else { continue };
            match renewed.contains(&(key.clone(), *fence)) {
                true => own.sure_at = own.sure_at.max(asked),
                false => own.is_lost = true,
            }
        }
    }

    /// Those that do not stand at `now`. One that was lost comes never back.
    pub fn lost(&mut self, now: Duration) -> Vec<(K, Fence)> {
        let lost = self.leases.iter_mut().filter(|(_, own)| !own.stands(now));
        lost.map(|(key, own)| {
            own.is_lost = true;
            (key.clone(), own.fence)
        })
        .collect()
    }

    /// It was given back.
    pub fn released(&mut self, key: &K, fence: Fence) {
        if self.leases.get(key).is_some_and(|own| own.fence == fence) {
            self.leases.remove(key);
        }
    }
}

impl OwnLease {
    fn stands(&self, now: Duration) -> bool {
        !self.is_lost && now < self.sure_at + GIVE_UP_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn row(fence: u64, owner: Option<(&'static str, u64)>) -> LeaseRow<&'static str> {
        LeaseRow { fence: Fence(fence), owner: owner.map(|(node, until)| (node, s(until))) }
    }

    #[test]
    fn only_a_free_session_is_taken() {
        let take = |before: Option<LeaseRow<_>>, now| LeaseRow::taken(before.as_ref(), (&"b", Fence(9)), s(now));
        let theirs = Ok(row(9, Some(("b", 30))));
        assert_eq!(take(None, 20), theirs, "nobody ever had it");
        assert_eq!(take(Some(row(4, None)), 20), theirs, "it was given back");
        assert_eq!(take(Some(row(4, Some(("a", 20)))), 20), theirs, "it ran out");
        assert_eq!(take(Some(row(4, Some(("a", 21)))), 20), Err("a"));
        assert_eq!(take(Some(row(4, Some(("b", 21)))), 20), Err("b"), "also from oneself");
    }

    #[test]
    fn only_the_owner_renews_gives_back_and_writes() {
        let lease = row(4, Some(("a", 20)));
        assert_eq!(lease.renewed(&"a", Fence(4), s(15)), Some(row(4, Some(("a", 25)))));
        for (node, fence, now) in [("b", 4, 15), ("a", 3, 15), ("a", 4, 20)] {
            assert_eq!(lease.renewed(&node, Fence(fence), s(now)), None, "{node} {fence} {now}");
        }
        assert_eq!(lease.released(&"a", Fence(4)), Some(row(4, None)));
        assert_eq!((lease.released(&"b", Fence(4)), lease.released(&"a", Fence(3))), (None, None));
        assert_eq!([3, 4, 5].map(|fence| lease.accepts(Fence(fence))), [false, true, false]);
        assert!(row(4, None).accepts(Fence(4)), "the last words of whoever left");
    }

    #[test]
    fn a_node_is_sure_for_seven_seconds_from_when_it_asked() {
        let mut own = OwnLeases::default();
        own.granted("s", Fence(1), s(10));
        own.granted("t", Fence(2), s(10));
        assert!(own.stands(&"s", Fence(1), s(16)) && !own.stands(&"s", Fence(2), s(16)));
        let wanted = own.to_renew(s(13));
        assert_eq!(wanted, [("s", Fence(1)), ("t", Fence(2))]);
        own.answered(s(13), &wanted, &[("s", Fence(1))]);
        assert_eq!(own.lost(s(14)), [("t", Fence(2))], "somebody else has it");
        assert!(own.stands(&"s", Fence(1), s(19)) && !own.stands(&"s", Fence(1), s(20)));
        assert_eq!(own.lost(s(20)), [("s", Fence(1)), ("t", Fence(2))]);
        own.answered(s(19), &wanted, &wanted);
        assert_eq!(own.to_renew(s(20)), [], "too late");
        own.released(&"s", Fence(9));
        own.released(&"s", Fence(1));
        assert!(!own.has(&"s") && own.has(&"t") && !own.is_empty());
    }

    #[test]
    fn a_node_gives_up_before_anybody_else_may_begin() {
        // With a third of the time to spare for clocks that differ in speed, and for children to die.
        assert!(RENEW_EVERY * 2 < GIVE_UP_AFTER && GIVE_UP_AFTER + Duration::from_secs(2) < LEASE_TIME);
    }
}
