//! `pintle members`: who belongs to a tenant, and what they may do there.

use clap::{Args, Subcommand};
use pintle_domain::caller_role::CallerRole;
use pintle_domain::json::json;
use pintle_domain::store::Member;
use pintle_gateway::{MemberChange, shown_member};

use super::identity::{Identities, open, print_json, refused};
use super::{Global, terminal};
use crate::clean::clean;
use crate::error::CliError;
use crate::moment::moment_of;

/// What can be done with members.
#[derive(Debug, Subcommand)]
pub enum MembersCommand {
    /// The members of a tenant
    List(ListArgs),
    /// Add a member
    Add(RoleArgs),
    /// Change a member's role
    Set(RoleArgs),
    /// Disable a member; their keys and sessions stop working within a second
    Disable(OffArgs),
    /// Enable a member again
    Enable(UserArgs),
    /// Remove a member, with their keys and sessions
    Remove(OffArgs),
}

/// Flags of `members list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// The tenant [default: default]
    #[arg(long, value_name = "SLUG")]
    tenant: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Flags of `members add` and `members set`.
#[derive(Debug, Args)]
pub struct RoleArgs {
    /// Who
    #[arg(value_name = "USER")]
    user: String,
    /// What they may: viewer, operator or admin
    #[arg(long, value_name = "ROLE", value_parser = role)]
    role: CallerRole,
    /// The tenant [default: default]
    #[arg(long, value_name = "SLUG")]
    tenant: Option<String>,
}

/// Flags of the others.
#[derive(Debug, Args)]
pub struct UserArgs {
    /// Who
    #[arg(value_name = "USER")]
    user: String,
    /// The tenant [default: default]
    #[arg(long, value_name = "SLUG")]
    tenant: Option<String>,
}

/// Flags of `members disable` and `members remove`.
#[derive(Debug, Args)]
pub struct OffArgs {
    #[command(flatten)]
    whom: UserArgs,
    /// Why, for the audit chain
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
}

pub(super) fn role(text: &str) -> Result<CallerRole, String> {
    text.parse()
}

pub(super) fn run(global: &Global, command: MembersCommand) -> Result<u8, CliError> {
    let change = |args: &UserArgs, enabled: bool, reason: &str| {
        let at = open(global, args.tenant.as_deref())?;
        let change = MemberChange { enabled: Some(enabled), reason: reason.to_owned(), ..MemberChange::default() };
        at.admin.change_member(&at.by, &args.user, change, at.now).map_err(refused).map(drop)
    };
    let done = |user: &str, what: &str| terminal::note(&format!("{}: {what}", clean(user)));
    match command {
        MembersCommand::List(args) => return list(&open(global, args.tenant.as_deref())?, &args),
        MembersCommand::Add(args) => {
            let at = open(global, args.tenant.as_deref())?;
            at.admin.add_member(&at.by, &args.user, args.role, at.now).map_err(refused)?;
            done(&args.user, &format!("added as {}", args.role));
        }
        MembersCommand::Set(args) => {
            let at = open(global, args.tenant.as_deref())?;
            let change = MemberChange { role: Some(args.role), ..MemberChange::default() };
            at.admin.change_member(&at.by, &args.user, change, at.now).map_err(refused)?;
            done(&args.user, &format!("has the role {} now", args.role));
        }
        MembersCommand::Disable(args) => {
            change(&args.whom, false, &args.reason)?;
            done(&args.whom.user, "disabled; their keys and sessions stop working within a second");
        }
        MembersCommand::Enable(args) => {
            change(&args, true, "")?;
            done(&args.user, "enabled");
        }
        MembersCommand::Remove(args) => {
            let at = open(global, args.whom.tenant.as_deref())?;
            at.admin.remove_member(&at.by, &args.whom.user, &args.reason, at.now).map_err(refused)?;
            done(&args.whom.user, "removed, with their keys and sessions");
        }
    }
    Ok(0)
}

fn list(at: &Identities, args: &ListArgs) -> Result<u8, CliError> {
    let members = at.admin.members(&at.by).map_err(refused)?;
    if args.json {
        return print_json(&json!({ "members": members.iter().map(shown_member).collect::<Vec<_>>() }));
    }
    if members.is_empty() {
        terminal::note("there are no members");
    }
    terminal::say(&members.iter().map(line).collect::<String>())?;
    Ok(0)
}

fn line(member: &Member) -> String {
    let since = moment_of(&member.created_at);
    let state = if member.disabled_at.is_some() { "  disabled" } else { "" };
    format!("{}  {}  since {since}{state}\n", clean(&member.user), member.role)
}
