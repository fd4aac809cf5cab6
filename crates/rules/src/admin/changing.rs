//! Changes of hooks that are there.

use crate::record;
use pintle_domain::id::HookId;
use pintle_domain::json::Value;
use pintle_domain::rule::{HookScope, Rule, Source};
use pintle_domain::store::{RuleChange, StoreError};

use super::judged::{Case, not_from_file};
use super::reading::{View, hook_id};
use super::{AdminError, AdminErrorCode, Caller, CallerRole, RuleAdmin};

/// How often a change is begun anew because somebody else was faster: nobody changes one rule all the time.
const ATTEMPTS: u32 = 5;

/// Said of what is shipped.
const READ_ONLY: &str = "builtin hooks are read-only except for the enabled toggle";

/// A hook that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdatedRule {
    /// Its version now.
    pub version: u32,
    /// Settings that are allowed and probably not meant.
    pub warnings: Vec<String>,
}

/// The terms of a change, beside what it changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeTerms<'a> {
    /// The version that it is about; whichever is there, unless it is said.
    pub if_version: Option<u32>,
    /// Why it switches the hook off; empty where nobody says it.
    pub reason: &'a str,
}

/// Longest reason, in characters: a line of a listing.
const MAX_REASON_CHARS: usize = 255;

/// Longest reason why a hook is off, in characters. Source: the column `disabled_reason` of the published schema.
const MAX_OFF_REASON_CHARS: usize = 32;

/// Why a hook is off from now on; nothing where it is on.
fn off_because(enabled: bool, reason: &str) -> Result<String, AdminError> {
    let reason = said(reason)?;
    let length = reason.chars().count();
    if !enabled && length > MAX_OFF_REASON_CHARS {
        let message = format!("a reason to switch off has {MAX_OFF_REASON_CHARS} characters at most (got {length})");
        return Err(AdminError::invalid(message));
    }
    if record::is_own_reason(reason) {
        return Err(AdminError::invalid(format!("reason {reason:?} is a word that Pintle itself uses: say more")));
    }
    Ok(if enabled { String::new() } else { reason.to_owned() })
}

/// The hook that `updates` led to, with why it is off from now on. A reason for anything else would be kept nowhere.
fn because(hook: Rule, updates: &Value, reason: &str) -> Result<Rule, AdminError> {
    let reason = off_because(false, reason)?;
    if reason.is_empty() {
        return Ok(hook);
    }
    if hook.enabled || updates["enabled"] != false {
        return Err(AdminError::invalid(
            "reason says why a hook is switched off, and these updates do not switch it off: leave it out",
        ));
    }
    Ok(Rule { disabled_reason: reason, ..hook })
}

/// A reason as it is kept.
///
/// # Errors
/// It is longer than 255 characters, or holds control characters.
pub fn said(reason: &str) -> Result<&str, AdminError> {
    let reason = reason.trim();
    let length = reason.chars().count();
    if length > MAX_REASON_CHARS {
        return Err(AdminError::invalid(format!("reason exceeds {MAX_REASON_CHARS} characters (got {length})")));
    }
    if reason.chars().any(char::is_control) {
        return Err(AdminError::invalid("reason has control characters"));
    }
    Ok(reason)
}

/// Why one attempt came to nothing.
pub(super) enum Stop {
    /// It may not be.
    Refused(AdminError),
    /// Somebody else was faster.
    Raced,
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Refused(error.into())
    }
}

impl From<AdminError> for Stop {
    fn from(refused: AdminError) -> Self {
        Self::Refused(refused)
    }
}

impl RuleAdmin {
    /// Changes a hook: members that are not sent stay, `""` clears, `config` is replaced whole. Closes its circuit
    /// breaker.
    ///
    /// # Errors
    /// The first thing that is wrong; `version conflict: have N`; or the caller may not.
    pub async fn update(
        &self,
        by: &Caller,
        id: &str,
        updates: &Value,
        if_version: Option<u32>,
    ) -> Result<UpdatedRule, AdminError> {
        self.change(by, id, updates, ChangeTerms { if_version, reason: "" }).await
    }

