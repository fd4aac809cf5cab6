//! Gemini CLI, which alone tells its hooks of each call of the model.

use pintle_domain::json::{Object, Value, json};

use super::shape;
use crate::answer::Answer;
use crate::coverage::{GuardLevel, KILLED, ToolCoverage};
use crate::event::{HookInput, HostCall, HostEvent, HostWhat, Malformed};
use crate::host::{
    AskSupport, ClientEntry, ConfigForm, ConfigPlace, EventRow, GuardHost, HookAcceptance, HookDeadline, HostAdapter,
    HostConfig, HostRefusals, HostSwitch, HostSwitches, InstallScope, KnownVersions, RowPosition, SwitchValue,
    TimeUnit,
};
use crate::panic::PanicRow;
use crate::ruling::GuardRuling;
use crate::speech::{self, Speech};
use crate::tools::{Holds, ToolClass, ToolRow};
use crate::trial::{self, HostTrial, TrialCall, TrialModel, TrialRun, TrialWire};
use crate::unguarded::UnguardedStart;
use crate::wire::{Payload, call};

/// What is known of Gemini CLI.
pub static GEMINI: GuardHost = GuardHost {
    id: "gemini",
    name: "Gemini CLI",
    versions: KnownVersions { min: "0.61.0", newest: "0.61.0", packages: &["@google/gemini-cli"] },
    config: HostConfig {
        places: &[
            ConfigPlace { scope: InstallScope::User, path: "~/.gemini/settings.json" },
            ConfigPlace { scope: InstallScope::Project, path: "./.gemini/settings.json" },
            ConfigPlace { scope: InstallScope::System, path: "/etc/gemini-cli/settings.json" },
        ],
        form: ConfigForm::Json { comments: true, entry, adopts: false },
        position: RowPosition::First,
        acceptance: HookAcceptance::NotNeeded,
        protects: &["**/.gemini/settings.json", "/etc/gemini-cli/**"],
        switches: HostSwitches {
            all: &[
                HostSwitch {
                    path: "~/.gemini/settings.json",
                    names: &["hooksConfig", "enabled"],
                    off: SwitchValue::Is(false),
                },
                HostSwitch {
                    path: "~/.gemini/settings.json",
                    names: &["hooksConfig", "disabled"],
                    off: SwitchValue::NamesOurs,
                },
                HostSwitch {
                    path: "./.gemini/settings.json",
                    names: &["hooksConfig", "enabled"],
                    off: SwitchValue::Is(false),
                },
                HostSwitch {
                    path: "./.gemini/settings.json",
                    names: &["hooksConfig", "disabled"],
                    off: SwitchValue::NamesOurs,
                },
                HostSwitch {
                    path: "/etc/gemini-cli/settings.json",
                    names: &["hooksConfig", "enabled"],
                    off: SwitchValue::Is(false),
                },
                HostSwitch {
                    path: "/etc/gemini-cli/settings.json",
                    names: &["hooksConfig", "disabled"],
                    off: SwitchValue::NamesOurs,
                },
            ],
            machine_holds: false,
            machine_pins: true,
        },
        moved_by: Some("GEMINI_CLI_HOME"),
        strict: None,
        behind: &[],
        trusted_in: None,
        transcripts: &["~/.gemini/tmp/*/chats/session-*.jsonl"],
        refusals: HostRefusals { around: &[("Tool execution blocked: ", "")], ..HostRefusals::BARE },
    },
    deadline: HookDeadline { installed_s: 600, unit: Some(TimeUnit::Milliseconds), default_s: Some(60) },
    events: &[
        EventRow { name: "SessionStart", installed: true, answers: true, stops: false },
        EventRow { name: "SessionEnd", installed: true, answers: false, stops: false },
        EventRow { name: "BeforeAgent", installed: true, answers: true, stops: true },
        EventRow { name: "AfterAgent", installed: true, answers: true, stops: true },
        EventRow { name: "BeforeModel", installed: true, answers: true, stops: true },
        EventRow { name: "AfterModel", installed: true, answers: true, stops: true },
        EventRow { name: "BeforeTool", installed: true, answers: true, stops: true },
        EventRow { name: "AfterTool", installed: true, answers: true, stops: true },
    ],
    asks: AskSupport::AsksOnly,
    tools: &[
        ToolRow {
            native: "run_shell_command",
            canonical: "exec",
            class: ToolClass::Shell,
            holds: &[Holds::Shell("command")],
        },
        ToolRow { native: "write_file", canonical: "write_file", class: ToolClass::FileWrite, holds: FILE },
        ToolRow { native: "replace", canonical: "edit_file", class: ToolClass::FileWrite, holds: FILE },
        ToolRow { native: "read_file", canonical: "read_file", class: ToolClass::FileRead, holds: FILE },
        ToolRow {
            native: "read_many_files",
            canonical: "read_file",
            class: ToolClass::FileRead,
            holds: &[Holds::Path("paths"), Holds::Path("include")],
        },
        ToolRow { native: "list_directory", canonical: "list_dir", class: ToolClass::FileRead, holds: DIR },
        ToolRow { native: "grep_search", canonical: "search_text", class: ToolClass::FileRead, holds: DIR },
        ToolRow { native: "search_file_content", canonical: "search_text", class: ToolClass::FileRead, holds: DIR },
        ToolRow { native: "glob", canonical: "find_files", class: ToolClass::FileRead, holds: DIR },
        ToolRow { native: "web_fetch", canonical: "web_fetch", class: ToolClass::Web, holds: &[] },
        ToolRow { native: "google_web_search", canonical: "web_search", class: ToolClass::Web, holds: &[] },
        ToolRow { native: "invoke_agent", canonical: "delegate", class: ToolClass::Subagent, holds: &[] },
    ],
    coverage: &[
        ToolCoverage { class: ToolClass::Shell, level: GuardLevel::Held, around: &[SWITCH, KILLED] },
        ToolCoverage { class: ToolClass::FileWrite, level: GuardLevel::Held, around: &[SWITCH, KILLED] },
        ToolCoverage { class: ToolClass::FileRead, level: GuardLevel::Held, around: &[SWITCH, KILLED] },
        ToolCoverage { class: ToolClass::Web, level: GuardLevel::Held, around: &[SWITCH, KILLED] },
        ToolCoverage { class: ToolClass::Mcp, level: GuardLevel::Held, around: &[SWITCH, KILLED] },
        ToolCoverage {
            class: ToolClass::Subagent,
            level: GuardLevel::Held,
            around: &[SWITCH, "calls of sub-agents carry no mark of them", KILLED],
        },
        ToolCoverage { class: ToolClass::Other, level: GuardLevel::Held, around: &[SWITCH, KILLED] },
    ],
    environment: &["GEMINI_SESSION_ID", "GEMINI_PROJECT_DIR"],
    adapter: HostAdapter { decode, encode },
    trial: HostTrial { wire: TrialWire::Gemini, shell, run, hears_refusals: true },
};

