//! Copilot CLI, in its own dialect, whose event names begin with a small letter; the other one is read too.

use pintle_domain::json::{self, Object, Value, json};

use super::shape;
use crate::answer::Answer;
use crate::coverage::{GuardLevel, STOPPED, ToolCoverage};
use crate::event::{HookInput, HostCall, HostEvent, HostWhat, Malformed, Subagent};
use crate::host::{
    AskSupport, ClientEntry, ConfigForm, ConfigPlace, EventRow, GuardHost, HookAcceptance, HookDeadline, HostAdapter,
    HostConfig, HostRefusals, HostSwitch, HostSwitches, InstallScope, KnownVersions, RowPosition, SwitchValue,
    TimeUnit, TrustedFolders,
};
use crate::panic::PanicRow;
use crate::ruling::GuardRuling;
use crate::settings;
use crate::shell_tools;
use crate::speech::{self, Speech};
use crate::tools::{Holds, ToolClass, ToolRow};
use crate::trial::{self, HostTrial, TrialCall, TrialModel, TrialRun, TrialWire};
use crate::unguarded::UnguardedStart;
use crate::wire::{Payload, call};

/// What is known of Copilot CLI.
pub static COPILOT: GuardHost = GuardHost {
    id: "copilot",
    name: "Copilot CLI",
    versions: KnownVersions { min: "1.0.102", newest: "1.0.102", packages: &["@github/copilot"] },
    config: HostConfig {
        places: &[
            ConfigPlace { scope: InstallScope::User, path: "~/.copilot/hooks/pintle.json" },
            ConfigPlace { scope: InstallScope::Project, path: "./.github/hooks/pintle.json" },
            ConfigPlace { scope: InstallScope::System, path: "/etc/github-copilot/policy.d/pintle.json" },
        ],
        form: ConfigForm::WholeFile { text },
        position: RowPosition::Any,
        acceptance: HookAcceptance::NotNeeded,
        protects: &[
            "~/.copilot/**",
            "**/.github/hooks/**",
            "**/.github/copilot/**",
            "/etc/github-copilot/**",
            "!~/.copilot/copilot-instructions.md",
            "!~/.copilot/session-state/*/files/**",
            "!~/.copilot/session-state/*/plan.md",
        ],
        switches: HostSwitches {
            all: &[
                HostSwitch { path: "~/.copilot/config.json", names: &["disableAllHooks"], off: SwitchValue::Is(true) },
                HostSwitch {
                    path: "~/.copilot/settings.json",
                    names: &["disableAllHooks"],
                    off: SwitchValue::Is(true),
                },
                HostSwitch {
                    path: "./.github/copilot/settings.json",
                    names: &["disableAllHooks"],
                    off: SwitchValue::Is(true),
                },
                HostSwitch { path: "./.github/hooks/*.json", names: &["disableAllHooks"], off: SwitchValue::Is(true) },
                HostSwitch { path: "~/.copilot/hooks/*.json", names: &["disableAllHooks"], off: SwitchValue::Is(true) },
            ],
            machine_holds: true,
            machine_pins: false,
        },
        moved_by: Some("COPILOT_HOME"),
        strict: None,
        behind: &[],
        trusted_in: Some(TrustedFolders { path: "~/.copilot/config.json", member: "trusted_folders" }),
        transcripts: &["~/.copilot/session-state/{session}/events.jsonl"],
        refusals: HostRefusals { around: &[("Denied by preToolUse hook: ", "")], marked: true, rejected: None },
    },
    deadline: HookDeadline { installed_s: 600, unit: Some(TimeUnit::Seconds), default_s: Some(30) },
    events: &[
        EventRow { name: "sessionStart", installed: true, answers: true, stops: false },
        EventRow { name: "sessionEnd", installed: true, answers: false, stops: false },
        EventRow { name: "userPromptSubmitted", installed: true, answers: true, stops: true },
        EventRow { name: "userPromptTransformed", installed: true, answers: true, stops: true },
        EventRow { name: "preToolUse", installed: true, answers: true, stops: true },
        EventRow { name: "permissionRequest", installed: true, answers: true, stops: true },
        EventRow { name: "postToolUse", installed: true, answers: true, stops: true },
        EventRow { name: "subagentStart", installed: true, answers: false, stops: false },
        EventRow { name: "subagentStop", installed: true, answers: true, stops: true },
        EventRow { name: "agentStop", installed: true, answers: true, stops: true },
    ],
    asks: AskSupport::AsksOrRefuses,
    tools: &[
        ToolRow { native: "bash", canonical: "exec", class: ToolClass::Shell, holds: SHELL },
        ToolRow { native: "Bash", canonical: "exec", class: ToolClass::Shell, holds: SHELL },
        ToolRow { native: "powershell", canonical: "exec", class: ToolClass::Shell, holds: SHELL },
        ToolRow { native: "write_bash", canonical: "exec", class: ToolClass::Shell, holds: TYPED },
        ToolRow { native: "write_powershell", canonical: "exec", class: ToolClass::Shell, holds: TYPED },
        ToolRow { native: "create", canonical: "write_file", class: ToolClass::FileWrite, holds: FILE },
        ToolRow { native: "Write", canonical: "write_file", class: ToolClass::FileWrite, holds: FILE },
        ToolRow { native: "edit", canonical: "edit_file", class: ToolClass::FileWrite, holds: FILE },
        ToolRow { native: "str_replace_editor", canonical: "edit_file", class: ToolClass::FileWrite, holds: FILE },
        ToolRow {
            native: "apply_patch",
            canonical: "edit_file",
            class: ToolClass::FileWrite,
            holds: &[Holds::Patch("input"), Holds::Patch("patch")],
        },
        ToolRow { native: "view", canonical: "read_file", class: ToolClass::FileRead, holds: FILE },
        ToolRow { native: "grep", canonical: "search_text", class: ToolClass::FileRead, holds: FILE },
        ToolRow { native: "rg", canonical: "search_text", class: ToolClass::FileRead, holds: FILE },
        ToolRow { native: "glob", canonical: "find_files", class: ToolClass::FileRead, holds: FILE },
        ToolRow { native: "web_fetch", canonical: "web_fetch", class: ToolClass::Web, holds: &[] },
        ToolRow { native: "web_search", canonical: "web_search", class: ToolClass::Web, holds: &[] },
        ToolRow { native: "task", canonical: "delegate", class: ToolClass::Subagent, holds: &[] },
    ],
    coverage: &[
        ToolCoverage { class: ToolClass::Shell, level: GuardLevel::Held, around: &[SWITCH, STOPPED] },
        ToolCoverage { class: ToolClass::FileWrite, level: GuardLevel::Held, around: &[SWITCH, STOPPED] },
        ToolCoverage { class: ToolClass::FileRead, level: GuardLevel::Held, around: &[SWITCH, STOPPED] },
        ToolCoverage { class: ToolClass::Web, level: GuardLevel::Held, around: &[SWITCH, STOPPED] },
        ToolCoverage { class: ToolClass::Mcp, level: GuardLevel::Held, around: &[SWITCH, STOPPED] },
        ToolCoverage { class: ToolClass::Subagent, level: GuardLevel::Held, around: &[SWITCH, STOPPED] },
        ToolCoverage { class: ToolClass::Other, level: GuardLevel::Held, around: &[SWITCH, STOPPED] },
    ],
    environment: &["COPILOT_CLI_BINARY_VERSION", "COPILOT_PROJECT_DIR"],
    adapter: HostAdapter { decode, encode },
    trial: HostTrial { wire: TrialWire::Chat, shell, run, hears_refusals: true },
};

