//! The rules of a configuration's folders: those that are in order, and what is wrong with the others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::hook::{Family, Hook, OnFailure, Stage};
use pintle_domain::id::{AgentId, HookId, TenantId};
use pintle_domain::json::Value;
use pintle_domain::rule::{AGENT_EVENTS, Edition, HandlerType, IN_FILE, Rule};
use pintle_domain::store::Tenant;
use pintle_egress::Egress;
use pintle_engine::hook_set::Mounted;
use pintle_rules::cache::{ExtraHook, GuardedEvents, stub};
use pintle_rules::condition::compile_matcher;
use pintle_rules::record::{self, Checks, ConfiguredAgent, Lang, NewRow, RecordContext};

use super::folder::passed_over;
use super::meant::IntendedScope;
use super::{RuleFile, read};
use crate::config::{Diagnostic, Location, RulesConfig, commands};
use crate::scripts::check_script;

/// The three checkpoints at which a rule that nobody can read keeps everything shut.
pub const GATES: [CheckpointKind; 3] =
    [CheckpointKind::UserPromptSubmit, CheckpointKind::PreToolUse, CheckpointKind::SubagentStart];

/// The member of `metadata` that names the folder of a rule's file: hosts that share a store need not share it.
pub const IN_FOLDER: &str = "folder";

/// How the origin of a rule begins that comes from a file.
pub(super) const FILE: &str = "file:";

/// The message about a folder that the configuration names.
const NO_FOLDER: &str = "there is no such folder, so no rules are read from it; make it, or take `agent_hooks.dir` out";

/// The message about a file beside rules.
const NO_RULES: &str = "is not read: rules stand in files that end in .toml or .json";

/// A tenant that nobody knows, in the operator's allow-list: no slug is empty.
const UNKNOWN: &str = "";

/// The context that files are read against.
pub struct FileContext<'a> {
    /// The folders, and what requests may reach.
    pub config: &'a RulesConfig,
    /// The edition.
    pub edition: Edition,
    /// The agents of the host.
    pub agents: &'a [AgentId],
    /// All tenants.
    pub tenants: &'a [Tenant],
    /// The rules of the store.
    pub stored: &'a [Rule],
    /// Encrypts the secrets of a row.
    pub seal: &'a dyn Fn(Rule) -> Result<Rule, String>,
}

/// The rules that the folders hold.
#[derive(Default)]
pub struct FiledRules {
    /// The rules that are in order.
    pub good: Vec<GoodRule>,
    /// The rules that are not good.
    pub bad: Vec<FileProblem>,
    /// The findings about what is allowed and probably not meant.
    pub odd: Vec<Diagnostic>,
}

/// A rule that is in order.
pub struct GoodRule {
    /// As it was written.
    pub plain: Rule,
    /// With its secrets encrypted.
    pub kept: Rule,
}

/// A folder, a file or a record that is not in order.
#[derive(Clone, Debug)]
pub struct FileProblem {
    /// The problem, with its place.
    pub diagnostic: Diagnostic,
    origin: String,
    /// The name of the record, or else of what is wrong.
    name: String,
    /// The record; null if it is about more than one.
    record: Value,
    /// The scope that the rule was meant to have.
    meant: IntendedScope,
}

impl FileProblem {
    /// Something is wrong that is about more than one record: every gate stays shut.
    pub fn whole(name: &str, origin: &str, diagnostic: Diagnostic) -> Self {
        let diagnostic = Diagnostic { guard: true, ..diagnostic };
        let meant = IntendedScope::EVERYONE;
        Self { diagnostic, origin: origin.to_owned(), name: name.to_owned(), record: Value::Null, meant }
    }

    /// The problem where the message says all.
    pub fn somewhere(name: &str, origin: &str, message: String) -> Self {
        let place = Location { file: PathBuf::new(), line: 1, column: 1 };
        let diagnostic = Diagnostic { place, path: String::new(), message, nearest: None, guard: true };
        Self::whole(name, origin, diagnostic)
    }

