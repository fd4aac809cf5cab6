//! `pintle keys`: what programs are known by at the gateway.

use clap::{Args, Subcommand};
use pintle_domain::json::json;
use pintle_domain::store::{ApiKey, KeyScope};
use pintle_gateway::{FreshKey, KeyWish, shown_key};
use pintle_store::keyring::ENV_KEYS;

use super::identity::{Identities, lasting, open, print_json, refused};
use super::session::word;
use super::{Global, terminal};
use crate::clean::clean;
use crate::error::CliError;
use crate::moment::moment_of;
use crate::table::{folded, out_columns};

/// When a key was revoked that never counted.
const NEVER_COUNTED: &str = "1970-01-01T00:00:00Z";

/// What can be done with keys.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Create a key; it is shown only once
    Create(CreateArgs),
    /// List the keys of a tenant
    List(ListArgs),
    /// Revoke a key; it stops working within a second
    Revoke(RevokeArgs),
}

/// Flags of `keys create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// What it is for
    #[arg(value_name = "NAME")]
    name: String,
    /// What it may: operator.read, operator.write, operator.approvals, operator.pairing, operator.guard, operator.admin
    #[arg(long, value_name = "SCOPE", required = true, num_args = 1.., value_parser = scope)]
    scope: Vec<KeyScope>,
    /// Who it is; they become a member if they are none
    #[arg(long, value_name = "USER")]
    owner: String,
    /// How long it counts, such as 90d [default: until it is revoked]
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
    /// The tenant [default: default]
    #[arg(long, value_name = "SLUG")]
    tenant: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Flags of `keys list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Those that were revoked or are over, too
    #[arg(long)]
    all: bool,
    /// The tenant [default: default]
    #[arg(long, value_name = "SLUG")]
    tenant: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Flags of `keys revoke`.
#[derive(Debug, Args)]
pub struct RevokeArgs {
    /// The id of the key, or how it begins
    #[arg(value_name = "KEY")]
    key: String,
    /// Why, for the audit chain
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
    /// The tenant [default: default]
    #[arg(long, value_name = "SLUG")]
    tenant: Option<String>,
}

fn scope(text: &str) -> Result<KeyScope, String> {
    text.parse()
}

pub(super) fn run(global: &Global, command: KeysCommand) -> Result<u8, CliError> {
    match command {
        KeysCommand::Create(args) => create(&open(global, args.tenant.as_deref())?, args),
        KeysCommand::List(args) => list(&open(global, args.tenant.as_deref())?, &args),
        KeysCommand::Revoke(args) => revoke(&open(global, args.tenant.as_deref())?, &args),
    }
}

fn create(at: &Identities, args: CreateArgs) -> Result<u8, CliError> {
    let CreateArgs { name, scope, owner, expires, json, .. } = args;
    let lasts = expires.map(|text| lasting(&text, at.now)).transpose()?;
    let wish = KeyWish { name, owner: Some(owner), scopes: scope, lasts };
    let FreshKey { key, secret } = at.admin.create_key(&at.by, wish, at.now).map_err(refused)?;
    if json {
        return print_json(&json!({ "key": secret, "apiKey": shown_key(&key) }));
    }
    terminal::say(&format!("{secret}\n"))?;
    terminal::note("this key is shown only once; anyone who has it acts as its owner");
    Ok(0)
}

fn list(at: &Identities, args: &ListArgs) -> Result<u8, CliError> {
    let mut keys = at.admin.keys(&at.by).map_err(refused)?;
    let (void, all) = (keys.iter().filter(|key| is_void(key)).count(), keys.len());
    keys.retain(|key| args.all || key.is_good(at.now));
    if void > 0 {
        terminal::note(&format!(
            "{void} of {all} keys grant nothing: another encryption key sealed them, or something other than Pintle \
             changed them; set `{}`, or put the file with the key back, as it was when they were made; `pintle audit \
             verify` names each",
            ENV_KEYS[0]
        ));
    }
    if args.json {
        return print_json(&json!({ "apiKeys": keys.iter().map(shown_key).collect::<Vec<_>>() }));
    }
    if keys.is_empty() && void == 0 {
        terminal::note("there are no keys");
    }
    let lines: String = keys.iter().map(|key| line(at, key)).collect();
    terminal::say(&folded(&lines, out_columns(), 2))?;
    Ok(0)
}

/// Whether a key grants nothing since its row is in doubt: it is read as revoked before there were any.
fn is_void(key: &ApiKey) -> bool {
    key.revoked_at.as_deref() == Some(NEVER_COUNTED)
}

fn line(at: &Identities, key: &ApiKey) -> String {
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.word()).collect();
    let state = match (&key.revoked_at, &key.expires_at) {
        (Some(revoked), _) => format!("revoked {}", moment_of(revoked)),
        (None, Some(ends)) if key.is_good(at.now) => format!("until {}", moment_of(ends)),
        (None, Some(ended)) => format!("over since {}", moment_of(ended)),
        (None, None) => "until it is revoked".to_owned(),
    };
    format!(
        "{}  {}…  {}  {}\n  {}, {state}\n",
        key.id,
        key.shown,
        clean(&key.owner),
        clean(&key.name),
        scopes.join(" ")
    )
}

fn revoke(at: &Identities, RevokeArgs { key: named, reason, tenant }: &RevokeArgs) -> Result<u8, CliError> {
    let whose = tenant.as_ref().map(|slug| format!(" --tenant {}", word(slug))).unwrap_or_default();
    let see = format!("see `pintle keys list{whose}`");
    let keys = at.admin.keys(&at.by).map_err(refused)?;
    // A key itself may be given, too: whoever found one somewhere has nothing else.
    let is_meant =
        |key: &&ApiKey| key.id == *named || (named.len() >= key.shown.len() && named.starts_with(&*key.shown));
    let meant: Vec<&ApiKey> = keys.iter().filter(is_meant).collect();
    let id = match meant.as_slice() {
        [key] => key.id.clone(),
        [] => named.clone(),
        [..] => {
            return Err(CliError::usage("several keys begin with this; give the id of one").hint(see));
        }
    };
    at.admin.revoke_key(&at.by, &id, reason, at.now).map_err(refused).map_err(|error| error.hint(see))?;
    terminal::note("it no longer works");
    Ok(0)
}
