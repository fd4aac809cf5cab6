//! Claude Code.

use pintle_domain::json::{Object, Value, json};

use super::shape;
use crate::answer::Answer;
use crate::coverage::{GuardLevel, ToolCoverage};
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

/// What is known of Claude Code.
pub static CLAUDE: GuardHost = GuardHost {
    id: "claude",
    name: "Claude Code",
    versions: KnownVersions { min: "2.1.295", newest: "2.1.330", packages: &["@anthropic-ai/claude-code"] },
    config: HostConfig {
        places: &[
            ConfigPlace { scope: InstallScope::User, path: "~/.claude/settings.json" },
            ConfigPlace { scope: InstallScope::Project, path: "./.claude/settings.json" },
            ConfigPlace { scope: InstallScope::ProjectLocal, path: "./.claude/settings.local.json" },
            ConfigPlace { scope: InstallScope::System, path: "/etc/claude-code/managed-settings.json" },
        ],
        form: ConfigForm::Json { comments: false, entry, adopts: true },
        position: RowPosition::First,
        acceptance: HookAcceptance::NotNeeded,
        protects: &[
            "**/.claude/settings*.json",
            "~/.claude/**",
            "~/.claude.json*/**",
            // Where `CLAUDE_CONFIG_DIR` names a folder beside the usual one, it is called so.
            "~/.claude*/settings*.json",
            "~/.claude*/.claude.json*/**",
            "~/.claude*/.credentials.json",
            "~/.claude*/hooks/**",
            "~/.claude*/plugins/**",
            "~/.claude*/agents/**",
            "~/.claude*/commands/**",
            "~/.claude*/skills/**",
            "/etc/claude-code/**",
            "!~/.claude/claude.md",
            "!~/.claude/agent-memory/**",
            "!~/.claude/plans/**",
            "!~/.claude/projects/*/memory/**",
            "!~/.claude/projects/*/*/session-memory/**",
            "!~/.claude/tasks/**",
            "!~/.claude/todos/**",
        ],
        switches: HostSwitches {
            all: &[
                HostSwitch { path: "~/.claude/settings.json", names: &["disableAllHooks"], off: SwitchValue::Is(true) },
                HostSwitch { path: "./.claude/settings.json", names: &["disableAllHooks"], off: SwitchValue::Is(true) },
                HostSwitch {
                    path: "./.claude/settings.local.json",
                    names: &["disableAllHooks"],
                    off: SwitchValue::Is(true),
                },
                HostSwitch {
                    path: "/etc/claude-code/managed-settings.json",
                    names: &["disableAllHooks"],
                    off: SwitchValue::Is(true),
                },
            ],
            machine_holds: true,
            machine_pins: false,
        },
        moved_by: Some("CLAUDE_CONFIG_DIR"),
        strict: None,
        behind: &[],
        trusted_in: None,
        transcripts: &["~/.claude/projects/*/{session}.jsonl", "~/.claude/projects/*/{session}/subagents/*.jsonl"],
        refusals: HostRefusals {
            around: &[("", ""), ("Error: ", "")],
            marked: true,
            rejected: Some("<tool_use_error>"),
        },
    },
    deadline: HookDeadline { installed_s: 600, unit: Some(TimeUnit::Seconds), default_s: Some(600) },
    events: &[
        EventRow { name: "SessionStart", installed: true, answers: true, stops: false },
        EventRow { name: "SessionEnd", installed: true, answers: false, stops: false },
        EventRow { name: "UserPromptSubmit", installed: true, answers: true, stops: true },
        EventRow { name: "PreToolUse", installed: true, answers: true, stops: true },
        EventRow { name: "PermissionRequest", installed: true, answers: true, stops: true },
        EventRow { name: "PostToolUse", installed: true, answers: true, stops: false },
        EventRow { name: "PostToolUseFailure", installed: true, answers: true, stops: false },
        EventRow { name: "SubagentStart", installed: true, answers: false, stops: false },
        EventRow { name: "SubagentStop", installed: true, answers: true, stops: true },
        EventRow { name: "Stop", installed: true, answers: true, stops: true },
        EventRow { name: "ConfigChange", installed: true, answers: true, stops: true },
    ],
    asks: AskSupport::AsksOrRefuses,
    tools: &[
        ToolRow { native: "Bash", canonical: "exec", class: ToolClass::Shell, holds: &[Holds::Shell("command")] },
        ToolRow { native: "Monitor", canonical: "exec", class: ToolClass::Shell, holds: &[Holds::Shell("command")] },
        ToolRow { native: "PowerShell", canonical: "exec", class: ToolClass::Shell, holds: &[Holds::Shell("command")] },
        ToolRow { native: "Write", canonical: "write_file", class: ToolClass::FileWrite, holds: FILE },
        ToolRow { native: "Edit", canonical: "edit_file", class: ToolClass::FileWrite, holds: FILE },
        ToolRow { native: "MultiEdit", canonical: "edit_file", class: ToolClass::FileWrite, holds: FILE },
        ToolRow {
            native: "NotebookEdit",
            canonical: "edit_file",
            class: ToolClass::FileWrite,
            holds: &[Holds::Path("notebook_path")],
        },
        ToolRow { native: "Read", canonical: "read_file", class: ToolClass::FileRead, holds: FILE },
        ToolRow { native: "Grep", canonical: "search_text", class: ToolClass::FileRead, holds: &[Holds::Path("path")] },
        ToolRow { native: "Glob", canonical: "find_files", class: ToolClass::FileRead, holds: &[Holds::Path("path")] },
        ToolRow { native: "WebFetch", canonical: "web_fetch", class: ToolClass::Web, holds: &[] },
        ToolRow { native: "WebSearch", canonical: "web_search", class: ToolClass::Web, holds: &[] },
        ToolRow { native: "Agent", canonical: "delegate", class: ToolClass::Subagent, holds: &[] },
        ToolRow { native: "Task", canonical: "delegate", class: ToolClass::Subagent, holds: &[] },
    ],
    coverage: &[
        ToolCoverage { class: ToolClass::Shell, level: GuardLevel::Held, around: &[SWITCH, INLINE, REWRITE] },
        ToolCoverage { class: ToolClass::FileWrite, level: GuardLevel::Held, around: &[SWITCH] },
        ToolCoverage { class: ToolClass::FileRead, level: GuardLevel::Held, around: &[SWITCH, "`@file` in a prompt"] },
        ToolCoverage { class: ToolClass::Web, level: GuardLevel::Held, around: &[SWITCH] },
        ToolCoverage { class: ToolClass::Mcp, level: GuardLevel::Held, around: &[SWITCH] },
        ToolCoverage { class: ToolClass::Subagent, level: GuardLevel::Held, around: &[SWITCH] },
        ToolCoverage { class: ToolClass::Other, level: GuardLevel::Held, around: &[SWITCH] },
    ],
    environment: &["CLAUDE_PROJECT_DIR", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ATTENDED", "AI_AGENT"],
    adapter: HostAdapter { decode, encode },
    trial: HostTrial { wire: TrialWire::Messages, shell, run, hears_refusals: true },
};

/// How it comes to run no hooks.
const SWITCH: &str = "`disableAllHooks` in the project's settings when a session begins; started with `--bare`, \
                      `--safe-mode` or `--setting-sources project`";

/// What it runs without telling any hook.
const INLINE: &str = "`` !`command` `` in the slash commands and skills of a project";

/// What comes behind every hook.
const REWRITE: &str = "a hook of the project's settings that changes the arguments after the guard saw them";

/// Where its file tools have their path.
const FILE: &[Holds] = &[Holds::Path("file_path")];

/// The exec form: no shell stands between, and a hook that fails holds the call.
fn entry(hook: &ClientEntry<'_>, row: &EventRow) -> Value {
    json!({"hooks": [{
        "type": "command",
        "command": hook.program,
        "args": hook.arguments(row.name),
        "timeout": hook.timeout_s,
        "onFailure": "block",
    }]})
}

fn shell(command: &str) -> TrialCall {
    TrialCall::of("Bash", json!({"command": command, "description": "does nothing"}))
}

/// Its variables keep it from asking anybody but the model of the trial; those of the person's settings would beat its
/// surroundings, and `--settings` beats those.
fn run(model: &TrialModel<'_>) -> TrialRun {
    let env = json!({
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": trial::KEY,
        "CLAUDE_CODE_USE_BEDROCK": "",
        "CLAUDE_CODE_USE_VERTEX": "",
    });
    TrialRun::of(
        &["--settings", &json!({"env": env}).to_string(), "-p", model.prompt],
        &[
            ("ANTHROPIC_BASE_URL", model.url),
            ("ANTHROPIC_API_KEY", trial::KEY),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_BUG_COMMAND", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("DISABLE_TELEMETRY", "1"),
        ],
    )
}

/// What starts it without its hooks.
pub(super) const UNGUARDED: UnguardedStart = UnguardedStart {
    programs: &["claude", "@anthropic-ai/claude-code"],
    options: &["--bare", "--plugin-dir", "--plugin-url", "--safe-mode", "--setting-sources", "--settings"],
    settings: &["disableallhooks"],
    words: &[],
    changes: &[],
    variables: &["CLAUDE_CONFIG_DIR", "CLAUDE_CODE_SAFE_MODE", "CLAUDE_CODE_SIMPLE"],
};

/// What is printed when nobody answers.
pub(crate) const PANIC: PanicRow = PanicRow {
    host: "claude",
    passes: "{}",
    denies: &[
        (
            "SessionStart",
            r#"{"systemMessage":"Pintle's guard did not answer: until it does, every prompt and call is refused."}"#,
        ),
        (
            "PreToolUse",
            r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Pintle's guard did not answer, so this call is refused."}}"#,
        ),
        (
            "PermissionRequest",
            r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"Pintle's guard did not answer, so this call is refused."}}}"#,
        ),
        (
            "UserPromptSubmit",
            r#"{"decision":"block","reason":"Pintle's guard did not answer, so this prompt is refused."}"#,
        ),
        (
            "ConfigChange",
            r#"{"decision":"block","reason":"Pintle's guard did not answer, so this change is refused."}"#,
        ),
        // The model sees a result beside the reason, unless the turn ends.
        ("PostToolUse", UNREAD),
        ("PostToolUseFailure", UNREAD),
    ],
};

