//! Row 3: how a hook is run.

use std::collections::BTreeSet;

use domain::id::{DEFAULT_TENANT, SENTINEL_TENANT, TenantId};
use domain::json::Object;
use domain::rule::{Edition, HandlerType, Rule};

use super::config::{CommandConfig, HttpConfig, PromptConfig, ScriptConfig};
use super::draft::Draft;
use super::secret::vet;
use super::setting::Setting;
use super::{RecordError, quoted};

/// Whether a host of this edition runs `hook`. It is asked when a hook is written and again when it is run: a row may
/// come from another edition.
///
/// # Errors
/// Why not.
pub fn allowed(hook: &Rule, edition: Edition) -> Result<(), RecordError> {
    allowed_for(hook.handler_type, &hook.tenant_id, edition)
}

/// The same for a hook of which only its handler and its tenant are known.
///
/// # Errors
/// Why not.
pub fn allowed_for(handler: HandlerType, tenant: &TenantId, edition: Edition) -> Result<(), RecordError> {
    match handler {
        HandlerType::Http | HandlerType::Prompt | HandlerType::Script => Ok(()),
        HandlerType::Command if edition == Edition::Lite && is_operators(tenant) => Ok(()),
        HandlerType::Command => Err(RecordError::hook("command handler not allowed: hook.command_disabled_standard")),
    }
}

/// Commands have the rights of the host, so they are for those who operate it.
fn is_operators(tenant: &TenantId) -> bool {
    [DEFAULT_TENANT, SENTINEL_TENANT].contains(&tenant.as_str())
}

/// Reads the handler with its settings, which have the right types.
pub(super) fn handler(
    draft: &Draft,
    tenant: &TenantId,
    setting: &Setting<'_>,
) -> Result<(HandlerType, Object), RecordError> {
    let word = draft.text("handler_type");
    let Some(handler) = HandlerType::named(word) else {
        let quoted = quoted(word);
        let shown = &quoted[1..quoted.len() - 1];
        return Err(RecordError::hook(format!("{shown} handler not allowed: hook.unknown_handler_type")));
    };
    allowed_for(handler, tenant, setting.record_context.edition)?;
    let config = draft.object("config");
    match handler {
        HandlerType::Command => drop(CommandConfig::complete(&config)?),
        HandlerType::Http => http(&HttpConfig::complete(&config)?, tenant, setting)?,
        HandlerType::Prompt => {
            if draft.text("matcher").is_empty() && draft.text("if_expr").is_empty() {
                return Err(RecordError::hook("prompt handler requires a matcher or if_expr (runaway-cost guard)"));
            }
            drop(PromptConfig::complete(&config)?);
        }
        HandlerType::Script => {
            let script = ScriptConfig::complete(&config)?;
            let wrong = |why| RecordError::hook(format!("script compile error: {why}"));
            (setting.record_context.checks.script)(&script.source).map_err(wrong)?;
        }
    }
    Ok((handler, config))
}

fn http(config: &HttpConfig, tenant: &TenantId, setting: &Setting<'_>) -> Result<(), RecordError> {
    let checks = setting.record_context.checks;
    let wrong = |why: String| RecordError::hook(format!("http handler: {why}"));
    (checks.url)(tenant, &config.url).map_err(|why| wrong(format!("ssrf check: {why}")))?;
    let mut seen = BTreeSet::new();
    for (name, value) in &config.headers {
        if !seen.insert(name.to_ascii_lowercase()) {
            return Err(wrong(format!("header {} is there twice; upper and lower case are the same", quoted(name))));
        }
        (checks.header)(name, value).map_err(wrong)?;
    }
    let open = vet(config, setting.sealed)?;
    match open.signing_secret {
        Some(secret) => (checks.signing_secret)(secret).map_err(wrong),
        None => Ok(()),
    }
}
