//! What is done with the rules of a store before they come into force: rules that are shipped, those of files, and what
//! an edition does not have.

use std::convert::Infallible;

use jiff::Timestamp;
use pintle_domain::hook::{Hook, HookState};
use pintle_domain::id::{AgentId, HookId};
use pintle_domain::json::Value;
use pintle_domain::rule::{Edition, HandlerType, HookScope, Rule, Source};
use pintle_domain::store::{Actor, RuleChange, RuleStore, StoreError, StoredRules};
use pintle_rule_runtime::KeyringVault;
use pintle_rules::builtin::{self, SeedWrite};
use pintle_rules::cache::{ExtraHook, GuardedEvents, stub};
use pintle_rules::handler::Vault as _;
use pintle_rules::record;

use crate::config::Config;
use crate::rule_files::{
    FileContext, FileProblem, FiledRules, GATES, GoodRule, IN_FOLDER, RuleFolder, folder_of, mounted, strangers,
};

/// Who does this, in the change log.
const BOOT: &str = "system:boot";

/// Why a row is off that its edition does not have.
const NO_COMMANDS: &str = "edition";

/// Why a row is off that is about agents and has none.
const NO_AGENTS: &str = "no_agents";

/// The report of what a boot found.
#[derive(Default)]
pub struct SyncReport {
    /// The problems beside rules of files, and the oddities of those: a line each, for the operator.
    pub diagnostics: Vec<String>,
    /// The rules of files.
    pub files: Vec<Rule>,
    /// Rules of files that are not in order.
    pub bad: Vec<FileProblem>,
    /// Rules of files that nobody accepted.
    pub strangers: Vec<Hook>,
    /// The hooks that keep gates shut because something else than a rule of a file is wrong.
    pub stubs: Vec<ExtraHook>,
    /// Why.
    pub failed: Vec<String>,
    /// The rules of the store as they were read before anything was done, if they could be.
    pub read: Option<StoredRules>,
}

impl SyncReport {
    /// Everything that is kept shut, and everything that is not asked because nobody accepted it.
    pub fn unasked(&self) -> Vec<ExtraHook> {
        let shut = self.stubs.iter().cloned().chain(self.bad.iter().filter_map(FileProblem::stub));
        let strangers = self.strangers.iter().map(|stranger| ExtraHook { tenant: None, mounted: mounted(stranger) });
        shut.chain(strangers).collect()
    }

    /// The problems that leave something unguarded, or shut.
    pub fn unguarded(&self) -> impl Iterator<Item = String> {
        let bad = self.bad.iter().filter(|bad| bad.diagnostic.guard).map(FileProblem::line);
        let guards = |hook: &&Hook| {
            hook.state == HookState::Untrusted && GATES.iter().any(|gate| hook.stages.get(*gate).is_some())
        };
        let strangers = self.strangers.iter().filter(guards).map(|hook| format!("{} (untrusted)", hook.name));
        bad.chain(strangers).chain(self.failed.iter().cloned())
    }

    /// Everything to tell, a line each.
    pub fn lines(&self) -> Vec<String> {
        self.bad
            .iter()
            .map(FileProblem::line)
            .chain(self.failed.iter().cloned())
            .chain(self.diagnostics.iter().cloned())
            .collect()
    }
}

/// Brings the store's rules up to date with what is shipped, with the files of `config` and with the edition.
pub struct RuleSync<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The edition.
    pub edition: Edition,
    /// Where the rules are.
    pub store: &'a dyn RuleStore,
    /// Encrypts secrets of files.
    pub sealed: &'a KeyringVault,
    /// The agents of the host.
    pub agents: Vec<AgentId>,
}

