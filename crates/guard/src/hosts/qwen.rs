//! Qwen Code. Where several hooks answer, the last one wins; changed arguments are passed over.

use pintle_domain::json::{Value, json};

use super::shape;
use crate::answer::Answer;
use crate::coverage::{GuardLevel, KILLED, RESULT, ToolCoverage};
use crate::event::{HookInput, HostEvent, HostWhat, Malformed};
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

/// What is known of Qwen Code.
pub static QWEN: GuardHost = GuardHost {
    id: "qwen",
    name: "Qwen Code",
    versions: KnownVersions { min: "0.24.4", newest: "0.24.4", packages: &["@qwen-code/qwen-code"] },
    config: HostConfig {
        places: &[
            ConfigPlace { scope: InstallScope::User, path: "~/.qwen/settings.json" },
            ConfigPlace { scope: InstallScope::Project, path: "./.qwen/settings.json" },
            ConfigPlace { scope: InstallScope::System, path: "/etc/qwen-code/settings.json" },
        ],
        form: ConfigForm::Json { comments: true, entry, adopts: true },
        position: RowPosition::Last,
        acceptance: HookAcceptance::NotNeeded,
        protects: &[
            "**/.qwen/**",
            "/etc/qwen-code/**",
            "!~/.qwen/qwen.md",
            "!~/.qwen/plans/**",
            "!~/.qwen/projects/*/memory/**",
            "!~/.qwen/tmp/**",
            "!~/.qwen/todos/**",
        ],
        switches: HostSwitches {
            all: &[
                HostSwitch { path: "~/.qwen/settings.json", names: &["disableAllHooks"], off: SwitchValue::Is(true) },
                HostSwitch { path: "./.qwen/settings.json", names: &["disableAllHooks"], off: SwitchValue::Is(true) },
                HostSwitch {
                    path: "/etc/qwen-code/settings.json",
                    names: &["disableAllHooks"],
                    off: SwitchValue::Is(true),
                },
            ],
            machine_holds: false,
            machine_pins: false,
        },
        moved_by: None,
        strict: None,
        behind: &["./.qwen/settings.json"],
        trusted_in: None,
        transcripts: &["~/.qwen/projects/*/chats/{session}.jsonl", "~/.qwen/projects/*/subagents/{session}/*.jsonl"],
        refusals: HostRefusals::BARE,
    },
    deadline: HookDeadline { installed_s: 600, unit: Some(TimeUnit::Milliseconds), default_s: Some(60) },
    events: &[
        EventRow { name: "SessionStart", installed: true, answers: false, stops: false },
        EventRow { name: "SessionEnd", installed: true, answers: false, stops: false },
        EventRow { name: "UserPromptSubmit", installed: true, answers: true, stops: true },
        EventRow { name: "PreToolUse", installed: true, answers: true, stops: true },
        EventRow { name: "PostToolUse", installed: true, answers: true, stops: false },
        EventRow { name: "PostToolUseFailure", installed: true, answers: true, stops: false },
        EventRow { name: "SubagentStart", installed: true, answers: false, stops: false },
        EventRow { name: "SubagentStop", installed: true, answers: true, stops: true },
        EventRow { name: "Stop", installed: true, answers: true, stops: true },
    ],
    asks: AskSupport::AsksOrRefuses,
    tools: &[
        ToolRow {
            native: "run_shell_command",
            canonical: "exec",
            class: ToolClass::Shell,
            holds: &[Holds::Shell("command")],
        },
        ToolRow { native: "write_file", canonical: "write_file", class: ToolClass::FileWrite, holds: FILE },
        ToolRow { native: "edit", canonical: "edit_file", class: ToolClass::FileWrite, holds: FILE },
        ToolRow { native: "replace", canonical: "edit_file", class: ToolClass::FileWrite, holds: FILE },
        ToolRow { native: "read_file", canonical: "read_file", class: ToolClass::FileRead, holds: FILE },
        ToolRow {
            native: "read_many_files",
            canonical: "read_file",
            class: ToolClass::FileRead,
            holds: &[Holds::Path("paths"), Holds::Path("include")],
        },
        ToolRow { native: "list_directory", canonical: "list_dir", class: ToolClass::FileRead, holds: PATH },
        ToolRow { native: "grep_search", canonical: "search_text", class: ToolClass::FileRead, holds: PATH },
        ToolRow { native: "glob", canonical: "find_files", class: ToolClass::FileRead, holds: PATH },
        ToolRow { native: "web_fetch", canonical: "web_fetch", class: ToolClass::Web, holds: &[] },
        ToolRow { native: "web_search", canonical: "web_search", class: ToolClass::Web, holds: &[] },
        ToolRow { native: "agent", canonical: "delegate", class: ToolClass::Subagent, holds: &[] },
        ToolRow { native: "task", canonical: "delegate", class: ToolClass::Subagent, holds: &[] },
    ],
    coverage: &[
        ToolCoverage { class: ToolClass::Shell, level: GuardLevel::Held, around: &[SWITCH, LATER, KILLED, RESULT] },
        ToolCoverage { class: ToolClass::FileWrite, level: GuardLevel::Held, around: &[SWITCH, LATER, KILLED] },
        ToolCoverage { class: ToolClass::FileRead, level: GuardLevel::Held, around: &[SWITCH, LATER, KILLED, RESULT] },
        ToolCoverage { class: ToolClass::Web, level: GuardLevel::Held, around: &[SWITCH, LATER, KILLED, RESULT] },
        ToolCoverage { class: ToolClass::Mcp, level: GuardLevel::Held, around: &[SWITCH, LATER, KILLED, RESULT] },
        ToolCoverage { class: ToolClass::Subagent, level: GuardLevel::Held, around: &[SWITCH, LATER, KILLED, RESULT] },
        ToolCoverage { class: ToolClass::Other, level: GuardLevel::Held, around: &[SWITCH, LATER, KILLED, RESULT] },
    ],
    environment: &["QWEN_PROJECT_DIR", "QWEN_CODE_STARTUP_VERSION"],
    adapter: HostAdapter { decode, encode },
    trial: HostTrial { wire: TrialWire::Chat, shell, run, hears_refusals: true },
};

