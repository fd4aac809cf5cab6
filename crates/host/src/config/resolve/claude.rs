//! Command hooks: the list of each event whole, or a stub that stays shut.

use pintle_dialects::claude::config::ListContext;
use pintle_dialects::claude::{ClaudeEvent, RawClaudeHooks};
use pintle_dialects::process::config::EntryProblem;
use pintle_domain::hook::{Hook, HookState};
use pintle_domain::json::{Value, from_value};

use super::{LeftOut, Trusted};
use crate::config::commands::{files_beside, replaceable};
use crate::config::diagnostic::dotted;
use crate::config::layer::{CLAUDE_HOOKS, EntryPath, entry_path};
use crate::config::trust::{CHANGED, TrustStanding, command_entry};
use crate::config::{Config, HookKind, LoadedHook};

/// The key of the secrets that all commands of a file see.
const INHERIT_ENV: &str = "inherit_env";

/// Adds the command hooks of one file behind those of earlier files.
pub(super) fn add(config: &mut Config, trusted: &mut Trusted, left: &mut LeftOut) {
    let raw = trusted.layer.raw.hooks.claude.clone().unwrap_or_default();
    let keys: Vec<String> = trusted.layer.entries(CLAUDE_HOOKS).iter().map(|member| member.key.clone()).collect();
    let inherits = entry_path(CLAUDE_HOOKS, INHERIT_ENV);
    let known = keys.iter().any(|key| key == INHERIT_ENV);
    let is_trusted = trusted.standing(&dotted(&inherits)) == TrustStanding::Trusted;
    if known && !is_trusted {
        left.add(dotted(&inherits));
    }
    let inherit_env = raw.inherit_env.clone().filter(|_| is_trusted).unwrap_or_default();
    for event in ClaudeEvent::ALL.into_iter().filter(|event| keys.iter().any(|key| key == event.name())) {
        let list = List { event, path: entry_path(CLAUDE_HOOKS, event.name()), inherit_env: &inherit_env };
        let hooks = list.load(config, trusted, &raw, left);
        config.hooks.extend(hooks);
    }
}

/// How many commands of `event` there are already.
pub(in crate::config) fn before(config: &Config, event: ClaudeEvent) -> usize {
    let prefix = format!("claude.{}.", event.name());
    config.hooks.iter().filter(|loaded| loaded.hook.name.as_str().starts_with(&prefix)).count()
}

/// The commands of one event.
struct List<'a> {
    event: ClaudeEvent,
    path: EntryPath,
    inherit_env: &'a [String],
}

impl List<'_> {
    fn load(
        &self,
        config: &Config,
        trusted: &mut Trusted,
        raw: &RawClaudeHooks,
        left: &mut LeftOut,
    ) -> Vec<LoadedHook> {
        let origin = trusted.layer.origin(&self.path);
        let before = before(config, self.event);
        let folder = trusted.layer.folder.clone();
        let files = Some(files_beside(&folder));
        let around = ListContext { event: self.event, origin: &origin, before, inherit_env: self.inherit_env, files };
        let written = trusted.layer.value(&self.path.iter().map(String::as_str).collect::<Vec<_>>());
        let idle = |state: &HookState| around.idle(&written, state).into_iter().map(nobody).collect();
        let off = trusted.layer.is_off(&self.path);
        match trusted.standing(&dotted(&self.path)) {
            TrustStanding::Unknown if off => idle(&HookState::Disabled),
            TrustStanding::Unknown => {
                left.add(dotted(&self.path));
                idle(&HookState::Untrusted)
            }
            TrustStanding::Changed { .. } if off => idle(&HookState::Disabled),
            TrustStanding::Changed { .. } => {
                let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
                let message = format!("{CHANGED}; `pintle trust` shows how, and accepts it");
                trusted.layer.report(EntryProblem::new(&path, message));
                vec![nobody(around.broken(CHANGED))]
            }
            TrustStanding::Trusted if off => idle(&HookState::Disabled),
            TrustStanding::Trusted => self.resolve(trusted, (raw, written.clone()), &around),
        }
    }

    fn resolve(
        &self,
        trusted: &mut Trusted,
        (raw, written): (&RawClaudeHooks, Value),
        around: &ListContext<'_>,
    ) -> Vec<LoadedHook> {
        let bad = trusted.layer.bad.get(&self.path).map(ToString::to_string);
        let groups = raw.groups(self.event).unwrap_or_default();
        let read = match &bad {
            // What else is wrong there is said, too.
            Some(_) => {
                from_value(written.clone()).ok().map(|groups: Vec<_>| around.hooks(&groups)).unwrap_or(Ok(Vec::new()))
            }
            None => around.hooks(groups),
        };
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        if let Err(problems) = &read {
            for problem in problems {
                trusted.layer.report(problem.clone().under(&path));
            }
        }
        match (read, trusted.layer.bad.get(&self.path)) {
            (Ok(hooks), None) => {
                let content = command_entry(dotted(&self.path), written, &trusted.layer);
                let seal = trusted.seal(&dotted(&self.path));
                // It runs where an agent works, unless it was accepted in its own folder.
                for (_, entry) in hooks.iter().filter(|(_, entry)| seal.is_none() && entry.is_shell_text()) {
                    let at: Vec<&str> = entry.path.iter().map(String::as_str).chain(["command"]).collect();
                    let problem = EntryProblem::new(&at, replaceable("the folder that an agent works in"));
                    trusted.layer.remark(problem.under(&path));
                }
                let loaded = hooks.into_iter().map(|(hook, entry)| LoadedHook {
                    hook,
                    kind: HookKind::Command(entry),
                    seal: seal.clone(),
                    content: Some(content.clone()),
                });
                loaded.collect()
            }
            (_, why) => {
                let detail = bad.or_else(|| why.map(ToString::to_string)).unwrap_or_default();
                vec![nobody(around.broken(&detail))]
            }
        }
    }
}

fn nobody(hook: Hook) -> LoadedHook {
    LoadedHook { hook, kind: HookKind::Nothing, seal: None, content: None }
}
