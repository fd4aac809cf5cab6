//! Hooks: the good ones armed, the bad ones stubs that stay shut, the others there to be recorded.

use std::collections::BTreeMap;

use pintle_dialects::process::config::{EntryContext, EntryProblem, ProcessEntry, broken, builtin, idle, process};
use pintle_domain::hook::{Family, Hook, HookState};
use pintle_domain::id::HookName;
use pintle_domain::json::{Value, from_value};
use pintle_domain::nearest::nearest;

use super::agents::is_gate_name;
use super::{LeftOut, Trusted};
use crate::config::commands::{is_replaceable, placed, replaceable};
use crate::config::diagnostic::dotted;
use crate::config::document::TreeNode;
use crate::config::layer::{CLAUDE_HOOKS, EntryPath, HOOK_TABLES, Layer, entry_path, off};
use crate::config::trust::{CHANGED, TrustStanding, hook_entry, process_entry, was_off};
use crate::config::{Config, HookKind, LoadedHook};

/// Adds the hooks of one file. They come on top of those of earlier files and never change one.
pub(super) fn add(config: &mut Config, trusted: &mut Trusted, builtins: &[&str], left: &mut LeftOut) {
    let names = names(trusted);
    for (name, tables) in names {
        let taken = config.hooks.iter().any(|loaded| loaded.hook.name.as_str() == name);
        let one = One { name: &name, path: entry_path(&["hooks", tables[0]], &name) };
        let all_off = tables.iter().all(|table| trusted.layer.is_off(&entry_path(&["hooks", table], &name)));
        let kept = is_gate_name(&name);
        if taken || kept {
            let told = |table: &&str| trusted.standing(&dotted(&entry_path(&["hooks", table], &name)));
            let is_stranger = tables.iter().all(|table| told(table) == TrustStanding::Unknown);
            if !all_off && !is_stranger {
                let detail = match kept {
                    true => format!("the hook name \"{name}\" is kept for the gate of an agent"),
                    false => format!("duplicate hook name \"{name}\""),
                };
                trusted.layer.report(EntryProblem::new(&[], detail.clone()).under(&["hooks", tables[0], &name]));
                config.hooks.extend(one.second(trusted, &detail));
            } else if is_stranger && !all_off {
                tables.iter().for_each(|table| left.add(dotted(&entry_path(&["hooks", table], &name))));
            }
            continue;
        }
        let loaded = match tables.as_slice() {
            [_] => one.load(config, trusted, (builtins, left)),
            _ => one.load_twice_named(trusted, all_off, left),
        };
        config.hooks.push(loaded);
    }
}

/// Adds a stub for each guard that stands where no hook is read: under `hook` or `hooks.process`, say. Whoever wrote it
/// believes to be guarded, so what it names stays shut.
pub(super) fn add_misplaced(config: &mut Config, trusted: &mut Trusted) {
    if trusted.acceptance().is_some_and(|acceptance| !acceptance.known) {
        return;
    }
    for path in misplaced(&trusted.layer) {
        let keys: Vec<&str> = path.iter().map(String::as_str).collect();
        let (place, name) = (dotted(&keys[..keys.len() - 1]), dotted(&keys));
        let detail = format!("hooks are not read from \"{place}\"; did you mean \"hooks.processes\"?");
        let (value, origin) = (trusted.layer.value(&keys), trusted.layer.origin(&path));
        let stub = broken(&trusted.layer.around(&name, &origin), Family::Process, Some(&value), &detail);
        if stub.stages.kinds().next().is_some() {
            trusted.layer.report_guard(&path, detail);
            config.hooks.push(LoadedHook { hook: stub, kind: HookKind::Nothing, seal: None, content: None });
        }
    }
}

/// The paths of the tables that look like entries of `hooks.processes`, are switched on, and stand elsewhere near by.
fn misplaced(layer: &Layer) -> Vec<EntryPath> {
    let mut found = Vec::new();
    let root = &layer.document.root;
    for section in root.members().iter().filter(|member| is_near(&member.key, ["hooks", "processes"])) {
        for table in section.node.members() {
            let at = |name: Option<&str>| {
                [Some(section.key.as_str()), Some(table.key.as_str()), name]
                    .into_iter()
                    .flatten()
                    .map(str::to_owned)
                    .collect()
            };
            if looks_like_entry(&table.node) {
                found.push(at(None));
            } else if section.key != "hooks"
                || !(HOOK_TABLES.contains(&table.key.as_str()) || table.key == CLAUDE_HOOKS[1])
            {
                let entries = table.node.members().iter().filter(|entry| looks_like_entry(&entry.node));
                let entries = entries.filter(|_| is_near(&table.key, ["processes"]));
                found.extend(entries.map(|entry| at(Some(&entry.key))));
            }
        }
    }
    found
}