const SWITCH: &str = "`hooksConfig.enabled` or `hooksConfig.disabled` of a project";
const FILE: &[Holds] = &[Holds::Path("file_path"), Holds::Path("absolute_path")];
const DIR: &[Holds] = &[Holds::Path("dir_path"), Holds::Path("path")];

fn entry(hook: &ClientEntry<'_>, row: &EventRow) -> Value {
    let mut entry = json!({"sequential": true, "hooks": [{
        "name": format!("pintle-{}", row.name),
        "type": "command",
        "command": hook.shell_text(row.name, PANIC.deny(row.name)),
        "timeout": u64::from(hook.timeout_s) * 1000,
    }]});
    if matches!(row.name, "BeforeTool" | "AfterTool") {
        entry["matcher"] = Value::from(".*");
    }
    entry
}

fn shell(command: &str) -> TrialCall {
    TrialCall::of("run_shell_command", json!({"command": command, "description": "does nothing"}))
}

/// Which key it takes stands in settings alone; in its usual mode it refuses calls before it asks a hook.
fn run(model: &TrialModel<'_>) -> TrialRun {
    let settings = json!({"security": {"auth": {"selectedType": "gemini-api-key"}}});
    let run = TrialRun::of(
        &["--approval-mode=yolo", "-m", "gemini-2.5-flash", "-p", model.prompt],
        &[
            ("GOOGLE_GEMINI_BASE_URL", model.url),
            ("GEMINI_API_KEY", trial::KEY),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
            ("GEMINI_CLI_NO_RELAUNCH", "true"),
            ("GEMINI_TELEMETRY_ENABLED", "false"),
        ],
    );
    TrialRun { files: vec![(".gemini/settings.json", settings.to_string())], ..run }
}

