//! What guards and turns stand on: configuration, store, providers, the kernel.

use std::sync::Arc;
use std::time::Duration;

use pintle_agent::tools::sandbox::{Confinement, Enforced, confine};
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::EventId;
use pintle_domain::record::{EventRecord, EventRuling, Record};
use pintle_domain::shown_url::shown_url;
use pintle_domain::skill::finding::Severity;
use pintle_domain::store::{RecordQuery, TenantScope};
use pintle_domain::verdict::VerdictKind;
use pintle_gateway::weak_token;
use pintle_store::Store;
use tokio::sync::oneshot;

use super::super::exposure;
use super::super::store::shown_store;
use super::canary::{CANARY, identity};
use super::{Check, State};
use crate::text::counted;
use pintle_host::config::{self, Config, Diagnostic, Env, Loaded, McpReach, ProviderConfigKind};
use pintle_host::host::Host;
use pintle_host::skill_sets::scan;

/// How long a provider may take to answer: somebody is waiting.
const REACH_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a record may take to be on disk; as long as a tool call would wait for it.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Every mistake; where there is none, the files that were read.
pub(super) fn configuration(env: &Env, loaded: &Loaded) -> Vec<Check> {
    let mut checks = Vec::new();
    checks.extend(loaded.diagnostics.iter().map(diagnosed));
    checks.extend(config::twins(&loaded.files).iter().map(diagnosed));
    // What nobody accepted is left out, and may still be what somebody relies on: one that does not parse is a mistake.
    let broken: Vec<String> = loaded
        .files
        .iter()
        .filter(|file| config::parsed(env, file).is_err())
        .map(|file| file.display().to_string())
        .collect();
    checks.extend(loaded.left_out.iter().map(|line| {
        let is_broken = broken.iter().any(|file| line.contains(file));
        let state = if is_broken { State::Failed } else { State::Note };
        Check::new("configuration", "", state, line.clone())
    }));
    if checks.is_empty() {
        let files: Vec<String> = loaded.files.iter().map(|file| file.display().to_string()).collect();
        let message = if files.is_empty() { "no file".to_owned() } else { files.join(", ") };
        checks.push(Check::new("configuration", "", State::Ok, message));
    }
    checks
}

/// A token that others may guess.
pub(super) fn token(env: &Env, loaded: &Loaded) -> Option<Check> {
    let weak = weak_token(&loaded.config.gateway, env)?;
    Some(Check::new("gateway", "", State::Failed, format!("{}; {}", weak.message, weak.hint)))
}

/// A mistake in a configuration.
pub(super) fn diagnosed(diagnostic: &Diagnostic) -> Check {
    let check = Check::new("configuration", "", State::Failed, diagnostic.to_string());
    Check { guard: diagnostic.guard, diagnostic: Some(diagnostic.clone()), ..check }
}

/// The skills of all agents: what is wrong with each, or how many hooks it has.
pub(super) fn skills(loaded: &Loaded) -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    for agent in loaded.config.agents.values() {
        let scan = scan(loaded, agent);
        let good = scan.skills.iter().filter(|skill| scan.findings.iter().all(|found| found.skill != skill.name));
        let mut found: Vec<Check> = good
            .map(|skill| {
                let hooks = counted(skill.hooks.len(), "hook");
                let told =
                    if skill.description.is_some() { "the model is told of it" } else { "the model is not told of it" };
                let armed = if skill.hooks.is_empty() { "" } else { "armed, " };
                Check::new("skill", &skill.name, State::Ok, format!("{armed}{hooks}, {told}"))
            })
            .collect();
        found.extend(scan.findings.iter().map(|finding| {
            let state = if finding.severity == Severity::Error { State::Failed } else { State::Note };
            Check::new("skill", &finding.skill, state, finding.to_string())
        }));
        // Agents share skills; nothing is said twice.
        found.retain(|check| checks.iter().all(|other| (&other.name, &other.message) != (&check.name, &check.message)));
        checks.extend(found);
    }
    checks
}

