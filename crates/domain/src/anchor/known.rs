//! What was last known of a store.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::checkpoint::CheckpointKind;
use crate::checkpoint::kind::Duty;
use crate::hex::hex;
use crate::id::{HookId, TenantId};
use crate::json::{self, Value, json};
use crate::rule::{HookScope, Rule};

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
}

impl Anchor {
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
        let row = json::to_value(rule).map(unsealed).unwrap_or(Value::Null);
        let trips: Vec<Value> = trips.iter().map(|(tenant, at)| json!([tenant, at])).collect();
        let text = json::canonical(&json!({"row": row, "trips": trips}));
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

/// `value` with what is encrypted as if it said nothing.
fn unsealed(value: Value) -> Value {
    match value {
        Value::String(text) if text.starts_with(SEALED) => SEALED.into(),
        Value::Array(items) => items.into_iter().map(unsealed).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, unsealed(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}
