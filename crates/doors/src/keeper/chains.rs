//! Conversations that stand at the vendor: what the door knows of them, by the ids of their answers.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::keys::{KEPT_FOR, TextKey, key};
use crate::request::AnswerChain;

/// Most answers of one session that requests may go on from: they go on from the last one, or from one of a few before it.
pub const MAX_CHAINS: usize = 100;

/// Who may go on from answers: whoever got them, in the session that they named, and nobody else.
#[derive(Clone, Debug)]
pub struct ChainOwner([String; 4]);

impl ChainOwner {
    /// A guest by their space and their payer, and a session by what the header and the body of a request call it.
    pub fn new(parts: [&str; 4]) -> Self {
        Self(parts.map(str::to_owned))
    }

    /// The key of the answer `id` of theirs.
    pub fn key(&self, id: &str) -> TextKey {
        let own = self.0.iter().map(String::as_str);
        key(&["answer"].into_iter().chain(own).chain([id]).collect::<Vec<_>>())
    }
}

/// What stands at the vendor, by the answers with which it ends, each since a time.
#[derive(Debug, Default)]
pub(super) struct Chains(BTreeMap<TextKey, (Timestamp, AnswerChain)>);

impl Chains {
    /// What ends with the answer `key`, if that is not too long ago.
    pub(super) fn find(&self, key: &TextKey, now: Timestamp) -> Option<AnswerChain> {
        let (since, chain) = self.0.get(key)?;
        is_kept(*since, now).then(|| chain.clone())
    }

    /// Keeps what ends with the answer `key`; the oldest one gives way.
    pub(super) fn keep(&mut self, key: TextKey, chain: AnswerChain, now: Timestamp) {
        self.0.retain(|_, (since, _)| is_kept(*since, now));
        if self.0.len() >= MAX_CHAINS {
            let oldest = self.0.iter().min_by_key(|(_, (since, _))| *since).map(|(key, _)| *key);
            oldest.map(|oldest| self.0.remove(&oldest));
        }
        self.0.insert(key, (now, chain));
    }

    /// Forgets what ends with the answer `key`.
    pub(super) fn forget(&mut self, key: &TextKey) {
        self.0.remove(key);
    }
}

fn is_kept(since: Timestamp, now: Timestamp) -> bool {
    now.duration_since(since) < KEPT_FOR
}