/// Writes the record of the canaries and reads it again.
pub(super) async fn store(
    host: &Host,
    opened: Result<Arc<dyn Store>, pintle_host::HostError>,
    canaries: Vec<Record>,
) -> Check {
    let kept = match opened {
        Ok(store) => match keep(store.clone(), canaries).await {
            Ok(()) => whole(store).await,
            Err(why) => Err(why),
        },
        Err(error) => Err(error.message),
    };
    match kept {
        Ok(()) => Check::new("store", "", State::Ok, shown_store(&host.loaded.config)),
        Err(why) => Check::new("store", "", State::Failed, why),
    }
}

async fn keep(store: Arc<dyn Store>, hooks: Vec<Record>) -> Result<(), String> {
    let event_id = EventId::fresh();
    let record = EventRecord {
        event_id: event_id.clone(),
        at: jiff::Timestamp::now(),
        checkpoint: CheckpointKind::BeforeTool,
        kind: None,
        who: identity(),
        tool: Some(CANARY.to_owned()),
        input: None,
        ruling: EventRuling::word(VerdictKind::Continue),
        hooks: hooks.into(),
    };
    let (tell, told) = oneshot::channel();
    store.keep(
        vec![record],
        Box::new(move |kept| {
            // Nobody listens any more when the time is up.
            drop(tell.send(kept));
        }),
    );
    let kept = tokio::time::timeout(STORE_TIMEOUT, told).await;
    let late = || format!("nothing was written within {} s", STORE_TIMEOUT.as_secs());
    kept.map_err(|_elapsed| late())?.map_err(|_gone| late())?.map_err(|error| error.to_string())?;
    let query = RecordQuery { event_id: Some(event_id.to_string()), limit: 1, ..RecordQuery::of(TenantScope::All) };
    let found = tokio::task::spawn_blocking(move || store.find(&query)).await.map_err(|error| error.to_string())?;
    match found.map_err(|error| error.to_string())?.as_slice() {
        [one] if one.is_test => Ok(()),
        _ => Err("what was written cannot be found again".to_owned()),
    }
}

