//! What is kept of hooks, and for how long.

mod pace;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use pintle_domain::store::{RecordQuery, StoreError, TenantScope};
use pintle_store::Store;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::RetentionConfig;
use pace::Pace;

/// How long what is kept of hooks is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetentionTerms {
    rows: SignedDuration,
    details: SignedDuration,
    audit: SignedDuration,
}

impl RetentionTerms {
    pub(super) fn of(kept: &RetentionConfig) -> Self {
        let days = |days: u32| SignedDuration::from_hours(i64::from(days) * 24);
        let execution_days = kept.execution_days.unwrap_or(RETENTION_DAYS);
        Self {
            rows: days(execution_days),
            details: days(kept.detail_days.unwrap_or(DETAIL_DAYS)),
            // Whoever wants to look back farther at what hooks did wants to prove it, too.
            audit: days(kept.audit_days.unwrap_or(execution_days)),
        }
    }
}

/// How long the audit chain is kept.
pub fn audit_term(kept: &RetentionConfig) -> SignedDuration {
    RetentionTerms::of(kept).audit
}

/// How long events are kept.
pub fn event_term(kept: &RetentionConfig) -> SignedDuration {
    RetentionTerms::of(kept).rows
}

/// The time that executions and events are kept. Source: the published format of rules.
const RETENTION_DAYS: u32 = 90;
/// The time that the details of faults are kept. Source: the published format of rules.
const DETAIL_DAYS: u32 = 30;
/// How often it is looked for what is too old: what is kept an hour longer harms nobody.
const FORGET_EVERY: Duration = Duration::from_secs(3600);
/// The least that is cut of a chain at a time, in rows: what stands between two signatures where much is written.
const LEAST_CUT_ROWS: usize = 1000;

/// How much is forgotten, kind by kind, and by whom else the store was written.
#[derive(Debug, Default)]
struct Forgetting {
    /// One for each of [`OLD_THINGS`].
    paces: [Pace; OLD_THINGS.len()],
    /// Whether there may be more of it.
    done: [bool; OLD_THINGS.len()],
    /// The newest event that was seen: where another one stands, somebody wrote.
    newest: Option<String>,
}

/// What is forgotten when it is too old.
#[derive(Clone, Copy, Debug)]
enum OldThing {
    Executions,
    Events,
    Chains,
}

const OLD_THINGS: [OldThing; 3] = [OldThing::Executions, OldThing::Events, OldThing::Chains];

/// Forgets what is too old, some at a time, until it is cancelled. Other terms count at once.
pub(super) async fn forget_old(
    store: Arc<dyn Store>,
    mut terms: watch::Receiver<RetentionTerms>,
    cancel: CancellationToken,
) {
    let mut forgetting = Forgetting::default();
    loop {
        let (forgetful, terms_now) = (store.clone(), *terms.borrow_and_update());
        let forgotten = tokio::task::spawn_blocking(move || {
            let pause = forgetting.some(&*forgetful, terms_now, Timestamp::now());
            (forgetting, pause)
        });
        let Ok((after, pause)) = forgotten.await else { return };
        forgetting = after;
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(pause.unwrap_or(FORGET_EVERY)) => {}
            // Whoever could say others is gone, and with them the rules.
            changed = terms.changed() => match changed {
                Ok(()) => forgetting.done = Default::default(),
                Err(_) => return,
            },
        }
    }
}

impl Forgetting {
    /// Forgets some of what is too old at `now`. Says how long to leave the store to others until there may be more;
    /// nothing if all is gone. What fails is tried again later.
    fn some(&mut self, store: &dyn Store, terms: RetentionTerms, now: Timestamp) -> Option<Duration> {
        let Some(next) = self.done.iter().position(|done| !done) else {
            self.done = Default::default();
            return None;
        };
        let (limit, began) = (self.paces[next].rows(), Instant::now());
        let more = match OLD_THINGS[next] {
            OldThing::Executions => {
                let gone = store.forget(before(now, terms.rows), before(now, terms.details), limit);
                said("executions", gone) >= limit
            }
            OldThing::Events => said("events", store.forget_events(before(now, terms.rows), limit)) >= limit,
            OldThing::Chains => {
                let gone = cut_some(store, before(now, terms.audit), limit.max(LEAST_CUT_ROWS));
                said("entries of the audit chain", gone) > 0
            }
        };
        let took = began.elapsed();
        self.done[next] = !more;
        let pause = self.paces[next].pause_after(took);
        if !self.others_wrote(store) {
            return Some(pause);
        }
        // Whatever is forgotten next.
        self.paces.iter_mut().for_each(Pace::make_way);
        Some(pause.max(pace::pause_for_others(took)))
    }

