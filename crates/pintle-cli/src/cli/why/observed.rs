//! What came of rules that only observe: the turn does not wait for them, so its records say that they were told,
//! and their executions say the rest.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use pintle_domain::execution::Execution;
use pintle_domain::hook::Family;
use pintle_domain::rule::Decision;
use pintle_domain::store::{ExecutionQuery, ExecutionStore, StoredEvent, StoredRecord, TenantScope};
use pintle_domain::verdict::VerdictKind;

use crate::error::CliError;

/// How many executions are read at once: about as many as a long turn leaves.
const PAGE: usize = 1000;

/// How many times that at most: an event that is older than so many executions of its session is shown without them.
const MAX_PAGES: usize = 20;

/// How much earlier than its event an execution is looked for: stores keep whole microseconds.
const SLACK: SignedDuration = SignedDuration::from_millis(1);

/// Adds to the hooks of `events` that were told of something what came of it, as far as they are done.
pub(super) fn fill(store: &dyn ExecutionStore, events: &mut [StoredEvent]) -> Result<(), CliError> {
    let observed = || events.iter().filter(|event| event.hooks.iter().any(is_told));
    let sessions: BTreeSet<String> = observed().map(|event| event.session_id.clone()).collect();
    let since = observed().filter_map(|event| event.at.parse::<Timestamp>().ok()).min();
    let since = since.and_then(|at| at.checked_sub(SLACK).ok());
    let mut found: BTreeMap<(String, String), Vec<Execution>> = BTreeMap::new();
    for session in sessions {
        for row in
            executions(store, ExecutionQuery { session: Some(session), since, ..ExecutionQuery::of(TenantScope::All) })?
        {
            found.entry((row.event_id.clone(), row.hook_name.clone())).or_default().push(row);
        }
    }
    for event in events {
        for hook in event.hooks.iter_mut().filter(|hook| is_told(hook)) {
            // Of two hooks with one name nobody can say which it was.
            if let Some([row]) = found.get(&(event.event_id.clone(), hook.hook.clone())).map(Vec::as_slice) {
                complete(hook, row);
            }
        }
    }
    Ok(())
}

/// Whether nothing is known of the hook but that it was told.
fn is_told(hook: &StoredRecord) -> bool {
    hook.family == Family::Rule.word() && hook.ran && hook.verdict.is_none() && hook.fault.is_none()
}

fn executions(store: &dyn ExecutionStore, query: ExecutionQuery) -> Result<Vec<Execution>, CliError> {
    let mut query = ExecutionQuery { limit: PAGE, ..query };
    let mut all = Vec::new();
    for _ in 0..MAX_PAGES {
        let rows = store.executions(&query).map_err(|error| CliError::failed(error.to_string()))?;
        query.after = rows.last().map(|row| (row.created_at.to_string(), row.id.clone()));
        let is_end = rows.len() < PAGE;
        all.extend(rows);
        if is_end {
            break;
        }
    }
    Ok(all)
}

fn complete(hook: &mut StoredRecord, row: &Execution) {
    hook.duration_ms = Some(f64::from(u32::try_from(row.duration_ms).unwrap_or(u32::MAX)));
    hook.slot_wait_ms = row.metadata.get("slot_wait_ms").and_then(|ms| ms.as_f64());
    match row.decision {
        Decision::Allow => hook.reason.clone_from(&row.reason),
        // It decides nothing, so it is not a verdict.
        Decision::Block | Decision::Ask => {
            let why = row.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            hook.reason = Some(format!("answered {}, which decides nothing here{why}", row.decision.word()));
        }
        Decision::Error | Decision::Timeout => {
            let fault = row.metadata.get("fault").and_then(|fault| fault.as_str());
            hook.fault = Some(fault.unwrap_or(row.decision.word()).to_owned());
            hook.cause.clone_from(&row.error);
            hook.verdict = Some(VerdictKind::Continue.as_str().to_owned());
        }
    }
}
