//! Jobs that outlive this process: kept in a store until they are done.
//!
//! A job is written before it runs, taken already by this process for a [`LEASE`]: it goes straight on to the workers. If
//! it fails it is written when it is due again; if this process ends first, its lease runs out. So whatever is due in
//! the store is nobody's, and a look at it now and then finds what is left, whoever left it.

use std::any::Any;
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use pintle_domain::checkpoint::Notice;
use pintle_domain::hook::HookState;
use pintle_domain::store::{OutboxJob, OutboxStore, StoreError};
use tokio::sync::oneshot;

use super::telling::Telling;
use super::{Job, ObserverPool, What};
use crate::handler::{BoundRule, RuleHandler};
use pintle_engine::approvals::Clock;
use pintle_engine::live_rules::LiveRules;

/// How long a job that was taken is this process's: far more than one attempt takes, and what a restart waits at most
/// for what was left behind.
pub const LEASE: SignedDuration = SignedDuration::from_secs(45);

/// The part of a lease that must be left when an attempt begins: what a hook may wait for a place, what it may take at
/// most, and as much time again to write down what came of it. With less it is left to whoever takes the job next.
const ATTEMPT: SignedDuration = SignedDuration::from_secs(30);

/// The number of times that a job is tried. Source: the published format of rules.
pub const ATTEMPTS: u32 = 5;

/// How long a job waits after each failed attempt, in seconds: from 1 s to 5 min, each about 6.7 times the one before.
/// Source: the published format of rules.
pub const PAUSES_SECONDS: [i64; ATTEMPTS as usize - 1] = [1, 7, 45, 300];

/// How often it is looked for what is due: the shortest pause.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The time in which a program that is about to end begins what others left: no more than whoever waits for the program
/// forgives. What has begun has its own time.
pub const SEND_TIME: Duration = Duration::from_secs(2);

/// How many jobs one look takes at most: some for every worker, and no more than one transaction should write.
const PAGE: usize = 64;

/// Where jobs are kept.
pub struct Outbox {
    /// Keeps them.
    pub store: Arc<dyn OutboxStore>,
    /// Says when they are due.
    pub clock: Arc<dyn Clock>,
}

/// A job that this process has taken.
pub(super) struct Lease {
    id: String,
    /// How many attempts failed.
    attempts: u32,
    until: Timestamp,
    /// Whether it was found in the store: whoever ends leaves it there.
    is_found: bool,
}

/// A job as a store kept it, taken by this process.
pub struct TakenJob {
    telling: Telling,
    lease: Lease,
}

impl Lease {
    /// Whether the job was found in the store, and is not of this process's own events.
    pub(super) fn is_found(&self) -> bool {
        self.is_found
    }

    /// How often the job was tried again, the attempt that is under way included.
    pub(super) fn retries(&self) -> u32 {
        self.attempts
    }

    fn is_last_attempt(&self) -> bool {
        self.attempts + 1 >= ATTEMPTS
    }
}

impl Outbox {
    /// Whether a job may still be begun.
    pub(super) fn has_time(&self, lease: &Lease) -> bool {
        self.clock.now() + ATTEMPT <= lease.until
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn OutboxStore) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.store.clone();
        match tokio::task::spawn_blocking(move || work(&*store)).await {
            Ok(done) => done,
            Err(error) => Err(StoreError::Unavailable(error.to_string())),
        }
    }

    /// The job is over.
    pub(super) async fn finish(&self, lease: Lease) {
        let id = lease.id.clone();
        if let Err(error) = self.blocking(move |store| store.finish(&id)).await {
            tracing::error!(job = lease.id, "hooks.outbox_write_failed: {error}; the job is done once more");
        }
    }

    /// The job is due again for whoever looks next, as if it had not been taken.
    pub(super) async fn give_back(&self, lease: Lease) {
        let (id, attempts, now) = (lease.id.clone(), lease.attempts, self.clock.now());
        if let Err(error) = self.blocking(move |store| store.try_again(&id, attempts, now)).await {
            // Then it is due when its lease is over.
            tracing::error!(job = lease.id, "hooks.outbox_write_failed: {error}");
        }
    }

    /// The lease that is left of a job whose attempt failed; nothing if it was the last one.
    ///
    /// Of a pause that cannot be written the lease is left, after which the same attempt comes again.
    pub(super) async fn put_off(&self, lease: Lease) -> Option<Lease> {
        if lease.is_last_attempt() {
            return Some(lease);
        }
        let pause = PAUSES_SECONDS[lease.attempts as usize];
        let (id, attempts) = (lease.id.clone(), lease.attempts + 1);
        let next_at = self.clock.now() + SignedDuration::from_secs(pause);
        if let Err(error) = self.blocking(move |store| store.try_again(&id, attempts, next_at)).await {
            tracing::error!(job = lease.id, "hooks.outbox_write_failed: {error}");
        }
        None
    }
}

