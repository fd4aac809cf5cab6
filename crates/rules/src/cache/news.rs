//! What became another one between two readings of the rules, whoever changed it: a comparison, without IO, and the line of
//! the change log that says who it was.

use std::collections::{BTreeMap, BTreeSet};

use pintle_domain::breaker::{BreakerPolicy, THRESHOLD, WINDOW_SECONDS};
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::rule::{HookScope, Rule};
use pintle_domain::store::{LoggedChange, RuleStore, StoreError, StoredRules, TenantScope};

/// Most changes of one hook between two readings that are told of: somebody who changes one rule more often than this
/// within a second is a program, and the newest say enough.
const MAX_CHANGES: usize = 32;

/// The word of the change log for a hook that is gone.
const DELETED: &str = "deleted";

/// Everything that is another one since the last reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleNews {
    /// The count of the changes by then.
    pub epoch: u64,
    /// Rows of hooks.
    pub rows: Vec<ChangedRow>,
    /// Circuit breakers.
    pub breakers: Vec<ChangedBreaker>,
}

/// A row that came, went or has another version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedRow {
    /// Which hook.
    pub hook: HookId,
    /// Whose it is.
    pub tenant: TenantId,
    /// The version that was read before; 0 if there was none.
    pub from: u32,
    /// The version now; 0 if the row is gone.
    pub to: u32,
}

/// A circuit breaker that opened or closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedBreaker {
    /// Which hook.
    pub hook: HookId,
    /// For whom.
    pub tenant: TenantId,
    /// Since when it is open; nothing if it is closed.
    pub since: Option<String>,
    /// The outcomes that it counts.
    pub policy: BreakerPolicy,
    /// Whether it is one of a global hook, which has one for each tenant.
    pub is_beside: bool,
}

impl ChangedBreaker {
    /// Why it is as it is, in words.
    pub fn reason(&self) -> String {
        match self.since {
            Some(_) => format!("{THRESHOLD} {} in {WINDOW_SECONDS} s", self.policy.counts()),
            None => "an administrator closed it".to_owned(),
        }
    }
}

/// Called with what is new. Must not block.
pub type OnNews = Box<dyn Fn(RuleNews) + Send + Sync>;

/// The rules as they were read, as far as news are made of them.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    pub(super) rows: &'a [Rule],
    pub(super) rules: &'a StoredRules,
}

impl RuleNews {
    /// What is new in `now`. Rows of files that this host does not have are nobody's news here.
    pub(super) fn between(before: Reading<'_>, now: Reading<'_>) -> Self {
        let known: BTreeSet<&HookId> = before.rules.hooks.iter().chain(&now.rules.hooks).map(|hook| &hook.id).collect();
        let by_id = |reading: Reading<'_>| -> BTreeMap<HookId, Rule> {
            let rows = reading.rows.iter().filter(|row| known.contains(&row.id));
            rows.map(|row| (row.id.clone(), row.clone())).collect()
        };
        let (old, new) = (by_id(before), by_id(now));
        let mut news = Self { epoch: now.rules.epoch, ..Self::default() };
        for id in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
            let (was, is) = (old.get(id), new.get(id));
            let Some(row) = is.or(was) else { continue };
            let version = |row: Option<&Rule>| row.map_or(0, |row| row.version);
            if version(was) != version(is) {
                let (from, to) = (version(was), version(is));
                news.rows.push(ChangedRow { hook: id.clone(), tenant: row.tenant_id.clone(), from, to });
            }
            let tripped = |row: Option<&Rule>| row.and_then(|row| row.tripped_at.clone());
            if row.scope != HookScope::Global && is.is_some() && tripped(was) != tripped(is) {
                news.breakers.push(breaker(row, &row.tenant_id, tripped(is)));
            }
        }
        news.beside(&new, (before.rules, now.rules));
        news
    }

    /// The breakers of global hooks, of which each tenant has one.
    fn beside(&mut self, hooks: &BTreeMap<HookId, Rule>, (before, now): (&StoredRules, &StoredRules)) {
        let open = |rules: &StoredRules| -> BTreeMap<(HookId, TenantId), String> {
            let trips = rules.trips.iter();
            trips.map(|trip| ((trip.hook_id.clone(), trip.tenant_id.clone()), trip.tripped_at.clone())).collect()
        };
        let (was, is) = (open(before), open(now));
        for key in was.keys().chain(is.keys()).collect::<BTreeSet<_>>() {
            let Some(hook) = hooks.get(&key.0).filter(|_| was.get(key) != is.get(key)) else { continue };
            let changed = breaker(hook, &key.1, is.get(key).cloned());
            self.breakers.push(ChangedBreaker { is_beside: true, ..changed });
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.breakers.is_empty()
    }

    /// The lines of the change log about it, oldest first of each hook. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn lines(&self, store: &dyn RuleStore) -> Result<Vec<LoggedChange>, StoreError> {
        let mut lines = Vec::new();
        for row in &self.rows {
            let newest = store.changes(&TenantScope::All, &row.hook, MAX_CHANGES)?;
            lines.extend(since(row, newest));
        }
        for breaker in self.breakers.iter().filter(|breaker| breaker.is_beside) {
            let action = if breaker.since.is_some() { "tripped" } else { "reset" };
            // A line about everybody's breakers is in nobody's name.
            let is_it = |line: &LoggedChange| {
                line.action == action && (line.tenant_id == breaker.tenant || line.tenant_id == TenantId::sentinel())
            };
            let found = store.changes(&TenantScope::All, &breaker.hook, MAX_CHANGES)?.into_iter().find(is_it);
            lines.extend(found.filter(|found| lines.iter().all(|line: &LoggedChange| line.id != found.id)));
        }
        Ok(lines)
    }
}

