//! What models take in the middle of a conversation: data, never code.
//!
//! `capabilities.toml` of this crate is the table that ships; [`Overrides`] is what a configuration says otherwise of
//! one provider, key by key. See [`lower`](crate::lower) for what is made of it.

use std::sync::LazyLock;

use globset::GlobMatcher;
use serde::Deserialize;

use crate::ProviderError;

/// The table that ships.
const SHIPPED: &str = include_str!("../capabilities.toml");
/// Longest name of a provider's marker, in bytes: it is the name of a member of JSON.
const MAX_MARKER_BYTES: usize = 64;
/// Most cache breakpoints of one request: no provider takes more.
const MAX_CACHE_BREAKPOINTS: u8 = 4;
/// Names that a marked text has anyway.
const TAKEN: [&str; 5] = ["type", "text", "role", "content", "cache_control"];

/// The capabilities of a model: what it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The `match` of the entry that it comes from; empty if none fits.
    pub entry: String,
    /// Where system messages may stand.
    pub mid_system: MidSystem,
    /// Which places are meant by [`MidSystem::Placed`].
    pub placement: Placement,
    /// Whether messages of the user and of the model must alternate.
    pub alternation: bool,
    /// Whether a message of the user may follow the result of a tool.
    pub user_after_tool: bool,
    /// The provider's marker for text that expires with the turn; empty if there is none.
    pub turn_scoped: String,
    /// Whether thoughts are bound to everything that was sent before them.
    pub prefix_bound_reasoning: bool,
    /// How many cache breakpoints a request may have.
    pub cache_breakpoints: u8,
}

/// Where system messages may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MidSystem {
    /// Anywhere.
    Free,
    /// Where [`Placement`] allows it.
    Placed,
    /// At the beginning only.
    None,
}

/// The places in which a system message may stand.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// The kinds of messages that may stand before it.
    pub after: Vec<MessageBefore>,
    /// The kinds of messages that may stand behind it.
    pub before: Vec<MessageAfter>,
    /// Whether one may stand beside another one.
    #[serde(default)]
    pub consecutive: bool,
}

/// The kind of message before a system message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageBefore {
    /// A message of the user.
    User,
    /// A message of the model.
    Assistant,
    /// The result of a tool.
    Tool,
}

/// The kind of message behind a system message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageAfter {
    /// A message of the user.
    User,
    /// A message of the model.
    Assistant,
    /// Nothing more.
    End,
}

impl Default for Placement {
    /// The places of the first vendor that had any.
    fn default() -> Self {
        Self {
            after: vec![MessageBefore::User, MessageBefore::Tool],
            before: vec![MessageAfter::Assistant, MessageAfter::End],
            consecutive: false,
        }
    }
}

impl Default for Capabilities {
    /// The strictest values: they suit every server.
    fn default() -> Self {
        Self {
            entry: String::new(),
            mid_system: MidSystem::None,
            placement: Placement::default(),
            alternation: true,
            user_after_tool: false,
            turn_scoped: String::new(),
            prefix_bound_reasoning: false,
            cache_breakpoints: 0,
        }
    }
}

/// The values that are given for a model, or of all models of one provider, instead of what would hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Overrides {
    /// [`Capabilities::mid_system`].
    pub mid_system: Option<MidSystem>,
    /// [`Capabilities::placement`].
    pub placement: Option<Placement>,
    /// [`Capabilities::alternation`].
    pub alternation: Option<bool>,
    /// [`Capabilities::user_after_tool`].
    pub user_after_tool: Option<bool>,
    /// [`Capabilities::turn_scoped`].
    pub turn_scoped: Option<String>,
    /// [`Capabilities::prefix_bound_reasoning`].
    pub prefix_bound_reasoning: Option<bool>,
    /// [`Capabilities::cache_breakpoints`].
    pub cache_breakpoints: Option<u8>,
}

