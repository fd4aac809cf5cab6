//! `pintle serve link`: a link that signs a browser in to the console, once and within two minutes.

use clap::Args;
use domain::caller_role::CallerRole;
use gateway::{GatewaySettings, IdentityAdmin};
use jiff::Timestamp;
use rules::admin::Caller;

use super::refused as bad_settings;
use crate::cli::identity::{self, Identities, refused};
use crate::cli::members::role;
use crate::cli::{Global, terminal};
use crate::error::CliError;

/// The user of whoever sits at this machine. Source: the same as of one whom nobody asks.
const LOCAL_USER: &str = "local";

/// Flags of `serve link`.
#[derive(Debug, Args)]
pub struct LinkArgs {
    /// What it gives: viewer, operator, admin or owner
    #[arg(long, value_name = "ROLE", value_parser = role, default_value = "admin")]
    role: CallerRole,
    /// The tenant [default: default]
    #[arg(long, value_name = "SLUG")]
    tenant: Option<String>,
}

pub(super) fn run(global: &Global, args: &LinkArgs) -> Result<u8, CliError> {
    let Identities { admin, by, loaded, env, now, .. } = identity::open(global, args.tenant.as_deref())?;
    // What it is called at is all that counts here: who else is let in is the server's.
    let settings = GatewaySettings::new(&loaded.config.gateway, &env, &[], true).map_err(bad_settings)?;
    let origin = settings.origin().ok_or_else(|| {
        CliError::failed("the server listens at no address of the network").hint("say where in `gateway.public_url`")
    })?;
    terminal::say(&format!("{}\n", link((&admin, &by), (&settings, &origin), args.role, now)?))?;
    terminal::note("it works once, within two minutes");
    Ok(0)
}

/// A fresh link to `origin`.
pub(super) fn link(
    (admin, by): (&IdentityAdmin, &Caller),
    (settings, origin): (&GatewaySettings, &str),
    role: CallerRole,
    now: Timestamp,
) -> Result<String, CliError> {
    let user = if role == CallerRole::Owner { settings.first_owner() } else { LOCAL_USER };
    let code = admin.link(by, user, role, now).map_err(refused)?;
    Ok(format!("{origin}/#code={code}"))
}
