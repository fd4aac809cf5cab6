//! `pintle guard install` and `uninstall`: our entries in an agent's settings, and nothing else there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use futures_util::future::join_all;
use pintle_guard::host::{ConfigForm, ConfigPlace, EventRow, HookAcceptance, InstallScope};
use pintle_guard::settings::{self, EditedFile, KeptFile, NotEdited, Theirs};
use pintle_guard::{ClientEntry, GuardHost, in_scope};
use pintle_host::config::{self, Env, GuardedHost, LoadOptions};

use super::adopting::{self, WantedHooks};
use super::changes::{Adoption, Change, Consent, settle};
use super::files::{known_of, not_edited, read, warn_of};
use super::mcp_file;
use crate::clean::clean;
use crate::cli::{Global, terminal};
use crate::error::CliError;
use crate::guard::accepted::{self, Acceptance, OwnHooks};
use crate::guard::folders::broken_hosts;
use crate::guard::host_files::{file_of, write_kept};
use crate::guard::host_program;
use crate::guard::installs::{OwnEntry, for_everybody, hook_program, is_all, moved_by, named, scope_word};
use crate::guard::places::GuardPlaces;
use crate::guard::versions::{self, HostVersion};
use crate::operator;

/// Flags of `guard install`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct InstallArgs {
    /// The agents, with commas between them, or `all` that are there
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    pub(super) host: Vec<String>,
    /// A client's file of MCP servers (`mcpServers`): each is started through `pintle mcp proxy`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["host", "project", "local", "system", "force", "adopt"])]
    pub(super) mcp: Option<PathBuf>,
    /// In the settings of everybody who works in this project, not in your own
    #[arg(long, conflicts_with_all = ["local", "system"])]
    pub(super) project: bool,
    /// In your own settings of this project
    #[arg(long, conflicts_with = "system")]
    pub(super) local: bool,
    /// In the settings of the machine, which only root writes and no project takes away
    #[arg(long)]
    pub(super) system: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Change it without asking
    #[arg(long)]
    pub(super) yes: bool,
    /// Take over the command hooks that stand there already: they run here, in their order, for every agent
    #[arg(long, conflicts_with = "system")]
    pub(super) adopt: bool,
    /// Only at these events of the agent, by its own names, with commas between them [default: all that mean something]
    #[arg(long, value_name = "EVENT", value_delimiter = ',')]
    pub(super) events: Option<Vec<String>>,
    /// Although the agent is not there, or is of a version that nobody has tried
    #[arg(long)]
    pub(super) force: bool,
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
        is_all(&self.host)
    }

    fn wanted(&self) -> Result<Vec<&'static GuardHost>, CliError> {
        match self.host.as_slice() {
            [] => Err(CliError::usage("nothing is named: `--host` names agents, `--mcp` a file of MCP servers")
                .hint("`--host all` means every agent that is there")),
            hosts => named(hosts),
        }
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
    let wanted = known(args, &env)?;
    if wanted.is_empty() {
        return Err(CliError::usage("none of the agents that can be guarded is there"));
    }
    let (own, scope) = (OwnEntry::of(&places, &program)?, args.scope());
    if scope == InstallScope::System {
        for_the_machine(args)?;
    }
    let wishes = wishes(global, &env)?;
    let mut changes = Vec::new();
    for host in wanted.into_iter().map(|host| in_scope(host, scope)) {
        if let Some(name) = moved_by(host, &env).filter(|_| scope == InstallScope::User) {
            return Err(CliError::usage(format!(
                "`{name}` is set, so that {} looks for your settings elsewhere; unset it, or install with --project",
                host.name
            )));
        }
        let wanted = WantedHooks { scope, adopts: args.adopts(host)? };
        known_events(host, args.events.as_deref())?;
        let allows_away = wishes.get(host.id).is_some_and(|it| it.allows_away);
        let entry = ClientEntry { allows_away, events: args.events.as_deref(), ..own.for_host(host, scope) };
        let mut of_host = Vec::new();
        for (file, event) in files(host, scope, &env)? {
            if event.is_some_and(|event| !entry.rows(host).any(|row| row.name == event.name)) {
                continue;
            }
            match adopting::installed(host, &file, (&entry, &places), wanted)? {
                Some(change) => of_host.push(change),
                None => of_host.extend(installed(host, (&file, event), (&entry, &places))?),
            }
        }
        changes.push((host, of_host));
    }
    let consent = args.consent();
    if consent != Consent::DryRun && scope != InstallScope::System {
        make(global, (&env, &places))?;
    }
    let mut is_changed = false;
    for (host, changes) in &mut changes {
        changes.iter_mut().for_each(|change| change.shared = scope == InstallScope::System);
        settle(consent, &places, changes)?;
        let accepted = accept((host, scope), Around { env: &env, places: &places, consent }, changes)?;
        let is_new = accepted || changes.iter().any(|change| change.before != change.after);
        is_changed |= is_new;
        if is_new && consent != Consent::DryRun {
            terminal::say(&format!("{}  guarded\n", host.id))?;
        }
    }
    if scope == InstallScope::User && is_changed && changes.iter().any(|(host, _)| has_machine(host)) {
        terminal::note(&format!(
            "anyone working as your account can remove these hooks. To guard every account, removable only by root: {}",
            as_root(args)
        ));
    }
    Ok(0)
}