/// What starts it without its hooks.
pub(super) const UNGUARDED: UnguardedStart = UnguardedStart {
    programs: &["gemini", "@google/gemini-cli"],
    options: &[],
    settings: &["hooksconfig"],
    words: &[&["hooks", "disable"], &["hooks", "disable-all"]],
    changes: &[],
    variables: &["GEMINI_CLI_HOME", "GEMINI_CLI_SYSTEM_SETTINGS_PATH"],
};

/// What is printed when nobody answers.
pub(crate) const PANIC: PanicRow = PanicRow {
    host: "gemini",
    passes: "{}",
    denies: &[
        (
            "SessionStart",
            r#"{"systemMessage":"Pintle's guard did not answer: until it does, every prompt and call is refused."}"#,
        ),
        ("BeforeTool", r#"{"decision":"deny","reason":"Pintle's guard did not answer, so this call is refused."}"#),
        ("AfterTool", r#"{"decision":"block","reason":"Pintle's guard did not answer, so this result is withheld."}"#),
        ("BeforeAgent", r#"{"decision":"block","reason":"Pintle's guard did not answer, so this prompt is refused."}"#),
        ("BeforeModel", r#"{"decision":"deny","reason":"Pintle's guard did not answer, so this request is refused."}"#),
        (
            "AfterModel",
            r#"{"decision":"deny","reason":"Pintle's guard did not answer, so this answer is withheld.","continue":false,"stopReason":"Pintle's guard did not answer, so this answer is withheld."}"#,
        ),
    ],
};

fn decode(input: &HookInput<'_>) -> Result<HostEvent, Malformed> {
    let mut said = Payload::read(input)?;
    let name = said.text("hook_event_name")?;
    let mut event = said.begin(&GEMINI, name, input);
    event.session = said.text("session_id")?;
    event.transcript = said.said("transcript_path");
    event.what = happening(&event.event, &mut said)?;
    event.host_raw = said.rest();
    Ok(event)
}

fn happening(name: &str, said: &mut Payload) -> Result<HostWhat, Malformed> {
    let value = |said: &mut Payload, name: &'static str| said.take(name).ok_or(Malformed::Member(name));
    Ok(match name {
        "SessionStart" => HostWhat::SessionStart,
        "SessionEnd" => HostWhat::SessionEnd,
        "BeforeAgent" => HostWhat::Prompt { text: said.text("prompt")? },
        "AfterAgent" => HostWhat::Stop { text: said.said("prompt_response"), again: said.flag("stop_hook_active") },
        "BeforeModel" => HostWhat::BeforeModel { request: value(said, "llm_request")? },
        "AfterModel" => {
            HostWhat::AfterModel { request: value(said, "llm_request")?, response: value(said, "llm_response")? }
        }
        "BeforeTool" => HostWhat::Tool(tool(said)?),
        "AfterTool" => {
            let tool = tool(said)?;
            let result = said.take("tool_response").unwrap_or(Value::Null);
            let failed = result.get("error").is_some_and(|error| !error.is_null());
            HostWhat::ToolDone { tool, result, failed }
        }
        _ => HostWhat::Other,
    })
}

fn tool(said: &mut Payload) -> Result<HostCall, Malformed> {
    let native = said.text("tool_name")?;
    Ok(call(&GEMINI, native, said.object("tool_input")?))
}

fn encode(event: &HostEvent, ruling: &GuardRuling) -> Answer {
    speech::answer(event, &Gemini(event), ruling)
}

/// What Gemini CLI takes at an event.
struct Gemini<'a>(&'a HostEvent);

impl Gemini<'_> {
    fn specific(&self, member: &str, value: &Value) -> Value {
        json!({"hookSpecificOutput": {"hookEventName": self.0.event, (member): value}})
    }
}

fn ended(reason: &str) -> Value {
    json!({"decision": "deny", "reason": reason, "continue": false, "stopReason": reason})
}

impl Speech for Gemini<'_> {
    fn deny(&self, reason: &str) -> Option<Value> {
        let what = &self.0.what;
        if matches!(what, HostWhat::Tool(_) | HostWhat::BeforeModel { .. }) {
            return Some(json!({"decision": "deny", "reason": reason}));
        }
        // After a tool the reason stands in the place of the result, as an error.
        let blocks = what.is_stop() || what.is_done() || matches!(what, HostWhat::Prompt { .. });
        blocks.then(|| shape::blocked(reason))
    }

    fn abort(&self, reason: &str) -> Option<Value> {
        match &self.0.what {
            HostWhat::Tool(_) | HostWhat::AfterModel { .. } => Some(ended(reason)),
            HostWhat::Prompt { .. } | HostWhat::BeforeModel { .. } => self.deny(reason),
            HostWhat::SessionStart
            | HostWhat::SessionEnd
            | HostWhat::PromptSent { .. }
            | HostWhat::Permission { .. }
            | HostWhat::ToolDone { .. }
            | HostWhat::SubagentStart
            | HostWhat::SubagentStop { .. }
            | HostWhat::Stop { .. }
            | HostWhat::ConfigChange { .. }
            | HostWhat::Other => None,
        }
    }

    fn notice(&self, text: &str) -> Option<Value> {
        Some(shape::noted(json!({}), text))
    }

    fn with_note(&self, document: Value, text: &str) -> Value {
        shape::noted(document, text)
    }

    fn ask(&self, reason: &str) -> Option<Value> {
        matches!(self.0.what, HostWhat::Tool(_)).then(|| json!({"decision": "ask", "reason": reason}))
    }

    fn input(&self, arguments: &Object, _context: Option<&str>) -> Option<Value> {
        let HostWhat::Tool(tool) = &self.0.what else { return None };
        keeps_members(&tool.arguments, arguments).then(|| self.specific("tool_input", &Value::from(arguments.clone())))
    }

    fn request(&self, request: &Value) -> Option<Value> {
        matches!(self.0.what, HostWhat::BeforeModel { .. }).then(|| self.specific("llm_request", request))
    }

    fn result(&self, text: &str, _shaped: Option<&Value>) -> Option<Value> {
        let text = speech::reason(text, Self::MAX_REASON);
        self.0.what.is_done().then(|| shape::blocked(&text))
    }

    fn context(&self, text: &str) -> Option<Value> {
        let HostEvent { what, event, .. } = self.0;
        let takes = what.is_done() || matches!(what, HostWhat::SessionStart | HostWhat::Prompt { .. });
        takes.then(|| shape::context(event, text))
    }
}

/// Whether each member of `old` is still in `new`: the host puts the new arguments over the old ones, so that nothing
/// can be taken away.
fn keeps_members(old: &Object, new: &Object) -> bool {
    old.iter().all(|(name, old)| match (old, new.get(name)) {
        (_, None) => false,
        (Value::Object(old), Some(Value::Object(new))) => keeps_members(old, new),
        (_, Some(_)) => true,
    })
}