const SWITCH: &str = "`disableAllHooks` of a project that is trusted";
const SHELL: &[Holds] = &[Holds::Shell("command")];
/// What is typed into a shell that was left open runs there. At the model door it has come as a command.
const TYPED: &[Holds] = &[Holds::Shell(shell_tools::TYPED), Holds::Shell(shell_tools::COMMAND)];
const FILE: &[Holds] = &[Holds::Path("path"), Holds::Path("file_path")];

/// Where a text stands that came in the place of arguments.
const BARE: &str = "input";

fn text(host: &GuardHost, hook: &ClientEntry<'_>) -> String {
    let mut hooks = Object::new();
    for row in hook.rows(host) {
        let entry = json!([{
            "type": "command",
            "exec": hook.program,
            "args": hook.arguments(row.name),
            "timeoutSec": hook.timeout_s,
        }]);
        hooks.insert(row.name.to_owned(), entry);
    }
    format!("{}\n", settings::pretty(&json!({"version": 1, "hooks": hooks}), "  ", "\n", ""))
}

fn shell(command: &str) -> TrialCall {
    TrialCall::of("bash", json!({"command": command, "description": "does nothing", "mode": "sync"}))
}

fn run(model: &TrialModel<'_>) -> TrialRun {
    TrialRun::of(
        &["--no-color", "-p", model.prompt],
        &[
            ("COPILOT_PROVIDER_BASE_URL", &format!("{}/v1", model.url)),
            ("COPILOT_PROVIDER_API_KEY", trial::KEY),
            ("COPILOT_PROVIDER_TYPE", "openai"),
            ("COPILOT_MODEL", trial::MODEL),
            ("COPILOT_OFFLINE", "true"),
            ("COPILOT_AUTO_UPDATE", "false"),
        ],
    )
}

