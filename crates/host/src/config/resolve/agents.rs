//! Agents: laid over each other key by key.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pintle_agent::ask::{self, AskGate};
use pintle_agent::tools::{BUILTIN, DELEGATE, SPAWN, canonical_builtin, nearest_builtin};
use pintle_dialects::process::config::{EntryProblem, MemberPart};
use pintle_providers::RemovalMode;

use super::{LeftOut, Trusted, flow, note_bad};
use crate::config::diagnostic::dotted;
use crate::config::layer::{Layer, entry_path};
use crate::config::places::Env;
use crate::config::raw::RawAgent;
use crate::config::trust::{AcceptedSkills, CHANGED, SKILLS, TrustStanding, path_of};
use crate::config::{AgentConfig, ApproversConfig, Config, FlowConfig, HookKind, LoadedHook, NamedRef, PlanningConfig};
use crate::mcp_names::{is_mcp, mcp_glob};

/// The agent that is there without any configuration.
const MAIN: &str = "main";

/// Adds the agents of one file.
pub(super) fn add(config: &mut Config, trusted: &mut Trusted, env: &Env, left: &mut LeftOut) {
    check(trusted);
    check_means(trusted);
    let raws = trusted.layer.raw.agents.clone();
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
        match trusted.standing(&path) {
            TrustStanding::Trusted => {
                let new = || AgentConfig::new(&name, env.cwd.clone());
                let agent = config.agents.entry(name.clone()).or_insert_with(new);
                lay_over(agent, &raw, &trusted.layer);
                if let Some(shown) = trusted.own_word().and_then(|own| own.unreviewed.get(&name)) {
                    agent.stream_unreviewed = *shown;
                }
                if let Some(names) = &raw.skills {
                    place_skills(agent, names, (config.skills_dir.as_ref(), trusted), left);
                }
            }
            TrustStanding::Unknown => {
                let written = trusted.layer.value(&["agents", &name]);
                let keys = written.as_object().into_iter().flat_map(pintle_domain::json::Object::keys).cloned();
                left.add_of(path, &keys.collect::<Vec<_>>().join(", "));
            }
            // It was accepted with what it may do and what a person is asked about: nothing wider takes its place.
            TrustStanding::Changed { .. } => {
                let message = format!("{CHANGED}; `pintle trust` shows how, and accepts it");
                trusted.layer.report(EntryProblem::new(&["agents", &name], message));
                let why = trusted.layer.bad.get(&entry_path(&["agents"], &name)).map(ToString::to_string);
                config.agents.remove(&name);
                config.broken.insert(path, why.unwrap_or_default());
            }
        }
    }
    note_bad(config, trusted, "agents");
}

/// Where the skills called `names` are that `agent` has, and which of them count.
fn place_skills(
    agent: &mut AgentConfig,
    names: &[String],
    (own, trusted): (Option<&PathBuf>, &Trusted),
    left: &mut LeftOut,
) {
    let accepted = trusted.acceptance().and_then(|acceptance| acceptance.skills(names));
    let Some(AcceptedSkills { dir, seals, others }) = accepted else {
        agent.skills_dir = own.cloned().unwrap_or_else(|| trusted.layer.folder.join(SKILLS));
        agent.skill_seals = None;
        return;
    };
    agent.skills.retain(|named| !others.contains_key(&named.text));
    (agent.skills_dir, agent.skill_seals) = (dir, Some(seals));
    for (name, why) in others {
        match why {
            "" => left.add(path_of(&name)),
            why => left.add_of(path_of(&name), why),
        }
    }
}

