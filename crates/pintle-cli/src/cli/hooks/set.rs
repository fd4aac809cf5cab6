//! `pintle hooks set HOOK KEY=VALUE…`: other settings for a rule.

use clap::Args;
use pintle_domain::json::{Object, Value, json};
use pintle_domain::nearest::nearest;
use pintle_rules::admin::{Caller, RuleAdmin, UpdatedRule};

use super::super::identity::may_seal;
use super::super::{Global, terminal};
use super::stored::{called, find, json, refused, switched, text, warn, warn_blind, with_admin_of};
use crate::error::CliError;
use crate::operator;
use pintle_host::host::load;

/// Flags of `hooks set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// The hook: its id, or its name if only one has it
    #[arg(value_name = "HOOK")]
    hook: String,
    /// What to change, such as timeout_ms=2000 or config.url=https://…; `KEY=` clears
    #[arg(value_name = "KEY=VALUE", required = true)]
    changes: Vec<String>,
    /// With enabled=false: why, for the change log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print the id, the new version and the warnings as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(global: &Global, args: &SetArgs) -> Result<u8, CliError> {
    operator::require()?;
    may_seal(global)?;
    let changes: Vec<Change<'_>> = args.changes.iter().map(|text| Change::read(text)).collect::<Result<_, _>>()?;
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let config = loaded.config.clone();
    let Done { hook, now, updated, toggled } = with_admin_of(env, loaded, async |rule_admin, by| {
        let hook = find(rule_admin, by, &args.hook).await?;
        set((rule_admin, by), hook, &changes, args.reason.as_deref().unwrap_or_default()).await
    })?;
    if args.json {
        let id = text(&hook, "id");
        let mut said = json!({"hookId": id});
        if let Some(updated) = updated {
            said["version"] = updated.version.into();
            said["warnings"] = updated.warnings.into_iter().collect();
        }
        if let Some(enabled) = toggled {
            said["enabled"] = enabled.into();
        }
        terminal::say(&json(&said)?)?;
        return Ok(0);
    }
    if now["enabled"] == true {
        warn_blind(&config, &now);
    }
    if let Some(updated) = updated {
        warn(&updated.warnings);
        terminal::say(&format!("{} is version {} now\n", called(&hook), updated.version))?;
    }
    if let Some(enabled) = toggled {
        terminal::say(&format!("{}\n", switched(&hook, enabled)))?;
    }
    Ok(0)
}

/// What was done with a hook.
struct Done {
    /// As it was.
    hook: Value,
    /// As it is.
    now: Value,
    /// Its other settings, if any were set.
    updated: Option<UpdatedRule>,
    /// Whether it acts now, if it was switched.
    toggled: Option<bool>,
}

/// Sets what `changes` say. `enabled` is the switch that `hooks enable` and `hooks disable` are: an update would read it
/// as unchanged on a hook whose circuit breaker is open, and close the breaker.
async fn set(
    (rule_admin, by): (&RuleAdmin, &Caller),
    hook: Value,
    changes: &[Change<'_>],
    reason: &str,
) -> Result<Done, CliError> {
    let mut updates = updates(&hook, changes)?;
    let switch = updates.shift_remove("enabled").and_then(|enabled| enabled.as_bool());
    if !reason.is_empty() && switch != Some(false) {
        return Err(CliError::usage("--reason says why a hook is switched off: it goes with enabled=false"));
    }
    let id = text(&hook, "id").to_owned();
    let mut done = Done { now: Value::Null, hook, updated: None, toggled: None };
    // What is no longer to act is off before anything else changes; what is to act is as it will be first.
    if switch == Some(false) {
        done.toggled = Some(rule_admin.switch(by, &id, false, reason).await.map_err(refused)?);
    }
    if !updates.is_empty() {
        // What is changed within `config` was read just now: nobody else's change in between is lost.
        let version = done.hook["version"].as_u64().and_then(|version| u32::try_from(version).ok());
        let version = version.filter(|_| done.toggled.is_none());
        done.updated = Some(rule_admin.update(by, &id, &Value::Object(updates), version).await.map_err(refused)?);
    }
    if switch == Some(true) {
        done.toggled = Some(rule_admin.toggle(by, &id, true).await.map_err(refused)?);
    }
    done.now = find(rule_admin, by, &id).await?;
    Ok(done)
}

/// One `KEY=VALUE`.
struct Change<'a> {
    key: &'a str,
    /// The member within the object that `key` names.
    within: Vec<&'a str>,
    value: &'a str,
}

