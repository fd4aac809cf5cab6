//! A changed configuration takes the place of the one in force: whole or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use pintle_domain::hook::HookState;
use pintle_engine::Mount;
use pintle_process::hook::ProcessHook;

use crate::config::diagnostic::Diagnostic;
use crate::config::{Config, Loaded};
use crate::error::HostError;
use crate::host::{Host, RunningHooks, load_in};
use crate::host_rules::PreparedRules;
use crate::ready_agent::ReadyAgent;
use crate::servers::ServersByName;

/// From which files a configuration comes.
#[derive(Clone, Copy)]
pub struct ConfigSource<'a> {
    /// `--config`.
    pub config: Option<&'a Path>,
    /// `--home`.
    pub home: Option<&'a Path>,
}

/// Which agent a conversation is held with, and from which files it comes.
#[derive(Clone, Copy)]
pub struct ConversationSource<'a> {
    /// `--config`.
    pub config: Option<&'a Path>,
    /// `--home`.
    pub home: Option<&'a Path>,
    /// `--agent`.
    pub agent: Option<&'a str>,
    /// `--model`.
    pub model: Option<&'a str>,
}

/// What came of a reload.
pub struct Reloaded<T> {
    /// What whoever asked works with now: the agent of a conversation, or nothing.
    pub agent: T,
    /// What of the change waits for the next start.
    pub later: Vec<String>,
    /// What became of the children of process hooks.
    pub children: ChildChanges,
}

/// The process hooks by what became of their children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildChanges {
    /// Those that are new.
    pub started: Vec<String>,
    /// Those that changed, their files included. Turns in progress keep the old child.
    pub restarted: Vec<String>,
    /// Those that go on.
    pub kept: Vec<String>,
    /// Those that are gone.
    pub dropped: Vec<String>,
}

impl ChildChanges {
    fn between(before: &BTreeMap<String, Arc<ProcessHook>>, now: &BTreeMap<String, Arc<ProcessHook>>) -> Self {
        let mut changes = Self::default();
        for (name, process) in now {
            let list = match before.get(name) {
                None => &mut changes.started,
                Some(same) if Arc::ptr_eq(same, process) => &mut changes.kept,
                Some(_) => &mut changes.restarted,
            };
            list.push(name.clone());
        }
        changes.dropped = before.keys().filter(|name| !now.contains_key(*name)).cloned().collect();
        changes
    }

    /// Each with its word, those first of which most is to be known; nothing where there are none.
    pub fn words(&self) -> Vec<(&'static str, &[String])> {
        let all = [
            ("started", &self.started),
            ("restarted", &self.restarted),
            ("kept", &self.kept),
            ("dropped", &self.dropped),
        ];
        all.into_iter().filter(|(_, names)| !names.is_empty()).map(|(word, names)| (word, names.as_slice())).collect()
    }
}

/// Loads the configuration again and puts it in force, if everything that changed in it is good.
///
/// Unchanged entries, the files that their commands name included, keep their process and, bad or down, block nothing; so do records of files with rules. Changed and
/// new children have shaken hands, the rules are read, and the agent can be made, before anything is replaced.
///
/// # Errors
/// What is bad, and which removals are therefore not in force. The old set then stays.
pub async fn reload(host: &mut Host, wanted: ConversationSource<'_>) -> Result<Reloaded<ReadyAgent>, HostError> {
    let source = ConfigSource { config: wanted.config, home: wanted.home };
    let prepared = prepare(host, source).await?;
    take(host, prepared, |host| host.runner(wanted.agent, wanted.model))
}

/// Another configuration, ready to take the place of the one in force: its children have shaken hands and its rules are
/// read. Dropped, it leaves nothing behind.
pub struct PreparedHost {
    loaded: Loaded,
    rules: PreparedRules,
    mounts: Vec<Mount>,
    hooks: RunningHooks,
    servers: ServersByName,
}

/// Loads the configuration again and starts what is new in it, beside the one in force, which goes on as it is.
///
/// # Errors
/// What is bad, and which removals are therefore not in force.
pub async fn prepare(host: &Host, wanted: ConfigSource<'_>) -> Result<PreparedHost, HostError> {
    // Of a child that is replaced nobody knows afterwards how it answered.
    host.keep_health();
    let loaded = match load_in(host.env(), wanted.config, wanted.home) {
        Ok(loaded) => loaded,
        Err(error) => return Err(refused(host, None, &error.message)),
    };
    let refused = |cause: &str| refused(host, Some(&loaded.config), cause);
    if let Some(diagnostic) = fresh(&host.loaded.diagnostics, &loaded.diagnostics) {
        return Err(refused(&diagnostic.to_string()));
    }
    let rules = host.host_rules.prepare(&loaded.config).map_err(|cause| refused(&cause))?;
    let (mounts, hooks) = host.mounts(&loaded.config);
    let servers = host.servers_of(&loaded.config);
    let shaken = async { tokio::try_join!(shaken(host, &hooks), host.servers.shaken(&servers)).map(drop) };
    shaken.await.map_err(|cause| refused(&cause))?;
    Ok(PreparedHost { loaded, rules, mounts, hooks, servers })
}

