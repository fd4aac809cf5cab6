//! `pintle guard install` and `uninstall`: our entries in an agent's settings, and nothing else there.

use std::path::{Path, PathBuf};

use clap::Args;
use futures_util::future::join_all;
use guard::host::{ConfigForm, ConfigPlace, EventRow, HookAcceptance, InstallScope};
use guard::settings::{self, EditedFile, KeptFile};
use guard::{ClientEntry, GuardHost};
use host::config::Env;

use super::adopting;
use super::changes::{Adoption, Change, Consent, settle};
use super::files::{not_edited, read, warn_of};
use super::mcp_file;
use crate::clean::clean;
use crate::cli::{Global, terminal};
use crate::error::CliError;
use crate::guard::accepted::{self, Acceptance, OwnHooks};
use crate::guard::host_files::{file_of, kept, write_kept};
use crate::guard::installs::{ONE_ACCOUNT, OwnEntry, hook_program, hosts, moved_by, scope_word};
use crate::guard::places::GuardPlaces;
use crate::guard::versions::{self, HostVersion};
use crate::operator;

/// The word for all agents that are there.
const ALL: &str = "all";

/// Flags of `guard install` and `guard uninstall`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct InstallArgs {
    /// The agents, with commas between them, or `all` that are there
    #[arg(long, value_name = "HOST", value_delimiter = ',', required_unless_present = "mcp")]
    host: Vec<String>,
    /// A client's file of MCP servers (`mcpServers`): each is started through `pintle mcp proxy`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["host", "project", "local", "system", "force", "adopt"])]
    mcp: Option<PathBuf>,
    /// In the settings of everybody who works in this project, not in your own
    #[arg(long, conflicts_with_all = ["local", "system"])]
    project: bool,
    /// In your own settings of this project
    #[arg(long, conflicts_with = "system")]
    local: bool,
    /// In the settings of the machine, which only root writes and no project takes away
    #[arg(long)]
    system: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Change it without asking
    #[arg(long)]
    yes: bool,
    /// Take over the command hooks that stand there already: they run here, in their order, for every agent
    #[arg(long, conflicts_with = "system")]
    adopt: bool,
    /// Although the agent is not there, or is of a version that nobody has tried
    #[arg(long)]
    force: bool,
}

impl InstallArgs {
    fn scope(&self) -> InstallScope {
        match (self.project, self.local, self.system) {
            (true, _, _) => InstallScope::Project,
            (_, true, _) => InstallScope::ProjectLocal,
            (_, _, true) => InstallScope::System,
            (false, false, false) => InstallScope::User,
        }
    }

    fn consent(&self) -> Consent {
        match (self.dry_run, self.yes) {
            (true, _) => Consent::DryRun,
            (false, true) => Consent::Given,
            (false, false) => Consent::Ask,
        }
    }

