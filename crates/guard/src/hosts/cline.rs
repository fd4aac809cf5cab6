//! Cline. It looks at no exit code, and its only refusal ends the whole task.

use pintle_domain::json::{self, Object, Value, json};

use crate::answer::Answer;
use crate::coverage::{GuardLevel, KILLED, RESULT, ToolCoverage};
use crate::event::{HookInput, HostCall, HostEvent, HostWhat, Malformed, Subagent};
use crate::host::{
    AskSupport, ClientEntry, ConfigForm, ConfigPlace, EventRow, GuardHost, HookAcceptance, HookDeadline, HostAdapter,
    HostConfig, HostRefusals, HostSwitches, InstallScope, KnownVersions, RowPosition,
};
use crate::panic::PanicRow;
use crate::ruling::{GuardRuling, RulingWord};
use crate::speech::{self, Speech};
use crate::tools::{Holds, ToolClass, ToolRow};
use crate::trial::{self, HostTrial, TrialCall, TrialModel, TrialRun, TrialWire};
use crate::unguarded::UnguardedStart;
use crate::wire::{Payload, call, prompt_text};

/// What is known of Cline.
pub static CLINE: GuardHost = GuardHost {
    id: "cline",
    name: "Cline",
    versions: KnownVersions { min: "3.0.65", newest: "3.0.65", packages: &["cline", "@cline/cli"] },
    config: HostConfig {
        places: &[
            ConfigPlace { scope: InstallScope::User, path: "~/.cline/hooks" },
            ConfigPlace { scope: InstallScope::Project, path: "./.clinerules/hooks" },
        ],
        form: ConfigForm::Executables { text, deny },
        position: RowPosition::Any,
        acceptance: HookAcceptance::NotNeeded,
        protects: &["~/.cline/**", "**/.clinerules/hooks/**", "!~/.cline/worktrees/**"],
        switches: HostSwitches::NONE,
        moved_by: Some("CLINE_DIR"),
        strict: None,
        behind: &[],
        trusted_in: None,
        transcripts: &["~/.cline/data/sessions/{session}/*.messages.json"],
        refusals: HostRefusals::BARE,
    },
    deadline: HookDeadline { installed_s: 120, unit: None, default_s: Some(120) },
    events: &[
        EventRow { name: "TaskStart", installed: true, answers: false, stops: false },
        EventRow { name: "UserPromptSubmit", installed: true, answers: true, stops: true },
        EventRow { name: "PreToolUse", installed: true, answers: true, stops: true },
        EventRow { name: "PostToolUse", installed: true, answers: true, stops: false },
        EventRow { name: "TaskComplete", installed: true, answers: false, stops: false },
    ],
    asks: AskSupport::AsksOnly,
    tools: &[
        ToolRow {
            native: "run_commands",
            canonical: "exec",
            class: ToolClass::Shell,
            holds: &[Holds::Shell("commands")],
        },
        ToolRow {
            native: "execute_command",
            canonical: "exec",
            class: ToolClass::Shell,
            holds: &[Holds::Shell("command")],
        },
        ToolRow { native: "editor", canonical: "edit_file", class: ToolClass::FileWrite, holds: FILE },
        ToolRow {
            native: "apply_patch",
            canonical: "edit_file",
            class: ToolClass::FileWrite,
            holds: &[Holds::Patch("input")],
        },
        ToolRow {
            native: "read_files",
            canonical: "read_file",
            class: ToolClass::FileRead,
            holds: &[Holds::Path("paths"), Holds::Path("files"), Holds::Path("file_paths")],
        },
        ToolRow { native: "search_codebase", canonical: "search_text", class: ToolClass::FileRead, holds: FILE },
        ToolRow { native: "fetch_web_content", canonical: "web_fetch", class: ToolClass::Web, holds: &[] },
        ToolRow { native: "spawn_agent", canonical: "delegate", class: ToolClass::Subagent, holds: &[] },
    ],
    coverage: &[
        ToolCoverage { class: ToolClass::Shell, level: GuardLevel::Held, around: &[KILLED, RESULT] },
        ToolCoverage { class: ToolClass::FileWrite, level: GuardLevel::Held, around: &[KILLED] },
        ToolCoverage { class: ToolClass::FileRead, level: GuardLevel::Held, around: &[KILLED, RESULT] },
        ToolCoverage { class: ToolClass::Web, level: GuardLevel::Held, around: &[KILLED, RESULT] },
        ToolCoverage { class: ToolClass::Mcp, level: GuardLevel::Held, around: &[KILLED, RESULT] },
        ToolCoverage { class: ToolClass::Subagent, level: GuardLevel::Held, around: &[KILLED, RESULT] },
        ToolCoverage { class: ToolClass::Other, level: GuardLevel::Held, around: &[KILLED, RESULT, PROMPTS] },
    ],
    environment: &[],
    adapter: HostAdapter { decode, encode },
    trial: HostTrial { wire: TrialWire::Chat, shell, run, hears_refusals: false },
};

