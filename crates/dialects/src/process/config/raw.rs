//! Every key under `hooks`, as it is written. The doc comments become the descriptions of the JSON Schema.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use pintle_domain::json::Value;
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::claude::config::RawClaudeHooks;

/// Hooks: code of yours that sees, changes, approves or refuses what the agent does.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawHooks {
    /// `false`: nothing that this file configures is mounted. Default `true`.
    pub enabled: Option<bool>,
    /// Refuse to start a turn while a guard is bad, down or untrusted. Default `false`.
    pub strict_start: Option<bool>,
    /// Limits for every hook of this file that does not set its own.
    pub defaults: Option<RawDefaults>,
    /// Hooks that are compiled in, by name.
    pub builtins: Option<BTreeMap<String, RawBuiltin>>,
    /// Child processes that speak JSON-RPC over stdio, by name.
    pub processes: Option<BTreeMap<String, RawProcess>>,
    /// Commands that are run for each event, in the shape that Claude Code has for them.
    pub claude: Option<RawClaudeHooks>,
}

/// Limits for every hook of this file that does not set its own.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawDefaults {
    /// How long an event may wait to be written to an observer. Default 500.
    #[schemars(range(min = 1))]
    pub observer_timeout_ms: Option<i64>,
    /// How long a rewriter may take for one call. Default 5000.
    #[schemars(range(min = 1))]
    pub interceptor_timeout_ms: Option<i64>,
    /// How long an approver may take for one call. Default 60000.
    #[schemars(range(min = 1))]
    pub approval_timeout_ms: Option<i64>,
    /// The longest line, either way. Default 67108864.
    #[schemars(range(min = 1_048_576))]
    pub max_frame_bytes: Option<i64>,
}

/// A hook that is compiled in.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawBuiltin {
    /// Whether it is mounted. Default `false`.
    pub enabled: Option<bool>,
    /// Lower runs first. Default 0.
    pub priority: Option<i32>,
    /// Whatever this builtin takes.
    #[schemars(with = "Option<serde_json::Value>")]
    pub config: Option<Value>,
    /// Deadline of its calls: one for all, or one for each stage.
    pub timeout_ms: Option<PerStage<i64>>,
    /// What a fault becomes: `deny` or `continue` for before_tool, `continue` or `abort_turn` for other rewriters.
    pub on_failure: Option<PerStage<String>>,
    /// A regular expression, unanchored, on the tool's name: limits the tool stages.
    pub matcher: Option<String>,
    /// Tools that it may answer in their place: `any` (default), a glob or globs.
    pub respond: Option<OneOrMany>,
}

/// A child process that speaks JSON-RPC over stdio.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawProcess {
    /// Whether it is mounted. Default `false`.
    pub enabled: Option<bool>,
    /// Lower runs first. Default 0.
    pub priority: Option<i32>,
    /// How it is spoken to; `stdio` is the only one.
    pub transport: Option<String>,
    /// The program and its arguments; no shell.
    pub command: Option<Vec<String>>,
    /// Its working directory. Default: the folder of this file.
    pub dir: Option<String>,
    /// Variables laid over the inherited environment.
    pub env: Option<BTreeMap<String, String>>,
    /// Names of runtime events that it is told, in either spelling; `all` for every one.
    pub observe: Option<Vec<String>>,
    /// Stages at which it is asked: before_llm, after_llm, before_tool, approve_tool, after_tool.
    pub intercept: Option<Vec<String>>,
    /// Deadline of its calls: one for all, or one for each stage.
    pub timeout_ms: Option<PerStage<i64>>,
    /// What a fault becomes: `deny` or `continue` for before_tool, `continue` or `abort_turn` for other rewriters.
    pub on_failure: Option<PerStage<String>>,
    /// A regular expression, unanchored, on the tool's name: limits the tool stages.
    pub matcher: Option<String>,
    /// Tools that it may answer in their place: `any` (default), a glob or globs; always the ones it owns.
    pub respond: Option<OneOrMany>,
    /// The form of notifications: `hook` (default) or `runtime`.
    pub events: Option<String>,
    /// How long its handshake may take. Default 5000.
    #[schemars(range(min = 1))]
    pub start_timeout_ms: Option<i64>,
    /// Secret variables that are passed on to it, by exact name.
    pub inherit_env: Option<Vec<String>>,
    /// Whether naming one stage of a pair calls both. Default `true`.
    pub pair: Option<bool>,
    /// Whether likely mistakes in its answers are faults. Default `false`.
    pub strict: Option<bool>,
}

/// One value for all stages, or one for each.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged)]
pub enum PerStage<T> {
    /// For every stage that allows it.
    All(T),
    /// By stage.
    Each(EachStage<T>),
}

/// One value for each stage.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each is the stage of the same name")]
pub struct EachStage<T> {
    pub before_llm: Option<T>,
    pub after_llm: Option<T>,
    pub before_tool: Option<T>,
    pub approve_tool: Option<T>,
    pub after_tool: Option<T>,
}

/// A text, or a list of texts.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged)]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Any number.
    Many(Vec<String>),
}

// Written by hand because serde's own `untagged` loses the digits of numbers.
impl<'de, T: DeserializeOwned> Deserialize<'de> for PerStage<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PerStageVisitor(PhantomData))
    }
}

struct PerStageVisitor<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for PerStageVisitor<T> {
    type Value = PerStage<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one value, or a table by stage")
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(PerStage::All)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(PerStage::All)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(PerStage::All)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        EachStage::deserialize(MapAccessDeserializer::new(members)).map(PerStage::Each)
    }
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrManyVisitor)
    }
}

struct OneOrManyVisitor;

impl<'de> Visitor<'de> for OneOrManyVisitor {
    type Value = OneOrMany;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or a list of texts")
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(OneOrMany::One(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items)).map(OneOrMany::Many)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_value_are_read() {
        let raw: RawProcess = serde_json::from_str(
            r#"{"timeout_ms": 5, "on_failure": {"before_tool": "continue"}, "respond": ["a_*", "b"], "env": null}"#,
        )
        .unwrap();
        assert!(matches!(raw.timeout_ms, Some(PerStage::All(5))));
        let Some(PerStage::Each(each)) = raw.on_failure else { panic!("a table was written") };
        assert_eq!((each.before_tool.as_deref(), each.after_tool), (Some("continue"), None));
        assert!(matches!(raw.respond, Some(OneOrMany::Many(globs)) if globs == ["a_*", "b"]));
        assert!(serde_json::from_str::<RawProcess>(r#"{"timeout_ms": "5"}"#).is_err());
        assert!(serde_json::from_str::<RawProcess>(r#"{"timeout_ms": {"befor": 5}}"#).is_err());
    }
}
