//! Records that may be there already: a hook is told from others by its tenant, scope, event and name.

use std::collections::BTreeMap;

use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::{Object, Value, json};
use pintle_domain::rule::{HookScope, Rule, Source};
use pintle_domain::store::{Actor, RuleChange, StoreError, StoredRules};

use super::changing::Stop;
use super::creating::in_place;
use super::judged::held;
use super::{AdminError, AdminErrorCode, Caller, CallerRole, RuleAdmin};
use crate::record::{self, ValidRecord};

/// Members that a record does not say.
const KEPT: [&str; 8] =
    ["id", "version", "source", "tripped_at", "disabled_reason", "created_by", "created_at", "updated_at"];

/// Most differences that a refusal names: more is what two files are compared for.
const MAX_DIFFERENCES: usize = 6;

/// Most characters of a value in a refusal: a pattern, not a script.
const MAX_VALUE_CHARS: usize = 60;

/// How many characters are shown in front of the first that differs: enough to find the place.
const CHARS_BEFORE: usize = 20;

/// What became of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedRule {
    /// The hook.
    pub id: HookId,
    /// Its name; may be empty.
    pub name: String,
    /// Where it acts.
    pub event: CheckpointKind,
    /// Whom it guards.
    pub scope: HookScope,
    /// The pattern of tool names that it is about.
    pub matcher: String,
    /// What was done.
    pub outcome: AddOutcome,
    /// In what it differs from the hook that was there, in words.
    pub differs: Vec<String>,
    /// Settings that are allowed and probably not meant.
    pub warnings: Vec<String>,
}

/// What was done with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddOutcome {
    /// It is a new hook.
    Created,
    /// It was there already, just so.
    Same,
    /// It was there, and is now as the record says.
    Updated,
}

impl AddOutcome {
    /// The word in answers.
    pub fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Same => "same",
            Self::Updated => "updated",
        }
    }
}

/// What is done with the hook that has the place of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhereThere {
    /// It has to be the same.
    #[default]
    Refuse,
    /// It becomes what the record says.
    Update,
}

/// What would become of one record: or why it cannot be taken.
pub type AddTrial = Result<AddedRule, AdminError>;

/// The changes of several records, so far.
#[derive(Default)]
struct Adding {
    where_there: WhereThere,
    added: Vec<AddedRule>,
    changes: Vec<RuleChange>,
    /// The rules of this file, as they are read.
    read: Vec<Rule>,
    beside: BTreeMap<TenantId, usize>,
}

impl RuleAdmin {
    /// Makes hooks of records, all or none. A record whose tenant, scope, event and name a hook has already is that
    /// hook: the same one is left as it is, another one is refused with what differs, or updated.
    ///
    /// # Errors
    /// The first thing that is wrong with the first record that is not in order; or the caller may not.
    pub async fn add_all(
        &self,
        by: &Caller,
        records: &[Value],
        where_there: WhereThere,
    ) -> Result<Vec<AddedRule>, AdminError> {
        by.at_least(CallerRole::Admin, "create")?;
        let (by, records) = (by.clone(), records.to_vec());
        self.blocking(move |rule_admin| rule_admin.until_settled(|| rule_admin.add_now(&by, &records, where_there)))
            .await
    }

    /// What would become of each of `records` if all of them were added; nothing is written. A record that cannot be taken
    /// is nothing to those behind it.
    ///
    /// # Errors
    /// The rules cannot be read; or the caller may not.
    pub async fn try_all(
        &self,
        by: &Caller,
        records: &[Value],
        where_there: WhereThere,
    ) -> Result<Vec<AddTrial>, AdminError> {
        by.at_least(CallerRole::Admin, "create")?;
        let (by, records) = (by.clone(), records.to_vec());
        self.blocking(move |rule_admin| {
            let rules = rule_admin.freshest()?;
            let mut adding = Adding { where_there, ..Adding::default() };
            let tried = records.iter().map(|record| {
                rule_admin.add_one(&by, (&rules, &mut adding), record)?;
                adding.added.pop().ok_or_else(|| AdminError::invalid("invalid request: missing config payload"))
            });
            Ok(tried.collect())
        })
        .await
    }

