//! What is done with the rules of a store before they come into force: rules that are shipped, those of files, and what
//! an edition does not have.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;

use dialects::agent::builtin::{self, Write};
use dialects::agent::condition::compile_matcher;
use dialects::agent::record::{self, Around, Birth, Checks, KnownAgent, Lang};
use domain::agent_hook::{AgentHook, Edition, HandlerType, IN_FILE, Source};
use domain::checkpoint::CheckpointKind;
use domain::id::{AgentId, HookId, TenantId};
use domain::store::{Actor, HookChange, HookStore, StoreError, StoredRules, Tenant};
use engine::egress::Egress;
use engine::handlers::agent::Vault as _;
use engine::rulebook::stub;
use engine::set::Mounted;
use jiff::Timestamp;
use serde_json::Value;

use crate::config::Config;
use crate::rule_files::{self, RuleFile};
use crate::rules::{Sealed, check_script};

/// Who does this, in the change log.
const BOOT: &str = "system:boot";

/// Why a row is off that its edition does not have.
const NO_COMMANDS: &str = "edition";

/// The three checkpoints at which a rule that nobody can read keeps everything shut.
const GATES: [CheckpointKind; 3] =
    [CheckpointKind::UserPromptSubmit, CheckpointKind::PreToolUse, CheckpointKind::SubagentStart];

/// What a boot found wrong.
#[derive(Default)]
pub(crate) struct Booted {
    /// A line each, for the operator.
    pub diagnostics: Vec<String>,
    /// The rules of files.
    pub files: Vec<AgentHook>,
    /// What is kept shut because its rule cannot be read.
    pub stubs: Vec<Mounted>,
}

