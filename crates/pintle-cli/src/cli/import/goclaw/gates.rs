//! Quality gates of agents, from before there were hooks: `other_config.quality_gates`. Source: the published
//! rules of how old quality gates become hooks.

use pintle_domain::json::{Object, Value, json};
use pintle_domain::rule::Edition;

use super::source::{flag, items, number, object, text};

/// The one event that gates had.
const COMPLETED: &str = "delegation.completed";

/// What a gate becomes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gate {
    /// Its place among the gates of its agent, from 1.
    pub(super) number: usize,
    /// The record without its agents; or why there is none.
    pub(super) record: Result<Value, String>,
    /// What is different now.
    pub(super) notes: Vec<String>,
}

/// The gates of an agent.
///
/// # Errors
/// Whether it has any cannot be read.
pub(super) fn gates(agent: &Object, edition: Edition) -> Result<Vec<Gate>, String> {
    let listed = items(&object(agent, "other_config")?, "quality_gates")?;
    let each = |(i, value): (usize, &Value)| match value {
        Value::Object(gate) => gate_of(i + 1, gate, edition),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Gate { number: i + 1, record: Err("it is not an object".into()), notes: Vec::new() }
        }
    };
    Ok(listed.iter().enumerate().map(each).collect())
}

fn gate_of(number: usize, gate: &Object, edition: Edition) -> Gate {
    let mut notes = Vec::new();
    let record = record(gate, edition, &mut notes);
    if record.is_err() {
        notes.clear();
    }
    Gate { number, record, notes }
}

fn record(gate: &Object, edition: Edition, notes: &mut Vec<String>) -> Result<Value, String> {
    let blocks = flag(gate, "block_on_failure")?.unwrap_or(false);
    match text(gate, &["event"]) {
        COMPLETED | "" => {}
        other => return Err(format!("its event \"{other}\" is unknown; gates had \"{COMPLETED}\" only")),
    }
    let (handler, config, enabled) = match text(gate, &["type"]) {
        "command" => ("command", command(gate, edition)?, true),
        "agent" => {
            let (template, own) = template(gate);
            if !own {
                notes.push(
                    "it is off: what its agent judged by is not known here; write its prompt_template, then enable it"
                        .into(),
                );
            }
            ("prompt", json!({ "prompt_template": template }), own)
        }
        other => return Err(format!("its type \"{other}\" is unknown; gates were \"command\" or \"agent\"")),
    };
    let event = if blocks { "subagent_start" } else { "subagent_stop" };
    let mut record = json!({
        "event": event, "handler_type": handler, "scope": "agent", "config": config, "enabled": enabled,
    });
    if handler == "prompt" {
        // A judge is asked about something that is named; here that is every delegation.
        record["if_expr"] = "true".into();
    }
    let seconds = number(gate, "timeout_seconds")?.or(number(gate, "timeout")?);
    if let Some(wanted) = seconds.and_then(|seconds| seconds.checked_mul(1000)).filter(|ms| *ms > 0) {
        let longest = i64::from(pintle_rules::record::MAX_TIMEOUT_MS);
        if wanted > longest {
            notes.push(format!("it had {wanted} ms, and has {longest} ms now"));
        }
        record["timeout_ms"] = wanted.min(longest).into();
    }
    if blocks {
        notes.push("it is asked before the task is delegated, and no longer about its result".into());
    }
    if number(gate, "max_retries")?.is_some_and(|retries| retries > 0) {
        notes.push("nothing is tried again: a block is the end of it".into());
    }
    Ok(record)
}

fn command(gate: &Object, edition: Edition) -> Result<Value, String> {
    let command = text(gate, &["command"]);
    if command.is_empty() {
        return Err("it has no command".into());
    }
    match edition {
        Edition::Lite => Ok(json!({ "command": command })),
        Edition::Standard => {
            Err("edition standard runs no commands; let an http hook do the same, at an endpoint of yours".into())
        }
    }
}

/// What the judge is told, and whether the gate said so itself.
fn template(gate: &Object) -> (String, bool) {
    let own = text(gate, &["prompt_template", "prompt", "instructions", "criteria"]);
    if !own.is_empty() {
        return (own.to_owned(), true);
    }
    let judge = text(gate, &["agent", "agent_key"]);
    (format!("Decide whether this task may be given to another agent, as the agent \"{judge}\" would."), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(gate: Value, edition: Edition) -> Gate {
        let agent = json!({"other_config": {"quality_gates": [gate]}});
        gates(agent.as_object().unwrap(), edition).unwrap().remove(0)
    }

    #[test]
    fn a_command_that_blocks_is_asked_before() {
        let gate = json!({"event": COMPLETED, "type": "command", "command": "make test", "block_on_failure": true, "max_retries": 2, "timeout_seconds": 60});
        let found = check(gate.clone(), Edition::Lite);
        let record = json!({"event": "subagent_start", "handler_type": "command", "scope": "agent", "config": {"command": "make test"}, "enabled": true, "timeout_ms": 10000});
        assert_eq!(found.record, Ok(record));
        assert_eq!(found.notes.len(), 3, "{:?}", found.notes);
        let standard = check(gate, Edition::Standard);
        assert!(standard.record.unwrap_err().contains("http hook") && standard.notes.is_empty());
    }

    #[test]
    fn an_agent_becomes_a_judge_and_waits_for_its_words() {
        let found = check(json!({"event": COMPLETED, "type": "agent", "agent": "qa"}), Edition::Standard);
        let record = found.record.unwrap();
        assert_eq!(
            (&record["event"], &record["handler_type"], &record["enabled"]),
            (&json!("subagent_stop"), &json!("prompt"), &json!(false))
        );
        let own = check(json!({"type": "agent", "agent": "qa", "prompt": "Only tested code."}), Edition::Lite);
        let record = own.record.unwrap();
        assert_eq!(
            (&record["config"]["prompt_template"], &record["enabled"]),
            (&json!("Only tested code."), &json!(true))
        );
    }

    #[test]
    fn what_is_no_gate_says_why() {
        for (gate, why) in [
            (json!(7), "it is not an object"),
            (json!({"event": "run.started", "type": "command"}), "its event \"run.started\" is unknown"),
            (json!({"type": "webhook"}), "its type \"webhook\" is unknown"),
            (json!({"type": "command"}), "it has no command"),
            (
                json!({"type": "command", "command": "make", "block_on_failure": "always"}),
                "its block_on_failure is \"always\"; expected true or false",
            ),
            (json!({"type": "command", "command": "make", "timeout": "1m"}), "its timeout is \"1m\"; expected a whole"),
            (json!({"type": "command", "command": "make", "max_retries": []}), "its max_retries is []"),
        ] {
            let said = check(gate, Edition::Lite).record.unwrap_err();
            assert!(said.starts_with(why), "{said}");
        }
        let none = |agent: Value| gates(agent.as_object().unwrap(), Edition::Lite);
        for agent in [json!({}), json!({"other_config": "{}"}), json!({"other_config": {"quality_gates": null}})] {
            assert_eq!(none(agent), Ok(vec![]));
        }
        // What may be a guard is not passed over.
        for (config, why) in [
            (json!("{\"quality_gates\":["), "its other_config is "),
            (
                json!({"quality_gates": {"type": "command"}}),
                "its quality_gates is {\"type\":\"command\"}; expected a JSON list",
            ),
        ] {
            let said = none(json!({ "other_config": config })).unwrap_err();
            assert!(said.starts_with(why), "{said}");
        }
    }
}
