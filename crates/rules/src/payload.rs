//! What the handler of a rule is sent: one JSON object per event, the same for every kind of handler.
//!
//! The members in `PascalCase` are those of the published wire and always all there; those in `snake_case` say more.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use pintle_domain::checkpoint::runtime::TurnStatus;
use pintle_domain::checkpoint::{
    Checkpoint as _, CheckpointKind, Facts, Notice, ObservedEvent, RuleSubject, SubagentStart, Subject,
};
use pintle_domain::id::{CallId, EventId, SessionId, agent_uuid};
use pintle_domain::identity::Identity;
use pintle_domain::shell::ShellFacts;
use pintle_domain::tool::ToolOutput;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use pintle_dialects::compact::Json;

/// Longest output of a tool and longest final text that is sent, in bytes. Source: the published format of payloads.
pub const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// The text that stands for an id that there is not. Source: the published format of payloads.
const NIL: &str = "00000000-0000-0000-0000-000000000000";

/// Room for the members that every payload has but for what is put in, in bytes.
const COMMON_BYTES: usize = 1536;

/// The payload of a question to a hook: `subject` at an event of `who`. Nothing where rules are not asked.
pub fn of_subject(event_id: &EventId, who: &Identity, at: Timestamp, subject: &Subject<'_>) -> Option<Vec<u8>> {
    let event = Event { event_id, who, at, kind: subject.kind(), call: who.tool_call_id.as_ref() };
    let mut out = match subject.of_rules()? {
        RuleSubject::UserPromptSubmit(prompt) => {
            let mut out = event.begin(&prompt.facts());
            out.raw(r#","input_kind":"#).serialised(&prompt.input_kind);
            out
        }
        RuleSubject::PreToolUse(gate) => event.begin(&Facts::of_call(&gate.call)),
        RuleSubject::SubagentStart(start) => event.subagent(start, None),
    };
    out.raw("}");
    Some(out.into_bytes())
}

/// The payload that a hook is told. Nothing of events that rules do not observe.
pub fn of_notice(notice: &Notice) -> Option<Vec<u8>> {
    let Notice { event_id, at, who, what } = notice;
    let event = Event { event_id, who, at: *at, kind: what.checkpoint(), call: who.tool_call_id.as_ref() };
    let mut out = match what {
        ObservedEvent::SessionStart => event.begin(&Facts::default()),
        ObservedEvent::PostToolUse { call, output, duration, substituted } => {
            // Who observes pairs its event with the one that the gates saw.
            let mut out = Event { call: Some(&call.id), ..event }.begin(&Facts::of_call(call));
            write_output(&mut out, output);
            out.raw(r#","duration_ms":"#).serialised(&millis(*duration));
            out.raw(r#","substituted":"#).serialised(substituted);
            out
        }
        ObservedEvent::Stop { reply, iterations, usage, duration } => {
            let mut out = event.begin(&Facts::default());
            out.raw(r#","status":"completed","final_text":"#).text(cut(reply).0);
            out.raw(r#","iterations":"#).serialised(iterations);
            out.raw(r#","usage":"#).serialised(usage);
            out.raw(r#","duration_ms":"#).serialised(&millis(*duration));
            out
        }
        ObservedEvent::SubagentStop { start, session_id, status, timed_out, outcome, duration, .. } => {
            let (word, is_error) = match (status, timed_out) {
                (_, true) => ("timed_out", true),
                (TurnStatus::Completed, false) => ("completed", false),
                (TurnStatus::Error, false) => ("failed", true),
                (TurnStatus::Aborted, false) => ("cancelled", true),
            };
            let mut out = event.subagent(start, Some(session_id));
            let text = cut(outcome).0;
            out.raw(r#","outcome":"#).text(word);
            out.raw(r#","result":"#).text_or_null((!is_error).then_some(text));
            out.raw(r#","error":"#).text_or_null(is_error.then_some(text));
            out.raw(r#","duration_ms":"#).serialised(&millis(*duration));
            out
        }
        ObservedEvent::Runtime(_) => return None,
    };
    out.raw("}");
    Some(out.into_bytes())
}

/// A payload in the words of scripts: the published members as they are, in `camelCase`, then the others, and `shell`,
/// which only scripts have: what a shell would do with the text of a call.
///
/// # Errors
/// The payload is not a JSON object.
pub fn for_script(payload: &[u8], shell: &ShellFacts) -> Result<String, String> {
    let Members(members) =
        serde_json::from_slice(payload).map_err(|error| format!("the event is not JSON: {error}"))?;
    let mut out = Json::with_capacity(payload.len());
    let mut before = "{";
    let mut put = |name: &str, member: &str| {
        out.raw(std::mem::replace(&mut before, ",")).text(name).raw(":").raw(member);
    };
    // What is published is text where there is nothing, as scripts of others expect it; what says the same in other
    // words is not there twice.
    for (published, name) in PUBLISHED {
        if let Some((_, member)) = members.iter().find(|(name, _)| name == published) {
            put(name, member.get());
        }
    }
    for (name, member) in &members {
        let camel = camel(name);
        let is_published = PUBLISHED.iter().any(|(published, script)| name == published || camel == *script);
        if !is_published && name != HOOK_EVENT {
            put(&camel, member.get());
        }
    }
    out.raw(before).raw(r#""shell":"#).serialised(shell).raw("}");
    String::from_utf8(out.into_bytes()).map_err(|error| error.to_string())
}

/// The members of an object, in their order, none of them looked into.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Deserialize<'a> for Members<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'a> Visitor<'a> for Pairs {
            type Value = Members<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// The member that names the event beside its published name.
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
#[derive(Clone, Copy)]
struct Event<'a> {
    event_id: &'a EventId,
    who: &'a Identity,
    at: Timestamp,
    kind: CheckpointKind,
    /// The call of a tool that it belongs to.
    call: Option<&'a CallId>,
}

impl Event<'_> {
    /// The members that all payloads have. The object stays open.
    fn begin(&self, facts: &Facts<'_>) -> Json {
        let who = self.who;
        let agent = some(who.agent_id.as_str()).map(|key| agent_uuid(&who.tenant_id, key));
        let (tool, raw_tool) = facts.tool.unwrap_or_default();
        let prompt = facts.prompt.unwrap_or_default();
        let depth = facts.depth.unwrap_or(who.depth);
        let mut out = Json::with_capacity(COMMON_BYTES);
        out.raw(r#"{"EventID":"#).text(self.event_id.as_str());
        out.raw(r#","SessionID":"#).text(who.session_id.as_str());
        out.raw(r#","TenantID":"#).text(some(who.tenant_id.as_str()).unwrap_or(NIL));
        out.raw(r#","AgentID":"#).text(agent.as_deref().unwrap_or(NIL));
        out.raw(r#","ToolName":"#).text(tool);
        let start = out.raw(r#","ToolInput":"#).position();
        let input = match facts.input {
            Some(input) => start..out.object(input).position(),
            None => start..out.raw("null").position(),
        };
        let start = out.raw(r#","RawInput":"#).position();
        let prompt = start..out.text(prompt).position();
        out.raw(r#","Depth":"#).serialised(&depth);
        out.raw(r#","HookEvent":"#).text(self.kind.name());
        out.raw(r#","hook_event_name":"#).text(self.kind.name());
        out.raw(r#","event_id":"#).text(self.event_id.as_str());
        out.raw(r#","tenant_id":"#).text_or_null(some(who.tenant_id.as_str()));
        out.raw(r#","agent_id":"#).text_or_null(agent.as_deref());
        out.raw(r#","agent_key":"#).text_or_null(some(who.agent_id.as_str()));
        out.raw(r#","session_id":"#).text_or_null(some(who.session_id.as_str()));
        out.raw(r#","turn_id":"#).text_or_null(some(who.turn_id.as_str()));
        out.raw(r#","parent_turn_id":"#).text_or_null(who.parent_turn_id.as_ref().map(|turn| turn.as_str()));
        out.raw(r#","iteration":"#).serialised(&who.iteration);
        out.raw(r#","tool_call_id":"#).text_or_null(self.call.map(|call| call.as_str()));
        out.raw(r#","depth":"#).serialised(&depth);
        out.raw(r#","channel":"#).text(&who.channel);
        out.raw(r#","chat_id":"#).text(&who.chat_id);
        out.raw(r#","trace_id":"#).text_or_null(some(who.trace_id.as_str()));
        out.raw(r#","occurred_at":"#).text(&self.at.to_string());
        out.raw(r#","tool_name":"#).text(tool);
        out.raw(r#","raw_tool_name":"#).text(raw_tool);
        out.raw(r#","tool_input":"#).again(input);
        out.raw(r#","raw_input":"#).again(prompt);
        out.raw(r#","first_prompt":"#).serialised(&facts.first_prompt);
        out.raw(r#","is_test":"#).serialised(&who.is_test);
        if let Some(foreign) = &who.foreign {
            out.raw(r#","host":"#).text(&foreign.host);
            out.raw(r#","host_version":"#).text_or_null(foreign.version.as_deref());
            out.raw(r#","host_event":"#).text(&foreign.event);
            out.raw(r#","host_raw":"#).object(&foreign.raw);
        }
        out
    }

    /// The beginning or, with the session that it had, the end of a sub-agent, with the call that wanted it.
    fn subagent(&self, start: &SubagentStart, session_id: Option<&SessionId>) -> Json {
        let tool = start.call.as_ref().map(|call| (call.tool.as_str(), call.raw_tool.as_str()));
        let facts = Facts { tool, input: Some(&start.input), depth: Some(start.depth), ..Facts::default() };
        let mut out = self.begin(&facts);
        let agent = agent_uuid(&self.who.tenant_id, start.agent.as_str());
        out.raw(r#","subagent":{"agent_id":"#).text(&agent);
        out.raw(r#","agent_key":"#).text(start.agent.as_str());
        out.raw(r#","task":"#).text(&start.task);
        if let Some(session_id) = session_id {
            out.raw(r#","session_id":"#).text(session_id.as_str());
        }
        out.raw("}");
        out
    }
}

fn write_output(out: &mut Json, output: &ToolOutput) {
    let (text, was_cut) = cut(&output.for_llm);
    out.raw(r#","tool_output":"#).text(text);
    out.raw(r#","tool_output_truncated":"#).serialised(&was_cut);
    out.raw(r#","is_error":"#).serialised(&output.is_error);
    out.raw(r#","error":"#).text_or_null(output.is_error.then_some(text));
}

/// The beginning of `text`, and whether it is not all.
fn cut(text: &str) -> (&str, bool) {
    let end = text.floor_char_boundary(MAX_OUTPUT_BYTES);
    (&text[..end], end < text.len())
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn millis(took: std::time::Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pintle_domain::checkpoint::user_prompt_submit::InputKind;
    use pintle_domain::checkpoint::{PreToolUse, UserPromptSubmit};
    use pintle_domain::id::{TenantId, TurnId};
    use pintle_domain::identity::ForeignEvent;
    use pintle_domain::json::{Object, Value, json};
    use pintle_domain::tool::ToolCall;

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

    fn told(what: ObservedEvent) -> Value {
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
        assert_eq!(told(ObservedEvent::SessionStart)["RawInput"], "");
    }

    #[test]
    fn what_a_foreign_agent_said_is_there_for_all_that_rules_are_sent() {
        let raw =
            pintle_domain::json::parse(r#"{"permission_mode":"plan","n":1.50}"#).unwrap().as_object().unwrap().clone();
        let foreign =
            ForeignEvent { host: "claude".into(), event: "PreToolUse".into(), raw, ..ForeignEvent::default() };
        let who = Identity { foreign: Some(Arc::new(foreign)), ..who() };
        let gate = PreToolUse { call: call() };
        let subject = Subject::PreToolUse(&gate);
        let asked = of_subject(&EventId::from("e1"), &who, Timestamp::UNIX_EPOCH, &subject).unwrap();
        let what = ObservedEvent::SessionStart;
        let notice = Notice { event_id: EventId::from("e1"), at: Timestamp::UNIX_EPOCH, who, what };
        for bytes in [&asked, &of_notice(&notice).unwrap()] {
            let sent: Value = serde_json::from_slice(bytes).unwrap();
            assert_eq!((&sent["host"], &sent["host_version"]), (&json!("claude"), &Value::Null));
            assert_eq!(sent["host_raw"]["permission_mode"], "plan");
        }
        let script = for_script(&asked, &ShellFacts::default()).unwrap();
        assert!(
            script.contains(r#""hostEvent":"PreToolUse","hostRaw":{"permission_mode":"plan","n":1.50}"#),
            "{script}"
        );
        assert!(payload(&subject).get("host").is_none(), "of our own agents there is none");
    }

    #[test]
    fn scripts_read_camel_case() {
        let gate = PreToolUse { call: call() };
        let bytes = |who: &Identity| {
            let subject = Subject::PreToolUse(&gate);
            of_subject(&EventId::from("e1"), who, Timestamp::UNIX_EPOCH, &subject).unwrap()
        };
        let read =
            |bytes: &[u8]| serde_json::from_str::<Object>(&for_script(bytes, &ShellFacts::default()).unwrap()).unwrap();
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
        assert_eq!(event["shell"], json!(ShellFacts::default()));
        let known = ShellFacts { unknown: true, ..ShellFacts::default() };
        let few = for_script(br#"{"HookEvent":"pre_tool_use","tool_name":"no","a_\n":12}"#, &known).unwrap();
        let event = json!({"hookEvent": "pre_tool_use", "a\n": 12, "shell": known});
        assert_eq!(serde_json::from_str::<Value>(&few).unwrap(), event);
        assert!(for_script(b"[]", &known).is_err());
    }

    #[test]
    fn what_happened_is_told_whole_or_says_that_it_was_cut() {
        let output = ToolOutput::error("ü".repeat(MAX_OUTPUT_BYTES));
        let duration = std::time::Duration::from_millis(7);
        let sent = told(ObservedEvent::PostToolUse { call: call(), output, duration, substituted: true });
        assert_eq!(sent["tool_output"].as_str().unwrap().len(), MAX_OUTPUT_BYTES);
        assert_eq!((&sent["tool_output_truncated"], &sent["is_error"]), (&json!(true), &json!(true)));
        assert_eq!((&sent["duration_ms"], &sent["substituted"]), (&json!(7), &json!(true)));
        let stop = |status, timed_out| {
            let start = Box::new(SubagentStart::new("helper".into(), "look", 2, Some(call())));
            let sent = told(ObservedEvent::SubagentStop {
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