fn is_near<const N: usize>(key: &str, names: [&str; N]) -> bool {
    nearest(key, names).is_some()
}

/// Whether a table says what is run or where it is asked, and is switched on.
fn looks_like_entry(node: &TreeNode) -> bool {
    let has = |key: &str| node.get(key).is_some();
    node.is_table() && (has("command") || has("intercept")) && !off(node.get("enabled"))
}

/// The names of all hooks of a file, in its order, and the tables that have them.
fn names(trusted: &Trusted) -> Vec<(String, Vec<&'static str>)> {
    let mut names: Vec<(String, Vec<&'static str>)> = Vec::new();
    let mut index = BTreeMap::new();
    for table in HOOK_TABLES {
        for member in trusted.layer.entries(&["hooks", table]) {
            let at = *index.entry(member.key.clone()).or_insert(names.len());
            match names.get_mut(at) {
                Some((_, tables)) => tables.push(table),
                None => names.push((member.key.clone(), vec![table])),
            }
        }
    }
    names
}

/// The entry called `name` of a table; where it is not there, it says nothing.
fn own<T: Clone + Default>(table: Option<&BTreeMap<String, T>>, name: &str) -> T {
    table.and_then(|entries| entries.get(name)).cloned().unwrap_or_default()
}

/// One hook on its way.
struct One<'a> {
    name: &'a str,
    path: EntryPath,
}