    /// Whether somebody wrote since this was asked last, in whichever process: nearly all that is written comes with
    /// an event.
    fn others_wrote(&mut self, store: &dyn Store) -> bool {
        let newest =
            store.find(&RecordQuery { limit: 1, ..RecordQuery::of(TenantScope::All) }).unwrap_or_default().pop();
        let Some(newest) = newest.map(|event| event.event_id) else { return false };
        self.newest.replace(newest.clone()).is_some_and(|seen| seen != newest)
    }
}

/// Cuts `limit` rows of every chain. Says how many rows went.
fn cut_some(store: &dyn Store, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
    let mut gone = 0;
    for tenant in store.audited()? {
        let rows = store.forget_audit(&tenant, before, limit)?;
        if rows > 0 {
            tracing::info!(tenant_id = %tenant, rows, "audit.rows_forgotten");
        }
        gone += rows;
    }
    Ok(gone)
}

fn said(what: &str, forgotten: Result<usize, StoreError>) -> usize {
    forgotten.unwrap_or_else(|error| {
        tracing::warn!("old {what} could not be forgotten: {error}");
        0
    })
}

/// The moment before which something is too old. Nothing here is older than the epoch, whatever a term says.
fn before(now: Timestamp, term: SignedDuration) -> Timestamp {
    now.checked_sub(term).unwrap_or(Timestamp::UNIX_EPOCH).max(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pintle_domain::audit::{CHECKPOINT_ROWS, Verifier, VerifyReport};
    use pintle_domain::execution::Execution;
    use pintle_domain::id::{HookId, TenantId, TurnId};
    use pintle_domain::record::EventRecord;
    use pintle_domain::store::ExecutionQuery;
    use pintle_store::keyring::signing::{PUBLIC_KEY_FILE, PublicKeys, SigningKey};
    use pintle_store::{Durability, StoreKeys, open_with};
    use pintle_testkit::conformance::executions::{by, failed, keep_executions, ran};
    use pintle_testkit::conformance::store::{self as conformance, event};
    use pintle_testkit::postgres::Server;

    use super::*;

    /// What is forgotten at once does not hold what is kept here.
    const ROWS: u64 = 2 * CHECKPOINT_ROWS + 7;

    fn terms(retention_days: Option<u32>, audit_days: Option<u32>) -> RetentionTerms {
        RetentionTerms::of(&RetentionConfig { execution_days: retention_days, detail_days: None, audit_days })
    }

    fn execution(at: Timestamp) -> Execution {
        let hook = HookId::fresh();
        let row = Execution::of(&ran(&hook, failed()), &by(&hook, failed())).unwrap();
        Execution { created_at: at, hook_id: None, ..row }
    }

    /// A store that signs, with so many rows of today.
    fn filled(url: &str, home: &Path, rows: u64) -> Arc<dyn Store> {
        let signing = Some(Arc::new(SigningKey::open_or_create(home).unwrap()));
        let store = open_with(url, home, Durability::Commit, StoreKeys { signing, ..StoreKeys::default() }).unwrap();
        keep(&*store, rows);
        store
    }

    fn keep(store: &dyn Store, rows: u64) {
        let now = Timestamp::now();
        keep_executions(store, (0..rows).map(|_| execution(now)).collect()).unwrap();
    }

    fn verified(store: &dyn Store, home: &Path) -> VerifyReport {
        let keys = PublicKeys::parse(&std::fs::read_to_string(home.join(PUBLIC_KEY_FILE)).unwrap()).unwrap();
        let check = |kid: &str, message: &[u8], signature: &str| keys.verify(kid, message, signature);
        let mut verifier = Verifier::new(&check);
        let tenant = TenantId::default_tenant();
        store.checkpoints(&tenant, 0, 99).unwrap().iter().for_each(|point| verifier.checkpoint(point));
        store.audit_entries(&tenant, 0, 9999).unwrap().into_iter().for_each(|entry| verifier.entry(entry));
        verifier.finish()
    }

    fn now_in_a_turn() -> EventRecord {
        EventRecord { at: Timestamp::now(), ..event(&TurnId::fresh()) }
    }

    fn executions(store: &dyn Store) -> usize {
        let everything = ExecutionQuery { limit: 9999, ..ExecutionQuery::of(TenantScope::All) };
        store.executions(&everything).unwrap().len()
    }

    /// All that is too old goes, some at a time, and what is left is proven.
    fn check(url: &str) {
        let home = tempfile::tempdir().unwrap();
        let store = filled(url, home.path(), ROWS);
        let in_days = |days: i64| Timestamp::now() + SignedDuration::from_hours(24 * days);
        let all = |terms: RetentionTerms, now: Timestamp| {
            let mut forgetting = Forgetting::default();
            std::iter::from_fn(|| forgetting.some(&*store, terms, now)).count()
        };

        conformance::keep(&*store, vec![now_in_a_turn()]).unwrap();
        let events = || store.find(&RecordQuery { limit: 9, ..RecordQuery::of(TenantScope::All) }).unwrap().len();

        all(terms(None, None), in_days(89));
        assert_eq!(events(), 1, "{url}");
        assert_eq!(
            (executions(&*store), verified(&*store, home.path()).tenants[0].rows),
            (ROWS as usize, ROWS),
            "{url}"
        );

        all(terms(None, Some(200)), in_days(91));
        assert_eq!(events(), 0, "{url}: events go with what rules did");

        // The chain is kept for longer than what it tells of.
        all(terms(None, Some(200)), in_days(91));
        assert_eq!((executions(&*store), verified(&*store, home.path()).tenants[0].rows), (0, ROWS), "{url}");

        let last = store.last_checkpoint(&TenantId::default_tenant()).unwrap().unwrap();
        let times = all(terms(None, None), in_days(91));
        assert!(times > OLD_THINGS.len(), "{url}: it is looked again after something went, {times} times");
        keep(&*store, 3);
        let report = verified(&*store, home.path());
        assert!(report.is_intact(), "{url}: {report}");
        let chain = &report.tenants[0];
        assert_eq!((chain.anchor, chain.rows), (Some(last.seq), ROWS + 3 - last.seq), "{url}: {report}");
    }

    #[test]
    fn what_is_too_old_is_forgotten_and_what_is_left_is_proven() {
        check("sqlite://pintle.db");
        let server = Server::start();
        check(&server.fresh_database());
    }

    #[tokio::test]
    async fn other_terms_count_at_once() {
        let home = tempfile::tempdir().unwrap();
        let store = open_with("memory:", home.path(), Durability::Commit, StoreKeys::default()).unwrap();
        let old = Timestamp::now() - SignedDuration::from_hours(24 * 60);
        keep_executions(&*store, vec![execution(old), execution(Timestamp::now())]).unwrap();
        let (say, terms_now) = watch::channel(terms(None, None));
        let cancel = CancellationToken::new();
        let tasks = tokio_util::task::TaskTracker::new();
        let forgetting = tasks.spawn(forget_old(store.clone(), terms_now, cancel));
        say.send(terms(Some(61), None)).unwrap();
        say.send(terms(Some(59), None)).unwrap();
        while executions(&*store) == 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(executions(&*store), 1);
        drop(say);
        forgetting.await.unwrap();
    }

    #[test]
    fn whoever_writes_meanwhile_is_made_way_for_from_another_process_too() {
        let home = tempfile::tempdir().unwrap();
        let [store, other] =
            [filled("sqlite://pintle.db", home.path(), 3), filled("sqlite://pintle.db", home.path(), 3)];
        let mut forgetting = Forgetting::default();
        let mut pause = || forgetting.some(&*store, terms(None, None), Timestamp::now()).map(|_| forgetting.paces);
        let quiet = pause().unwrap();
        conformance::keep(&*other, vec![now_in_a_turn()]).unwrap();
        assert!(quiet.iter().all(|pace| !pace.is_busy()), "the first look cannot tell");
        assert!(pause().unwrap().iter().all(|pace| !pace.is_busy()), "an event was the first that there was");
        conformance::keep(&*other, vec![now_in_a_turn()]).unwrap();
        assert!(pause().unwrap().iter().all(|pace| pace.is_busy()));
    }

    #[test]
    fn a_term_longer_than_time_forgets_nothing() {
        let terms = terms(Some(u32::MAX), None);
        assert_eq!(before(Timestamp::now(), terms.rows), Timestamp::UNIX_EPOCH);
        assert_eq!(before(Timestamp::now(), terms.audit), Timestamp::UNIX_EPOCH);
        let home = tempfile::tempdir().unwrap();
        let store = filled("sqlite://pintle.db", home.path(), 3);
        let mut forgetting = Forgetting::default();
        let times = std::iter::from_fn(|| forgetting.some(&*store, terms, Timestamp::now())).count();
        assert_eq!(times, OLD_THINGS.len(), "each is looked for once");
        assert_eq!(executions(&*store), 3);
    }
}
