//! Hooks that only observe: told through a pool, so that nobody waits for them.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use pintle_domain::account::Account;
use pintle_domain::chain::GATE_BUDGET;
use pintle_domain::checkpoint::Notice;
use pintle_domain::execution::Execution;
use pintle_domain::fault::{Fault, FaultKind};
use pintle_domain::id::TenantId;
use pintle_domain::record::{HookOutcome, NotRun, Record};
use pintle_domain::store::ExecutionStore;
use pintle_domain::verdict::VerdictKind;
use pintle_engine::evidence::LostCounter;
use pintle_engine::live_rules::{LiveRules, OutcomeListener};
use pintle_engine::telemetry::Tracer;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::BoundRule;
use super::answer::{Failure, ShownInput};
use super::running::{RuleQuestion, RunResult};
use crate::reply::Decision;

mod failing;
mod outbox;
mod queue;
mod spans;
mod telling;
mod worker;

pub use outbox::{ATTEMPTS, LEASE, LOOK_EVERY, Outbox, PAUSES_SECONDS, SEND_TIME, TakenJob};
pub use queue::PoolLimits;

use failing::say_failure;
use outbox::Lease;
use queue::Queue;
use telling::Telling;
use worker::Worker;

/// The time that a turn waits for room in the pool. Source: the published format of rules.
const ROOM_TIME: Duration = Duration::from_millis(50);

/// How long those who were told of something may still work once the host closes: what one hook may take at most. The
/// end of a turn is often the end of the program, and its observers are told of that end.
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// The time that an observer waits for a place to run, beside its own: as long as a chain of gates may take in all.
pub(super) const SLOT_TIME: Duration = GATE_BUDGET;

/// The reason that is kept of a job that the end of the host came before.
const CLOSED: &str = "the host closed before the hook ran";

/// Tells observers, some at a time.
pub struct ObserverPool {
    waiting: Mutex<Waiting>,
    limits: PoolLimits,
    left: Notify,
    idle: Notify,
    tasks: TaskTracker,
    /// Set when nothing is looked for any more.
    ending: CancellationToken,
    /// Set when what runs is stopped.
    closing: CancellationToken,
    executions: Arc<dyn ExecutionStore>,
    outcomes: Mutex<Option<Arc<dyn OutcomeListener>>>,
    outbox: Option<Outbox>,
    /// The rules that kept jobs are for. They hold this pool.
    looking: OnceLock<Weak<LiveRules>>,
    lost: LostCounter,
    tracer: OnceLock<Arc<Tracer>>,
}

struct Waiting {
    queue: Queue<Job>,
    /// How many workers there are. One that finds nothing to do leaves under the lock, so no job waits for it.
    workers: usize,
    /// How many jobs are on their way to the outbox.
    writing: usize,
    dropped: u64,
}

/// One hook that is to be told of something.
struct Job {
    about: Arc<BoundRule>,
    what: What,
    /// For jobs that are kept in the outbox.
    lease: Option<Lease>,
}

/// The event that it is told of.
enum What {
    /// As it happened; nothing was put into words yet.
    Notice(Arc<Notice>),
    /// In words.
    Kept(Box<Telling>),
}

impl Job {
    fn of(about: &Arc<BoundRule>, what: What, lease: Option<Lease>) -> Self {
        Self { about: about.clone(), what, lease }
    }

    /// Whether it was found in the outbox.
    fn is_found(&self) -> bool {
        self.lease.as_ref().is_some_and(Lease::is_found)
    }

    fn tenant(&self) -> &TenantId {
        match &self.what {
            What::Notice(notice) => &notice.who.tenant_id,
            What::Kept(telling) => &telling.who.tenant_id,
        }
    }
}

impl What {
    fn telling(self) -> Option<Box<Telling>> {
        match self {
            Self::Notice(notice) => Telling::of(&notice).map(Box::new),
            Self::Kept(telling) => Some(telling),
        }
    }
}

/// A job of the store's, at its last attempt or before the next one.
struct KeptJob<'a> {
    outbox: &'a Outbox,
    lease: Lease,
    about: &'a BoundRule,
    telling: &'a Telling,
}