impl RuleSync<'_> {
    /// Does all of it. What fails leaves the rest as it is.
    pub fn run(&self) -> SyncReport {
        match self.store.rules() {
            Ok(rules) if rules.shut.is_none() => {
                let sync_report = self.carry_out(&rules, self.read(&rules));
                SyncReport { read: Some(rules), ..sync_report }
            }
            // It is not the store that was known: nothing is written there. The rule cache shuts the gates.
            Ok(rules) => SyncReport { strangers: self.strangers(), read: Some(rules), ..SyncReport::default() },
            // The rule cache says so, and shuts the gates. It opens them once the store is back, but not without these.
            Err(error) => {
                let why = |folder: &RuleFolder| {
                    let dir = folder.dir.display().to_string();
                    let why = format!("the rules of {dir} were not read, since the store could not be: {error}");
                    FileProblem::somewhere("the rules of files", &dir, format!("{why}; start Pintle again"))
                };
                let bad = self.config.agent_hooks.dirs.iter().map(why).collect();
                SyncReport { bad, strangers: self.strangers(), ..SyncReport::default() }
            }
        }
    }

    /// Reads the files. Nothing else happens.
    pub fn read(&self, rules: &StoredRules) -> FiledRules {
        let reader = FileContext {
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
            filed.bad.push(FileProblem::somewhere("the rules of a changed file", "host", why.clone()));
        }
        filed
    }

    /// Puts into the store what is shipped and what the files hold.
    pub fn carry_out(&self, rules: &StoredRules, filed: FiledRules) -> SyncReport {
        let mut sync_report =
            SyncReport { diagnostics: filed.odd.iter().map(ToString::to_string).collect(), ..SyncReport::default() };
        (sync_report.bad, sync_report.strangers) = (filed.bad, self.strangers());
        self.seed(rules, &mut sync_report);
        self.seal_plain(rules, &mut sync_report);
        self.mirror(rules, filed.good, &mut sync_report);
        self.switch_off(rules, &mut sync_report);
        sync_report
    }

    fn strangers(&self) -> Vec<Hook> {
        strangers(&self.config.agent_hooks.untrusted_dirs)
    }

    fn actor(&self) -> Actor {
        Actor { name: BOOT.to_owned(), at: Timestamp::now(), reason: String::new() }
    }

    fn change(&self, changes: Vec<RuleChange>) -> Result<(), StoreError> {
        if changes.is_empty() { Ok(()) } else { self.store.change(changes, &self.actor()).map(|_| ()) }
    }

    /// The rules that are shipped. One that fails stops no other.
    fn seed(&self, rules: &StoredRules, sync_report: &mut SyncReport) {
        let disable = &self.config.agent_hooks.builtin_disable;
        for row in builtin::builtins().iter().flat_map(|builtin| builtin.rows(Timestamp::now())) {
            // What somebody else made of it is not gone over.
            if is_doubted(rules, &row) {
                continue;
            }
            let stored = rules.hooks.iter().find(|hook| hook.id == row.id);
            let plan = builtin::plan(stored, &row, disable);
            if let Some((have, shipped)) = plan.downgrade {
                tracing::warn!(id = %row.name, have, shipped, "hooks.builtin_downgrade_detected");
            }
            if plan.forced_off {
                tracing::info!(id = %row.name, "hooks.builtin_disabled_by_config");
            }
            let (change, done) = match plan.write {
                SeedWrite::Insert(row) => (RuleChange::Create(row), "hooks.builtin_seeded"),
                SeedWrite::Update(hook) => {
                    (RuleChange::Update { hook, if_version: None, action: "updated" }, "hooks.builtin_updated")
                }
                SeedWrite::Nothing => continue,
            };
            match self.change(vec![change]) {
                Ok(()) => tracing::info!(id = %row.name, event = row.event.name(), "{done}"),
                // Another process was faster.
                Err(StoreError::Conflict(_)) => {}
                Err(error) => {
                    tracing::error!(id = %row.name, "hooks.builtin_seed_failed: {error}");
                    sync_report
                        .diagnostics
                        .push(format!("the built-in rule `{}` could not be kept: {error}", row.name));
                }
            }
        }
    }

    /// Secrets that somebody wrote into the table by other means than ours stand there as they were written. Rows of
    /// files are written from their files.
    fn seal_plain(&self, rules: &StoredRules, sync_report: &mut SyncReport) {
        let is_meant = |hook: &&Rule| hook.file().is_none() && !is_doubted(rules, hook);
        for hook in rules.hooks.iter().filter(is_meant) {
            let change = match self.kept(hook.clone()) {
                Ok(kept) if kept == *hook => continue,
                Ok(kept) => {
                    RuleChange::Update { hook: Box::new(kept), if_version: Some(hook.version), action: "updated" }
                }
                Err(why) => {
                    sync_report.diagnostics.push(format!("the secrets of `{}` are not encrypted: {why}", hook.label()));
                    continue;
                }
            };
            match self.change(vec![change]) {
                Ok(()) => tracing::info!(hook_id = %hook.id, "crypto.unencrypted_value_sealed"),
                // Somebody else changed it, and sealed it then.
                Err(StoreError::Conflict(_) | StoreError::NotFound(_)) => {}
                Err(error) => sync_report
                    .diagnostics
                    .push(format!("the secrets of `{}` could not be encrypted: {error}", hook.label())),
            }
        }
    }

    /// The rules of files stand in the table like others; one that is in no file any more goes.
    fn mirror(&self, rules: &StoredRules, good: Vec<GoodRule>, sync_report: &mut SyncReport) {
        let folders: Vec<String> = self.config.agent_hooks.dirs.iter().map(|folder| folder_of(&folder.dir)).collect();
        let mut changes: Vec<RuleChange> = good.iter().filter_map(|good| self.mirrored(rules, good)).collect();
        sync_report.files = good.into_iter().map(|good| good.kept).collect();
        // What cannot be read may still be meant.
        if sync_report.bad.is_empty() {
            let ours = |hook: &Rule| {
                let folder = hook.metadata.get(IN_FOLDER).and_then(Value::as_str);
                hook.file().is_some() && folder.is_some_and(|folder| folders.iter().any(|own| own == folder))
            };
            let is_there = |id: &HookId| sync_report.files.iter().any(|hook| hook.id == *id);
            let gone = rules.hooks.iter().filter(|hook| ours(hook) && !is_there(&hook.id));
            changes.extend(gone.map(|hook| RuleChange::delete(hook.id.clone())));
        }
        if let Err(error) = self.change(changes) {
            let why = format!("the rules of files could not be kept: {error}");
            let mounted = stub(("the rules of files", "host"), &why, GuardedEvents::everything(&GATES));
            sync_report.stubs.push(ExtraHook { tenant: None, mounted });
            sync_report.failed.push(why);
        }
    }

    /// The change that makes the row of a rule what its file says.
    fn mirrored(&self, rules: &StoredRules, GoodRule { plain, kept }: &GoodRule) -> Option<RuleChange> {
        let Some(stored) = rules.hooks.iter().find(|stored| stored.id == plain.id) else {
            return Some(RuleChange::Create(Box::new(kept.clone())));
        };
        // Another host's file of this name: its row is for breakers and histories, and serves both.
        let is_others = || stored.metadata.get(IN_FOLDER) != plain.metadata.get(IN_FOLDER);
        if (same(&self.opened(stored), plain) && !is_doubted(rules, stored)) || is_others() {
            return None;
        }
        // A reload closes no circuit breaker.
        let tripped_at = stored.tripped_at.clone().filter(|_| !is_doubted(rules, stored));
        let hook = Rule {
            enabled: kept.enabled && tripped_at.is_none(),
            disabled_reason: tripped_at.as_ref().map(|_| "breaker".to_owned()).unwrap_or_default(),
            tripped_at,
            created_at: stored.created_at.clone(),
            ..kept.clone()
        };
        Some(RuleChange::Update { hook: Box::new(hook), if_version: None, action: "updated" })
    }

    /// The row with its secrets encrypted.
    fn kept(&self, mut hook: Rule) -> Result<Rule, String> {
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
    fn opened(&self, stored: &Rule) -> Rule {
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
    fn switch_off(&self, rules: &StoredRules, sync_report: &mut SyncReport) {
        let changed = match self.store.epoch() {
            // What was read is what is there, as at most starts.
            Ok(epoch) if epoch == rules.epoch => None,
            Ok(_) | Err(_) => match self.store.rules() {
                Ok(changed) => Some(changed),
                Err(_) => return,
            },
        };
        let rules = changed.as_ref().unwrap_or(rules);
        let in_order = || rules.hooks.iter().filter(|hook| !is_doubted(rules, hook));
        let no_commands = self.edition == Edition::Standard;
        let command =
            |hook: &Rule| no_commands && hook.handler_type == HandlerType::Command && hook.source != Source::Builtin;
        let lonely = |hook: &Rule| hook.scope == HookScope::Agent && hook.agent_ids.is_empty() && !command(hook);
        let count = self.switched_off(in_order().filter(|hook| command(hook)), &OffReason::COMMANDS, sync_report);
        if count > 0 {
            tracing::warn!(count, "hooks.command_migration_complete");
            let what = if count == 1 { "command hook was" } else { "command hooks were" };
            sync_report.diagnostics.push(format!("{count} {what} switched off: this is edition standard"));
        }
        let count = self.switched_off(in_order().filter(|hook| lonely(hook)), &OffReason::AGENTS, sync_report);
        if count > 0 {
            let (what, whose) =
                if count == 1 { ("hook of scope agent was", "its") } else { ("hooks of scope agent were", "their") };
            sync_report.diagnostics.push(format!("{count} {what} switched off: {whose} agents are gone"));
        }
    }

    /// Switches those of `rows` off that are on. Says how many they were.
    fn switched_off<'r>(
        &self,
        rows: impl Iterator<Item = &'r Rule>,
        why: &OffReason,
        sync_report: &mut SyncReport,
    ) -> usize {
        let OffReason { reason, log } = why;
        let mut count = 0;
        for hook in rows.filter(|hook| hook.enabled) {
            let off = Rule { enabled: false, disabled_reason: (*reason).to_owned(), ..hook.clone() };
            let change = RuleChange::Update { hook: Box::new(off), if_version: None, action: "disabled" };
            match self.change(vec![change]) {
                Ok(()) => {
                    count += 1;
                    tracing::warn!(hook_id = %hook.id, "{log}");
                }
                Err(error) => {
                    sync_report.diagnostics.push(format!("`{}` could not be switched off: {error}", hook.label()))
                }
            }
        }
        count
    }
}

/// Whether the row of a rule is not as Pintle left it.
fn is_doubted(rules: &StoredRules, hook: &Rule) -> bool {
    rules.doubts.iter().any(|doubt| doubt.hook == hook.id)
}

/// Why rows are switched off: as they keep it, and as the log has it.
struct OffReason {
    reason: &'static str,
    log: &'static str,
}

impl OffReason {
    const COMMANDS: Self = Self { reason: NO_COMMANDS, log: "hooks.command_hook_auto_disabled" };
    const AGENTS: Self = Self { reason: NO_AGENTS, log: "hooks.agent_hook_auto_disabled" };
}

/// Whether a row is what its file says, but for what the store adds and its breaker.
fn same(stored: &Rule, wanted: &Rule) -> bool {
    let plain = |hook: &Rule| Rule {
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
