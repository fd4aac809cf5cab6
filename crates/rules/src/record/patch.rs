//! Changes of a hook that is there.

use pintle_domain::id::TenantId;
use pintle_domain::json::{Object, Value};
use pintle_domain::rule::{HandlerType, HookScope, Rule, Source};

use super::draft::{self, Draft};
use super::rows;
use super::secret::{SealedInput, keep, masked};
use super::setting::{NO_MASTER, Setting};
use super::{Lang, RecordContext, RecordError, RecordErrorCode, ValidRecord, check, is_own_reason};

/// Said to those who would change what is shipped.
const READ_ONLY: &str = "builtin hooks are read-only except for the enabled toggle";

/// Lays `updates` over `current` and judges the whole. Members that are not sent stay; `""` clears; `config` is
/// replaced whole, but for secrets whose mask it has. Version and times stay the store's.
///
/// Files are read whole and not changed by parts, so [`Lang::File`] is [`Lang::Cli`] here. A hook whose circuit breaker is open acts again after any change; `enabled: false` does not switch it off.
///
/// # Errors
/// The first thing that is wrong.
pub fn patch(current: &Rule, updates: &Value, record_context: &RecordContext<'_>) -> Result<ValidRecord, RecordError> {
    let lang = if record_context.lang == Lang::File { Lang::Cli } else { record_context.lang };
    let record_context = &RecordContext { lang, ..*record_context };
    let is_global = current.scope == HookScope::Global;
    if !is_global && !record_context.is_master && current.tenant_id != *record_context.tenant {
        return Err(RecordError::new(RecordErrorCode::NotFound, format!("hook not found: {}", current.id)));
    }
    let sent = updates.as_object().filter(|updates| !updates.is_empty());
    let sent = sent.ok_or_else(|| RecordError::new(RecordErrorCode::InvalidRequest, "invalid updates"))?;
    let sent = draft::updates(sent, record_context.lang)?;
    if is_global && !record_context.is_master {
        return Err(RecordError::new(RecordErrorCode::Unauthorized, NO_MASTER));
    }
    let read = match current.source {
        Source::Builtin => toggled(current, &sent, record_context)?,
        Source::User => merged(current, &sent, record_context)?,
    };
    Ok(ValidRecord { hook: in_force(read.hook, current, &sent), warnings: read.warnings })
}

fn toggled(current: &Rule, sent: &Object, record_context: &RecordContext<'_>) -> Result<ValidRecord, RecordError> {
    if sent.keys().any(|name| name != "enabled") {
        return Err(RecordError::new(RecordErrorCode::InvalidRequest, READ_ONLY));
    }
    let enabled = sent.get("enabled").and_then(Value::as_bool).unwrap_or(current.enabled);
    let hook = Rule { enabled, ..current.clone() };
    let warnings = if enabled { check(&hook, record_context)? } else { Vec::new() };
    Ok(ValidRecord { hook, warnings })
}

fn merged(current: &Rule, sent: &Object, record_context: &RecordContext<'_>) -> Result<ValidRecord, RecordError> {
    // A secret that is not sent is not changed, just as if its mask were.
    let mut whole = draft::row(&masked(current));
    whole.extend(sent.clone());
    let word = |name: &str| whole.get(name).and_then(Value::as_str).unwrap_or_default();
    let was_global = current.scope == HookScope::Global;
    // What is encrypted is bound to its tenant.
    let at_home = was_global == (word("scope") == HookScope::Global.word());
    let handler = HandlerType::named(word("handler_type"));
    let mut kept = std::collections::BTreeSet::new();
    if let (Some(handler), Some(Value::Object(config))) = (handler, whole.get_mut("config")) {
        kept = keep(current, handler, config, at_home);
    }
    let tenant: &TenantId = if was_global { record_context.tenant } else { &current.tenant_id };
    let setting =
        Setting { record_context, tenant, is_master: record_context.is_master, sealed: SealedInput::Kept(&kept) };
    rows::validate(&Draft::of(whole)?, &setting, current.clone())
}

/// What a change means for whether the hook acts.
fn in_force(hook: Rule, current: &Rule, sent: &Object) -> Rule {
    let tripped = current.tripped_at.is_some();
    if tripped {
        return Rule { enabled: true, tripped_at: None, disabled_reason: String::new(), ..hook };
    }
    // Who says that it acts takes back why it did not; who says that it does not takes the place of Pintle, and of no
    // person who said why.
    let stays = !sent.contains_key("enabled") || (!hook.enabled && !is_own_reason(&hook.disabled_reason));
    let disabled_reason = if stays { hook.disabled_reason } else { String::new() };
    Rule { disabled_reason, ..hook }
}
