//! What was last known of a store.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::checkpoint::CheckpointKind;
use crate::checkpoint::kind::Duty;
use crate::hex::hex;
use crate::id::{HookId, TenantId};
use crate::json::{self, Value, json};
use crate::rule::{HookScope, Rule};

use super::chain::ChainSeen;

/// How what is encrypted begins: it may be encrypted anew and say the same.
const SEALED: &str = "aes-gcm:";

/// What was last known of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// Which store it is.
    pub store_id: String,
    /// The counter of the changes of rules.
    pub epoch: u64,
    /// Its audit chains.
    pub chains: BTreeMap<TenantId, AnchoredChain>,
    /// Its rules.
    pub rules: BTreeMap<HookId, AnchoredRule>,
    /// What its tenants are called: rules of files and hosts mean a tenant by that.
    #[serde(default)]
    pub tenants: BTreeMap<TenantId, String>,
    /// Whether entries about rules have a seal: those of versions that sealed nothing were read before that was so.
    #[serde(default)]
    pub is_sealed: bool,
    /// Whether rows of those who may ask have a seal: those of before were sealed once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub are_rows_sealed: bool,
}

impl Anchor {
    /// What shows that the chain of `tenant` is not the one that was known, or not as far as it was.
    pub fn differs(&self, tenant: &TenantId, now: Option<&ChainSeen>) -> Option<String> {
        let before = self.chains.get(tenant)?;
        let end = now.map_or(0, |now| now.head.seq);
        if end < before.seq {
            let had = before.seq;
            return Some(format!("its audit chain of {tenant} ends at row {end}, and there were {had}"));
        }
        if now.and_then(|now| now.anchored).is_some_and(|hash| hash.to_hex() != before.hash) {
            return Some(format!("row {} of its audit chain of {tenant} is another one", before.seq));
        }
        // Rows that went in their time are known to have gone: whoever cuts a chain says up to where.
        if now.is_some_and(|now| now.is_empty() && now.cut > before.cut) {
            return Some(format!("its audit chain of {tenant} is empty, and nobody has cut it so far"));
        }
        None
    }

    /// What shows that signatures of the chain of `tenant` are gone, of which row `signed` is the last signed one now.
    /// Its rows can be those that were known all the same, so no gate shuts.
    pub fn unsigned(&self, tenant: &TenantId, signed: u64) -> Option<String> {
        let had = self.chains.get(tenant)?.signed.filter(|had| signed < *had)?;
        let now = if signed == 0 { "not at all".to_owned() } else { format!("up to row {signed}") };
        Some(format!(
            "signatures of the audit chain of {tenant} were deleted by something other than Pintle: it was signed up to \
             row {had}, and is {now}"
        ))
    }

    /// The same without what was signed: what is there then counts.
    pub fn without_signatures(mut self) -> Self {
        self.chains.values_mut().for_each(|chain| chain.signed = None);
        self
    }

    /// Whether anything was written there.
    pub(super) fn is_of_something(&self) -> bool {
        !self.rules.is_empty() || self.chains.values().any(|chain| chain.seq > 0)
    }

    /// The rules that can refuse something.
    pub fn guards(&self) -> impl Iterator<Item = &AnchoredRule> {
        self.rules.values().filter(|rule| rule.is_guard())
    }
}

/// What was last known of an audit chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnchoredChain {
    /// Its last row.
    pub seq: u64,
    /// The hash of that row, in hex.
    pub hash: String,
    /// Up to which row the changes of rules were read.
    pub read_to: u64,
    /// Up to which row retention has cut it.
    pub cut: u64,
    /// Its last row that is signed; unknown to a program that did not look for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<u64>,
    /// Up to which row entries about rules need no seal: its end when seals began.
    #[serde(default)]
    pub unsealed_to: u64,
    /// Rows that leave a rule in doubt, since no seal of a known key is on them: the key may come to be known.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unproven: BTreeSet<u64>,
}

/// What is known of a rule: enough to say whether its row is another one, and to refuse in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnchoredRule {
    /// The tenant that owns it.
    pub tenant_id: TenantId,
    /// Its name, or its id.
    pub name: String,
    /// Where it acts; at every gate if that cannot be said.
    pub event: Option<CheckpointKind>,
    /// Which tools.
    pub matcher: String,
    /// Whose turns.
    pub scope: HookScope,
    /// Which agents, of scope `agent`.
    pub agent_ids: Vec<String>,
    /// Whether it acts.
    pub acts: bool,
    /// SHA-256 over its row and the breakers that are open beside it.
    pub digest: String,
}

impl AnchoredRule {
    /// What is to be known of `rule`, with the breakers of tenants that are open beside it.
    pub fn of(rule: &Rule, trips: &BTreeMap<TenantId, String>) -> Self {
        let mut row = json::to_value(rule).unwrap_or(Value::Null);
        unseal(&mut row);
        let trips = trips.iter().map(|(tenant, at)| json!([tenant, at])).collect();
        // `json!` would write the row out once more, and a start does this for every rule.
        let whole = [("row".to_owned(), row), ("trips".to_owned(), Value::Array(trips))];
        let text = json::canonical(&Value::Object(whole.into_iter().collect()));
        let digest: [u8; 32] = Sha256::digest(text).into();
        Self {
            tenant_id: rule.tenant_id.clone(),
            name: rule.label().to_owned(),
            event: Some(rule.event),
            matcher: rule.matcher.clone(),
            scope: rule.scope,
            agent_ids: rule.agent_ids.clone(),
            acts: rule.is_candidate(),
            digest: hex(&digest),
        }
    }

    /// Whether it can refuse something.
    pub fn is_guard(&self) -> bool {
        self.acts && self.event.is_none_or(|event| event.duty() == Duty::Gate)
    }
}

/// Makes what is encrypted in `value` say nothing.
fn unseal(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with(SEALED) => SEALED.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(unseal),
        Value::Object(members) => members.values_mut().for_each(unseal),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
