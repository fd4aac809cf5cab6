//! Who may run a script now: so many in all, so many of one tenant, first come, first served. Gates, which a turn waits
//! for, have places of their own, and observers begin only while no gate waits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pintle_domain::checkpoint::Duty;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::limits;

/// The places of gates, and those of observers.
#[derive(Debug, Clone)]
pub(crate) struct DutySlots {
    gates: Slots,
    observers: Slots,
    /// How many gates wait for a place.
    waiting: watch::Sender<usize>,
}

/// A gate that waits for a place, until it is dropped.
struct WaitingGate<'a>(&'a watch::Sender<usize>);

impl<'a> WaitingGate<'a> {
    fn new(waiting: &'a watch::Sender<usize>) -> Self {
        waiting.send_modify(|gates| *gates += 1);
        Self(waiting)
    }
}

impl Drop for WaitingGate<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|gates| *gates -= 1);
    }
}

impl DutySlots {
    /// The usual numbers.
    pub(crate) fn usual() -> Self {
        Self {
            gates: Slots::new(limits::SLOTS, limits::TENANT_SLOTS),
            observers: Slots::new(limits::OBSERVER_SLOTS, limits::TENANT_OBSERVER_SLOTS),
            waiting: watch::Sender::new(0),
        }
    }

    /// Waits for a place for a script with this duty. Dropping the future gives up the place in the queue.
    pub(crate) async fn take(&self, duty: Duty, tenant: &str) -> Slot {
        match duty {
            Duty::Gate | Duty::Rewriter | Duty::Approver | Duty::Injector => {
                if let Some(slot) = self.gates.try_take(tenant) {
                    return slot;
                }
                let _waits = WaitingGate::new(&self.waiting);
                self.gates.take(tenant).await
            }
            Duty::Observer => {
                let slot = self.observers.take(tenant).await;
                // It keeps its place meanwhile, since that is no gate's.
                let mut waiting = self.waiting.subscribe();
                drop(waiting.wait_for(|gates| *gates == 0).await);
                slot
            }
        }
    }
}

/// The places at which scripts run. Clones share them.
///
/// A caller first waits for a place of its tenant, then for one of all: a tenant with a thousand calls stands in the
/// common queue with no more than its own share.
#[derive(Debug, Clone)]
pub struct Slots(Arc<Places>);

#[derive(Debug)]
struct Places {
    all: Arc<Semaphore>,
    each: usize,
    /// Tenants that have, or wait for, a place.
    tenants: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub struct Slot {
    // In this order: the tenant's row is looked at when both places are free again.
    _of_all: OwnedSemaphorePermit,
    _of_tenant: OwnedSemaphorePermit,
    _row: Row,
}

/// A tenant's row in the table, which goes with the last one that needs it.
#[derive(Debug)]
struct Row {
    places: Arc<Places>,
    tenant: String,
    gate: Arc<Semaphore>,
}

impl Slots {
    /// So many places in `all`, and at most `each` of them for one tenant.
    #[must_use]
    pub fn new(all: usize, each: usize) -> Self {
        let all = Arc::new(Semaphore::new(all));
        Self(Arc::new(Places { all, each, tenants: Mutex::default() }))
    }

    /// A place, if one is free and nobody waits for it.
    pub fn try_take(&self, tenant: &str) -> Option<Slot> {
        let row = Row::new(&self.0, tenant);
        let of_tenant = row.gate.clone().try_acquire_owned().ok()?;
        let of_all = self.0.all.clone().try_acquire_owned().ok()?;
        Some(Slot { _of_all: of_all, _of_tenant: of_tenant, _row: row })
    }

    /// Waits for a place. Dropping the future gives up the place in the queue.
    pub async fn take(&self, tenant: &str) -> Slot {
        let row = Row::new(&self.0, tenant);
        let of_tenant = open(&row.gate).await;
        let of_all = open(&self.0.all).await;
        Slot { _of_all: of_all, _of_tenant: of_tenant, _row: row }
    }
}

async fn open(gate: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    gate.clone().acquire_owned().await.expect("no semaphore of this file is ever closed")
}

impl Row {
    fn new(places: &Arc<Places>, tenant: &str) -> Self {
        let mut tenants = places.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let gate = match tenants.get(tenant) {
            Some(gate) => gate.clone(),
            None => tenants.entry(tenant.to_owned()).or_insert(Arc::new(Semaphore::new(places.each))).clone(),
        };
        Self { places: places.clone(), tenant: tenant.to_owned(), gate }
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        /// The table's own and this one.
        const LAST: usize = 2;
        let mut tenants = self.places.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::strong_count(&self.gate) == LAST {
            tenants.remove(&self.tenant);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Waker};

    use super::*;

    fn look<T>(future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            std::task::Poll::Ready(value) => Some(value),
            std::task::Poll::Pending => None,
        }
    }