/// Puts `prepared` in force, if `agent` can be made under it. Waits for nothing but the store.
///
/// # Errors
/// What is bad, and which removals are therefore not in force. The old configuration then stays.
pub fn take<T>(
    host: &mut Host,
    prepared: PreparedHost,
    agent: impl FnOnce(&Host) -> Result<T, HostError>,
) -> Result<Reloaded<T>, HostError> {
    let PreparedHost { loaded, rules, mounts, hooks, servers } = prepared;
    let (unusable, ran) = (host.unusables(), host.running());
    let later = for_the_next_start(&host.loaded.config, &loaded.config);
    let (before, servers) = (host.put(hooks), host.servers.put(servers));
    let old = std::mem::replace(&mut host.loaded, loaded);
    host.skills.look(&host.loaded);
    let made = match host.unusables().difference(&unusable).next() {
        Some(new) => Err(new.clone()),
        None => agent(host).map_err(|error| error.message),
    };
    let taken = made.and_then(|runner| match host.engine.replace(mounts) {
        Ok(()) => Ok(runner),
        Err(duplicate) => Err(duplicate.to_string()),
    });
    match taken {
        Ok(agent) => {
            host.rules_of_loaded(rules);
            host.odd_tools().iter().for_each(|odd| tracing::warn!("{odd}"));
            Ok(Reloaded { agent, later, children: ChildChanges::between(&ran, &host.running()) })
        }
        Err(cause) => {
            host.put(before);
            host.servers.put(servers);
            let new = std::mem::replace(&mut host.loaded, old);
            host.skills.look(&host.loaded);
            Err(refused(host, Some(&new.config), &cause))
        }
    }
}

/// Waits for the handshakes of those of `hooks` that do not run yet.
async fn shaken(host: &Host, hooks: &RunningHooks) -> Result<(), String> {
    let ran = host.running();
    for (name, hook) in hooks {
        let process = hook.process();
        let kept = ran.get(name).is_some_and(|same| Arc::ptr_eq(same, process));
        if !kept && let Err(fault) = process.ready().await {
            return Err(format!("hook \"{name}\" {}", fault.explained()));
        }
    }
    Ok(())
}

/// The first mistake that was not there before. Where it stands in its file does not matter: a line that was added
/// above an old mistake is none.
fn fresh<'a>(old: &[Diagnostic], new: &'a [Diagnostic]) -> Option<&'a Diagnostic> {
    let known = |found: &Diagnostic| (found.place.file.clone(), found.path.clone(), found.said());
    let old: BTreeSet<_> = old.iter().map(known).collect();
    new.iter().find(|found| !old.contains(&known(found)))
}

/// The settings that a running program cannot change.
fn for_the_next_start(old: &Config, new: &Config) -> Vec<String> {
    let mut later = Vec::new();
    if old.store_url != new.store_url || old.conversations_url != new.conversations_url {
        later.push("store.url".to_owned());
    }
    if old.durability != new.durability {
        later.push("audit.durability".to_owned());
    }
    if old.agent_hooks.edition != new.agent_hooks.edition {
        later.push("edition".to_owned());
    }
    if old.otlp_endpoint != new.otlp_endpoint {
        later.push("telemetry.otlp_endpoint".to_owned());
    }
    later
}

/// One error for the whole reload: the cause, and what was taken out and still acts.
fn refused(host: &Host, new: Option<&Config>, cause: &str) -> HostError {
    let error = HostError::usage(format!("the changed configuration is not in force: {cause}"));
    let gone = |new| removed(&host.loaded.config, new).into_iter().chain(host.host_rules.gone(new)).collect::<Vec<_>>();
    let removed: Vec<String> = new.map(gone).unwrap_or_default();
    if removed.is_empty() {
        return error.hint("the hooks from before the change go on; fix the file and save it again");
    }
    error.hint(format!("these were removed and still act: {}", removed.join(", ")))
}

/// Hooks, and stages of hooks, that were armed and are not in the new configuration.
fn removed(old: &Config, new: &Config) -> Vec<String> {
    let armed = |config: &Config| -> BTreeSet<(String, Option<&'static str>)> {
        let hooks = config.hooks.iter().map(|loaded| &loaded.hook).filter(|hook| hook.state == HookState::Armed);
        hooks
            .flat_map(|hook| {
                let stages = hook.stages.kinds().map(|kind| Some(kind.name()));
                stages.chain([None]).map(|stage| (hook.name.to_string(), stage)).collect::<Vec<_>>()
            })
            .collect()
    };
    let (old, new) = (armed(old), armed(new));
    let gone: BTreeSet<&String> =
        old.difference(&new).filter(|(_, stage)| stage.is_none()).map(|(name, _)| name).collect();
    old.difference(&new)
        .filter_map(|(name, stage)| match stage {
            None => Some(name.clone()),
            Some(stage) if !gone.contains(name) => Some(format!("{name} at {stage}")),
            Some(_) => None,
        })
        .collect()
}
