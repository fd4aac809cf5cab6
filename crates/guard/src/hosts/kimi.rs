//! Kimi Code. A word that it does not know in an answer lets the call run, `ask` among them.

use pintle_domain::json::{Value, json};

use super::shape;
use crate::answer::Answer;
use crate::coverage::{GuardLevel, KILLED, RESULT, ToolCoverage};
use crate::event::{HookInput, HostEvent, HostWhat, Malformed};
use crate::host::{
    AskSupport, ClientEntry, ConfigForm, ConfigPlace, EventRow, GuardHost, HookAcceptance, HookDeadline, HostAdapter,
    HostConfig, HostRefusals, HostSwitches, InstallScope, KnownVersions, RowPosition, StrictEntries, TimeUnit,
};
use crate::panic::PanicRow;
use crate::ruling::GuardRuling;
use crate::speech::{self, MAX_CONTEXT_BYTES, Speech};
use crate::tools::{Holds, ToolClass, ToolRow};
use crate::trial::{self, HostTrial, TrialCall, TrialModel, TrialRun, TrialWire};
use crate::unguarded::UnguardedStart;

/// What is known of Kimi Code.
pub static KIMI: GuardHost = GuardHost {
    id: "kimi",
    name: "Kimi Code",
    versions: KnownVersions { min: "2.1.0", newest: "2.1.0", packages: &["@moonshot-ai/kimi-code"] },
    config: HostConfig {
        places: &[ConfigPlace { scope: InstallScope::User, path: "~/.kimi-code/config.toml" }],
        form: ConfigForm::Toml { entry },
        position: RowPosition::Any,
        acceptance: HookAcceptance::NotNeeded,
        protects: &["~/.kimi-code/**", "!~/.kimi-code/agents.md", "!~/.kimi-code/plans/**"],
        switches: HostSwitches::NONE,
        moved_by: Some("KIMI_CODE_HOME"),
        strict: Some(&STRICT),
        behind: &[],
        trusted_in: None,
        transcripts: &["~/.kimi-code/sessions/*/{session}/agents/*/wire.jsonl"],
        refusals: HostRefusals { around: &[("", ""), ("Error: ", "")], ..HostRefusals::BARE },
    },
    deadline: HookDeadline { installed_s: 600, unit: Some(TimeUnit::Seconds), default_s: Some(30) },
    events: &[
        EventRow { name: "SessionStart", installed: true, answers: false, stops: false },
        EventRow { name: "UserPromptSubmit", installed: true, answers: true, stops: true },
        EventRow { name: "PreToolUse", installed: true, answers: true, stops: true },
        EventRow { name: "PostToolUse", installed: true, answers: false, stops: false },
        EventRow { name: "PostToolUseFailure", installed: true, answers: false, stops: false },
        EventRow { name: "SubagentStart", installed: true, answers: false, stops: false },
        EventRow { name: "SubagentStop", installed: true, answers: false, stops: false },
        EventRow { name: "Stop", installed: true, answers: true, stops: true },
    ],
    asks: AskSupport::Never,
    tools: &[
        ToolRow { native: "Bash", canonical: "exec", class: ToolClass::Shell, holds: &[Holds::Shell("command")] },
        ToolRow { native: "Write", canonical: "write_file", class: ToolClass::FileWrite, holds: PATH },
        ToolRow { native: "Edit", canonical: "edit_file", class: ToolClass::FileWrite, holds: PATH },
        ToolRow { native: "Read", canonical: "read_file", class: ToolClass::FileRead, holds: PATH },
        ToolRow { native: "Grep", canonical: "search_text", class: ToolClass::FileRead, holds: PATH },
        ToolRow { native: "Glob", canonical: "find_files", class: ToolClass::FileRead, holds: PATH },
        ToolRow { native: "WebFetch", canonical: "web_fetch", class: ToolClass::Web, holds: &[] },
        ToolRow { native: "WebSearch", canonical: "web_search", class: ToolClass::Web, holds: &[] },
        ToolRow { native: "Agent", canonical: "delegate", class: ToolClass::Subagent, holds: &[] },
    ],
    coverage: &[
        ToolCoverage { class: ToolClass::Shell, level: GuardLevel::Held, around: &[ENTRY, KILLED, RESULT] },
        ToolCoverage { class: ToolClass::FileWrite, level: GuardLevel::Held, around: &[ENTRY, KILLED] },
        ToolCoverage { class: ToolClass::FileRead, level: GuardLevel::Held, around: &[ENTRY, KILLED, RESULT] },
        ToolCoverage { class: ToolClass::Web, level: GuardLevel::Held, around: &[ENTRY, KILLED, RESULT] },
        ToolCoverage { class: ToolClass::Mcp, level: GuardLevel::Held, around: &[ENTRY, KILLED, RESULT] },
        ToolCoverage { class: ToolClass::Subagent, level: GuardLevel::Held, around: &[ENTRY, KILLED, RESULT] },
        ToolCoverage { class: ToolClass::Other, level: GuardLevel::Held, around: &[ENTRY, KILLED, RESULT] },
    ],
    environment: &[],
    adapter: HostAdapter { decode, encode },
    trial: HostTrial { wire: TrialWire::Chat, shell, run, hears_refusals: true },
};