/// What turns begin with may stand in a part of the file that no canary reads.
async fn whole(store: Arc<dyn Store>) -> Result<(), String> {
    let checked = tokio::task::spawn_blocking(move || store.check_pages()).await;
    checked.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// The home folder, if other users can look into it and it could not be closed, what else of the host others may write,
/// and what of it has a second name.
pub(super) fn home(host: &Host, env: &Env) -> Vec<Check> {
    let lines = pintle_host::home::close(&host.loaded.config.home).err().into_iter();
    let lines = lines
        .chain(pintle_host::writers::keep_out(env, &host.loaded))
        .chain(pintle_host::links::second_names(&host.loaded));
    lines.map(|why| Check::new("home", "", State::Note, why)).collect()
}

/// Asks every provider for its models.
pub(super) async fn providers(host: &Host, env: &Env) -> Vec<Check> {
    let config = &host.loaded.config;
    if config.providers.is_empty() {
        let message = "none; set OPENAI_API_KEY or ANTHROPIC_API_KEY, start Ollama, or write a [providers.NAME] table";
        return vec![Check::new("provider", "", State::Note, message)];
    }
    let checks = config.providers.iter().map(|(name, provider)| async move {
        let missing = provider.api_key_env.as_deref().filter(|variable| env.text(variable).is_none());
        if let Some(variable) = missing {
            return Check::new("provider", name, State::Failed, format!("the variable {variable} is not set"));
        }
        let spec = host.provider_spec(name, provider);
        match pintle_providers::reach(&spec, REACH_TIMEOUT).await {
            Ok(_) if matches!(provider.kind, ProviderConfigKind::Scripted { .. }) => {
                Check::new("provider", name, State::Ok, "its script can be played")
            }
            Ok(said) => Check::new("provider", name, State::Ok, said),
            Err(error) => {
                let message = error.to_string();
                // The name stands in its own column.
                let message = message.strip_prefix(&format!("provider `{name}`: ")).unwrap_or(&message);
                let url = spec.base_url.as_deref().filter(|url| !message.contains(*url));
                let url = url.map(|url| format!("; its base_url is {}", shown_url(url))).unwrap_or_default();
                Check::new("provider", name, State::Failed, format!("{message}{url}"))
            }
        }
    });
    futures_util::future::join_all(checks).await
}

/// Whether there may be as many children as the configuration names.
pub(super) fn files(host: &Host) -> Check {
    let config = &host.loaded.config;
    let hooks = config.hooks.iter().filter(|loaded| loaded.content.is_some()).count();
    let servers = config.mcp.values().filter(|server| matches!(server.reach, McpReach::Command { .. })).count();
    let named = (hooks + servers) as u64;
    match pintle_process::raise_open_files() {
        Ok(files) if named <= files.children() => {
            let message = format!("{} may be open, enough for {} children at once", files.now, files.children());
            Check::new("files", "", State::Ok, message)
        }
        Ok(files) => {
            let message = format!(
                "{named} hooks and servers are configured, and {} files may be open, enough for {}; raise the hard limit \
                 (`ulimit -Hn`)",
                files.now,
                files.children(),
            );
            Check::new("files", "", State::Failed, message)
        }
        Err(error) => Check::new("files", "", State::Note, format!("the limit of open files cannot be read: {error}")),
    }
}

/// That tenants share the folders in which agents work.
pub(super) fn shared(config: &Config, store: &dyn Store) -> Option<Check> {
    let tenants = store.tenants().ok()?;
    exposure::of_workspaces(config, &tenants).map(|why| Check::new("tenants", "", State::Note, why))
}

/// What keeps commands of `exec` away from the host's own files.
pub(super) fn exec(host: &Host) -> Vec<Check> {
    let shell = &host.loaded.config.tools.exec_shell;
    let mut checks = vec![match shell.program().metadata() {
        Ok(_) => Check::new("exec", "", State::Ok, format!("commands run in {}", shell.told())),
        Err(e) => {
            let message = format!("{}, which is to run commands, cannot be found: {e}", shell.program().display());
            Check::new("exec", "", State::Failed, message)
        }
    }];
    let protected = host.protected();
    // The confinement holds for the thread that asks for it, and ends with it.
    let confined = std::thread::spawn(move || confine(&protected)).join();
    match confined {
        Ok(Ok(Confinement { enforced, hard_linked })) => {
            checks.push(confinement(enforced, host.loaded.config.tools.exec_unconfined));
            checks.extend(hard_linked.iter().map(|file| {
                let message = format!("{} has a second name, through which `exec` can change it", file.display());
                Check::new("exec", "", State::Note, message)
            }));
        }
        Ok(Err(error)) => checks.push(Check::new("exec", "", State::Failed, error.to_string())),
        Err(_panic) => checks.push(Check::new("exec", "", State::Failed, "the confinement could not be tried")),
    }
    if nix::unistd::geteuid().is_root() {
        let message = "Pintle runs as root, so /proc gives its children back the secrets that are withheld from them";
        checks.push(Check::new("exec", "", State::Note, message));
    }
    checks
}

fn confinement(enforced: Enforced, is_unconfined: bool) -> Check {
    let kept = "Landlock keeps commands away from the configuration, what hooks run, and Pintle's own data";
    match enforced {
        Enforced::Fully => Check::new("exec", "", State::Ok, kept),
        Enforced::Partly => {
            let message = format!("{kept}; before Linux 6.2 they can empty protected files");
            Check::new("exec", "", State::Note, message)
        }
        Enforced::Not if is_unconfined => {
            let message = "this kernel has no Landlock, and `tools.exec.unconfined` is set: commands can reach the \
                           configuration, what hooks run, and Pintle's own data, and a terminal is not proof of a person";
            Check::new("exec", "", State::Note, message)
        }
        Enforced::Not => {
            let message = "this kernel has no Landlock: `exec` is refused; `unconfined = true` under `[tools.exec]` in \
                           your own configuration lets commands run unconfined";
            Check::new("exec", "", State::Note, message)
        }
    }
}