impl Overrides {
    /// Whether every value can be meant.
    ///
    /// # Errors
    /// The first one that cannot.
    pub fn check(&self) -> Result<(), CapabilityError> {
        if let Some(Placement { after, before, .. }) = &self.placement {
            for (empty, key, some) in [
                (after.is_empty(), "placement.after", "`user`, `assistant`, `tool`"),
                (before.is_empty(), "placement.before", "`user`, `assistant`, `end`"),
            ] {
                if empty {
                    let problem = format!("is empty, so no place is left; expected some of {some}");
                    return Err(CapabilityError::Value { key, problem });
                }
            }
        }
        let marker = self.turn_scoped.as_deref().unwrap_or_default();
        if marker.len() > MAX_MARKER_BYTES || marker.chars().any(char::is_control) || TAKEN.contains(&marker) {
            let problem = format!(
                "is {marker:?}; expected the name of a member, of at most {MAX_MARKER_BYTES} bytes and none of {}",
                TAKEN.join(", ")
            );
            return Err(CapabilityError::Value { key: "turn_scoped", problem });
        }
        match self.cache_breakpoints {
            Some(count) if count > MAX_CACHE_BREAKPOINTS => {
                let problem = format!("is {count}; expected at most {MAX_CACHE_BREAKPOINTS}");
                Err(CapabilityError::Value { key: "cache_breakpoints", problem })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// `base`, but for what is said here.
    #[must_use]
    pub fn over(&self, base: Capabilities) -> Capabilities {
        let said = self.clone();
        Capabilities {
            entry: base.entry,
            mid_system: said.mid_system.unwrap_or(base.mid_system),
            placement: said.placement.unwrap_or(base.placement),
            alternation: said.alternation.unwrap_or(base.alternation),
            user_after_tool: said.user_after_tool.unwrap_or(base.user_after_tool),
            turn_scoped: said.turn_scoped.unwrap_or(base.turn_scoped),
            prefix_bound_reasoning: said.prefix_bound_reasoning.unwrap_or(base.prefix_bound_reasoning),
            cache_breakpoints: said.cache_breakpoints.unwrap_or(base.cache_breakpoints),
        }
    }
}

/// The fault of a table or an override.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CapabilityError {
    /// The file is not a table.
    #[error("{0}; expected entries `[[model]]`")]
    NoTable(String),
    /// An entry cannot be read.
    #[error("`[[model]]` number {number}{named}: {problem}")]
    Entry {
        /// Which, counted from 1.
        number: usize,
        /// Its `match`, if it has one.
        named: String,
        /// The problem.
        problem: String,
    },
    /// A value cannot be meant.
    #[error("`{key}` {problem}")]
    Value {
        /// The key.
        key: &'static str,
        /// The problem.
        problem: String,
    },
}

/// The table of the capabilities of models.
#[derive(Clone, Debug)]
pub struct CapabilityTable {
    entries: Vec<(GlobMatcher, Capabilities)>,
}

impl CapabilityTable {
    /// The table that ships.
    pub fn shipped() -> &'static Self {
        static TABLE: LazyLock<CapabilityTable> =
            LazyLock::new(|| CapabilityTable::parse(SHIPPED).expect("the table that ships is read in a test"));
        &TABLE
    }

    /// The table that `text` is.
    ///
    /// # Errors
    /// The first thing that is wrong with it, by entry and key.
    pub fn parse(text: &str) -> Result<Self, CapabilityError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            #[serde(default)]
            model: Vec<toml::Table>,
        }
        let file: File = toml::from_str(text).map_err(|e| CapabilityError::NoTable(e.to_string()))?;
        let entries = file.model.into_iter().enumerate();
        Ok(Self { entries: entries.map(|(at, entry)| self::entry(at + 1, entry)).collect::<Result<_, _>>()? })
    }

    /// The patterns of the entries, in their order.
    pub fn patterns(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(_, capabilities)| capabilities.entry.as_str())
    }

    /// The values of the first entry that fits `model` of `provider`; the strictest values if none does.
    pub fn of(&self, provider: &str, model: &str) -> Capabilities {
        self.of_any(&[provider.to_owned()], model)
    }

    /// The same for a provider of several names, the first of which counts that an entry fits.
    pub fn of_any(&self, names: &[String], model: &str) -> Capabilities {
        let fits = names.iter().find_map(|provider| {
            let name = format!("{provider}/{model}");
            self.entries.iter().find(|(pattern, _)| pattern.is_match(&name))
        });
        fits.map(|(_, capabilities)| capabilities.clone()).unwrap_or_default()
    }
}

fn entry(number: usize, mut keys: toml::Table) -> Result<(GlobMatcher, Capabilities), CapabilityError> {
    let pattern = keys.remove("match");
    let pattern = pattern.as_ref().and_then(toml::Value::as_str).unwrap_or_default().to_owned();
    let wrong = |problem: String| {
        let named = if pattern.is_empty() { String::new() } else { format!(" (`{pattern}`)") };
        CapabilityError::Entry { number, named, problem }
    };
    if pattern.is_empty() {
        return Err(wrong("`match` is missing; expected a pattern over PROVIDER/MODEL, such as `local/*`".into()));
    }
    let glob = globset::Glob::new(&pattern).map_err(|e| wrong(format!("`match` is not a pattern: {}", e.kind())))?;
    let said = Overrides::deserialize(keys).map_err(|e| wrong(e.message().to_owned()))?;
    said.check().map_err(|e| wrong(e.to_string()))?;
    let strictest = Capabilities { entry: pattern.clone(), ..Capabilities::default() };
    Ok((glob.compile_matcher(), said.over(strictest)))
}

/// How servers speak of a message that stands where it may not, in lower case.
const ABOUT_PLACES: [&str; 9] = [
    "role",
    "alternate",
    "system message",
    "system prompt",
    "consecutive",
    "position",
    "at the beginning",
    "chat template",
    "after tool",
];

