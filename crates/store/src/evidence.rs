//! From a record of the engine to what it adds to the history of executions and to the audit chain. Made before a
//! transaction begins, since others wait for that.

use jiff::Timestamp;
use pintle_domain::audit::{AuditKind, DraftEntry, MAX_BODY_BYTES};
use pintle_domain::checkpoint::{CheckpointKind, Duty};
use pintle_domain::clearing::CLEARING;
use pintle_domain::execution::{Execution, KeptOutput, redacted};
use pintle_domain::fault::Cause;
use pintle_domain::hex::hex;
use pintle_domain::id::{CallId, HookId, TenantId, TurnId};
use pintle_domain::json::{Members, Object, Value, canonical};
use pintle_domain::record::EventRecord;
use pintle_domain::rule::AGENT_EVENTS;
use pintle_domain::store::{Actor, StoreError, StoredCall};
use pintle_domain::verdict::VerdictKind;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::db::moment;
use crate::keyring::{DecryptError, Form, SealError, SealedPlace};
use crate::sealing::StoreKeys;

/// The most bytes that the members of an entry beside its data take.
const ENVELOPE_BYTES: usize = 4096;

/// The bytes that a decision without long texts takes as JSON; a longer one lets its text grow.
const DECISION_BYTES: usize = 768;

/// Widths of columns, in characters. Source: the published schema of executions.
const NAME_CHARS: usize = 255;
const SESSION_CHARS: usize = 500;
const TRACE_CHARS: usize = 64;
const TEXT_CHARS: usize = 256;
const CALL_CHARS: usize = 128;
const HASH_CHARS: usize = 64;

/// An entry of the chain whose place in it is not known yet.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) draft: DraftEntry,
    /// When, as its column has it.
    pub(crate) at: String,
    /// The place in the chain that it was given when it was committed, if that was before this transaction.
    pub(crate) seq: Option<u64>,
}

/// An execution as it is written. Its row and its entry in the chain say the same.
#[derive(Clone, Debug)]
pub(crate) struct ExecutionRow {
    /// Fit for its columns; without what is encrypted.
    pub(crate) execution: Execution,
    pub(crate) sealed: SealedTexts,
    pub(crate) note: Note,
}

/// What is encrypted of an execution, as it stands in its row.
#[derive(Clone, Debug, Default)]
pub(crate) struct SealedTexts {
    /// The detail of its fault.
    pub(crate) detail: Option<Vec<u8>>,
    /// What its program wrote.
    pub(crate) output: Option<Vec<u8>>,
}

impl SealedTexts {
    /// Whether there is neither.
    pub(crate) fn is_none(&self) -> bool {
        self.detail.is_none() && self.output.is_none()
    }
}

/// The evidence that one event leaves.
#[derive(Debug, Default)]
pub(crate) struct EventEvidence {
    pub(crate) executions: Vec<ExecutionRow>,
    pub(crate) decision: Option<Note>,
}

/// The evidence that `records`, the events of one batch, leave, in their order.
///
/// # Errors
/// One of them cannot be kept, in words.
pub(crate) fn traces(records: &[EventRecord], sealing: &StoreKeys) -> Result<Vec<EventEvidence>, StoreError> {
    let mut refused = None;
    records.iter().map(|event| trace(event, &mut refused, sealing)).collect()
}

/// `refused` is about the call that was refused last: the later checkpoints of its clearing carry the same ruling and
/// decided nothing.
fn trace<'a>(
    event: &'a EventRecord,
    refused: &mut Option<(&'a TurnId, &'a CallId)>,
    sealing: &StoreKeys,
) -> Result<EventEvidence, StoreError> {
    if event.who.is_test {
        return Ok(EventEvidence::default());
    }
    // A hook that was passed over has no execution.
    let ran = event.hooks.whole().filter_map(|record| Execution::of(event, record));
    let executions = ran.map(|execution| executed(execution, sealing)).collect::<Result<_, _>>()?;
    let of_clearing = CLEARING.contains(&event.checkpoint);
    let call = event.who.tool_call_id.as_ref().filter(|_| of_clearing).map(|call| (&event.who.turn_id, call));
    let refuses = refuses(event) && (call.is_none() || call != *refused);
    if refuses {
        *refused = call;
    }
    let decision = (event.ruling.permit.is_some() || refuses).then(|| decision(event)).transpose()?;
    Ok(EventEvidence { executions, decision })
}

