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
    /// Whose data an event touches. One machine without tenants uses `default`.
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
    /// The unique name of a hook within one configuration.
    HookName;
    /// What ties the events of one outside request together.
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
