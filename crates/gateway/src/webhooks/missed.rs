//! What happened and nobody kept: the process that noticed it died before. It is found again in what the store has of it.

use jiff::{SignedDuration, Timestamp};
use pintle_domain::approval::ApprovalState;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::execution::redacted;
use pintle_domain::fault::FaultKind;
use pintle_domain::id::{CallId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::record::stopper;
use pintle_domain::store::{
    ApprovalQuery, FailedTurn, NO_HOOK, RecordQuery, StoreError, StoredEvent, StoredRecord, StoredRules, TenantScope,
};
use pintle_domain::verdict::VerdictKind;
use pintle_domain::webhook::WebhookEvent;
use pintle_rules::cache::ChangedBreaker;
use pintle_store::Store;

use super::payload::{Blocked, Happened};
use crate::session_name::SessionName;

/// Most events of a kind that are found again at once: beyond it something else is wrong.
const MAX_FOUND: usize = 1000;

/// The same of turns that failed: as many as a lively host works while its model is down.
const MAX_FAILED: usize = 10_000;

/// How the stage begins in which a hook stopped a turn.
const BY_HOOK: &str = "hook.";

/// How far back approvals were asked for that may be decided since: as long as a day of work.
const ASKED_WITHIN: SignedDuration = SignedDuration::from_hours(24);

/// What happened since `since`, of the kinds that `wanted` picks. Some of it may be kept already: it has the same key.
/// Blocks.
pub(super) fn missed(
    store: &dyn Store,
    since: Timestamp,
    wanted: impl Fn(WebhookEvent) -> bool,
) -> Result<Vec<Happened>, StoreError> {
    let mut found = Vec::new();
    if wanted(WebhookEvent::ExecutionBlocked) {
        let refused =
            RecordQuery { refused: true, since: Some(since), limit: MAX_FOUND, ..RecordQuery::of(TenantScope::All) };
        found.extend(store.find(&refused)?.iter().filter_map(blocked).map(|it| Happened::Blocked(Box::new(it))));
    }
    if wanted(WebhookEvent::ApprovalCreated) || wanted(WebhookEvent::ApprovalDecided) {
        let now = Timestamp::now();
        for mut approval in store.approvals(&ApprovalQuery::newest(TenantScope::All, MAX_FOUND))? {
            approval.state = approval.state_at(now);
            let oldest = match approval.state {
                ApprovalState::Waiting => since,
                ApprovalState::Approved
                | ApprovalState::Refused
                | ApprovalState::Used
                | ApprovalState::Void
                | ApprovalState::Expired => since.checked_sub(ASKED_WITHIN).unwrap_or(since),
            };
            if approval.asked_at >= oldest {
                found.push(Happened::Approval(Box::new(approval)));
            }
        }
    }
    if wanted(WebhookEvent::HookChanged) {
        let epoch = store.epoch()?;
        let lines = store.rule_changes_since(since, MAX_FOUND)?;
        // A line without a hook is about a budget.
        let about_hooks = lines.into_iter().filter(|line| line.hook_id.as_str() != NO_HOOK);
        found.extend(about_hooks.map(|line| Happened::HookChanged(line, epoch)));
    }
    if wanted(WebhookEvent::TurnFailed) {
        let failed = store.failed_turns(since, MAX_FAILED)?;
        // What a hook stops is told as such. A terminal tells its own user.
        let of_server = |turn: &FailedTurn| SessionName::kept(turn.session.as_str()).is_some();
        let failed = failed.into_iter().filter(|turn| !turn.stage.starts_with(BY_HOOK) && of_server(turn));
        found.extend(failed.map(|turn| Happened::TurnFailed(Box::new(turn))));
    }
    if wanted(WebhookEvent::BudgetLow) {
        let low = store.low_budgets(since)?.into_iter();
        found.extend(low.map(|(tenant, budget)| Happened::BudgetLow(tenant, budget)));
    }
    if wanted(WebhookEvent::BreakerTripped) {
        found.extend(open(&store.rules()?, since));
    }
    found.retain(|happened| wanted(happened.event()));
    Ok(found)
}

/// The event as others are told of it, if a hook stopped what it was about.
fn blocked(event: &StoredEvent) -> Option<Blocked> {
    if event.is_test || !VerdictKind::named(&event.ruling).is_some_and(VerdictKind::refuses) {
        return None;
    }
    let by = stopper(event.hooks.iter().map(word), event.text.as_deref()).map(|at| &event.hooks[at]);
    let text = || event.text.clone().unwrap_or_default();
    let mut who = Identity::top(&event.agent_id, &event.session_id, TurnId::from(event.turn_id.as_str()));
    who.tenant_id = event.tenant_id.as_str().into();
    who.tool_call_id = event.tool_call_id.as_deref().map(CallId::from);
    Some(Blocked {
        event_id: event.event_id.clone(),
        who,
        at: event.at.parse().ok()?,
        checkpoint: CheckpointKind::named(&event.checkpoint)?,
        tool: event.tool.clone(),
        head: event.call.as_ref().map(|call| redacted(&call.line())),
        hook_id: None,
        hook: by.map(|hook| hook.hook.clone()).unwrap_or_default(),
        reason: by.and_then(reason).unwrap_or_else(text),
    })
}

/// The word of the verdict of `hook`, or of what stood in its place.
fn word(hook: &StoredRecord) -> Option<VerdictKind> {
    VerdictKind::named(hook.verdict.as_deref()?)
}

/// Why `hook` stopped it, in the words of whoever is told at once; nothing where it only asked or did not run: then
/// the text of the ruling says it.
fn reason(hook: &StoredRecord) -> Option<String> {
    if !hook.ran || !word(hook)?.refuses() {
        return None;
    }
    let fault =
        || Some(FaultKind::told_of(hook.fault.as_deref()?, hook.fault_detail.as_deref()?, hook.cause.as_deref()));
    hook.reason.clone().or_else(fault)
}

/// The breakers that opened since then, and are open.
fn open(rules: &StoredRules, since: Timestamp) -> Vec<Happened> {
    let is_since = |at: &str| at.parse::<Timestamp>().is_ok_and(|at| at >= since);
    let of_rows = rules.hooks.iter().filter_map(|rule| {
        let at = rule.tripped_at.clone().filter(|at| is_since(at))?;
        let (hook, tenant, policy) = (rule.id.clone(), rule.tenant_id.clone(), rule.breaker);
        Some((ChangedBreaker { hook, tenant, since: Some(at.clone()), policy, is_beside: false }, at))
    });
    let beside = rules.trips.iter().filter(|trip| is_since(&trip.tripped_at)).filter_map(|trip| {
        let rule = rules.hooks.iter().find(|rule| rule.id == trip.hook_id)?;
        let (hook, tenant, at) = (trip.hook_id.clone(), trip.tenant_id.clone(), trip.tripped_at.clone());
        let policy = rule.breaker;
        Some((ChangedBreaker { hook, tenant, since: Some(at.clone()), policy, is_beside: true }, at))
    });
    of_rows.chain(beside).map(|(breaker, at)| Happened::BreakerTripped(breaker, at)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pintle_domain::account::Account;
    use pintle_domain::approval::refusal;
    use pintle_domain::fault::{Cause, Fault};
    use pintle_domain::hook::Family;
    use pintle_domain::id::{EventId, HookName};
    use pintle_domain::record::{EventRecord, EventRuling, HookOutcome, NotRun, Record, RecordLines};

    use super::*;
    use crate::runs::StoppedBy;

    /// A call that a hook refused.
    fn refused(outcome: HookOutcome) -> EventRecord {
        let mut hooks = RecordLines::default();
        hooks.push(Record {
            hook: HookName::from("guard"),
            family: Family::Process,
            checkpoint: CheckpointKind::BeforeTool,
            outcome,
            warnings: Vec::new(),
            change: None,
            again: false,
            account: None,
            stored: None,
        });
        EventRecord {
            event_id: EventId::fresh(),
            at: Timestamp::UNIX_EPOCH,
            checkpoint: CheckpointKind::BeforeTool,
            kind: None,
            who: Identity::top("main", "s", TurnId::from("t")),
            tool: None,
            input: None,
            ruling: EventRuling { text: Some("refused".to_owned()), ..EventRuling::word(VerdictKind::Deny) },
            hooks,
        }
    }

    #[test]
    fn whoever_is_told_later_hears_the_reason_of_then_and_nothing_that_a_program_wrote() {
        let took = Duration::from_millis(1);
        let failed = |fault| HookOutcome::Failed { fault, became: VerdictKind::Deny, took };
        let said = |reason: Option<&str>| HookOutcome::Said {
            word: VerdictKind::Deny,
            reason: reason.map(str::to_owned),
            took,
        };
        let last_words = || Some(Cause::from("Traceback:\n  File \"g.py\"\nKeyError: 'x'"));
        for (outcome, reason) in [
            (said(Some("not today")), "not today"),
            (said(None), "refused"),
            (failed(Fault::exited(1).with_last_words(last_words())), "exited with status 1"),
            (failed(Fault::killed(9).with_last_words(last_words())), "was killed by signal 9"),
            (failed(Fault::broke("no such verdict")), "broke the protocol: no such verdict"),
            (failed(Fault::TimedOut { after: Duration::from_secs(2) }), "timed out after 2000 ms"),
        ] {
            let record = refused(outcome);
            let later = blocked(&StoredEvent::from(&record)).map(|blocked| blocked.reason);
            assert_eq!(StoppedBy::of(&record).map(|stopped| stopped.reason).as_deref(), Some(reason));
            assert_eq!(later.as_deref(), Some(reason));
        }
    }

    #[test]
    fn what_counts_in_the_place_of_a_hook_that_did_not_run_is_told_as_of_that_hook() {
        let took = Duration::ZERO;
        let mut record = refused(HookOutcome::Said { word: VerdictKind::Deny, reason: None, took });
        for hook in record.hooks.whole_mut() {
            let instead = Some(NotRun::CapReached { cap: 3 });
            hook.account = Some(Box::new(Account { instead, ..Account::default() }));
        }
        let (stopped, later) = (StoppedBy::of(&record).unwrap(), blocked(&StoredEvent::from(&record)).unwrap());
        assert_eq!((stopped.hook.as_str(), stopped.reason.as_str()), ("guard", "refused"));
        assert_eq!((later.hook.as_str(), later.reason.as_str()), ("guard", "refused"));
    }

    #[test]
    fn what_was_asked_about_where_nobody_answers_was_stopped_by_the_hook_that_asked() {
        let took = Duration::from_millis(1);
        let asked = HookOutcome::Said { word: VerdictKind::Ask, reason: Some("a person must say".to_owned()), took };
        let record = refused(asked);
        let (stopped, later) = (StoppedBy::of(&record).unwrap(), blocked(&StoredEvent::from(&record)).unwrap());
        assert_eq!((stopped.hook.as_str(), stopped.reason.as_str()), ("guard", "refused"));
        assert_eq!(later.hook, "guard");
        let mut record = record;
        record.ruling.text = Some(refusal(Some("anna"), "use a branch"));
        let (stopped, later) = (StoppedBy::of(&record).unwrap(), blocked(&StoredEvent::from(&record)).unwrap());
        assert_eq!((stopped.hook.as_str(), later.hook.as_str()), ("", ""));
    }
}
