//! The models that judge for hooks: which one is meant, and how it is asked.
//!
//! **Which one.** The hook's own provider; else the vendor of the model that it names, if that vendor is configured
//! ([`VENDORS`]); else `agent_hooks.prompt`, then `background`, then the first provider by name that an agent uses, each
//! with *its own* model. A model may also be written `PROVIDER/MODEL`. What is named and not there is an error, never
//! somebody else: a judge that nobody chose must not decide.
//!
//! **How.** Such a call fires no hooks and streams to nobody; dropping it ends it. A failure that may pass is tried
//! once more after at most [`LONGEST_PAUSE`]; where the provider asks for a longer wait, the first failure stands, since
//! a wait that outlives the hook would turn a fault, which blocks, into a timeout, which may allow. A request that is
//! refused for something that not every model takes ([`CONCESSIONS`]) goes out again without it. A judge that then
//! answers in free text is a fault of the hook.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use pintle_domain::checkpoint::runtime::RetryReason;
use pintle_domain::json::Value;
use pintle_domain::llm::{LlmReply, LlmRequest};
use pintle_providers::{Delta, Provider, ProviderError, ProviderSpec, WireKind};
use pintle_rules::handler::{Evaluator, JudgeChoice, JudgeSettings, Judgement, QuestionSent};
use pintle_rules::judge::JudgeQuestion;

use crate::config::{Config, ProviderConfig, ProviderConfigKind};

/// The message where nobody can judge.
const NOBODY: &str = "hook resolver: no providers registered for tenant";
/// The wait before the second try, if the provider asks for none: long enough for a dropped connection to heal.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest wait that a provider may ask for: a hook has a few seconds in all.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The models that the short names of Anthropic's stand for: in each line the newest model that takes temperature 0
/// and a forced tool call and does not think unasked, so that 512 tokens hold its answer. As of November 2026.
const ALIASES: [(&str, &str); 3] =
    [("haiku", "claude-haiku-4-5"), ("sonnet", "claude-sonnet-4-6"), ("opus", "claude-opus-4-6")];

/// Who makes a model, and how its provider is recognised.
struct Vendor {
    /// Its models, with `*` at the end for any rest.
    models: &'static [&'static str],
    /// The providers that serve them.
    served_by: ServedBy,
}

/// How the providers of a vendor are told.
enum ServedBy {
    /// They speak Anthropic's messages, wherever they are.
    Anthropic,
    /// They speak chat completions at the vendor's own address: none is set, or its host ends so.
    OpenAiAt(&'static [&'static str]),
    /// Their name or their host contains one of these words.
    NameSays(&'static [&'static str]),
}

/// The vendors that are known.
const VENDORS: [Vendor; 4] = [
    Vendor { models: &["claude*", "haiku", "sonnet", "opus"], served_by: ServedBy::Anthropic },
    Vendor {
        models: &["gpt*", "o1*", "o3*", "o4*"],
        served_by: ServedBy::OpenAiAt(&["openai.com", "openai.azure.com"]),
    },
    Vendor {
        models: &["gemini*"],
        served_by: ServedBy::NameSays(&["gemini", "google", "generativelanguage.googleapis.com"]),
    },
    Vendor { models: &["qwen*"], served_by: ServedBy::NameSays(&["qwen", "dashscope", "aliyuncs.com"]) },
];

/// The concession about a request that is refused for one of its options.
struct Concession {
    /// The word that the refusal names.
    word: &'static str,
    /// The option.
    option: &'static str,
    /// The remedy for it.
    remedy: Remedy,
}

enum Remedy {
    /// It is left out: the model has a temperature of its own.
    Drop,
    /// It goes out under this name.
    Rename(&'static str),
    /// It has this value: the question asks for the call in words too.
    Set(&'static str),
}

/// In the order in which they are tried, each once.
const CONCESSIONS: [Concession; 3] = [
    Concession { word: "max_completion_tokens", option: "max_tokens", remedy: Remedy::Rename("max_completion_tokens") },
    Concession { word: "temperature", option: "temperature", remedy: Remedy::Drop },
    Concession { word: "tool_choice", option: "tool_choice", remedy: Remedy::Set("auto") },
];

/// The providers of a configuration, as judges.
pub struct ModelJudges {
    /// In the order of their names.
    served: Vec<Served>,
    aliases: BTreeMap<String, String>,
}

/// One provider.
struct Served {
    name: String,
    wire: WireKind,
    /// The host of its address, if one is set.
    host: Option<String>,
    connected: Result<Arc<dyn Provider>, String>,
    /// The model that agents use it with.
    own_model: Option<String>,
}

/// Who is asked.
struct Chosen<'a> {
    served: &'a Served,
    model: String,
}

impl ModelJudges {
    /// The providers of `config`, each with the settings that `spec` makes of it. `aliases` stand for other models of
    /// Anthropic than [`ALIASES`] says, or beside them.
    pub fn new(
        config: &Config,
        aliases: BTreeMap<String, String>,
        spec: impl Fn(&str, &ProviderConfig) -> ProviderSpec,
    ) -> Self {
        let served = config.providers.iter().map(|(name, provider)| {
            let (wire, base_url) = match &provider.kind {
                ProviderConfigKind::Server { wire, base_url, .. } => (*wire, base_url.as_ref()),
                ProviderConfigKind::Scripted { .. } => (WireKind::Scripted, None),
            };
            Served {
                name: name.clone(),
                wire,
                host: base_url.and_then(|url| url.host_str()).map(str::to_ascii_lowercase),
                connected: pintle_providers::connect(&spec(name, provider))
                    .map_err(|error| format!("providers.{name}: {error}")),
                own_model: own_model(config, name),
            }
        });
        let usual = ALIASES.map(|(alias, model)| (alias.to_owned(), model.to_owned()));
        Self { served: served.collect(), aliases: usual.into_iter().chain(aliases).collect() }
    }

