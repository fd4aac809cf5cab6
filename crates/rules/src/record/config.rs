//! The settings of each handler, read from the member `config` of a record or of a row.

use std::fmt;

use pintle_domain::json::{Object, Value};
use pintle_domain::rule::HandlerType;

use super::typed::{Kind, Members, Place, typed};
use super::{MAX_COMMAND_BYTES, MAX_TEMPLATE_BYTES, RecordError};

/// The model of a judge unless the record names one. Source: the published format of rules.
pub const DEFAULT_MODEL: &str = "haiku";
/// How often a judge may be called in one turn unless the record says otherwise. Source: the published format of
/// rules.
pub const DEFAULT_INVOCATIONS: u32 = 5;
/// Most that a record may say: a turn with more calls than this has another problem.
pub const MAX_INVOCATIONS: u32 = 100;

/// What is known of every record with a handler of one type. A new type says here what it has of it.
pub(super) struct HandlerTraits {
    /// The members that `config` may have.
    pub(super) members: Members<'static>,
    /// The member whose text row 6 bounds, and its bound in bytes. The size of a script belongs to row 3.
    pub(super) bounded: Option<(&'static str, usize)>,
    /// Whether it has the rights of the host.
    pub(super) acts_as_host: bool,
    /// Whether each run costs money, so that a record has to say when it is wanted.
    pub(super) costs_money: bool,
    /// Whether secrets stand in its `config`: in its headers and as what signs requests.
    pub(super) has_secrets: bool,
}

impl HandlerTraits {
    const NONE: Self =
        Self { members: &[], bounded: None, acts_as_host: false, costs_money: false, has_secrets: false };

    pub(super) fn of(handler: HandlerType) -> Self {
        match handler {
            HandlerType::Command => Self {
                members: &[("command", Kind::Text), ("allowed_env_vars", Kind::Texts), ("cwd", Kind::Text)],
                bounded: Some(("command", MAX_COMMAND_BYTES)),
                acts_as_host: true,
                ..Self::NONE
            },
            HandlerType::Http => Self {
                members: &[
                    ("url", Kind::Text),
                    ("headers", Kind::TextMap),
                    ("secret_headers", Kind::Texts),
                    ("strict", Kind::Flag),
                    ("signing_secret", Kind::Text),
                    ("method", Kind::Post),
                    ("body_template", Kind::Ignored),
                ],
                has_secrets: true,
                ..Self::NONE
            },
            HandlerType::Prompt => Self {
                members: &[
                    ("prompt_template", Kind::Text),
                    ("model", Kind::Text),
                    ("max_invocations_per_turn", Kind::Integer),
                    ("provider", Kind::Text),
                    ("on_injection", Kind::Text),
                ],
                bounded: Some(("prompt_template", MAX_TEMPLATE_BYTES)),
                costs_money: true,
                ..Self::NONE
            },
            HandlerType::Script => Self { members: &[("source", Kind::Text)], ..Self::NONE },
        }
    }
}

/// The members that `config` may have.
pub(super) fn members_of(handler: HandlerType) -> Members<'static> {
    HandlerTraits::of(handler).members
}

/// The settings of a handler of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerConfig {
    /// Of a shell command.
    Command(CommandConfig),
    /// Of a request.
    Http(HttpConfig),
    /// Of a judge.
    Prompt(PromptConfig),
    /// Of a small program.
    Script(ScriptConfig),
}

impl HandlerConfig {
    /// Reads the settings of a handler of this kind.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn of(handler: HandlerType, config: &Object) -> Result<Self, RecordError> {
        Self::complete(handler, &typed(config, members_of(handler), Place::Config)?)
    }

    /// The settings in an object whose members have the right types.
    pub(super) fn complete(handler: HandlerType, config: &Object) -> Result<Self, RecordError> {
        match handler {
            HandlerType::Command => CommandConfig::complete(config).map(Self::Command),
            HandlerType::Http => HttpConfig::complete(config).map(Self::Http),
            HandlerType::Prompt => PromptConfig::complete(config).map(Self::Prompt),
            HandlerType::Script => ScriptConfig::complete(config).map(Self::Script),
        }
    }

    /// The script that has to compile, if it has one.
    pub fn script(&self) -> Option<&str> {
        match self {
            Self::Script(config) => Some(&config.source),
            Self::Command(_) | Self::Http(_) | Self::Prompt(_) => None,
        }
    }

    /// The request whose address, headers and secrets have to be good, if it sends one.
    pub fn request(&self) -> Option<&HttpConfig> {
        match self {
            Self::Http(config) => Some(config),
            Self::Command(_) | Self::Prompt(_) | Self::Script(_) => None,
        }
    }
}

/// The settings of a shell command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandConfig {
    /// For `sh -c`.
    pub command: String,
    /// Variables of the host that it may see.
    pub allowed_env_vars: Vec<String>,
    /// Where it runs, from the agent's workspace; there if it does not say.
    pub cwd: Option<String>,
}

