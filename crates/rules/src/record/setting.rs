//! The setting in which a draft is judged.

use domain::id::TenantId;

use super::RecordContext;
use super::secret::SealedInput;

/// Said to those who would change what is about every tenant, and may not.
pub const NO_MASTER: &str = "this action requires master tenant scope";

/// What a draft is judged against.
pub(super) struct Setting<'a> {
    pub(super) record_context: &'a RecordContext<'a>,
    /// Whose it is, unless it is everybody's.
    pub(super) tenant: &'a TenantId,
    /// Whether it may be everybody's.
    pub(super) is_master: bool,
    pub(super) sealed: SealedInput<'a>,
}
