//! Changes of a hook that is there.

use domain::agent_hook::{AgentHook, HandlerType, HookScope, Source};
use domain::id::TenantId;
use domain::json::{Object, Value};

use super::draft::{self, Draft};
use super::rows::{self, Setting};
use super::secret::{Sealed, keep, masked};
use super::{Around, Code, Lang, Read, Refused, check};

/// Said to those who would change what is about every tenant, and may not.
pub const NO_MASTER: &str = "this action requires master tenant scope";

/// Said to those who would change what is shipped.
const READ_ONLY: &str = "builtin hooks are read-only except for the enabled toggle";

/// Lays `updates` over `current` and judges the whole. Members that are not sent stay; `""` clears; `config` is
/// replaced whole, but for secrets whose mask it has. Version and times stay the store's.
///
/// Files are read whole and not changed by parts, so [`Lang::File`] is [`Lang::Cli`] here. A hook whose circuit breaker is open acts again after any change; `enabled: false` does not switch it off.
///
/// # Errors
/// The first thing that is wrong.
pub fn patch(current: &AgentHook, updates: &Value, around: &Around<'_>) -> Result<Read, Refused> {
    let lang = if around.lang == Lang::File { Lang::Cli } else { around.lang };
    let around = &Around { lang, ..*around };
    let is_global = current.scope == HookScope::Global;
    if !is_global && !around.is_master && current.tenant_id != *around.tenant {
        return Err(Refused::new(Code::NotFound, format!("hook not found: {}", current.id)));
    }
    let sent = updates.as_object().filter(|updates| !updates.is_empty());
    let sent = sent.ok_or_else(|| Refused::new(Code::InvalidRequest, "invalid updates"))?;
    let sent = draft::updates(sent, around.lang)?;
    if is_global && !around.is_master {
        return Err(Refused::new(Code::Unauthorized, NO_MASTER));
    }
    let read = match current.source {
        Source::Builtin => toggled(current, &sent, around)?,
        Source::User => merged(current, &sent, around)?,
    };
    Ok(Read { hook: in_force(read.hook, current, &sent), warnings: read.warnings })
}

fn toggled(current: &AgentHook, sent: &Object, around: &Around<'_>) -> Result<Read, Refused> {
    if sent.keys().any(|name| name != "enabled") {
        return Err(Refused::new(Code::InvalidRequest, READ_ONLY));
    }
    let enabled = sent.get("enabled").and_then(Value::as_bool).unwrap_or(current.enabled);
    let hook = AgentHook { enabled, ..current.clone() };
    let warnings = if enabled { check(&hook, around)? } else { Vec::new() };
    Ok(Read { hook, warnings })
}

fn merged(current: &AgentHook, sent: &Object, around: &Around<'_>) -> Result<Read, Refused> {
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
    let tenant: &TenantId = if was_global { around.tenant } else { &current.tenant_id };
    let setting = Setting { around, tenant, is_master: around.is_master, sealed: Sealed::Kept(&kept) };
    rows::validate(&Draft::of(whole)?, &setting, current.clone())
}

/// What a change means for whether the hook acts.
fn in_force(hook: AgentHook, current: &AgentHook, sent: &Object) -> AgentHook {
    let tripped = current.tripped_at.is_some();
    if tripped {
        return AgentHook { enabled: true, tripped_at: None, disabled_reason: String::new(), ..hook };
    }
    // Who says whether it acts takes the place of whoever said so before.
    let disabled_reason = if sent.contains_key("enabled") { String::new() } else { hook.disabled_reason };
    AgentHook { disabled_reason, ..hook }
}
