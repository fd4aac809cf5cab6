//! OpenCode, by a plugin of ours: it starts the client with `{"directory", "input", "output"}` of its hooks.

use pintle_domain::json::{Object, Value, json};

use super::plugin::{self, Plugin};
use crate::answer::Answer;
use crate::coverage::{GuardLevel, ToolCoverage};
use crate::event::{HookInput, HostCall, HostEvent, HostWhat, Malformed, Subagent};
use crate::host::{
    AskSupport, ClientEntry, ConfigForm, ConfigPlace, EventRow, GuardHost, HookAcceptance, HookDeadline, HostAdapter,
    HostConfig, HostRefusals, HostSwitches, InstallScope, KnownVersions, RowPosition, TimeUnit,
};
use crate::panic::PanicRow;
use crate::ruling::GuardRuling;
use crate::speech;
use crate::tools::{Holds, ToolClass, ToolRow};
use crate::trial::{self, HostTrial, TrialCall, TrialModel, TrialRun, TrialWire};
use crate::unguarded::UnguardedStart;
use crate::wire::{Payload, call, prompt_text};

/// What is known of OpenCode.
pub static OPENCODE: GuardHost = GuardHost {
    id: "opencode",
    name: "OpenCode",
    versions: KnownVersions { min: "1.18.33", newest: "1.18.33", packages: &["opencode-ai", "opencode"] },
    config: HostConfig {
        places: &[
            ConfigPlace { scope: InstallScope::User, path: "~/.config/opencode/plugin/pintle.js" },
            ConfigPlace { scope: InstallScope::Project, path: "./.opencode/plugin/pintle.js" },
        ],
        form: ConfigForm::WholeFile { text },
        position: RowPosition::Any,
        acceptance: HookAcceptance::NotNeeded,
        protects: &["**/.opencode/plugin*/**", "~/.config/opencode/**", "!~/.config/opencode/agents.md"],
        switches: HostSwitches::NONE,
        moved_by: None,
        strict: None,
        behind: &[],
        trusted_in: None,
        transcripts: &["~/.local/share/opencode/opencode.db"],
        refusals: HostRefusals { around: &[("", ""), ("Error: ", "")], ..HostRefusals::BARE },
    },
    deadline: HookDeadline { installed_s: 600, unit: Some(TimeUnit::Seconds), default_s: None },
    events: &[
        EventRow { name: "session.created", installed: true, answers: false, stops: false },
        EventRow { name: "session.idle", installed: true, answers: false, stops: false },
        EventRow { name: "chat.message", installed: true, answers: true, stops: true },
        EventRow { name: "tool.execute.before", installed: true, answers: true, stops: true },
        EventRow { name: "tool.execute.after", installed: true, answers: true, stops: true },
    ],
    asks: AskSupport::Never,
    tools: &[
        ToolRow { native: "bash", canonical: "exec", class: ToolClass::Shell, holds: &[Holds::Shell("command")] },
        ToolRow { native: "write", canonical: "write_file", class: ToolClass::FileWrite, holds: FILE },
        ToolRow { native: "edit", canonical: "edit_file", class: ToolClass::FileWrite, holds: FILE },
        ToolRow {
            native: "apply_patch",
            canonical: "edit_file",
            class: ToolClass::FileWrite,
            holds: &[Holds::Patch("patchText"), Holds::Patch("patch"), Holds::Patch("input")],
        },
        ToolRow { native: "read", canonical: "read_file", class: ToolClass::FileRead, holds: FILE },
        ToolRow { native: "grep", canonical: "search_text", class: ToolClass::FileRead, holds: &[Holds::Path("path")] },
        ToolRow { native: "glob", canonical: "find_files", class: ToolClass::FileRead, holds: &[Holds::Path("path")] },
        ToolRow { native: "list", canonical: "list_dir", class: ToolClass::FileRead, holds: &[Holds::Path("path")] },
        ToolRow { native: "webfetch", canonical: "web_fetch", class: ToolClass::Web, holds: &[] },
        ToolRow { native: "websearch", canonical: "web_search", class: ToolClass::Web, holds: &[] },
        ToolRow { native: "task", canonical: "delegate", class: ToolClass::Subagent, holds: &[] },
    ],
    coverage: &[
        ToolCoverage { class: ToolClass::Shell, level: GuardLevel::Held, around: &[PURE] },
        ToolCoverage { class: ToolClass::FileWrite, level: GuardLevel::Held, around: &[PURE] },
        ToolCoverage { class: ToolClass::FileRead, level: GuardLevel::Held, around: &[PURE] },
        ToolCoverage { class: ToolClass::Web, level: GuardLevel::Held, around: &[PURE] },
        ToolCoverage { class: ToolClass::Mcp, level: GuardLevel::Held, around: &[PURE] },
        ToolCoverage { class: ToolClass::Subagent, level: GuardLevel::Held, around: &[PURE] },
        ToolCoverage { class: ToolClass::Other, level: GuardLevel::Held, around: &[PURE] },
    ],
    environment: &["OPENCODE_PID"],
    adapter: HostAdapter { decode, encode },
    trial: HostTrial { wire: TrialWire::Chat, shell, run, hears_refusals: true },
};

const PURE: &str = "started with `--pure`";
const FILE: &[Holds] = &[Holds::Path("filePath")];

