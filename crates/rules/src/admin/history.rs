//! What hooks did, page by page.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::execution::Execution;
use pintle_domain::fault::{Cause, FaultKind};
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::{Value, canonical, json};
use pintle_domain::rule::{Decision, HookScope};
use pintle_domain::store::{ExecutionQuery, TenantScope};
use sha2::{Digest as _, Sha256};

use super::reading::hook_id;
use super::{AdminError, AdminErrorCode, Caller, CallerRole, RuleAdmin};

/// The number of rows that a page has unless it is said. Source: the published admin methods.
pub const PAGE: usize = 50;
/// Most rows of a page. Source: the published admin methods.
pub const MAX_PAGE: usize = 200;
/// How often the store is asked for one page, where most rows are not the caller's: some thousand rows are looked at,
/// then the page ends and its cursor goes on from there.
const LOOKS: usize = 20;
/// The text that a cursor begins with: the edition of its form.
const EDITION: &str = "1";
/// The character between the parts of a cursor; it stands in none of them.
const BETWEEN: char = '|';

/// Which executions are wanted. Empty members ask for everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryQuery {
    /// In which tenant: others than their own are for owners.
    pub tenant: Option<TenantId>,
    /// Of which hook: its id. To owners, also the id that a deleted one had.
    pub hook: Option<String>,
    /// Of hooks that had this name and are deleted.
    pub deleted: Option<String>,
    /// Where.
    pub event: Option<CheckpointKind>,
    /// With which decision.
    pub decision: Option<Decision>,
    /// With which fault.
    pub fault: Option<FaultKind>,
    /// In the session with this key.
    pub session: Option<String>,
    /// Of which agent: its UUID, or its key.
    pub agent: Option<String>,
    /// Not before.
    pub since: Option<Timestamp>,
    /// Before.
    pub until: Option<Timestamp>,
    /// How many, [`PAGE`] unless it is said, at most [`MAX_PAGE`].
    pub limit: Option<usize>,
    /// Where the page before ended.
    pub cursor: Option<String>,
}

/// The message about a cursor that does not go with the question.
pub const INVALID_CURSOR: &str = "invalid cursor";

/// One page of executions.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionPage {
    /// Newest first.
    pub executions: Vec<Value>,
    /// Where the next page begins; empty at the end.
    pub next_cursor: String,
}

/// Where a page ends: a moment and an id.
type Place = (String, String);

impl RuleAdmin {
    /// The executions of hooks in the caller's tenant, newest first; to owners, in all of them. Below admins only what
    /// happened in their own sessions.
    ///
    /// # Errors
    /// `invalid cursor`, `invalid agentId`, no such hook; or the store cannot be read.
    pub async fn history(&self, by: &Caller, query: &HistoryQuery) -> Result<ExecutionPage, AdminError> {
        by.at_least(CallerRole::Viewer, "history")?;
        let hook = query.hook.as_deref().map(hook_id).transpose()?;
        let agent = query.agent.as_deref().map(|agent| self.agent(&by.tenant, agent)).transpose()?;
        let (hook, deleted) = match hook {
            Some(id) => self.there_or_deleted(by, id).await?,
            None => (None, query.deleted.clone()),
        };
        let wanted = ExecutionQuery {
            tenant: by.looks_at(query.tenant.as_ref())?.map_or(TenantScope::All, TenantScope::One),
            hook,
            name: deleted,
            event: query.event,
            // A fault is recorded as one decision: the store looks at those alone.
            decision: query.decision.or(query.fault.map(decision_of)),
            session: query.session.clone().filter(|session| !session.is_empty()),
            agent: agent.map(|(uuid, _)| uuid),
            since: query.since,
            until: query.until,
            after: None,
            limit: query.limit.filter(|limit| *limit > 0).unwrap_or(PAGE).min(MAX_PAGE),
        };
        let cursor = query.cursor.as_deref().filter(|cursor| !cursor.is_empty());
        let wanted = Wanted { query: wanted, fault: query.fault };
        let after = cursor.map(|cursor| place(cursor, &seal(by, &wanted))).transpose()?;
        let by = by.clone();
        self.blocking(move |rule_admin| rule_admin.page(&by, &wanted, after)).await
    }

    /// The execution `id` as a page of its own, without the detail of its fault; an empty one where `by` sees none.
    pub(super) async fn history_of_one(&self, by: &Caller, id: &str) -> Result<ExecutionPage, AdminError> {
        by.at_least(CallerRole::Viewer, "history")?;
        let id = uuid::Uuid::parse_str(id).map_err(|_| AdminError::invalid("invalid execution ID"))?.to_string();
        let (by, scope) = (by.clone(), scope_of(by));
        self.blocking(move |rule_admin| {
            let found = rule_admin.parts.executions.execution(&scope, &id)?;
            let executions = found.iter().filter_map(|row| rule_admin.seen(&by, row)).collect();
            Ok(ExecutionPage { executions, next_cursor: String::new() })
        })
        .await
    }

