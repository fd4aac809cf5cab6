//! What every store of audit chains has to do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use jiff::Timestamp;
use pintle_domain::audit::{
    AuditCheckpoint, AuditEntry, AuditFinding, AuditKind, CHECKPOINT_ROWS, ChainHead, Proof, Verifier, VerifyReport,
};
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::{CallId, DEFAULT_TENANT, HookId, TenantId, TurnId};
use pintle_domain::json::{self, Object, Value, json};
use pintle_domain::record::{EventRecord, EventRuling};
use pintle_domain::store::AuditStore;
use pintle_domain::tool::{Digest, ToolCall};
use pintle_domain::verdict::VerdictKind;

use super::executions::{EvidenceStore, MakeHook, OTHER_TENANT, all, failed, ran, said};
use super::store::{event, keep};

/// How many entries are read at once.
const PAGE: usize = 500;

/// Says what a signature is worth.
pub type Check<'a> = dyn Fn(&str, &[u8], &str) -> Proof + 'a;

/// Runs the suite on a store that is empty, signs and encrypts.
///
/// # Panics
/// The store does not do what it has to.
pub fn audit(store: &dyn EvidenceStore, make_hook: &MakeHook<'_>, check: &Check<'_>) {
    assert_eq!(store.audited(), Ok(Vec::new()), "the suite needs an empty store");
    assert_eq!(store.audit_entries(&TenantId::default_tenant(), 0, 9), Ok(Vec::new()));
    every_row_has_its_entry(store, make_hook);
    every_decision_has_its_entry(store);
    chains_hold_whoever_appends(store, check);
    what_is_signed_can_be_cut(store, check);
}

/// What a verifier says of all chains of `store`.
///
/// # Panics
/// The store cannot be read.
pub fn verified(store: &dyn AuditStore, check: &Check<'_>) -> VerifyReport {
    let mut verifier = Verifier::new(check);
    for tenant in store.audited().expect("the store can be read") {
        points(store, &tenant).iter().for_each(|it| verifier.checkpoint(it));
        chain(store, &tenant).into_iter().for_each(|entry| verifier.entry(entry));
    }
    verifier.finish()
}

/// Everything that is wrong, in the order of the tenants.
pub fn findings(report: &VerifyReport) -> Vec<&AuditFinding> {
    report.tenants.iter().flat_map(|tenant| &tenant.findings).collect()
}

/// All checkpoints of a tenant, read two at a time.
fn points(store: &dyn AuditStore, tenant: &TenantId) -> Vec<AuditCheckpoint> {
    let mut points: Vec<AuditCheckpoint> = Vec::new();
    loop {
        let from = points.last().map_or(0, |last| last.seq + 1);
        let page = store.checkpoints(tenant, from, 2).expect("the store can be read");
        assert!(page.len() <= 2 && page.iter().all(|point| point.seq >= from), "{page:?}");
        if page.is_empty() {
            break;
        }
        points.extend(page);
    }
    assert_eq!(store.checkpoints(tenant, 0, usize::MAX).as_ref(), Ok(&points));
    assert_eq!(store.last_checkpoint(tenant).as_ref(), Ok(&points.last().cloned()));
    points
}

/// All entries of a tenant.
///
/// # Panics
/// The store cannot be read.
pub fn chain(store: &dyn AuditStore, tenant: &TenantId) -> Vec<AuditEntry> {
    let mut found: Vec<AuditEntry> = Vec::new();
    loop {
        let from = found.last().map_or(0, |last| last.seq + 1);
        let page = store.audit_entries(tenant, from, PAGE).expect("the store can be read");
        let is_last = page.len() < PAGE;
        found.extend(page);
        if is_last {
            return found;
        }
    }
}

fn newest(store: &dyn EvidenceStore, tenant: &str, count: usize) -> Vec<(AuditKind, Value)> {
    let mut entries = chain(store, &TenantId::from(tenant));
    let entries = entries.split_off(entries.len() - count);
    entries.into_iter().map(|entry| (entry.kind, json::parse(&entry.body).expect("JSON")["data"].take())).collect()
}

fn length(store: &dyn EvidenceStore, tenant: &str) -> usize {
    chain(store, &TenantId::from(tenant)).len()
}

fn every_row_has_its_entry(store: &dyn EvidenceStore, make_hook: &MakeHook<'_>) {
    let id = HookId::fresh();
    make_hook(&id);
    let events = [ran(&id, failed()), ran(&id, said(VerdictKind::Continue))];
    keep(store, events.to_vec()).expect("they are kept");
    let rows = all(store);
    for (event, (kind, data)) in events.iter().zip(newest(store, DEFAULT_TENANT, 2)) {
        let row = rows.iter().find(|row| row.event_id == event.event_id.as_str()).expect("it is kept");
        let Value::Object(mut data) = data else { panic!("{data} is not an object") };
        let detail = data.shift_remove("error_detail_sha256").expect("it says so in any case");
        assert_eq!((kind, json::canonical(&data.into())), (AuditKind::Record, json::canonical(&row.to_json().into())));
        match row.error {
            Some(_) => assert_eq!(detail.as_str().map(str::len), Some(64)),
            None => assert_eq!(detail, Value::Null),
        }
    }
}

