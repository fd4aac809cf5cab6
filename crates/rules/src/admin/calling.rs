//! The methods `hooks.*` as a gateway has them: names, JSON in, JSON out.

use jiff::Timestamp;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::fault::FaultKind;
use pintle_domain::id::TenantId;
use pintle_domain::json::{Object, Value, json};
use pintle_domain::rule::{Decision, HookScope};

use super::chain::ChainQuery;
use super::{
    AddOutcome, AddTrial, AdminError, Caller, CallerRole, ChangeTerms, HistoryQuery, INVALID_CURSOR, ListFilter, PAGE,
    RuleAdmin, Sample, TestTarget, WhereThere,
};

/// Most records that are taken at once: as many as a tenant may have.
const MAX_IMPORTED: usize = crate::record::MAX_HOOKS;

/// The members of `hooks.history`.
const HISTORY: [&str; 12] = [
    "tenantId",
    "hookId",
    "event",
    "decision",
    "fault",
    "executionId",
    "sessionId",
    "agentId",
    "since",
    "until",
    "limit",
    "cursor",
];

/// Every method, with who may at least use it. What is in no such list nobody may.
pub const METHODS: [(&str, CallerRole); 17] = [
    ("hooks.list", CallerRole::Viewer),
    ("hooks.get", CallerRole::Viewer),
    ("hooks.create", CallerRole::Admin),
    ("hooks.import", CallerRole::Admin),
    ("hooks.update", CallerRole::Admin),
    ("hooks.delete", CallerRole::Admin),
    ("hooks.toggle", CallerRole::Admin),
    ("hooks.reset", CallerRole::Admin),
    ("hooks.test", CallerRole::Operator),
    ("hooks.history", CallerRole::Viewer),
    ("hooks.execution.get", CallerRole::Admin),
    ("hooks.chain", CallerRole::Viewer),
    ("hooks.changes", CallerRole::Viewer),
    ("hooks.versions", CallerRole::Viewer),
    ("hooks.restore", CallerRole::Admin),
    ("hooks.budget.get", CallerRole::Viewer),
    ("hooks.budget.set", CallerRole::Owner),
];

impl RuleAdmin {
    /// Does what `method` says with `params`, and gives its payload.
    ///
    /// # Errors
    /// What is wrong with the params, or why it is not done.
    pub async fn call(&self, by: &Caller, method: &str, params: &Value) -> Result<Value, AdminError> {
        // Who may not is told so, whatever else is wrong.
        match METHODS.iter().find(|(known, _)| *known == method) {
            Some((_, CallerRole::Owner)) if !by.is_master() => return Err(AdminError::no_master()),
            Some((known, least)) => by.at_least(*least, known.trim_start_matches("hooks."))?,
            None => return Err(AdminError::invalid(format!("unknown method: {method}"))),
        }
        match method {
            "hooks.create" => {
                let created = self.create(by, params).await?;
                Ok(with_warnings(json!({ "hookId": created.id }), &created.warnings))
            }
            "hooks.import" => self.call_import(by, params).await,
            "hooks.update" => self.call_update(by, params).await,
            "hooks.list" => self.call_list(by, params).await,
            "hooks.get" => {
                let params = Params::of(params, &["hookId"])?;
                Ok(json!({ "hook": self.get(by, params.hook()?).await? }))
            }
            "hooks.delete" => {
                let params = Params::of(params, &["hookId", "reason"])?;
                let id = params.hook()?;
                self.remove(by, id, params.text("reason", "invalid reason")?.unwrap_or_default()).await?;
                Ok(json!({ "hookId": id }))
            }
            "hooks.toggle" => {
                let params = Params::of(params, &["hookId", "enabled", "reason"])?;
                let id = params.hook()?;
                let enabled = params.flag("enabled")?.ok_or_else(|| AdminError::invalid("enabled is required"))?;
                let reason = params.text("reason", "invalid reason")?.unwrap_or_default();
                Ok(json!({ "hookId": id, "enabled": self.switch(by, id, enabled, reason).await? }))
            }
            "hooks.reset" => {
                let params = Params::of(params, &["hookId", "tenantId"])?;
                let (id, tenant) = (params.hook()?, params.tenant()?);
                Ok(json!({ "hookId": id, "enabled": self.reset(by, id, tenant.as_ref()).await? }))
            }
            "hooks.test" => self.call_test(by, params).await,
            "hooks.history" => self.call_history(by, params).await,
            "hooks.execution.get" => {
                let params = Params::of(params, &["id"])?;
                self.execution(by, params.text("id", "invalid execution ID")?.unwrap_or_default()).await
            }
            "hooks.chain" => self.call_chain(by, params).await,
            "hooks.changes" => self.call_changes(by, params).await,
            "hooks.versions" => {
                let params = Params::of(params, &["hookId"])?;
                Ok(json!({ "versions": self.versions(by, params.hook()?).await? }))
            }
            "hooks.restore" => self.call_restore(by, params).await,
            "hooks.budget.get" => {
                Params::of(params, &[])?;
                Ok(json!(self.budget(by).await?))
            }
            "hooks.budget.set" => {
                let params = Params::of(params, &["tenantId", "budgetTotal", "reason"])?;
                let tenant = params.tenant()?.unwrap_or_else(|| TenantId::from(""));
                let total = params.number("budgetTotal")?;
                let total = total.ok_or_else(|| AdminError::invalid("budgetTotal is required"))?;
                let reason = params.text("reason", "invalid reason")?.unwrap_or_default();
                Ok(json!(self.set_budget(by, &tenant, (total, reason)).await?))
            }
            other => Err(AdminError::invalid(format!("unknown method: {other}"))),
        }
    }

