//! The setting in which a draft is judged.

use pintle_domain::id::TenantId;

use pintle_domain::nearest::nearest;

use super::secret::SealedInput;
use super::{Lang, MAX_NAME_CHARS, RecordContext, quoted};

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

impl Setting<'_> {
    /// What a person is told behind a word that is none of `known`; the published messages end before it.
    pub(super) fn meant(&self, word: &str, known: &[&str]) -> String {
        let is_read = match self.record_context.lang {
            Lang::Cli | Lang::File => word.chars().count() <= MAX_NAME_CHARS,
            Lang::Api | Lang::Import => false,
        };
        let near = || nearest(word, known.iter().copied()).or_else(|| begun(word, known));
        let near = if is_read { near() } else { None };
        near.map(|near| format!(" (did you mean {}?)", quoted(near))).unwrap_or_default()
    }
}

/// The only one of `known` that begins with `word`.
fn begun<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let mut begun = known.iter().filter(|known| !word.is_empty() && known.starts_with(word));
    begun.next().copied().filter(|_| begun.next().is_none())
}
