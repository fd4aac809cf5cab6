//! What is to be imported: each row of the other program as a hook of this one, or why it cannot be.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::{Object, Value, json};
use pintle_domain::rule::{Edition, HookScope, Rule, Source as Origin};
use pintle_domain::store::StoredRules;
use pintle_egress::Egress;
use pintle_rules::builtin::builtins;
use pintle_rules::handler::Vault as _;
use pintle_rules::http::{SigningSecret, check_header};
use pintle_rules::record::{self, Checks, Lang, NewRow, RecordContext, SEALED};
use serde::Serialize;
use uuid::Uuid;

use super::gates::gates;
use super::people::{People, key_of};
use super::source::{Source, flag, list, moment, number, object, text, word};
use pintle_host::KeyringVault;
use pintle_host::blind::BlindMatcher;
use pintle_host::config::Config;
use pintle_host::scripts::check_script;

/// What the host has to say about records.
pub(super) struct Host<'a> {
    /// The configuration.
    pub(super) config: &'a Config,
    /// The kind of host.
    pub(super) edition: Edition,
    /// Opens and seals secrets.
    pub(super) sealed: &'a KeyringVault,
    /// What requests of hooks may reach.
    pub(super) egress: &'a Egress,
    /// The rules that there are.
    pub(super) rules: &'a StoredRules,
    /// Now.
    pub(super) now: Timestamp,
}

/// What is to be done.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The hooks that are to be made.
    pub(super) hooks: Vec<Rule>,
    /// The ids that are here already.
    pub(super) present: Vec<HookId>,
    /// What cannot be taken over.
    pub(super) left: Vec<Remark>,
    /// What is different from before, or is to be done by hand.
    pub(super) notes: Vec<Remark>,
}

/// Something about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Remark {
    /// The thing.
    pub(super) what: String,
    /// What is to be said of it.
    pub(super) why: String,
}

/// Members of a record that are columns of the other program, too, as far as it has them.
const TEXTS: [&str; 8] = ["event", "handler_type", "scope", "name", "matcher", "if_expr", "on_timeout", "breaker"];

/// Every column of a hook that is read, or that this host says itself of its own.
const COLUMNS: [&str; 26] = [
    "agent_id",
    "agent_ids",
    "breaker",
    "config",
    "created_at",
    "created_by",
    "disabled_reason",
    "enabled",
    "event",
    "handler_type",
    "id",
    "if_expr",
    "matcher",
    "may_rewrite",
    "metadata",
    "name",
    "on_timeout",
    "on_trip",
    "priority",
    "scope",
    "source",
    "tenant_id",
    "timeout_ms",
    "tripped_at",
    "updated_at",
    "version",
];

/// Plans the import of everything in `source`.
pub(super) fn plan(source: &Source, people: &mut People<'_>, host: &Host<'_>) -> Plan {
    let mut planner = Planner { people, host, plan: Plan::default(), seen: BTreeMap::new(), counts: BTreeMap::new() };
    let links = links(source);
    // A database with both has the older layout as a leftover.
    for table in ["hooks", "agent_hooks"] {
        for (i, row) in source.table(table).iter().enumerate() {
            planner.row((table, i + 1), row, &links);
        }
    }
    for agent in source.table("agents") {
        planner.gates(agent);
    }
    planner.rest(source);
    planner.plan
}

/// The agents of each hook in the layout that keeps them apart.
fn links(source: &Source) -> BTreeMap<String, Vec<String>> {
    let mut links: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in source.table("hook_agents") {
        let (hook, agent) = (text(row, &["hook_id"]), text(row, &["agent_id"]));
        if !hook.is_empty() && !agent.is_empty() {
            links.entry(hook.to_lowercase()).or_default().push(agent.to_owned());
        }
    }
    links
}

struct Planner<'a, 'b> {
    people: &'a mut People<'b>,
    host: &'a Host<'a>,
    plan: Plan,
    /// Where each hook was found that there is.
    seen: BTreeMap<HookId, &'static str>,
    /// How many hooks each tenant gets.
    counts: BTreeMap<TenantId, usize>,
}

/// A row of the other program as a record of this one.
struct Draft {
    id: HookId,
    table: &'static str,
    what: String,
    scope: HookScope,
    tenant: String,
    agents: Vec<String>,
    record: Value,
    new_row: (String, Option<String>),
}

