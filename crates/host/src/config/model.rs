//! Which agent, and which models it uses.

use pintle_domain::nearest::nearest;

use super::diagnostic::dotted;
use super::{AgentConfig, Config, NamedRef};
use crate::error::HostError;

/// The agent that is meant where several are there and none is the default.
const MAIN: &str = "main";

/// A model of a provider that is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRef {
    /// The provider's name.
    pub provider: String,
    /// The model's name, as the provider knows it.
    pub model: String,
}

/// Why a model cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRefError {
    /// The message: what was expected and what stands there.
    pub message: String,
    /// The provider that was probably meant.
    pub nearest: Option<String>,
}

impl Config {
    /// The agent called `name`; without a name the default one, the only one, or `main`.
    ///
    /// # Errors
    /// There is none, or its entry is bad.
    pub fn agent(&self, name: Option<&str>) -> Result<&AgentConfig, HostError> {
        let default = || self.agents.values().find(|agent| agent.default);
        let broken = || self.broken.keys().any(|path| path.starts_with("agents."));
        let only = || self.agents.values().next().filter(|_| self.agents.len() == 1 && !broken());
        let found = match name {
            Some(name) => self.agents.get(name),
            None => default().or_else(only).or_else(|| self.agents.get(MAIN)),
        };
        found.ok_or_else(|| self.no_agent(name.unwrap_or(MAIN)))
    }

    fn no_agent(&self, name: &str) -> HostError {
        if let Some(why) = self.broken.get(&dotted(&["agents", name])) {
            return HostError::usage(format!("the agent `{name}` is not loaded: {why}"));
        }
        let known: Vec<&str> = self.agents.keys().map(String::as_str).collect();
        let error = HostError::usage(match nearest(name, known.iter().copied()) {
            Some(nearest) => format!("there is no agent `{name}`; did you mean `{nearest}`?"),
            None => format!("there is no agent `{name}`"),
        });
        match known.as_slice() {
            [] => error,
            known => error.hint(format!("the agents are {}; name one with --agent", known.join(", "))),
        }
    }

    /// The models of `agent` in the order in which they are tried; `named` (`--model`) goes first in place of the
    /// agent's own.
    ///
    /// # Errors
    /// One of them cannot be resolved, or there is none.
    pub fn models(&self, agent: &AgentConfig, named: Option<&str>) -> Result<Vec<ModelRef>, HostError> {
        let flag = named.map(|text| NamedRef { text: text.to_owned(), place: None, path: vec!["--model".to_owned()] });
        let first = flag.as_ref().or(agent.model.as_ref()).or(self.default_model.as_ref());
        let Some(first) = first else { return Err(self.no_model(agent)) };
        std::iter::once(first).chain(&agent.fallbacks).map(|named| self.resolve(named)).collect()
    }

    /// Resolves `PROVIDER/MODEL`.
    ///
    /// # Errors
    /// It has no slash, or there is no such provider.
    pub fn look_up(&self, text: &str) -> Result<ModelRef, ModelRefError> {
        let Some((provider, model)) = text.split_once('/').filter(|(_, model)| !model.is_empty()) else {
            let message = format!("expected PROVIDER/MODEL, got \"{text}\"");
            return Err(ModelRefError { message, nearest: None });
        };
        if self.providers.contains_key(provider) {
            return Ok(ModelRef { provider: provider.to_owned(), model: model.to_owned() });
        }
        if let Some(why) = self.broken.get(&dotted(&["providers", provider])) {
            return Err(ModelRefError {
                message: format!("the provider \"{provider}\" is not loaded: {why}"),
                nearest: None,
            });
        }
        let known: Vec<&str> = self.providers.keys().map(String::as_str).collect();
        let nearest = nearest(provider, known.iter().copied()).map(str::to_owned);
        let mut message = format!("there is no provider \"{provider}\", expected PROVIDER/MODEL");
        if nearest.is_none() && !known.is_empty() {
            message = format!("{message} with one of {}", known.join(", "));
        }
        Err(ModelRefError { message, nearest })
    }

    fn resolve(&self, named: &NamedRef) -> Result<ModelRef, HostError> {
        self.look_up(&named.text).map_err(|why| {
            let place = named.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
            let path = if named.path.is_empty() { String::new() } else { format!("{}: ", shown(&named.path)) };
            let nearest = why.nearest.map(|nearest| format!("; did you mean \"{nearest}\"?")).unwrap_or_default();
            let error = HostError::usage(format!("{place}{path}{}{nearest}", why.message));
            if self.providers.is_empty() { with_setup(error) } else { error }
        })
    }

    fn no_model(&self, agent: &AgentConfig) -> HostError {
        match self.providers.keys().next() {
            Some(provider) => {
                let path = dotted(&["agents", &agent.name, "model"]);
                HostError::usage(format!("the agent `{}` has no model", agent.name))
                    .hint(format!("set {path} = \"{provider}/MODEL\", or name one with --model {provider}/MODEL"))
            }
            None => with_setup(HostError::usage("there is no model provider")),
        }
    }
}

fn shown(path: &[String]) -> String {
    match path {
        [flag] => flag.clone(),
        path => dotted(path),
    }
}

fn with_setup(error: HostError) -> HostError {
    error
        .hint(
            "set OPENAI_API_KEY or ANTHROPIC_API_KEY, start Ollama on this machine, or write a [providers.NAME] table",
        )
        .hint("`pintle demo` needs none of these")
}
