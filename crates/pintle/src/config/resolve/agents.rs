//! Agents: laid over each other key by key.

use std::collections::BTreeMap;
use std::path::PathBuf;

use agent::tools::{BUILTIN, canonical_builtin, nearest_builtin};
use dialects::process::config::{At, Problem};

use super::{LeftOut, Trusted, note_bad};
use crate::config::diagnostic::dotted;
use crate::config::layer::{Layer, entry_path};
use crate::config::places::Env;
use crate::config::raw::RawAgent;
use crate::config::{AgentConfig, Config, Named};

/// The agent that is there without any configuration.
const MAIN: &str = "main";

/// Adds the agents of one file.
pub(super) fn add(config: &mut Config, trusted: &mut Trusted, env: &Env, left: &mut LeftOut) {
    check(&mut trusted.layer);
    check_means(trusted);
    let raws = trusted.layer.raw.agents.clone().unwrap_or_default();
    let bad = &trusted.layer.bad;
    let good: BTreeMap<_, _> =
        raws.into_iter().filter(|(name, _)| !bad.contains_key(&entry_path(&["agents"], name))).collect();
    let redefault =
        good.iter().any(|(name, raw)| raw.default == Some(true) && trusted.is_trusted(&dotted(&["agents", name])));
    if redefault {
        config.agents.values_mut().for_each(|agent| agent.default = false);
    }
    for (name, raw) in good {
        let path = dotted(&["agents", &name]);
        if config.broken.contains_key(&path) {
            continue;
        }
        let agent = config.agents.entry(name.clone()).or_insert_with(|| AgentConfig::new(&name, env.cwd.clone()));
        if trusted.is_trusted(&path) {
            lay_over(agent, &raw, &trusted.layer);
        } else {
            lay_stranger_over(agent, &raw, &trusted.layer);
            let kept = ["system", "max_iterations"];
            let written = trusted.layer.value(&["agents", &name]);
            let rest: Vec<_> = written.as_object().into_iter().flat_map(serde_json::Map::keys).cloned().collect();
            let rest: Vec<_> = rest.into_iter().filter(|key| !kept.contains(&key.as_str())).collect();
            if !rest.is_empty() {
                left.add(format!("{path} ({})", rest.join(", ")));
            }
        }
    }
    note_bad(config, trusted, "agents");
}

/// What the schema cannot say about agents.
fn check(layer: &mut Layer) {
    let raws = layer.raw.agents.clone().unwrap_or_default();
    for (name, raw) in &raws {
        if raw.max_iterations == Some(0) {
            layer.report(Problem::new(&["agents", name, "max_iterations"], "must be greater than 0"));
        }
    }
    let in_order: Vec<String> = layer.entries(&["agents"]).iter().map(|member| member.key.clone()).collect();
    let mut defaults = in_order.iter().filter(|name| raws.get(*name).is_some_and(|raw| raw.default == Some(true)));
    let Some(first) = defaults.next() else { return };
    for second in defaults {
        let message = format!("the default is already the agent \"{first}\"; only one can be it");
        layer.report(Problem::new(&["agents", second, "default"], message));
    }
}

/// The tools and the workspace of agents, where they count: they have to be there.
fn check_means(trusted: &mut Trusted) {
    let mut raws = trusted.layer.raw.agents.clone().unwrap_or_default();
    raws.retain(|name, _| trusted.is_trusted(&dotted(&["agents", name])));
    for (name, raw) in &raws {
        for (i, tool) in raw.tools.iter().flatten().enumerate().filter(|(_, tool)| canonical_builtin(tool).is_none()) {
            let mut problem =
                Problem::new(&["agents", name, "tools", &i.to_string()], format!("there is no tool \"{tool}\""));
            match nearest_builtin(tool) {
                Some(near) => problem.nearest = Some(near.to_owned()),
                None => problem.message = format!("{}; the tools are {}", problem.message, BUILTIN.join(", ")),
            }
            trusted.layer.report(problem);
        }
        let missing = |workspace: &&String| !trusted.layer.folder.join(workspace).is_dir();
        if let Some(workspace) = raw.workspace.as_ref().filter(missing) {
            let message = format!("expected a folder that is there, from the folder of this file, got {workspace:?}");
            trusted.layer.report(Problem::new(&["agents", name, "workspace"], message));
        }
    }
}