/// Makes what the daemon and its hooks share, and says where daemons look for programs elsewhere than before.
fn make(global: &Global, (env, places): (&Env, &GuardPlaces)) -> Result<(), CliError> {
    let flags = [("--config", global.config.as_deref()), ("--home", global.home.as_deref())];
    let made = places.make().and_then(|()| places.key()).and_then(|_| places.write_start(env, &flags));
    let failed =
        |error: std::io::Error| CliError::failed(format!("{} cannot be made: {error}", places.folder.display()));
    if made.map_err(failed)? {
        terminal::note("a daemon that a hook starts has the `PATH` of this shell from now on: another one than before");
    }
    Ok(())
}

/// Whether `host` has settings of the machine.
fn has_machine(host: &GuardHost) -> bool {
    host.config.places.iter().any(|place| place.scope == InstallScope::System)
}

/// The command that installs for the machine.
fn as_root(args: &InstallArgs) -> String {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("pintle"));
    let hosts = clean(&args.host.join(","));
    format!("sudo {} guard install --host {hosts} --system", clean(&program.display().to_string()))
}

/// Refuses to install for the machine what is not root's, or by who is not root. A dry run only says so.
fn for_the_machine(args: &InstallArgs) -> Result<(), CliError> {
    let why = match for_everybody() {
        Err(why) => Some((why, None)),
        Ok(()) if nix::unistd::geteuid().is_root() => None,
        Ok(()) => Some(("the settings of the machine are root's to change".to_owned(), Some(as_root(args)))),
    };
    match why {
        None => Ok(()),
        Some((why, hint)) if args.consent() == Consent::DryRun => {
            terminal::warn(&why);
            hint.iter().for_each(|hint| terminal::note(hint));
            Ok(())
        }
        Some((why, hint)) => {
            let error = CliError::usage(why);
            Err(match hint {
                Some(hint) => error.hint(hint),
                None => error,
            })
        }
    }
}

/// What the person's configuration says of single agents.
fn wishes(global: &Global, env: &Env) -> Result<BTreeMap<String, GuardedHost>, CliError> {
    let options =
        LoadOptions { config: global.config.as_deref(), home: global.home.as_deref(), builtins: &[], probe: None };
    match config::load(env, &options) {
        Ok(loaded) => match broken_hosts(&loaded.config).into_values().next() {
            Some(why) => Err(CliError::usage(why)),
            None => Ok(loaded.config.guard_hosts),
        },
        // The daemon refuses every call then: who installs hears it first.
        Err(error) => {
            Err(CliError::from(error).hint("as long as it does not load, each prompt and call would be refused"))
        }
    }
}

/// Refuses events that `host` does not have, and a list of them where its file has none.
fn known_events(host: &GuardHost, events: Option<&[String]>) -> Result<(), CliError> {
    let Some(events) = events else { return Ok(()) };
    let known: Vec<&str> = settings::installed(host).map(|row| row.name).collect();
    if let Some(unknown) = events.iter().find(|event| !known.contains(&event.as_str())) {
        return Err(CliError::usage(format!("{} has no event `{}`", host.name, clean(unknown)))
            .hint(format!("its events are {}", known.join(", "))));
    }
    if settings::is_plugin(host) {
        return Err(CliError::usage(format!("the plugin of {} stands at all of its events", host.name)));
    }
    Ok(())
}