/// The events of one call, one for each ruling.
fn clearing(rulings: &[(CheckpointKind, VerdictKind)]) -> Vec<EventRecord> {
    let turn = TurnId::fresh();
    let call = CallId::from("call_1");
    let one = |(checkpoint, word): &(CheckpointKind, VerdictKind)| {
        let ruling = EventRuling { text: Some("told ann@example.org".into()), ..EventRuling::word(*word) };
        let event = event(&turn);
        let who = event.who.for_call(&call);
        EventRecord { checkpoint: *checkpoint, ruling, tool: Some("exec".into()), who, ..event }
    };
    rulings.iter().map(one).collect()
}

/// The events of a call that may run.
pub fn cleared() -> Vec<EventRecord> {
    let mut events = clearing(&[
        (CheckpointKind::PreToolUse, VerdictKind::Continue),
        (CheckpointKind::ApproveTool, VerdictKind::Continue),
    ]);
    let last = events.last_mut().expect("there are two");
    let call =
        ToolCall { id: CallId::from("call_1"), tool: "exec".into(), raw_tool: "exec".into(), arguments: Object::new() };
    last.ruling.permit = Some(Digest::of(&last.who, &call));
    events
}

fn every_decision_has_its_entry(store: &dyn EvidenceStore) {
    use CheckpointKind::{AfterLlm, ApproveTool, BeforeTool, PreToolUse, UserPromptSubmit};
    let check = |rulings: &[(CheckpointKind, VerdictKind)], decisive: Option<CheckpointKind>| {
        let events = clearing(rulings);
        let before = length(store, DEFAULT_TENANT);
        keep(store, events.clone()).expect("they are kept");
        let entries = newest(store, DEFAULT_TENANT, length(store, DEFAULT_TENANT) - before);
        let told: Vec<_> = entries.iter().map(|(kind, data)| (*kind, data["checkpoint"].as_str())).collect();
        let expected: Vec<_> = decisive.iter().map(|it| (AuditKind::Decision, Some(it.name()))).collect();
        assert_eq!(told, expected, "{rulings:?}");
    };
    check(&[(PreToolUse, VerdictKind::Deny)], Some(PreToolUse));
    check(
        &[(BeforeTool, VerdictKind::Continue), (PreToolUse, VerdictKind::Ask), (ApproveTool, VerdictKind::Ask)],
        Some(PreToolUse),
    );
    check(
        &[(BeforeTool, VerdictKind::Deny), (PreToolUse, VerdictKind::Deny), (ApproveTool, VerdictKind::Deny)],
        Some(BeforeTool),
    );
    check(&[(ApproveTool, VerdictKind::AbortTurn)], Some(ApproveTool));
    check(&[(UserPromptSubmit, VerdictKind::HardAbort)], Some(UserPromptSubmit));
    check(&[(BeforeTool, VerdictKind::Respond), (PreToolUse, VerdictKind::Continue)], None);
    check(&[(AfterLlm, VerdictKind::AbortTurn)], None);

    let mut events = cleared();
    keep(store, events.clone()).expect("they are kept");
    let last = events.last().expect("there are two");
    let (event_id, turn_id) = (last.event_id.as_str(), last.who.turn_id.as_str());
    let expected = json!({
        "event_id": event_id, "checkpoint": "approve_tool", "ruling": "continue",
        "permit": last.ruling.permit.map(|it| it.to_string()), "tool": "exec", "tool_call_id": "call_1",
        "agent_id": "main", "session_id": "cli:1", "turn_id": turn_id, "text": "told [REDACTED]",
    });
    assert_eq!(newest(store, DEFAULT_TENANT, 1), [(AuditKind::Decision, expected)]);
    let refused = |arguments: Value| {
        let mut events = clearing(&[(PreToolUse, VerdictKind::Deny)]);
        events[0].input = arguments.as_object().cloned().map(Arc::new);
        keep(store, events).expect("they are kept");
        newest(store, DEFAULT_TENANT, 1).pop().expect("it was refused").1["call"].clone()
    };
    let call = json!({"arguments": {"to": "[REDACTED]", "n": 1}});
    assert_eq!(refused(json!({"to": "ann@example.org", "n": 1})), call, "what was refused, without secrets");
    assert_eq!(refused(json!({"text": "x".repeat(5000)}))["bytes"], json!(5011));
    let before = length(store, DEFAULT_TENANT);
    events.iter_mut().for_each(|event| event.who.is_test = true);
    keep(store, events).expect("they are kept");
    assert_eq!(length(store, DEFAULT_TENANT), before, "a test decides nothing");
}

