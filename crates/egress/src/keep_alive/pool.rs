//! Connections that wait for their next request.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Idle connections that are kept, of all hosts: sockets are finite, and hooks have few hosts.
const MAX_IDLE: usize = 64;

/// Idle connections that are kept to one host: as many as non-blocking hooks run at once.
const MAX_IDLE_PER_HOST: usize = 16;

/// How long a connection may wait: less than servers commonly do, so that ours is the side that lets go.
const MAX_IDLE_TIME: Duration = Duration::from_secs(30);

/// Whom a connection speaks to. Its address is a further condition, see [`Pool::take`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) https: bool,
    pub(super) host: String,
    pub(super) port: u16,
}

struct Idle<C> {
    target: Target,
    ip: IpAddr,
    since: Instant,
    connection: C,
}

/// Idle connections, the one that has waited longest first.
pub(super) struct Pool<C>(VecDeque<Idle<C>>);

impl<C> Default for Pool<C> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<C> Pool<C> {
    /// The connection to `target` that has waited least, if it was opened to one of `ips`.
    pub(super) fn take(&mut self, target: &Target, ips: &[IpAddr], now: Instant) -> Option<C> {
        self.forget_old(now);
        let fits = |idle: &Idle<C>| idle.target == *target && ips.contains(&idle.ip);
        let at = self.0.iter().rposition(fits)?;
        Some(self.0.remove(at)?.connection)
    }

    /// Keeps a connection that was opened to `ip`. If there are too many, those that have waited longest go.
    pub(super) fn put(&mut self, target: Target, ip: IpAddr, connection: C, now: Instant) {
        self.forget_old(now);
        let same = |idle: &Idle<C>| idle.target == target;
        if self.0.iter().filter(|idle| same(idle)).count() >= MAX_IDLE_PER_HOST {
            let oldest = self.0.iter().position(same);
            drop(oldest.and_then(|at| self.0.remove(at)));
        }
        if self.0.len() >= MAX_IDLE {
            drop(self.0.pop_front());
        }
        self.0.push_back(Idle { target, ip, since: now, connection });
    }

    fn forget_old(&mut self, now: Instant) {
        self.0.retain(|idle| now.saturating_duration_since(idle.since) < MAX_IDLE_TIME);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(host: &str) -> Target {
        Target { https: false, host: host.into(), port: 80 }
    }

    fn ip(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test]
    fn a_connection_is_found_by_whom_it_was_opened_to() {
        let now = Instant::now();
        let mut pool = Pool::default();
        pool.put(target("a"), ip(1), "first", now);
        pool.put(target("a"), ip(2), "second", now);
        assert_eq!(pool.take(&target("b"), &[ip(1), ip(2)], now), None);
        assert_eq!(pool.take(&Target { https: true, ..target("a") }, &[ip(1)], now), None);
        assert_eq!(pool.take(&Target { port: 81, ..target("a") }, &[ip(1)], now), None);
        assert_eq!(pool.take(&target("a"), &[ip(3)], now), None);
        assert_eq!(pool.take(&target("a"), &[ip(1), ip(2)], now), Some("second"));
        assert_eq!(pool.take(&target("a"), &[ip(3), ip(1)], now), Some("first"));
        assert_eq!(pool.take(&target("a"), &[ip(1)], now), None);
    }

    #[test]
    fn what_waited_too_long_is_gone() {
        let start = Instant::now();
        let mut pool = Pool::default();
        pool.put(target("a"), ip(1), (), start);
        pool.put(target("a"), ip(1), (), start + Duration::from_secs(1));
        assert_eq!(pool.take(&target("a"), &[ip(1)], start + MAX_IDLE_TIME), Some(()));
        assert_eq!(pool.take(&target("a"), &[ip(1)], start + MAX_IDLE_TIME), None);
    }

    #[test]
    fn the_pool_is_bounded_for_one_host_and_for_all() {
        let now = Instant::now();
        let mut pool = Pool::default();
        for number in 0..=MAX_IDLE_PER_HOST {
            pool.put(target("a"), ip(1), number, now);
        }
        assert_eq!(pool.0.len(), MAX_IDLE_PER_HOST);
        assert_eq!(pool.0.front().map(|idle| idle.connection), Some(1));
        for number in 0..MAX_IDLE {
            pool.put(target(&number.to_string()), ip(1), number, now);
        }
        assert_eq!(pool.0.len(), MAX_IDLE);
        assert_eq!(pool.take(&target("a"), &[ip(1)], now), None);
    }
}
