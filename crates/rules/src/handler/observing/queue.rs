//! What waits for a worker, and who may work for whom.

use std::collections::{BTreeMap, VecDeque};

use pintle_domain::id::TenantId;

/// How large a pool is. At most half of it is one tenant's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// How many hooks run at once.
    pub workers: usize,
    /// How many wait.
    pub queue: usize,
}

impl Default for PoolLimits {
    /// Source: the published format of rules.
    fn default() -> Self {
        Self { workers: 16, queue: 512 }
    }
}

/// Jobs that wait, and how many are worked on. At most half of the queue and of the workers are one tenant's.
pub(super) struct Queue<J> {
    jobs: VecDeque<(TenantId, J)>,
    waiting: BTreeMap<TenantId, usize>,
    running: BTreeMap<TenantId, usize>,
    limits: PoolLimits,
}

impl<J> Queue<J> {
    pub(super) fn new(limits: PoolLimits) -> Self {
        Self { jobs: VecDeque::new(), waiting: BTreeMap::new(), running: BTreeMap::new(), limits }
    }

    /// Whether one more job of `tenant` may wait.
    pub(super) fn has_room(&self, tenant: &TenantId) -> bool {
        let own = self.waiting.get(tenant).copied().unwrap_or_default();
        self.jobs.len() < self.limits.queue && own < self.limits.queue.div_ceil(2)
    }

    /// How many more jobs may wait, whosesoever they are.
    pub(super) fn free(&self) -> usize {
        self.limits.queue.saturating_sub(self.jobs.len())
    }

    /// Lets `job` wait; gives it back if there is no room.
    pub(super) fn push(&mut self, tenant: &TenantId, job: J) -> Result<(), J> {
        if !self.has_room(tenant) {
            return Err(job);
        }
        *self.waiting.entry(tenant.clone()).or_default() += 1;
        self.jobs.push_back((tenant.clone(), job));
        Ok(())
    }

    /// The job that waits longest of those whose tenant may have one more worker. It runs until [`Queue::ended`].
    pub(super) fn take(&mut self) -> Option<(TenantId, J)> {
        let most = self.limits.workers.div_ceil(2);
        let running = &self.running;
        let may_run = |tenant: &TenantId| running.get(tenant).copied().unwrap_or_default() < most;
        let next = self.jobs.iter().position(|(tenant, _)| may_run(tenant))?;
        let (tenant, job) = self.jobs.remove(next)?;
        less(&mut self.waiting, &tenant);
        *self.running.entry(tenant.clone()).or_default() += 1;
        Some((tenant, job))
    }

    /// A job of `tenant` no longer runs.
    pub(super) fn ended(&mut self, tenant: &TenantId) {
        less(&mut self.running, tenant);
    }

    /// What waits and is `meant`; it waits no more.
    pub(super) fn take_out(&mut self, meant: impl Fn(&J) -> bool) -> Vec<J> {
        let (out, left): (VecDeque<_>, VecDeque<_>) = self.jobs.drain(..).partition(|(_, job)| meant(job));
        self.jobs = left;
        out.iter().for_each(|(tenant, _)| less(&mut self.waiting, tenant));
        out.into_iter().map(|(_, job)| job).collect()
    }

    /// Everything that waits; nothing waits then.
    pub(super) fn clear(&mut self) -> Vec<J> {
        self.waiting.clear();
        self.jobs.drain(..).map(|(_, job)| job).collect()
    }
}

/// One less of `tenant`; whoever has none is not kept.
fn less(counts: &mut BTreeMap<TenantId, usize>, tenant: &TenantId) {
    if let Some(count) = counts.get_mut(tenant) {
        *count -= 1;
        if *count == 0 {
            counts.remove(tenant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(workers: usize, queue: usize) -> Queue<u32> {
        Queue::new(PoolLimits { workers, queue })
    }

    fn taken(queue: &mut Queue<u32>) -> Vec<u32> {
        std::iter::from_fn(|| queue.take()).map(|(_, job)| job).collect()
    }

    #[test]
    fn a_tenant_has_at_most_half_of_the_queue_and_of_the_workers() {
        let (loud, quiet) = (TenantId::from("loud"), TenantId::from("quiet"));
        let mut queue = queue(4, 10);
        let let_in: Vec<bool> = (0..7).map(|job| queue.push(&loud, job).is_ok()).collect();
        assert_eq!(let_in, [true, true, true, true, true, false, false]);
        assert_eq!(queue.push(&quiet, 100), Ok(()));
        assert_eq!(queue.free(), 4);
        assert_eq!(taken(&mut queue), [0, 1, 100]);
        queue.ended(&loud);
        assert_eq!(taken(&mut queue), [2]);
        assert!(queue.has_room(&loud));
        assert_eq!(
            (queue.push(&quiet, 101), queue.take_out(|job| *job > 100), queue.waiting.len()),
            (Ok(()), vec![101], 1)
        );
        assert_eq!(queue.clear(), [3, 4]);
        assert_eq!((taken(&mut queue), queue.free()), (vec![], 10));
    }

    #[test]
    fn a_tenant_alone_with_one_worker_is_served() {
        let tenant = TenantId::from("t");
        let mut queue = queue(1, 1);
        assert_eq!((queue.push(&tenant, 1), queue.push(&tenant, 2)), (Ok(()), Err(2)));
        assert_eq!((taken(&mut queue), taken(&mut queue)), (vec![1], vec![]));
        queue.ended(&tenant);
        assert_eq!(queue.push(&tenant, 3), Ok(()));
        assert_eq!(taken(&mut queue), [3]);
        assert_eq!(queue.running.len() + queue.waiting.len(), 1);
    }
}
