//! What is kept of hooks, and for how long.

use std::sync::Arc;
use std::time::Duration;

use domain::store::StoreError;
use jiff::{SignedDuration, Timestamp};
use store::Store;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::RetentionConfig;

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

/// The time that executions and events are kept. Source: the published format of rules.
const RETENTION_DAYS: u32 = 90;
/// The time that the details of faults are kept. Source: the published format of rules.
const DETAIL_DAYS: u32 = 30;
/// How often it is looked for what is too old: what is kept an hour longer harms nobody.
const FORGET_EVERY: Duration = Duration::from_secs(3600);
/// How much is forgotten at a time, in rows: a pause of milliseconds for those who write.
const FORGET_ROWS: usize = 500;
/// How much of a chain is cut at a time, in rows: what stands between two signatures where much is written.
const CUT_ROWS: usize = 1000;
/// How long others have the store for themselves between two times: as long as one time takes, about.
const PAUSE: Duration = Duration::from_millis(10);

/// Forgets what is too old, some at a time, until it is cancelled. Other terms count at once.
pub(super) async fn forget_old(
    store: Arc<dyn Store>,
    mut terms: watch::Receiver<RetentionTerms>,
    cancel: CancellationToken,
) {
    loop {
        let (forgetful, terms_now) = (store.clone(), *terms.borrow_and_update());
        let forgotten = tokio::task::spawn_blocking(move || forget_some(&*forgetful, terms_now, Timestamp::now()));
        let Ok(more) = forgotten.await else { return };
        let pause = if more { PAUSE } else { FORGET_EVERY };
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
            // Whoever could say others is gone, and with them the rules.
            changed = terms.changed() => if changed.is_err() { return },
        }
    }
}

/// Forgets some of what is too old at `now`. Says whether there may be more. What fails is tried again later.
fn forget_some(store: &dyn Store, terms: RetentionTerms, now: Timestamp) -> bool {
    let executions = store.forget(before(now, terms.rows), before(now, terms.details), FORGET_ROWS);
    let more = said("executions", executions) >= FORGET_ROWS;
    let events = store.forget_events(before(now, terms.rows), FORGET_ROWS);
    let more = said("events", events) >= FORGET_ROWS || more;
    let cut = cut_some(store, before(now, terms.audit));
    said("entries of the audit chain", cut) > 0 || more
}

/// Cuts some of every chain. Says how many rows went.
fn cut_some(store: &dyn Store, before: Timestamp) -> Result<usize, StoreError> {
    let mut gone = 0;
    for tenant in store.audited()? {
        let rows = store.forget_audit(&tenant, before, CUT_ROWS)?;
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

    use domain::audit::{CHECKPOINT_ROWS, Verifier, VerifyReport};
    use domain::execution::Execution;
    use domain::id::{HookId, TenantId, TurnId};
    use domain::record::EventRecord;
    use domain::store::{ExecutionQuery, RecordQuery};
    use store::keyring::signing::{PUBLIC_KEY_FILE, PublicKeys, SigningKey};
    use store::{Durability, StoreKeys, open_with};
    use testkit::conformance::executions::{by, failed, keep_executions, ran};
    use testkit::conformance::store::{self as conformance, event};
    use testkit::postgres::Server;

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
        let everything = ExecutionQuery { limit: 9999, ..ExecutionQuery::default() };
        store.executions(&everything).unwrap().len()
    }

    /// All that is too old goes, some at a time, and what is left is proven.
    fn check(url: &str) {
        let home = tempfile::tempdir().unwrap();
        let store = filled(url, home.path(), ROWS);
        let in_days = |days: i64| Timestamp::now() + SignedDuration::from_hours(24 * days);
        let all = |terms: RetentionTerms, now: Timestamp| while forget_some(&*store, terms, now) {};

        conformance::keep(&*store, vec![now_in_a_turn()]).unwrap();
        let events = || store.find(&RecordQuery { limit: 9, ..RecordQuery::default() }).unwrap().len();

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
        assert!(forget_some(&*store, terms(None, None), in_days(91)), "{url}: not all at once");
        all(terms(None, None), in_days(91));
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
    fn a_term_longer_than_time_forgets_nothing() {
        let terms = terms(Some(u32::MAX), None);
        assert_eq!(before(Timestamp::now(), terms.rows), Timestamp::UNIX_EPOCH);
        assert_eq!(before(Timestamp::now(), terms.audit), Timestamp::UNIX_EPOCH);
        let home = tempfile::tempdir().unwrap();
        let store = filled("sqlite://pintle.db", home.path(), 3);
        assert!(!forget_some(&*store, terms, Timestamp::now()));
        assert_eq!(executions(&*store), 3);
    }
}