const ENTRY: &str = "one unknown key or event in any hook entry drops all hooks";

/// Of an entry that is not like this it says one line, and runs no hook at all.
static STRICT: StrictEntries = StrictEntries {
    events: &[
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "PermissionRequest",
        "PermissionResult",
        "UserPromptSubmit",
        "UserPromptQueued",
        "TurnStarted",
        "Stop",
        "StopFailure",
        "Interrupt",
        "SessionStart",
        "SessionEnd",
        "SessionHeartbeat",
        "SubagentStart",
        "SubagentStop",
        "TaskStarted",
        "PreCompact",
        "PostCompact",
        "Notification",
    ],
    members: &["event", "matcher", "command", "timeout"],
    max_timeout_s: 600,
};

const PATH: &[Holds] = &[Holds::Path("path"), Holds::Path("file_path")];

/// An unknown key in one entry drops all hooks.
fn entry(hook: &ClientEntry<'_>, row: &EventRow) -> String {
    let text = |text: &str| Value::from(text).to_string();
    let (event, command) = (text(row.name), text(&hook.shell_text(row.name, PANIC.deny(row.name))));
    format!("[[hooks]]\nevent = {event}\ncommand = {command}\ntimeout = {}\n", hook.timeout_s)
}

fn shell(command: &str) -> TrialCall {
    TrialCall::of("Bash", json!({"command": command}))
}

fn run(model: &TrialModel<'_>) -> TrialRun {
    TrialRun::of(
        &["-p", model.prompt],
        &[
            ("KIMI_MODEL_NAME", trial::MODEL),
            ("KIMI_MODEL_PROVIDER_TYPE", "openai"),
            ("KIMI_MODEL_BASE_URL", &format!("{}/v1", model.url)),
            ("KIMI_MODEL_API_KEY", trial::KEY),
            ("KIMI_DISABLE_TELEMETRY", "1"),
            ("KIMI_CODE_NO_AUTO_UPDATE", "1"),
        ],
    )
}

/// What starts it without its hooks.
pub(super) const UNGUARDED: UnguardedStart = UnguardedStart {
    programs: &["kimi", "@moonshot-ai/kimi-code"],
    options: &[],
    settings: &[],
    words: &[],
    changes: &[],
    variables: &["KIMI_CODE_HOME"],
};

/// What is printed when nobody answers.
pub(crate) const PANIC: PanicRow = PanicRow {
    host: "kimi",
    passes: "",
    denies: &[
        (
            "PreToolUse",
            r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Pintle's guard did not answer, so this call is refused."}}"#,
        ),
        (
            "UserPromptSubmit",
            r#"{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","permissionDecision":"deny","permissionDecisionReason":"Pintle's guard did not answer, so this prompt is refused."}}"#,
        ),
    ],
};

fn decode(input: &HookInput<'_>) -> Result<HostEvent, Malformed> {
    shape::decode(&KIMI, input)
}

fn encode(event: &HostEvent, ruling: &GuardRuling) -> Answer {
    match (&event.what, ruling) {
        // Another round is had by this code alone; it wants the reason on standard error.
        (HostWhat::Stop { .. }, GuardRuling::Deny { reason }) => {
            Answer { exit: 2, stderr: speech::reason(reason, Kimi::MAX_REASON), ..Answer::silent() }
        }
        // What a hook prints at a prompt is given to the model as it is: a document of one string.
        (HostWhat::Prompt { .. }, GuardRuling::Inject { text }) => {
            Answer::json(&json!(speech::cut(text, MAX_CONTEXT_BYTES)))
        }
        _ => speech::answer(event, &Kimi(event), ruling),
    }
}

/// What Kimi Code takes at an event.
struct Kimi<'a>(&'a HostEvent);

impl Speech for Kimi<'_> {
    /// It cuts at about 2.5 kB.
    const MAX_REASON: usize = 2_400;

    fn nothing(&self) -> Option<Value> {
        None
    }

    fn deny(&self, reason: &str) -> Option<Value> {
        let HostEvent { what, event, .. } = self.0;
        matches!(what, HostWhat::Tool(_) | HostWhat::Prompt { .. }).then(|| shape::denied(event, reason))
    }

    fn abort(&self, reason: &str) -> Option<Value> {
        let HostEvent { what, event, .. } = self.0;
        matches!(what, HostWhat::Prompt { .. }).then(|| shape::denied(event, reason))
    }
}