impl Capabilities {
    /// `error`, with the entry to change if it is about where a message stands or who speaks in it.
    pub(crate) fn explain(&self, mut error: ProviderError, provider: &str) -> ProviderError {
        let said = match &error {
            ProviderError::Final { message } => message.to_lowercase(),
            ProviderError::Transient { .. } => return error,
        };
        if ABOUT_PLACES.iter().any(|words| said.contains(words)) {
            let entry = match self.entry.is_empty() {
                true => "no entry of the table of capabilities fits this model".to_owned(),
                false => format!("this model goes by the entry `{}` of the table of capabilities", self.entry),
            };
            let message = error.message_mut();
            *message = format!("{message}; {entry}: correct it in `[providers.{provider}.capabilities]`");
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entry_that_fits_counts_and_else_the_strictest_values() {
        let table = CapabilityTable::shipped();
        let line = |provider: &str, model: &str| {
            let it = table.of(provider, model);
            format!(
                "{} {:?} {} {} {:?} {} {}",
                it.entry,
                it.mid_system,
                it.alternation,
                it.user_after_tool,
                it.turn_scoped,
                it.prefix_bound_reasoning,
                it.cache_breakpoints
            )
        };
        assert_eq!(line("anthropic", "claude-opus-4-8"), "anthropic/claude-opus-4-8* Placed true true \"\" false 4");
        assert_eq!(line("anthropic", "claude-opus-5-1"), "anthropic/claude-opus-5* Placed true true \"\" false 4");
        assert_eq!(line("anthropic", "claude-haiku-4-5"), "anthropic/* None true true \"\" false 4");
        assert_eq!(line("openai", "gpt-5"), "openai/* Free false true \"\" false 0");
        assert_eq!(line("local", "org/qwen3-4b"), "local/* None true true \"\" false 0");
        assert_eq!(line("other", "openai/gpt-5"), " None true false \"\" false 0");
        assert_eq!(table.of("other", "x"), Capabilities::default());
    }

    #[test]
    fn a_configuration_overrides_key_by_key() {
        let said: Overrides = toml::from_str("mid_system = \"free\"\nturn_scoped = \"fades\"").unwrap();
        let base = CapabilityTable::shipped().of("local", "m");
        let expected = Capabilities { mid_system: MidSystem::Free, turn_scoped: "fades".into(), ..base.clone() };
        assert_eq!(said.over(base.clone()), expected);
        assert_eq!(Overrides::default().over(base.clone()), base);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let table = [
            ("model = 1", "NoTable"),
            (
                "[[model]]",
                "`[[model]]` number 1: `match` is missing; expected a pattern over PROVIDER/MODEL, such as `local/*`",
            ),
            (
                "[[model]]\nmatch = \"a/[\"",
                "`[[model]]` number 1 (`a/[`): `match` is not a pattern: unclosed character class; missing ']'",
            ),
            (
                "[[model]]\nmatch = \"a/*\"\n[[model]]\nmatch = \"b/*\"\nmid_system = \"some\"",
                "`[[model]]` number 2 (`b/*`): unknown variant `some`, expected one of `free`, `placed`, `none`",
            ),
            (
                "[[model]]\nmatch = \"a/*\"\nalternate = true",
                "`[[model]]` number 1 (`a/*`): unknown field `alternate`, expected one of `mid_system`, `placement`, \
                 `alternation`, `user_after_tool`, `turn_scoped`, `prefix_bound_reasoning`, `cache_breakpoints`",
            ),
            (
                "[[model]]\nmatch = \"a/*\"\nplacement = { after = [], before = [\"end\"] }",
                "`[[model]]` number 1 (`a/*`): `placement.after` is empty, so no place is left; expected some of \
                 `user`, `assistant`, `tool`",
            ),
            (
                "[[model]]\nmatch = \"a/*\"\nturn_scoped = \"text\"",
                "`[[model]]` number 1 (`a/*`): `turn_scoped` is \"text\"; expected the name of a member, of at most 64 \
                 bytes and none of type, text, role, content, cache_control",
            ),
            (
                "[[model]]\nmatch = \"a/*\"\ncache_breakpoints = 9",
                "`[[model]]` number 1 (`a/*`): `cache_breakpoints` is 9; expected at most 4",
            ),
        ];
        for (text, expected) in table {
            match CapabilityTable::parse(text) {
                Err(CapabilityError::NoTable(_)) => assert_eq!(expected, "NoTable", "{text}"),
                Err(error) => assert_eq!(error.to_string(), expected, "{text}"),
                Ok(_) => panic!("{text} was taken"),
            }
        }
    }

    #[test]
    fn a_refusal_over_places_names_the_entry() {
        let explained =
            |text: &str| CapabilityTable::shipped().of("local", "m").explain(ProviderError::fatal(text), "local");
        assert_eq!(
            explained("refused the request (400): Conversation roles must alternate").to_string(),
            "refused the request (400): Conversation roles must alternate; this model goes by the entry `local/*` of \
             the table of capabilities: correct it in `[providers.local.capabilities]`"
        );
        assert_eq!(explained("the key was refused (401)").to_string(), "the key was refused (401)");
        assert_eq!(
            Capabilities::default().explain(ProviderError::fatal("bad role"), "x").to_string(),
            "bad role; no entry of the table of capabilities fits this model: correct it in \
             `[providers.x.capabilities]`"
        );
    }
}
