//! Which events are looked for.

use super::TenantScope;

/// Which events are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordQuery {
    /// Whose events they are.
    pub tenant: TenantScope,
    /// One event by its id, or by the beginning of it.
    pub event_id: Option<String>,
    /// Events of the turns whose ids begin with this; if none does, of those that end with these digits.
    pub turn: Option<String>,
    /// Events about the call of a model with this id, in whichever turns there was one.
    pub call: Option<String>,
    /// Events of the newest turn of the session with this id that is not a test.
    pub session: Option<String>,
    /// Events about this tool, canonical or raw.
    pub tool: Option<String>,
    /// Events at which a hook of this name is registered.
    pub hook: Option<String>,
    /// Events of the newest turn that is not a test.
    pub last_turn: bool,
    /// Only events that refused something, or left it to a person.
    pub refused: bool,
    /// Only events that are not older than this.
    pub since: Option<jiff::Timestamp>,
    /// At most this many, the newest.
    pub limit: usize,
}

impl RecordQuery {
    /// Every event of `tenant`; how many of them, whoever asks says.
    pub fn of(tenant: TenantScope) -> Self {
        Self {
            tenant,
            event_id: None,
            turn: None,
            call: None,
            session: None,
            tool: None,
            hook: None,
            last_turn: false,
            refused: false,
            since: None,
            limit: 0,
        }
    }
}