/// Whether the loop stopped at `event` because a hook may stop it there.
fn refuses(event: &EventRecord) -> bool {
    let decides = match event.checkpoint.duty() {
        Duty::Gate | Duty::Approver => true,
        Duty::Observer | Duty::Rewriter | Duty::Injector => event.checkpoint == CheckpointKind::BeforeTool,
    };
    let stopped = match event.ruling.word {
        VerdictKind::Ask | VerdictKind::Deny | VerdictKind::AbortTurn | VerdictKind::HardAbort => true,
        VerdictKind::Inject | VerdictKind::Continue | VerdictKind::Modify | VerdictKind::Respond => false,
    };
    decides && stopped
}

fn decision(event: &EventRecord) -> Result<Note, StoreError> {
    let who = &event.who;
    let mut data = Members::with_capacity(DECISION_BYTES);
    data.text("agent_id", Some(who.agent_id.as_str()));
    // What ran is told by the digest of its permit; what did not run stands nowhere else in the chain.
    let refused = event.input.as_ref().filter(|_| event.ruling.stops()).map(|arguments| StoredCall::of(arguments));
    if let Some(Ok(Value::Object(call))) = refused.map(pintle_domain::json::to_value) {
        data.object("call", &call);
    }
    data.text("checkpoint", Some(event.checkpoint.name()));
    data.text("event_id", Some(event.event_id.as_str()));
    data.text("permit", event.ruling.permit.map(|digest| digest.to_string()).as_deref());
    data.text("ruling", Some(event.ruling.word.as_str()));
    data.text("session_id", Some(who.session_id.as_str()));
    // A chain cannot be cleaned afterwards, so it gets what anybody may read.
    data.text("text", event.ruling.text.as_deref().map(redacted).as_deref());
    data.text("tool", event.tool.as_deref());
    data.text("tool_call_id", who.tool_call_id.as_ref().map(CallId::as_str));
    data.text("turn_id", Some(who.turn_id.as_str()));
    note(&who.tenant_id, event.at, AuditKind::Decision, &data.finish())
}

/// The entry about `data`, canonical JSON of an object, in the chain of `tenant`.
///
/// # Errors
/// No chain can take it.
pub(crate) fn note(tenant: &TenantId, at: Timestamp, kind: AuditKind, data: &str) -> Result<Note, StoreError> {
    let tenant = tenant_id(tenant)?;
    if data.len() > MAX_BODY_BYTES - ENVELOPE_BYTES {
        return Err(StoreError::Unavailable(format!(
            "audit record could not be written: {} bytes of JSON, more than {MAX_BODY_BYTES}",
            data.len()
        )));
    }
    let draft = DraftEntry::new(&tenant, at, kind, data);
    Ok(Note { at: moment(draft.at()), draft, seq: None })
}

/// `execution` as it is written.
///
/// # Errors
/// It is none that can be kept, in words.
pub(crate) fn executed(execution: Execution, sealing: &StoreKeys) -> Result<ExecutionRow, StoreError> {
    let mut execution = fitting(execution)?;
    let (detail, output) = (execution.error_detail.take(), execution.output.take());
    let detail = detail.and_then(|detail| sealed(&execution, DETAIL, detail.unredacted(), sealing));
    let output = output.and_then(|output| {
        let text = serde_json::to_string(&output).expect("texts are plain JSON");
        sealed(&execution, OUTPUT, &text, sealing)
    });
    let [detail_hash, output_hash] = [&detail, &output].map(|sealed| sealed.as_deref().map(sha256));
    let data = execution.to_canonical(detail_hash.as_deref(), output_hash.as_deref());
    let note = note(&execution.tenant_id, execution.created_at, AuditKind::Record, &data)?;
    Ok(ExecutionRow { execution, sealed: SealedTexts { detail, output }, note })
}

