//! What is done with the rules of a store before they come into force: rules that are shipped, those of files, and what
//! an edition does not have.

use std::convert::Infallible;
use std::path::PathBuf;

use domain::agent_hook::{AgentHook, Edition, HandlerType, HookScope, Source};
use domain::hook::{Hook, State};
use domain::id::{AgentId, HookId};
use domain::json::Value;
use domain::store::{Actor, HookChange, HookStore, StoreError, StoredRules};
use jiff::Timestamp;
use rules::builtin::{self, Write};
use rules::cache::{Beside, Guarded, stub};
use rules::handler::Vault as _;
use rules::record;

use crate::config::Config;
use crate::rule_files::{Bad, Filed, GATES, Good, IN_FOLDER, Reader, folder_of, mounted, strangers};
use crate::stored_rules::Sealed;

/// Who does this, in the change log.
const BOOT: &str = "system:boot";

/// Why a row is off that its edition does not have.
const NO_COMMANDS: &str = "edition";

/// Why a row is off that is about agents and has none.
const NO_AGENTS: &str = "no_agents";

/// What a boot found.
#[derive(Default)]
pub struct Booted {
    /// What is wrong beside rules of files, and what is odd about those: a line each, for the operator.
    pub diagnostics: Vec<String>,
    /// The rules of files.
    pub files: Vec<AgentHook>,
    /// Rules of files that are not in order.
    pub bad: Vec<Bad>,
    /// Rules of files that nobody accepted.
    pub strangers: Vec<Hook>,
    /// What is kept shut because something else than a rule of a file is wrong.
    pub stubs: Vec<Beside>,
    /// Why.
    pub failed: Vec<String>,
}

impl Booted {
    /// Everything that is kept shut, and everything that is not asked because nobody accepted it.
    pub fn unasked(&self) -> Vec<Beside> {
        let shut = self.stubs.iter().cloned().chain(self.bad.iter().filter_map(Bad::stub));
        let strangers = self.strangers.iter().map(|stranger| Beside { tenant: None, mounted: mounted(stranger) });
        shut.chain(strangers).collect()
    }

    /// What leaves something unguarded, or shut.
    pub fn unguarded(&self) -> impl Iterator<Item = String> {
        let bad = self.bad.iter().filter(|bad| bad.diagnostic.guard).map(Bad::line);
        let guards =
            |hook: &&Hook| hook.state == State::Untrusted && GATES.iter().any(|gate| hook.stages.get(*gate).is_some());
        let strangers = self.strangers.iter().filter(guards).map(|hook| format!("{} (untrusted)", hook.name));
        bad.chain(strangers).chain(self.failed.iter().cloned())
    }

    /// Everything to tell, a line each.
    pub fn lines(&self) -> Vec<String> {
        self.bad
            .iter()
            .map(Bad::line)
            .chain(self.failed.iter().cloned())
            .chain(self.diagnostics.iter().cloned())
            .collect()
    }
}

/// Brings the store's rules up to date with what is shipped, with the files of `config` and with the edition.
pub struct Boot<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The edition.
    pub edition: Edition,
    /// Where the rules are.
    pub store: &'a dyn HookStore,
    /// Encrypts secrets of files.
    pub sealed: &'a Sealed,
    /// The agents of the host.
    pub agents: Vec<AgentId>,
}

