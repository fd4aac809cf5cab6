//! `pintle hooks enable`, `disable`, `remove` and `reset`: whether a rule acts.

use clap::Args;
use pintle_domain::id::TenantId;
use pintle_domain::json::{Value, json};
use pintle_domain::rule::EXCEPTION_OF;

use super::super::identity::may_seal;
use super::super::{Global, terminal};
use super::stored::{called, find, json, refused, switched, text, warn_blind, with_admin, with_admin_of};
use crate::error::CliError;
use crate::operator;
use pintle_host::host::load;

/// The hook that is meant.
#[derive(Debug, Args)]
pub struct OneArgs {
    /// The hook: its id, or its name if only one has it
    #[arg(value_name = "HOOK")]
    hook: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Flags of `hooks disable` and `hooks remove`.
#[derive(Debug, Args)]
pub struct OffArgs {
    /// The hook: its id, or its name if only one has it
    #[arg(value_name = "HOOK")]
    hook: String,
    /// Why, for the change log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Flags of `hooks reset`.
#[derive(Debug, Args)]
pub struct ResetArgs {
    /// The hook: its id, or its name if only one has it
    #[arg(value_name = "HOOK")]
    hook: String,
    /// Of a global hook, for this tenant only [default: for every tenant]
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn enable(global: &Global, args: OneArgs) -> Result<u8, CliError> {
    toggle(global, &OffArgs { hook: args.hook, reason: None, json: args.json }, true)
}

pub(super) fn toggle(global: &Global, args: &OffArgs, enabled: bool) -> Result<u8, CliError> {
    operator::require()?;
    may_seal(global)?;
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let config = loaded.config.clone();
    let (hook, enabled) = with_admin_of(env, loaded, async |rule_admin, by| {
        let hook = find(rule_admin, by, &args.hook).await?;
        let enabled = rule_admin
            .switch(by, text(&hook, "id"), enabled, args.reason.as_deref().unwrap_or_default())
            .await
            .map_err(refused)?;
        Ok((hook, enabled))
    })?;
    if enabled {
        warn_blind(&config, &hook);
    }
    answer(args.json, &json!({"hookId": hook["id"], "enabled": enabled}), &switched(&hook, enabled))
}

pub(super) fn remove(global: &Global, args: &OffArgs) -> Result<u8, CliError> {
    operator::require()?;
    may_seal(global)?;
    let (hook, guard) = with_admin(global, async |rule_admin, by| {
        let hook = find(rule_admin, by, &args.hook).await?;
        rule_admin.remove(by, text(&hook, "id"), args.reason.as_deref().unwrap_or_default()).await.map_err(refused)?;
        // The rule that it was an exception of may be gone.
        let guard = match hook["metadata"][EXCEPTION_OF].as_str() {
            Some(id) => rule_admin.get(by, id).await.ok(),
            None => None,
        };
        Ok((hook, guard))
    })?;
    let again = guard.map(|guard| format!("; {} sees the calls again that this one asked about", called(&guard)));
    let said = format!("{} is removed; what it did stays in the history{}", called(&hook), again.unwrap_or_default());
    answer(args.json, &json!({"hookId": hook["id"]}), &said)
}

pub(super) fn reset(global: &Global, args: &ResetArgs) -> Result<u8, CliError> {
    operator::require()?;
    may_seal(global)?;
    let tenant = args.tenant.as_deref().map(TenantId::from);
    let (hook, enabled) = with_admin(global, async |rule_admin, by| {
        let hook = find(rule_admin, by, &args.hook).await?;
        let enabled = rule_admin.reset(by, text(&hook, "id"), tenant.as_ref()).await.map_err(refused)?;
        Ok((hook, enabled))
    })?;
    let word = if enabled { "it is on" } else { "it stays off" };
    let said = format!("{}: its circuit breaker is closed and counts from the start; {word}", called(&hook));
    answer(args.json, &json!({"hookId": hook["id"], "enabled": enabled}), &said)
}

fn answer(as_json: bool, value: &Value, plain: &str) -> Result<u8, CliError> {
    if as_json {
        terminal::say(&json(value)?)?
    } else {
        terminal::tell(&format!("{plain}\n"))?
    }
    Ok(0)
}