    /// The hook `id` if it is there, or else the name that it had: its rows have lost its id.
    async fn there_or_deleted(&self, by: &Caller, id: HookId) -> Result<(Option<HookId>, Option<String>), AdminError> {
        let found = self.view(by).await?.hook(&id).map(drop);
        let Err(missing) = found else { return Ok((Some(id), None)) };
        if !by.is_master() {
            return Err(missing);
        }
        let lines = self
            .blocking(move |rule_admin| Ok(rule_admin.parts.hooks.changes(&TenantScope::All, &id, usize::MAX)?))
            .await?;
        let name = lines.iter().find_map(|line| name_in(&line.diff)).ok_or(missing)?;
        Ok((None, Some(name)))
    }

    /// One execution, with the whole text of its fault and the beginning of what its program wrote; of a global hook
    /// that is for owners, as its settings are. That somebody read them stands in the audit chain.
    ///
    /// # Errors
    /// There is none, or it is another tenant's; its texts cannot be decrypted; or the caller may not.
    pub async fn execution(&self, by: &Caller, id: &str) -> Result<Value, AdminError> {
        by.at_least(CallerRole::Admin, "execution.get")?;
        let id = uuid::Uuid::parse_str(id).map_err(|_| AdminError::invalid("invalid execution ID"))?.to_string();
        let looked_up = id.clone();
        let reader = by.clone();
        let found = self.blocking(move |rule_admin| rule_admin.read(&reader, &looked_up)).await?;
        let missing = || AdminError::new(AdminErrorCode::NotFound, format!("execution not found: {id}"));
        let row = found.ok_or_else(missing)?;
        tracing::info!(execution = %row.id, tenant = %row.tenant_id, by = %by.name, "security.hook.execution_read");
        let mut value = shown(&row);
        value["errorDetail"] = json!(row.error_detail.as_ref().map(Cause::unredacted));
        let output = row.output.map(|output| *output).unwrap_or_default();
        value["stdout"] = json!(output.stdout);
        value["stderr"] = json!(output.stderr);
        Ok(value)
    }

    /// An execution that `by` may read. Where it has something sealed, the audit chain knows of it before the reader
    /// does.
    fn read(&self, by: &Caller, id: &str) -> Result<Option<Execution>, AdminError> {
        let executions = &self.parts.executions;
        let Some(mut row) = executions.execution(&scope_of(by), id)? else { return Ok(None) };
        if self.hides_output(by, &row)? {
            row.output = None;
        }
        if row.has_detail() {
            executions.note_read(&row, &self.actor(by))?;
        }
        Ok(Some(row))
    }

    /// Whether what the program of `row` wrote is not for `by`: it can say what stands in the settings of a hook, and
    /// those of what belongs to everybody are for owners.
    fn hides_output(&self, by: &Caller, row: &Execution) -> Result<bool, AdminError> {
        if by.is_master() || row.output.is_none() {
            return Ok(false);
        }
        // The row of one that was deleted has its id no more, but for what tells it from others.
        let in_key = || row.dedup_key.as_deref().and_then(|key| key.split(':').next()).map(HookId::from);
        let Some(id) = row.hook_id.clone().or_else(in_key) else { return Ok(true) };
        if let Some(rule) = self.freshest()?.hooks.iter().find(|rule| rule.id == id) {
            return Ok(rule.scope == HookScope::Global);
        }
        let lines = self.parts.hooks.changes(&TenantScope::All, &id, usize::MAX)?;
        Ok(lines.is_empty() || lines.iter().any(|line| line.tenant_id == TenantId::sentinel()))
    }

    /// Whether `by` sees what happened in the session of `row`: below admins only their own, and none that is nobody's.
    fn sees_session_of(&self, by: &Caller, row: &Execution) -> bool {
        let is_own = || row.session_id.as_deref().is_some_and(|session| (self.owns_session)(by, session));
        by.role >= CallerRole::Admin || is_own()
    }

    /// The row as `history` has it, if it shows it to `by`.
    pub fn seen(&self, by: &Caller, row: &Execution) -> Option<Value> {
        let is_there = by.is_master() || row.tenant_id == by.tenant;
        (is_there && by.role >= CallerRole::Viewer && self.sees_session_of(by, row)).then(|| shown(row))
    }

