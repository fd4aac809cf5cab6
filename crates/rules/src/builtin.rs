//! The hooks that are shipped: builtins, which are rows of every host, and starter guards, which somebody may add.
//!
//! A builtin is a manifest in TOML and a script. What it becomes in the store is computed here; nothing is written.

mod manifest;
mod seed;
mod starter;

use jiff::Timestamp;
use pintle_domain::breaker::BreakerPolicy;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::{Object, json};
use pintle_domain::rule::{Fallback, HandlerType, HookScope, Rule, Source};

pub use manifest::ManifestError;
pub use seed::{BY_CONFIG, Seed, SeedWrite, plan};
pub use starter::starter;

/// The manifests and the scripts that they name, by file name.
const MANIFESTS: [&str; 1] = [include_str!("builtin/pii-redactor.toml")];
const SCRIPTS: [(&str, &str); 1] = [("pii-redactor.js", include_str!("builtin/pii-redactor.js"))];

/// A shipped hook, as its manifest has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltinRule {
    /// Its name, in every row.
    pub id: String,
    /// Which edition of it this is; newer ones replace older ones.
    pub version: u32,
    /// Where it acts: one row each.
    pub events: Vec<CheckpointKind>,
    /// When and how it is asked.
    pub terms: BuiltinTerms,
    /// The fields that it may change: `rawInput`, `toolInput`, `toolInput.KEY`.
    pub mutable_fields: Vec<String>,
    /// Its script.
    pub source: &'static str,
    /// For people.
    pub description: String,
    /// Whether it waits for somebody to switch it on.
    pub default_disabled: bool,
}

/// When and how a shipped hook is asked: what its rows have from the manifest as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltinTerms {
    /// The scope: the turns that it is about.
    pub scope: HookScope,
    /// A pattern of tool names; empty for every event.
    pub matcher: String,
    /// A condition; empty for none.
    pub if_expr: String,
    /// How long one call may take.
    pub timeout_ms: u32,
    /// The fallback that counts when that time is over.
    pub on_timeout: Fallback,
    /// Higher runs first.
    pub priority: i32,
    /// The outcomes that its circuit breaker counts.
    pub breaker: BreakerPolicy,
}

/// Every builtin of this version of the program.
pub fn builtins() -> Vec<BuiltinRule> {
    let read = |text: &&str| manifest::read(text, &SCRIPTS).expect("a test below reads every embedded manifest");
    MANIFESTS.iter().map(read).collect()
}

/// The fields that the builtin `id` may change; nothing if there is none of that name.
pub fn mutable_fields(id: &str) -> Option<Vec<String>> {
    builtins().into_iter().find(|builtin| builtin.id == id).map(|builtin| builtin.mutable_fields)
}

impl BuiltinRule {
    /// Its rows, one for each event, as a host has them that never had any.
    pub fn rows(&self, now: Timestamp) -> Vec<Rule> {
        self.events.iter().map(|event| self.row(*event, now)).collect()
    }

    fn row(&self, event: CheckpointKind, now: Timestamp) -> Rule {
        let BuiltinTerms { scope, matcher, if_expr, timeout_ms, on_timeout, priority, breaker } = self.terms.clone();
        let metadata =
            [("builtin", json!(true)), ("version", json!(self.version)), ("description", json!(self.description))];
        let at = now.to_string();
        Rule {
            id: HookId::of_name(&format!("{}/{}", self.id, event.name())),
            tenant_id: TenantId::sentinel(),
            agent_ids: Vec::new(),
            event,
            handler_type: HandlerType::Script,
            scope,
            name: self.id.clone(),
            config: Object::from_iter([("source".to_owned(), json!(self.source))]),
            matcher,
            if_expr,
            timeout_ms,
            on_timeout,
            priority,
            enabled: !self.default_disabled,
            version: 1,
            source: Source::Builtin,
            may_rewrite: !self.mutable_fields.is_empty(),
            breaker,
            on_trip: Fallback::default_at(event),
            tripped_at: None,
            disabled_reason: String::new(),
            metadata: metadata.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            created_by: None,
            created_at: at.clone(),
            updated_at: at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_redactor_is_the_published_one() {
        let all = builtins();
        let [redactor] = all.as_slice() else { panic!("{all:?}") };
        let terms = BuiltinTerms {
            scope: HookScope::Global,
            matcher: String::new(),
            if_expr: String::new(),
            timeout_ms: 2000,
            on_timeout: Fallback::Block,
            priority: 900,
            breaker: BreakerPolicy::Faults,
        };
        assert_eq!((redactor.id.as_str(), redactor.version, redactor.default_disabled), ("pii-redactor", 3, true));
        assert_eq!(redactor.terms, terms);
        let fields = ["rawInput", "toolInput.command", "toolInput.query", "toolInput.content"];
        assert_eq!(mutable_fields("pii-redactor").unwrap(), fields);
        assert_eq!(mutable_fields("pii"), None);
    }

    #[test]
    fn each_event_has_a_row_of_the_published_id() {
        let rows: Vec<Rule> = builtins().iter().flat_map(|own| own.rows(Timestamp::UNIX_EPOCH)).collect();
        let ids: Vec<(&str, &str)> = rows.iter().map(|row| (row.event.name(), row.id.as_str())).collect();
        let published = [
            ("user_prompt_submit", "adf28f53-17ef-5f64-9290-9bfa14940397"),
            ("pre_tool_use", "9e431554-c622-5c87-914e-b7b08d8bb924"),
        ];
        assert_eq!(ids, published);
        for row in &rows {
            assert_eq!((row.name.as_str(), row.enabled, row.source), ("pii-redactor", false, Source::Builtin));
            assert_eq!((&row.tenant_id, row.scope), (&TenantId::sentinel(), HookScope::Global));
            assert_eq!(row.on_trip, Fallback::Block);
            assert_eq!((&row.metadata["builtin"], &row.metadata["version"]), (&json!(true), &json!(3)));
            assert!(row.config["source"].as_str().unwrap().contains("function handle(event)"));
            assert_eq!(row.created_at, "1970-01-01T00:00:00Z");
        }
    }
}