const SWITCH: &str = "`disableAllHooks` of a project, which beats every other settings file";
const LATER: &str = "an `allow` of another hook that stands behind ours";
const FILE: &[Holds] = &[Holds::Path("file_path"), Holds::Path("absolute_path")];
const PATH: &[Holds] = &[Holds::Path("path")];

fn entry(hook: &ClientEntry<'_>, row: &EventRow) -> Value {
    json!({"sequential": true, "hooks": [{
        "name": format!("pintle-{}", row.name),
        "type": "command",
        "command": hook.shell_text(row.name, PANIC.deny(row.name)),
        "timeout": u64::from(hook.timeout_s) * 1000,
    }]})
}

fn shell(command: &str) -> TrialCall {
    let arguments = json!({"command": command, "description": "does nothing", "is_background": false});
    TrialCall::of("run_shell_command", arguments)
}

/// In its usual mode it refuses calls before it asks a hook.
fn run(model: &TrialModel<'_>) -> TrialRun {
    TrialRun::of(
        &["--auth-type", "openai", "--approval-mode=yolo", "-p", model.prompt],
        &[
            ("OPENAI_BASE_URL", &format!("{}/v1", model.url)),
            ("OPENAI_API_KEY", trial::KEY),
            ("OPENAI_MODEL", trial::MODEL),
            ("QWEN_CODE_NO_RELAUNCH", "true"),
            ("QWEN_CODE_SUPPRESS_YOLO_WARNING", "1"),
            ("QWEN_TELEMETRY_ENABLED", "false"),
        ],
    )
}

/// What starts it without its hooks.
pub(super) const UNGUARDED: UnguardedStart = UnguardedStart {
    programs: &["qwen", "@qwen-code/qwen-code"],
    options: &["--bare", "--safe-mode"],
    settings: &["disableallhooks"],
    words: &[&["hooks", "disable"], &["hooks", "disable-all"]],
    changes: &[],
    variables: &["QWEN_HOME", "QWEN_CODE_SAFE_MODE", "QWEN_CODE_SIMPLE", "QWEN_CODE_SYSTEM_SETTINGS_PATH"],
};

/// What is printed when nobody answers.
pub(crate) const PANIC: PanicRow = PanicRow {
    host: "qwen",
    passes: "{}",
    denies: &[
        (
            "PreToolUse",
            r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Pintle's guard did not answer, so this call is refused."}}"#,
        ),
        (
            "UserPromptSubmit",
            r#"{"decision":"block","reason":"Pintle's guard did not answer, so this prompt is refused."}"#,
        ),
    ],
};

/// Whether `event` is a prompt of Qwen Code's without a text: it asks before every call of its model, with nothing after
/// the first. In a session that has had a prompt, nobody says anything there.
pub fn is_blank_prompt(event: &HostEvent) -> bool {
    event.host == QWEN.id && matches!(&event.what, HostWhat::Prompt { text } if text.is_empty())
}

/// Of a prompt it tells its hooks before every call of the model, from the second one on without a text.
fn decode(input: &HookInput<'_>) -> Result<HostEvent, Malformed> {
    shape::decode(&QWEN, input)
}

fn encode(event: &HostEvent, ruling: &GuardRuling) -> Answer {
    speech::answer(event, &Qwen(event), ruling)
}

/// What Qwen Code takes at an event.
struct Qwen<'a>(&'a HostEvent);

impl Speech for Qwen<'_> {
    fn deny(&self, reason: &str) -> Option<Value> {
        let HostEvent { what, event, .. } = self.0;
        if matches!(what, HostWhat::Tool(_)) {
            return Some(shape::denied(event, reason));
        }
        (what.is_stop() || matches!(what, HostWhat::Prompt { .. })).then(|| shape::blocked(reason))
    }

    fn abort(&self, reason: &str) -> Option<Value> {
        matches!(self.0.what, HostWhat::Prompt { .. }).then(|| shape::blocked(reason))
    }

    fn with_note(&self, document: Value, text: &str) -> Value {
        shape::noted(document, text)
    }

    fn ask(&self, reason: &str) -> Option<Value> {
        matches!(self.0.what, HostWhat::Tool(_)).then(|| shape::asked(&self.0.event, reason))
    }

    fn context(&self, text: &str) -> Option<Value> {
        let HostEvent { what, event, .. } = self.0;
        (what.is_done() || matches!(what, HostWhat::Prompt { .. })).then(|| shape::context(event, text))
    }
}
