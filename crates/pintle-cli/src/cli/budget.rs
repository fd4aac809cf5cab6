//! `pintle budget`: what a tenant may spend on hooks that ask a model.

use clap::{Args, Subcommand};
use pintle_domain::id::{DEFAULT_SLUG, DEFAULT_TENANT, SENTINEL_TENANT};
use pintle_domain::json::json;
use pintle_domain::store::{Actor, Budget, BudgetChange, Tenant};
use pintle_rules::admin::reason_said;
use pintle_store::Store;

use super::audit::{failed, no_tenant};
use super::identity::may_seal;
use super::{Global, terminal};
use crate::clean::clean;
use crate::error::CliError;
use crate::operator;
use pintle_host::host::{load, open_store};

/// What can be done with budgets.
#[derive(Debug, Subcommand)]
pub enum BudgetCommand {
    /// What is left this month
    Get(GetArgs),
    /// Set the limit of a month; 0 allows no call at all
    Set(SetArgs),
}

/// Flags of `budget get`.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// The tenant [default: default]
    #[arg(long, value_name = "SLUG")]
    tenant: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Flags of `budget set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// How many tokens a month
    #[arg(value_name = "TOTAL", value_parser = clap::value_parser!(i64).range(0..), allow_negative_numbers = true)]
    total: i64,
    /// The tenant [default: default]
    #[arg(long, value_name = "SLUG")]
    tenant: Option<String>,
    /// Why, for the change log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(global: &Global, command: BudgetCommand) -> Result<u8, CliError> {
    if let BudgetCommand::Set(_) = command {
        operator::require()?;
        may_seal(global)?;
    }
    let (_, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let store = open_store(&loaded.config)?;
    let now = jiff::Timestamp::now();
    let (tenant, budget, as_json) = match command {
        BudgetCommand::Get(GetArgs { tenant, json }) => {
            let tenant = named(&*store, tenant.as_deref())?;
            let budget = store.budget(&tenant.id, now).map_err(failed)?;
            (tenant, budget, json)
        }
        BudgetCommand::Set(SetArgs { total, tenant, reason, json }) => {
            let tenant = named(&*store, tenant.as_deref())?;
            let by = Actor { name: "cli".to_owned(), at: now, reason: String::new() };
            let reason = reason.unwrap_or_default();
            let reason = reason_said(&reason).map_err(|error| CliError::failed(error.to_string()))?.to_owned();
            let change = BudgetChange { reason, ..BudgetChange::to(total, by) };
            let budget = store.set_budget(&tenant.id, &change).map_err(failed)?;
            (tenant, budget, json)
        }
    };
    let text = if as_json { as_value(&tenant, &budget)? } else { plain(&tenant, &budget) };
    terminal::say(&text)?;
    Ok(0)
}

/// The tenant with this slug or id; without one the default tenant. Nobody lives in that of global hooks.
fn named(store: &dyn Store, slug: Option<&str>) -> Result<Tenant, CliError> {
    let mut tenants = store.tenants().map_err(failed)?;
    tenants.retain(|tenant| tenant.id.as_str() != SENTINEL_TENANT);
    let slug = slug.unwrap_or(DEFAULT_SLUG);
    let found = tenants.iter().find(|tenant| tenant.slug == slug || tenant.id.as_str() == slug);
    let fallback = || tenants.iter().find(|tenant| slug == DEFAULT_SLUG && tenant.id.as_str() == DEFAULT_TENANT);
    let found = found.or_else(fallback).cloned();
    found.ok_or_else(|| no_tenant(slug, tenants.iter().map(|tenant| tenant.slug.as_str())))
}

/// The payload of `hooks.budget.get`, and whose it is.
fn as_value(tenant: &Tenant, budget: &Budget) -> Result<String, CliError> {
    let mut value = json!(budget);
    value["tenant"] = tenant.slug.as_str().into();
    let text = serde_json::to_string_pretty(&value).map_err(|error| CliError::failed(error.to_string()))?;
    Ok(format!("{text}\n"))
}

fn plain(tenant: &Tenant, budget: &Budget) -> String {
    let Budget { month_start, budget_total, used, remaining } = budget;
    let month = month_start.get(..7).unwrap_or(month_start);
    // A budget that was lowered may be overdrawn: then no judge is asked, just as if nothing were left.
    let left = if *remaining > 0 { remaining.to_string() } else { "none".to_owned() };
    format!("{}: {left} of {budget_total} tokens left in {month}; {used} are spent or reserved\n", clean(&tenant.slug))
}