/// What no hook was ever told.
const PROMPTS: &str = "prompts of a run without a person pass no hook";
const FILE: &[Holds] = &[Holds::Path("path")];

fn deny(event: &str) -> &'static str {
    PANIC.deny(event)
}

fn text(hook: &ClientEntry<'_>, row: &EventRow) -> String {
    hook.script(row.name, PANIC.deny(row.name))
}

fn shell(command: &str) -> TrialCall {
    TrialCall::of("run_commands", json!({"commands": [command]}))
}

/// Its models stand in its state alone, so that it gets another one; its hooks are looked for elsewhere.
fn run(model: &TrialModel<'_>) -> TrialRun {
    const PROVIDER: &str = "openai-compatible";
    let base_url = format!("{}/v1", model.url);
    let settings = json!({"provider": PROVIDER, "apiKey": trial::KEY, "model": trial::MODEL, "baseUrl": base_url});
    let provider = json!({"settings": settings, "updatedAt": "2026-11-22T00:00:00.000Z", "tokenSource": "manual"});
    let state = json!({"version": 1, "lastUsedProvider": PROVIDER, "modes": {}, "providers": {(PROVIDER): provider}});
    let folder = format!("{}/.cline-data", model.folder);
    let run = TrialRun::of(
        &["--data-dir", &folder, "-P", PROVIDER, "-m", trial::MODEL, model.prompt],
        &[("CLINE_TELEMETRY_DISABLED", "1"), ("CLINE_NO_AUTO_UPDATE", "1")],
    );
    TrialRun { files: vec![(".cline-data/settings/providers.json", state.to_string())], ..run }
}

/// What starts it without its hooks.
pub(super) const UNGUARDED: UnguardedStart = UnguardedStart {
    programs: &["cline", "@cline/cli"],
    options: &["--config"],
    settings: &[],
    words: &[],
    changes: &[],
    variables: &["CLINE_DIR"],
};