/// What starts it without its hooks.
pub(super) const UNGUARDED: UnguardedStart = UnguardedStart {
    programs: &["copilot", "@github/copilot"],
    options: &["--config-dir", "--plugin-dir"],
    settings: &["disableallhooks"],
    words: &[],
    changes: &[],
    variables: &["COPILOT_HOME"],
};

/// What is printed when nobody answers.
pub(crate) const PANIC: PanicRow = PanicRow {
    host: "copilot",
    passes: "{}",
    denies: &[
        (
            "sessionStart",
            r#"{"additionalContext":"Pintle's guard did not answer: until it does, every prompt and call is refused."}"#,
        ),
        (
            "preToolUse",
            r#"{"permissionDecision":"deny","permissionDecisionReason":"Pintle's guard did not answer, so this call is refused."}"#,
        ),
        (
            "permissionRequest",
            r#"{"behavior":"deny","message":"Pintle's guard did not answer, so this call is refused."}"#,
        ),
        (
            "userPromptSubmitted",
            r#"{"decision":"block","reason":"Pintle's guard did not answer, so this prompt is refused."}"#,
        ),
        (
            "userPromptTransformed",
            r#"{"modifiedTransformedPrompt":"The prompt was refused, because Pintle's guard did not answer."}"#,
        ),
        (
            "postToolUse",
            r#"{"modifiedResult":{"resultType":"failure","textResultForLlm":"Pintle's guard did not answer, so this result is withheld."}}"#,
        ),
    ],
};

/// Whether `event` is a prompt that comes once more, as it will be sent: there it can be changed, and here it cannot.
pub fn is_sent_later(event: &HostEvent) -> bool {
    event.host == COPILOT.id && event.event == "userPromptSubmitted"
}

fn decode(input: &HookInput<'_>) -> Result<HostEvent, Malformed> {
    let mut said = Payload::read(input)?;
    if let Some(name) = said.said("hook_event_name") {
        // The other dialect.
        said.put("hook_event_name", Value::from(name));
        return shape::decode_payload(&COPILOT, said, input);
    }
    let name = said.said("hookName").or_else(|| input.event.map(str::to_owned)).ok_or(Malformed::Member("hookName"))?;
    let mut event = said.begin(&COPILOT, name, input);
    event.session = said.text("sessionId")?;
    event.transcript = said.said("transcriptPath");
    event.what = happening(&event.event, &mut said)?;
    let agent = Subagent { id: said.said("agentId"), kind: said.said("agentType"), parent: said.said("parentAgentId") };
    event.subagent = (agent != Subagent::default()).then_some(agent);
    event.host_raw = said.rest();
    Ok(event)
}

fn happening(name: &str, said: &mut Payload) -> Result<HostWhat, Malformed> {
    Ok(match name {
        "sessionStart" => HostWhat::SessionStart,
        "sessionEnd" => HostWhat::SessionEnd,
        "userPromptSubmitted" => HostWhat::Prompt { text: said.text("prompt")? },
        "userPromptTransformed" => HostWhat::PromptSent { text: said.text("transformedPrompt")? },
        "preToolUse" => HostWhat::Tool(tool(said, "toolArgs")?),
        "permissionRequest" => HostWhat::Permission { tool: tool(said, "toolInput")? },
        "postToolUse" | "postToolUseFailure" => {
            let tool = tool(said, "toolArgs")?;
            let result = said.take("toolResult").or_else(|| said.take("error")).unwrap_or(Value::Null);
            let kind = result.get("resultType").and_then(Value::as_str);
            let failed = name == "postToolUseFailure" || kind.is_some_and(|kind| kind != "success");
            HostWhat::ToolDone { tool, result, failed }
        }
        "agentStop" => HostWhat::Stop { text: None, again: said.flag("stop_hook_active") },
        "subagentStart" => HostWhat::SubagentStart,
        "subagentStop" => HostWhat::SubagentStop { text: said.said("response"), again: said.flag("stop_hook_active") },
        _ => HostWhat::Other,
    })
}