/// The entry of the audit chain that says that `by` read the detail of `execution`.
///
/// # Errors
/// It is none that can be kept, in words.
pub(crate) fn detail_read(execution: &Execution, by: &Actor) -> Result<Note, StoreError> {
    note(&execution.tenant_id, by.at, AuditKind::Change, &canonical(&execution.read_by(&by.name, by.at).into()))
}

/// The column of the details of faults.
pub(crate) const DETAIL: &str = "error_detail";

/// The column of what programs wrote.
pub(crate) const OUTPUT: &str = "output";

/// Where the `column` of the execution `id` stands.
pub(crate) fn place(column: &str, id: &str, tenant: &TenantId) -> SealedPlace {
    SealedPlace::new("hook_executions", id, tenant.as_str(), column)
}

fn sealed(execution: &Execution, column: &str, text: &str, sealing: &StoreKeys) -> Option<Vec<u8>> {
    let place = place(column, &execution.id, &execution.tenant_id);
    let keyring = sealing.keyring.as_ref().ok_or(SealError::NotConfigured);
    match keyring.and_then(|keyring| keyring.seal_bytes(&place, text.as_bytes())) {
        Ok(sealed) => Some(sealed),
        // Nearly every command writes something: without a key, each run would be a line of the log.
        Err(why) if column == OUTPUT => {
            tracing::debug!(execution = execution.id, "hooks.output_not_kept: {why}");
            None
        }
        Err(why) => {
            tracing::warn!(execution = execution.id, "hooks.error_detail_not_kept: {why}");
            None
        }
    }
}

/// `execution` with what is encrypted of it, which stands in its row as `sealed`.
///
/// # Errors
/// It cannot be decrypted.
pub(crate) fn opened(execution: Execution, sealed: SealedTexts, sealing: &StoreKeys) -> Result<Execution, StoreError> {
    let open = |column, bytes: Option<Vec<u8>>| {
        bytes.map(|bytes| opened_text(&execution, column, &bytes, sealing)).transpose()
    };
    let error_detail = open(DETAIL, sealed.detail)?.map(Cause::from);
    let output = open(OUTPUT, sealed.output)?.map(|text| read_output(&execution, &text)).transpose()?;
    Ok(Execution { error_detail, output, ..execution })
}

fn read_output(execution: &Execution, text: &str) -> Result<Box<KeptOutput>, StoreError> {
    // Why not could quote it.
    serde_json::from_str(text)
        .map_err(|_| StoreError::Corrupt(format!("the `{OUTPUT}` of execution `{}` is none", execution.id)))
}

