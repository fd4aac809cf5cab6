//! A rule and the columns of its row.

use std::fmt::Display;

use domain::anchor::{AnchoredRule, DoubtKind, RuleDoubt};
use domain::breaker::BreakerPolicy;
use domain::checkpoint::CheckpointKind;
use domain::id::{HookId, TenantId};
use domain::json::{Object, Value};
use domain::rule::{Fallback, HandlerType, HookScope, Rule, Source};
use jiff::Timestamp;

use crate::db::{Cell, Columns, Dialect, Failure};
use crate::{body, jsonb, rules};

/// In the order of [`cells`].
pub(super) const COLUMNS: &str = "id, tenant_id, agent_ids, event, handler_type, scope, name, config, matcher, if_expr, \
                                  timeout_ms, on_timeout, priority, enabled, version, source, may_rewrite, breaker, \
                                  on_trip, tripped_at, disabled_reason, metadata, created_by, created_at, updated_at";

/// The cells of the row of `hook`, whose moments are as they are shown.
pub(super) fn cells(dialect: Dialect, hook: &Rule) -> Result<Vec<Cell<'_>>, Failure> {
    let unkeepable = |why: String| Failure::Said(rules::unkeepable(&format!("hook `{}`", hook.id), &why));
    let json = |object: &Object| jsonb::kept(dialect, &Value::Object(object.clone())).map_err(unkeepable);
    let at = |text: &String| {
        let at: Timestamp = text.parse().map_err(|e: jiff::Error| unkeepable(e.to_string()))?;
        Ok::<_, Failure>(rules::column(at))
    };
    // As in the design that this is compatible with, nothing is kept where nothing is said.
    let said = |text: &'_ str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Ok(vec![
        hook.id.as_str().into(),
        hook.tenant_id.as_str().into(),
        body::write(&hook.agent_ids).map_err(unkeepable)?.into(),
        hook.event.name().into(),
        hook.handler_type.word().into(),
        hook.scope.word().into(),
        said(&hook.name).into(),
        json(&hook.config)?.into(),
        said(&hook.matcher).into(),
        said(&hook.if_expr).into(),
        hook.timeout_ms.into(),
        hook.on_timeout.word().into(),
        i64::from(hook.priority).into(),
        hook.enabled.into(),
        hook.version.into(),
        hook.source.word().into(),
        hook.may_rewrite.into(),
        hook.breaker.word().into(),
        hook.on_trip.word().into(),
        hook.tripped_at.as_ref().map(at).transpose()?.into(),
        (&hook.disabled_reason).into(),
        json(&hook.metadata)?.into(),
        hook.created_by.as_ref().into(),
        at(&hook.created_at)?.into(),
        at(&hook.updated_at)?.into(),
    ])
}

/// The hook of a row. What is wrong with it says which hook it is, so that somebody can find the row.
pub(super) fn hook(dialect: Dialect, row: &dyn Columns) -> Result<Rule, Failure> {
    let id = HookId::new(row.string("id")?);
    settings(dialect, row, &id).map_err(|failure| match failure {
        Failure::Foreign { what, why } => foreign(&id, format!("{what}: {why}")),
        other @ (Failure::Sqlite(_) | Failure::Postgres(_) | Failure::Silence | Failure::Said(_)) => other,
    })
}

fn settings(dialect: Dialect, row: &dyn Columns, id: &HookId) -> Result<Rule, Failure> {
    let broken = |column: &str, why: String| Failure::Foreign { what: format!("column `{column}`"), why };
    let object = |column: &str| match jsonb::read(dialect, &row.text(column)?) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(broken(column, "it is no JSON object".to_owned())),
        Err(why) => Err(broken(column, why)),
    };
    Ok(Rule {
        tenant_id: TenantId::new(row.string("tenant_id")?),
        agent_ids: body::read(&row.text("agent_ids")?).map_err(|why| broken("agent_ids", why))?,
        event: word(row, "event", CheckpointKind::named)?,
        handler_type: word(row, "handler_type", HandlerType::named)?,
        scope: word(row, "scope", HookScope::named)?,
        name: row.maybe_string("name")?.unwrap_or_default(),
        config: object("config")?,
        matcher: row.maybe_string("matcher")?.unwrap_or_default(),
        if_expr: row.maybe_string("if_expr")?.unwrap_or_default(),
        timeout_ms: number(row, "timeout_ms")?,
        on_timeout: word(row, "on_timeout", Fallback::named)?,
        priority: number(row, "priority")?,
        enabled: row.flag("enabled")?,
        version: number(row, "version")?,
        source: word(row, "source", Source::named)?,
        may_rewrite: row.flag("may_rewrite")?,
        breaker: word(row, "breaker", BreakerPolicy::named)?,
        on_trip: word(row, "on_trip", Fallback::named)?,
        tripped_at: row.maybe_text("tripped_at")?.map(|text| moment(&text)).transpose()?,
        disabled_reason: row.string("disabled_reason")?,
        metadata: object("metadata")?,
        created_by: row.maybe_string("created_by")?,
        created_at: moment(&row.text("created_at")?)?,
        updated_at: moment(&row.text("updated_at")?)?,
        id: id.clone(),
    })
}