impl ObserverPool {
    /// Hands a job over to the store and, once it is kept there, to the workers. `false` if too much is on its way to
    /// the store.
    pub(super) fn entrust(self: &Arc<Self>, outbox: &Outbox, (about, notice): (&Arc<BoundRule>, &Arc<Notice>)) -> bool {
        // Nobody is told of an event that has no form for rules.
        let Some(telling) = Telling::of(notice) else { return true };
        let payload = match telling.to_bytes() {
            Ok(payload) => payload,
            Err(error) => {
                tracing::error!(hook_id = %about.id(), "hooks.outbox_write_failed: {error}");
                return self.enqueue(Job::of(about, What::Kept(Box::new(telling)), None));
            }
        };
        if !self.begin_writing() {
            self.count_dropped(about, &telling.who.tenant_id);
            return false;
        }
        let until = outbox.clock.now() + LEASE;
        let key = format!("{}:{}", about.id(), telling.event_id);
        let id = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, key.as_bytes()).to_string();
        let job = OutboxJob {
            id: id.clone(),
            tenant_id: telling.who.tenant_id.clone(),
            hook_id: about.id(),
            event_id: telling.event_id.to_string(),
            payload,
            attempts: 0,
            next_at: until,
        };
        let (sender, kept) = oneshot::channel();
        // The waiting task may have been ended; then the job is found when its lease is over.
        outbox.store.enqueue(vec![job], Box::new(move |how| drop(sender.send(how))));
        let (pool, about) = (self.clone(), about.clone());
        let lease = Lease { id, attempts: 0, until, is_found: false };
        self.tasks.spawn(async move {
            let kept = kept.await.unwrap_or_else(|_| Err(StoreError::Unavailable("its writer is gone".into())));
            pool.written(about, telling, kept.map(|()| lease));
        });
        true
    }

    /// Lets a job run that is kept. One that could not be kept runs all the same, as well as memory can: once.
    fn written(self: &Arc<Self>, about: Arc<BoundRule>, telling: Telling, kept: Result<Lease, StoreError>) {
        let what = What::Kept(Box::new(telling));
        match kept {
            Ok(lease) => {
                // Without room it stays where it is until its lease is over.
                drop(self.push(Job::of(&about, what, Some(lease))));
            }
            Err(error) => {
                tracing::error!(hook_id = %about.id(), "hooks.outbox_write_failed: {error}; the job lives in memory");
                if let Err(job) = self.push(Job::of(&about, what, None)) {
                    self.count_dropped(&about, job.tenant());
                    self.keep_dropped(&job);
                }
            }
        }
        self.end_writing();
    }

    /// Looks for what is due, until the pool closes. Not at once: a program that is over in a moment leaves it to others.
    pub(super) async fn look_for_due(self: Arc<Self>, live: Arc<LiveRules>) {
        let Some(outbox) = &self.outbox else { return };
        let mut may_be_more = false;
        loop {
            let idle = self.idle.notified();
            tokio::select! {
                biased;
                () = self.ending.cancelled() => return,
                () = idle, if may_be_more => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            may_be_more = match self.look(outbox, &live).await {
                Ok(may_be_more) => may_be_more,
                Err(error) => {
                    tracing::error!("hooks.outbox_read_failed: {error}");
                    false
                }
            };
        }
    }

    /// Sends what is due, for a program that is about to end: what begins within [`SEND_TIME`]. The rest is left for
    /// whoever comes next, and no attempt of it counts. What has begun goes on until the pool closes, in the time of its
    /// hook: an attempt that every such program broke off would never come to its end.
    pub async fn send_due(self: &Arc<Self>) {
        let (Some(outbox), Some(live)) = (&self.outbox, self.looking.get().and_then(Weak::upgrade)) else { return };
        let sent = async {
            loop {
                let may_be_more = self.look(outbox, &live).await;
                self.drained().await;
                match may_be_more {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(error) => return tracing::error!("hooks.outbox_read_failed: {error}"),
                }
            }
        };
        if tokio::time::timeout(SEND_TIME, sent).await.is_ok() {
            return;
        }
        // Else this program's own look, which comes every second, takes again what is given back.
        self.ending.cancel();
        let waiting = self.waiting().queue.take_out(Job::is_found);
        for lease in waiting.into_iter().filter_map(|job| job.lease) {
            outbox.give_back(lease).await;
        }
    }

    /// Takes what is due, as far as there is room. Says whether there may be more.
    async fn look(self: &Arc<Self>, outbox: &Outbox, live: &LiveRules) -> Result<bool, StoreError> {
        let limit = self.waiting().queue.free().min(PAGE);
        if limit == 0 {
            return Ok(false);
        }
        let now = outbox.clock.now();
        let until = now + LEASE;
        let due = outbox.blocking(move |store| store.take_due(now, until, limit)).await?;
        if self.ending.is_cancelled() {
            // Whoever comes next does them, and need not wait for the end of a lease.
            for OutboxJob { id, attempts, .. } in due {
                outbox.give_back(Lease { id, attempts, until, is_found: true }).await;
            }
            return Ok(false);
        }
        let is_full = due.len() == limit;
        for job in due {
            if let Err((id, why)) = take_up(live, job, until) {
                tracing::warn!(job = id, "hooks.outbox_job_ended: {why}");
                outbox.finish(Lease { id, attempts: 0, until, is_found: true }).await;
            }
        }
        Ok(is_full)
    }

    /// Lets a job run that was kept. Without room it is left until its lease is over.
    pub(in crate::handler) fn resume(self: &Arc<Self>, about: &Arc<BoundRule>, kept: TakenJob) {
        let TakenJob { telling, lease } = kept;
        drop(self.push(Job::of(about, What::Kept(Box::new(telling)), Some(lease))));
    }
}