    fn add_now(&self, by: &Caller, records: &[Value], where_there: WhereThere) -> Result<Vec<AddedRule>, Stop> {
        let rules = self.freshest()?;
        let mut adding = Adding { where_there, ..Adding::default() };
        for (place, record) in records.iter().enumerate() {
            let named = |refused| if records.len() == 1 { refused } else { in_place(refused, place, record) };
            self.add_one(by, (&rules, &mut adding), record).map_err(named)?;
        }
        let Adding { added, changes, .. } = adding;
        if !changes.is_empty() {
            let actor = self.actor(by);
            match self.parts.hooks.change(changes, &actor) {
                Ok(_) => {}
                // What was judged is what was seen: if a row is another one by now, or there is one that was not, all have to
                // be judged anew.
                Err(StoreError::Conflict(_)) => return Err(Stop::Raced),
                Err(error) => return Err(error.into()),
            }
            let in_force = self.in_force();
            self.close_breakers(&added, &actor);
            in_force?;
        }
        Ok(added)
    }

    /// As after any other change, the circuit breakers of hooks that were updated are closed. The hooks are written and in
    /// force by now: what fails here is told in the log.
    fn close_breakers(&self, added: &[AddedRule], actor: &Actor) {
        let updated = added.iter().filter(|added| added.outcome == AddOutcome::Updated);
        let mut closed = None;
        for AddedRule { id, .. } in updated {
            self.parts.rule_cache.release(id, None);
            match self.parts.hooks.reset(id, None, actor) {
                Ok(epoch) => closed = Some(epoch),
                Err(error) => tracing::warn!(hook_id = %id, %error, "its circuit breaker stays as it was"),
            }
        }
        if closed.is_some()
            && let Err(error) = self.in_force()
        {
            tracing::warn!(%error, "circuit breakers were closed, but the rules could not be read again");
        }
    }

    fn add_one(
        &self,
        by: &Caller,
        (rules, adding): (&StoredRules, &mut Adding),
        record: &Value,
    ) -> Result<(), AdminError> {
        let record = self.with_kept_secrets(by, rules, record);
        // Only a hook that is not there yet needs room.
        let ValidRecord { hook, warnings } = self.new_record(by, (rules, None), &record)?;
        let twin = adding.read.iter().find(|read| read.has_place_of(&hook));
        if let Some(twin) = twin {
            let differs = differences((twin, twin), &hook);
            if !differs.is_empty() {
                return Err(another(twin, &differs));
            }
        }
        let there = self.twin(rules, &hook)?;
        let none = Vec::new();
        let (id, outcome, differs) = match (twin, &there) {
            (Some(twin), _) => (twin.id.clone(), AddOutcome::Same, none),
            (None, None) => {
                let beside = adding.beside.entry(hook.tenant_id.clone()).or_default();
                record::room(held(rules, &hook.tenant_id) + *beside)?;
                *beside += 1;
                adding.changes.push(RuleChange::Add(Box::new(self.sealed(hook.clone())?)));
                (hook.id.clone(), AddOutcome::Created, none)
            }
            (None, Some(Twin { current, differs })) if differs.is_empty() => {
                (current.id.clone(), AddOutcome::Same, none)
            }
            (None, Some(Twin { current, differs })) => {
                if adding.where_there == WhereThere::Refuse {
                    return Err(another(current, differs));
                }
                adding.changes.push(self.over(current, &hook)?);
                (current.id.clone(), AddOutcome::Updated, differs.clone())
            }
        };
        let (name, matcher) = (hook.name.clone(), hook.matcher.clone());
        adding.added.push(AddedRule {
            id: id.clone(),
            name,
            event: hook.event,
            scope: hook.scope,
            matcher,
            outcome,
            differs,
            warnings,
        });
        adding.read.push(Rule { id, ..hook });
        Ok(())
    }