/// What a member of a record is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Flag,
    Object,
    Agents,
}

/// What can be set.
const MEMBERS: [(&str, Kind); 17] = [
    ("name", Kind::Text),
    ("event", Kind::Text),
    ("handler_type", Kind::Text),
    ("scope", Kind::Text),
    ("agent_ids", Kind::Agents),
    ("tenant_id", Kind::Text),
    ("config", Kind::Object),
    ("matcher", Kind::Text),
    ("if_expr", Kind::Text),
    ("timeout_ms", Kind::Number),
    ("on_timeout", Kind::Text),
    ("priority", Kind::Number),
    ("enabled", Kind::Flag),
    ("may_rewrite", Kind::Flag),
    ("breaker", Kind::Text),
    ("on_trip", Kind::Text),
    ("metadata", Kind::Object),
];

/// Members of `config` that are texts, whatever they look like. Values of headers are texts, too.
const TEXTS: [&str; 9] =
    ["command", "cwd", "url", "signing_secret", "prompt_template", "model", "provider", "on_injection", "source"];

impl<'a> Change<'a> {
    fn read(text: &'a str) -> Result<Self, CliError> {
        let Some((path, value)) = text.split_once('=').filter(|(path, _)| !path.is_empty()) else {
            return Err(CliError::usage(format!("\"{text}\" is not a KEY=VALUE"))
                .hint("such as priority=10, or matcher=^exec$"));
        };
        // Names of headers have no dots in them, and nothing else goes deeper.
        let mut steps = path.split('.');
        let key = steps.next().unwrap_or_default();
        let within: Vec<&str> = steps.collect();
        let kind = kind(key)?;
        if within.iter().any(|step| step.is_empty()) || (kind != Kind::Object && !within.is_empty()) {
            return Err(CliError::usage(format!("there is no member `{path}`"))
                .hint("only `config` and `metadata` have members, such as config.url"));
        }
        Ok(Self { key, within, value })
    }

    /// What the change makes of `before`, which is what it names as it is now.
    fn value(&self, before: &Value) -> Result<Value, CliError> {
        let kind = kind(self.key)?;
        let wrong = |expected: &str| {
            let (key, value) = (self.path(), self.value);
            Err(CliError::usage(format!("{key}: expected {expected}, got \"{value}\"")))
        };
        match (kind, self.value) {
            (Kind::Text, value) => Ok(value.into()),
            (Kind::Number, "") => Ok(0.into()),
            (Kind::Number, value) => match pintle_domain::json::parse(value) {
                Ok(number @ Value::Number(_)) => Ok(number),
                Ok(_) | Err(_) => wrong("a whole number"),
            },
            (Kind::Flag, "true") => Ok(true.into()),
            (Kind::Flag, "false") => Ok(false.into()),
            (Kind::Flag, _) => wrong("true or false"),
            (Kind::Agents, value) => self.agents(value),
            (Kind::Object, value) if self.within.is_empty() => match value {
                "" => Ok(Value::Object(Object::new())),
                value => match pintle_domain::json::parse(value) {
                    Ok(object @ Value::Object(_)) => Ok(object),
                    Ok(_) | Err(_) => wrong("a JSON object"),
                },
            },
            (Kind::Object, value) => Ok(self.member(value, before)),
        }
    }