impl CommandConfig {
    /// The configuration of an object whose members have the right types.
    fn complete(config: &Object) -> Result<Self, RecordError> {
        let command = text(config, "command");
        if command.trim().is_empty() {
            return Err(RecordError::hook("command handler: missing 'command' in config"));
        }
        let cwd = Some(text(config, "cwd")).filter(|cwd| !cwd.is_empty()).map(ToOwned::to_owned);
        Ok(Self { command: command.to_owned(), allowed_env_vars: texts(config, "allowed_env_vars"), cwd })
    }
}

/// The settings of a request.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// Absolute, http or https.
    pub url: String,
    /// Names and values; secrets as they are kept.
    pub headers: Vec<(String, String)>,
    /// Names of headers whose values are secret, beyond those that always are.
    pub secret_headers: Vec<String>,
    /// Whether an answer that is not JSON is a fault.
    pub strict: bool,
    /// Signs requests; a secret, as it is kept.
    pub signing_secret: Option<String>,
}

/// Without values: some are secrets.
impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpConfig")
            .field("url", &self.url)
            .field("headers", &headers)
            .field("secret_headers", &self.secret_headers)
            .field("strict", &self.strict)
            .field("is_signed", &self.signing_secret.is_some())
            .finish()
    }
}

impl HttpConfig {
    /// The configuration of an object whose members have the right types.
    fn complete(config: &Object) -> Result<Self, RecordError> {
        let url = text(config, "url");
        if url.trim().is_empty() {
            return Err(RecordError::hook("http handler: missing 'url' in config"));
        }
        let headers = config.get("headers").and_then(Value::as_object).into_iter().flatten();
        let headers = headers.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        let signing_secret = text(config, "signing_secret");
        Ok(Self {
            url: url.to_owned(),
            headers: headers.collect(),
            secret_headers: texts(config, "secret_headers"),
            strict: config.get("strict").and_then(Value::as_bool).unwrap_or_default(),
            signing_secret: Some(signing_secret).filter(|secret| !secret.is_empty()).map(ToOwned::to_owned),
        })
    }
}

/// The effect of a judge's word that the data tried to instruct it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnInjection {
    /// No, whatever else it says.
    #[default]
    Block,
    /// Nothing.
    Ignore,
}

/// The settings of a judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptConfig {
    /// The rule that it judges by.
    pub prompt_template: String,
    /// The model.
    pub model: String,
    /// How often it may be called in one turn.
    pub max_invocations_per_turn: u32,
    /// The provider of the model, if that is not left to the host.
    pub provider: Option<String>,
    /// The effect of an attempt to instruct the judge.
    pub on_injection: OnInjection,
}

impl PromptConfig {
    /// The configuration of an object whose members have the right types.
    fn complete(config: &Object) -> Result<Self, RecordError> {
        let prompt_template = text(config, "prompt_template");
        if prompt_template.trim().is_empty() {
            return Err(RecordError::hook("prompt handler requires non-empty prompt_template"));
        }
        let model = Some(text(config, "model")).filter(|model| !model.is_empty()).unwrap_or(DEFAULT_MODEL);
        let provider = Some(text(config, "provider")).filter(|provider| !provider.is_empty());
        Ok(Self {
            prompt_template: prompt_template.to_owned(),
            model: model.to_owned(),
            max_invocations_per_turn: invocations(config)?,
            provider: provider.map(ToOwned::to_owned),
            on_injection: on_injection(text(config, "on_injection"))?,
        })
    }
}

fn invocations(config: &Object) -> Result<u32, RecordError> {
    let Some(number) = config.get("max_invocations_per_turn").and_then(Value::as_number) else {
        return Ok(DEFAULT_INVOCATIONS);
    };
    let read = number.as_str().parse().ok().filter(|n| (1..=MAX_INVOCATIONS).contains(n));
    read.ok_or_else(|| {
        let got: String = number.as_str().chars().take(20).collect();
        RecordError::hook(format!(
            "prompt handler: max_invocations_per_turn must be from 1 to {MAX_INVOCATIONS}, got {got}"
        ))
    })
}

fn on_injection(word: &str) -> Result<OnInjection, RecordError> {
    match word {
        "" | "block" => Ok(OnInjection::Block),
        "ignore" => Ok(OnInjection::Ignore),
        other => Err(RecordError::hook(format!(
            "prompt handler: on_injection must be block or ignore, got {}",
            super::quoted(other)
        ))),
    }
}

/// The settings of a small program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptConfig {
    /// Its text.
    pub source: String,
}

impl ScriptConfig {
    /// The configuration of an object whose members have the right types.
    fn complete(config: &Object) -> Result<Self, RecordError> {
        let source = text(config, "source");
        if source.trim().is_empty() {
            return Err(RecordError::hook("script handler requires non-empty config.source"));
        }
        let (max, bytes) = (super::MAX_SOURCE_BYTES, source.len());
        if bytes > max {
            return Err(RecordError::hook(format!("script source exceeds {max} bytes (got {bytes})")));
        }
        Ok(Self { source: source.to_owned() })
    }
}

fn text<'a>(config: &'a Object, name: &str) -> &'a str {
    config.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn texts(config: &Object, name: &str) -> Vec<String> {
    let items = config.get(name).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}