    /// The same, and keeps why it is switched off, as [`switch`](Self::switch) does.
    ///
    /// # Errors
    /// As [`update`](Self::update); or there is a reason, and the updates do not switch the hook off.
    pub async fn change(
        &self,
        by: &Caller,
        id: &str,
        updates: &Value,
        terms: ChangeTerms<'_>,
    ) -> Result<UpdatedRule, AdminError> {
        by.at_least(CallerRole::Admin, "update")?;
        let (by, id, updates) = (by.clone(), hook_id(id)?, updates.clone());
        let (if_version, reason) = (terms.if_version, terms.reason.to_owned());
        self.blocking(move |rule_admin| {
            let terms = ChangeTerms { if_version, reason: &reason };
            rule_admin.until_settled(|| rule_admin.update_now(&by, &id, &updates, terms))
        })
        .await
    }

    /// Deletes a hook. What it did stays in the history.
    ///
    /// # Errors
    /// There is none, it is shipped, it comes from a file; or the caller may not.
    pub async fn delete(&self, by: &Caller, id: &str) -> Result<(), AdminError> {
        self.remove(by, id, "").await
    }

    /// The same, and keeps why in the change log.
    ///
    /// # Errors
    /// As [`delete`](Self::delete); or `reason` is too long.
    pub async fn remove(&self, by: &Caller, id: &str, reason: &str) -> Result<(), AdminError> {
        by.at_least(CallerRole::Admin, "delete")?;
        let reason = said(reason)?.to_owned();
        let (by, id) = (by.clone(), hook_id(id)?);
        self.blocking(move |rule_admin| rule_admin.delete_now(&by, &id, reason)).await
    }

    /// Switches a hook on or off. Says whether it acts now. On closes its circuit breaker.
    ///
    /// # Errors
    /// There is none, it is no longer valid, it comes from a file; or the caller may not.
    pub async fn toggle(&self, by: &Caller, id: &str, enabled: bool) -> Result<bool, AdminError> {
        self.switch(by, id, enabled, "").await
    }

    /// The same, and keeps why somebody switches it off: it stands beside its state until it is on again.
    ///
    /// # Errors
    /// As [`toggle`](Self::toggle); or `reason` is too long, or a word with which Pintle itself says why a hook is off.
    pub async fn switch(&self, by: &Caller, id: &str, enabled: bool, reason: &str) -> Result<bool, AdminError> {
        by.at_least(CallerRole::Admin, "toggle")?;
        let reason = off_because(enabled, reason)?;
        let (by, id) = (by.clone(), hook_id(id)?);
        self.blocking(move |rule_admin| {
            rule_admin.until_settled(|| rule_admin.toggle_now(&by, &id, (enabled, &reason)))
        })
        .await
    }

    /// Tries until nobody else is faster.
    pub(super) fn until_settled<T>(&self, mut attempt: impl FnMut() -> Result<T, Stop>) -> Result<T, AdminError> {
        for _ in 0..ATTEMPTS {
            match attempt() {
                Ok(done) => return Ok(done),
                Err(Stop::Refused(refused)) => return Err(refused),
                Err(Stop::Raced) => {}
            }
        }
        // A store that is not what it was takes no change, either.
        let why = self.parts.rule_cache.why_shut();
        let why = why.unwrap_or_else(|| "version conflict: others keep changing this hook; try again".to_owned());
        Err(AdminError::new(AdminErrorCode::FailedPrecondition, why))
    }

    fn update_now(
        &self,
        by: &Caller,
        id: &HookId,
        updates: &Value,
        ChangeTerms { if_version, reason }: ChangeTerms<'_>,
    ) -> Result<UpdatedRule, Stop> {
        let view = View { by, rules: self.freshest()? };
        let current = view.hook(id)?;
        let tenant = if current.scope == HookScope::Global { &by.tenant } else { &current.tenant_id };
        let case = Case { by, rules: &view.rules, tenant, beside: None };
        let new_row = self.new_row(by);
        let patched = |around: &record::RecordContext<'_>| record::patch(&view.as_tripped(current), updates, around);
        let read = self.judge(&case, &new_row, patched).map_err(AdminError::from)?;
        not_from_file(current)?;
        if if_version.is_some_and(|wanted| wanted != current.version) {
            return Err(conflict(current.version).into());
        }
        let hook = self.sealed(because(read.hook, updates, reason)?)?;
        let version = self.write(by, (current, hook), "updated", if_version.is_some())?;
        Ok(UpdatedRule { version, warnings: read.warnings })
    }

