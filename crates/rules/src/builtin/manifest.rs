//! Manifests of builtins: TOML, read strictly.

use pintle_domain::breaker::BreakerPolicy;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::rule::{AGENT_EVENTS, Fallback, HookScope};
use serde::Deserialize;

use super::{BuiltinRule, BuiltinTerms};

/// Longest time that a rule may take, in milliseconds. Source: the published format of rules.
const MAX_TIMEOUT_MS: u32 = 10_000;

/// A manifest that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It is no TOML, a member is missing or is none that a manifest has.
    #[error("manifest of a builtin: {0}")]
    Unreadable(String),
    /// A member cannot have the value that it has.
    #[error("builtin `{id}`: `{member}` is `{value}`, expected {expected}")]
    Value {
        /// The id of the builtin whose manifest it is.
        id: String,
        /// The member.
        member: &'static str,
        /// The value that it has.
        value: String,
        /// The values that it could have.
        expected: &'static str,
    },
}

/// The members as they are written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    id: String,
    version: u32,
    events: Vec<String>,
    scope: HookScope,
    matcher: String,
    if_expr: String,
    timeout_ms: u32,
    on_timeout: Fallback,
    priority: i32,
    breaker: BreakerPolicy,
    mutable_fields: Vec<String>,
    source_file: String,
    description: String,
    default_disabled: bool,
}

/// Reads a manifest; its script is one of `scripts`.
pub(super) fn read(text: &str, scripts: &[(&str, &'static str)]) -> Result<BuiltinRule, ManifestError> {
    let raw: Raw = toml::from_str(text).map_err(|e| ManifestError::Unreadable(e.to_string()))?;
    let bad = |member, value: &str, expected| {
        Err(ManifestError::Value { id: raw.id.clone(), member, value: value.to_owned(), expected })
    };
    if raw.id.is_empty()
        || !raw.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    {
        return bad("id", &raw.id, "lower-case letters, digits and `-`");
    }
    if raw.version == 0 {
        return bad("version", "0", "1 or more");
    }
    if raw.scope != HookScope::Global {
        return bad("scope", raw.scope.word(), "`global`: rows of builtins belong to nobody else");
    }
    if raw.timeout_ms == 0 || raw.timeout_ms > MAX_TIMEOUT_MS {
        return bad("timeout_ms", &raw.timeout_ms.to_string(), "1 to 10000");
    }
    let mut events = Vec::new();
    for name in &raw.events {
        match event_named(name) {
            Some(event) if !events.contains(&event) => events.push(event),
            Some(_) | None => return bad("events", name, "each of the seven events of agent hooks at most once"),
        }
    }
    if events.is_empty() {
        return bad("events", "", "one event or more");
    }
    if let Some(field) = raw.mutable_fields.iter().find(|field| !is_field(field)) {
        return bad("mutable_fields", field, "`rawInput`, `toolInput` or `toolInput.KEY`");
    }
    if let Err(why) = regex::Regex::new(&raw.matcher) {
        return bad("matcher", &why.to_string(), "a pattern that compiles");
    }
    if !raw.if_expr.is_empty()
        && let Err(why) = crate::condition::compile(&raw.if_expr)
    {
        return bad("if_expr", &why, "an expression that compiles");
    }
    let Some((_, source)) = scripts.iter().find(|(name, _)| *name == raw.source_file) else {
        return bad("source_file", &raw.source_file, "a script beside the manifest");
    };
    Ok(BuiltinRule {
        terms: BuiltinTerms {
            scope: raw.scope,
            matcher: raw.matcher,
            if_expr: raw.if_expr,
            timeout_ms: raw.timeout_ms,
            on_timeout: raw.on_timeout,
            priority: raw.priority,
            breaker: raw.breaker,
        },
        id: raw.id,
        version: raw.version,
        events,
        mutable_fields: raw.mutable_fields,
        source,
        description: raw.description,
        default_disabled: raw.default_disabled,
    })
}

fn event_named(name: &str) -> Option<CheckpointKind> {
    AGENT_EVENTS.into_iter().find(|event| event.name() == name)
}

fn is_field(field: &str) -> bool {
    field == "rawInput" || field == "toolInput" || field.strip_prefix("toolInput.").is_some_and(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = include_str!("pii-redactor.toml");

    /// The error about the manifest of the redactor once `from` in it is `to`.
    #[track_caller]
    fn check(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from}");
        read(&GOOD.replacen(from, to, 1), &[("pii-redactor.js", "")]).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(check("version = 3", "version = \"3\"").contains("invalid type: string"));
        assert!(check("priority = 900", "priorty = 900").contains("unknown field `priorty`"));
        assert!(check("scope = \"global\"", "scope = \"all\"").contains("unknown variant `all`"));
        assert!(check("breaker = \"faults\"\n", "").contains("missing field `breaker`"));
        let named = [
            check("id = \"pii-redactor\"", "id = \"PII\""),
            check("version = 3", "version = 0"),
            check("\"global\"", "\"tenant\""),
            check("\"pre_tool_use\"", "\"before_tool\""),
            check("\"pre_tool_use\"", "\"user_prompt_submit\""),
            check("2000", "10001"),
            check("\"rawInput\"", "\"toolInput.\""),
            check("matcher = \"\"", "matcher = \"(\""),
            check("if_expr = \"\"", "if_expr = \"1\""),
            check("pii-redactor.js", "other.js"),
        ];
        let members = [
            "id",
            "version",
            "scope",
            "events",
            "events",
            "timeout_ms",
            "mutable_fields",
            "matcher",
            "if_expr",
            "source_file",
        ];
        for (message, member) in named.iter().zip(members) {
            assert!(message.contains(&format!(": `{member}` is `")), "{message}");
        }
    }
}