    fn now(slots: &Slots, tenant: &str) -> Option<Slot> {
        look(pin!(slots.take(tenant)))
    }

    #[test]
    fn a_tenant_has_its_share_and_no_more() {
        let slots = Slots::new(4, 3);
        let mut held: Vec<Slot> = (0..3).map(|_| now(&slots, "a").unwrap()).collect();
        assert!(now(&slots, "a").is_none());
        held.push(now(&slots, "b").unwrap());
        assert!(now(&slots, "c").is_none(), "four places in all");
        held.clear();
        assert!(now(&slots, "a").is_some());
        assert_eq!(slots.0.tenants.lock().unwrap().len(), 0, "nobody is left in the table");
    }

    #[test]
    fn a_crowd_of_one_tenant_does_not_stand_before_another() {
        let slots = Slots::new(2, 1);
        let (first, other) = (now(&slots, "a").unwrap(), now(&slots, "b").unwrap());
        let mut crowd: Vec<_> = (0..50).map(|_| Box::pin(slots.take("a"))).collect();
        for waiting in &mut crowd {
            assert!(look(waiting.as_mut()).is_none());
        }
        let mut late = pin!(slots.take("c"));
        assert!(look(late.as_mut()).is_none());
        drop(other);
        assert!(look(late.as_mut()).is_some(), "the crowd waits for its own tenant's place");
        drop(first);
        let second = look(crowd[0].as_mut());
        assert!(second.is_some() && look(crowd[1].as_mut()).is_none(), "first come, first served");
    }

    #[test]
    fn a_gate_has_a_place_whatever_observers_do_and_they_begin_when_no_gate_waits() {
        let slots = DutySlots::usual();
        let take = |duty, tenant: &'static str| {
            let slots = slots.clone();
            Box::pin(async move { slots.take(duty, tenant).await })
        };
        let mut flood: Vec<_> = (0..200).map(|_| take(Duty::Observer, "a")).collect();
        let begun: Vec<Slot> = flood.iter_mut().filter_map(|waiting| look(waiting.as_mut())).collect();
        assert_eq!(begun.len(), limits::TENANT_OBSERVER_SLOTS);
        let gates: Vec<_> = (0..limits::TENANT_SLOTS).map(|_| look(take(Duty::Gate, "a").as_mut()).unwrap()).collect();
        // Now a gate waits, for other gates: nobody who only observes begins before it.
        let mut late = take(Duty::Gate, "a");
        assert!(look(late.as_mut()).is_none());
        let mut observer = take(Duty::Observer, "b");
        assert!(look(observer.as_mut()).is_none());
        drop(gates);
        let served = look(late.as_mut());
        assert!(served.is_some() && look(observer.as_mut()).is_some());
        // A gate that gives up waits no more.
        let (mut held, mut gone) = (vec![served.unwrap()], take(Duty::Gate, "a"));
        held.extend((1..limits::TENANT_SLOTS).map(|_| look(take(Duty::Gate, "a").as_mut()).unwrap()));
        assert!(look(gone.as_mut()).is_none() && look(take(Duty::Observer, "b").as_mut()).is_none());
        drop(gone);
        assert!(look(take(Duty::Observer, "b").as_mut()).is_some());
    }

    #[test]
    fn who_gives_up_leaves_nothing_behind() {
        let slots = Slots::new(1, 1);
        let held = now(&slots, "a").unwrap();
        let mut quitter = Box::pin(slots.take("b"));
        assert!(look(quitter.as_mut()).is_none());
        let mut next = Box::pin(slots.take("c"));
        assert!(look(next.as_mut()).is_none());
        drop(quitter);
        drop(held);
        assert!(look(next.as_mut()).is_some());
        drop(next);
        assert_eq!(slots.0.tenants.lock().unwrap().len(), 0);
    }
}
