//! What an agent has to do with those who keep its conversations in its place.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use pintle_domain::history::{HistoryKey, SignedContent, Trust};
use pintle_domain::identity::Identity;
use pintle_domain::json::Rendered;
use pintle_domain::message::Message;
use pintle_domain::skill::Skills;
use pintle_domain::store::RepeatStore;

/// How long a text that passed is not gated again. Source: the page of the gateway.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(24);

/// The trust in histories that come with requests, and the signatures that leave so that they can be believed.
#[derive(Clone, Default)]
pub struct FrontEnds {
    /// Signs what leaves, and knows it again. Without one nothing is signed, and every message of the user's in a history
    /// passes the gates.
    pub key: Option<HistoryKey>,
    /// Whether a system message in a history must be one that the host sent; any other is then the user's.
    pub verify: bool,
    /// Remembers texts of users that passed the gates, as codes of the key. Without it they pass each time.
    pub passed: Option<Arc<dyn RepeatStore>>,
}

impl fmt::Debug for FrontEnds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontEnds").field("key", &self.key).field("verify", &self.verify).finish_non_exhaustive()
    }
}

impl FrontEnds {
    /// The signature; empty where there is no key.
    pub(crate) fn sign(&self, signed: SignedContent<'_>) -> String {
        self.key.as_ref().map(|key| key.sign(signed)).unwrap_or_default()
    }

    /// The trust that a history of `who` in the conversation `session` is held against.
    pub(crate) fn trust<'a>(
        &'a self,
        (who, session): (&'a Identity, &'a str),
        skills: &'a Skills,
        held: &'a [Rendered<Message>],
    ) -> Trust<'a> {
        Trust { key: self.key.as_ref(), tenant: who.tenant_id.as_str(), session, verify: self.verify, skills, held }
    }

    /// The texts of `who` that passed `gates` lately. A store that cannot say has forgotten all of them.
    pub(crate) async fn passed(&self, who: &Identity, gates: String, texts: &[&str]) -> PassedTexts {
        let (Some(key), Some(store)) = (self.key.clone(), self.passed.clone()) else { return PassedTexts::default() };
        let caller = [who.tenant_id.to_string(), who.sender_id.clone(), who.agent_id.to_string()];
        let memory = PassedMemory { key, store, caller, gates };
        let codes: Vec<String> = texts.iter().map(|text| memory.code(text)).collect();
        let mut known = BTreeSet::new();
        if !codes.is_empty() {
            let store = memory.store.clone();
            let since = Timestamp::now().checked_sub(REMEMBERED).unwrap_or(Timestamp::MIN);
            match tokio::task::spawn_blocking(move || store.passed(&codes, since)).await {
                Ok(Ok(found)) => known = found,
                Ok(Err(error)) => tracing::warn!("texts that passed are gated again: {error}"),
                Err(error) => tracing::error!("texts that passed are gated again: {error}"),
            }
        }
        PassedTexts { memory: Some(memory), known, new: Vec::new() }
    }
}

/// Whose texts are remembered, and where.
struct PassedMemory {
    key: HistoryKey,
    store: Arc<dyn RepeatStore>,
    caller: [String; 3],
    gates: String,
}

impl PassedMemory {
    fn code(&self, text: &str) -> String {
        let [tenant, user, agent] = &self.caller;
        self.key.passed_code(&[tenant, user, agent], &self.gates, text)
    }
}

/// Texts that passed the gates, those of one request.
#[derive(Default)]
pub(crate) struct PassedTexts {
    memory: Option<PassedMemory>,
    known: BTreeSet<String>,
    new: Vec<String>,
}

impl PassedTexts {
    /// Whether `text` passed before.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.memory.as_ref().is_some_and(|memory| self.known.contains(&memory.code(text)))
    }

    /// `text` passed as it is.
    pub(crate) fn add(&mut self, text: &str) {
        if let Some(memory) = &self.memory {
            let code = memory.code(text);
            self.known.insert(code.clone());
            self.new.push(code);
        }
    }

    /// Remembers what passed.
    pub(crate) async fn remember(self) {
        let Self { memory: Some(PassedMemory { store, .. }), new, .. } = self else { return };
        if new.is_empty() {
            return;
        }
        let kept = tokio::task::spawn_blocking(move || store.remember_passed(&new, Timestamp::now())).await;
        if let Err(error) = kept.map_err(|error| error.to_string()).and_then(|kept| kept.map_err(|e| e.to_string())) {
            tracing::warn!("texts that passed are not remembered: {error}");
        }
    }
}
