//! The call that proves a guard, and the tools that calls can be about.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use pintle_agent::tools::BUILTIN;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::health::{Health, Step};
use pintle_domain::hook::Hook;
use pintle_domain::id::{TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::store::{KeyScope, StoreError};
use pintle_domain::verdict::VerdictKind;
use pintle_engine::Dispatcher;
use pintle_guard::HOSTS;
use tokio::sync::OnceCell;

use crate::guard::installs::found_in_files;
use crate::guard::places::GuardPlaces;
use crate::text::time_said;
use pintle_host::blind::serves_others;
use pintle_host::host::Host;
use pintle_host::tool_names::{brought, is_about, may_bring_tools, meant, offered, request};

/// The tool of the call that proves a guard: never offered to a model, never run.
pub(super) const CANARY: &str = "pintle_canary";

pub(super) fn answered(kind: CheckpointKind, word: VerdictKind, took: Duration) -> String {
    format!("{} answered {} in {}", kind.name(), word.as_str(), time_said(took))
}

/// Whether `word` refuses a call.
pub(super) fn refuses(word: VerdictKind) -> bool {
    match word {
        VerdictKind::Deny | VerdictKind::AbortTurn | VerdictKind::HardAbort => true,
        VerdictKind::Ask | VerdictKind::Inject | VerdictKind::Continue | VerdictKind::Modify | VerdictKind::Respond => {
            false
        }
    }
}

/// Whose the canaries are.
pub(super) fn identity() -> Identity {
    Identity { is_test: true, ..Identity::top("doctor", "doctor", TurnId::fresh()) }
}

/// Whether agents of others are asked about here: coding agents under guard, whoever comes through a door, and those of
/// machines that take their rules from here.
///
/// # Errors
/// The store cannot be read.
pub(super) fn has_others(host: &Host) -> Result<bool, StoreError> {
    let config = &host.loaded.config;
    if serves_others(config) {
        return Ok(true);
    }
    let is_installed =
        |places: &GuardPlaces| HOSTS.iter().copied().any(|agent| !found_in_files(agent, host.env(), places).is_empty());
    let places = GuardPlaces::of(host.env(), Some(&config.home), None);
    Ok(places.is_ok_and(|places| is_installed(&places)) || serves_machines(host)?)
}

/// Whether somebody has a key with which a machine takes its rules from here.
fn serves_machines(host: &Host) -> Result<bool, StoreError> {
    let rules = host.host_rules.rule_cache().rules();
    let default = TenantId::default_tenant();
    let now = Timestamp::now();
    for tenant in std::iter::once(&default).chain(rules.tenants.iter().map(|tenant| &tenant.id)) {
        if host.store.keys(tenant)?.iter().any(|key| key.is_good(now) && key.scopes.contains(&KeyScope::Guard)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The tools that calls can be about.
pub(super) struct Reachable<'a> {
    pub(super) host: &'a Host,
    /// Whether models that judge are asked too.
    pub(super) asks_judges: bool,
    pub(super) dispatcher: &'a Dispatcher,
    /// Whether agents of others are asked about here, which bring every tool and some that nobody knows.
    pub(super) has_others: bool,
    /// The tools that hooks bring; asked for only if a matcher is about nothing else.
    pub(super) brought: OnceCell<BTreeSet<String>>,
}

impl Reachable<'_> {
    /// The matcher, which was not applied to the canary, has to match a tool that some agent has or some hook brings.
    pub(super) async fn reached_by(&self, hook: &Hook) -> Result<(), Health> {
        self.reaches(hook).await.map_err(|why| Health::unproven(Step::Matcher, why))
    }

    async fn reaches(&self, hook: &Hook) -> Result<(), String> {
        let Some(matcher) = &hook.matcher else { return Ok(()) };
        // What a hook brings may depend on the request, so its own tools are its own affair.
        if may_bring_tools(hook) || offered(&self.host.loaded.config).iter().any(|tool| is_about(hook, tool)) {
            return Ok(());
        }
        if self.host.server_tools().iter().any(|tool| is_about(hook, tool)) {
            return Ok(());
        }
        let pattern = matcher.pattern();
        if let Some(idle) = BUILTIN.iter().find(|tool| is_about(hook, tool)) {
            if self.has_others {
                return Ok(());
            }
            return Err(format!("`{pattern}` matches `{idle}`, which no agent has; name it in `agents.NAME.tools`"));
        }
        if self.brought.get_or_init(|| self.ask()).await.iter().any(|tool| is_about(hook, tool)) {
            return Ok(());
        }
        match meant(pattern) {
            Some(tool) => Err(format!("`{pattern}` matches no tool of any agent; did you mean `{tool}`?")),
            None if self.has_others => Ok(()),
            None => Err(format!("`{pattern}` matches no tool of any agent")),
        }
    }

    /// Asks every hook that may bring tools for them.
    async fn ask(&self) -> BTreeSet<String> {
        let set = self.dispatcher.set();
        let hooks = set.roster().hooks();
        let asked = hooks.iter().map(|hook| {
            let request = request(CANARY.to_owned(), CANARY.to_owned());
            brought(self.dispatcher, hook, request)
        });
        futures_util::future::join_all(asked).await.into_iter().flatten().collect()
    }
}