impl One<'_> {
    fn load(&self, config: &Config, trusted: &mut Trusted, (builtins, left): (&[&str], &mut LeftOut)) -> LoadedHook {
        let off = trusted.layer.is_off(&self.path);
        match trusted.standing(&dotted(&self.path)) {
            // It was accepted as one that never runs, and it still never runs: nothing to keep shut.
            TrustStanding::Changed { accepted, .. } if off && was_off(&accepted) => {
                self.idle(trusted, HookState::Disabled)
            }
            TrustStanding::Changed { accepted, .. } => {
                self.say(trusted, &format!("{CHANGED}; `pintle trust` shows how, and accepts it"));
                self.stub(trusted, Some(hook_entry(&accepted)), CHANGED)
            }
            TrustStanding::Trusted | TrustStanding::Unknown if off => self.idle(trusted, HookState::Disabled),
            TrustStanding::Unknown => {
                left.add(dotted(&self.path));
                self.idle(trusted, HookState::Untrusted)
            }
            TrustStanding::Trusted => match self.resolve(trusted, builtins) {
                Ok(loaded) => {
                    self.remark(config, trusted, &loaded);
                    loaded
                }
                Err(problems) => {
                    for problem in problems {
                        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
                        trusted.layer.report(problem.under(&path));
                    }
                    self.bad_stub(trusted)
                }
            },
        }
    }

    /// Says of an entry that is in force that an agent could replace what it runs.
    fn remark(&self, config: &Config, trusted: &mut Trusted, loaded: &LoadedHook) {
        let HookKind::Process(entry) = &loaded.kind else { return };
        if is_replaceable(config, (&entry.argv, &entry.dir), loaded.seal.is_some()) {
            let path: Vec<&str> = self.path.iter().map(String::as_str).chain(["command"]).collect();
            let at = format!("{}, where an agent works", entry.dir.display());
            trusted.layer.remark(EntryProblem::new(&path, replaceable(&at)));
        }
    }

    /// The stub of an entry whose name an earlier file has: what it was to guard stays shut, under a name of its own.
    fn second(&self, trusted: &Trusted, detail: &str) -> Option<LoadedHook> {
        if trusted.standing(&dotted(&self.path)) == TrustStanding::Unknown {
            return None;
        }
        let mut stub = self.stub(trusted, Some(&self.value(trusted)), detail);
        stub.hook.name = HookName::new(format!("{} ({})", self.name, self.origin(trusted)));
        Some(stub)
    }

    /// A name in both tables: nobody can tell which is meant, so neither runs and what they guard stays shut.
    fn load_twice_named(&self, trusted: &mut Trusted, all_off: bool, left: &mut LeftOut) -> LoadedHook {
        let paths = HOOK_TABLES.map(|table| entry_path(&["hooks", table], self.name));
        let standings = paths.each_ref().map(|path| trusted.standing(&dotted(path)));
        let changed = standings
            .iter()
            .any(|standing| matches!(standing, TrustStanding::Changed { accepted, .. } if !was_off(accepted)));
        if all_off && !changed {
            return self.idle(trusted, HookState::Disabled);
        }
        if standings.iter().all(|standing| *standing == TrustStanding::Unknown) {
            paths.iter().for_each(|path| left.add(dotted(path)));
            return self.idle(trusted, HookState::Untrusted);
        }
        let detail = format!("duplicate hook name \"{}\"", self.name);
        let path: Vec<&str> = paths[1].iter().map(String::as_str).collect();
        trusted.layer.report(EntryProblem::new(&path, detail.clone()));
        self.loaded(broken(&trusted.layer.around(self.name, &self.origin(trusted)), Family::Native, None, &detail))
    }

    fn resolve(&self, trusted: &Trusted, builtins: &[&str]) -> Result<LoadedHook, Vec<EntryProblem>> {
        let layer = &trusted.layer;
        let origin = self.origin(trusted);
        let around = layer.around(self.name, &origin);
        if layer.bad.contains_key(&self.path) {
            return Err(self.further_problems(layer, &around, builtins));
        }
        // Only its own entry: of hundreds, all would be copied hundreds of times.
        let written = &layer.raw.hooks;
        let (hook, kind) = match self.family() {
            Family::Native => {
                let raw = own(written.builtins.as_ref(), self.name);
                let (hook, entry) = builtin(&around, &raw, builtins)?;
                (hook, HookKind::Builtin(entry))
            }
            // Rules and texts of skills are no entries of `hooks`.
            Family::Process | Family::Command | Family::Rule | Family::Skill => {
                let raw = own(written.processes.as_ref(), self.name);
                let (hook, entry) = process(&around, &raw)?;
                let argv = placed(&entry.argv, &entry.dir).map_err(|problem| vec![problem])?;
                (hook, HookKind::Process(ProcessEntry { argv, ..entry }))
            }
        };
        let is_child = matches!(kind, HookKind::Process(_));
        let content = is_child.then(|| process_entry(dotted(&self.path), self.value(trusted), layer));
        Ok(LoadedHook { hook, kind, seal: trusted.seal(&dotted(&self.path)), content })
    }

    /// What else is wrong with an entry some members of which are known to be: those that are there and have the right
    /// shape.
    fn further_problems(&self, layer: &Layer, around: &EntryContext<'_>, builtins: &[&str]) -> Vec<EntryProblem> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let Some(node) = layer.document.root.at(&path).filter(|node| node.is_table()) else { return Vec::new() };
        let known = |path: &[String]| layer.diagnostics.iter().any(|found| found.path == dotted(path));
        let value = node.to_value(&mut self.path.clone(), &known);
        let found = match self.family() {
            Family::Native => from_value(value.clone()).ok().and_then(|raw| builtin(around, &raw, builtins).err()),
            Family::Process | Family::Command | Family::Rule | Family::Skill => {
                from_value(value.clone()).ok().and_then(|raw| process(around, &raw).err())
            }
        };
        // What is absent may be what a misspelt key was meant to be.
        let stands = |problem: &EntryProblem| problem.path.first().is_some_and(|member| value.get(member).is_some());
        found.into_iter().flatten().filter(stands).collect()
    }

    /// The stub of an entry that has diagnostics; the first is its fault's detail.
    fn bad_stub(&self, trusted: &Trusted) -> LoadedHook {
        let layer = &trusted.layer;
        let detail = layer.bad.get(&self.path).map(ToString::to_string).unwrap_or_default();
        let twice = layer.document.twice.iter().any(|problem| problem.path.starts_with(&self.path));
        let value = self.value(trusted);
        // Of a key that stands twice nobody can say which one counts.
        self.stub(trusted, (!twice).then_some(&value), &detail)
    }

    fn stub(&self, trusted: &Trusted, entry: Option<&Value>, detail: &str) -> LoadedHook {
        let origin = self.origin(trusted);
        self.loaded(broken(&trusted.layer.around(self.name, &origin), self.family(), entry, detail))
    }

    fn idle(&self, trusted: &Trusted, state: HookState) -> LoadedHook {
        let origin = self.origin(trusted);
        let around = trusted.layer.around(self.name, &origin);
        self.loaded(idle(&around, self.family(), &self.value(trusted), state))
    }

    fn say(&self, trusted: &mut Trusted, message: &str) {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        trusted.layer.report(EntryProblem::new(&path, message));
    }

    fn loaded(&self, hook: Hook) -> LoadedHook {
        LoadedHook { hook, kind: HookKind::Nothing, seal: None, content: None }
    }

    fn family(&self) -> Family {
        if self.path[1] == "builtins" { Family::Native } else { Family::Process }
    }

    fn origin(&self, trusted: &Trusted) -> String {
        trusted.layer.origin(&self.path)
    }

    fn value(&self, trusted: &Trusted) -> Value {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        trusted.layer.value(&path)
    }
}