    /// `record` with the secrets of the hook that has its place, where it has their masks: a file that was exported holds
    /// no others.
    fn with_kept_secrets(&self, by: &Caller, rules: &StoredRules, record: &Value) -> Value {
        let mut record = record.clone();
        let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (name, event, scope) = (text("name"), text("event"), text("scope"));
        let home = if scope == HookScope::Global.word() { TenantId::sentinel() } else { by.tenant.clone() };
        let is_its = |hook: &&Rule| {
            !name.is_empty()
                && hook.name == name
                && hook.event.name() == event
                && hook.scope.word() == scope
                && hook.tenant_id == home
                && hook.source == Source::User
        };
        if home != TenantId::sentinel() || by.is_master() {
            let mut its = rules.hooks.iter().filter(is_its);
            if let (Some(hook), None) = (its.next(), its.next()) {
                record::with_kept_secrets(&self.opened(hook), &mut record);
            }
        }
        record
    }

    /// The rule that `hook` is, of those that are kept.
    ///
    /// # Errors
    /// Several are, and none of them just so.
    fn twin<'a>(&self, rules: &'a StoredRules, hook: &Rule) -> Result<Option<Twin<'a>>, AdminError> {
        let there = rules.hooks.iter().filter(|current| current.has_place_of(hook));
        let mut twins: Vec<Twin<'a>> = there
            .map(|current| {
                let opened = self.opened(current);
                Twin { current, differs: differences((current, &opened), hook) }
            })
            .collect();
        if let Some(same) = twins.iter().position(|twin| twin.differs.is_empty()) {
            return Ok(Some(twins.swap_remove(same)));
        }
        if twins.len() > 1 {
            let ids: Vec<&str> = twins.iter().map(|twin| twin.current.id.as_str()).collect();
            return Err(AdminError::new(
                AdminErrorCode::FailedPrecondition,
                format!("{} hooks are called {:?} at {}: {}", ids.len(), hook.name, hook.event.name(), ids.join(", ")),
            ));
        }
        Ok(twins.pop())
    }

    /// The change that makes `current` what `hook` says.
    fn over(&self, current: &Rule, hook: &Rule) -> Result<RuleChange, AdminError> {
        let next = Rule {
            id: current.id.clone(),
            version: current.version,
            created_by: current.created_by.clone(),
            created_at: current.created_at.clone(),
            disabled_reason: why_off(current, hook),
            ..hook.clone()
        };
        let hook = Box::new(self.sealed(next)?);
        Ok(RuleChange::Update { hook, if_version: Some(current.version), action: "updated" })
    }

    /// The row with its secrets as they were written. One that cannot be opened stays as it is, and so is another one.
    fn opened(&self, hook: &Rule) -> Rule {
        let mut opened = hook.clone();
        let (id, tenant) = (hook.id.clone(), hook.tenant_id.clone());
        let vault = &self.parts.parts.vault;
        let done: Result<(), String> = record::map_secrets(&mut opened, |path, text| {
            Ok(vault.open(&id, &tenant, path, text).unwrap_or_else(|_| text.to_owned()))
        });
        done.map(|()| opened).unwrap_or_else(|_| hook.clone())
    }
}

/// Why a hook is off that is written over `current`: a record does not say it, and what a person said stays as long as it
/// is off.
fn why_off(current: &Rule, hook: &Rule) -> String {
    let is_kept = !hook.enabled && !current.enabled && !record::is_own_reason(&current.disabled_reason);
    if is_kept { current.disabled_reason.clone() } else { String::new() }
}

/// A rule in the place of a record, and how the two differ.
struct Twin<'a> {
    current: &'a Rule,
    differs: Vec<String>,
}