impl Boot<'_> {
    /// Does all of it. What fails leaves the rest as it is.
    pub fn run(&self) -> Booted {
        match self.store.rules() {
            Ok(rules) => self.carry_out(&rules, self.read(&rules)),
            // The rulebook says so, and shuts the gates. It opens them once the store is back, but not without these.
            Err(error) => {
                let why = |dir: &PathBuf| {
                    let dir = dir.display().to_string();
                    let why = format!("the rules of {dir} were not read, since the store could not be: {error}");
                    Bad::somewhere("the rules of files", &dir, format!("{why}; start Pintle again"))
                };
                let bad = self.config.agent_hooks.dirs.iter().map(why).collect();
                Booted { bad, strangers: self.strangers(), ..Booted::default() }
            }
        }
    }

    /// Reads the files. Nothing else happens.
    pub fn read(&self, rules: &StoredRules) -> Filed {
        let reader = Reader {
            config: &self.config.agent_hooks,
            edition: self.edition,
            agents: &self.agents,
            tenants: &rules.tenants,
            stored: &rules.hooks,
            seal: &|hook| self.kept(hook),
        };
        let mut filed = reader.read();
        if let Some(why) = &self.config.agent_hooks.changed {
            // None of them is what somebody accepted.
            filed.good.clear();
            filed.bad.push(Bad::somewhere("the rules of a changed file", "host", why.clone()));
        }
        filed
    }

    /// Puts into the store what is shipped and what the files hold.
    pub fn carry_out(&self, rules: &StoredRules, filed: Filed) -> Booted {
        let mut booted =
            Booted { diagnostics: filed.odd.iter().map(ToString::to_string).collect(), ..Booted::default() };
        (booted.bad, booted.strangers) = (filed.bad, self.strangers());
        self.seed(rules, &mut booted);
        self.seal_plain(rules, &mut booted);
        self.mirror(rules, filed.good, &mut booted);
        self.switch_off(&mut booted);
        booted
    }

    fn strangers(&self) -> Vec<Hook> {
        strangers(&self.config.agent_hooks.untrusted_dirs)
    }

    fn actor(&self) -> Actor {
        Actor { name: BOOT.to_owned(), at: Timestamp::now() }
    }

    fn change(&self, changes: Vec<HookChange>) -> Result<(), StoreError> {
        if changes.is_empty() { Ok(()) } else { self.store.change(changes, &self.actor()).map(|_| ()) }
    }

    /// The rules that are shipped. One that fails stops no other.
    fn seed(&self, rules: &StoredRules, booted: &mut Booted) {
        let disable = &self.config.agent_hooks.builtin_disable;
        for row in builtin::builtins().iter().flat_map(|builtin| builtin.rows(Timestamp::now())) {
            let stored = rules.hooks.iter().find(|hook| hook.id == row.id);
            let plan = builtin::plan(stored, &row, disable);
            if let Some((have, shipped)) = plan.downgrade {
                tracing::warn!(id = %row.name, have, shipped, "hooks.builtin_downgrade_detected");
            }
            if plan.forced_off {
                tracing::info!(id = %row.name, "hooks.builtin_disabled_by_config");
            }
            let (change, done) = match plan.write {
                Write::Insert(row) => (HookChange::Create(row), "hooks.builtin_seeded"),
                Write::Update(hook) => {
                    (HookChange::Update { hook, if_version: None, action: "updated" }, "hooks.builtin_updated")
                }
                Write::Nothing => continue,
            };
            match self.change(vec![change]) {
                Ok(()) => tracing::info!(id = %row.name, event = row.event.name(), "{done}"),
                // Another process was faster.
                Err(StoreError::Conflict(_)) => {}
                Err(error) => {
                    tracing::error!(id = %row.name, "hooks.builtin_seed_failed: {error}");
                    booted.diagnostics.push(format!("the built-in rule `{}` could not be kept: {error}", row.name));
                }
            }
        }
    }

    /// Secrets that somebody wrote into the table by other means than ours stand there as they were written. Rows of
    /// files are written from their files.
    fn seal_plain(&self, rules: &StoredRules, booted: &mut Booted) {
        for hook in rules.hooks.iter().filter(|hook| hook.file().is_none()) {
            let change = match self.kept(hook.clone()) {
                Ok(kept) if kept == *hook => continue,
                Ok(kept) => {
                    HookChange::Update { hook: Box::new(kept), if_version: Some(hook.version), action: "updated" }
                }
                Err(why) => {
                    booted.diagnostics.push(format!("the secrets of `{}` are not encrypted: {why}", hook.label()));
                    continue;
                }
            };
            match self.change(vec![change]) {
                Ok(()) => tracing::info!(hook_id = %hook.id, "crypto.unencrypted_value_sealed"),
                // Somebody else changed it, and sealed it then.
                Err(StoreError::Conflict(_) | StoreError::NotFound(_)) => {}
                Err(error) => booted
                    .diagnostics
                    .push(format!("the secrets of `{}` could not be encrypted: {error}", hook.label())),
            }
        }
    }

    /// The rules of files stand in the table like others; one that is in no file any more goes.
    fn mirror(&self, rules: &StoredRules, good: Vec<Good>, booted: &mut Booted) {
        let folders: Vec<String> = self.config.agent_hooks.dirs.iter().map(|dir| folder_of(dir)).collect();
        let mut changes: Vec<HookChange> = good.iter().filter_map(|good| self.mirrored(rules, good)).collect();
        booted.files = good.into_iter().map(|good| good.kept).collect();
        // What cannot be read may still be meant.
        if booted.bad.is_empty() {
            let ours = |hook: &AgentHook| {
                let folder = hook.metadata.get(IN_FOLDER).and_then(Value::as_str);
                hook.file().is_some() && folder.is_some_and(|folder| folders.iter().any(|own| own == folder))
            };
            let is_there = |id: &HookId| booted.files.iter().any(|hook| hook.id == *id);
            let gone = rules.hooks.iter().filter(|hook| ours(hook) && !is_there(&hook.id));
            changes.extend(gone.map(|hook| HookChange::Delete(hook.id.clone())));
        }
        if let Err(error) = self.change(changes) {
            let why = format!("the rules of files could not be kept: {error}");
            let mounted = stub(("the rules of files", "host"), &why, Guarded::everything(&GATES));
            booted.stubs.push(Beside { tenant: None, mounted });
            booted.failed.push(why);
        }
    }

    /// What has to change for the row of a rule to be what its file says.
    fn mirrored(&self, rules: &StoredRules, Good { plain, kept }: &Good) -> Option<HookChange> {
        let Some(stored) = rules.hooks.iter().find(|stored| stored.id == plain.id) else {
            return Some(HookChange::Create(Box::new(kept.clone())));
        };
        // Another host's file of this name: its row is for breakers and histories, and serves both.
        let is_others = || stored.metadata.get(IN_FOLDER) != plain.metadata.get(IN_FOLDER);
        if same(&self.opened(stored), plain) || is_others() {
            return None;
        }
        // A reload closes no circuit breaker.
        let hook = AgentHook {
            tripped_at: stored.tripped_at.clone(),
            enabled: kept.enabled && stored.tripped_at.is_none(),
            disabled_reason: stored.tripped_at.as_ref().map(|_| "breaker".to_owned()).unwrap_or_default(),
            created_at: stored.created_at.clone(),
            ..kept.clone()
        };
        Some(HookChange::Update { hook: Box::new(hook), if_version: None, action: "updated" })
    }

    /// The row with its secrets encrypted.
    fn kept(&self, mut hook: AgentHook) -> Result<AgentHook, String> {
        let (id, tenant) = (hook.id.clone(), hook.tenant_id.clone());
        record::map_secrets(&mut hook, |path, text| {
            if text.starts_with("aes-gcm:") {
                Ok(text.to_owned())
            } else {
                self.sealed.seal_value(&id, &tenant, path, text)
            }
        })?;
        Ok(hook)
    }

    /// The row with its secrets as they were written; those that cannot be opened stay as they are.
    fn opened(&self, stored: &AgentHook) -> AgentHook {
        let mut hook = stored.clone();
        let (id, tenant) = (hook.id.clone(), hook.tenant_id.clone());
        let open = |path: &str, text: &str| -> Result<String, Infallible> {
            Ok(self.sealed.open(&id, &tenant, path, text).unwrap_or_else(|_| text.to_owned()))
        };
        match record::map_secrets(&mut hook, open) {
            Ok(()) => hook,
            Err(never) => match never {},
        }
    }

    /// Rows that cannot act on this host, or on any, are switched off, once: commands where the edition has none, and rules
    /// of agents that are left with none, which must not become anybody's.
    fn switch_off(&self, booted: &mut Booted) {
        let Ok(rules) = self.store.rules() else { return };
        let no_commands = self.edition == Edition::Standard;
        let command = |hook: &AgentHook| {
            no_commands && hook.handler_type == HandlerType::Command && hook.source != Source::Builtin
        };
        let lonely = |hook: &AgentHook| hook.scope == HookScope::Agent && hook.agent_ids.is_empty() && !command(hook);
        let count = self.switched_off((&rules, NO_COMMANDS, "hooks.command_hook_auto_disabled"), command, booted);
        if count > 0 {
            tracing::warn!(count, "hooks.command_migration_complete");
            let what = if count == 1 { "command hook was" } else { "command hooks were" };
            booted.diagnostics.push(format!("{count} {what} switched off: this is edition standard"));
        }
        let count = self.switched_off((&rules, NO_AGENTS, "hooks.agent_hook_auto_disabled"), lonely, booted);
        if count > 0 {
            let (what, whose) =
                if count == 1 { ("hook of scope agent was", "its") } else { ("hooks of scope agent were", "their") };
            booted.diagnostics.push(format!("{count} {what} switched off: {whose} agents are gone"));
        }
    }

    /// Switches the rows off that `meant` means. Says how many they were.
    fn switched_off(
        &self,
        (rules, reason, log): (&StoredRules, &str, &str),
        meant: impl Fn(&AgentHook) -> bool,
        booted: &mut Booted,
    ) -> usize {
        let mut count = 0;
        for hook in rules.hooks.iter().filter(|hook| hook.enabled && meant(hook)) {
            let off = AgentHook { enabled: false, disabled_reason: reason.to_owned(), ..hook.clone() };
            let change = HookChange::Update { hook: Box::new(off), if_version: None, action: "disabled" };
            match self.change(vec![change]) {
                Ok(()) => {
                    count += 1;
                    tracing::warn!(hook_id = %hook.id, "{log}");
                }
                Err(error) => booted.diagnostics.push(format!("`{}` could not be switched off: {error}", hook.label())),
            }
        }
        count
    }
}

/// Whether a row is what its file says, but for what the store adds and its breaker.
fn same(stored: &AgentHook, wanted: &AgentHook) -> bool {
    let plain = |hook: &AgentHook| AgentHook {
        version: 0,
        tripped_at: None,
        enabled: hook.enabled || hook.tripped_at.is_some(),
        disabled_reason: String::new(),
        created_at: String::new(),
        updated_at: String::new(),
        created_by: None,
        ..hook.clone()
    };
    plain(stored) == plain(wanted)
}