    fn delete_now(&self, by: &Caller, id: &HookId, reason: String) -> Result<(), AdminError> {
        let view = View { by, rules: self.freshest()? };
        let current = view.hook(id)?;
        owned(by, current)?;
        match current.source {
            Source::Builtin => return Err(AdminError::invalid(READ_ONLY)),
            Source::User => not_from_file(current)?,
        }
        self.parts
            .hooks
            .change(vec![RuleChange::Delete { id: id.clone(), reason }], &self.actor(by))
            .map_err(|error| missing(error, id))?;
        self.parts.rule_cache.release(id, None);
        self.in_force()
    }

    fn toggle_now(&self, by: &Caller, id: &HookId, (enabled, reason): (bool, &str)) -> Result<bool, Stop> {
        let view = View { by, rules: self.freshest()? };
        let current = view.hook(id)?;
        let is_others = current.scope == HookScope::Global && !by.is_master();
        if enabled && (is_others || current.enabled || view.is_tripped(current)) {
            return Ok(self.reset_now(&view, current, None)?);
        }
        owned(by, current)?;
        // Whoever says why it is off says it of one that is off already, too.
        let says_why = !enabled && !reason.is_empty() && reason != current.disabled_reason;
        if current.enabled == enabled && current.tripped_at.is_none() && !says_why {
            return Ok(enabled);
        }
        not_from_file(current)?;
        let hook = Rule { enabled, tripped_at: None, disabled_reason: reason.to_owned(), ..current.clone() };
        if enabled {
            self.fit(by, &view.rules, &hook)?;
        }
        self.write(by, (current, hook), "toggled", false)?;
        Ok(enabled)
    }

    /// Writes another content of `current`, closes its circuit breakers and puts it in force.
    fn write(
        &self,
        by: &Caller,
        (current, hook): (&Rule, Rule),
        action: &'static str,
        insists: bool,
    ) -> Result<u32, Stop> {
        let (id, actor) = (&current.id, self.actor(by));
        // What was judged is what was seen: if the row is another one by now, it has to be judged anew.
        let change = RuleChange::Update { hook: Box::new(hook), if_version: Some(current.version), action };
        let changed = match self.parts.hooks.change(vec![change], &actor) {
            Ok(changed) => changed,
            Err(StoreError::Conflict(_)) if !insists => return Err(Stop::Raced),
            Err(error) => return Err(missing(error, id).into()),
        };
        self.parts.rule_cache.release(id, None);
        self.parts.hooks.reset(id, None, &actor).map_err(|error| missing(error, id))?;
        self.in_force()?;
        Ok(changed.versions.first().copied().unwrap_or_default())
    }
}

impl View<'_> {
    /// Whether a circuit breaker of `hook` is open, for anybody.
    pub(super) fn is_tripped(&self, hook: &Rule) -> bool {
        hook.tripped_at.is_some() || self.rules.trips.iter().any(|trip| trip.hook_id == hook.id)
    }

    /// The hook as one whose breaker is open where it is open for anybody: a change then does not switch it off.
    fn as_tripped(&self, hook: &Rule) -> Rule {
        let trip = self.rules.trips.iter().find(|trip| trip.hook_id == hook.id);
        let tripped_at = hook.tripped_at.clone().or_else(|| trip.map(|trip| trip.tripped_at.clone()));
        Rule { tripped_at, ..hook.clone() }
    }
}

/// Refuses to change what is everybody's to those who are not master.
pub(super) fn owned(by: &Caller, hook: &Rule) -> Result<(), AdminError> {
    if hook.scope == HookScope::Global && !by.is_master() { Err(AdminError::no_master()) } else { Ok(()) }
}

fn conflict(have: u32) -> AdminError {
    AdminError::new(AdminErrorCode::FailedPrecondition, format!("version conflict: have {have}"))
}

/// A hook that somebody deleted meanwhile is like one that never was.
pub(super) fn missing(error: StoreError, id: &HookId) -> AdminError {
    match error {
        StoreError::NotFound(_) => AdminError::no_hook(id.as_str()),
        StoreError::Unavailable(_) | StoreError::Corrupt(_) | StoreError::Conflict(_) => error.into(),
    }
}