    fn record(file: &str, (record, meant): (&Value, IntendedScope), diagnostic: Diagnostic) -> Self {
        let name = record.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()).unwrap_or(file);
        let (origin, name, record) = (format!("{FILE}{file}"), name.to_owned(), record.clone());
        let mut bad = Self { diagnostic, origin, name, record, meant };
        bad.diagnostic.guard = !bad.guarded().is_empty();
        bad
    }

    /// For a person, on one line.
    pub fn line(&self) -> String {
        match self.diagnostic.place.file.as_os_str().is_empty() {
            true => self.diagnostic.message.clone(),
            false => self.diagnostic.to_string(),
        }
    }

    /// For a program. Where the message says all, the place is that of its origin.
    pub fn placed(mut self) -> Diagnostic {
        if self.diagnostic.place.file.as_os_str().is_empty() {
            self.diagnostic.place.file = PathBuf::from(self.origin);
        }
        self.diagnostic
    }

    /// Whether this was wrong before: where it stands does not matter, a line may have been added above it.
    pub fn is_same(&self, other: &Self) -> bool {
        let of = |bad: &Self| (bad.diagnostic.place.file.clone(), bad.record.clone(), bad.diagnostic.said());
        of(self) == of(other)
    }

    fn text(&self, member: &str) -> &str {
        self.record.get(member).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether `hook`, which was in force, may be what it was to be.
    pub fn may_mean(&self, hook: &Rule) -> bool {
        let of_its_file = hook.file().is_some_and(|file| self.origin == format!("{FILE}{file}"));
        let of_some_file = self.origin.starts_with(FILE);
        !of_some_file || (of_its_file && (self.record.is_null() || self.name == hook.name))
    }

    /// Where it was to act; none if nobody can say.
    fn event(&self) -> Option<CheckpointKind> {
        AGENT_EVENTS.into_iter().find(|event| event.name() == self.text("event"))
    }

    /// The gates that stay shut because of it.
    fn guarded(&self) -> Vec<CheckpointKind> {
        // What its owner switched off guards nothing, nor does what is about agents that are not here.
        if self.record.get("enabled") == Some(&Value::Bool(false)) || self.meant.is_nobody() {
            return Vec::new();
        }
        match self.event() {
            Some(event) => GATES.into_iter().filter(|gate| *gate == event).collect(),
            None => GATES.to_vec(),
        }
    }

    /// The hook that keeps shut what it was to guard, and for which tenant: its own gate, tools and agents as far as
    /// they can be read, else all of them.
    pub fn stub(&self) -> Option<ExtraHook> {
        let guarded = self.guarded();
        (!guarded.is_empty()).then(|| ExtraHook { tenant: self.meant.tenant.clone(), mounted: self.shut(guarded) })
    }

    fn shut(&self, kinds: Vec<CheckpointKind>) -> Mounted {
        let of_its_gate = Some(self.text("matcher")).filter(|pattern| !pattern.is_empty() && self.event().is_some());
        let matcher = of_its_gate.and_then(|pattern| compile_matcher(pattern).ok());
        let guarded = GuardedEvents { kinds, matcher, scope: self.meant.scope.clone() };
        stub((self.name.as_str(), self.origin.as_str()), &self.line(), guarded)
    }

    /// As a listing shows it: at its gates, or where it was to be told.
    pub fn listed(&self) -> Hook {
        let mut hook = Hook { family: Family::Rule, ..(*self.shut(self.guarded()).hook).clone() };
        if let Some(told) = self.event().filter(|event| !GATES.contains(event)) {
            let stage = Stage { timeout: std::time::Duration::ZERO, on_failure: OnFailure::Continue, paired: false };
            hook.stages.set(told, stage);
        }
        hook
    }
}

