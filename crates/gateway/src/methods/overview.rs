//! `overview.get`: what somebody who opens the console has to know first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use pintle_domain::id::TenantId;
use pintle_domain::json::{Value, json};
use pintle_domain::store::{Budget, RecordQuery, TenantScope};
use pintle_rules::admin::{Caller, CallerRole, ListFilter};

use crate::Shared;
use crate::decisions::{Decisions, at_checkpoints, of_each_tenant};
use crate::error::ApiError;
use crate::guards::{self, GuardLine, GuardState};
use crate::params::Params;
use crate::principal::Principal;
use crate::proofs::{LastFault, MAX_LOOKED_AT};
use crate::roles;
use crate::turns::may_see;

/// How far back decisions are counted unless it is said.
const USUAL: SignedDuration = SignedDuration::from_hours(24);

/// Most events of which decisions are counted, the newest.
const MAX_EVENTS: usize = 5000;

/// Most hooks that are named because they do not stand well.
const MAX_GUARDS: usize = 50;

/// How many of the newest changes are shown.
const MAX_CHANGES: usize = 10;

impl Shared {
    pub(super) async fn overview_get(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["since", "allTenants"])?;
        let scope = roles::looks_at(who, &params)?;
        let until = Timestamp::now();
        let usual = until.checked_sub(USUAL).unwrap_or(Timestamp::MIN);
        let since = params.moment("since")?.unwrap_or(usual).min(until);
        let guards = self.guard_lines(who, &scope).await?;
        let caller = who.caller();
        let budget = self.rule_admin.budget(&caller).await?;
        let changes = self.rule_admin.change_log(&caller, scope.one(), None, MAX_CHANGES).await?;
        let may_answer = roles::allow(who, "approvals.list").is_ok();
        let waiting = if may_answer { Some(self.approvals_waiting(who, scope.clone()).await?) } else { None };
        let who = who.clone();
        let decisions = self
            .blocking(move |shared| {
                let every = RecordQuery::of(scope);
                let query = RecordQuery { since: Some(since), limit: MAX_EVENTS + 1, ..every };
                let mut events = shared.store.find(&query)?;
                let partial = events.len() > MAX_EVENTS;
                events.drain(..events.len().saturating_sub(MAX_EVENTS));
                // Of more than can be counted, the time is what is counted.
                let first = events.first().filter(|_| partial).and_then(|event| event.at.parse().ok());
                let time = (first.unwrap_or(since), until);
                let own = events.iter().filter(|event| may_see(&who, &event.session_id));
                let all = Decisions::of(time, own);
                let mut shown = all.shown();
                shown["partial"] = json!(partial);
                shown["since"] = json!(time.0.to_string());
                Ok((shown, all.slowest(), all.blocking()))
            })
            .await?;
        let (decisions, slowest, blocking) = decisions;
        Ok(json!({
            "since": since.to_string(),
            "until": until.to_string(),
            "guards": {
                "counts": guards::counts(&guards),
                "notArmed": not_armed(&guards, caller.is_master()),
            },
            "approvalsWaiting": waiting,
            "decisions": decisions,
            "slowest": slowest,
            "blocking": blocking,
            "budget": budget,
            "changes": changes.lines,
        }))
    }

    /// What each hook did lately (`hooks.counts`): where, how often, with which answers, and how long it took.
    pub(super) async fn hooks_counts(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let scope = roles::looks_at(who, &Params::of(params, &["allTenants"])?)?;
        let who = who.clone();
        self.blocking(move |shared| {
            let is_of_all = scope.one().is_none();
            let query = RecordQuery { limit: MAX_EVENTS, ..RecordQuery::of(scope) };
            let events = shared.store.find(&query)?;
            let own: Vec<_> = events.iter().filter(|event| may_see(&who, &event.session_id)).collect();
            let of_each = if is_of_all { of_each_tenant(&own) } else { Vec::new() };
            let (many, mut hooks) = (own.len(), at_checkpoints(own));
            hooks.extend(of_each);
            Ok(json!({ "events": many, "hooks": hooks }))
        })
        .await
    }

    /// How every hook stands that holds in one of the tenants in `scope`: an owner sees the rules of all.
    pub(super) async fn guard_lines(
        self: &Arc<Self>,
        who: &Principal,
        scope: &TenantScope,
    ) -> Result<Vec<GuardLine>, ApiError> {
        let mut rules = self.rule_admin.list(&who.caller(), &ListFilter::default()).await?;
        rules.retain(|rule| scope.one().is_none_or(|tenant| guards::holds_for(tenant, rule)));
        let rules = rules.into_iter().map(|rule| guards::counting_in(scope.one(), rule)).collect();
        self.lines_of(who, rules).await
    }

    /// How the hooks of the configuration and `rules` stand, as `who` sees them.
    pub(super) async fn lines_of(
        self: &Arc<Self>,
        who: &Principal,
        rules: Vec<Value>,
    ) -> Result<Vec<GuardLine>, ApiError> {
        let budgets = self.budgets_of(who, &rules).await?;
        let (here, caller) = (who.tenant.clone(), who.caller());
        // What a hook failed at may be in the words of another tenant's call, or of somebody's whose turns are not shown.
        let may_read = move |fault: &LastFault| {
            caller.is_master() || (caller.role >= CallerRole::Admin && caller.tenant == fault.tenant)
        };
        self.blocking(move |shared| {
            shared.look_for_answers(&rules)?;
            let mut lines = guards::configured(&shared.host.blocking_read());
            lines.extend(rules.iter().map(|rule| {
                let line = guards::stored(rule, shared.desk.proofs.of(rule).readable(&may_read));
                match guards::payer(&here, rule).and_then(|payer| budgets.get(&payer)) {
                    Some(budget) => line.paid_by(budget),
                    None => line,
                }
            }));
            Ok(lines)
        })
        .await
    }

    /// The budgets that judges among `rules` spend, by whose they are.
    async fn budgets_of(&self, who: &Principal, rules: &[Value]) -> Result<BTreeMap<TenantId, Budget>, ApiError> {
        let payers: BTreeSet<TenantId> = rules.iter().filter_map(|rule| guards::payer(&who.tenant, rule)).collect();
        let mut budgets = BTreeMap::new();
        for tenant in payers {
            let payer = Caller { tenant: tenant.clone(), ..who.caller() };
            budgets.insert(tenant, self.rule_admin.budget(&payer).await?);
        }
        Ok(budgets)
    }

    /// Looks whether those of `rules` answered that are not known to have. Blocks.
    fn look_for_answers(&self, rules: &[Value]) -> Result<(), ApiError> {
        let now = Timestamp::now();
        let Some(since) = self.desk.proofs.to_look(rules, now) else { return Ok(()) };
        self.desk.proofs.looked(now, &self.rule_admin.executions_since(since, MAX_LOOKED_AT)?);
        Ok(())
    }
}

/// Those that somebody should look at, the worst first.
pub(super) fn not_armed(lines: &[GuardLine], whole: bool) -> Vec<Value> {
    let bad = |line: &&GuardLine| !matches!(line.state, GuardState::Armed | GuardState::Disabled);
    let mut found: Vec<&GuardLine> = lines.iter().filter(bad).collect();
    found.sort_by_key(|line| (line.state, line.name.clone()));
    found.into_iter().take(MAX_GUARDS).map(|line| line.shown(whole)).collect()
}