    fn choose(&self, wanted: &JudgeChoice<'_>) -> Result<Chosen<'_>, String> {
        if self.served.is_empty() {
            return Err(NOBODY.into());
        }
        if let Some(name) = wanted.provider {
            let served = self.named(name).ok_or_else(|| self.unknown(name))?;
            return self.at(served, wanted);
        }
        if let Some(chosen) = self.of_model(wanted.model) {
            return Ok(chosen);
        }
        let JudgeSettings { prompt, background } = wanted.settings;
        for (path, setting) in [("agent_hooks.prompt", prompt), ("background", background)] {
            if let Some(setting) = setting {
                return self.set(setting).map_err(|why| format!("{why}; see `{path}`"));
            }
        }
        let own = |served: &'_ Served| served.own_model.clone();
        let first = self.served.iter().find_map(|served| Some(Chosen { served, model: own(served)? }));
        first.ok_or_else(|| {
            format!(
                "hook resolver: no model is configured to judge in place of `{}`; \
                 set `agent_hooks.prompt.provider` and `agent_hooks.prompt.model`",
                wanted.model
            )
        })
    }

    fn named(&self, name: &str) -> Option<&Served> {
        self.served.iter().find(|served| served.name == name)
    }

    fn unknown(&self, name: &str) -> String {
        let known: Vec<&str> = self.served.iter().map(|served| served.name.as_str()).collect();
        format!("hook resolver: there is no provider `{name}`; the providers are {}", known.join(", "))
    }

    /// Who serves `model`, if its name tells.
    fn of_model(&self, model: &str) -> Option<Chosen<'_>> {
        let written = model.split_once('/').and_then(|(name, rest)| Some((self.named(name)?, rest)));
        if let Some((served, model)) = written.filter(|(_, model)| !model.is_empty()) {
            return Some(Chosen { served, model: self.spelled(served, model) });
        }
        let vendor = VENDORS.iter().find(|vendor| vendor.makes(model))?;
        let served = self.served.iter().find(|served| vendor.served_by.is(served))?;
        Some(Chosen { served, model: self.spelled(served, model) })
    }

    /// What the settings name: `PROVIDER/MODEL`, a provider alone, or a model whose name tells its provider.
    fn set(&self, setting: &str) -> Result<Chosen<'_>, String> {
        if let Some(chosen) = self.of_model(setting) {
            return Ok(chosen);
        }
        let name = setting.split('/').next().unwrap_or(setting);
        let served = self.named(name).ok_or_else(|| self.unknown(name))?;
        let model = served.own_model.clone();
        model.map(|model| Chosen { served, model }).ok_or_else(|| served.no_model())
    }

    /// The hook's provider: with the hook's model, unless that is an alias of a vendor whom the provider does not
    /// serve.
    fn at<'a>(&self, served: &'a Served, wanted: &JudgeChoice<'_>) -> Result<Chosen<'a>, String> {
        let model = self.spelled(served, wanted.model);
        if !self.aliases.contains_key(&model) {
            return Ok(Chosen { served, model });
        }
        let settings = [&wanted.settings.prompt, &wanted.settings.background].into_iter().flatten();
        let set = settings.filter_map(|setting| setting.split_once('/')).find(|(name, _)| *name == served.name);
        let model = set.map(|(_, model)| model.to_owned()).or_else(|| served.own_model.clone());
        model.map(|model| Chosen { served, model }).ok_or_else(|| served.no_model())
    }

    /// `model` as `served` knows it: its vendor's own name for an alias.
    fn spelled(&self, served: &Served, model: &str) -> String {
        let full = self.aliases.get(model).filter(|_| ServedBy::Anthropic.is(served));
        full.map_or(model, String::as_str).to_owned()
    }

    /// Who would be asked, by its full name.
    fn ready(&self, wanted: &JudgeChoice<'_>) -> Result<(&dyn Provider, String, String), String> {
        let Chosen { served, model } = self.choose(wanted)?;
        let provider = served.connected.as_ref().map_err(Clone::clone)?;
        let full = format!("{}/{model}", served.name);
        Ok((&**provider, model, full))
    }