impl ObserverPool {
    /// A pool whose executions go to `executions`. Its work belongs to `tasks`.
    pub fn new(limits: PoolLimits, executions: Arc<dyn ExecutionStore>, tasks: TaskTracker) -> Arc<Self> {
        Arc::new(Self::of(limits, executions, tasks, None))
    }

    /// A pool with jobs that outlive this process: at least once each, up to [`ATTEMPTS`] times.
    pub fn durable(
        limits: PoolLimits,
        executions: Arc<dyn ExecutionStore>,
        tasks: TaskTracker,
        outbox: Outbox,
    ) -> Arc<Self> {
        Arc::new(Self::of(limits, executions, tasks, Some(outbox)))
    }

    fn of(limits: PoolLimits, executions: Arc<dyn ExecutionStore>, tasks: TaskTracker, outbox: Option<Outbox>) -> Self {
        let waiting = Waiting { queue: Queue::new(limits), workers: 0, writing: 0, dropped: 0 };
        Self {
            waiting: Mutex::new(waiting),
            limits,
            left: Notify::new(),
            idle: Notify::new(),
            tasks,
            ending: CancellationToken::new(),
            closing: CancellationToken::new(),
            executions,
            outcomes: Mutex::default(),
            outbox,
            looking: OnceLock::new(),
            lost: LostCounter::default(),
            tracer: OnceLock::new(),
        }
    }

