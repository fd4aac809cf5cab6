//! How the turns of an agent go, as its entry says.

use pintle_dialects::process::config::EntryProblem;
use pintle_providers::RemovalMode;

use crate::config::raw::{RawAgent, RawLowering, RawPlanning};
use pintle_agent::OnMissingTag;

use crate::config::{AgentConfig, FlowConfig};

/// The words that `flow` takes.
const FLOWS: [&str; 2] = ["direct", "planned"];

/// The words that `planning.on_missing_tag` takes.
const MISSING_TAGS: [&str; 2] = ["answer", "loop"];

/// The words that `lowering.removal` takes.
const REMOVALS: [&str; 2] = ["freeze", "strip_reasoning"];

/// The flow that `word` means.
fn named(word: &str) -> Option<FlowConfig> {
    match word {
        "direct" => Some(FlowConfig::Direct),
        "planned" => Some(FlowConfig::Planned),
        _ => None,
    }
}

fn missing_tag(word: &str) -> Option<OnMissingTag> {
    match word {
        "answer" => Some(OnMissingTag::Answer),
        "loop" => Some(OnMissingTag::Loop),
        _ => None,
    }
}

fn removal(word: &str) -> Option<RemovalMode> {
    match word {
        "freeze" => Some(RemovalMode::Freeze),
        "strip_reasoning" => Some(RemovalMode::StripReasoning),
        _ => None,
    }
}

/// The removal that `raw` says, whether or not it means anything.
fn removal_word(raw: &RawAgent) -> Option<&str> {
    let RawLowering { removal } = raw.lowering.as_ref()?;
    removal.as_deref()
}

/// Words that mean nothing; paths start at the agent.
pub(super) fn problems(raw: &RawAgent) -> Vec<EntryProblem> {
    let mut problems = Vec::new();
    if let Some(word) = raw.flow.as_deref().filter(|word| named(word).is_none()) {
        let message = format!("unsupported flow \"{word}\", expected {}", FLOWS.join(" or "));
        problems.push(EntryProblem::new(&["flow"], message).meant(word, FLOWS));
    }
    let tag = raw.planning.as_ref().and_then(|planning| planning.on_missing_tag.as_deref());
    if let Some(word) = tag.filter(|word| missing_tag(word).is_none()) {
        let message = format!("unsupported word \"{word}\", expected {}", MISSING_TAGS.join(" or "));
        problems.push(EntryProblem::new(&["planning", "on_missing_tag"], message).meant(word, MISSING_TAGS));
    }
    if let Some(word) = removal_word(raw).filter(|word| removal(word).is_none()) {
        let message = format!("unsupported word \"{word}\", expected {}", REMOVALS.join(" or "));
        problems.push(EntryProblem::new(&["lowering", "removal"], message).meant(word, REMOVALS));
    }
    problems
}

/// Lays what `raw` says of the flow over `agent`, key by key.
pub(super) fn lay_over(agent: &mut AgentConfig, raw: &RawAgent) {
    agent.flow = raw.flow.as_deref().and_then(named).unwrap_or(agent.flow);
    agent.removal = removal_word(raw).and_then(removal).unwrap_or(agent.removal);
    let Some(RawPlanning { planning_prompt, first_step_prompt, agent_loop_prompt, on_missing_tag, record }) =
        raw.planning.clone()
    else {
        return;
    };
    let planning = &mut agent.planning;
    planning.planning_prompt = planning_prompt.or(planning.planning_prompt.take());
    planning.first_step_prompt = first_step_prompt.or(planning.first_step_prompt.take());
    planning.agent_loop_prompt = agent_loop_prompt.or(planning.agent_loop_prompt.take());
    planning.on_missing_tag = on_missing_tag.as_deref().and_then(missing_tag).unwrap_or(planning.on_missing_tag);
    planning.record = record.unwrap_or(planning.record);
}
