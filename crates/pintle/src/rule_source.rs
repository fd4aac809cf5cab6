//! The source of stored rules: the store, its keys, and what the host lets them do.

use std::path::PathBuf;
use std::sync::Arc;

use pintle_domain::llm::{LlmReply, LlmRequest};
use pintle_domain::rule::Edition;
use pintle_egress::Egress;
use pintle_rule_runtime::Launcher;
use pintle_store::Store;
use pintle_store::keyring::Keyring;

use crate::stage::Fut;

/// Asks a language model for the judgement that a rule of the type `prompt` wants.
pub trait Judge: Send + Sync + 'static {
    /// The answer to `request`, whose model is the one that the rule names. Dropped when the rule's time is over.
    fn judge<'a>(&'a self, request: LlmRequest) -> Fut<'a, Result<LlmReply, String>>;
}

/// The source of the rules of a host that is to be opened.
pub(crate) struct RuleSource {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) keyring: Arc<Keyring>,
    pub(crate) edition: Edition,
    pub(crate) folder: PathBuf,
    pub(crate) worker: Option<Launcher>,
    pub(crate) egress: Egress,
    pub(crate) judge: Option<Arc<dyn Judge>>,
}