fn chains_hold_whoever_appends(store: &dyn EvidenceStore, check: &Check<'_>) {
    let before: BTreeMap<&str, usize> = [DEFAULT_TENANT, OTHER_TENANT].map(|it| (it, length(store, it))).into();
    let (writers, batches) = (4, 40);
    thread::scope(|scope| {
        for writer in 0..writers {
            scope.spawn(move || (0..batches).for_each(|n| keep(store, batch(writer + n)).expect("they are kept")));
        }
    });
    for (tenant, before) in before {
        let grown: usize =
            (0..writers).map(|writer| (0..batches).map(|n| in_chain(tenant, writer + n)).sum::<usize>()).sum();
        assert_eq!(length(store, tenant), before + grown, "{tenant}");
    }
    let report = verified(store, check);
    assert!(report.is_intact(), "{report}");
    assert_eq!(report.tenants.len(), 2);
}

/// A batch with entries for both tenants, more or less of them.
fn batch(n: usize) -> Vec<EventRecord> {
    let of = |tenant: &str, mut event: EventRecord| {
        event.who.tenant_id = tenant.into();
        event
    };
    let hook = HookId::fresh();
    let mut events: Vec<EventRecord> = (0..n % 5).map(|_| of(OTHER_TENANT, ran(&hook, failed()))).collect();
    events.extend(cleared().into_iter().map(|event| of(DEFAULT_TENANT, event)));
    events.extend((0..n % 3).map(|_| of(DEFAULT_TENANT, ran(&hook, said(VerdictKind::Continue)))));
    events
}

fn in_chain(tenant: &str, n: usize) -> usize {
    if tenant == OTHER_TENANT { n % 5 } else { 1 + n % 3 }
}

fn what_is_signed_can_be_cut(store: &dyn EvidenceStore, check: &Check<'_>) {
    let tenant = TenantId::default_tenant();
    let rows = usize::try_from(CHECKPOINT_ROWS).expect("a small number");
    let hook = HookId::fresh();
    for _ in 0..3 {
        keep(store, (0..rows).map(|_| ran(&hook, said(VerdictKind::Continue))).collect()).expect("they are kept");
    }
    let points = points(store, &tenant);
    assert!(points.len() >= 3, "one each {rows} rows: {points:?}");
    let whole = chain(store, &tenant);
    let report = verified(store, check);
    assert!(report.is_intact(), "{report}");

    let forget = |tenant: &TenantId, before, limit| store.forget_audit(tenant, before, limit).expect("it can be done");
    assert_eq!(forget(&tenant, Timestamp::UNIX_EPOCH, 9), 0);
    assert_eq!(forget(&TenantId::from(SENTINEL), Timestamp::MAX, 9), 0, "there is no such chain");
    let middle = &points[points.len() - 2];
    // Signed later or at the same moment as the middle one, so that is the newest before.
    let soon_after = points[points.len() - 1].at;
    if middle.at < soon_after {
        // One row less than there are up to the second signature: it stops at the first one.
        let almost = usize::try_from(points[1].seq).expect("a small number") - 1;
        let mut gone = forget(&tenant, soon_after, almost);
        assert_eq!(gone as u64, points[0].seq);
        while gone as u64 != middle.seq {
            gone += forget(&tenant, soon_after, 1);
            assert_eq!(chain(store, &tenant), whole[gone..]);
            assert!(points.iter().any(|point| point.seq == gone as u64), "cut at row {gone}");
            let report = verified(store, check);
            assert!(report.is_intact(), "{report}");
        }
        assert_eq!(forget(&tenant, soon_after, usize::MAX), 0, "nothing is left that is old");
    }
    let rest = length(store, tenant.as_str());
    assert_eq!(rest - forget(&tenant, Timestamp::MAX, usize::MAX), length(store, tenant.as_str()));
    let last = store.last_checkpoint(&tenant).expect("the store can be read").expect("one stays").link();
    assert_eq!(last, points[points.len() - 1].link(), "the newest stays as anchor");
    the_chain_goes_on(store, &tenant, last, check);
}

const SENTINEL: &str = pintle_domain::id::SENTINEL_TENANT;

/// Where a chain was cut, also where nothing of it is left.
fn the_chain_goes_on(store: &dyn EvidenceStore, tenant: &TenantId, last: ChainHead, check: &Check<'_>) {
    keep(store, cleared()).expect("it is kept");
    let left = chain(store, tenant);
    let first = left.first().expect("one was appended");
    assert_eq!((first.seq, first.prev), (last.seq + 1, last.hash));
    let report = verified(store, check);
    assert!(report.is_intact(), "{report}");
    let anchors: Vec<Option<u64>> = report.tenants.iter().map(|it| it.anchor).collect();
    assert!(anchors.contains(&Some(last.seq)), "{anchors:?}");
}
