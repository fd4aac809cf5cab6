//! The form for programs: an array with one object for each model call.

use pintle_agent::driver::rehearsal::{ModelCall, TextFate};
use pintle_domain::json::{Object, Value, json};

use super::Explained;
use super::cost::Cost;
use super::row::{Row, rows};
use crate::error::CliError;

pub(super) fn text(explained: &Explained) -> Result<String, CliError> {
    let calls = explained.went.calls.iter().enumerate();
    let all = calls.map(|(at, call)| one(explained, at, call)).collect::<Result<Vec<Value>, CliError>>()?;
    let text = serde_json::to_string_pretty(&all).map_err(|error| CliError::failed(error.to_string()))?;
    Ok(format!("{text}\n"))
}

fn one(explained: &Explained, at: usize, call: &ModelCall) -> Result<Value, CliError> {
    let went = &explained.went;
    let tools: Vec<&str> = call.request.tools.iter().map(|tool| tool.get().function.name.as_str()).collect();
    let absent = explained.absent.iter().map(|absent| {
        json!({
            "skill": absent.skill,
            "hook": absent.name,
            "timing": absent.timing,
            "never": absent.never,
            "reason": absent.why,
        })
    });
    let mut members = json!({
        "call": call.round,
        "aim": call.aim.word(),
        "agent": explained.agent,
        "flow": if went.planned { "planned" } else { "direct" },
        "messages": rows(went, at).iter().map(message).collect::<Vec<Value>>(),
        "tools": tools,
        "cache_boundary": call.cache_boundary(),
        "tokens": tokens(&Cost::of(call)),
        "notes": call.notes,
        "absent": absent.collect::<Value>(),
    });
    if let Some((turn, session)) = &explained.turn {
        members["turn_id"] = turn.as_str().into();
        members["session_id"] = session.as_str().into();
    }
    if let (Some(wire), Some(body)) = (&explained.wire, explained.bodies.get(at)) {
        let body: Value = serde_json::from_str(body).map_err(|error| CliError::failed(error.to_string()))?;
        members["wire"] = json!({
            "model": wire.name(),
            "entry": wire.entry,
            "overridden": wire.overridden(),
            "body": body,
        });
    }
    Ok(members)
}

fn tokens(cost: &Cost) -> Value {
    let mut members: Object =
        cost.shares().map(|(share, tokens)| (share.words().1.to_owned(), tokens.into())).collect();
    members.insert("total".into(), cost.total().into());
    members.into()
}

/// A message as it is, then where it comes from and what becomes of it.
fn message(row: &Row<'_>) -> Value {
    let mut all = json!({ "index": row.index });
    for part in [json!(row.message), json!(row.from)] {
        if let (Value::Object(all), Value::Object(part)) = (&mut all, part) {
            all.extend(part);
        }
    }
    all["tokens"] = row.tokens.into();
    all["new"] = row.new.into();
    if let Some(fate) = row.fate {
        all["leaves"] = match fate {
            TextFate::LeavesAfterCall => "after_call".into(),
            TextFate::LeavesBefore(round) => json!({ "before_call": round }),
            TextFate::LeavesAfterLoop => "after_loop".into(),
            TextFate::Stays => "after_turn".into(),
            TextFate::Persists => "never".into(),
        };
    }
    all
}