    /// Lets `outcomes` hear what becomes of handlers.
    pub fn count_by(&self, outcomes: Arc<dyn OutcomeListener>) {
        *self.outcomes.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcomes);
    }

    /// Begins to do what is left in the outbox, if there is one, with the hooks of `live`: these must have been read,
    /// since the jobs of a hook that is not there are over. Every call but the first does nothing. Needs a runtime.
    pub fn look_with(self: &Arc<Self>, live: &Arc<LiveRules>) {
        if self.outbox.is_some() && self.looking.set(Arc::downgrade(live)).is_ok() {
            self.tasks.spawn(self.clone().look_for_due(live.clone()));
        }
    }

    /// How many jobs were dropped, for want of room or of time at the end.
    pub fn dropped(&self) -> u64 {
        self.waiting().dropped
    }

    /// How many rows of jobs the store could not take.
    pub fn lost(&self) -> u64 {
        self.lost.so_far()
    }

    /// Lets what waits and what runs come to its end, but not for long. What is kept in the outbox stays there.
    pub fn close(self: &Arc<Self>) {
        self.ending.cancel();
        let pool = self.clone();
        self.tasks.spawn(async move {
            if tokio::time::timeout(DRAIN_TIME, pool.drained()).await.is_err() {
                pool.stop();
            }
        });
    }

    /// Stops what still runs and gives up what still waits.
    fn stop(&self) {
        self.closing.cancel();
        let left = self.waiting().queue.clear();
        let lost: Vec<Job> = left.into_iter().filter(|job| job.lease.is_none()).collect();
        self.waiting().dropped += lost.len() as u64;
        tracing::warn!(lost = lost.len(), "observers did not end in time and were stopped");
        for job in lost {
            let Job { about, what, .. } = job;
            let Some(telling) = what.telling() else { continue };
            self.trace_dropped(&about, &telling.who.tenant_id);
            let account = Account { detail: Some(CLOSED.into()), ..Account::default() };
            let outcome =
                HookOutcome::Failed { fault: Fault::Cancelled, became: VerdictKind::Continue, took: Duration::ZERO };
            let record = record(&about, &telling, outcome, account);
            self.trace(&telling, &record);
            self.keep(&telling, record, || {});
        }
    }

    /// Waits until nothing waits and nothing runs.
    async fn drained(&self) {
        loop {
            let idle = self.idle.notified();
            {
                let waiting = self.waiting();
                if waiting.workers == 0 && waiting.writing == 0 {
                    return;
                }
            }
            idle.await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_room(&self, tenant: &TenantId) -> bool {
        let waiting = self.waiting();
        match &self.outbox {
            None => waiting.queue.has_room(tenant),
            // The store is the queue; only what is on its way there has a bound.
            Some(_) => waiting.writing < self.limits.queue,
        }
    }

    /// Waits for room for a job of `tenant`, but not for long.
    pub async fn room(&self, tenant: &TenantId) {
        if self.has_room(tenant) {
            return;
        }
        let there = async {
            loop {
                let left = self.left.notified();
                if self.has_room(tenant) {
                    return;
                }
                left.await;
            }
        };
        // Without room the job is dropped, and that is recorded.
        drop(tokio::time::timeout(ROOM_TIME, there).await);
    }

    /// Queues that the hook of `about` is told of `notice`; `false` if there was no room.
    pub(crate) fn submit(self: &Arc<Self>, about: &Arc<BoundRule>, notice: &Arc<Notice>) -> bool {
        match &self.outbox {
            Some(outbox) if !self.closing.is_cancelled() => self.entrust(outbox, (about, notice)),
            Some(_) | None => self.enqueue(Job::of(about, What::Notice(notice.clone()), None)),
        }
    }

    /// Lets `job` wait for a worker; `false`, and counted, if there is no room.
    fn enqueue(self: &Arc<Self>, job: Job) -> bool {
        let Err(job) = self.push(job) else { return true };
        self.count_dropped(&job.about, job.tenant());
        false
    }

    fn count_dropped(&self, about: &BoundRule, tenant: &TenantId) {
        self.waiting().dropped += 1;
        self.trace_dropped(about, tenant);
        tracing::warn!(hook_id = %about.id(), %tenant, "hooks.async_dropped");
    }

    /// One more job is on its way to the outbox; `false` if too many are.
    fn begin_writing(&self) -> bool {
        let mut waiting = self.waiting();
        let may_write = waiting.writing < self.limits.queue;
        waiting.writing += usize::from(may_write);
        may_write
    }

    /// It has arrived, or cannot.
    fn end_writing(&self) {
        self.waiting().writing -= 1;
        self.left.notify_waiters();
        self.idle.notify_waiters();
    }

    /// Lets `job` wait for a worker, and sees to it that there is one; gives it back if there is no room.
    fn push(self: &Arc<Self>, job: Job) -> Result<(), Box<Job>> {
        {
            let mut waiting = self.waiting();
            if self.closing.is_cancelled() {
                return Err(Box::new(job));
            }
            let tenant = job.tenant().clone();
            waiting.queue.push(&tenant, job).map_err(Box::new)?;
            if waiting.workers >= self.limits.workers {
                return Ok(());
            }
            waiting.workers += 1;
        }
        self.tasks.spawn(Worker::new(self.clone()).work());
        Ok(())
    }

    /// Runs one hook, and keeps what came of it.
    async fn tell(&self, Job { about, what, lease }: Job) {
        let lease = match (&self.outbox, lease) {
            (Some(outbox), Some(lease)) if outbox.has_time(&lease) => Some((outbox, lease)),
            // It waited so long that somebody else may take it now.
            (Some(_), Some(_)) => {
                tracing::debug!(hook_id = %about.id(), "a job waited too long for a worker and is queued again");
                return;
            }
            (_, _) => None,
        };
        let Some(telling) = what.telling() else { return };
        let began = Instant::now();
        let RunResult { said, mut account } = self.ask(&about, &telling).await;
        let took = began.elapsed().saturating_sub(account.slot_wait);
        let outcome = match said {
            Ok(said) => HookOutcome::Said { word: word(said.decision), reason: said.reason, took },
            Err(Failure { fault, detail }) => {
                account.detail.get_or_insert(detail);
                HookOutcome::Failed { fault, became: VerdictKind::Continue, took }
            }
        };
        let Some((outbox, lease)) = lease else {
            let record = record(&about, &telling, outcome, account);
            self.count(&about, &telling, &record);
            self.keep(&telling, record, || {});
            return;
        };
        account.retry = lease.retries();
        let kept = KeptJob { outbox, lease, about: &about, telling: &telling };
        self.settle(kept, record(&about, &telling, outcome, account)).await;
    }

    /// Keeps what came of an attempt: a row, and when the next one is due if it was not the last one.
    async fn settle(&self, kept: KeptJob<'_>, record: Record) {
        let KeptJob { outbox, lease, about, telling } = kept;
        let lease = match &record.outcome {
            // This process ends; the next one does it.
            HookOutcome::Failed { fault, .. } if fault.kind() == FaultKind::Cancelled => {
                if lease.is_found() {
                    outbox.give_back(lease).await;
                }
                return;
            }
            HookOutcome::Failed { .. } => {
                self.count(about, telling, &record);
                outbox.put_off(lease).await
            }
            HookOutcome::Said { .. } | HookOutcome::Told | HookOutcome::NotRun(_) => {
                self.count(about, telling, &record);
                Some(lease)
            }
        };
        let Some(lease) = lease else { return self.keep_attempt(telling, record) };
        let (sender, kept) = oneshot::channel();
        // Nobody waits only if this task was ended.
        self.keep(telling, record, move || sender.send(()).unwrap_or_default());
        // The row first: a job that is done twice has one row, one that is forgotten has none. A row that cannot be
        // written is said and does not bring the job back. One that still waits for a fault to pass when the host has no
        // time any more does: the next process does the job once more.
        tokio::select! {
            biased;
            _told = kept => outbox.finish(lease).await,
            () = self.closing.cancelled() => {}
        }
    }

    async fn ask(&self, about: &Arc<BoundRule>, telling: &Telling) -> RunResult<crate::reply::HandlerReply> {
        let timeout = about.hook.stages.get(telling.event).map_or(Duration::ZERO, |stage| stage.timeout);
        let shown = ShownInput { tool: telling.tool.as_deref().unwrap_or_default(), input: telling.input.as_ref() };
        let asked = RuleQuestion {
            about,
            event_id: &telling.event_id,
            who: &telling.who,
            payload: telling.payload.clone(),
            shell: None,
            facts: shown,
            event: telling.event,
            timeout,
            // A turn waits for nobody here, so waiting for a slot takes nothing of its time.
            budget: timeout + SLOT_TIME,
            cancel: &self.closing,
            again: false,
        };
        asked.run(|answer| Ok(answer.said)).await
    }

    /// Hands the row of `record` over, if it has one; `done` is called once it is kept, or cannot be.
    fn keep(&self, telling: &Telling, record: Record, done: impl FnOnce() + Send + 'static) {
        match row(telling, &record) {
            Some(row) => self.keep_row(&record, row, done),
            None => done(),
        }
    }

    /// Keeps that an attempt failed after which there is another one. Its row has a key of its own, so that of the last
    /// attempt stands beside it.
    fn keep_attempt(&self, telling: &Telling, record: Record) {
        let Some(row) = row(telling, &record) else { return };
        let dedup_key = row.dedup_key.as_ref().map(|key| format!("{key}~{}", row.retry));
        self.keep_row(&record, Execution { dedup_key, ..row }, || {});
    }

    fn keep_row(&self, record: &Record, row: Execution, done: impl FnOnce() + Send + 'static) {
        say_failure(record, &row);
        let lost = self.lost.clone();
        self.executions.keep_executions(
            vec![row],
            Box::new(move |kept| {
                if let Err(error) = kept {
                    lost.count(1, &error);
                }
                done();
            }),
        );
    }

    /// Keeps that there was no room for a job, where nobody else does.
    fn keep_dropped(&self, job: &Job) {
        let What::Kept(telling) = &job.what else { return };
        let record = record(&job.about, telling, HookOutcome::NotRun(NotRun::Dropped), Account::default());
        self.trace(telling, &record);
        self.keep(telling, record, || {});
    }
}

/// The row of `record`, if it has one: a test leaves none.
fn row(telling: &Telling, record: &Record) -> Option<Execution> {
    if telling.who.is_test { None } else { Execution::of(&telling.record(), record) }
}

fn record(about: &BoundRule, telling: &Telling, outcome: HookOutcome, account: Account) -> Record {
    Record { account: Some(Box::new(account)), ..Record::of(&about.hook, telling.event, outcome) }
}

/// The word for what an observer said, which counts for nothing but its row.
fn word(decision: Decision) -> VerdictKind {
    match decision {
        Decision::Allow => VerdictKind::Continue,
        Decision::Ask => VerdictKind::Ask,
        Decision::Block | Decision::Defer => VerdictKind::Deny,
    }
}