/// What the schema cannot say about agents.
fn check(trusted: &mut Trusted) {
    let mut raws = trusted.layer.raw.agents.clone();
    raws.retain(|name, _| trusted.is_trusted(&dotted(&["agents", name])));
    let layer = &mut trusted.layer;
    for (name, raw) in &raws {
        if let Err(bad) = ask::matcher(raw.ask.as_deref().unwrap_or_default()) {
            let place = bad.place.to_string();
            layer.report(EntryProblem::new(
                &["agents", name, "ask", &place],
                format!("it is not a glob: {}", bad.reason),
            ));
        }
        flow::problems(raw).into_iter().for_each(|problem| layer.report(problem.under(&["agents", name])));
        if raw.max_iterations == Some(0) {
            layer.report(EntryProblem::new(&["agents", name, "max_iterations"], "must be greater than 0"));
        }
    }
    let in_order: Vec<String> = layer.entries(&["agents"]).iter().map(|member| member.key.clone()).collect();
    let mut defaults = in_order.iter().filter(|name| raws.get(*name).is_some_and(|raw| raw.default == Some(true)));
    let Some(first) = defaults.next() else { return };
    for second in defaults {
        let message = format!("the default is already the agent \"{first}\"; only one can be it");
        layer.report(EntryProblem::new(&["agents", second, "default"], message));
    }
}

/// The tools and the workspace of agents, where they count: they have to be there.
fn check_means(trusted: &mut Trusted) {
    let mut raws = trusted.layer.raw.agents.clone();
    raws.retain(|name, _| trusted.is_trusted(&dotted(&["agents", name])));
    for (name, raw) in &raws {
        for (i, tool) in raw.tools.iter().flatten().enumerate() {
            if let Some(problem) = bad_tool(tool) {
                trusted.layer.report(problem.under(&["agents", name, "tools", &i.to_string()]));
            }
        }
        let missing = |workspace: &&String| !trusted.layer.folder.join(workspace).is_dir();
        if let Some(workspace) = raw.workspace.as_ref().filter(missing) {
            let message = format!("expected a folder that is there, from the folder of this file, got {workspace:?}");
            trusted.layer.report(EntryProblem::new(&["agents", name, "workspace"], message));
        }
    }
}

/// The problem of an entry of `tools`. Which tools MCP servers have is not known before they run.
fn bad_tool(tool: &str) -> Option<EntryProblem> {
    if is_mcp(tool) {
        let why = mcp_glob(tool).err()?;
        return Some(EntryProblem::new(&[], format!("it is not a glob: {why}")));
    }
    if canonical_builtin(tool).is_some() {
        return None;
    }
    let mut problem = EntryProblem::new(&[], format!("there is no tool \"{tool}\""));
    match nearest_builtin(tool) {
        Some(near) => problem.nearest = Some(near.to_owned()),
        None => {
            let known = BUILTIN.join(", ");
            problem.message = format!("{}; the tools are {known}, and mcp_… of MCP servers", problem.message);
        }
    }
    Some(problem)
}

/// The tools that `names` mean, each by its own name; what means none was reported.
fn tools(names: &[String]) -> Vec<String> {
    let meant = |name: &String| match is_mcp(name) {
        true => Some(name.clone()),
        false => canonical_builtin(name).map(str::to_owned),
    };
    names.iter().filter_map(meant).collect()
}

fn lay_over(agent: &mut AgentConfig, raw: &RawAgent, layer: &Layer) {
    let named = |key: &[&str], text: &str| {
        let path: Vec<String> = ["agents", &agent.name].iter().chain(key).map(|key| (*key).to_owned()).collect();
        NamedRef { text: text.to_owned(), place: Some(layer.document.place(&path, MemberPart::Value)), path }
    };
    let model = raw.model.as_deref().map(|text| named(&["model"], text));
    let fallbacks = raw
        .fallbacks
        .as_ref()
        .map(|texts| texts.iter().enumerate().map(|(i, text)| named(&["fallbacks", &i.to_string()], text)).collect());
    agent.model = model.or(agent.model.take());
    agent.fallbacks = fallbacks.unwrap_or(std::mem::take(&mut agent.fallbacks));
    // A file may have a person asked about more tools, never about fewer.
    let asks = raw.ask.iter().flatten().enumerate().map(|(i, glob)| named(&["ask", &i.to_string()], glob));
    agent.ask.extend(asks);
    // Nor may it let more people answer.
    agent.approvers.named = agent.approvers.named.take().or_else(|| raw.approvers.clone());
    agent.approvers.other_than_asker |= raw.other_than_asker.unwrap_or(false);
    agent.context_tokens = raw.context_tokens.unwrap_or(agent.context_tokens);
    agent.description = raw.description.clone().unwrap_or(std::mem::take(&mut agent.description));
    agent.system = raw.system.clone().or(agent.system.take());
    agent.max_iterations = raw.max_iterations.unwrap_or(agent.max_iterations);
    agent.default = raw.default.unwrap_or(agent.default);
    agent.tools = raw.tools.as_deref().map(tools).or(agent.tools.take());
    let skills = raw
        .skills
        .as_ref()
        .map(|names| names.iter().enumerate().map(|(i, name)| named(&["skills", &i.to_string()], name)).collect());
    agent.skills = skills.unwrap_or(std::mem::take(&mut agent.skills));
    if let Some(options) = &raw.options {
        agent.options.extend(options.clone());
    }
    flow::lay_over(agent, raw);
    if let Some(workspace) = &raw.workspace {
        agent.workspace = layer.folder.join(workspace);
    }
    agent.workspace_shared = raw.workspace_shared.unwrap_or(agent.workspace_shared);
}

