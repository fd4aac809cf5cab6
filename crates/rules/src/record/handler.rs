//! Row 3: how a hook is run.

use std::collections::BTreeSet;

use pintle_domain::id::{DEFAULT_TENANT, SENTINEL_TENANT, TenantId};
use pintle_domain::json::Object;
use pintle_domain::rule::{Edition, HandlerType, Rule};

use super::config::{HandlerConfig, HandlerTraits, HttpConfig};
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
    // What has the rights of the host is for those who operate it.
    if !HandlerTraits::of(handler).acts_as_host || (edition == Edition::Lite && is_operators(tenant)) {
        return Ok(());
    }
    let word = handler.word();
    Err(RecordError::hook(format!("{word} handler not allowed: hook.{word}_disabled_standard")))
}

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
        let words: Vec<&str> = HandlerType::ALL.iter().map(|handler| handler.word()).collect();
        let hint = setting.meant(word, &words);
        return Err(RecordError::hook(format!("{shown} handler not allowed: hook.unknown_handler_type{hint}")));
    };
    allowed_for(handler, tenant, setting.record_context.edition)?;
    let config = draft.object("config");
    let is_narrow = !draft.text("matcher").is_empty() || !draft.text("if_expr").is_empty();
    if HandlerTraits::of(handler).costs_money && !is_narrow {
        let message = format!("{word} handler requires a matcher or if_expr (runaway-cost guard)");
        return Err(RecordError::hook(message));
    }
    let read = HandlerConfig::complete(handler, &config)?;
    if let Some(request) = read.request() {
        http(request, tenant, setting)?;
    }
    if let Some(source) = read.script() {
        let wrong = |why| RecordError::hook(format!("script compile error: {why}"));
        (setting.record_context.checks.script)(source).map_err(wrong)?;
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