impl FileContext<'_> {
    /// Reads all folders. A rule of a later one that has the id of an earlier one is none: what a user has is not
    /// changed by what is found in a project.
    pub fn read(&self) -> FiledRules {
        let mut filed = FiledRules::default();
        let mut seen: BTreeMap<HookId, PathBuf> = BTreeMap::new();
        for folder in &self.config.dirs {
            let dir = &folder.dir;
            match read(folder) {
                Ok(files) => files.into_iter().for_each(|file| self.one(dir, file, (&mut filed, &mut seen))),
                Err(why) => {
                    filed.bad.push(FileProblem::somewhere("a folder of rules", &dir.display().to_string(), why))
                }
            }
            filed.odd.extend(overlooked(dir));
        }
        filed
    }

    /// Takes the rules of one file.
    fn one(
        &self,
        dir: &Path,
        RuleFile { name, read }: RuleFile,
        (filed, seen): (&mut FiledRules, &mut BTreeMap<HookId, PathBuf>),
    ) {
        let records = match read {
            Ok(records) => records,
            Err(unread) => {
                filed.bad.push(FileProblem::whole(&name, &format!("{FILE}{name}"), unread.diagnostic()));
                return;
            }
        };
        let file = dir.join(&name);
        for (index, read) in self.judged(&name, records.whole(), &filed.good).into_iter().enumerate() {
            let taken = read.map_err(|bad| bad.refused.message).and_then(|read| {
                let good = self.good(read.hook, (&name, dir))?;
                match seen.get(&good.plain.id) {
                    Some(first) => Err(taken_name(&good.plain.name, first)),
                    None => Ok((good, read.warnings)),
                }
            });
            match taken {
                Ok((good, warnings)) => {
                    seen.insert(good.plain.id.clone(), file.clone());
                    filed.odd.extend(warnings.iter().map(|warning| records.diagnostic(index, warning)));
                    filed.good.push(good);
                }
                Err(why) => {
                    let record = &records.all()[index];
                    let meant = IntendedScope::of(record, self.tenants, self.agents);
                    filed.bad.push(FileProblem::record(&name, (record, meant), records.diagnostic(index, &why)));
                }
            }
        }
    }

    fn good(&self, mut hook: Rule, (file, dir): (&str, &Path)) -> Result<GoodRule, String> {
        if hook.handler_type == HandlerType::Command {
            commands::place_rule(&mut hook.config, dir)?;
        }
        hook.metadata.insert(IN_FILE.to_owned(), Value::from(file));
        hook.metadata.insert(IN_FOLDER.to_owned(), Value::from(folder_of(dir)));
        let kept = (self.seal)(hook.clone())?;
        Ok(GoodRule { plain: hook, kept })
    }

    fn judged(
        &self,
        name: &str,
        whole: &Value,
        good: &[GoodRule],
    ) -> Vec<Result<record::ValidRecord, record::FileRecordError>> {
        let egress = Egress::new(self.config.http_allow.clone());
        let new_row =
            NewRow { id: HookId::fresh(), at: Timestamp::now().to_string(), by: Some(format!("{FILE}{name}")) };
        let known: Vec<ConfiguredAgent> = self.tenants.iter().flat_map(|tenant| self.agents_of(tenant)).collect();
        // Rows of files are counted as they stand in the files.
        let stored = || self.stored.iter().filter(|hook| hook.file().is_none());
        let held = |tenant: &TenantId| {
            let rows = stored().chain(good.iter().map(|good| &good.plain));
            rows.filter(|hook| hook.tenant_id == *tenant && hook.source == pintle_domain::rule::Source::User).count()
        };
        let around = RecordContext {
            tenant: &TenantId::default_tenant(),
            is_master: true,
            edition: self.edition,
            lang: Lang::File,
            agents: &known,
            tenants: self.tenants,
            held: &held,
            new_row: &new_row,
            checks: Checks {
                url: &|tenant, url| {
                    let slug = self.slug(tenant);
                    egress.for_tenant(slug).check_url(url).map(|_| ()).map_err(|why| why.to_string())
                },
                header: &|name, value| pintle_rules::http::check_header(name, value),
                signing_secret: &|secret| {
                    pintle_rules::http::SigningSecret::parse(secret).map(|_| ()).map_err(str::to_owned)
                },
                script: &check_script,
            },
        };
        record::file(name, whole, &around)
    }

    /// The name of a tenant in the operator's allow-list; global hooks have no name there.
    fn slug(&self, tenant: &TenantId) -> Option<&str> {
        let known = || self.tenants.iter().find(|known| known.id == *tenant).map(|known| known.slug.as_str());
        (*tenant != TenantId::sentinel()).then(|| known().unwrap_or(UNKNOWN))
    }

    fn agents_of(&self, tenant: &Tenant) -> impl Iterator<Item = ConfiguredAgent> {
        self.agents.iter().map(|agent| ConfiguredAgent::new(&tenant.id, agent.as_str()))
    }
}

/// The things that `dir` lacks, or has and nobody reads: whoever wrote it believes that it guards something.
fn overlooked(dir: &Path) -> Vec<Diagnostic> {
    let about = |file: &Path, message: &str| {
        let place = Location { file: file.to_owned(), line: 1, column: 1 };
        Diagnostic { place, path: String::new(), message: message.to_owned(), nearest: None, guard: true }
    };
    match dir.try_exists() {
        Ok(false) => vec![about(dir, NO_FOLDER)],
        Ok(true) | Err(_) => passed_over(dir).iter().map(|file| about(file, NO_RULES)).collect(),
    }
}

