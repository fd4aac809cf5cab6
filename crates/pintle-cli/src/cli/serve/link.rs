//! `pintle serve link`: a link that signs a browser in to the console, once and within two minutes.

use clap::Args;
use pintle_domain::caller_role::CallerRole;
use pintle_gateway::{configured_origin, link_user};

use crate::cli::identity::{self, Identities, refused};
use crate::cli::members::role;
use crate::cli::{Global, terminal};
use crate::error::CliError;

/// Flags of `serve link`.
#[derive(Debug, Args)]
pub(in crate::cli) struct LinkArgs {
    /// Role of the session: viewer, operator, admin or owner
    #[arg(long, value_name = "ROLE", value_parser = role, default_value = "admin")]
    role: CallerRole,
    /// The tenant [default: default]
    #[arg(long, value_name = "SLUG")]
    tenant: Option<String>,
}

pub(super) fn run(global: &Global, args: &LinkArgs) -> Result<u8, CliError> {
    let Identities { admin, by, loaded, now, .. } = identity::open(global, args.tenant.as_deref())?;
    let config = &loaded.config.gateway;
    let origin = configured_origin(config)
        .map_err(|why| CliError::usage(why.message).hint(why.hint))?
        .ok_or_else(|| CliError::failed("the server listens on no network address").hint("set `gateway.public_url`"))?;
    let code = admin.link(&by, &link_user(config, args.role), args.role, now).map_err(refused)?;
    terminal::say(&format!("{origin}/#code={code}\n"))?;
    terminal::note("it works once, within two minutes");
    Ok(0)
}