    async fn call_list(&self, by: &Caller, params: &Value) -> Result<Value, AdminError> {
        let params = Params::of(params, &["event", "scope", "agentId", "enabled"])?;
        let filter = ListFilter {
            event: params.word("event", CheckpointKind::named)?,
            scope: params.word("scope", HookScope::named)?,
            agent: params.text("agentId", "invalid agentId")?.map(str::to_owned),
            enabled: params.flag("enabled")?,
        };
        Ok(json!({ "hooks": self.list(by, &filter).await? }))
    }

    async fn call_import(&self, by: &Caller, params: &Value) -> Result<Value, AdminError> {
        let params = Params::of(params, &["hooks", "overwrite", "dryRun"])?;
        let Some(Value::Array(records)) =
            params.get("hooks").filter(|it| it.as_array().is_some_and(|it| !it.is_empty()))
        else {
            return Err(params.wrong("hooks", "a list of records"));
        };
        if records.len() > MAX_IMPORTED {
            let many = records.len();
            return Err(AdminError::invalid(format!(
                "hooks has {many} records; at most {MAX_IMPORTED} are taken at once"
            )));
        }
        let overwrite = params.flag("overwrite")?.unwrap_or(false);
        let where_there = if overwrite { WhereThere::Update } else { WhereThere::Refuse };
        let dry = params.flag("dryRun")?.unwrap_or(false);
        let tried = match dry {
            true => self.try_all(by, records, where_there).await?,
            false => self.add_all(by, records, where_there).await?.into_iter().map(Ok).collect(),
        };
        Ok(json!({ "hooks": tried.iter().map(|tried| imported(tried, dry)).collect::<Vec<_>>() }))
    }

    async fn call_update(&self, by: &Caller, params: &Value) -> Result<Value, AdminError> {
        let params = Params::of(params, &["hookId", "updates", "ifVersion", "reason"])?;
        let id = params.hook()?;
        let terms = ChangeTerms {
            if_version: params.version("ifVersion")?,
            reason: params.text("reason", "invalid reason")?.unwrap_or_default(),
        };
        let updates = params.get("updates").unwrap_or(&Value::Null);
        let updated = self.change(by, id, updates, terms).await?;
        Ok(with_warnings(json!({ "hookId": id, "version": updated.version }), &updated.warnings))
    }

