//! Which session.

use crate::id::{SessionId, TenantId};

/// Names a session of one tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    /// The tenant that owns the session.
    pub tenant: TenantId,
    /// Which.
    pub session: SessionId,
}