/// The end of the turn in which a result came that no hook has seen.
const UNREAD: &str = r#"{"decision":"block","reason":"Pintle's guard did not answer, so this result is withheld.","continue":false,"stopReason":"Pintle's guard did not answer, so this result is withheld."}"#;

fn decode(input: &HookInput<'_>) -> Result<HostEvent, Malformed> {
    let mut event = shape::decode(&CLAUDE, input)?;
    let attended = input.environment.iter().find(|(name, _)| name == "CLAUDE_CODE_SESSION_ATTENDED");
    event.attended = attended.map(|(_, said)| said == "1");
    Ok(event)
}

fn encode(event: &HostEvent, ruling: &GuardRuling) -> Answer {
    speech::answer(event, &Claude(event), ruling)
}

/// What Claude Code takes at an event.
struct Claude<'a>(&'a HostEvent);

impl Speech for Claude<'_> {
    fn deny(&self, reason: &str) -> Option<Value> {
        let Self(HostEvent { what, event, .. }) = self;
        if matches!(what, HostWhat::Tool(_)) {
            return Some(shape::denied(event, reason));
        }
        if matches!(what, HostWhat::Permission { .. }) {
            return Some(shape::not_permitted(event, reason));
        }
        // A result cannot be withheld: the model sees it beside the reason, unless the turn ends.
        let blocks = what.is_stop() || matches!(what, HostWhat::Prompt { .. } | HostWhat::ConfigChange { .. });
        blocks.then(|| shape::blocked(reason))
    }

    fn abort(&self, reason: &str) -> Option<Value> {
        let Self(HostEvent { what, event, .. }) = self;
        if matches!(what, HostWhat::Prompt { .. }) {
            return Some(shape::blocked(reason));
        }
        // Alone, `continue: false` lets the call run.
        let mut document = if matches!(what, HostWhat::Tool(_)) {
            shape::denied(event, reason)
        } else if what.is_done() {
            shape::blocked(reason)
        } else {
            return None;
        };
        document["continue"] = Value::Bool(false);
        document["stopReason"] = Value::from(reason);
        Some(document)
    }

    fn allow(&self) -> Option<Value> {
        matches!(self.0.what, HostWhat::Permission { .. }).then(|| shape::permitted(&self.0.event))
    }

    fn notice(&self, text: &str) -> Option<Value> {
        Some(shape::noted(json!({}), text))
    }

    fn with_note(&self, document: Value, text: &str) -> Value {
        shape::noted(document, text)
    }

    fn ask(&self, reason: &str) -> Option<Value> {
        if matches!(self.0.what, HostWhat::Permission { .. }) {
            // The host is about to ask anyway.
            return self.nothing();
        }
        matches!(self.0.what, HostWhat::Tool(_)).then(|| shape::asked(&self.0.event, reason))
    }

    fn input(&self, arguments: &Object, context: Option<&str>) -> Option<Value> {
        if !matches!(self.0.what, HostWhat::Tool(_)) {
            return None;
        }
        let mut document = json!({"hookSpecificOutput": {"hookEventName": self.0.event, "updatedInput": arguments}});
        if let Some(text) = context {
            document["hookSpecificOutput"]["additionalContext"] = Value::from(text);
        }
        Some(document)
    }

    fn result(&self, text: &str, shaped: Option<&Value>) -> Option<Value> {
        let HostWhat::ToolDone { result, failed: false, .. } = &self.0.what else { return None };
        let output = match shaped {
            Some(shaped) if same_shape(result, shaped) => shaped.clone(),
            _ if is_shell_result(result) => {
                json!({"stdout": text, "stderr": "", "interrupted": false, "isImage": false})
            }
            _ => return None,
        };
        Some(json!({"hookSpecificOutput": {"hookEventName": self.0.event, "updatedToolOutput": output}}))
    }

    fn context(&self, text: &str) -> Option<Value> {
        let HostEvent { what, event, .. } = self.0;
        let takes =
            what.is_done() || matches!(what, HostWhat::SessionStart | HostWhat::Prompt { .. } | HostWhat::Tool(_));
        takes.then(|| shape::context(event, text))
    }
}

/// The members without which the host takes a value for no result of its shell.
const SHELL_RESULT: [&str; 4] = ["stdout", "stderr", "interrupted", "isImage"];

fn is_shell_result(result: &Value) -> bool {
    SHELL_RESULT.iter().all(|name| result.get(*name).is_some())
}

/// Whether `other` has what makes `result` a result of its tool: a wrong shape is dropped without a word.
fn same_shape(result: &Value, other: &Value) -> bool {
    let same_kind = |name: &str| {
        let kind = |value: &Value| value.get(name).map(std::mem::discriminant);
        kind(result) == kind(other)
    };
    is_shell_result(result) && SHELL_RESULT.iter().all(|name| same_kind(name))
}
