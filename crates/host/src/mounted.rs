//! Hooks of a configuration on their way into force: those with a child of their own, and all others.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::Arc;

use pintle_dialects::claude::CommandEntry;
use pintle_dialects::process::config::ProcessEntry;
use pintle_domain::hook::{HookState, OBSERVER_TIMEOUT};
use pintle_domain::identity::Identity;
use pintle_engine::Mount;
use pintle_engine::native::NativeHandler;
use pintle_process::{CommandHook, CommandHookSpec, child_environment, first_environment};

use crate::config::adopted::{ADOPTED, shown};
use crate::config::trust::{FileHashes, before_spawn, covers_by, unread};
use crate::config::{Config, HookKind, LoadedHook};
use crate::host::Host;

/// The channel of what agents under guard do, as their identity says it.
pub const GUARD_CHANNEL: &str = "guard";

impl LoadedHook {
    /// The digest of everything that its child is made of now: its entry, its program, and the files that its command
    /// names. None where it runs nothing.
    pub fn digest(&self, search_path: Option<&OsStr>, hashes: &mut FileHashes) -> Option<String> {
        Some(covers_by(self.content.as_ref()?, search_path, hashes).digest)
    }

    /// What of its command cannot be read, where it counts as it was accepted: what it runs in turn is not watched.
    pub fn unwatched(&self) -> Vec<String> {
        let argv = match &self.kind {
            HookKind::Command(entry) => &entry.argv,
            HookKind::Process(entry) => &entry.argv,
            HookKind::Builtin(_) | HookKind::Ask(_) | HookKind::Nothing => return Vec::new(),
        };
        let folder = self.content.as_ref().and_then(|entry| Some(entry.command.as_ref()?.dir.as_path()));
        self.seal.as_ref().map(|_| unread(&argv.join(" "), folder)).unwrap_or_default()
    }

    /// What an adopted hook runs, as it stood in the settings of its agent.
    pub fn adopted_command(&self) -> Option<String> {
        match &self.kind {
            HookKind::Command(entry) if self.hook.origin.ends_with(ADOPTED) => Some(shown(&entry.argv)),
            HookKind::Command(_)
            | HookKind::Process(_)
            | HookKind::Builtin(_)
            | HookKind::Ask(_)
            | HookKind::Nothing => None,
        }
    }

    /// How its child is started, where it has one that lives as long as it does, and is in force.
    pub(crate) fn child(&self) -> Option<&ProcessEntry> {
        match (&self.kind, &self.hook.state) {
            (HookKind::Process(entry), HookState::Armed) => Some(entry),
            (
                HookKind::Process(_)
                | HookKind::Builtin(_)
                | HookKind::Command(_)
                | HookKind::Ask(_)
                | HookKind::Nothing,
                _,
            ) => None,
        }
    }
}

impl Host {
    /// The mount of a hook that has no child of its own, or is not in force.
    pub(crate) fn mount_without_child(&self, config: &Config, loaded: &LoadedHook) -> Mount {
        let hook = loaded.hook.clone();
        match (&loaded.kind, &loaded.hook.state) {
            (HookKind::Ask(gate), HookState::Armed) => {
                let handler = NativeHandler::new(Arc::new(gate.clone()), OBSERVER_TIMEOUT, self.engine.tasks());
                Mount { hook, handler }
            }
            (HookKind::Command(entry), HookState::Armed) => {
                let spec = self.command_hook(config, loaded, entry);
                let handler = CommandHook::start(spec, self.engine.tasks(), self.engine.deadlines());
                Mount { hook, handler }
            }
            (
                HookKind::Process(_)
                | HookKind::Builtin(_)
                | HookKind::Command(_)
                | HookKind::Ask(_)
                | HookKind::Nothing,
                _,
            ) => Mount::idle(hook),
        }
    }

    /// What a command hook of `config` needs to run.
    fn command_hook(&self, config: &Config, loaded: &LoadedHook, entry: &CommandEntry) -> CommandHookSpec {
        let (vars, _) = self.child_env(config, &entry.inherit_env, &BTreeMap::new());
        let (workspaces, here) = (self.host_rules.workspaces().clone(), self.env().cwd.clone());
        // An agent under guard works where its session began, whatever the agent that stands for it has.
        let project_of = move |who: &Identity| match who.channel == GUARD_CHANNEL {
            true => here.clone(),
            false => workspaces.of(&who.agent_id),
        };
        let content = loaded.seal.as_ref().and(loaded.content.as_ref());
        let accepted_in = content.and_then(|content| content.command.as_ref()).map(|command| command.dir.clone());
        let spec = CommandHookSpec::new(&loaded.hook, entry.clone(), vars, Arc::new(project_of))
            .checked(before_spawn(loaded.seal.as_ref()))
            .accepted_in(accepted_in);
        if !loaded.hook.origin.ends_with(ADOPTED) {
            return spec;
        }
        // What an agent had runs in the agent's surroundings, whoever started the daemon and wherever. What is read is what
        // the agent itself was started with: a project's settings can set what its hooks get.
        let (secrets, inherit) = (config.secrets.clone(), entry.inherit_env.clone());
        spec.in_env_of(Arc::new(move |who: &Identity| {
            let of_agent = first_environment(who.foreign.as_ref()?.process?)?;
            Some(child_environment(of_agent.into_iter(), &secrets, &inherit, &BTreeMap::new()).vars)
        }))
    }
}
