//! `pintle hooks enable`, `disable`, `remove` and `reset`: whether a rule acts.

use clap::Args;
use domain::id::TenantId;
use domain::json::{Value, json};

use super::super::{Global, terminal};
use super::stored::{called, find, json, refused, switched, text, with_admin};
use crate::error::CliError;
use crate::operator;

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

pub(super) fn toggle(global: &Global, args: &OneArgs, enabled: bool) -> Result<u8, CliError> {
    operator::require()?;
    let (hook, enabled) = with_admin(global, async |rule_admin, by| {
        let hook = find(rule_admin, by, &args.hook).await?;
        let enabled = rule_admin.toggle(by, text(&hook, "id"), enabled).await.map_err(refused)?;
        Ok((hook, enabled))
    })?;
    answer(args.json, &json!({"hookId": hook["id"], "enabled": enabled}), &switched(&hook, enabled))
}

pub(super) fn remove(global: &Global, args: &OneArgs) -> Result<u8, CliError> {
    operator::require()?;
    let hook = with_admin(global, async |rule_admin, by| {
        let hook = find(rule_admin, by, &args.hook).await?;
        rule_admin.delete(by, text(&hook, "id")).await.map_err(refused)?;
        Ok(hook)
    })?;
    let said = format!("{} is removed; what it did stays in the history", called(&hook));
    answer(args.json, &json!({"hookId": hook["id"]}), &said)
}

pub(super) fn reset(global: &Global, args: &ResetArgs) -> Result<u8, CliError> {
    operator::require()?;
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
    terminal::say(&if as_json { json(value)? } else { format!("{plain}\n") })?;
    Ok(0)
}
