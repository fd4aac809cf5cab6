//! Whose hooks those are here: tenants and agents of the other program, and of this one.

use jiff::Timestamp;
use pintle_domain::id::{SENTINEL_TENANT, TenantId};
use pintle_domain::rule::{Edition, HookScope};
use pintle_domain::store::Tenant;
use pintle_rules::record::ConfiguredAgent;
use uuid::Uuid;

use super::source::{Source, text};

/// Tenants and agents there and here.
pub(super) struct People<'a> {
    source: &'a Source,
    edition: Edition,
    /// The tenants that there are here.
    known: Vec<Tenant>,
    /// The tenants that have to be made.
    pub(super) fresh: Vec<Tenant>,
    /// The agents of the configuration, by name.
    agents: Vec<String>,
    now: Timestamp,
}

impl<'a> People<'a> {
    pub(super) fn new(
        source: &'a Source,
        edition: Edition,
        (known, agents): (Vec<Tenant>, Vec<String>),
        now: Timestamp,
    ) -> Self {
        Self { source, edition, known, fresh: Vec::new(), agents, now }
    }

    /// The tenant here whose a row of `scope` is that has the tenant `id` there.
    ///
    /// # Errors
    /// It can have none here: why.
    pub(super) fn tenant(&mut self, scope: HookScope, id: &str) -> Result<TenantId, String> {
        if scope == HookScope::Global {
            return Ok(TenantId::sentinel());
        }
        let uuid = Uuid::parse_str(id).map(|uuid| uuid.to_string());
        // Nobody lives in the tenant of global rows; what stood there for one tenant or agent is the only tenant's.
        let is_nobodys = |id: &String| id == SENTINEL_TENANT || *id == Uuid::nil().to_string();
        let id = match uuid {
            Ok(id) if !is_nobodys(&id) => id,
            Ok(_) => return Ok(TenantId::default_tenant()),
            Err(_) if id.is_empty() => return Ok(TenantId::default_tenant()),
            Err(_) => return Err(format!("its tenant id \"{id}\" is not a UUID")),
        };
        let row = self.source.table("tenants").iter().find(|row| text(row, &["id"]).eq_ignore_ascii_case(&id));
        let slug = row.map(|row| text(row, &["slug", "name"]).to_owned()).unwrap_or_default();
        let mut here = self.known.iter().chain(&self.fresh);
        let same = |tenant: &&Tenant| tenant.id.as_str() == id || (!slug.is_empty() && tenant.slug == slug);
        if let Some(tenant) = here.find(same) {
            return Ok(tenant.id.clone());
        }
        match (self.edition, row) {
            (Edition::Lite, _) => Err(format!(
                "it is of tenant {}, and several tenants need edition standard",
                if slug.is_empty() { &id } else { &slug }
            )),
            (Edition::Standard, None) => Err(format!("its tenant {id} is in neither database")),
            (Edition::Standard, Some(row)) => {
                let name = text(row, &["name", "slug"]).to_owned();
                let slug = if slug.is_empty() { id.clone() } else { slug };
                let made = Tenant { id: TenantId::new(id), slug, name, created_at: self.now.to_string() };
                let id = made.id.clone();
                self.fresh.push(made);
                Ok(id)
            }
        }
    }

    /// The id here of the agent with the id or key `named` there.
    ///
    /// # Errors
    /// There is none here.
    pub(super) fn agent(&self, tenant: &TenantId, named: &str) -> Result<String, String> {
        let own =
            |key: &str| self.agents.iter().find(|agent| *agent == key).map(|key| ConfiguredAgent::new(tenant, key));
        let by_id = self.agents.iter().map(|key| ConfiguredAgent::new(tenant, key)).find(|agent| agent.uuid == named);
        if let Some(agent) = by_id.or_else(|| own(named)) {
            return Ok(agent.uuid);
        }
        let rows = self.source.table("agents");
        let key = rows.iter().find(|row| text(row, &["id"]).eq_ignore_ascii_case(named)).map(key_of);
        match key.filter(|key| !key.is_empty()) {
            Some(key) => {
                own(key).map(|agent| agent.uuid).ok_or_else(|| format!("agent \"{key}\" is not configured here"))
            }
            None => Err(format!("agent {named} is in neither place")),
        }
    }