fn breaker(hook: &Rule, tenant: &TenantId, since: Option<String>) -> ChangedBreaker {
    let (hook, policy) = (hook.id.clone(), hook.breaker);
    ChangedBreaker { hook, tenant: tenant.clone(), since, policy, is_beside: false }
}

/// Of the `newest` lines about a hook, newest first, those that made `row` of what it was before; oldest first.
fn since(row: &ChangedRow, newest: Vec<LoggedChange>) -> Vec<LoggedChange> {
    // Its number began anew: it was deleted in between, and made once more.
    let from = if row.to != 0 && row.to < row.from { 0 } else { row.from };
    let mut lines: Vec<LoggedChange> = Vec::new();
    for line in newest {
        let is_deletion = line.action == DELETED;
        if (is_deletion && !lines.is_empty()) || (!is_deletion && line.version <= from) {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    // A line about the breakers beside a row leaves its version, and is told of with these.
    let mut seen = BTreeSet::new();
    lines.retain(|line| seen.insert(line.version));
    lines
}

#[cfg(test)]
mod tests {
    use pintle_domain::json::json;

    use super::*;

    fn line(action: &str, version: u32) -> LoggedChange {
        LoggedChange {
            id: format!("{action} {version}"),
            tenant_id: TenantId::from("t"),
            hook_id: HookId::from("h"),
            at: String::new(),
            actor: "anna".into(),
            action: action.into(),
            version,
            diff: json!([]),
        }
    }

    #[test]
    fn the_lines_since_a_reading_are_those_that_made_the_row() {
        let log: [(&str, u32); 6] =
            [("created", 1), ("updated", 2), ("tripped", 2), ("toggled", 3), ("deleted", 0), ("created", 1)];
        let check = |upto: usize, from: u32, to: u32, wanted: &[&str]| {
            let newest = log[..upto].iter().rev().map(|(action, version)| line(action, *version)).collect();
            let row = ChangedRow { hook: HookId::from("h"), tenant: TenantId::from("t"), from, to };
            let told: Vec<String> = since(&row, newest).into_iter().map(|line| line.id).collect();
            assert_eq!(told, wanted, "{upto} {from} {to}");
        };
        check(1, 0, 1, &["created 1"]);
        check(2, 1, 2, &["updated 2"]);
        // What happened beside the row is not a change of it.
        check(4, 1, 3, &["updated 2", "toggled 3"]);
        check(4, 0, 3, &["created 1", "updated 2", "toggled 3"]);
        check(5, 3, 0, &["deleted 0"]);
        check(5, 2, 0, &["toggled 3", "deleted 0"]);
        check(6, 3, 1, &["created 1"]);
        check(6, 0, 1, &["created 1"]);
    }
}