/// What `hook` says otherwise than `stored`, whose secrets are open in `opened`; secrets are named and not shown.
fn differences((stored, opened): (&Rule, &Rule), hook: &Rule) -> Vec<String> {
    let (was, is) = (members(opened), members(hook));
    let (shown_was, shown_is) = (members(&record::masked(opened)), members(&record::masked(hook)));
    let mut paths: Vec<&String> = was.keys().chain(is.keys()).collect();
    paths.sort();
    paths.dedup();
    let differs = |path: &&String| was.get(path.as_str()) != is.get(path.as_str());
    // A breaker that is open switched it off, not its owner.
    let tripped = |path: &&String| path.as_str() == "enabled" && stored.tripped_at.is_some();
    let say = |path: &String| match (shown_was.get(path.as_str()), shown_is.get(path.as_str())) {
        (was, is) if was == is => format!("another secret in {path}"),
        (was, is) => {
            let [was, is] = sides(was, is);
            format!("{path} is {was}, not {is}")
        }
    };
    paths.into_iter().filter(differs).filter(|path| !tripped(path)).map(say).collect()
}

/// What a record says of a rule, with the members of `config` and `metadata` by themselves.
fn members(hook: &Rule) -> Object {
    let mut flat = Object::new();
    let Value::Object(row) = json!(hook) else { return flat };
    for (name, value) in row.iter().filter(|(name, _)| !KEPT.contains(&name.as_str())) {
        if let Some(inner) = value.as_object() {
            flat.extend(inner.iter().map(|(member, value)| (format!("{name}.{member}"), value.clone())));
        } else {
            flat.insert(name.clone(), value.clone());
        }
    }
    flat
}

/// Both sides of a difference, cut around the place where they begin to differ.
fn sides(was: Option<&Value>, is: Option<&Value>) -> [String; 2] {
    let text = |value: Option<&Value>| value.map_or_else(|| "absent".to_owned(), Value::to_string);
    let [was, is] = [text(was), text(is)];
    let same = was.chars().zip(is.chars()).take_while(|(one, other)| one == other).count();
    let is_long = |text: &String| text.chars().count() > MAX_VALUE_CHARS;
    let start = if is_long(&was) || is_long(&is) { same.saturating_sub(CHARS_BEFORE) } else { 0 };
    [was, is].map(|text| {
        let before = if start > 0 { "…" } else { "" };
        let shown: String = text.chars().skip(start).take(MAX_VALUE_CHARS).collect();
        let after = if text.chars().count() > start + MAX_VALUE_CHARS { "…" } else { "" };
        format!("{before}{shown}{after}")
    })
}

/// The refusal to have two hooks in one place.
fn another(current: &Rule, differs: &[String]) -> AdminError {
    let more = if differs.len() > MAX_DIFFERENCES { "; …" } else { "" };
    let differs: Vec<&str> = differs.iter().take(MAX_DIFFERENCES).map(String::as_str).collect();
    let text = format!(
        "hook {:?} ({}) is at {} already and differs: {}{more}",
        current.name,
        current.id,
        current.event.name(),
        differs.join("; ")
    );
    AdminError::new(AdminErrorCode::FailedPrecondition, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sides_of_a_difference_never_look_equal() {
        let check = |was: &str, is: &str, expected: [&str; 2]| {
            assert_eq!(sides(Some(&json!(was)), Some(&json!(is))), expected, "{was} {is}");
        };
        check("^exec$", "^exce$", ["\"^exec$\"", "\"^exce$\""]);
        let long = "a".repeat(100);
        let (shown, rest) = ("a".repeat(CHARS_BEFORE), "b".repeat(MAX_VALUE_CHARS - CHARS_BEFORE));
        check(
            &format!("{long}1"),
            &format!("{long}2{}", "b".repeat(100)),
            [&format!("…{shown}1\""), &format!("…{shown}2{}…", &rest[1..])],
        );
        let text = format!("\"{long}\"");
        assert_eq!(sides(None, Some(&json!(long))), ["absent".to_owned(), format!("{}…", &text[..MAX_VALUE_CHARS])]);
    }
}