    /// Agents, as a JSON array or with commas between them.
    fn agents(&self, value: &str) -> Result<Value, CliError> {
        if value.trim_start().starts_with('[') {
            return pintle_domain::json::parse(value).map_err(|why| CliError::usage(format!("{}: {why}", self.path())));
        }
        let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
        Ok(names.map(Value::from).collect())
    }

    /// A member of `config` or `metadata`: a text where one belongs or stands now, else JSON, or a text if it is none.
    fn member(&self, value: &str, before: &Value) -> Value {
        let header = self.key == "config" && self.within.len() > 1 && self.within.first() == Some(&"headers");
        let is_text = self.key == "config" && matches!(self.within.as_slice(), [one] if TEXTS.contains(one));
        if header || is_text || before.is_string() {
            return value.into();
        }
        pintle_domain::json::parse(value).unwrap_or_else(|_| value.into())
    }

    fn path(&self) -> String {
        std::iter::once(self.key).chain(self.within.iter().copied()).collect::<Vec<_>>().join(".")
    }
}

fn kind(key: &str) -> Result<Kind, CliError> {
    /// What Pintle keeps of a hook by itself.
    const KEPT: [&str; 8] =
        ["id", "version", "source", "tripped_at", "disabled_reason", "created_by", "created_at", "updated_at"];
    if KEPT.contains(&key) {
        let error = CliError::usage(format!("`{key}` is kept by Pintle and cannot be set"));
        return Err(match key {
            "tripped_at" | "disabled_reason" => error.hint("`pintle hooks reset HOOK` closes a circuit breaker"),
            _ => error,
        });
    }
    if let Some((_, kind)) = MEMBERS.iter().find(|(name, _)| *name == key) {
        return Ok(*kind);
    }
    let names = || MEMBERS.iter().map(|(name, _)| *name);
    // A unit is easily forgotten.
    let unit = || names().find(|name| name.strip_prefix(key).is_some_and(|rest| rest.starts_with('_')));
    Err(match nearest(key, names()).or_else(unit).filter(|_| !key.is_empty()) {
        Some(near) => CliError::usage(format!("a hook has no `{key}`; did you mean `{near}`?")),
        None => CliError::usage(format!("a hook has no `{key}`"))
            .hint(format!("what can be set: {}", names().collect::<Vec<_>>().join(", "))),
    })
}

