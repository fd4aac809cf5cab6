//! Rows 0 to 6 over a record whose members have the right types.

use pintle_domain::breaker::BreakerPolicy;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::json::Object;
use pintle_domain::matcher::Matcher;
use pintle_domain::person_name::unseen_flaw;
use pintle_domain::rule::{AGENT_EVENTS, Fallback, HandlerType, HookScope, Rule};

use super::config::HandlerTraits;
use super::draft::Draft;
use super::handler::handler;
use super::setting::{NO_MASTER, Setting};
use super::{
    DEFAULT_TIMEOUT_MS, Lang, MAX_AGENTS, MAX_HOOKS, MAX_NAME_CHARS, MAX_TIMEOUT_MS, RecordError, RecordErrorCode,
    ValidRecord, quoted, scope, warning,
};
use crate::condition::{compile, compile_matcher};

/// Judges `draft`, row by row, and writes it over `base`.
pub(super) fn validate(draft: &Draft, setting: &Setting<'_>, base: Rule) -> Result<ValidRecord, RecordError> {
    required(draft, setting)?;
    let event = event(draft, setting)?;
    let home = scope::home(draft, setting)?;
    let (handler_type, config) = handler(draft, &home.tenant, setting)?;
    let limits = Limits::of(draft, event)?;
    let matcher = conditions(draft)?;
    sizes(draft, &home.agents, handler_type, &config)?;
    seen(draft.text("name"), setting.record_context.lang, &base)?;
    let hook = Rule {
        tenant_id: home.tenant,
        agent_ids: home.agents,
        event,
        handler_type,
        scope: home.scope,
        name: draft.text("name").to_owned(),
        config,
        matcher: draft.text("matcher").to_owned(),
        if_expr: draft.text("if_expr").to_owned(),
        timeout_ms: limits.timeout_ms,
        on_timeout: limits.on_timeout,
        // Its type has been checked.
        priority: draft.digits("priority").parse().unwrap_or_default(),
        enabled: draft.flag("enabled", true),
        may_rewrite: draft.flag("may_rewrite", false),
        breaker: limits.breaker,
        on_trip: limits.on_trip,
        metadata: draft.object("metadata"),
        ..base
    };
    let warnings = warning::of(&hook, matcher.as_ref());
    Ok(ValidRecord { hook, warnings })
}

/// The end of row 0.
fn required(draft: &Draft, setting: &Setting<'_>) -> Result<(), RecordError> {
    if ["handler_type", "event", "scope"].iter().any(|name| draft.text(name).is_empty()) {
        return Err(RecordError::new(RecordErrorCode::InvalidRequest, "handler_type, event, and scope are required"));
    }
    if setting.record_context.lang == Lang::File && draft.text("name").is_empty() {
        return Err(RecordError::new(RecordErrorCode::InvalidRequest, "name is required in files"));
    }
    if draft.text("scope") == HookScope::Global.word() && !setting.is_master {
        return Err(RecordError::new(RecordErrorCode::Unauthorized, NO_MASTER));
    }
    Ok(())
}

/// Row 1.
fn event(draft: &Draft, setting: &Setting<'_>) -> Result<CheckpointKind, RecordError> {
    let word = draft.text("event");
    let known = CheckpointKind::named(word).filter(|kind| AGENT_EVENTS.contains(kind));
    let hint = || setting.meant(word, &AGENT_EVENTS.map(CheckpointKind::name));
    known.ok_or_else(|| RecordError::hook(format!("unknown event {}{}", quoted(word), hint())))
}

/// Rows 4 and 5.
struct Limits {
    timeout_ms: u32,
    on_timeout: Fallback,
    breaker: BreakerPolicy,
    on_trip: Fallback,
}

