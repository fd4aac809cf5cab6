//! What the handler of an agent hook is sent: one JSON object per event, the same for every kind of handler.
//!
//! The members in `PascalCase` are those of the published wire and always all there; those in `snake_case` say more.

use domain::checkpoint::runtime::TurnStatus;
use domain::checkpoint::{Checkpoint as _, CheckpointKind, Facts, Notice, Observed, SubagentStart, Subject};
use domain::id::{EventId, TenantId, agent_uuid};
use domain::identity::Identity;
use domain::json::Object;
use domain::shell::ShellFacts;
use domain::tool::{ToolCall, ToolOutput};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Longest output of a tool and longest final text that is sent, in bytes. Source: agent hooks, payload.
pub const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// What stands for an id that there is not. Source: agent hooks, payload.
const NIL: &str = "00000000-0000-0000-0000-000000000000";

/// What is asked of a hook: `subject` at an event of `who`. Nothing where stored hooks are not asked.
pub fn of_subject(event_id: &EventId, who: &Identity, at: Timestamp, subject: &Subject<'_>) -> Option<Vec<u8>> {
    let event = Event { event_id, who, at, kind: subject.kind() };
    let payload = match subject {
        Subject::UserPromptSubmit(prompt) => {
            let mut members = event.members(&prompt.facts(), None);
            members.insert("input_kind".into(), json!(prompt.input_kind));
            members
        }
        Subject::PreToolUse(gate) => event.members(&Facts::of_call(&gate.call), None),
        Subject::SubagentStart(start) => event.subagent(start),
        Subject::BeforeLlm(_)
        | Subject::AfterLlm(_)
        | Subject::BeforeTool(_)
        | Subject::ApproveTool(_)
        | Subject::AfterTool(_) => return None,
    };
    Some(Value::Object(payload).to_string().into_bytes())
}

/// What a hook is told. Nothing of events that stored hooks do not observe.
pub fn of_notice(notice: &Notice) -> Option<Vec<u8>> {
    let event = Event { event_id: &notice.event_id, who: &notice.who, at: notice.at, kind: notice.what.checkpoint() };
    let payload = match &notice.what {
        Observed::SessionStart => event.members(&Facts::default(), None),
        Observed::PostToolUse { call, output, duration, substituted } => {
            let mut members = event.members(&Facts::of_call(call), None);
            add_output(&mut members, call, output);
            members.insert("duration_ms".into(), json!(millis(*duration)));
            members.insert("substituted".into(), json!(substituted));
            members
        }
        Observed::Stop { reply, iterations, usage, duration } => {
            let mut members = event.members(&Facts::default(), None);
            let (text, _) = cut(reply);
            members.insert("status".into(), json!("completed"));
            members.insert("final_text".into(), json!(text));
            members.insert("iterations".into(), json!(iterations));
            members.insert("usage".into(), json!(usage));
            members.insert("duration_ms".into(), json!(millis(*duration)));
            members
        }
        Observed::SubagentStop { start, session_id, status, timed_out, outcome, duration, .. } => {
            let mut members = event.subagent(start);
            let (text, _) = cut(outcome);
            let (word, is_error) = match (status, timed_out) {
                (_, true) => ("timed_out", true),
                (TurnStatus::Completed, false) => ("completed", false),
                (TurnStatus::Error, false) => ("failed", true),
                (TurnStatus::Aborted, false) => ("cancelled", true),
            };
            if let Some(Value::Object(child)) = members.get_mut("subagent") {
                child.insert("session_id".into(), json!(session_id));
            }
            members.insert("outcome".into(), json!(word));
            members.insert("result".into(), if is_error { Value::Null } else { json!(text) });
            members.insert("error".into(), if is_error { json!(text) } else { Value::Null });
            members.insert("duration_ms".into(), json!(millis(*duration)));
            members
        }
        Observed::Runtime(_) => return None,
    };
    Some(Value::Object(payload).to_string().into_bytes())
}