/// It has the arguments of the client but for the event, which it puts in.
fn text(_host: &GuardHost, hook: &ClientEntry<'_>) -> String {
    plugin::filled(include_str!("opencode/pintle.js"), hook)
}

fn shell(command: &str) -> TrialCall {
    TrialCall::of("bash", json!({"command": command, "description": "does nothing"}))
}

fn run(model: &TrialModel<'_>) -> TrialRun {
    let models = json!({(trial::MODEL): {"name": trial::MODEL, "tool_call": true}});
    let options = json!({"baseURL": format!("{}/v1", model.url), "apiKey": trial::KEY});
    let provider =
        json!({"npm": "@ai-sdk/openai-compatible", "name": trial::MODEL, "options": options, "models": models});
    let name = format!("{}/{}", trial::MODEL, trial::MODEL);
    // What it does beside the turn, such as finding a title, asks the model of the trial, too.
    let settings = json!({
        "provider": {(trial::MODEL): provider},
        "small_model": name,
        "agent": {"title": {"model": name}},
        "share": "disabled",
    });
    let settings = settings.to_string();
    TrialRun::of(
        &["run", "-m", &name, model.prompt],
        &[
            ("OPENCODE_CONFIG_CONTENT", &settings),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ],
    )
}

/// What starts it without its hooks.
pub(super) const UNGUARDED: UnguardedStart = UnguardedStart {
    programs: &["opencode", "opencode-ai"],
    options: &["--pure"],
    settings: &[],
    words: &[],
    changes: &["plug", "plugin"],
    variables: &["OPENCODE_PURE", "XDG_CONFIG_HOME"],
};

/// What is printed when nobody answers.
pub(crate) const PANIC: PanicRow = PanicRow {
    host: "opencode",
    passes: r#"{"allow":true}"#,
    denies: &[
        ("tool.execute.before", r#"{"deny":"Pintle's guard did not answer, so this call is refused."}"#),
        ("tool.execute.after", r#"{"deny":"Pintle's guard did not answer, so this result is withheld."}"#),
        ("chat.message", r#"{"deny":"Pintle's guard did not answer, so this prompt is refused."}"#),
    ],
};

fn decode(input: &HookInput<'_>) -> Result<HostEvent, Malformed> {
    let mut said = Payload::read(input)?;
    let kind = said.said("type");
    let name = kind.or_else(|| input.event.map(str::to_owned)).ok_or(Malformed::Member("type"))?;
    let mut event = said.begin(&OPENCODE, name, input);
    if let Some(folder) = said.said("directory") {
        event.cwd = folder;
    }
    let mut told = said.members("input");
    let mut shown = said.members("output");
    let mut properties = said.members("properties");
    let text = |from: &mut Object, name: &str| match from.get(name) {
        Some(Value::String(_)) => from.shift_remove(name).and_then(|text| text.as_str().map(str::to_owned)),
        _ => None,
    };
    let session = text(&mut told, "sessionID").or_else(|| text(&mut properties, "sessionID"));
    event.session = session.unwrap_or_default();
    event.call = text(&mut told, "callID");
    event.what = match event.event.as_str() {
        "tool.execute.before" | "tool.execute.after" => {
            let native = text(&mut told, "tool").ok_or(Malformed::Member("input.tool"))?;
            let is_before = event.event.ends_with("before");
            let args = if is_before { shown.shift_remove("args") } else { told.shift_remove("args") };
            let Some(Value::Object(arguments)) = args else { return Err(Malformed::Member("args")) };
            let tool = named(call(&OPENCODE, native, arguments));
            if is_before {
                HostWhat::Tool(tool)
            } else {
                HostWhat::ToolDone { tool, result: Value::from(std::mem::take(&mut shown)), failed: false }
            }
        }
        "chat.message" => {
            let parts = shown.get("parts").ok_or(Malformed::Member("output.parts"))?;
            HostWhat::Prompt { text: prompt_text(parts, "output.parts")? }
        }
        "session.created" => {
            let parent = properties.get("info").and_then(|info| info.get("parentID")).and_then(Value::as_str);
            match parent {
                None => HostWhat::SessionStart,
                Some(parent) => {
                    event.subagent = Some(Subagent { parent: Some(parent.to_owned()), ..Subagent::default() });
                    HostWhat::SubagentStart
                }
            }
        }
        "session.idle" => HostWhat::Stop { text: None, again: false },
        _ => HostWhat::Other,
    };
    for (name, members) in [("input", told), ("output", shown), ("properties", properties)] {
        if !members.is_empty() {
            said.put(name, Value::from(members));
        }
    }
    event.host_raw = said.rest();
    Ok(event)
}

/// Its own tools whose names are made like those of servers.
const LIKE_SERVERS: [&str; 2] = ["plan_enter", "plan_exit"];

/// Tools of MCP servers are called `SERVER_TOOL`, and so are those that a person adds as a file, by its name.
fn named(mut tool: HostCall) -> HostCall {
    let is_own = tool.class != ToolClass::Other || LIKE_SERVERS.contains(&tool.native.as_str());
    if !is_own && tool.native.contains('_') {
        tool.canonical = format!("mcp_{}", tool.native);
        tool.class = ToolClass::Mcp;
    }
    tool
}

fn encode(event: &HostEvent, ruling: &GuardRuling) -> Answer {
    speech::answer(event, &Plugin(event), ruling)
}
