//! pi, by an extension of ours: it starts the client with the event, and with `sessionId` and `cwd` beside its members.

use pintle_domain::json::{Value, json};

use super::plugin::{self, Plugin};
use crate::answer::Answer;
use crate::coverage::{GuardLevel, ToolCoverage};
use crate::event::{HookInput, HostCall, HostEvent, HostWhat, Malformed};
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
use crate::wire::{Payload, call};

/// What is known of pi.
pub static PI: GuardHost = GuardHost {
    id: "pi",
    name: "pi",
    versions: KnownVersions { min: "0.74.2", newest: "0.74.2", packages: &["@earendil-works/pi-coding-agent"] },
    config: HostConfig {
        places: &[
            ConfigPlace { scope: InstallScope::User, path: "~/.pi/agent/extensions/pintle.ts" },
            ConfigPlace { scope: InstallScope::Project, path: "./.pi/extensions/pintle.ts" },
        ],
        form: ConfigForm::WholeFile { text },
        position: RowPosition::Any,
        acceptance: HookAcceptance::NotNeeded,
        protects: &["~/.pi/**", "**/.pi/extensions/**", "!~/.pi/agent/agents.md"],
        switches: HostSwitches::NONE,
        moved_by: Some("PI_CODING_AGENT_DIR"),
        strict: None,
        behind: &[],
        trusted_in: None,
        transcripts: &["~/.pi/agent/sessions/*/*_{session}.jsonl"],
        refusals: HostRefusals::BARE,
    },
    deadline: HookDeadline { installed_s: 600, unit: Some(TimeUnit::Seconds), default_s: None },
    events: &[
        EventRow { name: "session_start", installed: true, answers: false, stops: false },
        EventRow { name: "session_shutdown", installed: true, answers: false, stops: false },
        EventRow { name: "input", installed: true, answers: true, stops: true },
        EventRow { name: "tool_call", installed: true, answers: true, stops: true },
        EventRow { name: "tool_result", installed: true, answers: true, stops: true },
        EventRow { name: "agent_end", installed: true, answers: false, stops: false },
    ],
    asks: AskSupport::Never,
    tools: &[
        ToolRow { native: "bash", canonical: "exec", class: ToolClass::Shell, holds: &[Holds::Shell("command")] },
        ToolRow { native: "write", canonical: "write_file", class: ToolClass::FileWrite, holds: PATH },
        ToolRow { native: "edit", canonical: "edit_file", class: ToolClass::FileWrite, holds: PATH },
        ToolRow { native: "read", canonical: "read_file", class: ToolClass::FileRead, holds: PATH },
    ],
    coverage: &[
        ToolCoverage { class: ToolClass::Shell, level: GuardLevel::Held, around: &[NONE] },
        ToolCoverage { class: ToolClass::FileWrite, level: GuardLevel::Held, around: &[NONE] },
        ToolCoverage { class: ToolClass::FileRead, level: GuardLevel::Held, around: &[NONE] },
        ToolCoverage { class: ToolClass::Web, level: GuardLevel::Absent, around: &[] },
        ToolCoverage { class: ToolClass::Mcp, level: GuardLevel::Absent, around: &[] },
        ToolCoverage { class: ToolClass::Subagent, level: GuardLevel::Absent, around: &[] },
        ToolCoverage { class: ToolClass::Other, level: GuardLevel::Held, around: &[NONE] },
    ],
    environment: &[],
    adapter: HostAdapter { decode, encode },
    trial: HostTrial { wire: TrialWire::Chat, shell, run, hears_refusals: true },
};

const NONE: &str = "started with `--no-extensions`";
const PATH: &[Holds] = &[Holds::Path("path")];

/// It has the arguments of the client but for the event, which it puts in.
fn text(_host: &GuardHost, hook: &ClientEntry<'_>) -> String {
    plugin::filled(include_str!("pi/pintle.ts"), hook)
}

fn shell(command: &str) -> TrialCall {
    TrialCall::of("bash", json!({"command": command}))
}

/// An extension brings the model: the settings of the person stay as they are.
fn run(model: &TrialModel<'_>) -> TrialRun {
    let nothing = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0});
    let canary = json!({
        "id": trial::MODEL, "name": trial::MODEL, "reasoning": false, "input": ["text"], "cost": nothing,
        "contextWindow": 100_000, "maxTokens": 4_000,
    });
    let provider = json!({
        "baseUrl": format!("{}/v1", model.url), "apiKey": trial::KEY, "api": "openai-completions", "models": [canary],
    });
    let name = Value::from(trial::MODEL);
    let extension = format!("export default function (pi) {{\n  pi.registerProvider({name}, {provider});\n}}\n");
    let file = format!("{}/{CANARY_FILE}", model.folder);
    let run = TrialRun::of(
        &["-e", &file, "--no-session", "--provider", trial::MODEL, "--model", trial::MODEL, "-p", model.prompt],
        &[("PI_OFFLINE", "1"), ("PI_SKIP_VERSION_CHECK", "1"), ("PI_TELEMETRY", "0")],
    );
    TrialRun { files: vec![(CANARY_FILE, extension)], ..run }
}

/// Where the extension lies that brings the model of a trial.
const CANARY_FILE: &str = "pintle-canary.ts";

/// What starts it without its hooks.
pub(super) const UNGUARDED: UnguardedStart = UnguardedStart {
    programs: &["pi", "@earendil-works/pi-coding-agent"],
    options: &["--extension", "--no-extensions", "-e", "-ne"],
    settings: &[],
    words: &[],
    changes: &["install", "remove", "uninstall"],
    variables: &["PI_CODING_AGENT_DIR"],
};

/// What is printed when nobody answers.
pub(crate) const PANIC: PanicRow = PanicRow {
    host: "pi",
    passes: r#"{"allow":true}"#,
    denies: &[
        ("tool_call", r#"{"deny":"Pintle's guard did not answer, so this call is refused."}"#),
        ("tool_result", r#"{"deny":"Pintle's guard did not answer, so this result is withheld."}"#),
        ("input", r#"{"deny":"Pintle's guard did not answer, so this prompt is refused."}"#),
    ],
};

fn decode(input: &HookInput<'_>) -> Result<HostEvent, Malformed> {
    let mut said = Payload::read(input)?;
    let name = said.text("type")?;
    let mut event = said.begin(&PI, name, input);
    event.session = said.said("sessionId").unwrap_or_default();
    event.what = match event.event.as_str() {
        "session_start" => HostWhat::SessionStart,
        "session_shutdown" => HostWhat::SessionEnd,
        "input" => HostWhat::Prompt { text: said.text("text")? },
        "tool_call" => HostWhat::Tool(tool(&mut said)?),
        "tool_result" => {
            let tool = tool(&mut said)?;
            let result = said.take("content").unwrap_or(Value::Null);
            HostWhat::ToolDone { tool, result, failed: said.flag("isError") }
        }
        "agent_end" => HostWhat::Stop { text: None, again: false },
        _ => HostWhat::Other,
    };
    if event.what.is_done() || matches!(event.what, HostWhat::Tool(_)) {
        event.call = said.said("toolCallId");
    }
    event.host_raw = said.rest();
    Ok(event)
}

fn tool(said: &mut Payload) -> Result<HostCall, Malformed> {
    let native = said.text("toolName")?;
    Ok(call(&PI, native, said.object("input")?))
}

fn encode(event: &HostEvent, ruling: &GuardRuling) -> Answer {
    speech::answer(event, &Plugin(event), ruling)
}
