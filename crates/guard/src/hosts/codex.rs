//! Codex. It throws an answer away that has an unknown member, no reason, or a code other than 0, and lets the call run.

use pintle_domain::json::{Object, Value, json};

use super::shape;
use crate::answer::Answer;
use crate::coverage::{GuardLevel, KILLED, ToolCoverage};
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

/// What is known of Codex.
pub static CODEX: GuardHost = ROW;

/// The same where the machine is administered: its hooks and the pin that keeps them on stand in a file of another form,
/// and need nobody's acceptance.
pub(super) static MACHINE: GuardHost = GuardHost {
    config: HostConfig {
        places: &[ConfigPlace { scope: InstallScope::System, path: "/etc/codex/requirements.toml" }],
        form: ConfigForm::Requirements { entry },
        acceptance: HookAcceptance::NotNeeded,
        ..ROW.config
    },
    ..ROW
};

const ROW: GuardHost = GuardHost {
    id: "codex",
    name: "Codex",
    versions: KnownVersions { min: "0.169.0", newest: "0.169.0", packages: &["@openai/codex"] },
    config: HostConfig {
        places: &[
            ConfigPlace { scope: InstallScope::User, path: "~/.codex/hooks.json" },
            ConfigPlace { scope: InstallScope::Project, path: "./.codex/hooks.json" },
            ConfigPlace { scope: InstallScope::System, path: "/etc/codex/requirements.toml" },
        ],
        form: ConfigForm::Json { comments: false, entry, adopts: true },
        position: RowPosition::Any,
        acceptance: HookAcceptance::AppServer { state: "~/.codex/config.toml" },
        protects: &[
            "**/.codex/**",
            "/etc/codex/**",
            "!~/.codex/agents.md",
            "!~/.codex/memories/**",
            "!~/.codex/worktrees/**",
        ],
        switches: HostSwitches {
            all: &[
                HostSwitch { path: "~/.codex/config.toml", names: &["features", "hooks"], off: SwitchValue::Is(false) },
                HostSwitch { path: "./.codex/config.toml", names: &["features", "hooks"], off: SwitchValue::Is(false) },
                HostSwitch {
                    path: "/etc/codex/requirements.toml",
                    names: &["features", "hooks"],
                    off: SwitchValue::Is(false),
                },
            ],
            machine_holds: true,
            machine_pins: true,
        },
        moved_by: Some("CODEX_HOME"),
        strict: None,
        behind: &[],
        trusted_in: None,
        transcripts: &["~/.codex/sessions/*/*/*/rollout-*-{session}.jsonl"],
        refusals: HostRefusals {
            around: &[
                ("Command blocked by PreToolUse hook: ", ". Command: "),
                ("Tool call blocked by PreToolUse hook: ", ". Tool: "),
            ],
            marked: false,
            rejected: None,
        },
    },
    deadline: HookDeadline { installed_s: 600, unit: Some(TimeUnit::Seconds), default_s: Some(600) },
    events: &[
        EventRow { name: "SessionStart", installed: true, answers: true, stops: false },
        EventRow { name: "SessionEnd", installed: true, answers: false, stops: false },
        EventRow { name: "UserPromptSubmit", installed: true, answers: true, stops: true },
        EventRow { name: "PreToolUse", installed: true, answers: true, stops: true },
        EventRow { name: "PermissionRequest", installed: true, answers: true, stops: true },
        EventRow { name: "PostToolUse", installed: true, answers: true, stops: true },
        EventRow { name: "SubagentStart", installed: true, answers: false, stops: false },
        EventRow { name: "SubagentStop", installed: true, answers: true, stops: true },
        EventRow { name: "Stop", installed: true, answers: true, stops: true },
        EventRow { name: "Interrupt", installed: true, answers: false, stops: false },
    ],
    asks: AskSupport::Never,
    tools: &[
        ToolRow { native: "Bash", canonical: "exec", class: ToolClass::Shell, holds: &[Holds::Shell("command")] },
        ToolRow {
            native: "apply_patch",
            canonical: "edit_file",
            class: ToolClass::FileWrite,
            holds: &[Holds::Patch("command"), Holds::Patch("input"), Holds::Patch("patch")],
        },
        ToolRow {
            native: "view_image",
            canonical: "view_image",
            class: ToolClass::FileRead,
            holds: &[Holds::Path("path")],
        },
        ToolRow { native: "spawn_agent", canonical: "delegate", class: ToolClass::Subagent, holds: &[] },
        ToolRow { native: "multi_agent_v1wait_agent", canonical: "wait_agent", class: ToolClass::Subagent, holds: &[] },
    ],
    coverage: &[
        ToolCoverage {
            class: ToolClass::Shell,
            level: GuardLevel::Open,
            around: &["`write_stdin` types into a shell that is open, and no hook sees it", TRUST, KILLED],
        },
        ToolCoverage {
            class: ToolClass::FileWrite,
            level: GuardLevel::Held,
            around: &["`write_stdin` into an open shell", TRUST, KILLED],
        },
        ToolCoverage {
            class: ToolClass::FileRead,
            level: GuardLevel::Open,
            around: &["files are read by the shell: see there", TRUST],
        },
        ToolCoverage {
            class: ToolClass::Web,
            level: GuardLevel::Open,
            around: &["web search runs at the vendor and passes no hook"],
        },
        ToolCoverage { class: ToolClass::Mcp, level: GuardLevel::Held, around: &[TRUST, KILLED] },
        ToolCoverage { class: ToolClass::Subagent, level: GuardLevel::Held, around: &[TRUST, KILLED] },
        ToolCoverage {
            class: ToolClass::Other,
            level: GuardLevel::Held,
            around: &["the script of `exec` in code mode is not seen; the calls in it are", TRUST, KILLED],
        },
    ],
    environment: &["CODEX_HOME"],
    adapter: HostAdapter { decode, encode },
    trial: HostTrial { wire: TrialWire::Responses, shell, run, hears_refusals: true },
};