/// Gives a kept job to the hook that it is for, as that is now.
///
/// # Errors
/// Nobody can do the job any more, and why.
fn take_up(live: &LiveRules, job: OutboxJob, until: Timestamp) -> Result<(), (String, String)> {
    let OutboxJob { id, tenant_id, hook_id, payload, attempts, .. } = job;
    let telling = match Telling::from_bytes(&payload) {
        Ok(telling) => telling,
        Err(why) => return Err((id, format!("what was kept for hook {hook_id} cannot be read: {why}"))),
    };
    let rules = live.rules();
    let is_meant = |id: &pintle_domain::id::HookId| *id == hook_id;
    let mut mounted = rules.of(&tenant_id).iter();
    let Some(mounted) = mounted.find(|one| one.hook.stored.as_ref().is_some_and(|stored| is_meant(&stored.id))) else {
        return Err((id, format!("hook {hook_id} is gone")));
    };
    let why = match &mounted.hook.state {
        HookState::Armed if mounted.hook.stages.get(telling.event).is_none() => {
            format!("no longer observes `{}`", telling.event.name())
        }
        HookState::Armed => {
            let lease = Lease { id: id.clone(), attempts, until, is_found: true };
            let handler: &dyn Any = &*mounted.handler;
            if let Some(handler) = handler.downcast_ref::<RuleHandler>() {
                handler.resume(TakenJob { telling, lease });
                return Ok(());
            }
            "cannot be run".to_owned()
        }
        HookState::Disabled => "is switched off".to_owned(),
        HookState::Untrusted => "is not trusted".to_owned(),
        HookState::Broken(fault) => format!("is broken: {}", fault.explained()),
        HookState::Tripped { since } => format!("is off since {since}: circuit breaker"),
    };
    Err((id, format!("hook \"{}\" ({hook_id}) {why}", mounted.hook.name)))
}