impl Planner<'_, '_> {
    fn row(&mut self, (table, number): (&'static str, usize), row: &Object, links: &BTreeMap<String, Vec<String>>) {
        let what = match (text(row, &["name"]), text(row, &["id"])) {
            ("", "") => format!("{table} row {number}"),
            ("", id) => format!("{table} {id}"),
            (name, _) => format!("{table} \"{name}\""),
        };
        if row.is_empty() {
            return self.leave(what, "it is not an object with a hook's settings".into());
        }
        if record::source(text(row, &["source"])) == Some(Origin::Builtin) {
            return self.shipped(what, row);
        }
        let draft = match self.draft(table, row, links) {
            Ok(draft) => Draft { what: what.clone(), ..draft },
            Err(why) => return self.leave(what, why),
        };
        let is_off = draft.record["enabled"].as_bool() == Some(false);
        let differs = changed_meanings(&draft.record);
        if !self.take(draft) {
            return;
        }
        differs.into_iter().for_each(|why| self.note(what.clone(), why.to_owned()));
        if is_off {
            self.note(what.clone(), "it is off, as it was".into());
        }
        if let Err(why) = moment(row, "created_at") {
            self.note(
                what,
                format!("{why}; among hooks of its priority it comes after those that were made before today"),
            );
        }
    }

    /// A hook that the other program ships. One that guarded there and does not here is left out, not merely noted.
    fn shipped(&mut self, what: String, row: &Object) {
        let (name, event) = (text(row, &["name"]), text(row, &["event"]));
        let is_one = |hook: &&Rule| hook.source == Origin::Builtin && hook.name == name && hook.event.name() == event;
        let stored = self.host.rules.hooks.iter().find(is_one).cloned();
        // A store that no host opened yet has no rows of what is shipped.
        let fresh = || builtins().iter().flat_map(|shipped| shipped.rows(self.host.now)).find(|hook| is_one(&hook));
        let own = stored.or_else(fresh);
        let is_on = flag(row, "enabled") == Ok(Some(true));
        match own {
            Some(own) if is_on && !own.enabled => {
                let why =
                    format!("it was on, and the one that this program ships is off: `pintle hooks enable {}`", own.id);
                self.leave(what, why);
            }
            None if is_on => self.leave(what, "it was on, and this program ships none like it".into()),
            Some(_) | None => {
                let on = if is_on { "it was on" } else { "it was off" };
                let why = format!("{on}; this program ships its own: `pintle hooks list` shows whether it is on");
                self.note(what, why);
            }
        }
    }

    /// What a row says.
    fn draft(&self, table: &'static str, row: &Object, links: &BTreeMap<String, Vec<String>>) -> Result<Draft, String> {
        let mut agents = list(row, "agent_ids")?;
        agents.extend(links.get(&text(row, &["id"]).to_lowercase()).into_iter().flatten().cloned());
        if agents.is_empty() {
            agents.extend(Some(word(row, "agent_id")?.to_owned()).filter(|agent| !agent.is_empty()));
        }
        let scope = word(row, "scope")?;
        let scope = HookScope::named(scope)
            .ok_or_else(|| format!("its scope is \"{scope}\"; expected global, tenant or agent"))?;
        let made = moment(row, "created_at").ok().flatten().unwrap_or(self.host.now);
        let by = Some(text(row, &["created_by"]).to_owned()).filter(|by| !by.is_empty());
        Ok(Draft {
            id: id_of(table, row),
            table,
            what: String::new(),
            scope,
            tenant: word(row, "tenant_id")?.to_owned(),
            agents,
            record: record_of(row)?,
            new_row: (made.to_string(), by),
        })
    }

    fn gates(&mut self, agent: &Object) {
        let (id, key) = (text(agent, &["id"]), key_of(agent));
        let gates = match gates(agent, self.host.edition) {
            Ok(gates) => gates,
            Err(why) => return self.leave(format!("quality gates of {key}"), why),
        };
        for gate in gates {
            let name = format!("quality gate {} of {key}", gate.number);
            let mut record = match gate.record {
                Ok(record) => record,
                Err(why) => {
                    self.leave(name, why);
                    continue;
                }
            };
            record["name"] = name.as_str().into();
            let draft = Draft {
                id: HookId::of_name(&format!(
                    "goclaw/quality_gates/{}/{}",
                    if id.is_empty() { key } else { id },
                    gate.number
                )),
                table: "agents",
                what: name.clone(),
                scope: HookScope::Agent,
                tenant: text(agent, &["tenant_id"]).to_owned(),
                agents: vec![if id.is_empty() { key.to_owned() } else { id.to_owned() }],
                record,
                new_row: (self.host.now.to_string(), None),
            };
            if self.take(draft) {
                gate.notes.into_iter().for_each(|note| self.note(name.clone(), note));
            }
        }
    }

    /// Takes one over. Says whether it is new.
    fn take(&mut self, draft: Draft) -> bool {
        match self.seen.get(&draft.id).copied() {
            // Of two layouts the older one is what is left over.
            Some(earlier) if earlier != draft.table => return false,
            Some(_) => {
                self.leave(draft.what, format!("another record has its id, {}, and was imported first", draft.id));
                return false;
            }
            None => {
                self.seen.insert(draft.id.clone(), draft.table);
            }
        }
        if self.host.rules.hooks.iter().any(|hook| hook.id == draft.id) {
            self.plan.present.push(draft.id);
            return false;
        }
        let what = draft.what.clone();
        match self.hook(draft) {
            Ok((hook, warnings)) => {
                *self.counts.entry(hook.tenant_id.clone()).or_default() += 1;
                let blind = BlindMatcher::of_rule(self.host.config, hook.event, &hook.matcher);
                let warnings = warnings.into_iter().chain(blind.map(|blind| blind.sentence()));
                warnings.for_each(|warning| self.note(what.clone(), warning));
                self.plan.hooks.push(hook);
                true
            }
            Err(why) => {
                self.leave(what, why);
                false
            }
        }
    }

    fn hook(&mut self, draft: Draft) -> Result<(Rule, Vec<String>), String> {
        let Draft { id, table: _, what, scope, tenant, agents, mut record, new_row } = draft;
        let tenant = self.people.tenant(scope, &tenant)?;
        if scope == HookScope::Agent {
            let found: Vec<_> = agents.iter().map(|agent| self.people.agent(&tenant, agent)).collect();
            let missing: Vec<&str> =
                found.iter().filter_map(|found| found.as_ref().err().map(String::as_str)).collect();
            let ids: Vec<&String> = found.iter().filter_map(|found| found.as_ref().ok()).collect();
            // A hook that is about nobody must not become one that is about everybody.
            match (ids.is_empty(), missing.is_empty()) {
                (true, true) => return Err("it names no agent".into()),
                (true, false) => return Err(missing.join("; ")),
                (false, true) => {}
                (false, false) => self.note(what, format!("it is about fewer agents: {}", missing.join("; "))),
            }
            record["agent_ids"] = json!(ids);
        }
        let new_row = NewRow { id, at: new_row.0, by: new_row.1 };
        let read = self.read(&record, &tenant, &new_row)?;
        Ok((self.kept(read.hook)?, read.warnings))
    }

    fn read(&self, record: &Value, tenant: &TenantId, new_row: &NewRow) -> Result<record::ValidRecord, String> {
        let global = record["scope"].as_str() == Some(HookScope::Global.word());
        let slug = if global { None } else { self.people.slug(tenant) };
        let home = if global { TenantId::default_tenant() } else { tenant.clone() };
        let egress = self.host.egress.for_tenant(slug);
        let held = |tenant: &TenantId| {
            let own = |hook: &&Rule| hook.tenant_id == *tenant && hook.source == Origin::User;
            self.host.rules.hooks.iter().filter(own).count() + self.counts.get(tenant).copied().unwrap_or_default()
        };
        let around = RecordContext {
            tenant: &home,
            is_master: true,
            edition: self.host.edition,
            lang: Lang::Import,
            agents: &self.people.agents_of(tenant),
            tenants: &self.host.rules.tenants,
            held: &held,
            new_row,
            checks: Checks {
                url: &|_, url| egress.check_url(url).map(drop).map_err(|why| why.to_string()),
                header: &check_header,
                signing_secret: &|secret| SigningSecret::parse(secret).map(drop).map_err(str::to_owned),
                script: &check_script,
            },
        };
        record::read(record, &around).map_err(|refused| refused.message)
    }

    /// The hook as it is kept: what came encrypted stays so if it opens here, everything else that is secret is
    /// encrypted.
    fn kept(&self, mut hook: Rule) -> Result<Rule, String> {
        let (id, tenant) = (hook.id.clone(), hook.tenant_id.clone());
        record::map_secrets(&mut hook, |path, value| {
            if !value.starts_with(SEALED) {
                return self
                    .host
                    .sealed
                    .seal_value(&id, &tenant, path, value)
                    .map_err(|why| format!("its {path}: {why}"));
            }
            match self.host.sealed.open(&id, &tenant, path, value) {
                Ok(_) => Ok(value.to_owned()),
                Err(why) => Err(format!(
                    "its {path}: {why}; set GOCLAW_ENCRYPTION_KEY, or PINTLE_ENCRYPTION_KEYS_OLD, to the key of the other \
                     program"
                )),
            }
        })?;
        Ok(hook)
    }

    /// What is told once, of everything else.
    fn rest(&mut self, source: &Source) {
        for table in ["hooks", "agent_hooks"] {
            let columns = source.table(table).iter().flat_map(Object::iter);
            let unknown = columns.filter(|(name, value)| !COLUMNS.contains(&name.as_str()) && says_something(value));
            let names: BTreeSet<&str> = unknown.map(|(name, _)| name.as_str()).collect();
            if !names.is_empty() {
                let names = names.into_iter().collect::<Vec<_>>().join(", ");
                self.note(table.to_owned(), format!("columns that are not used here: {names}"));
            }
        }
        for row in source.table("tenant_hook_budget") {
            let whose = text(row, &["tenant_id"]);
            let tenant = self.people.tenant(HookScope::Tenant, whose);
            let slug = tenant.as_ref().ok().and_then(|id| self.people.slug(id)).unwrap_or(whose).to_owned();
            let why = match (tenant, number(row, "budget_total")) {
                (Err(why), _) | (Ok(_), Err(why)) => why,
                (Ok(_), Ok(None)) => continue,
                (Ok(_), Ok(Some(total))) => {
                    format!("to have the same here: pintle budget set --tenant {slug} {total}")
                }
            };
            self.note(format!("budget of {slug}"), why);
        }
        for (table, rows) in &source.history {
            if *rows > 0 {
                self.note(table.clone(), format!("{rows} rows of history stay where they are"));
            }
        }
    }

    fn leave(&mut self, what: String, why: String) {
        self.plan.left.push(Remark { what, why });
    }

    fn note(&mut self, what: String, why: String) {
        self.plan.notes.push(Remark { what, why });
    }
}

/// The id of a row here: the same if it is one, else one that follows from it.
fn id_of(table: &str, row: &Object) -> HookId {
    match (Uuid::parse_str(text(row, &["id"])), text(row, &["id"])) {
        (Ok(id), _) => HookId::new(id.to_string()),
        (Err(_), "") => HookId::of_name(&format!("goclaw/{table}/{}", Value::Object(row.clone()))),
        (Err(_), id) => HookId::of_name(&format!("goclaw/{table}/{id}")),
    }
}

/// Whether there is anything in a column.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

/// A row as a record: what it says, and nothing where it says nothing.
///
/// # Errors
/// What it says cannot be read: a default in its place might be a weaker guard.
fn record_of(row: &Object) -> Result<Value, String> {
    let mut record = Object::new();
    for name in TEXTS.into_iter().chain(["on_trip"]) {
        let value = word(row, name)?;
        if !value.is_empty() {
            record.insert(name.to_owned(), value.into());
        }
    }
    for name in ["enabled", "may_rewrite"] {
        record.extend(flag(row, name)?.map(|value| (name.to_owned(), value.into())));
    }
    for name in ["timeout_ms", "priority"] {
        record.extend(number(row, name)?.map(|value| (name.to_owned(), value.into())));
    }
    let mut config = object(row, "config")?;
    if text(row, &["handler_type"]) == "http" {
        name_secrets(&mut config)?;
    }
    record.insert("config".to_owned(), Value::Object(config));
    record.insert("metadata".to_owned(), Value::Object(object(row, "metadata")?));
    Ok(Value::Object(record))
}

/// Says of every header that is encrypted that it is secret: as anything else, its ciphertext would be sent.
fn name_secrets(config: &mut Object) -> Result<(), String> {
    let headers = config.get("headers").and_then(Value::as_object).into_iter().flatten();
    let sealed = headers.filter(|(_, value)| value.as_str().is_some_and(|value| value.starts_with(SEALED)));
    let mut names = list(config, "secret_headers")?;
    names.extend(sealed.map(|(name, _)| name.clone()).filter(|name| !name.eq_ignore_ascii_case("authorization")));
    if !names.is_empty() {
        names.sort();
        names.dedup();
        config.insert("secret_headers".to_owned(), json!(names));
    }
    Ok(())
}

/// What a hook's settings mean here and did not there, as far as a row shows it.
fn changed_meanings(record: &Value) -> Vec<&'static str> {
    let has = |name: &str| record[name].as_str().is_some_and(|text| !text.is_empty());
    let is_at = |events: &[&str]| record["event"].as_str().is_some_and(|event| events.contains(&event));
    let gates = is_at(&["pre_tool_use", "user_prompt_submit", "subagent_start"]);
    let mut differs = Vec::new();
    if has("if_expr") && gates {
        differs.push("its `if_expr` blocks where a member that it names is absent: ask for it with has(…) first");
    }
    // A judge says yes or no; whatever else answers may change the input and add a text.
    let answers = ["script", "command", "http"].iter().any(|kind| record["handler_type"] == *kind);
    if answers && gates {
        differs.push(
            "what it changes counts only as `updatedInput: {toolInput: …}` or `{rawInput: …}`, and with `may_rewrite`",
        );
    }
    if answers && !gates {
        differs.push("it observes: what it adds (`additionalContext`) lands nowhere, and what it changes neither");
    }
    differs
}