/// What is printed when nobody answers.
pub(crate) const PANIC: PanicRow = PanicRow {
    host: "cline",
    passes: "{}",
    denies: &[
        ("PreToolUse", r#"{"cancel":true,"errorMessage":"Pintle's guard did not answer, so this call is refused."}"#),
        (
            "UserPromptSubmit",
            r#"{"cancel":true,"errorMessage":"Pintle's guard did not answer, so this prompt is refused."}"#,
        ),
    ],
};

/// The event that a word of `hookName` stands for.
const NAMES: [(&str, &str); 4] = [
    ("tool_call", "PreToolUse"),
    ("tool_result", "PostToolUse"),
    ("agent_start", "TaskStart"),
    ("agent_end", "TaskComplete"),
];

fn decode(input: &HookInput<'_>) -> Result<HostEvent, Malformed> {
    let mut said = Payload::read(input)?;
    let name = match (said.said("hookName"), input.event) {
        (Some(word), event) => {
            let known = NAMES.iter().find(|(known, _)| *known == word).map(|(_, name)| *name);
            let name = known.or(event).unwrap_or(&word).to_owned();
            said.put("hookName", Value::from(word));
            name
        }
        (None, event) => event.ok_or(Malformed::Member("hookName"))?.to_owned(),
    };
    let mut event = said.begin(&CLINE, name, input);
    event.turn = said.said("taskId");
    let context = said.take("sessionContext");
    let root = context.as_ref().and_then(|context| context.get("rootSessionId")).and_then(Value::as_str);
    event.session = root.or(event.turn.as_deref()).unwrap_or_default().to_owned();
    if let Some(context) = context {
        said.put("sessionContext", context);
    }
    let (call, what) = happening(&event.event, &mut said)?;
    (event.call, event.what) = (call, what);
    if let Some(parent) = said.said("parent_agent_id") {
        event.subagent = Some(Subagent { id: said.said("agent_id"), kind: None, parent: Some(parent) });
    }
    event.host_raw = said.rest();
    if let Some(folder) = folder(&event.host_raw) {
        event.cwd = folder;
    }
    Ok(event)
}

fn folder(said: &Object) -> Option<String> {
    let named = said.get("workspaceInfo").and_then(|info| info.get("rootPath"));
    let listed = said.get("workspaceRoots").and_then(|roots| roots.get(0));
    named.or(listed).and_then(Value::as_str).map(str::to_owned)
}

fn happening(name: &str, said: &mut Payload) -> Result<(Option<String>, HostWhat), Malformed> {
    Ok(match name {
        "TaskStart" => (None, HostWhat::SessionStart),
        "TaskComplete" => (None, HostWhat::Stop { text: None, again: false }),
        "UserPromptSubmit" => {
            let prompt = said.take("userPromptSubmit").or_else(|| said.take("prompt"));
            let prompt = prompt.ok_or(Malformed::Member("userPromptSubmit"))?;
            let text = prompt_text(prompt.get("prompt").unwrap_or(&prompt), "userPromptSubmit")?;
            said.put("userPromptSubmit", prompt);
            (None, HostWhat::Prompt { text })
        }
        "PreToolUse" => {
            let (id, tool) = match said.take("tool_call") {
                Some(typed) => typed_call(typed, said, "tool_call")?,
                None => (None, untyped_call(said, "preToolUse")?),
            };
            (id, HostWhat::Tool(tool))
        }
        "PostToolUse" => {
            let Some(typed) = said.take("tool_result") else {
                let tool = untyped_call(said, "postToolUse")?;
                return Ok((None, HostWhat::ToolDone { tool, result: Value::Null, failed: false }));
            };
            let result = typed.get("output").cloned().unwrap_or(Value::Null);
            let failed = typed.get("error").is_some_and(|error| !error.is_null());
            let (id, tool) = typed_call(typed, said, "tool_result")?;
            (id, HostWhat::ToolDone { tool, result, failed })
        }
        _ => (None, HostWhat::Other),
    })
}

/// The call with the types of its arguments; what else stands there stays in `said`.
fn typed_call(typed: Value, said: &mut Payload, member: &'static str) -> Result<(Option<String>, HostCall), Malformed> {
    let Value::Object(mut typed) = typed else { return Err(Malformed::Member(member)) };
    let text = |value: Option<Value>| match value {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let id = text(typed.shift_remove("id"));
    let native = text(typed.shift_remove("name")).ok_or(Malformed::Member(member))?;
    let Some(Value::Object(arguments)) = typed.shift_remove("input") else { return Err(Malformed::Member(member)) };
    typed.shift_remove("output");
    if !typed.is_empty() {
        said.put(member, Value::from(typed));
    }
    Ok((id, call(&CLINE, native, arguments)))
}

/// The call whose arguments are all texts: those that hold JSON are read.
fn untyped_call(said: &Payload, member: &'static str) -> Result<HostCall, Malformed> {
    let use_of = said.peek(member).ok_or(Malformed::Member(member))?;
    let native = use_of.get("toolName").and_then(Value::as_str).ok_or(Malformed::Member(member))?;
    let Some(Value::Object(texts)) = use_of.get("parameters") else { return Err(Malformed::Member(member)) };
    let typed = |value: &Value| match value.as_str().map(json::parse) {
        Some(Ok(list @ Value::Array(_))) => list,
        _ => value.clone(),
    };
    let arguments = texts.iter().map(|(name, value)| (name.clone(), typed(value))).collect();
    Ok(call(&CLINE, native.to_owned(), arguments))
}

fn encode(event: &HostEvent, ruling: &GuardRuling) -> Answer {
    let answer = speech::answer(event, &Cline(event), ruling);
    let cancels = matches!(event.what, HostWhat::Tool(_) | HostWhat::Prompt { .. });
    match answer.degraded {
        // Whatever is refused ends the task.
        Some(degraded) if degraded.to == RulingWord::Deny => answer.told(ruling, RulingWord::AbortTurn),
        None if cancels && matches!(ruling, GuardRuling::Deny { .. }) => answer.told(ruling, RulingWord::AbortTurn),
        Some(_) | None => answer,
    }
}

/// What Cline takes at an event.
struct Cline<'a>(&'a HostEvent);

impl Speech for Cline<'_> {
    fn deny(&self, reason: &str) -> Option<Value> {
        matches!(self.0.what, HostWhat::Tool(_) | HostWhat::Prompt { .. })
            .then(|| json!({"cancel": true, "errorMessage": reason}))
    }

    fn abort(&self, reason: &str) -> Option<Value> {
        self.deny(reason)
    }

    fn ask(&self, reason: &str) -> Option<Value> {
        matches!(self.0.what, HostWhat::Tool(_)).then(|| json!({"review": true, "errorMessage": reason}))
    }

    fn input(&self, arguments: &Object, context: Option<&str>) -> Option<Value> {
        if !matches!(self.0.what, HostWhat::Tool(_)) {
            return None;
        }
        let mut document = json!({"overrideInput": arguments});
        if let Some(text) = context {
            document["context"] = Value::from(text);
        }
        Some(document)
    }

    fn context(&self, text: &str) -> Option<Value> {
        matches!(self.0.what, HostWhat::Tool(_)).then(|| json!({"context": text}))
    }
}