    async fn call_test(&self, by: &Caller, params: &Value) -> Result<Value, AdminError> {
        let params = Params::of(params, &["config", "hookId", "sampleEvent", "dryRun"])?;
        // There is no other way than a dry run; the member is there for older clients.
        params.flag("dryRun")?;
        let sample = Sample::read(params.get("sampleEvent").unwrap_or(&Value::Null))?;
        let what = match (params.get("config"), params.get("hookId")) {
            (Some(config), None) => TestTarget::Unsaved(config),
            (None, Some(_)) => TestTarget::Saved(params.hook()?),
            (None, None) => return Err(AdminError::invalid("invalid request: missing config payload")),
            (Some(_), Some(_)) => return Err(AdminError::invalid("invalid request: send config or hookId, not both")),
        };
        Ok(json!({ "result": self.test(by, what, &sample).await? }))
    }

    async fn call_history(&self, by: &Caller, params: &Value) -> Result<Value, AdminError> {
        let params = Params::of(params, &HISTORY)?;
        let limit = params.number("limit")?.map(|limit| usize::try_from(limit).unwrap_or_default());
        let query = HistoryQuery {
            tenant: params.tenant()?,
            deleted: None,
            hook: params.text("hookId", "invalid hook ID")?.map(str::to_owned),
            event: params.word("event", CheckpointKind::named)?,
            decision: params.word("decision", Decision::named)?,
            fault: params.word("fault", FaultKind::named)?,
            session: params.text("sessionId", "invalid sessionId")?.map(str::to_owned),
            agent: params.text("agentId", "invalid agentId")?.map(str::to_owned),
            since: params.moment("since")?,
            until: params.moment("until")?,
            limit,
            cursor: params.text("cursor", "invalid cursor")?.map(str::to_owned),
        };
        let page = match params.text("executionId", "invalid execution ID")? {
            Some(id) => self.history_of_one(by, id).await?,
            None => self.history(by, &query).await?,
        };
        Ok(json!({ "executions": page.executions, "nextCursor": page.next_cursor }))
    }

    async fn call_restore(&self, by: &Caller, params: &Value) -> Result<Value, AdminError> {
        let params = Params::of(params, &["hookId", "version", "ifVersion"])?;
        let (id, if_version) = (params.hook()?, params.version("ifVersion")?);
        let version = params.version("version")?.ok_or_else(|| AdminError::invalid("version is required"))?;
        let updated = self.restore(by, id, version, if_version).await?;
        Ok(with_warnings(json!({ "hookId": id, "version": updated.version }), &updated.warnings))
    }

    async fn call_changes(&self, by: &Caller, params: &Value) -> Result<Value, AdminError> {
        let params = Params::of(params, &["tenantId", "hookId", "limit", "cursor"])?;
        let limit = params.number("limit")?.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
        let limit = limit.unwrap_or(PAGE);
        if params.get("hookId").is_some() {
            let lines = self.changes_shown(by, params.hook()?, limit).await?;
            return Ok(json!({ "changes": lines, "nextCursor": "" }));
        }
        let tenant = params.tenant()?;
        let page = self.change_log(by, tenant.as_ref(), params.text("cursor", INVALID_CURSOR)?, limit).await?;
        Ok(json!({ "changes": page.lines, "nextCursor": page.next_cursor }))
    }

    async fn call_chain(&self, by: &Caller, params: &Value) -> Result<Value, AdminError> {
        let params = Params::of(params, &["event", "agentId", "toolName", "toolInput"])?;
        let event = params.word("event", CheckpointKind::named)?;
        let input = match params.get("toolInput") {
            None => None,
            Some(Value::Object(input)) => Some(input),
            Some(_) => return Err(params.wrong("toolInput", "an object")),
        };
        let asking = ChainQuery {
            event: event.ok_or_else(|| AdminError::invalid("event is required"))?,
            agent: params.text("agentId", "invalid agentId")?,
            tool: params.text("toolName", "invalid toolName")?,
            input,
        };
        Ok(json!({ "chain": self.chain(by, asking).await? }))
    }
}