impl Limits {
    fn of(draft: &Draft, event: CheckpointKind) -> Result<Self, RecordError> {
        let timeout_ms = timeout_ms(draft.digits("timeout_ms"))?;
        let word = draft.text("on_timeout");
        if ["ask", "defer"].contains(&word) {
            return Err(RecordError::hook(format!(
                "on_timeout=\"{word}\" not supported in Wave 1 (reserved for future)"
            )));
        }
        let instead = |name: &str| match draft.text(name) {
            "" => Ok(Fallback::default_at(event)),
            word => Fallback::named(word)
                .ok_or_else(|| RecordError::hook(format!("{name} must be block or allow, got {}", quoted(word)))),
        };
        let on_timeout = instead("on_timeout")?;
        let breaker = match draft.text("breaker") {
            "" => BreakerPolicy::default(),
            word => BreakerPolicy::named(word).ok_or_else(|| {
                RecordError::hook(format!("breaker must be all, faults or off, got {}", quoted(word)))
            })?,
        };
        Ok(Self { timeout_ms, on_timeout, breaker, on_trip: instead("on_trip")? })
    }
}

fn timeout_ms(digits: &str) -> Result<u32, RecordError> {
    // A number may have any number of digits; nobody needs to see more than these.
    let got: String = digits.chars().take(20).collect();
    let is_zero = digits.bytes().all(|byte| matches!(byte, b'0' | b'-'));
    if !is_zero && digits.starts_with('-') {
        return Err(RecordError::hook(format!("timeout_ms must be >= 0, got {got}")));
    }
    match digits.parse() {
        _ if is_zero => Ok(DEFAULT_TIMEOUT_MS),
        Ok(timeout_ms) if timeout_ms <= MAX_TIMEOUT_MS => Ok(timeout_ms),
        Ok(_) | Err(_) => Err(RecordError::hook(format!("timeout_ms {got} exceeds max {MAX_TIMEOUT_MS}"))),
    }
}

/// Row 6: the pattern, if there is one. Both texts are bounded where they are compiled.
fn conditions(draft: &Draft) -> Result<Option<Matcher>, RecordError> {
    let matcher = match draft.text("matcher") {
        "" => None,
        text => Some(compile_matcher(text).map_err(|why| RecordError::hook(format!("matcher invalid: {why}")))?),
    };
    match draft.text("if_expr") {
        "" => {}
        text => drop(compile(text).map_err(|why| RecordError::hook(format!("if_expr invalid: {why}")))?),
    }
    Ok(matcher)
}

/// The end of row 6.
fn sizes(draft: &Draft, agents: &[String], handler: HandlerType, config: &Object) -> Result<(), RecordError> {
    let within = |what: &str, got: usize, max: usize, unit: &str| {
        if got <= max { Ok(()) } else { Err(RecordError::hook(format!("{what} exceeds {max} {unit} (got {got})"))) }
    };
    let bytes = |name: &str| config.get(name).and_then(pintle_domain::json::Value::as_str).map_or(0, str::len);
    within("name", draft.text("name").chars().count(), MAX_NAME_CHARS, "characters")?;
    if let Some((member, max)) = HandlerTraits::of(handler).bounded {
        within(member, bytes(member), max, "bytes")?;
    }
    within("agent_ids", agents.len(), MAX_AGENTS, "agents")
}

/// A new name that somebody gives has nothing in it that nobody sees; what is called so already stays as it is.
fn seen(name: &str, lang: Lang, base: &Rule) -> Result<(), RecordError> {
    let is_new = match lang {
        Lang::Api | Lang::Cli => name != base.name,
        Lang::File | Lang::Import => false,
    };
    match unseen_flaw(name).filter(|_| is_new) {
        Some(flaw) => Err(RecordError::hook(format!("name {flaw}"))),
        None => Ok(()),
    }
}

/// Whether a tenant that has `held` hooks may have one more.
///
/// # Errors
/// It may not.
pub fn room(held: usize) -> Result<(), RecordError> {
    if held < MAX_HOOKS {
        return Ok(());
    }
    Err(RecordError::hook(format!("the tenant has {MAX_HOOKS} hooks, and may not have more; delete one first")))
}
