//! Names that cannot be mixed up: one newtype for each kind of identifier.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps `text` as it is; nothing is validated.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The identifier as it is written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }
    )*};
}

ids! {
    /// The tenant whose data an event touches. One machine without tenants uses `default`.
    TenantId;
    /// An agent of the configuration.
    AgentId;
    /// A conversation: the key under which its turns are kept.
    SessionId;
    /// One prompt worked to its end.
    TurnId;
    /// One request of the model for a tool, as the provider or a hook named it.
    CallId;
    /// One occurrence at a checkpoint: a UUID of version 7.
    EventId;
    /// The name by which people call a hook. Unique within one configuration; rules have a [`HookId`] beside it.
    HookName;
    /// The row of a rule: a UUID.
    HookId;
    /// The id that ties the events of one outside request together.
    TraceId;
}

impl EventId {
    /// A fresh identifier, ordered by time.
    pub fn fresh() -> Self {
        Self::new(uuid::Uuid::now_v7().to_string())
    }
}

impl TurnId {
    /// A fresh identifier, ordered by time.
    pub fn fresh() -> Self {
        Self::new(uuid::Uuid::now_v7().to_string())
    }
}

/// Owns the global hooks; nobody lives in it. Source: the published format of rules.
pub const SENTINEL_TENANT: &str = "0193a5b0-7000-7000-8000-000000000001";

/// The one tenant of a fresh install. Source: the published format of rules.
pub const DEFAULT_TENANT: &str = "0193a5b0-7000-7000-8000-000000000002";

/// Its slug: the tenant that is meant where none is named.
pub const DEFAULT_SLUG: &str = "default";

/// The namespace of identifiers that are made from names. Source: the published format of rules.
pub const NAMESPACE: uuid::Uuid = uuid::uuid!("082ab084-a25f-52b4-a4a4-eb8a816bd9a8");

impl TenantId {
    /// The one tenant of a fresh install.
    pub fn default_tenant() -> Self {
        Self::from(DEFAULT_TENANT)
    }

    /// The owner of global hooks.
    pub fn sentinel() -> Self {
        Self::from(SENTINEL_TENANT)
    }
}

impl HookId {
    /// A fresh identifier, ordered by time.
    pub fn fresh() -> Self {
        Self::new(uuid::Uuid::now_v7().to_string())
    }

    /// The identifier that is made from `name`.
    pub fn of_name(name: &str) -> Self {
        Self::new(uuid::Uuid::new_v5(&NAMESPACE, name.as_bytes()).to_string())
    }
}

/// The id under which rules know the agent `key` of `tenant`: a UUID.
pub fn agent_uuid(tenant: &TenantId, key: &str) -> String {
    uuid::Uuid::new_v5(&NAMESPACE, format!("agent/{tenant}/{key}").as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_of_builtins_and_agents_are_the_published_ones() {
        let tenant = TenantId::default_tenant();
        let named = HookId::of_name(&format!("agent/{tenant}/main"));
        assert_eq!(agent_uuid(&tenant, "main"), named.as_str());
        let check = |event: &str| HookId::of_name(&format!("pii-redactor/{event}")).to_string();
        assert_eq!(check("user_prompt_submit"), "adf28f53-17ef-5f64-9290-9bfa14940397");
        assert_eq!(check("pre_tool_use"), "9e431554-c622-5c87-914e-b7b08d8bb924");
    }
}