/// The model of the user's own agent, for agents that name none.
pub(super) fn default_model(config: &Config) -> Option<NamedRef> {
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
                layer.remark(EntryProblem { nearest, ..EntryProblem::new(&path, why.message) });
            }
        }
    }
}

/// The name of the gate of `agents.NAME.ask`.
fn gate_name(agent: &str) -> String {
    dotted(&["agents", agent, "ask"])
}

/// The agent whose gate has the hook name `name`: no hook of a configuration can have it.
pub(super) fn is_gate_name(name: &str) -> bool {
    name.starts_with("agents.") && name.ends_with(".ask")
}

/// Adds the gates of all agents that want a person to be asked.
pub(super) fn add_gates(config: &mut Config) {
    for agent in config.agents.values().filter(|agent| !agent.ask.is_empty()) {
        let globs: Vec<String> = agent.ask.iter().map(|glob| glob.text.clone()).collect();
        // Every glob was looked at where it stands; together they may still be too large.
        let matcher = ask::matcher(&globs).unwrap_or_else(|_| ask::everything());
        let place = agent.ask.iter().find_map(|glob| glob.place.as_ref());
        let origin = place.map(ToString::to_string).unwrap_or_default();
        let gate = AskGate::new(&agent.name);
        let hook = gate.hook(&gate_name(&agent.name), &origin, matcher);
        config.hooks.push(LoadedHook { hook, kind: HookKind::Ask(gate), seal: None, content: None });
    }
}

/// Says which agents may give tasks to others, and have none.
pub(super) fn look_for_others(config: &Config, layers: &mut [Trusted]) {
    if config.agents.len() > 1 {
        return;
    }
    for trusted in layers {
        let raws = trusted.layer.raw.agents.clone();
        for (name, raw) in raws {
            if !trusted.is_trusted(&dotted(&["agents", &name])) {
                continue;
            }
            let given = |tool: &str| [DELEGATE, SPAWN].iter().any(|it| canonical_builtin(tool) == Some(*it));
            for (i, tool) in raw.tools.iter().flatten().enumerate().filter(|(_, tool)| given(tool)) {
                let message = format!("\"{tool}\" is for other agents, and there is none: write an [agents.OTHER]");
                trusted.layer.remark(EntryProblem::new(&["agents", &name, "tools", &i.to_string()], message));
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
            workspace_shared: false,
            tools: None,
            max_iterations: DEFAULT_MAX_ITERATIONS,
            ask: Vec::new(),
            approvers: ApproversConfig::default(),
            context_tokens: 0,
            description: String::new(),
            fallbacks: Vec::new(),
            stream_unreviewed: false,
            default: false,
            options: pintle_domain::json::Object::new(),
            skills: Vec::new(),
            skills_dir: PathBuf::new(),
            skill_seals: None,
            flow: FlowConfig::default(),
            planning: PlanningConfig::default(),
            removal: RemovalMode::default(),
        }
    }
}

/// Model calls of one turn: far more than a useful turn needs, and an end for one that runs in circles.
const DEFAULT_MAX_ITERATIONS: u32 = 50;
