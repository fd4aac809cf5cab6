//! `pintle audit verify`: what was altered, dropped or moved, and how far the record is proven.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use pintle_domain::audit::{AuditEntry, AuditLine, AuditLineError, AuditLines, Verifier, VerifyReport};
use pintle_domain::id::TenantId;
use pintle_domain::store::StoreError;
use pintle_store::Store;
use pintle_store::keyring::signing::{PUBLIC_KEY_FILE, PublicKeys};

use super::missing::MissingEvents;
use super::range::{Pages, Points};
use super::{ChainOf, chains, failed, unsigned};
use crate::clean::prose;
use crate::cli::{Global, terminal};
use crate::error::{CliError, FAILED};
use pintle_host::config::Config;
use pintle_host::host::load;
use pintle_host::host_rules::{anchor, audit_term, event_term, in_doubt, open_known_store};

/// What is read of a file at once.
const PIECE_BYTES: usize = 64 << 10;

/// Largest file of public keys that is read: 10,000 of them with a comment each.
const MAX_KEY_BYTES: u64 = 4 << 20;

/// Flags of `audit verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Exported files, in their order; `-` is standard input [default: the store]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The public keys that are trusted, one a line [default: audit-signing.pub in the home folder]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

pub(super) fn run(global: &Global, args: &VerifyArgs) -> Result<u8, CliError> {
    let (report, known) =
        if args.files.is_empty() { of_store(global, args)? } else { (of_files(global, args)?, Known::default()) };
    terminal::tell(&report.to_string())?;
    known.wrong.iter().try_for_each(|line| terminal::tell(&format!("{}\n", prose(line))))?;
    if report.tenants.iter().all(|tenant| tenant.rows == 0) && known.rows > 0 {
        return Err(CliError::usage(format!("there are no entries, and there were {} at least", known.rows)));
    }
    if report.tenants.is_empty() && report.is_intact() {
        terminal::note("there are no entries, so there is nothing to prove");
    }
    Ok(if report.is_intact() && known.wrong.is_empty() { 0 } else { FAILED })
}

/// What is known of a store outside of it.
#[derive(Default)]
struct Known {
    /// How many rows its chains had.
    rows: u64,
    /// What does not fit, a line each.
    wrong: Vec<String>,
}

impl Known {
    /// What the anchor of `config` says of its store and of the chains that were read.
    fn of(config: &Config, store: &dyn Store, report: &VerifyReport) -> Result<Self, CliError> {
        let Some(anchor) = anchor(config) else { return Ok(Self::default()) };
        let tail = |(tenant, entries): (TenantId, u64)| {
            let entries = match entries {
                1 => "1 entry of a call is".to_owned(),
                many => format!("{many} entries of calls are"),
            };
            format!("tenant {tenant}: {entries} kept behind the chain and could not be hashed: nothing proves them yet")
        };
        let unhashed = store.unhashed().map_err(failed)?.into_iter().map(tail);
        // Before the rules are read: where nothing is known, what is found then counts.
        let before = anchor.read().ok().flatten();
        let rules = store.rules().map_err(failed)?;
        let mut wrong: Vec<String> = in_doubt(&rules).into_iter().chain(unhashed).collect();
        wrong.extend(store.identity_doubts().map_err(failed)?);
        if rules.shut.is_none() {
            wrong.extend(unsigned(config, store).map_err(failed)?);
        }
        let mut known = Self { rows: 0, wrong };
        let Some(before) = before else { return Ok(known) };
        known.rows = before.chains.values().map(|chain| chain.seq.saturating_sub(chain.cut)).sum();
        let term = audit_term(&config.agent_hooks.kept);
        let young = jiff::Timestamp::now().checked_sub(term).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        for (tenant, cut) in report.tenants.iter().filter_map(|it| Some((&it.tenant_id, it.anchor?))) {
            let had = before.chains.get(tenant).map_or(0, |chain| chain.cut);
            let point = store.checkpoints(tenant, cut, 1).map_err(failed)?.pop();
            if cut > had && point.is_some_and(|point| point.at > young) {
                let days = term.as_hours() / 24;
                known.wrong.push(format!(
                    "tenant {tenant}: rows {} to {cut} are gone, and the last of them is not {days} days old: retention \
                     has not cut them",
                    had + 1
                ));
            }
        }
        Ok(known)
    }
}

/// Checks files, which takes nothing but a public key.
fn of_files(global: &Global, args: &VerifyArgs) -> Result<VerifyReport, CliError> {
    let keys = match &args.key {
        Some(file) => keys(file)?,
        None => {
            let (_, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
            keys(&loaded.config.home.join(PUBLIC_KEY_FILE)).map_err(|error| {
                error.hint(format!(
                    "name the public key with --key FILE: it is `{PUBLIC_KEY_FILE}` where the record was made"
                ))
            })?
        }
    };
    let check = |kid: &str, message: &[u8], signature: &str| keys.verify(kid, message, signature);
    let mut verifier = Verifier::new(&check);
    for file in &args.files {
        let name = (args.files.len() > 1).then(|| file.display().to_string());
        let known = read(file, |line| {
            let named = |error: AuditLineError| match &name {
                Some(name) => AuditLineError { why: format!("in {name}: {}", error.why), ..error },
                None => error,
            };
            verifier.line(line.map_err(named));
        })?;
        if !known {
            return Err(CliError::usage(format!("{} holds no entry of an audit record", file.display()))
                .hint("`pintle audit export` writes one"));
        }
    }
    Ok(verifier.finish())
}

/// Hands every line of `file` to `each`. Says whether any of them could be read.
fn read(file: &Path, mut each: impl FnMut(Result<AuditLine, AuditLineError>)) -> Result<bool, CliError> {
    let cannot = |error: io::Error| CliError::usage(format!("{} cannot be read: {error}", file.display()));
    let mut input: Box<dyn Read> =
        if file == Path::new("-") { Box::new(io::stdin().lock()) } else { Box::new(File::open(file).map_err(cannot)?) };
    let (mut lines, mut known) = (AuditLines::default(), false);
    let mut piece = vec![0; PIECE_BYTES];
    let mut take = |line: Result<_, _>| {
        known |= line.is_ok();
        each(line);
    };
    loop {
        match input.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => lines.feed(&piece[..length], &mut take),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(cannot(error)),
        }
    }
    lines.end(&mut take);
    Ok(known)
}