    /// The rows of every tenant since `since`, newest first, at most `limit`: for whoever shows them to callers with
    /// [`seen`](Self::seen). Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn executions_since(&self, since: Timestamp, limit: usize) -> Result<Vec<Execution>, AdminError> {
        let query = ExecutionQuery { since: Some(since), limit, ..ExecutionQuery::of(TenantScope::All) };
        Ok(self.parts.executions.executions(&query)?)
    }

    fn page(&self, by: &Caller, wanted: &Wanted, after: Option<Place>) -> Result<ExecutionPage, AdminError> {
        let Wanted { query: asked, fault } = wanted;
        let has_fault =
            |row: &Execution| fault.is_none_or(|kind| row.metadata.get("fault") == Some(&json!(kind.word())));
        let may_see = |row: &Execution| {
            (asked.name.is_none() || row.hook_id.is_none()) && has_fault(row) && self.sees_session_of(by, row)
        };
        let (mut executions, mut last) = (Vec::new(), after);
        for _ in 0..LOOKS {
            // One more than fits tells whether there is another page.
            let every = by.role >= CallerRole::Admin && fault.is_none();
            let limit = if every { asked.limit + 1 } else { MAX_PAGE + 1 };
            let query = ExecutionQuery { after: last.clone(), limit, ..asked.clone() };
            let rows = self.parts.executions.executions(&query)?;
            let is_end = rows.len() < limit;
            for row in &rows {
                if executions.len() == asked.limit {
                    return Ok(ExecutionPage { executions, next_cursor: cursor(by, wanted, last.as_ref()) });
                }
                last = Some((row.created_at.to_string(), row.id.clone()));
                if may_see(row) {
                    executions.push(shown(row));
                }
            }
            if is_end {
                return Ok(ExecutionPage { executions, next_cursor: String::new() });
            }
        }
        Ok(ExecutionPage { executions, next_cursor: cursor(by, wanted, last.as_ref()) })
    }
}

/// What a page is asked for: what the store looks for, and what is looked at here.
struct Wanted {
    query: ExecutionQuery,
    fault: Option<FaultKind>,
}

/// The decision that a fault is recorded as.
fn decision_of(fault: FaultKind) -> Decision {
    if fault == FaultKind::TimedOut { Decision::Timeout } else { Decision::Error }
}

/// Whose rows `by` sees.
pub(super) fn scope_of(by: &Caller) -> TenantScope {
    if by.is_master() { TenantScope::All } else { TenantScope::One(by.tenant.clone()) }
}

/// The name of a hook in a line of its change log, as a patch has it.
fn name_in(diff: &Value) -> Option<String> {
    let operations = diff.as_array().into_iter().flatten();
    let named = operations.filter_map(|operation| match operation["path"].as_str()? {
        "/name" => operation["value"].as_str(),
        _ => operation["value"]["name"].as_str(),
    });
    named.filter(|name| !name.is_empty()).map(str::to_owned).next()
}

/// A row as it is published.
fn shown(row: &Execution) -> Value {
    let mut members = row.to_json();
    let session = members.shift_remove("session_id").unwrap_or_default();
    members.insert("session_key".to_owned(), session);
    Value::Object(members)
}

/// The seal that a cursor is bound to: whoever asks, and what for.
fn seal(by: &Caller, Wanted { query: wanted, fault }: &Wanted) -> String {
    let bound = json!([
        by.tenant,
        by.role.word(),
        wanted.hook,
        wanted.event,
        wanted.decision,
        wanted.session,
        wanted.agent,
        wanted.since.map(|at| at.to_string()),
        wanted.until.map(|at| at.to_string()),
        wanted.name,
        wanted.tenant.one(),
        fault.map(FaultKind::word),
    ]);
    URL_SAFE_NO_PAD.encode(Sha256::digest(canonical(&bound).as_bytes()))
}

fn cursor(by: &Caller, wanted: &Wanted, last: Option<&Place>) -> String {
    let Some((at, id)) = last else { return String::new() };
    URL_SAFE_NO_PAD.encode(format!("{EDITION}{BETWEEN}{}{BETWEEN}{at}{BETWEEN}{id}", seal(by, wanted)))
}

/// Reads a cursor that was given for the same question.
fn place(cursor: &str, seal: &str) -> Result<Place, AdminError> {
    let read = || {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
        let parts: Vec<&str> = text.split(BETWEEN).collect();
        let [EDITION, bound, at, id] = parts.as_slice() else { return None };
        at.parse::<Timestamp>().ok()?;
        uuid::Uuid::parse_str(id).ok()?;
        (*bound == seal).then(|| ((*at).to_owned(), (*id).to_owned()))
    };
    read().ok_or_else(|| AdminError::invalid(INVALID_CURSOR))
}