/// What can be said of a row that is no rule, because of `why`: what it was to guard stays shut, as far as that can be
/// told.
pub(super) fn odd(row: &dyn Columns, why: &Failure) -> RuleDoubt {
    let text = |column: &str| row.maybe_string(column).ok().flatten();
    let id = text("id").unwrap_or_default();
    let tenant = text("tenant_id");
    let agent_ids: Option<Vec<String>> = text("agent_ids").and_then(|ids| body::read(&ids).ok());
    let scope = match (text("scope").as_deref().and_then(HookScope::named), &tenant, &agent_ids) {
        (_, None, _) | (Some(HookScope::Global), ..) => HookScope::Global,
        (Some(HookScope::Agent), _, Some(_)) => HookScope::Agent,
        (Some(HookScope::Agent | HookScope::Tenant) | None, ..) => HookScope::Tenant,
    };
    let is_tripped = !matches!(row.maybe_text("tripped_at"), Ok(None));
    let rule = AnchoredRule {
        tenant_id: tenant.map_or_else(TenantId::sentinel, TenantId::new),
        name: text("name").filter(|name| !name.is_empty()).unwrap_or_else(|| id.clone()),
        event: text("event").as_deref().and_then(CheckpointKind::named),
        // One that cannot be read matches everything.
        matcher: text("matcher").unwrap_or_default(),
        scope,
        agent_ids: agent_ids.unwrap_or_default(),
        acts: row.flag("enabled").unwrap_or(true) || is_tripped,
        digest: String::new(),
    };
    RuleDoubt { hook: HookId::new(id), rule, why: DoubtKind::Unreadable(said(why)) }
}

/// A failure of a row in words, without a value of it that nobody knows.
pub(super) fn said(why: &Failure) -> String {
    let with_source = |error: &dyn std::error::Error| match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    match why {
        Failure::Foreign { what, why } => format!("{what}: {why}"),
        Failure::Postgres(error) => with_source(error),
        Failure::Sqlite(error) => with_source(error),
        Failure::Said(error) => error.to_string(),
        Failure::Silence => "the database did not answer".to_owned(),
    }
}

/// Somebody else wrote the row of the hook `id`.
pub(super) fn foreign(id: &HookId, why: impl Display) -> Failure {
    Failure::Foreign { what: format!("hook `{id}`"), why: why.to_string() }
}

/// The moment in a column as it is shown.
pub(super) fn moment(text: &str) -> Result<String, Failure> {
    let at: Timestamp = text.parse().map_err(|e: jiff::Error| unread("a moment", text, &e))?;
    Ok(rules::moment(at))
}

/// The number in a column.
pub(super) fn number<T: TryFrom<i64>>(row: &dyn Columns, column: &str) -> Result<T, Failure> {
    let found = row.int(column)?;
    T::try_from(found).map_err(|_| unread(&format!("column `{column}`"), &found.to_string(), &"out of bounds"))
}

fn word<T>(row: &dyn Columns, column: &str, named: impl Fn(&str) -> Option<T>) -> Result<T, Failure> {
    let found = row.text(column)?;
    named(&found).ok_or_else(|| unread(&format!("column `{column}`"), &found, &"an unknown word"))
}

fn unread(what: &str, found: &str, why: &dyn Display) -> Failure {
    Failure::Foreign { what: format!("{what} of a table of hooks"), why: format!("`{}`: {why}", found.escape_debug()) }
}