fn taken_name(name: &str, first: &Path) -> String {
    format!("duplicate hook name {name:?}: {} has it, in a file of the same name; give each its own", first.display())
}

/// The folder as rows name it.
pub fn folder_of(dir: &Path) -> String {
    std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned()).display().to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use pintle_domain::rule::HookScope;
    use pintle_egress::Allow;
    use tempfile::TempDir;

    use super::super::RuleFolder;
    use super::*;

    const RULE: &str = "[[hook]]\nname = 'guard'\nevent = 'pre_tool_use'\nhandler_type = 'command'\nscope = 'tenant'\n\
                        config.command = 'true'\n";

    /// Folders with one file of rules each.
    fn folders(files: &[&str]) -> (TempDir, RulesConfig) {
        let root = tempfile::tempdir().unwrap();
        let one = |(number, text): (usize, &&str)| {
            let dir = root.path().join(number.to_string());
            fs::create_dir(&dir).unwrap();
            fs::write(dir.join("rules.toml"), text).unwrap();
            dir
        };
        let dirs = files.iter().enumerate().map(one).map(RuleFolder::own).collect();
        (root, RulesConfig { dirs, ..RulesConfig::default() })
    }

    fn filed_extra(config: &RulesConfig, stored: &[Rule]) -> FiledRules {
        filed_at(Edition::Lite, config, stored)
    }

    fn filed_at(edition: Edition, config: &RulesConfig, stored: &[Rule]) -> FiledRules {
        let tenant =
            |id: TenantId, slug: &str| Tenant { id, slug: slug.into(), name: slug.into(), created_at: String::new() };
        let acme = TenantId::from("0193a5b0-7000-7000-8000-00000000000a");
        let tenants = [tenant(TenantId::default_tenant(), "default"), tenant(acme, "acme")];
        let agents = [AgentId::from("main")];
        FileContext { config, edition, agents: &agents, tenants: &tenants, stored, seal: &Ok }.read()
    }

    #[test]
    fn what_is_overlooked_is_named() {
        let (root, config) = folders(&[RULE, RULE.replace("guard", "other").as_str()]);
        let second = &config.dirs[1].dir;
        for name in ["more.yaml", "rules.toml.bak", "notes.md", "b.YML"] {
            fs::write(second.join(name), RULE).unwrap();
        }
        fs::write(second.join("THIRD.TOML"), RULE.replace("guard", "third")).unwrap();
        let gone = root.path().join("hook.d");
        let dirs = [config.dirs.as_slice(), &[RuleFolder::own(gone.clone())]].concat();
        let filed = filed_extra(&RulesConfig { dirs, ..config.clone() }, &[]);
        let odd: Vec<String> = filed.odd.iter().map(ToString::to_string).collect();
        let unread = |name: &str| format!("{}:1:1: {NO_RULES}", second.join(name).display());
        let missing = format!("{}:1:1: {NO_FOLDER}", gone.display());
        assert_eq!(odd, [unread("b.YML"), unread("more.yaml"), missing]);
        assert_eq!((filed.good.len(), filed.bad.len()), (3, 0));
    }

    fn said(filed: &FiledRules) -> Vec<String> {
        let bad = filed.bad.iter().map(|bad| bad.line().rsplit_once('/').map(|(_, rest)| rest.to_owned()));
        bad.map(Option::unwrap_or_default).collect()
    }

    #[test]
    fn what_a_user_has_is_not_changed_by_what_is_found() {
        let other = RULE.replace("'true'", "'exit 2'");
        let (root, config) = folders(&[RULE, &other]);
        let filed = filed_extra(&config, &[]);
        let kept: Vec<&Value> = filed.good.iter().map(|good| &good.kept.config["command"]).collect();
        assert_eq!(kept, [&Value::from("true")]);
        let first = root.path().join("0/rules.toml");
        let why = format!(
            "{}:2:8: hook.0.name: duplicate hook name \"guard\": {} has it, in a file of the same name; give each its own",
            root.path().join("1/rules.toml").display(),
            first.display()
        );
        assert_eq!(filed.bad[0].line(), why);
        assert_eq!(filed.bad[0].stub().unwrap().mounted.hook.origin, "file:rules.toml", "its gate stays shut");
    }

    #[test]
    fn what_is_wrong_says_where_and_shuts_what_it_was_to_guard() {
        let check = |text: &str, line: &str, shut: &[CheckpointKind]| {
            let (_root, config) = folders(&[text]);
            let filed = filed_extra(&config, &[]);
            assert_eq!(said(&filed), [line], "{text}");
            let stub = filed.bad[0].stub();
            let kinds: Vec<CheckpointKind> = stub.iter().flat_map(|stub| stub.mounted.hook.stages.kinds()).collect();
            assert_eq!((kinds, filed.bad[0].diagnostic.guard), (shut.to_vec(), !shut.is_empty()), "{text}");
        };
        let bad = RULE.replace("scope", "priorty = 3\nscope");
        let field = |line: usize| {
            format!(
                "rules.toml:{line}:1: hook.0.priorty: invalid request: invalid config: unknown field \"priorty\" \
                 (did you mean \"priority\"?)"
            )
        };
        check(&bad, &field(5), &[CheckpointKind::PreToolUse]);
        check(&bad.replace("scope", "enabled = false\nscope"), &field(5), &[]);
        check(&bad.replace("pre_tool_use", "stop"), &field(5), &[]);
        let unknown = "rules.toml:3:9: hook.0.event: hook: unknown event \"pre_coffee\"";
        check(&RULE.replace("pre_tool_use", "pre_coffee"), unknown, &GATES);
        let gone = "rules.toml:6:13: hook.0.agent_ids: hook: agent not found: \"gone\"";
        let of_agents = |ids: &str| RULE.replace("'tenant'", &format!("'agent'\nagent_ids = [{ids}]"));
        check(&of_agents("'gone'"), gone, &[]);
        check(&of_agents("'gone', 'main'"), gone, &[CheckpointKind::PreToolUse]);
        check("[[hook]\n", "rules.toml:1:8: unclosed array table, expected `]`", &GATES);
        check("x = 1\nx = 2\n", "rules.toml:2:1: duplicate key", &GATES);
    }

    #[test]
    fn an_internal_endpoint_is_for_the_tenants_that_the_operator_names() {
        let http =
            RULE.replace("'command'", "'http'").replace("config.command = 'true'", "config.url = 'https://10.1.2.3/'");
        let (_root, config) =
            folders(&[&http, &http.replace("scope", "tenant = 'acme'\nscope").replace("guard", "other")]);
        let acme = Allow::cidr("10.0.0.0/8", vec![443]).unwrap().for_tenants(&["acme".to_owned()]).unwrap();
        let config = RulesConfig { http_allow: vec![acme], ..config };
        let filed = filed_at(Edition::Standard, &config, &[]);
        assert_eq!(filed.good.iter().map(|good| good.plain.name.as_str()).collect::<Vec<_>>(), ["other"]);
        assert!(filed.bad[0].line().contains("IP 10.1.2.3 is in a blocked range"), "{}", filed.bad[0].line());
    }

    #[test]
    fn a_rule_that_stays_wrong_is_known_wherever_it_stands() {
        let bad = RULE.replace("'tenant'", "'everywhere'");
        let of = |text: &str| {
            let (root, config) = folders(&[text]);
            let mut bad = filed_extra(&config, &[]).bad.remove(0);
            bad.diagnostic.place.file = PathBuf::from("rules.toml");
            drop(root);
            bad
        };
        let before = of(&bad);
        assert!(before.is_same(&of(&format!("# a remark\n{}{bad}", RULE.replace("guard", "new")))));
        assert!(!before.is_same(&of(&bad.replace("guard", "other"))));
        assert!(!before.is_same(&of(&bad.replace("'true'", "'false'"))));
    }

    #[test]
    fn a_tenant_has_room_for_so_many_rules_in_all_its_files() {
        let many = |from: usize| -> String {
            (from..from + 500).map(|number| RULE.replace("guard", &format!("guard {number}"))).collect()
        };
        let (_root, config) = folders(&[&many(0), &many(500)]);
        let filed = filed_extra(&config, &[]);
        assert_eq!((filed.good.len(), filed.bad.len()), (record::MAX_HOOKS, 0));
        // One more, whoever made it.
        let mut own = filed.good[0].plain.clone();
        own.metadata.clear();
        assert_eq!((own.handler_type, own.scope), (HandlerType::Command, HookScope::Tenant));
        let filed = filed_extra(&config, &[own, filed.good[1].kept.clone()]);
        assert_eq!((filed.good.len(), filed.bad.len()), (record::MAX_HOOKS - 1, 1), "{:?}", said(&filed));
    }
}