fn opened_text(execution: &Execution, column: &str, bytes: &[u8], sealing: &StoreKeys) -> Result<String, StoreError> {
    let cannot = |why: DecryptError| {
        let what = if column == DETAIL { "detail" } else { column };
        let why = format!("the {what} of execution `{}`: {why}", execution.id);
        match &sealing.keyring {
            Some(_) => StoreError::Corrupt(why),
            None => StoreError::Unavailable(why),
        }
    };
    let keyring = sealing.keyring.as_ref().ok_or(DecryptError::NotConfigured).map_err(cannot)?;
    let place = place(column, &execution.id, &execution.tenant_id);
    let opened = keyring.open_bytes(&place, bytes).map_err(cannot)?;
    if opened.form == Form::Unsealed {
        tracing::warn!(execution = execution.id, "crypto.unencrypted_value_read");
    }
    Ok(opened.plain.as_str().map_err(cannot)?.to_owned())
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// `execution` so that every column takes it: a row that a database refuses would take others with it.
fn fitting(execution: Execution) -> Result<Execution, StoreError> {
    if !AGENT_EVENTS.contains(&execution.event) {
        let event = execution.event.name();
        return Err(unkeepable(&format!("stored hooks do not act at `{event}`")));
    }
    let known = |id: Option<String>| id.and_then(canonical_uuid);
    let some = |text: Option<String>, chars| text.map(|text| fitted(text, chars));
    let hook_id = known(execution.hook_id.map(|id| id.as_str().to_owned()));
    Ok(Execution {
        id: uuid(execution.id, "execution")?,
        hook_id: hook_id.as_deref().map(HookId::from),
        hook_name: fitted(execution.hook_name, NAME_CHARS),
        hook_version: execution.hook_version.min(MAX_INT),
        tenant_id: tenant_id(&execution.tenant_id)?,
        agent_id: known(execution.agent_id),
        session_id: some(execution.session_id, SESSION_CHARS),
        turn_id: known(execution.turn_id),
        event_id: uuid(execution.event_id, "event")?,
        trace_id: some(execution.trace_id, TRACE_CHARS),
        tool_name: some(execution.tool_name, TEXT_CHARS),
        tool_call_id: some(execution.tool_call_id, CALL_CHARS),
        input_hash: execution.input_hash.filter(|hash| hash.len() == HASH_CHARS && hash.is_ascii()),
        reason: some(execution.reason, TEXT_CHARS),
        duration_ms: execution.duration_ms.min(MAX_INT.into()),
        retry: execution.retry.min(MAX_INT),
        dedup_key: some(execution.dedup_key, CALL_CHARS),
        error: some(execution.error, TEXT_CHARS),
        metadata: plain_members(execution.metadata),
        created_at: whole_micros(execution.created_at),
        ..execution
    })
}

/// The highest number that a column of type INT takes.
const MAX_INT: u32 = i32::MAX.unsigned_abs();

fn uuid(id: String, what: &str) -> Result<String, StoreError> {
    if is_canonical_uuid(&id) {
        return Ok(id);
    }
    let parsed = Uuid::parse_str(&id).map_err(|_| unkeepable(&format!("the {what} id {id:?} is not a UUID")))?;
    Ok(parsed.to_string())
}

fn canonical_uuid(id: String) -> Option<String> {
    if is_canonical_uuid(&id) { Some(id) } else { Uuid::parse_str(&id).ok().map(|id| id.to_string()) }
}

/// Whether there can be a chain of `tenant`. No call of another one is recorded, so none gets a permit.
pub(crate) fn has_chain(tenant: &TenantId) -> bool {
    Uuid::parse_str(tenant.as_str()).is_ok()
}

/// The id of a tenant as it is kept. It is shared, so nearly none has to be made anew.
fn tenant_id(id: &TenantId) -> Result<TenantId, StoreError> {
    if is_canonical_uuid(id.as_str()) {
        return Ok(id.clone());
    }
    Ok(TenantId::from(uuid(id.as_str().to_owned(), "tenant")?.as_str()))
}

/// Whether `id` is a UUID in the one spelling that is kept.
fn is_canonical_uuid(id: &str) -> bool {
    let mut spelled = Uuid::encode_buffer();
    Uuid::parse_str(id).is_ok_and(|uuid| uuid.hyphenated().encode_lower(&mut spelled) == id)
}

fn unkeepable(why: &str) -> StoreError {
    StoreError::Unavailable(format!("audit record could not be written: {why}"))
}

/// A moment as databases keep it.
fn whole_micros(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).expect("it comes from a timestamp, so it is within its bounds")
}

/// Signs that take more than one place in a column of PostgreSQL, or none at all.
fn is_awkward(sign: char) -> bool {
    matches!(sign, '\0' | '\u{fdd0}')
}

/// `text` as a column of so many characters takes it in every database.
pub(crate) fn fit(text: &str, chars: usize) -> String {
    fitted(text.to_owned(), chars)
}

fn fitted(text: String, chars: usize) -> String {
    if text.len() <= chars && !text.contains(is_awkward) {
        return text;
    }
    text.chars().map(|sign| if is_awkward(sign) { char::REPLACEMENT_CHARACTER } else { sign }).take(chars).collect()
}

/// `session` as it stands in its column.
pub(crate) fn fit_session(session: &str) -> String {
    fit(session, SESSION_CHARS)
}

/// `members` without U+0000, which JSONB does not take.
fn plain_members(members: Object) -> Object {
    let plain = |text: String| if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
    members.into_iter().map(|(name, value)| (plain(name), plain_value(value))).collect()
}

fn plain_value(value: Value) -> Value {
    match value {
        Value::String(text) if text.contains('\0') => text.replace('\0', "\u{fffd}").into(),
        Value::Array(items) => items.into_iter().map(plain_value).collect(),
        Value::Object(members) => plain_members(members).into(),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}