    /// The agents that hooks of `tenant` may name.
    pub(super) fn agents_of(&self, tenant: &TenantId) -> Vec<ConfiguredAgent> {
        self.agents.iter().map(|key| ConfiguredAgent::new(tenant, key)).collect()
    }

    /// What people call the tenant.
    pub(super) fn slug(&self, tenant: &TenantId) -> Option<&str> {
        self.known.iter().chain(&self.fresh).find(|known| known.id == *tenant).map(|known| known.slug.as_str())
    }
}

/// What an agent is called in configurations.
pub(super) fn key_of(row: &pintle_domain::json::Object) -> &str {
    text(row, &["agent_key", "key", "slug", "name", "id"])
}

#[cfg(test)]
mod tests {
    use pintle_domain::id::{DEFAULT_TENANT, agent_uuid};
    use pintle_domain::json::json;

    use super::*;

    const ACME: &str = "0193a5b0-7000-7000-8000-0000000000ac";

    fn check(edition: Edition, scope: HookScope, id: &str) -> (Result<String, String>, usize) {
        let source =
            Source::of_export(json!({"tenants": [{"id": ACME, "slug": "acme", "name": "Acme"}]})).unwrap().unwrap();
        let known = Tenant {
            id: TenantId::default_tenant(),
            slug: "default".into(),
            name: "Default".into(),
            created_at: String::new(),
        };
        let mut people = People::new(&source, edition, (vec![known], vec![]), Timestamp::UNIX_EPOCH);
        let found = people.tenant(scope, id).map(|id| id.to_string());
        // Asked twice, it is made once.
        assert_eq!(people.tenant(scope, id).map(|id| id.to_string()), found);
        (found, people.fresh.len())
    }

    #[test]
    fn a_row_finds_its_tenant() {
        let default = || (Ok(DEFAULT_TENANT.to_owned()), 0);
        for id in ["", DEFAULT_TENANT, SENTINEL_TENANT, "00000000-0000-0000-0000-000000000000"] {
            assert_eq!(check(Edition::Lite, HookScope::Tenant, id), default(), "{id}");
        }
        assert_eq!(check(Edition::Lite, HookScope::Global, ACME), (Ok(SENTINEL_TENANT.to_owned()), 0));
        assert_eq!(check(Edition::Standard, HookScope::Agent, ACME), (Ok(ACME.to_owned()), 1));
        let lite = check(Edition::Lite, HookScope::Tenant, ACME).0.unwrap_err();
        assert_eq!(lite, "it is of tenant acme, and several tenants need edition standard");
        let lost = check(Edition::Standard, HookScope::Tenant, &ACME.replace('c', "d")).0.unwrap_err();
        assert!(lost.ends_with("is in neither database"), "{lost}");
    }

    #[test]
    fn an_agent_is_found_by_its_key() {
        let id = "0193a5b0-7000-7000-8000-0000000000a1";
        let source =
            Source::of_export(json!({"agents": [{"id": id, "agent_key": "main"}, {"id": ACME, "agent_key": "gone"}]}));
        let source = source.unwrap().unwrap();
        let people = People::new(&source, Edition::Lite, (vec![], vec!["main".into()]), Timestamp::UNIX_EPOCH);
        let tenant = TenantId::default_tenant();
        let own = agent_uuid(&tenant, "main");
        for named in [id, "main", &own] {
            assert_eq!(people.agent(&tenant, named).as_ref(), Ok(&own), "{named}");
        }
        assert_eq!(people.agent(&tenant, ACME), Err("agent \"gone\" is not configured here".into()));
        assert_eq!(people.agent(&tenant, "nobody"), Err("agent nobody is in neither place".into()));
    }
}
