//! What a record is judged against, and what becomes of its secrets before it is kept.

use crate::record::{self, Checks, ConfiguredAgent, Lang, NewRow, RecordContext, SEALED};
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::rule::{Rule, Source};
use pintle_domain::store::StoredRules;
use tokio::runtime::Handle;

use super::{AdminError, AdminErrorCode, Caller, RuleAdmin};
use crate::http::{SigningSecret, check_header};
use crate::team::is_of_team;

/// How the origin of hooks begins that come from a file.
const FILE: &str = "file:";

/// The record that is being judged, with its case.
pub(super) struct Case<'a> {
    pub(super) by: &'a Caller,
    pub(super) rules: &'a StoredRules,
    /// The tenant that owns the hook, unless it is everybody's.
    pub(super) tenant: &'a TenantId,
    /// How many hooks of the tenant there will be that are not in the rules yet; nothing if there will be no more.
    pub(super) beside: Option<usize>,
}

impl RuleAdmin {
    /// Lets `judge` look at a record with all that is known here. Blocks, and not on a thread of the runtime.
    pub(super) fn judge<T>(&self, case: &Case<'_>, new_row: &NewRow, judge: impl FnOnce(&RecordContext<'_>) -> T) -> T {
        let parts = &self.parts;
        let url = |tenant: &TenantId, url: &str| (parts.check_url)((parts.parts.slug_of)(tenant).as_deref(), url);
        let signing_secret = |text: &str| SigningSecret::parse(text).map(drop).map_err(str::to_owned);
        let script = |source: &str| Handle::current().block_on(parts.parts.scripts.check(source));
        let held = |tenant: &TenantId| case.beside.map_or(0, |beside| held(case.rules, tenant) + beside);
        judge(&RecordContext {
            tenant: &case.by.tenant,
            is_master: case.by.is_master(),
            edition: parts.parts.edition,
            lang: case.by.lang,
            agents: &self.known_agents(case),
            tenants: &case.rules.tenants,
            held: &held,
            new_row,
            checks: Checks { url: &url, header: &check_header, signing_secret: &signing_secret, script: &script },
        })
    }

    /// The agents of the tenants that this can be about.
    fn known_agents(&self, case: &Case<'_>) -> Vec<ConfiguredAgent> {
        let keys = (self.parts.agents)();
        let named = case.rules.tenants.iter().map(|tenant| &tenant.id);
        let named = named.filter(|id| case.by.lang == Lang::File || *id == case.tenant || **id == case.by.tenant);
        named.flat_map(|tenant| keys.iter().map(move |key| ConfiguredAgent::new(tenant, key.as_str()))).collect()
    }

    /// The values that a new row begins with.
    pub(super) fn new_row(&self, by: &Caller) -> NewRow {
        NewRow { id: HookId::fresh(), at: self.now().to_string(), by: Some(by.name.clone()) }
    }

    /// Looks at a row once more, before it is switched on.
    pub(super) fn fit(&self, by: &Caller, rules: &StoredRules, hook: &Rule) -> Result<(), AdminError> {
        let case = Case { by, rules, tenant: &hook.tenant_id, beside: None };
        self.judge(&case, &self.new_row(by), |around| record::check(hook, around))?;
        Ok(())
    }

    /// The row with its secrets encrypted.
    pub(super) fn sealed(&self, mut hook: Rule) -> Result<Rule, AdminError> {
        let (id, tenant) = (hook.id.clone(), hook.tenant_id.clone());
        record::map_secrets(&mut hook, |path, text| {
            if text.starts_with(SEALED) {
                return Ok(text.to_owned());
            }
            self.parts.vault.seal(&id, &tenant, path, text)
        })
        .map_err(|why| AdminError::new(AdminErrorCode::FailedPrecondition, why))?;
        Ok(hook)
    }
}

/// How many hooks of its own a tenant has.
pub(super) fn held(rules: &StoredRules, tenant: &TenantId) -> usize {
    rules.hooks.iter().filter(|hook| hook.tenant_id == *tenant && hook.source == Source::User).count()
}

/// The file that a hook comes from, if it comes from one: whoever mirrors a file says so, and the id proves it.
fn file_of(hook: &Rule) -> Option<&str> {
    let file = hook.created_by.as_deref()?.strip_prefix(FILE)?;
    (hook.id == HookId::of_name(&format!("file/{file}/{}", hook.name))).then_some(file)
}

/// Refuses to change what a file says.
pub(super) fn not_from_file(hook: &Rule) -> Result<(), AdminError> {
    if let Some((gateway, _)) = is_of_team(hook) {
        let text = format!("hook {:?} is a rule of the team, from {gateway}: change it there", hook.label());
        return Err(AdminError::new(AdminErrorCode::FailedPrecondition, text));
    }
    match file_of(hook) {
        None => Ok(()),
        Some(file) => {
            let text = format!("hook {:?} comes from the file `{file}`: change it there", hook.label());
            Err(AdminError::new(AdminErrorCode::FailedPrecondition, text))
        }
    }
}
