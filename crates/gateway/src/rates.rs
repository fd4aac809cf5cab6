//! How often somebody may ask.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use governor::clock::{Clock as _, DefaultClock};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use pintle_domain::id::TenantId;

use crate::error::ApiError;
use crate::principal::{Credential, Principal};

/// Messages to agents a minute and user, and how many of them at once. Source: the published protocol.
const SENDS_PER_MINUTE: NonZeroU32 = NonZeroU32::new(20).expect("it is not zero");
const SENDS_AT_ONCE: NonZeroU32 = NonZeroU32::new(5).expect("it is not zero");

/// Failed sign-ins a minute and address: enough for typing errors, too few to try words. Source: the page of the gateway.
const FAILED_SIGN_INS: usize = 10;

/// The time in which they are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// Most addresses of which failed sign-ins are remembered: beyond it the oldest are forgotten.
const MAX_ADDRESSES: usize = 65_536;

type Keyed<K> = RateLimiter<K, HashMapStateStore<K>, DefaultClock>;

/// Who asks, as requests are counted: a tenant, and a key or whoever has the token.
type Asker = (TenantId, Credential, String);

/// What people did lately.
pub(crate) struct Rates {
    sends: Keyed<(TenantId, String)>,
    requests: Keyed<Asker>,
    per_minute: NonZeroU32,
    failed: Mutex<FailedSignIns>,
}

/// How somebody tried to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Attempt {
    /// With something that people choose.
    Guess,
    /// The same, by a program that an agent started.
    AgentsGuess,
    /// With something that is made here: whoever has a wrong one keeps nobody out who guesses nothing.
    Secret,
}

/// Where attempts come from: a socket in the file system has no address.
type Origin = (Option<IpAddr>, Attempt);

impl Rates {
    /// Lets each key ask `per_minute` times a minute, over all nodes.
    pub(crate) fn new(per_minute: NonZeroU32) -> Self {
        let sends = Quota::per_minute(SENDS_PER_MINUTE).allow_burst(SENDS_AT_ONCE);
        Self {
            sends: RateLimiter::hashmap(sends),
            requests: RateLimiter::hashmap(Quota::per_minute(per_minute)),
            per_minute,
            failed: Mutex::default(),
        }
    }

    /// Somebody sends a message to an agent.
    pub(crate) fn check(&self, who: &Principal) -> Result<(), ApiError> {
        let key = (who.tenant.clone(), who.user.clone());
        self.sends.check_key(&key).map_err(|wait| {
            let wait = wait.wait_time_from(DefaultClock::default().now());
            let why = format!("too many messages: at most {SENDS_AT_ONCE} at once, and {SENDS_PER_MINUTE} a minute");
            ApiError::exhausted(why, millis(wait))
        })
    }

    /// Somebody asks for something at one of `nodes` nodes, each of which lets its part of the limit pass: a request
    /// counts as many times as there are nodes.
    pub(crate) fn request(&self, who: &Principal, nodes: NonZeroU32) -> Result<(), ApiError> {
        let user = match who.credential {
            // The holder of the token asks for many.
            Credential::Token => who.user.clone(),
            Credential::Key(_) | Credential::Console { .. } | Credential::Anonymous => String::new(),
        };
        let asker = (who.tenant.clone(), who.credential.clone(), user);
        let counts = nodes.min(self.per_minute);
        // It counts at most as often as there is room for; what counts for more never passes.
        let passed = self.requests.check_key_n(&asker, counts);
        let passed = passed.map_err(|_| ApiError::exhausted("a request counts for more than the limit", 60_000))?;
        passed.map_err(|wait| {
            let wait = wait.wait_time_from(DefaultClock::default().now());
            let (all, here) = (self.per_minute, self.per_minute.get() / counts);
            let among = if nodes.get() > 1 { format!(", {here} on each of {nodes} nodes") } else { String::new() };
            ApiError::exhausted(format!("too many requests: {all} a minute{among}"), millis(wait))
        })
    }

    /// Lets an address try something that can be guessed, unless it failed too often.
    pub(crate) fn may_try(&self, from: Option<IpAddr>, attempt: Attempt) -> Result<(), ApiError> {
        self.failed().wait((from.map(network), attempt), Instant::now()).map_or(Ok(()), |wait| Err(too_many(wait)))
    }

    /// Somebody could not say who they are; what they are told if it was too often.
    pub(crate) fn sign_in_failed(&self, from: Option<IpAddr>, attempt: Attempt) -> Result<(), ApiError> {
        let (from, now) = ((from.map(network), attempt), Instant::now());
        let mut failed = self.failed();
        let waits = failed.wait(from, now);
        failed.add(from, now);
        waits.map_or(Ok(()), |wait| Err(too_many(wait)))
    }

    /// Forgets those who did nothing for long.
    pub(crate) fn sweep(&self) {
        self.sends.retain_recent();
        self.requests.retain_recent();
        self.failed().forget(Instant::now());
    }

    fn failed(&self) -> MutexGuard<'_, FailedSignIns> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn too_many(wait: Duration) -> ApiError {
    ApiError::exhausted("too many failed sign-ins", millis(wait))
}