    async fn ask(
        &self,
        wanted: JudgeChoice<'_>,
        question: JudgeQuestion,
        sent: &QuestionSent,
    ) -> Result<Judgement, String> {
        let (provider, model, full) = self.ready(&wanted)?;
        let mut request = question.to(&full);
        if !pintle_providers::quirks::takes_temperature(&model) {
            request.options.shift_remove("temperature");
        }
        let reply = answer((provider, &model), request, sent).await?;
        Ok(Judgement { reply, model: full })
    }
}

impl Evaluator for ModelJudges {
    fn judge<'a>(
        &'a self,
        wanted: JudgeChoice<'a>,
        question: JudgeQuestion,
        sent: &'a QuestionSent,
    ) -> BoxFuture<'a, Result<Judgement, String>> {
        self.ask(wanted, question, sent).boxed()
    }

    fn would_ask(&self, wanted: JudgeChoice<'_>) -> Result<String, String> {
        self.ready(&wanted).map(|(_, _, full)| full)
    }
}

impl Served {
    fn no_model(&self) -> String {
        format!(
            "hook resolver: no model of the provider `{}` is configured to judge; name one in the hook's `model`",
            self.name
        )
    }
}

impl Vendor {
    fn makes(&self, model: &str) -> bool {
        let model = model.to_ascii_lowercase();
        self.models.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => model.starts_with(prefix),
            None => model == *pattern,
        })
    }
}

impl ServedBy {
    fn is(&self, served: &Served) -> bool {
        let host = served.host.as_deref();
        match self {
            Self::Anthropic => served.wire == WireKind::Anthropic,
            Self::OpenAiAt(domains) => {
                let below = |host: &str, domain: &str| {
                    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
                };
                let own = host.is_none_or(|host| domains.iter().any(|domain| below(host, domain)));
                served.wire == WireKind::OpenAi && own
            }
            Self::NameSays(words) => {
                let name = served.name.to_ascii_lowercase();
                words.iter().any(|word| name.contains(word) || host.is_some_and(|host| host.contains(word)))
            }
        }
    }
}

/// The first model of `provider` that is used by all agents, the default one, or the others by name.
fn own_model(config: &Config, provider: &str) -> Option<String> {
    let of_agent = |default| config.agents.values().filter(move |agent| agent.default == default);
    let agents = of_agent(true).chain(of_agent(false));
    let named = config.default_model.iter().chain(agents.flat_map(|agent| agent.model.iter().chain(&agent.fallbacks)));
    named
        .filter_map(|named| named.text.split_once('/'))
        .find(|(name, _)| *name == provider)
        .map(|(_, model)| model.into())
}

/// The answer of `provider`, with one more try after a failure that may pass and one for each concession.
async fn answer(
    (provider, model): (&dyn Provider, &str),
    mut request: LlmRequest,
    sent: &QuestionSent,
) -> Result<LlmReply, String> {
    let mut tried = false;
    let heard = |piece: Delta<'_>| {
        if piece == Delta::Sent {
            sent.mark();
        }
    };
    loop {
        match provider.call(model, &request, &heard).await {
            Ok(reply) => return Ok(reply),
            Err(ProviderError::Transient { reason, message, retry_after }) => {
                let pause = pause(reason, retry_after).filter(|_| !tried).ok_or(message)?;
                tried = true;
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
            }
            Err(ProviderError::Final { message }) => {
                let conceded = CONCESSIONS.iter().any(|concession| concession.made(&mut request, &message));
                if !conceded {
                    return Err(message);
                }
            }
        }
    }
}

/// How long to wait before the one more try, if there is to be one.
fn pause(reason: RetryReason, asked: Option<Duration>) -> Option<Duration> {
    match reason {
        RetryReason::ContextLimit => None,
        RetryReason::Timeout | RetryReason::Network | RetryReason::RateLimit | RetryReason::ServerError => {
            Some(asked.unwrap_or(PAUSE)).filter(|pause| *pause <= LONGEST_PAUSE)
        }
    }
}

impl Concession {
    /// Changes `request`, if that is what `refusal` is about and it was not done yet.
    fn made(&self, request: &mut LlmRequest, refusal: &str) -> bool {
        let options = &mut request.options;
        if !refusal.contains(self.word) {
            return false;
        }
        match &self.remedy {
            Remedy::Drop => options.shift_remove(self.option).is_some(),
            Remedy::Rename(name) => match options.shift_remove(self.option) {
                Some(value) => options.insert((*name).into(), value).is_none(),
                None => false,
            },
            Remedy::Set(value) => {
                let value = Value::from(*value);
                options.get(self.option).is_some_and(|before| *before != value)
                    && options.insert(self.option.into(), value).is_some()
            }
        }
    }
}

#[cfg(test)]
mod tests;
