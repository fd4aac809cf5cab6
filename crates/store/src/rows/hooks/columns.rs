//! A rule and the columns of its row.

use std::fmt::Display;

use jiff::Timestamp;
use pintle_domain::anchor::{AnchoredRule, DoubtKind, RuleDoubt};
use pintle_domain::breaker::BreakerPolicy;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::{Object, Value};
use pintle_domain::rule::{Fallback, HandlerType, HookScope, Rule, Source};

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
    let object = |column: &'static str| {
        read(row, (column, "a JSON object"), || match jsonb::read(dialect, &row.text(column)?) {
            Ok(Value::Object(members)) => Ok(members),
            Ok(_) => Err(Failure::Foreign { what: String::new(), why: "it is JSON of another kind".to_owned() }),
            Err(why) => Err(Failure::Foreign { what: String::new(), why }),
        })
    };
    let text = |column: &'static str| read(row, (column, "a text"), || row.string(column));
    let maybe_text = |column: &'static str| read(row, (column, "a text"), || row.maybe_string(column));
    let flag = |column: &'static str| read(row, (column, "true or false"), || row.flag(column));
    let at = |column: &'static str| read(row, (column, MOMENT), || moment(&row.text(column)?));
    let agents = || body::read(&row.text("agent_ids")?).map_err(|why| Failure::Foreign { what: String::new(), why });
    Ok(Rule {
        tenant_id: TenantId::new(text("tenant_id")?),
        agent_ids: read(row, ("agent_ids", "a JSON array of texts"), agents)?,
        event: word(row, ("event", "the name of an event"), CheckpointKind::named)?,
        handler_type: word(row, ("handler_type", "a way of running hooks"), HandlerType::named)?,
        scope: word(row, ("scope", "`global`, `tenant` or `agent`"), HookScope::named)?,
        name: maybe_text("name")?.unwrap_or_default(),
        config: object("config")?,
        matcher: maybe_text("matcher")?.unwrap_or_default(),
        if_expr: maybe_text("if_expr")?.unwrap_or_default(),
        timeout_ms: bounded(row, "timeout_ms")?,
        on_timeout: word(row, ("on_timeout", "`block` or `allow`"), Fallback::named)?,
        priority: bounded(row, "priority")?,
        enabled: flag("enabled")?,
        version: bounded(row, "version")?,
        source: word(row, ("source", "where a rule comes from"), Source::named)?,
        may_rewrite: flag("may_rewrite")?,
        breaker: word(row, ("breaker", "a word for a breaker"), BreakerPolicy::named)?,
        on_trip: word(row, ("on_trip", "`block` or `allow`"), Fallback::named)?,
        tripped_at: read(row, ("tripped_at", MOMENT), || {
            row.maybe_text("tripped_at")?.map(|text| moment(&text)).transpose()
        })?,
        disabled_reason: text("disabled_reason")?,
        metadata: object("metadata")?,
        created_by: maybe_text("created_by")?,
        created_at: at("created_at")?,
        updated_at: at("updated_at")?,
        id: id.clone(),
    })
}

/// What a column with a time holds.
const MOMENT: &str = "a moment";

/// The longest value of a column that a message repeats, in characters.
const MAX_SHOWN: usize = 60;

/// What `read` makes of a column. If that is nothing, it is said where, what belongs there, and what is there.
fn read<T>(
    row: &dyn Columns,
    (column, expected): (&str, &str),
    read: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    read().map_err(|why| {
        let found = found(row, column).unwrap_or_else(|| match why {
            Failure::Foreign { why, .. } => format!("something else: {why}"),
            other @ (Failure::Sqlite(_) | Failure::Postgres(_) | Failure::Silence | Failure::Said(_)) => {
                format!("something else: {}", said(&other))
            }
        });
        let what = format!("column `{column}` of `agent_hooks`");
        Failure::Foreign { what, why: format!("{expected} belongs there, and what is there is {found}") }
    })
}

/// What is in a column in words, if anything can be said. What may hold secrets, or is long, is not repeated.
fn found(row: &dyn Columns, column: &str) -> Option<String> {
    let text = match (row.maybe_text(column), row.maybe_int(column)) {
        (Ok(None), _) | (_, Ok(None)) => return Some("NULL".to_owned()),
        (_, Ok(Some(number))) => number.to_string(),
        (Ok(Some(text)), Err(_)) => text.into_owned(),
        (Err(_), Err(_)) => return None,
    };
    let repeats = !["config", "metadata", "agent_ids"].contains(&column) && text.chars().count() <= MAX_SHOWN;
    repeats.then(|| format!("`{}`", text.escape_debug()))
}

/// What can be said of a row that is not a rule, because of `why`: what it was to guard stays shut, as far as that can be
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

/// The number in a column of a rule.
fn bounded<T: TryFrom<i64>>(row: &dyn Columns, column: &'static str) -> Result<T, Failure> {
    read(row, (column, "a number within its bounds"), || number(row, column))
}

fn word<T>(
    row: &dyn Columns,
    (column, expected): (&'static str, &str),
    named: impl Fn(&str) -> Option<T>,
) -> Result<T, Failure> {
    read(row, (column, expected), || {
        let found = row.text(column)?;
        named(&found).ok_or_else(|| unread(&format!("column `{column}`"), &found, &"an unknown word"))
    })
}

fn unread(what: &str, found: &str, why: &dyn Display) -> Failure {
    Failure::Foreign { what: format!("{what} of a table of hooks"), why: format!("`{}`: {why}", found.escape_debug()) }
}