/// What counts as one address: whoever has one of IPv6 has all of its network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

/// The failed sign-ins of the last minute.
#[derive(Debug, Default)]
struct FailedSignIns(HashMap<Origin, VecDeque<Instant>>);

impl FailedSignIns {
    /// How long an address has to wait; nothing if it need not.
    fn wait(&self, from: Origin, now: Instant) -> Option<Duration> {
        let lately = self.0.get(&from)?;
        let oldest = lately.len().checked_sub(FAILED_SIGN_INS).and_then(|at| lately.get(at))?;
        let over = MINUTE.checked_sub(now.saturating_duration_since(*oldest))?;
        Some(over).filter(|over| !over.is_zero())
    }

    fn add(&mut self, from: Origin, now: Instant) {
        if self.0.len() >= MAX_ADDRESSES {
            self.forget(now);
        }
        if self.0.len() >= MAX_ADDRESSES {
            let oldest = self.0.iter().min_by_key(|(_, lately)| lately.back().copied()).map(|(from, _)| *from);
            oldest.map(|oldest| self.0.remove(&oldest));
        }
        let lately = self.0.entry(from).or_default();
        lately.push_back(now);
        while lately.len() > FAILED_SIGN_INS {
            lately.pop_front();
        }
    }

    fn forget(&mut self, now: Instant) {
        self.0.retain(|_, lately| lately.back().is_some_and(|last| now.saturating_duration_since(*last) < MINUTE));
    }
}

fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use pintle_rules::admin::CallerRole;

    use super::*;
    use crate::principal::somebody;

    #[test]
    fn each_node_lets_its_part_of_the_requests_pass() {
        let (limit, anna) = (NonZeroU32::new(12).unwrap(), somebody("anna", CallerRole::Operator));
        for (nodes, passed) in [(1, 12), (2, 6), (3, 4), (5, 2), (12, 1), (40, 1)] {
            let (rates, nodes) = (Rates::new(limit), NonZeroU32::new(nodes).unwrap());
            let let_in = (0..20).filter(|_| rates.request(&anna, nodes).is_ok()).count();
            assert_eq!(let_in, passed, "{nodes} nodes");
            rates.request(&somebody("ben", CallerRole::Operator), nodes).unwrap();
        }
        let rates = Rates::new(NonZeroU32::MIN);
        rates.request(&anna, NonZeroU32::new(2).unwrap()).unwrap();
        let refused = rates.request(&anna, NonZeroU32::new(2).unwrap()).unwrap_err();
        assert_eq!(refused.message, "too many requests: 1 a minute, 1 on each of 2 nodes");
        assert!(refused.retry_after_ms.is_some());
    }

    #[test]
    fn whoever_sends_too_much_is_told_how_much_that_is() {
        let (rates, anna) = (Rates::new(NonZeroU32::MIN), somebody("anna", CallerRole::Operator));
        (0..SENDS_AT_ONCE.get()).for_each(|_| rates.check(&anna).unwrap());
        let refused = rates.check(&anna).unwrap_err();
        assert_eq!(refused.message, "too many messages: at most 5 at once, and 20 a minute");
        assert!(refused.retry_after_ms.is_some());
    }

    #[test]
    fn ten_failures_a_minute_are_enough() {
        let (mut failed, begin) = (FailedSignIns::default(), Instant::now());
        let from = |text: &str| (Some(network(text.parse().unwrap())), Attempt::Guess);
        let at = |seconds| begin + Duration::from_secs(seconds);
        for second in 0..10 {
            assert_eq!(failed.wait(from("192.0.2.1"), at(second)), None);
            failed.add(from("192.0.2.1"), at(second));
        }
        assert_eq!(failed.wait(from("192.0.2.1"), at(9)), Some(Duration::from_secs(51)));
        assert_eq!(failed.wait(from("::ffff:192.0.2.1"), at(9)), Some(Duration::from_secs(51)), "the same address");
        assert_eq!(failed.wait(from("192.0.2.2"), at(9)), None);
        assert_eq!(failed.wait((None, Attempt::Guess), at(9)), None);
        assert_eq!(failed.wait((from("192.0.2.1").0, Attempt::Secret), at(9)), None);
        assert_eq!(failed.wait((from("192.0.2.1").0, Attempt::AgentsGuess), at(9)), None);
        assert_eq!(failed.wait(from("192.0.2.1"), at(60)), None);
        failed.add(from("192.0.2.1"), at(60));
        assert_eq!(failed.wait(from("192.0.2.1"), at(60)), Some(Duration::from_secs(1)), "the second one counts now");
        failed.forget(at(120));
        assert!(failed.0.is_empty());
        for last in ["1", "2"].repeat(5) {
            failed.add(from(&format!("2001:db8:0:1::{last}")), at(0));
        }
        assert!(failed.wait(from("2001:db8:0:1::3"), at(0)).is_some(), "one network is one address");
        assert!(failed.wait(from("2001:db8:0:2::1"), at(0)).is_none());
    }
}