/// What `changes` make of `hook`: the members that are sent. Objects are sent whole.
fn updates(hook: &Value, changes: &[Change<'_>]) -> Result<Object, CliError> {
    let mut updates = Object::new();
    for (place, change) in changes.iter().enumerate() {
        if changes[..place].iter().any(|before| before.path() == change.path()) {
            return Err(CliError::usage(format!("{}: it is set twice; say it once", change.path())));
        }
        let before = updates.get(change.key).unwrap_or(&hook[change.key]).clone();
        let value = match change.within.as_slice() {
            [] => change.value(&before)?,
            path => {
                let mut whole = before;
                put(&mut whole, path, change)?;
                whole
            }
        };
        updates.insert(change.key.to_owned(), value);
    }
    Ok(updates)
}

/// Puts what `change` says at `path` of `at`. An empty value takes the member out.
fn put(at: &mut Value, path: &[&str], change: &Change<'_>) -> Result<(), CliError> {
    let [step, rest @ ..] = path else { return Ok(()) };
    if at.is_null() {
        *at = Value::Object(Object::new());
    }
    let Some(members) = at.as_object_mut() else {
        let path = change.path();
        return Err(CliError::usage(format!("{path}: what stands above `{step}` is not an object")));
    };
    let step = same_name(members, step);
    if !rest.is_empty() {
        return put(members.entry(step).or_insert(Value::Null), rest, change);
    }
    if change.value.is_empty() {
        members.shift_remove(&step);
        return Ok(());
    }
    let before = members.get(&step).cloned().unwrap_or_default();
    members.insert(step, change.value(&before)?);
    Ok(())
}

/// The member that `name` means: names of headers stand in any case.
fn same_name(members: &Object, name: &str) -> String {
    if members.contains_key(name) {
        return name.to_owned();
    }
    let known = members.keys().find(|known| known.eq_ignore_ascii_case(name));
    known.map_or_else(|| name.to_owned(), Clone::clone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(changes: &[&str]) -> Result<Value, String> {
        let hook = json!({
            "name": "h", "priority": 0, "metadata": {},
            "config": {"url": "https://a.example", "headers": {"Authorization": "********"}, "strict": false},
        });
        let changes = changes.iter().map(|text| Change::read(text)).collect::<Result<Vec<_>, _>>();
        let updates = changes.and_then(|changes| updates(&hook, &changes));
        updates.map(Value::Object).map_err(|error| error.message)
    }

    #[test]
    fn values_have_the_types_of_the_record() {
        let check = |changes: &[&str], expected: Value| assert_eq!(set(changes).unwrap(), expected, "{changes:?}");
        check(&["name=true", "matcher=^a=b$"], json!({"name": "true", "matcher": "^a=b$"}));
        check(&["priority=-3", "timeout_ms=2000"], json!({"priority": -3, "timeout_ms": 2000}));
        check(&["enabled=false", "may_rewrite=true"], json!({"enabled": false, "may_rewrite": true}));
        check(&["agent_ids=main, helper"], json!({"agent_ids": ["main", "helper"]}));
        check(&["agent_ids=[\"main\"]"], json!({"agent_ids": ["main"]}));
        check(&["config={\"command\": \"true\"}"], json!({"config": {"command": "true"}}));
        check(&["metadata.team=core", "metadata.level=3"], json!({"metadata": {"team": "core", "level": 3}}));
    }

    #[test]
    fn a_member_of_the_settings_is_replaced_and_the_others_stay() {
        let whole = |changes: &[&str]| set(changes).unwrap()["config"].clone();
        let headers = json!({"Authorization": "********"});
        assert_eq!(
            whole(&["config.url=https://b.example", "config.strict=true"]),
            json!({"url": "https://b.example", "headers": headers, "strict": true})
        );
        assert_eq!(whole(&["config.headers.authorization=7"])["headers"], json!({"Authorization": "7"}));
        assert_eq!(whole(&["config.headers.X-Team=core"])["headers"]["X-Team"], "core");
        assert_eq!(whole(&["config={}", "config.url=x"]), json!({"url": "x"}));
        assert_eq!(whole(&["config.secret_headers=[\"X-Key\"]"])["secret_headers"], json!(["X-Key"]));
    }

    #[test]
    fn nothing_after_the_sign_clears() {
        let expected = json!({"matcher": "", "agent_ids": [], "timeout_ms": 0, "metadata": {}});
        assert_eq!(set(&["matcher=", "agent_ids=", "timeout_ms=", "metadata="]).unwrap(), expected);
        assert_eq!(set(&["config.headers="]).unwrap()["config"], json!({"url": "https://a.example", "strict": false}));
    }

    #[test]
    fn what_cannot_be_set_says_why() {
        let check = |change: &str, expected: &str| assert_eq!(set(&[change]).unwrap_err(), expected);
        check("priority", "\"priority\" is not a KEY=VALUE");
        check("=5", "\"=5\" is not a KEY=VALUE");
        check(".x=5", "a hook has no ``");
        check("priority=high", "priority: expected a whole number, got \"high\"");
        check("enabled=1", "enabled: expected true or false, got \"1\"");
        check("enabled=", "enabled: expected true or false, got \"\"");
        check("config=[1]", "config: expected a JSON object, got \"[1]\"");
        check("timeout=5", "a hook has no `timeout`; did you mean `timeout_ms`?");
        check("version=5", "`version` is kept by Pintle and cannot be set");
        check("name.x=5", "there is no member `name.x`");
        check("config.=5", "there is no member `config.`");
        check("config.url.x=5", "config.url.x: what stands above `x` is not an object");
        assert_eq!(set(&["priority=1", "name=n", "priority=2"]).unwrap_err(), "priority: it is set twice; say it once");
    }
}