/// What became of a record, or would.
fn imported(tried: &AddTrial, dry: bool) -> Value {
    match tried {
        Err(error) => json!({ "outcome": "refused", "error": error.message }),
        Ok(added) => {
            let mut shown = json!({ "outcome": added.outcome.word(), "name": added.name });
            // The id of one that is not made yet is nobody's.
            if !dry || added.outcome != AddOutcome::Created {
                shown["hookId"] = json!(added.id);
            }
            if !added.differs.is_empty() {
                shown["differs"] = json!(added.differs);
            }
            with_warnings(shown, &added.warnings)
        }
    }
}

fn with_warnings(mut payload: Value, warnings: &[String]) -> Value {
    if !warnings.is_empty() {
        payload["warnings"] = json!(warnings);
    }
    payload
}

/// Params, of which all members are known.
struct Params<'a>(Option<&'a Object>);

impl<'a> Params<'a> {
    fn of(params: &'a Value, known: &[&str]) -> Result<Self, AdminError> {
        match params {
            Value::Null => Ok(Self(None)),
            Value::Object(members) => match members.keys().find(|name| !known.contains(&name.as_str())) {
                None => Ok(Self(Some(members))),
                Some(other) => Err(AdminError::invalid(format!("invalid request: unknown field {other:?}"))),
            },
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(AdminError::invalid("invalid request: params must be an object"))
            }
        }
    }

    /// A member; `null` is like none.
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0?.get(name).filter(|value| !value.is_null())
    }

    fn wrong(&self, name: &str, expected: &str) -> AdminError {
        AdminError::invalid(format!("invalid request: field \"{name}\" must be {expected}"))
    }

    /// A text; the empty one is like none.
    fn text(&self, name: &str, else_wrong: &str) -> Result<Option<&'a str>, AdminError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
            Some(_) => Err(AdminError::invalid(else_wrong)),
        }
    }

    fn hook(&self) -> Result<&'a str, AdminError> {
        Ok(self.text("hookId", "invalid hook ID")?.unwrap_or_default())
    }

    fn tenant(&self) -> Result<Option<TenantId>, AdminError> {
        let text = self.text("tenantId", "invalid tenantId")?;
        let read = |text: &str| uuid::Uuid::parse_str(text).map(|id| TenantId::new(id.to_string()));
        text.map(read).transpose().map_err(|_| AdminError::invalid("invalid tenantId"))
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, AdminError> {
        let wrong = || self.wrong(name, "true or false");
        self.get(name).map(|value| value.as_bool().ok_or_else(wrong)).transpose()
    }

    fn number(&self, name: &str) -> Result<Option<i64>, AdminError> {
        let wrong = || self.wrong(name, "an integer");
        self.get(name).map(|value| value.as_i64().ok_or_else(wrong)).transpose()
    }

    fn version(&self, name: &str) -> Result<Option<u32>, AdminError> {
        let read = |number: i64| u32::try_from(number).map_err(|_| self.wrong(name, "a version"));
        self.number(name)?.map(read).transpose()
    }

    fn word<T>(&self, name: &str, named: impl Fn(&str) -> Option<T>) -> Result<Option<T>, AdminError> {
        let text = self.text(name, &format!("invalid {name}"))?;
        text.map(|word| named(word).ok_or_else(|| AdminError::invalid(format!("unknown {name} {word:?}")))).transpose()
    }

    fn moment(&self, name: &str) -> Result<Option<Timestamp>, AdminError> {
        let wrong = || self.wrong(name, "a time such as \"2026-01-31T12:00:00Z\"");
        let text = self.text(name, &format!("invalid {name}"))?;
        text.map(|text| text.parse().map_err(|_| wrong())).transpose()
    }
}