/// The hosts that `args` mean. Refuses one that is not there, or whose version nobody has tried; of all, those that are
/// not there are passed over.
fn known(args: &InstallArgs, env: &Env) -> Result<Vec<&'static GuardHost>, CliError> {
    let wanted = args.wanted()?;
    if args.force {
        return Ok(wanted);
    }
    if args.is_all() {
        terminal::note("the agents are asked for their versions: a slow one takes up to half a minute");
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
                let is_there = host_program::on_path(host, env).is_some();
                let how = if is_there { "does not say its version" } else { "is not there" };
                return Err(CliError::usage(format!("{} {how}: {}", host.name, clean(&why)))
                    .hint("--force installs all the same"));
            }
            HostVersion::Unproven(version) => {
                return Err(CliError::usage(format!(
                    "{} says it is {version}; versions {min} to {newest} are known",
                    host.name
                ))
                .hint(format!(
                    "--force installs all the same; then `pintle guard doctor --host {} --live` says whether it holds",
                    host.id
                )));
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
) -> Result<Vec<Change>, CliError> {
    let before = read(file)?;
    let known = known_of(places, host.id, file)?;
    let beside = settings::theirs_of(file);
    let edited = match event {
        None => settings::install(host, entry, before.as_deref(), known.as_ref()),
        Some(event) => {
            let theirs = Theirs { file: &beside, kept: known.as_ref() };
            settings::install_event(host, (entry, event), before.as_deref(), theirs)
        }
    };
    let EditedFile { text, kept, others } = edited.map_err(|why| not_edited(file, &why))?;
    warn_of(host, &others);
    let change = |file, before, after, executable| Change {
        host: host.id,
        file,
        before,
        after,
        kept: None,
        executable,
        shared: false,
        adoption: Adoption::Untouched,
    };
    let mut changes = Vec::new();
    // What somebody else has there is run behind ours, from beside it.
    if settings::is_wrapping(&text) && !before.as_deref().is_some_and(settings::is_wrapping) {
        let there = read(&beside)?;
        if there.is_some() && there != before {
            return Err(not_edited(&beside, &NotEdited::Taken));
        }
        changes.push(change(beside, there, before.clone(), true));
    }
    let ours = change(file.to_owned(), before, Some(text), event.is_some());
    changes.push(Change { kept: Some(kept), ..ours });
    Ok(changes)
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
    let commands = settings::commands(host, &OwnEntry::of(places, &hook)?.for_host(host, scope));
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
        let first = known_of(places, host.id, &state)?.filter(|kept| Some(&kept.after) == before.as_ref());
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
    let env = Env::of_process()?;
    let places = GuardPlaces::of(&env, global.home.as_deref(), None)?;
    if let Some(file) = &args.mcp {
        return mcp_file::uninstall((&env, &places), (file, args.consent()));
    }
    let scope = args.scope();
    for host in args.wanted()?.into_iter().map(|host| in_scope(host, scope)) {
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
            let known = known_of(&places, host.id, &file)?;
            let after = settings::uninstall(host, before.as_deref(), known.as_ref());
            let after = after.map_err(|why| not_edited(&file, &why))?;
            // What ours stood before comes back as it is now.
            let beside = settings::theirs_of(&file);
            let theirs = match before.as_deref().is_some_and(settings::is_wrapping) {
                true => read(&beside)?,
                false => None,
            };
            let after = theirs.clone().or(after);
            let change = |file, before, after| Change {
                host: host.id,
                file,
                before,
                after,
                kept: None,
                executable: false,
                shared: false,
                adoption: Adoption::Untouched,
            };
            changes.push(change(file, before, after));
            changes.extend(theirs.map(|theirs| change(beside, Some(theirs), None)));
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
    let Some(kept) = known_of(places, host.id, &file)? else { return Ok(None) };
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
        ConfigForm::Json { .. }
        | ConfigForm::Toml { .. }
        | ConfigForm::Requirements { .. }
        | ConfigForm::WholeFile { .. } => vec![(file, None)],
    })
}