/// Brings the store's rules up to date with what is shipped, with the files of `config` and with the edition.
pub(crate) struct Boot<'a> {
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
    pub(crate) fn run(&self) -> Booted {
        let mut booted = Booted::default();
        if let Some(why) = &self.config.agent_hooks.changed {
            booted.diagnostics.push(why.clone());
            booted.stubs.push(stub("the rules of a changed file", why, &GATES, None));
        }
        let rules = match self.store.rules() {
            Ok(rules) => rules,
            // The rulebook says so, and shuts the gates.
            Err(_) => return booted,
        };
        self.seed(&rules, &mut booted);
        self.mirror(&rules, &mut booted);
        self.take_commands_out(&mut booted);
        booted
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
        for id in disable {
            if builtin::mutable_fields(id).is_none() {
                booted.diagnostics.push(format!("agent_hooks.builtin_disable: there is no built-in rule `{id}`"));
            }
        }
    }

    /// The rules of files stand in the table like others; one that is in no file any more goes.
    fn mirror(&self, rules: &StoredRules, booted: &mut Booted) {
        let mut wanted: BTreeMap<HookId, AgentHook> = BTreeMap::new();
        let mut unread = false;
        let folders: Vec<String> = self.config.agent_hooks.dirs.iter().map(|dir| folder_of(dir)).collect();
        for dir in &self.config.agent_hooks.dirs {
            match rule_files::read(dir) {
                Ok(files) => {
                    for file in files {
                        unread |= !self.one(rules, dir, file, (&mut wanted, booted));
                    }
                }
                Err(why) => {
                    unread = true;
                    booted.stubs.push(stub("a folder of rules", &why, &GATES, None));
                    booted.diagnostics.push(why);
                }
            }
        }
        let mut changes = Vec::new();
        for (id, hook) in wanted.iter().filter(|_| self.config.agent_hooks.changed.is_none()) {
            let stored = rules.hooks.iter().find(|stored| stored.id == *id);
            let plain = hook;
            let hook = match self.kept(hook.clone()) {
                Ok(hook) => hook,
                Err(why) => {
                    let why = format!("{}: {why}", hook.label());
                    booted.stubs.push(stub(hook.label(), &why, &[hook.event], None));
                    booted.diagnostics.push(why);
                    continue;
                }
            };
            booted.files.push(hook.clone());
            match stored {
                None => changes.push(HookChange::Create(Box::new(hook))),
                Some(stored) if same(&self.opened(stored), plain) => {}
                // Another host's file of this name: its row is for breakers and histories, and serves both.
                Some(stored) if stored.metadata.get(IN_FOLDER) != plain.metadata.get(IN_FOLDER) => {}
                Some(stored) => {
                    // A reload closes no circuit breaker.
                    let hook = AgentHook {
                        tripped_at: stored.tripped_at.clone(),
                        enabled: hook.enabled && stored.tripped_at.is_none(),
                        disabled_reason: stored.tripped_at.as_ref().map(|_| "breaker".to_owned()).unwrap_or_default(),
                        created_at: stored.created_at.clone(),
                        ..hook
                    };
                    changes.push(HookChange::Update { hook: Box::new(hook), if_version: None, action: "updated" });
                }
            }
        }
        // What cannot be read may still be meant.
        if !unread && self.config.agent_hooks.changed.is_none() {
            let ours = |hook: &AgentHook| {
                let folder = hook.metadata.get(IN_FOLDER).and_then(Value::as_str);
                hook.file().is_some() && folder.is_some_and(|folder| folders.iter().any(|own| own == folder))
            };
            let gone = rules.hooks.iter().filter(|hook| ours(hook) && !wanted.contains_key(&hook.id));
            changes.extend(gone.map(|hook| HookChange::Delete(hook.id.clone())));
        }
        if let Err(error) = self.change(changes) {
            let why = format!("the rules of files could not be kept: {error}");
            booted.stubs.push(stub("the rules of files", &why, &GATES, None));
            booted.diagnostics.push(why);
        }
    }

    /// Takes the rules of one file. Says whether all of it could be read.
    fn one(
        &self,
        rules: &StoredRules,
        dir: &Path,
        file: RuleFile,
        (wanted, booted): (&mut BTreeMap<HookId, AgentHook>, &mut Booted),
    ) -> bool {
        let document = match file.read {
            Ok(document) => document,
            Err(why) => {
                booted.stubs.push(stub(&file.name, &why, &GATES, None));
                booted.diagnostics.push(why);
                return false;
            }
        };
        let known = self.known(&rules.tenants);
        let parts = Rests { known: &known, tenants: &rules.tenants };
        let raw: Vec<Value> =
            record::records(&document).map(|all| all.into_iter().cloned().collect()).unwrap_or_default();
        let mut all = true;
        for read in self.read(&file.name, &document, &parts) {
            match read {
                Ok(read) => {
                    for warning in &read.warnings {
                        booted.diagnostics.push(format!("{}: {warning}", dir.join(&file.name).display()));
                    }
                    let mut hook = read.hook;
                    hook.metadata.insert(IN_FILE.to_owned(), Value::from(file.name.as_str()));
                    hook.metadata.insert(IN_FOLDER.to_owned(), Value::from(folder_of(dir)));
                    wanted.insert(hook.id.clone(), hook);
                }
                Err(bad) => {
                    let why = format!("{}: {bad}", dir.join(&file.name).display());
                    booted.stubs.extend(in_place_of(raw.get(bad.index), &file.name, &why));
                    booted.diagnostics.push(why);
                    all = false;
                }
            }
        }
        all
    }

    fn read(&self, name: &str, document: &Value, rests: &Rests<'_>) -> Vec<Result<record::Read, record::BadRecord>> {
        let egress = Egress::new(self.config.agent_hooks.http_allow.clone());
        let birth = Birth { id: HookId::fresh(), at: Timestamp::now().to_string(), by: Some(format!("file:{name}")) };
        let around = Around {
            tenant: &TenantId::default_tenant(),
            is_master: true,
            edition: self.edition,
            lang: Lang::File,
            agents: rests.known,
            tenants: rests.tenants,
            held: &|_| 0,
            birth: &birth,
            checks: Checks {
                url: &|tenant, url| {
                    let slug = rests.slug(tenant);
                    egress.for_tenant(slug).check_url(url).map(|_| ()).map_err(|why| why.to_string())
                },
                header: &|name, value| engine::handlers::http::check_header(name, value),
                signing_secret: &|secret| {
                    engine::handlers::http::SigningSecret::parse(secret).map(|_| ()).map_err(str::to_owned)
                },
                script: &check_script,
            },
        };
        record::file(name, document, &around)
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

    fn known(&self, tenants: &[Tenant]) -> Vec<KnownAgent> {
        let of = |tenant: &Tenant| {
            self.agents.iter().map(|agent| KnownAgent::new(&tenant.id, agent.as_str())).collect::<Vec<_>>()
        };
        tenants.iter().flat_map(of).collect()
    }

    /// On an edition without commands their rows are switched off, once.
    fn take_commands_out(&self, booted: &mut Booted) {
        if self.edition != Edition::Standard {
            return;
        }
        let Ok(rules) = self.store.rules() else { return };
        let command = |hook: &&AgentHook| {
            hook.handler_type == HandlerType::Command && hook.enabled && hook.source != Source::Builtin
        };
        let mut count = 0_usize;
        for hook in rules.hooks.iter().filter(command) {
            let off = AgentHook { enabled: false, disabled_reason: NO_COMMANDS.to_owned(), ..hook.clone() };
            let change = HookChange::Update { hook: Box::new(off), if_version: None, action: "disabled" };
            match self.change(vec![change]) {
                Ok(()) => {
                    count += 1;
                    tracing::warn!(hook_id = %hook.id, "hooks.command_hook_auto_disabled");
                }
                Err(error) => booted.diagnostics.push(format!("`{}` could not be switched off: {error}", hook.label())),
            }
        }
        if count > 0 {
            tracing::warn!(count, "hooks.command_migration_complete");
            booted.diagnostics.push(format!("{count} command hooks were switched off: this is edition standard"));
        }
    }
}

/// The member of `metadata` that names the folder of a rule's file: hosts that share a store need not share it.
const IN_FOLDER: &str = "folder";

fn folder_of(dir: &Path) -> String {
    std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned()).display().to_string()
}

/// What files are read against beside the configuration.
struct Rests<'a> {
    known: &'a [KnownAgent],
    tenants: &'a [Tenant],
}

impl Rests<'_> {
    /// What a tenant is called in the operator's allow-list; global hooks have no name there, and no slug is empty.
    fn slug(&self, tenant: &TenantId) -> Option<&str> {
        let known = || self.tenants.iter().find(|known| known.id == *tenant).map(|known| known.slug.as_str());
        (*tenant != TenantId::sentinel()).then(|| known().unwrap_or_default())
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

/// What keeps shut what a bad record was to guard: its own gate and tools as far as they can be read, else all of them.
fn in_place_of(raw: Option<&Value>, file: &str, why: &str) -> Option<Mounted> {
    let text = |name: &str| raw.and_then(|raw| raw.get(name)).and_then(Value::as_str).unwrap_or_default();
    let event = domain::agent_hook::AGENT_EVENTS.into_iter().find(|event| event.name() == text("event"));
    let name = if text("name").is_empty() { file } else { text("name") };
    let matcher = Some(text("matcher")).filter(|pattern| !pattern.is_empty());
    let matcher = matcher.and_then(|pattern| compile_matcher(pattern).ok());
    match event {
        Some(event) if !GATES.contains(&event) => None,
        Some(event) => Some(stub(name, why, &[event], matcher)),
        None => Some(stub(name, why, &GATES, None)),
    }
}