/// Arguments come as an object, as the text of one, or, for tools that take a bare text, as that.
fn tool(said: &mut Payload, member: &'static str) -> Result<HostCall, Malformed> {
    let native = said.text("toolName")?;
    let arguments = match said.take(member).ok_or(Malformed::Member(member))? {
        Value::Object(arguments) => arguments,
        Value::String(text) => match json::parse(&text) {
            Ok(Value::Object(arguments)) => arguments,
            _ => {
                let mut arguments = Object::new();
                arguments.insert(BARE.to_owned(), Value::from(text.clone()));
                said.put(member, Value::from(text));
                arguments
            }
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return Err(Malformed::Member(member)),
    };
    Ok(named(call(&COPILOT, native, arguments)))
}

/// Tools of MCP servers are called `SERVER-TOOL`, and `SERVER/TOOL` where the host is about to ask.
fn named(mut tool: HostCall) -> HostCall {
    if tool.class == ToolClass::Other
        && let Some((server, name)) = tool.native.split_once('/').or_else(|| tool.native.split_once('-'))
    {
        tool.canonical = format!("mcp_{server}_{name}");
        tool.class = ToolClass::Mcp;
    }
    tool
}

fn encode(event: &HostEvent, ruling: &GuardRuling) -> Answer {
    speech::answer(event, &Copilot(event), ruling)
}

/// What Copilot CLI takes at an event.
struct Copilot<'a>(&'a HostEvent);

impl Speech for Copilot<'_> {
    fn deny(&self, reason: &str) -> Option<Value> {
        let what = &self.0.what;
        if matches!(what, HostWhat::Tool(_)) {
            return Some(json!({"permissionDecision": "deny", "permissionDecisionReason": reason}));
        }
        if matches!(what, HostWhat::Permission { .. }) {
            return Some(json!({"behavior": "deny", "message": reason}));
        }
        if matches!(what, HostWhat::PromptSent { .. }) {
            // It cannot be stopped any more, but nothing of it needs to be sent.
            return Some(json!({"modifiedTransformedPrompt": format!("The prompt was refused: {reason}")}));
        }
        if what.is_done() {
            return Some(json!({"modifiedResult": {"resultType": "failure", "textResultForLlm": reason}}));
        }
        (what.is_stop() || matches!(what, HostWhat::Prompt { .. })).then(|| shape::blocked(reason))
    }

    fn abort(&self, reason: &str) -> Option<Value> {
        if matches!(self.0.what, HostWhat::Permission { .. }) {
            return Some(json!({"behavior": "deny", "message": reason, "interrupt": true}));
        }
        matches!(self.0.what, HostWhat::Prompt { .. }).then(|| shape::blocked(reason))
    }

    fn allow(&self) -> Option<Value> {
        matches!(self.0.what, HostWhat::Permission { .. }).then(|| json!({"behavior": "allow"}))
    }

    fn notice(&self, text: &str) -> Option<Value> {
        // It shows nothing of a hook here: its model can say it.
        self.context(text)
    }

    fn ask(&self, reason: &str) -> Option<Value> {
        if matches!(self.0.what, HostWhat::Permission { .. }) {
            // The host is about to ask anyway.
            return self.nothing();
        }
        matches!(self.0.what, HostWhat::Tool(_))
            .then(|| json!({"permissionDecision": "ask", "permissionDecisionReason": reason}))
    }

    fn input(&self, arguments: &Object, context: Option<&str>) -> Option<Value> {
        let is_bare = self.0.host_raw.contains_key("toolArgs");
        if is_bare || !matches!(self.0.what, HostWhat::Tool(_)) {
            return None;
        }
        let mut document = json!({"modifiedArgs": arguments});
        if let Some(text) = context {
            document["additionalContext"] = Value::from(text);
        }
        Some(document)
    }

    fn prompt(&self, text: &str) -> Option<Value> {
        matches!(self.0.what, HostWhat::PromptSent { .. }).then(|| json!({"modifiedTransformedPrompt": text}))
    }

    fn result(&self, text: &str, _shaped: Option<&Value>) -> Option<Value> {
        let HostWhat::ToolDone { result, .. } = &self.0.what else { return None };
        let kind = result.get("resultType").and_then(Value::as_str).unwrap_or("success");
        Some(json!({"modifiedResult": {"resultType": kind, "textResultForLlm": text}}))
    }

    fn context(&self, text: &str) -> Option<Value> {
        let what = &self.0.what;
        (what.is_done() || matches!(what, HostWhat::SessionStart | HostWhat::Tool(_)))
            .then(|| json!({"additionalContext": text}))
    }
}