/// What makes it pass over every hook.
const TRUST: &str = "`features.hooks = false`, or a hook that nobody accepted: it is passed over without a word";

fn entry(hook: &ClientEntry<'_>, row: &EventRow) -> Value {
    json!({"hooks": [{"type": "command", "command": hook.shell_text(row.name, PANIC.deny(row.name)), "timeout": hook.timeout_s}]})
}

/// Its tool is called otherwise before its hooks than before its model.
fn shell(command: &str) -> TrialCall {
    TrialCall::of("exec_command", json!({"cmd": command}))
}

fn run(model: &TrialModel<'_>) -> TrialRun {
    let text = |text: &str| Value::from(text).to_string();
    let provider = format!(
        "model_providers.{MODEL}={{name={MODEL_TEXT},base_url={},wire_api=\"responses\",request_max_retries=0,stream_max_retries=0}}",
        text(&format!("{}/v1", model.url)),
        MODEL = trial::MODEL,
        MODEL_TEXT = text(trial::MODEL),
    );
    let (provider_name, name) =
        (format!("model_provider={}", text(trial::MODEL)), format!("model={}", text(trial::MODEL)));
    let settings = [&provider, &provider_name, &name, "check_for_update_on_startup=false", "analytics.enabled=false"];
    let mut args = vec!["exec", "--skip-git-repo-check", "--ephemeral"];
    args.extend(settings.iter().flat_map(|setting| ["-c", setting]));
    args.push(model.prompt);
    TrialRun::of(&args, &[])
}

/// What starts it without its hooks.
pub(super) const UNGUARDED: UnguardedStart = UnguardedStart {
    programs: &["codex", "@openai/codex"],
    options: &["--disable=hooks", "--ignore-user-config"],
    settings: &["features.hooks", "features={", "hooks="],
    words: &[&["features", "disable", "hooks"], &["--disable", "hooks"]],
    changes: &[],
    variables: &["CODEX_HOME"],
};

/// What is printed when nobody answers.
pub(crate) const PANIC: PanicRow = PanicRow {
    host: "codex",
    passes: "",
    denies: &[
        (
            "SessionStart",
            r#"{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"Pintle's guard did not answer: until it does, every prompt and call is refused."}}"#,
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
            "PostToolUse",
            r#"{"decision":"block","reason":"Pintle's guard did not answer, so this result is withheld."}"#,
        ),
    ],
};

fn decode(input: &HookInput<'_>) -> Result<HostEvent, Malformed> {
    shape::decode(&CODEX, input)
}

fn encode(event: &HostEvent, ruling: &GuardRuling) -> Answer {
    speech::answer(event, &Codex(event), ruling)
}

/// What Codex takes at an event.
struct Codex<'a>(&'a HostEvent);

impl Speech for Codex<'_> {
    /// It gives the model about 12 kB.
    const MAX_REASON: usize = 10_000;

    fn nothing(&self) -> Option<Value> {
        None
    }

    fn deny(&self, reason: &str) -> Option<Value> {
        let HostEvent { what, event, .. } = self.0;
        if matches!(what, HostWhat::Tool(_)) {
            return Some(shape::denied(event, reason));
        }
        if matches!(what, HostWhat::Permission { .. }) {
            return Some(shape::not_permitted(event, reason));
        }
        // After a tool the reason stands in the place of the result.
        let blocks = what.is_stop() || what.is_done() || matches!(what, HostWhat::Prompt { .. });
        blocks.then(|| shape::blocked(reason))
    }

    fn abort(&self, reason: &str) -> Option<Value> {
        // No call of the model is made for a prompt that is blocked.
        matches!(self.0.what, HostWhat::Prompt { .. }).then(|| shape::blocked(reason))
    }

    fn allow(&self) -> Option<Value> {
        matches!(self.0.what, HostWhat::Permission { .. }).then(|| shape::permitted(&self.0.event))
    }

    fn notice(&self, text: &str) -> Option<Value> {
        // It shows nothing of a hook here: its model can say it.
        Some(shape::context(&self.0.event, text))
    }

    fn input(&self, arguments: &Object, _context: Option<&str>) -> Option<Value> {
        // Without `allow` it passes the change over, and a text beside it was never tried.
        matches!(self.0.what, HostWhat::Tool(_)).then(|| {
            json!({"hookSpecificOutput": {
                "hookEventName": self.0.event,
                "permissionDecision": "allow",
                "updatedInput": arguments,
            }})
        })
    }

    fn result(&self, text: &str, _shaped: Option<&Value>) -> Option<Value> {
        let text = speech::reason(text, Self::MAX_REASON);
        self.0.what.is_done().then(|| shape::blocked(&text))
    }

    fn context(&self, text: &str) -> Option<Value> {
        let HostEvent { what, event, .. } = self.0;
        let takes =
            what.is_done() || matches!(what, HostWhat::SessionStart | HostWhat::Prompt { .. } | HostWhat::Tool(_));
        takes.then(|| shape::context(event, text))
    }
}
