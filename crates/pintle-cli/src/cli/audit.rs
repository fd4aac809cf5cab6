//! `pintle audit`: what hooks did, which calls were cleared, which rules were changed; and that none of it was altered.

use std::io::{self, ErrorKind, Write};

use clap::Subcommand;
use pintle_domain::id::TenantId;
use pintle_domain::nearest::nearest;
use pintle_domain::store::StoreError;
use pintle_host::config::Config;
use pintle_host::host_rules::anchor;
use pintle_store::Store;

use super::Global;
use crate::clean::prose;
use crate::error::CliError;

mod export;
mod missing;
mod range;
mod tail;
mod verify;

pub(super) use verify::{first_finding, keys};

/// Most entries of a chain that are read at once.
const PAGE: usize = 512;

/// What can be done with the record.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// The newest entries, a line each
    Tail(tail::TailArgs),
    /// Write entries and the signatures under them, for others to check
    Export(export::ExportArgs),
    /// Find what was altered, dropped or moved, and say how far the record is proven
    Verify(verify::VerifyArgs),
}

pub(super) fn run(global: &Global, command: AuditCommand) -> Result<u8, CliError> {
    match command {
        AuditCommand::Tail(args) => tail::run(global, &args),
        AuditCommand::Export(args) => export::run(global, &args),
        AuditCommand::Verify(args) => verify::run(global, &args),
    }
}

/// A chain of entries and what its tenant is called.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ChainOf {
    tenant: TenantId,
    slug: String,
}

/// The chains of `store`; only that of the tenant `slug` if one is named. A tenant that is gone has its chain still.
fn chains(store: &dyn Store, slug: Option<&str>) -> Result<Vec<ChainOf>, CliError> {
    let tenants = store.tenants().map_err(failed)?;
    let mut found: Vec<ChainOf> =
        tenants.into_iter().map(|tenant| ChainOf { tenant: tenant.id, slug: tenant.slug }).collect();
    for tenant in store.audited().map_err(failed)? {
        if found.iter().all(|known| known.tenant != tenant) {
            found.push(ChainOf { slug: tenant.to_string(), tenant });
        }
    }
    let Some(slug) = slug else { return Ok(found) };
    match found.iter().find(|chain| chain.slug == slug || chain.tenant.as_str() == slug) {
        Some(chain) => Ok(vec![chain.clone()]),
        None => Err(no_tenant(slug, found.iter().map(|chain| chain.slug.as_str()))),
    }
}

/// There is no tenant `slug` among those that are `known`.
pub(super) fn no_tenant<'a>(slug: &str, known: impl Iterator<Item = &'a str>) -> CliError {
    let known: Vec<&str> = known.collect();
    let error = CliError::usage(match nearest(slug, known.iter().copied()) {
        Some(near) => format!("there is no tenant \"{slug}\"; did you mean \"{near}\"?"),
        None => format!("there is no tenant \"{slug}\""),
    });
    error.hint(format!("the tenants are {}", known.join(", ")))
}

/// Why the chains of `store` are not those that were known, a line each.
fn in_question(config: &Config, store: &dyn Store) -> Result<Vec<String>, StoreError> {
    match store.rules()?.shut {
        Some(why) => Ok(vec![why]),
        None => unsigned(config, store),
    }
}

/// The chains of `store` whose signatures are gone, a line each. To be asked once the rules are read and every gate is
/// not shut: another store than before is known as it is by then.
pub(super) fn unsigned(config: &Config, store: &dyn Store) -> Result<Vec<String>, StoreError> {
    let Some(known) = anchor(config).and_then(|file| file.read().ok().flatten()) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for tenant in known.chains.keys() {
        let last = store.last_checkpoint(tenant)?.map_or(0, |point| point.seq);
        let gone = known.unsigned(tenant, last);
        found.extend(gone.map(|why| format!("{why}; no more of it is signed until `pintle store accept`")));
    }
    Ok(found)
}

/// The store cannot do it.
pub(super) fn failed(error: StoreError) -> CliError {
    CliError::failed(prose(&error.to_string()))
}

/// Writes `text`. Says whether somebody still reads.
fn put(out: &mut dyn Write, text: &str) -> Result<bool, CliError> {
    let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n"));
    is_read(written)
}

/// Whether what was written found a reader.
fn is_read(written: io::Result<()>) -> Result<bool, CliError> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(CliError::failed(format!("the output cannot be written: {error}"))),
    }
}