/// A payload in the words of scripts: the published members as they are, in `camelCase`, then the others. Where it does
/// not say what a shell would do, none is asked.
///
/// # Errors
/// The payload is no JSON object.
pub fn for_script(payload: &[u8]) -> Result<String, String> {
    let mut members: Object =
        serde_json::from_slice(payload).map_err(|error| format!("the event is no JSON: {error}"))?;
    let mut event = Object::new();
    for (published, name) in PUBLISHED {
        event.extend(members.get_mut(published).map(|member| (name.to_owned(), member.take())));
    }
    for (name, member) in members {
        let is_published = name == HOOK_EVENT || name.starts_with(|first: char| first.is_ascii_uppercase());
        // What is published is text where there is nothing, as scripts of others expect it.
        if !is_published {
            event.entry(camel(&name)).or_insert(member);
        }
    }
    // A script may look at it at every event, as a condition may.
    event.entry(SHELL).or_insert_with(|| json!(ShellFacts::default()));
    Ok(Value::Object(event).to_string())
}

/// What a shell would do with the text of a call: a member that only scripts have.
pub const SHELL: &str = "shell";

/// What the event is called beside its published name.
const HOOK_EVENT: &str = "hook_event_name";

/// The published members, and what scripts call them.
const PUBLISHED: [(&str, &str); 9] = [
    ("HookEvent", "hookEvent"),
    ("EventID", "eventId"),
    ("SessionID", "sessionId"),
    ("TenantID", "tenantId"),
    ("AgentID", "agentId"),
    ("ToolName", "toolName"),
    ("ToolInput", "toolInput"),
    ("RawInput", "rawInput"),
    ("Depth", "depth"),
];

/// `a_few_words` as `aFewWords`.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |camel, word| {
        let mut letters = word.chars();
        let head = letters.next().map(|letter| letter.to_ascii_uppercase());
        head.into_iter().fold(camel, |camel, letter| format!("{camel}{letter}")) + letters.as_str()
    })
}

/// One event, as every payload begins with it.
struct Event<'a> {
    event_id: &'a EventId,
    who: &'a Identity,
    at: Timestamp,
    kind: CheckpointKind,
}

impl Event<'_> {
    fn members(&self, facts: &Facts<'_>, depth: Option<u8>) -> Object {
        let who = self.who;
        let agent = some(who.agent_id.as_str()).map(|key| agent_uuid(&who.tenant_id, key));
        let session = some(who.session_id.as_str());
        let (tool, raw_tool) = facts.tool.unwrap_or_default();
        let input = facts.input.map_or(Value::Null, |input| Value::Object(input.clone()));
        let prompt = facts.prompt.unwrap_or_default();
        let depth = depth.unwrap_or(who.depth);
        let mut members = Object::new();
        let mut put = |name: &str, value: Value| drop(members.insert(name.to_owned(), value));
        put("EventID", json!(self.event_id));
        put("SessionID", json!(who.session_id));
        put("TenantID", json!(uuid_or_nil(&who.tenant_id)));
        put("AgentID", json!(agent.as_deref().unwrap_or(NIL)));
        put("ToolName", json!(tool));
        put("ToolInput", input.clone());
        put("RawInput", json!(prompt));
        put("Depth", json!(depth));
        put("HookEvent", json!(self.kind));
        put(HOOK_EVENT, json!(self.kind));
        put("event_id", json!(self.event_id));
        put("tenant_id", json!(some(who.tenant_id.as_str())));
        put("agent_id", json!(agent));
        put("agent_key", json!(some(who.agent_id.as_str())));
        put("session_id", json!(session));
        put("turn_id", json!(some(who.turn_id.as_str())));
        put("parent_turn_id", json!(who.parent_turn_id));
        put("iteration", json!(who.iteration));
        put("tool_call_id", json!(who.tool_call_id));
        put("depth", json!(depth));
        put("channel", json!(who.channel));
        put("chat_id", json!(who.chat_id));
        put("trace_id", json!(some(who.trace_id.as_str())));
        put("occurred_at", json!(self.at.to_string()));
        put("tool_name", json!(tool));
        put("raw_tool_name", json!(raw_tool));
        put("tool_input", input);
        put("raw_input", json!(prompt));
        put("first_prompt", json!(facts.first_prompt));
        put("is_test", json!(who.is_test));
        members
    }

    /// The beginning or the end of a sub-agent, with the call that wanted it.
    fn subagent(&self, start: &SubagentStart) -> Object {
        let call = start.call.as_ref().map(|call| (call.tool.as_str(), call.raw_tool.as_str()));
        let facts = Facts { tool: call, input: Some(&start.input), ..Facts::default() };
        let mut members = self.members(&facts, Some(start.depth));
        let agent = agent_uuid(&self.who.tenant_id, start.agent.as_str());
        members.insert("subagent".into(), json!({ "agent_id": agent, "agent_key": start.agent, "task": start.task }));
        members
    }
}

