//! The handle of one tenant.

use std::sync::Arc;

use pintle_domain::id::{AgentId, SessionId, TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::store::{RecordQuery, StoreError, StoredEvent, TenantScope};

use crate::approvals::Approvals;
use crate::host::Host;
#[cfg(feature = "rules")]
use crate::rules::Rules;
use crate::turn::Turn;

/// Everything of one tenant, and nothing of another.
#[derive(Clone)]
pub struct Tenant {
    host: Arc<Host>,
    id: TenantId,
}

/// Nobody made this tenant known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tenant `{0}` is not known here: `Pintle::add_tenant` makes it known")]
pub struct UnknownTenant(pub String);

/// The records of one tenant.
pub struct Records {
    host: Arc<Host>,
    tenant: TenantId,
}

impl Tenant {
    pub(crate) fn new(host: Arc<Host>, id: TenantId) -> Self {
        Self { host, id }
    }

    /// The id that stands in records, questions and permits. With stored rules it is a UUID; without, the name, but for
    /// `default`, whose id is always a UUID.
    pub fn id(&self) -> &str {
        self.id.as_str()
    }

    /// The turn `id` of `agent` in `session`, which begins or goes on. Ids are the host's to keep: a call that waits for
    /// a person is found again by its turn and its own id.
    pub fn turn(&self, agent: &str, session: &str, id: TurnId) -> Turn {
        let who = Identity {
            tenant_id: self.id.clone(),
            agent_id: AgentId::from(agent),
            session_id: SessionId::from(session),
            channel: "host".to_owned(),
            ..Identity::top(agent, session, id)
        };
        Turn::new(self.host.clone(), who)
    }

    /// The records of what its hooks did.
    pub fn records(&self) -> Records {
        Records { host: self.host.clone(), tenant: self.id.clone() }
    }

    /// The questions about its calls. None where questions are kept nowhere.
    pub fn approvals(&self) -> Option<Approvals> {
        let store = self.host.stores.approvals.clone()?;
        Some(Approvals::new(self.host.clone(), store, self.id.clone()))
    }

    /// The rules that hold for it. None where rules are kept nowhere.
    #[cfg(feature = "rules")]
    pub fn rules(&self) -> Option<Rules> {
        let rules = self.host.rules.as_ref()?;
        Some(Rules::new(rules.rule_admin().clone(), self.id.clone()))
    }
}

impl Records {
    /// The newest `limit` events that `query` asks for, of this tenant only, whoever it names. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn find(&self, query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
        let own = RecordQuery { tenant: TenantScope::from(&self.tenant), ..query.clone() };
        self.host.stores.records.find(&own)
    }
}