/// Checks the store itself.
fn of_store(global: &Global, args: &VerifyArgs) -> Result<(VerifyReport, Known), CliError> {
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let own = loaded.config.home.join(PUBLIC_KEY_FILE);
    let keys = match &args.key {
        Some(file) => keys(file)?,
        None if own.is_file() => {
            terminal::note(
                "the public key is this machine's own, which anyone who can write here could have replaced: `--key FILE` \
                 checks against a copy that you keep elsewhere",
            );
            keys(&own)?
        }
        None => PublicKeys::default(),
    };
    let store = open_known_store(&loaded.config, &env)?;
    let term = event_term(&loaded.config.agent_hooks.kept);
    let young = jiff::Timestamp::now().checked_sub(term).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let mut missing = MissingEvents::new(&*store, young);
    let chains = chains(&*store, None)?;
    let mut report = report(&*store, &chains, &keys, &mut |entry| missing.note(entry))?;
    let mut known = Known::of(&loaded.config, &*store, &report)?;
    known.wrong.extend(missing.lines().map_err(failed)?);
    name(&mut report, &chains);
    Ok((report, known))
}

/// Called with every entry that is read.
type OnEntry<'a> = dyn FnMut(&AuditEntry) -> Result<(), StoreError> + 'a;

/// Checks `chains` of a store from their first entries on.
fn report(
    store: &dyn Store,
    chains: &[ChainOf],
    keys: &PublicKeys,
    each: &mut OnEntry<'_>,
) -> Result<VerifyReport, CliError> {
    let check = |kid: &str, message: &[u8], signature: &str| keys.verify(kid, message, signature);
    let mut verifier = Verifier::new(&check);
    for chain in chains {
        feed(store, &chain.tenant, &mut verifier, each)?;
    }
    Ok(verifier.finish())
}

/// Calls tenants as people do.
fn name(report: &mut VerifyReport, chains: &[ChainOf]) {
    for tenant in &mut report.tenants {
        if let Some(chain) = chains.iter().find(|chain| chain.tenant == tenant.tenant_id) {
            tenant.tenant_id = TenantId::from(chain.slug.as_str());
        }
    }
}

/// The first thing that is wrong with the chains of a store, and how many more there are; nothing if they are intact.
pub(in crate::cli) fn first_finding(store: &dyn Store, keys: &PublicKeys) -> Result<Option<String>, CliError> {
    let chains = chains(store, None)?;
    let mut report = report(store, &chains, keys, &mut |_| Ok(()))?;
    name(&mut report, &chains);
    let more: u64 = report.tenants.iter().map(|tenant| tenant.findings.len() as u64 + tenant.more_findings).sum();
    let first = report.tenants.iter().find_map(|tenant| Some((tenant, tenant.findings.first()?)));
    let more = match more.saturating_sub(1) {
        0 => String::new(),
        more => format!(", and {more} more findings"),
    };
    Ok(first.map(|(tenant, finding)| format!("tenant {}: {finding}{more}", tenant.tenant_id)))
}

/// Hands one chain of a store to `verifier`, each checkpoint after its row, and to `each`.
fn feed(
    store: &dyn Store,
    tenant: &TenantId,
    verifier: &mut Verifier<'_>,
    each: &mut OnEntry<'_>,
) -> Result<(), CliError> {
    let mut points = Points::new(store, tenant).map_err(failed)?;
    let mut signed = |verifier: &mut Verifier<'_>, to: u64| -> Result<(), CliError> {
        while let Some(point) = points.up_to(to).map_err(failed)? {
            verifier.checkpoint(&point);
        }
        Ok(())
    };
    let mut pages = Pages::new(store, tenant, 1);
    loop {
        let page = pages.next().map_err(failed)?;
        if page.is_empty() {
            break;
        }
        for entry in page {
            let seq = entry.seq;
            signed(verifier, seq.saturating_sub(1))?;
            each(&entry).map_err(failed)?;
            verifier.entry(entry);
            signed(verifier, seq)?;
        }
    }
    signed(verifier, u64::MAX)
}

/// The public keys in `file`.
pub(in crate::cli) fn keys(file: &Path) -> Result<PublicKeys, CliError> {
    let read = || {
        let mut text = String::new();
        File::open(file)?.take(MAX_KEY_BYTES).read_to_string(&mut text)?;
        Ok::<_, io::Error>(text)
    };
    let text = read().map_err(|error| CliError::usage(format!("{} cannot be read: {error}", file.display())))?;
    PublicKeys::parse(&text).map_err(|error| CliError::usage(format!("{}: {error}", file.display())))
}