/// The tools that `names` mean, each by its own name; what means none was reported.
fn tools(names: &[String]) -> Vec<String> {
    names.iter().filter_map(|name| canonical_builtin(name)).map(str::to_owned).collect()
}

fn lay_over(agent: &mut AgentConfig, raw: &RawAgent, layer: &Layer) {
    let named = |key: &[&str], text: &str| {
        let path: Vec<String> = ["agents", &agent.name].iter().chain(key).map(|key| (*key).to_owned()).collect();
        Named { text: text.to_owned(), place: Some(layer.document.place(&path, At::Value)), path }
    };
    let model = raw.model.as_deref().map(|text| named(&["model"], text));
    let fallbacks = raw
        .fallbacks
        .as_ref()
        .map(|texts| texts.iter().enumerate().map(|(i, text)| named(&["fallbacks", &i.to_string()], text)).collect());
    agent.model = model.or(agent.model.take());
    agent.fallbacks = fallbacks.unwrap_or(std::mem::take(&mut agent.fallbacks));
    agent.system = raw.system.clone().or(agent.system.take());
    agent.max_iterations = raw.max_iterations.unwrap_or(agent.max_iterations);
    agent.stream_unreviewed = raw.stream_unreviewed.unwrap_or(agent.stream_unreviewed);
    agent.default = raw.default.unwrap_or(agent.default);
    agent.tools = raw.tools.as_deref().map(tools).or(agent.tools.take());
    if let Some(options) = &raw.options {
        agent.options.extend(options.clone());
    }
    if let Some(workspace) = &raw.workspace {
        agent.workspace = layer.folder.join(workspace);
    }
}

/// A stranger says who the agent is, never what it may do: read-only tools, in the stranger's own folder.
fn lay_stranger_over(agent: &mut AgentConfig, raw: &RawAgent, layer: &Layer) {
    agent.system = raw.system.clone().or(agent.system.take());
    agent.max_iterations = raw.max_iterations.unwrap_or(agent.max_iterations);
    agent.tools = None;
    agent.workspace.clone_from(&layer.folder);
}

/// The model of the user's own agent, for agents that name none.
pub(super) fn default_model(config: &Config) -> Option<Named> {
    config.agent(None).ok()?.model.clone()
}

/// Without any agent there is `main`.
pub(super) fn finish(config: &mut Config, env: &Env) {
    let broken = config.broken.keys().any(|path| path.starts_with("agents."));
    if config.agents.is_empty() && !broken {
        config.agents.insert(MAIN.to_owned(), AgentConfig::new(MAIN, env.cwd.clone()));
    }
}

/// Reports every model that cannot be resolved; the agent is there, but cannot be used.
pub(super) fn look_up_models(config: &Config, layers: &mut [Trusted]) {
    for agent in config.agents.values() {
        for named in agent.model.iter().chain(&agent.fallbacks) {
            let Err(why) = config.look_up(&named.text) else { continue };
            let layer = layers.iter_mut().map(|trusted| &mut trusted.layer);
            let file = named.place.as_ref().map(|place| place.file.clone());
            if let Some(layer) = layer.into_iter().find(|layer| Some(&layer.document.file) == file.as_ref()) {
                let path: Vec<&str> = named.path.iter().map(String::as_str).collect();
                let nearest = why.nearest.clone();
                layer.remark(Problem { nearest, ..Problem::new(&path, why.message) });
            }
        }
    }
}

impl AgentConfig {
    fn new(name: &str, workspace: PathBuf) -> Self {
        Self {
            name: name.to_owned(),
            model: None,
            system: None,
            workspace,
            tools: None,
            max_iterations: DEFAULT_MAX_ITERATIONS,
            fallbacks: Vec::new(),
            stream_unreviewed: false,
            default: false,
            options: serde_json::Map::new(),
        }
    }
}

/// Model calls of one turn: far more than a useful turn needs, and an end for one that runs in circles.
const DEFAULT_MAX_ITERATIONS: u32 = 50;