fn add_output(members: &mut Object, call: &ToolCall, output: &ToolOutput) {
    let (text, was_cut) = cut(&output.for_llm);
    members.insert("tool_output".into(), json!(text));
    members.insert("tool_output_truncated".into(), json!(was_cut));
    members.insert("is_error".into(), json!(output.is_error));
    members.insert("error".into(), if output.is_error { json!(text) } else { Value::Null });
    // Who observes pairs its event with the one that the gates saw.
    members.insert("tool_call_id".into(), json!(call.id));
}

/// The beginning of `text`, and whether it is not all.
fn cut(text: &str) -> (&str, bool) {
    let mut end = text.len().min(MAX_OUTPUT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (&text[..end], end < text.len())
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn uuid_or_nil(tenant: &TenantId) -> &str {
    some(tenant.as_str()).unwrap_or(NIL)
}

fn millis(took: std::time::Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use domain::checkpoint::user_prompt_submit::InputKind;
    use domain::checkpoint::{PreToolUse, UserPromptSubmit};
    use domain::id::TurnId;

    use super::*;

    /// The names that the published wire has, in its order.
    const NAMES: [&str; 9] =
        ["EventID", "SessionID", "TenantID", "AgentID", "ToolName", "ToolInput", "RawInput", "Depth", "HookEvent"];

    fn who() -> Identity {
        Identity { depth: 1, ..Identity::top("main", "cli:1", TurnId::from("t1")) }
    }

    fn payload(subject: &Subject<'_>) -> Value {
        let bytes = of_subject(&EventId::from("e1"), &who(), Timestamp::UNIX_EPOCH, subject).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    fn told(what: Observed) -> Value {
        let notice = Notice { event_id: EventId::from("e1"), at: Timestamp::UNIX_EPOCH, who: who(), what };
        serde_json::from_slice(&of_notice(&notice).unwrap()).unwrap()
    }

    fn call() -> ToolCall {
        let arguments = Object::from_iter([("cmd".to_owned(), json!("ls"))]);
        ToolCall { id: "c1".into(), tool: "exec".into(), raw_tool: "bash".into(), arguments }
    }

    #[test]
    fn the_published_members_are_always_there_and_in_order() {
        let start = SubagentStart::new("helper".into(), "look", 2, None);
        let prompt = UserPromptSubmit::first("hi");
        let gate = PreToolUse { call: call() };
        let asked = [Subject::UserPromptSubmit(&prompt), Subject::PreToolUse(&gate), Subject::SubagentStart(&start)];
        for subject in &asked {
            let payload = payload(subject);
            let names: Vec<&String> = payload.as_object().unwrap().keys().take(NAMES.len()).collect();
            assert_eq!(names, NAMES, "{payload}");
            assert_eq!(payload["HookEvent"], payload["hook_event_name"]);
            assert_eq!(payload["TenantID"], "0193a5b0-7000-7000-8000-000000000002");
        }
    }

    #[test]
    fn each_event_fills_what_it_is_about() {
        let prompt = UserPromptSubmit { prompt: "hi".into(), input_kind: InputKind::Steering };
        let sent = payload(&Subject::UserPromptSubmit(&prompt));
        assert_eq!(
            (&sent["RawInput"], &sent["ToolInput"], &sent["input_kind"]),
            (&json!("hi"), &Value::Null, &json!("steering"))
        );
        let sent = payload(&Subject::PreToolUse(&PreToolUse { call: call() }));
        assert_eq!((&sent["ToolName"], &sent["raw_tool_name"]), (&json!("exec"), &json!("bash")));
        assert_eq!((&sent["ToolInput"], &sent["Depth"]), (&json!({"cmd": "ls"}), &json!(1)));
        let start = SubagentStart::new("helper".into(), "look", 2, None);
        let sent = payload(&Subject::SubagentStart(&start));
        assert_eq!((&sent["ToolName"], &sent["Depth"]), (&json!(""), &json!(2)));
        assert_eq!(sent["ToolInput"], json!({"agent": "helper", "task": "look"}));
        assert_eq!(sent["subagent"]["agent_key"], "helper");
        assert_eq!(told(Observed::SessionStart)["RawInput"], "");
    }

    #[test]
    fn scripts_read_camel_case() {
        let gate = PreToolUse { call: call() };
        let bytes = |who: &Identity| {
            let subject = Subject::PreToolUse(&gate);
            of_subject(&EventId::from("e1"), who, Timestamp::UNIX_EPOCH, &subject).unwrap()
        };
        let read = |bytes: &[u8]| serde_json::from_str::<Object>(&for_script(bytes).unwrap()).unwrap();
        let nobody = Identity { session_id: "".into(), tenant_id: TenantId::from(""), agent_id: "".into(), ..who() };
        let event = read(&bytes(&nobody));
        let published: Vec<(&str, &Value)> =
            event.iter().take(PUBLISHED.len()).map(|(name, value)| (name.as_str(), value)).collect();
        assert_eq!(
            published,
            [
                ("hookEvent", &json!("pre_tool_use")),
                ("eventId", &json!("e1")),
                // Text where there is nothing, as on the published wire.
                ("sessionId", &json!("")),
                ("tenantId", &json!(NIL)),
                ("agentId", &json!(NIL)),
                ("toolName", &json!("exec")),
                ("toolInput", &json!({"cmd": "ls"})),
                ("rawInput", &json!("")),
                ("depth", &json!(1)),
            ]
        );
        assert_eq!((&event["rawToolName"], &event["occurredAt"]), (&json!("bash"), &json!("1970-01-01T00:00:00Z")));
        // Everything else that other handlers are sent, and nothing twice.
        let sent: Object = serde_json::from_slice(&bytes(&nobody)).unwrap();
        let others = sent.keys().filter(|name| name.starts_with(char::is_lowercase) && *name != HOOK_EVENT);
        let missing: Vec<&String> = others.filter(|name| !event.contains_key(&camel(name))).collect();
        assert!(missing.is_empty(), "{missing:?}");
        // The published members stand there once, for two names each, and `shell` comes to them.
        assert_eq!(event.len(), sent.len() - PUBLISHED.len() + 1);
        assert_eq!(
            (&sent["agent_id"], &sent["agent_key"], &sent["session_id"]),
            (&json!(null), &json!(null), &json!(null))
        );
        assert_eq!(event[SHELL], json!(ShellFacts::default()));
        let with_shell = br#"{"HookEvent":"pre_tool_use","shell":{"unknown":true}}"#;
        assert_eq!(Value::Object(read(with_shell)), json!({"hookEvent": "pre_tool_use", "shell": {"unknown": true}}));
        assert!(for_script(b"[]").is_err());
    }

    #[test]
    fn what_happened_is_told_whole_or_says_that_it_was_cut() {
        let output = ToolOutput::error("ü".repeat(MAX_OUTPUT_BYTES));
        let duration = std::time::Duration::from_millis(7);
        let sent = told(Observed::PostToolUse { call: call(), output, duration, substituted: true });
        assert_eq!(sent["tool_output"].as_str().unwrap().len(), MAX_OUTPUT_BYTES);
        assert_eq!((&sent["tool_output_truncated"], &sent["is_error"]), (&json!(true), &json!(true)));
        assert_eq!((&sent["duration_ms"], &sent["substituted"]), (&json!(7), &json!(true)));
        let stop = |status, timed_out| {
            let start = Box::new(SubagentStart::new("helper".into(), "look", 2, Some(call())));
            let sent = told(Observed::SubagentStop {
                start,
                session_id: "cli:1/d".into(),
                status,
                timed_out,
                outcome: "found".into(),
                denials: Vec::new(),
                duration,
            });
            (sent["outcome"].clone(), sent["result"].clone(), sent["error"].clone(), sent["ToolName"].clone())
        };
        let (exec, found) = (json!("exec"), json!("found"));
        assert_eq!(stop(TurnStatus::Completed, false), (json!("completed"), found.clone(), Value::Null, exec.clone()));
        assert_eq!(stop(TurnStatus::Error, false), (json!("failed"), Value::Null, found.clone(), exec.clone()));
        assert_eq!(stop(TurnStatus::Error, true), (json!("timed_out"), Value::Null, found.clone(), exec.clone()));
        assert_eq!(stop(TurnStatus::Aborted, false), (json!("cancelled"), Value::Null, found, exec));
    }
}