    /// Whether the hooks of `host` are to be taken over. Of all agents those whose hooks cannot be are installed without.
    fn adopts(&self, host: &GuardHost) -> Result<bool, CliError> {
        match adopting::must_adopt(host) {
            Ok(()) => Ok(self.adopt),
            Err(_) if !self.adopt => Ok(false),
            Err(error) if self.is_all() => {
                terminal::note(&error.message);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn is_all(&self) -> bool {
        self.host.len() == 1 && self.host[0] == ALL
    }

    fn wanted(&self) -> Result<Vec<&'static GuardHost>, CliError> {
        if self.is_all() {
            return hosts(None);
        }
        self.host.iter().map(|name| Ok(hosts(Some(name))?[0])).collect()
    }
}

pub(super) fn install(global: &Global, args: &InstallArgs) -> Result<u8, CliError> {
    operator::refuse_agents()?;
    let env = Env::of_process()?;
    let places = GuardPlaces::of(&env, global.home.as_deref(), None)?;
    if let Some(file) = &args.mcp {
        return mcp_file::install(global, (&env, &places), (file, args.consent()));
    }
    let program = hook_program().map_err(|error| CliError::failed(error.to_string()))?;
    if !program.exists() {
        return Err(CliError::failed(format!("the hook's program {} is not there", program.display()))
            .hint("in a checkout: cargo build -p pintle-hook"));
    }
    let wanted = known(args)?;
    if wanted.is_empty() {
        return Err(CliError::usage("none of the agents that can be guarded is there"));
    }
    let (own, scope) = (OwnEntry::of(&places, &program)?, args.scope());
    let mut changes = Vec::new();
    for host in wanted {
        if let Some(name) = moved_by(host, &env).filter(|_| scope == InstallScope::User) {
            return Err(CliError::usage(format!(
                "`{name}` is set, so that {} looks for your settings elsewhere; unset it, or install with --project",
                host.name
            )));
        }
        let wants = args.adopts(host)?;
        let entry = own.for_host(host);
        let of_host = files(host, scope, &env)?.into_iter().map(|(file, event)| {
            match adopting::installed(host, &file, (&entry, &places), (scope, wants))? {
                Some(change) => Ok(change),
                None => installed(host, (&file, event), (&entry, &places)),
            }
        });
        changes.push((host, of_host.collect::<Result<Vec<_>, CliError>>()?));
    }
    let consent = args.consent();
    if consent != Consent::DryRun {
        let flags = [("--config", global.config.as_deref()), ("--home", global.home.as_deref())];
        let made = places.make().and_then(|()| places.key()).and_then(|_| places.write_start(&env, &flags));
        made.map_err(|error| CliError::failed(format!("{} cannot be made: {error}", places.folder.display())))?;
    }
    for (host, changes) in &mut changes {
        changes.iter_mut().for_each(|change| change.shared = scope == InstallScope::System);
        settle(consent, &places, changes)?;
        let accepted = accept((host, scope), Around { env: &env, places: &places, consent }, changes)?;
        let is_new = accepted || changes.iter().any(|change| change.before != change.after);
        if is_new && consent != Consent::DryRun {
            terminal::say(&format!("{}  guarded\n", host.id))?;
        }
    }
    if scope == InstallScope::System {
        terminal::warn(ONE_ACCOUNT);
    }
    Ok(0)
}

/// The hosts that `args` mean. Refuses one that is not there, or whose version nobody has tried; of all, those that are
/// not there are passed over.
fn known(args: &InstallArgs) -> Result<Vec<&'static GuardHost>, CliError> {
    let wanted = args.wanted()?;
    if args.force {
        return Ok(wanted);
    }
    let looks = wanted.iter().map(|host| versions::look(Path::new(host.id), host.versions));
    let found = terminal::runtime()?.block_on(join_all(looks));
    let mut known = Vec::new();
    for (host, version) in wanted.into_iter().zip(found) {
        let (min, newest) = (host.versions.min, host.versions.newest);
        match version {
            HostVersion::Known(_) => known.push(host),
            HostVersion::Unsaid(why) if args.is_all() => terminal::note(&format!("{} is left out: {why}", host.name)),
            HostVersion::Unsaid(why) => {
                return Err(CliError::usage(format!("{} is not there: {}", host.name, clean(&why)))
                    .hint("--force installs all the same"));
            }
            HostVersion::Unproven(version) => {
                return Err(CliError::usage(format!(
                    "{} says it is {version}; versions {min} to {newest} are known",
                    host.name
                ))
                .hint("--force installs all the same; then `pintle guard doctor --live` says whether it holds"));
            }
        }
    }
    Ok(known)
}

/// What an installation makes of `file`, which is that of one event where the host has one for each.
fn installed(
    host: &'static GuardHost,
    (file, event): (&Path, Option<&'static EventRow>),
    (entry, places): (&ClientEntry<'_>, &GuardPlaces),
) -> Result<Change, CliError> {
    let before = read(file)?;
    let known = kept(places, host.id, file);
    let edited = match event {
        None => settings::install(host, entry, before.as_deref(), known.as_ref()),
        Some(event) => settings::install_event(host, (entry, event), before.as_deref(), known.as_ref()),
    };
    let EditedFile { text, kept, others } = edited.map_err(|why| not_edited(file, &why))?;
    warn_of(host, &others);
    let (file, shared) = (file.to_owned(), false);
    let (host, executable) = (host.id, event.is_some());
    Ok(Change {
        host,
        file,
        before,
        after: Some(text),
        kept: Some(kept),
        executable,
        shared,
        adoption: Adoption::Untouched,
    })
}

/// Where an installation happens, and what its person agrees to.
#[derive(Clone, Copy)]
struct Around<'a> {
    env: &'a Env,
    places: &'a GuardPlaces,
    consent: Consent,
}

/// Has the host accept what `changes` put into its files, where it wants that; whether it had not before.
fn accept(
    (host, scope): (&'static GuardHost, InstallScope),
    Around { env, places, consent }: Around<'_>,
    changes: &[Change],
) -> Result<bool, CliError> {
    let HookAcceptance::AppServer { state } = host.config.acceptance else { return Ok(false) };
    if scope == InstallScope::System {
        return Ok(false);
    }
    let Some(state) = file_of(state, env) else { return Ok(false) };
    let state = state.canonicalize().unwrap_or(state);
    if consent == Consent::DryRun {
        let file = clean(&state.display().to_string());
        terminal::say(&format!("{}  it would be told to accept these hooks, which it keeps in {file}\n", host.id))?;
        return Ok(false);
    }
    let (program, hook) = (Path::new(host.id), hook_program().map_err(|error| CliError::failed(error.to_string()))?);
    let commands = settings::commands(host, &OwnEntry::of(places, &hook)?.for_host(host));
    for change in changes {
        let own = OwnHooks { file: &change.file, commands: &commands };
        let left = |why: String| {
            CliError::failed(format!("{} has not accepted its hooks, and runs none that it has not: {why}", host.name))
                .hint("its entries are in place; install again, or accept them in it by hand")
        };
        let found = accepted::look(program, own, &env.cwd).map_err(left)?;
        if found.is_whole() {
            continue;
        }
        consent.require(&format!("let {} run these hooks? It runs none that nobody accepted", host.name))?;
        let before = read(&state)?;
        let told = accepted::accept(program, own, &env.cwd).map_err(left)?;
        let after = read(&state)?.unwrap_or_default();
        let first = kept(places, host.id, &state).filter(|kept| Some(&kept.after) == before.as_ref());
        let kept = KeptFile { before: first.map_or(before, |kept| kept.before), after };
        write_kept(places, host.id, (&state, Some(&kept)))
            .map_err(|error| CliError::failed(format!("what {} accepted cannot be kept: {error}", host.name)))?;
        if !told.is_whole() {
            let Acceptance { written, known, passed_over } = told;
            return Err(left(format!("of {written} it knows {known}, and passes {passed_over} over")));
        }
        return Ok(true);
    }
    Ok(false)
}

pub(super) fn uninstall(global: &Global, args: &InstallArgs) -> Result<u8, CliError> {
    operator::refuse_agents()?;
    if args.adopt {
        return Err(CliError::usage("what was taken over goes back by itself: leave --adopt out"));
    }
    let env = Env::of_process()?;
    let places = GuardPlaces::of(&env, global.home.as_deref(), None)?;
    if let Some(file) = &args.mcp {
        return mcp_file::uninstall((&env, &places), (file, args.consent()));
    }
    let scope = args.scope();
    for host in args.wanted()? {
        let files = match files(host, scope, &env) {
            Ok(files) => files,
            // Not every agent has settings of every scope.
            Err(_) if args.is_all() => continue,
            Err(error) => return Err(error),
        };
        let mut changes = Vec::new();
        for (file, _) in files {
            if let Some(change) = adopting::uninstalled(host, &file, &places)? {
                changes.push(change);
                continue;
            }
            let before = read(&file)?;
            let known = kept(&places, host.id, &file);
            let after = settings::uninstall(host, before.as_deref(), known.as_ref());
            let after = after.map_err(|why| not_edited(&file, &why))?;
            changes.push(Change {
                host: host.id,
                file,
                before,
                after,
                kept: None,
                executable: false,
                shared: false,
                adoption: Adoption::Untouched,
            });
        }
        changes.extend(forgotten((host, scope), &env, &places)?);
        let is_new = changes.iter().any(|change| change.before != change.after);
        settle(args.consent(), &places, &changes)?;
        if is_new && args.consent() != Consent::DryRun {
            terminal::say(&format!("{}  no longer guarded\n", host.id))?;
        }
    }
    Ok(0)
}

/// What becomes of the file in which a host keeps what was accepted.
fn forgotten(
    (host, scope): (&'static GuardHost, InstallScope),
    env: &Env,
    places: &GuardPlaces,
) -> Result<Option<Change>, CliError> {
    let HookAcceptance::AppServer { state } = host.config.acceptance else { return Ok(None) };
    let Some(file) = file_of(state, env).filter(|_| scope != InstallScope::System) else { return Ok(None) };
    let file = file.canonicalize().unwrap_or(file);
    let Some(kept) = kept(places, host.id, &file) else { return Ok(None) };
    let before = read(&file)?;
    let after = match &before {
        // Nobody touched it since: it is what it was, even if that was nothing.
        Some(text) if *text == kept.after => kept.before.clone(),
        Some(text) => Some(settings::forget(text, &kept).map_err(|why| not_edited(&file, &why))?),
        None => None,
    };
    Ok(Some(Change {
        host: host.id,
        file,
        before,
        after,
        kept: None,
        executable: false,
        shared: false,
        adoption: Adoption::Untouched,
    }))
}

/// The files of `host` in `scope`: the one of its settings, or one for each of its events.
fn files(
    host: &GuardHost,
    scope: InstallScope,
    env: &Env,
) -> Result<Vec<(PathBuf, Option<&'static EventRow>)>, CliError> {
    let place = |place: &&ConfigPlace| place.scope == scope;
    let file = host.config.places.iter().find(place).and_then(|place| file_of(place.path, env)).ok_or_else(|| {
        CliError::usage(format!("{} has no settings of the scope `{}`", host.name, scope_word(scope)))
    })?;
    // What is linked to elsewhere is changed there.
    let file = file.canonicalize().unwrap_or(file);
    Ok(match host.config.form {
        ConfigForm::Executables { .. } => {
            host.events.iter().filter(|row| row.installed).map(|row| (file.join(row.name), Some(row))).collect()
        }
        ConfigForm::Json { .. } | ConfigForm::Toml { .. } | ConfigForm::WholeFile { .. } => vec![(file, None)],
    })
}
