//! What a store says when it does not do it, in the same words whichever store it is.

use pintle_domain::approval::ApprovalState;
use pintle_domain::id::SessionId;
use pintle_domain::store::StoreError;

use crate::db::Failure;

/// `session` is taken, by a holder such as `process 4711`.
pub(crate) fn in_use(session: &SessionId, by: &str) -> StoreError {
    StoreError::Conflict(format!("session {session:?} is in use by {by}"))
}

/// The approval `id` cannot be used up, since this is its state.
pub(crate) fn unusable(id: &str, state: ApprovalState) -> StoreError {
    StoreError::Conflict(format!("approval `{id}` cannot be used: it is {}, not approved", state.word()))
}

/// The approval `id` cannot be answered.
pub(crate) fn unanswerable(id: &str, why: &str) -> StoreError {
    StoreError::Conflict(format!("approval `{id}` cannot be answered: {why}"))
}

/// The approval `id` does not say what somebody was shown.
pub(crate) fn altered(id: &str) -> StoreError {
    StoreError::Conflict(format!("approval `{id}` was altered since it was shown; look at it again"))
}

/// No approval has an id that begins with `id`.
pub(crate) fn unknown(id: &str) -> StoreError {
    StoreError::NotFound(format!("there is no approval `{id}`; `pintle approvals list` shows those that wait"))
}

/// More than one approval has an id that begins with `id`.
pub(crate) fn ambiguous(id: &str) -> StoreError {
    StoreError::Conflict(format!("several approvals have ids that begin with `{id}`; give more of it"))
}

/// There is an approval `id` already.
pub(crate) fn taken(id: &str) -> StoreError {
    StoreError::Conflict(format!("there is an approval `{id}` already; ask with a fresh id"))
}

/// The database took `what` and wrote no row.
pub(crate) fn swallowed(what: &str, table: &str) -> Failure {
    Failure::Said(StoreError::Corrupt(format!(
        "the database took {what} and wrote no row; look for triggers on the table `{table}`"
    )))
}
