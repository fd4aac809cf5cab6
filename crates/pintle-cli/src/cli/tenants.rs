//! `pintle tenants`: those who share a host and never meet.

use clap::{Args, Subcommand};
use pintle_domain::json::json;
use pintle_domain::rule::Edition;
use pintle_gateway::TenantChange;

use super::audit::no_tenant;
use super::identity::{Identities, open, print_json, refused};
use super::{Global, terminal};
use crate::clean::clean;
use crate::error::CliError;

/// What can be done with tenants.
#[derive(Debug, Subcommand)]
pub enum TenantsCommand {
    /// All tenants
    List(ListArgs),
    /// Create a tenant
    Create(CreateArgs),
    /// Disable a tenant: its connections and turns end, and its gates refuse everything
    Disable(OffArgs),
    /// Enable a tenant again
    Enable(TenantArgs),
}

/// Flags of `tenants list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Flags of `tenants create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Its name in files, on the command line and in addresses
    #[arg(value_name = "SLUG")]
    slug: String,
    /// For people [default: the slug]
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    name: String,
}

/// Flags of `tenants disable`.
#[derive(Debug, Args)]
pub struct OffArgs {
    #[command(flatten)]
    which: TenantArgs,
    /// Why, for the audit chain
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
}

/// Flags of `tenants disable` and `tenants enable`.
#[derive(Debug, Args)]
pub struct TenantArgs {
    /// Its slug or id
    #[arg(value_name = "TENANT")]
    tenant: String,
}

pub(super) fn run(global: &Global, command: TenantsCommand) -> Result<u8, CliError> {
    let at = open(global, None)?;
    match command {
        TenantsCommand::List(args) => return list(&at, &args),
        TenantsCommand::Create(args) => {
            let tenant = at.admin.create_tenant(&at.by, &args.slug, &args.name, at.now).map_err(|error| {
                let error = refused(error);
                if at.edition == Edition::Lite {
                    error.hint("set `edition = \"standard\"` under `[gateway]`")
                } else {
                    error
                }
            })?;
            terminal::note(&format!("{}: created; its id:", clean(&tenant.slug)));
            terminal::say(&format!("{}\n", tenant.id))?;
        }
        TenantsCommand::Disable(args) => {
            known(&at, &args.which.tenant)?;
            let change = TenantChange { enabled: false, reason: args.reason.clone() };
            at.admin.set_tenant(&at.by, &args.which.tenant, &change, at.now).map_err(refused)?;
            let what = "disabled; its connections and turns end, and its gates refuse everything";
            terminal::note(&format!("{}: {what}", clean(&args.which.tenant)));
        }
        TenantsCommand::Enable(args) => {
            known(&at, &args.tenant)?;
            let change = TenantChange { enabled: true, reason: String::new() };
            at.admin.set_tenant(&at.by, &args.tenant, &change, at.now).map_err(refused)?;
            terminal::note(&format!("{}: enabled", clean(&args.tenant)));
        }
    }
    Ok(0)
}

/// Refuses a tenant that is not there.
fn known(at: &Identities, named: &str) -> Result<(), CliError> {
    let tenants = at.admin.tenants().map_err(refused)?;
    match tenants.iter().any(|(tenant, _)| tenant.slug == named || tenant.id.as_str() == named) {
        true => Ok(()),
        false => Err(no_tenant(named, tenants.iter().map(|(tenant, _)| tenant.slug.as_str()))),
    }
}

fn list(at: &Identities, args: &ListArgs) -> Result<u8, CliError> {
    let tenants = at.admin.tenants().map_err(refused)?;
    if args.json {
        let shown = tenants.iter().map(|(tenant, enabled)| {
            json!({
                "id": tenant.id, "slug": tenant.slug, "name": tenant.name, "enabled": enabled,
                "createdAt": tenant.created_at,
            })
        });
        return print_json(&json!({ "tenants": shown.collect::<Vec<_>>(), "edition": at.edition.word() }));
    }
    let line = |(tenant, enabled): &(pintle_domain::store::Tenant, bool)| {
        let state = if *enabled { "" } else { "  disabled" };
        format!("{}  {}  {}{state}\n", tenant.id, clean(&tenant.slug), clean(&tenant.name))
    };
    terminal::say(&tenants.iter().map(line).collect::<String>())?;
    if at.edition == Edition::Lite {
        terminal::note("edition lite has one tenant; more need edition standard (`gateway.edition`)");
    }
    Ok(0)
}
