//! One entry under `hooks`: resolved, switched off, or a stub that stays shut.

mod checks;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::fault::Fault;
use pintle_domain::hook::{Family, Hook, HookState, OnFailure, Scope, Stage, Stages};
use pintle_domain::id::HookName;
use pintle_domain::json::Value;
use pintle_domain::matcher::{Matcher, RespondTools};

use self::checks::Problems;
use super::problem::EntryProblem;
use super::raw::{RawBuiltin, RawProcess};
use super::stages::{Defaults, INTERCEPTS, NamedStages, StagePolicy, millis};
use pintle_domain::nearest::{closest, nearest};

/// How long a handshake may take unless the entry says otherwise.
pub const START_TIMEOUT: Duration = Duration::from_secs(5);

/// Where an entry stands.
#[derive(Clone, Copy, Debug)]
pub struct EntryContext<'a> {
    /// The hook's name.
    pub name: &'a str,
    /// The place of the entry, such as `pintle.toml:12:1`.
    pub origin: &'a str,
    /// The folder that relative paths start from.
    pub folder: &'a Path,
    /// The limits of that file.
    pub defaults: Defaults,
}

/// How the child of a process hook is started and spoken to.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessEntry {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its working directory.
    pub dir: PathBuf,
    /// Variables laid over the inherited environment.
    pub env: BTreeMap<String, String>,
    /// Secret variables that are passed on, by exact name.
    pub inherit_env: Vec<String>,
    /// What the handshake announces, in its order.
    pub modes: Vec<ChildMode>,
    /// How long the handshake may take.
    pub start_timeout: Duration,
    /// How long an event may wait at the head of its queue.
    pub observer_timeout: Duration,
    /// The longest line, either way.
    pub max_frame_bytes: usize,
    /// The form of notifications.
    pub events: EventForm,
    /// Whether the names that it observes are of both forms, and nothing says which one it is told.
    pub mixed_events: bool,
    /// Whether likely mistakes in its answers are faults.
    pub strict: bool,
}

/// What a child is used for; declared in the order of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChildMode {
    /// It is told runtime events.
    Observe,
    /// It is asked before and after model calls.
    Llm,
    /// It is asked before and after tool calls.
    Tool,
    /// It approves tool calls.
    Approve,
}

impl ChildMode {
    /// The word in `hook.hello`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Llm => "llm",
            Self::Tool => "tool",
            Self::Approve => "approve",
        }
    }
}

/// The form in which events are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EventForm {
    /// `hook.event`.
    Hook,
    /// `hook.runtime_event`.
    Runtime,
}

/// A builtin, switched on: the factory takes `config`, and `policy` makes its stages once its code has said
/// where it acts.
#[derive(Clone, Debug, PartialEq)]
pub struct BuiltinEntry {
    /// Whatever the builtin takes; `null` if nothing is written.
    pub config: Value,
    /// Deadlines and what faults become.
    pub policy: StagePolicy,
}

/// Resolves an enabled entry under `hooks.processes`.
///
/// # Errors
/// Everything that is wrong with it; paths start inside the entry.
pub fn process(entry_context: &EntryContext<'_>, raw: &RawProcess) -> Result<(Hook, ProcessEntry), Vec<EntryProblem>> {
    let mut problems = Problems::default();
    let named = problems.intercept(raw);
    let observed = problems.observe(raw);
    problems.command(raw);
    problems.words(raw);
    let mut policy = StagePolicy::new(entry_context.defaults);
    problems.0.extend(policy.read_timeouts(raw.timeout_ms.as_ref()));
    problems.0.extend(policy.read_on_failure(raw.on_failure.as_ref(), Some(&named)));
    let matcher = problems.matcher(raw.matcher.as_deref());
    let respond = problems.respond(raw.respond.as_ref());
    let start_timeout = problems.take("start_timeout_ms", raw.start_timeout_ms.map(millis)).unwrap_or(START_TIMEOUT);
    let stages = stages(&policy, &named, observed.is_some());
    let modes = modes(&stages);
    if modes.is_empty() && problems.0.is_empty() {
        problems.0.push(EntryProblem::new(&[], "no hook modes enabled"));
    }
    if !problems.0.is_empty() {
        return Err(problems.0);
    }
    let hook = Hook {
        matcher,
        respond,
        events: observed.unwrap_or(Some(BTreeSet::new())),
        stages,
        // Without a folder of its own a hook would hand over files of the configuration's.
        media_dir: raw.dir.as_deref().filter(|dir| !dir.is_empty()).map(|dir| entry_context.folder.join(dir)),
        ..entry_context.hook(Family::Process, raw.priority.unwrap_or(0), HookState::Armed)
    };
    let (form, mixed_events) = event_form(raw);
    let entry = ProcessEntry {
        argv: raw.command.clone().unwrap_or_default(),
        dir: directory(entry_context.folder, raw.dir.as_deref()),
        env: raw.env.clone().unwrap_or_default(),
        inherit_env: raw.inherit_env.clone().unwrap_or_default(),
        modes,
        start_timeout,
        observer_timeout: entry_context.defaults.observer_timeout,
        max_frame_bytes: entry_context.defaults.max_frame_bytes,
        events: form,
        mixed_events,
        strict: raw.strict.unwrap_or(false),
    };
    Ok((hook, entry))
}

/// The form in which a hook is told events, and whether the names that it observes are of both. What is said counts; else
/// names with dots, which only newer hooks write, ask for the newer form.
fn event_form(raw: &RawProcess) -> (EventForm, bool) {
    let names = || raw.observe.iter().flatten();
    let dotted = names().any(|name| name.contains('.'));
    match raw.events.as_deref() {
        Some("runtime") => (EventForm::Runtime, false),
        Some(_) => (EventForm::Hook, false),
        None if dotted => {
            // `error` is a name of either form.
            let is_old = |name: &&String| name.contains('_') && !name.contains('.');
            let mixed = names().any(|name| is_old(&name));
            (if mixed { EventForm::Hook } else { EventForm::Runtime }, mixed)
        }
        None => (EventForm::Hook, false),
    }
}

/// Resolves an enabled entry under `hooks.builtins`; `known` are the names that are compiled in.
/// The hook has no stages yet: its code says where it acts.
///
/// # Errors
/// Everything that is wrong with it; paths start inside the entry.
pub fn builtin(
    entry_context: &EntryContext<'_>,
    raw: &RawBuiltin,
    known: &[&str],
) -> Result<(Hook, BuiltinEntry), Vec<EntryProblem>> {
    let mut problems = Problems::default();
    if !known.contains(&entry_context.name) {
        let message = format!("builtin hook \"{}\" is not registered", entry_context.name);
        problems.0.push(EntryProblem::new(&[], message).meant(entry_context.name, known.iter().copied()));
    }
    let mut policy = StagePolicy::new(entry_context.defaults);
    problems.0.extend(policy.read_timeouts(raw.timeout_ms.as_ref()));
    problems.0.extend(policy.read_on_failure(raw.on_failure.as_ref(), None));
    let matcher = problems.matcher(raw.matcher.as_deref());
    let respond = problems.respond(raw.respond.as_ref());
    if !problems.0.is_empty() {
        return Err(problems.0);
    }
    let hook =
        Hook { matcher, respond, ..entry_context.hook(Family::Native, raw.priority.unwrap_or(0), HookState::Armed) };
    Ok((hook, BuiltinEntry { config: raw.config.clone().unwrap_or_default(), policy }))
}

/// A hook that is not asked: switched off, or from a configuration that nobody accepted.
/// It has the stages that its entry names as far as they can be read, so that records can say why it did not run.
pub fn idle(entry_context: &EntryContext<'_>, family: Family, entry: &Value, state: HookState) -> Hook {
    let named = NamedStages::new(
        texts(entry.get("intercept")).filter_map(intercepted).collect(),
        entry.get("pair").and_then(Value::as_bool).unwrap_or(true),
    );
    let observes = texts(entry.get("observe")).next().is_some();
    Hook {
        matcher: readable_matcher(entry),
        stages: stages(&StagePolicy::new(entry_context.defaults), &named, observes),
        ..entry_context.hook(family, readable_priority(entry), state)
    }
}

/// The stub of a bad entry: every call of a tool that it was to guard ends in the fault *cannot start*.
///
/// It guards `before_tool` and `approve_tool` as far as `intercept` names them, the nearest name counting;
/// both if that cannot be read. Its `matcher` and `on_failure` count if they can be read.
pub fn broken(entry_context: &EntryContext<'_>, family: Family, entry: Option<&Value>, detail: &str) -> Hook {
    let entry = entry.filter(|entry| entry.is_object());
    let intercept = entry.and_then(intercept_or_misspelt).map(guarded);
    let guards = match (family, intercept) {
        // No `intercept` at all guards nothing; a builtin has none, and only its missing code knows.
        (Family::Process, None) if entry.is_some() => Vec::new(),
        (Family::Process, Some(Some(guards))) => guards,
        (Family::Process | Family::Native | Family::Command | Family::Rule | Family::Skill, _) => GUARDS.to_vec(),
    };
    let mut stages = Stages::default();
    for kind in guards {
        let opens = kind == CheckpointKind::BeforeTool && entry.is_some_and(continues);
        let on_failure = if opens { OnFailure::Continue } else { OnFailure::default_at(kind) };
        stages.set(kind, Stage { timeout: entry_context.defaults.interceptor_timeout, on_failure, paired: false });
    }
    let state = HookState::Broken(Fault::CannotStart { cause: detail.to_owned().into() });
    Hook {
        matcher: entry.and_then(readable_matcher),
        stages,
        ..entry_context.hook(family, entry.map_or(0, readable_priority), state)
    }
}

/// The stages at which a bad hook stays shut.
const GUARDS: [CheckpointKind; 2] = [CheckpointKind::BeforeTool, CheckpointKind::ApproveTool];

/// What stands under `intercept`, or under the key that was probably meant to be it: a slip of the pen must not
/// switch a guard off.
fn intercept_or_misspelt(entry: &Value) -> Option<&Value> {
    let misspelt = || {
        let members = entry.as_object()?;
        members.iter().find(|(key, _)| nearest(key, ["intercept"]).is_some()).map(|(_, value)| value)
    };
    entry.get("intercept").or_else(misspelt)
}

/// Which guards `intercept` names; `None` if it cannot be read.
fn guarded(intercept: &Value) -> Option<Vec<CheckpointKind>> {
    let names: Option<Vec<&str>> = match intercept {
        Value::Null => Some(Vec::new()),
        Value::Array(items) => items.iter().map(Value::as_str).collect(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => None,
    };
    let known = INTERCEPTS.map(CheckpointKind::name);
    let meant: Vec<&str> =
        names?.into_iter().filter(|name| !name.is_empty()).flat_map(|name| closest(name, &known)).collect();
    Some(GUARDS.into_iter().filter(|guard| meant.contains(&guard.name())).collect())
}

fn continues(entry: &Value) -> bool {
    let on_failure = entry.get("on_failure");
    let each = on_failure.and_then(|table| table.get("before_tool"));
    each.or(on_failure).and_then(Value::as_str) == Some("continue")
}

fn readable_matcher(entry: &Value) -> Option<Matcher> {
    Matcher::compile(entry.get("matcher")?.as_str()?).ok()
}

fn readable_priority(entry: &Value) -> i32 {
    entry.get("priority").and_then(Value::as_i64).and_then(|n| i32::try_from(n).ok()).unwrap_or(0)
}

fn texts(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn intercepted(name: &str) -> Option<CheckpointKind> {
    INTERCEPTS.into_iter().find(|kind| kind.name() == name)
}

fn directory(folder: &Path, dir: Option<&str>) -> PathBuf {
    match dir {
        None | Some("") => folder.to_owned(),
        Some(dir) => folder.join(dir),
    }
}

fn stages(policy: &StagePolicy, named: &NamedStages, observes: bool) -> Stages {
    let mut stages = policy.stages(&named.named);
    for kind in &named.paired {
        stages.set(*kind, policy.stage(*kind, true));
    }
    if observes {
        stages.set(CheckpointKind::Runtime, policy.stage(CheckpointKind::Runtime, false));
    }
    stages
}

fn modes(stages: &Stages) -> Vec<ChildMode> {
    let at = |kinds: &[CheckpointKind]| kinds.iter().any(|kind| stages.get(*kind).is_some());
    [
        (ChildMode::Observe, at(&[CheckpointKind::Runtime])),
        (ChildMode::Llm, at(&[CheckpointKind::BeforeLlm, CheckpointKind::AfterLlm])),
        (ChildMode::Tool, at(&[CheckpointKind::BeforeTool, CheckpointKind::AfterTool])),
        (ChildMode::Approve, at(&[CheckpointKind::ApproveTool])),
    ]
    .into_iter()
    .filter(|(_, on)| *on)
    .map(|(mode, _)| mode)
    .collect()
}

impl EntryContext<'_> {
    fn hook(&self, family: Family, priority: i32, state: HookState) -> Hook {
        Hook {
            name: HookName::from(self.name),
            family,
            origin: self.origin.to_owned(),
            priority,
            state,
            matcher: None,
            respond: RespondTools::Any,
            events: None,
            scope: Scope::Everyone,
            media_dir: None,
            stages: Stages::default(),
            stored: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CheckpointKind::{AfterLlm, AfterTool, ApproveTool, BeforeLlm, BeforeTool, Runtime};
    use pintle_domain::checkpoint::RuntimeKind;
    use pintle_domain::json::json;

    fn entry_context() -> EntryContext<'static> {
        EntryContext {
            name: "x",
            origin: "pintle.toml:1:1",
            folder: Path::new("/etc/pintle"),
            defaults: Defaults::default(),
        }
    }

    fn read(mut entry: Value) -> Result<(Hook, ProcessEntry), Vec<String>> {
        entry["command"] = json!(["h"]);
        let raw = pintle_domain::json::from_value(entry).unwrap();
        process(&entry_context(), &raw).map_err(|problems| {
            problems.iter().map(|problem| format!("{}: {problem}", problem.path.join("."))).collect()
        })
    }

    #[test]
    fn modes_follow_from_what_is_named() {
        let check = |entry: Value, modes: &[ChildMode], kinds: &[CheckpointKind]| {
            let (hook, process) = read(entry.clone()).unwrap();
            assert_eq!(process.modes, modes, "{entry}");
            assert_eq!(hook.stages.kinds().collect::<Vec<_>>(), kinds, "{entry}");
        };
        let all = json!({"observe": ["turn_end"], "intercept": ["approve_tool", "after_tool", "", "after_llm"]});
        let stages = [BeforeLlm, AfterLlm, BeforeTool, ApproveTool, AfterTool, Runtime];
        check(all, &[ChildMode::Observe, ChildMode::Llm, ChildMode::Tool, ChildMode::Approve], &stages);
        check(json!({"intercept": ["before_tool"], "pair": false}), &[ChildMode::Tool], &[BeforeTool]);
        check(json!({"observe": ["agent.turn.end"]}), &[ChildMode::Observe], &[Runtime]);
    }

    #[test]
    fn stages_have_their_own_limits() {
        let entry = json!({
            "intercept": ["after_tool", "approve_tool"], "timeout_ms": {"after_tool": 7}, "on_failure": "abort_turn",
        });
        let (hook, _) = read(entry).unwrap();
        let stage = |millis, on_failure, paired| Stage { timeout: Duration::from_millis(millis), on_failure, paired };
        assert_eq!(hook.stages.get(AfterTool), Some(&stage(7, OnFailure::AbortTurn, false)));
        assert_eq!(hook.stages.get(BeforeTool), Some(&stage(5000, OnFailure::Continue, true)));
        assert_eq!(hook.stages.get(ApproveTool), Some(&stage(60000, OnFailure::Close, false)));
    }

    #[test]
    fn events_are_filtered_by_either_spelling() {
        let told = |observe: Value| read(json!({"observe": observe})).map(|(hook, _)| hook.events);
        assert_eq!(
            told(json!(["turn_end", "tool.exec_end"])),
            Ok(Some([RuntimeKind::TurnEnd, RuntimeKind::ToolExecEnd].into()))
        );
        for all in ["", "*", "all"] {
            assert_eq!(told(json!([all])), Ok(None));
        }
        let said = "observe.1: unsupported observe event \"turn_edn\"; did you mean \"turn_end\"?";
        assert_eq!(told(json!(["error", "turn_edn"])), Err(vec![said.to_owned()]));
    }

    #[test]
    fn dotted_names_choose_the_newer_form_unless_one_is_named() {
        let form = |more: Value| read(more).map(|(_, entry)| (entry.events, entry.mixed_events)).unwrap();
        let (old, new) = (EventForm::Hook, EventForm::Runtime);
        for (observe, events, expected) in [
            (json!(["turn_end"]), None, (old, false)),
            (json!(["tool.exec_end", "agent.turn.end"]), None, (new, false)),
            (json!(["tool.exec_end", "error"]), None, (new, false)),
            (json!(["*"]), None, (old, false)),
            (json!(["tool.exec_end"]), Some("hook"), (old, false)),
            (json!(["turn_end"]), Some("runtime"), (new, false)),
            (json!(["turn_end", "tool.exec_end"]), None, (old, true)),
            (json!(["turn_end", "tool.exec_end"]), Some("runtime"), (new, false)),
        ] {
            let more = match events {
                Some(events) => json!({"observe": observe, "events": events}),
                None => json!({"observe": observe}),
            };
            assert_eq!(form(more.clone()), expected, "{more}");
        }
    }

    #[test]
    fn every_mistake_of_an_entry_is_named() {
        let said = read(json!({
            "transport": "tcp", "events": "both", "intercept": ["befor_tool"], "timeout_ms": {"before_tool": 0},
            "on_failure": {"approve_tool": "continue"}, "matcher": "(", "respond": "[", "start_timeout_ms": -1,
        }))
        .map(|_| ());
        let expected = [
            "intercept.0: unsupported intercept \"befor_tool\"; did you mean \"before_tool\"?",
            "transport: unsupported transport \"tcp\"",
            "events: unsupported events \"both\"",
            "timeout_ms.before_tool: must be greater than 0",
            "on_failure.approve_tool: approve_tool always refuses on a fault",
            "matcher: invalid matcher: error: unclosed group",
            "respond: invalid respond: error parsing glob '[': unclosed character class; missing ']'",
            "start_timeout_ms: must be greater than 0",
        ];
        assert_eq!(said, Err(expected.map(str::to_owned).to_vec()));
        assert_eq!(read(json!({})).map(|_| ()), Err(vec![": no hook modes enabled".to_owned()]));
        let none =
            process(&entry_context(), &RawProcess { intercept: Some(vec!["before_llm".into()]), ..Default::default() });
        assert_eq!(none.map(|_| ()), Err(vec![EntryProblem::new(&["command"], "command is required")]));
    }

    #[test]
    fn a_stub_stays_shut_where_its_entry_guards() {
        let check = |entry: Value, stages: &[(CheckpointKind, OnFailure)]| {
            let hook = broken(&entry_context(), Family::Process, Some(&entry), "bad");
            let found: Vec<_> =
                hook.stages.kinds().map(|kind| (kind, hook.stages.get(kind).unwrap().on_failure)).collect();
            assert_eq!(found, stages, "{entry}");
            assert_eq!(hook.state, HookState::Broken(Fault::CannotStart { cause: "bad".into() }));
        };
        let (close, open) = (OnFailure::Close, OnFailure::Continue);
        check(json!({"intercept": ["before_tool"]}), &[(BeforeTool, close)]);
        check(json!({"intercept": ["befor_tol"], "on_failure": "continue"}), &[(BeforeTool, open)]);
        check(json!({"intercept": ["approve"], "on_failure": "continue"}), &[(ApproveTool, close)]);
        check(json!({"intercept": "before_tool"}), &[(BeforeTool, close), (ApproveTool, close)]);
        check(
            json!({"intercept": [1], "on_failure": {"before_tool": "continue"}}),
            &[(BeforeTool, open), (ApproveTool, close)],
        );
        check(json!({"intercept": ["after_llm"]}), &[]);
        check(json!({}), &[]);
        check(json!(3), &[(BeforeTool, close), (ApproveTool, close)]);
        let native = broken(&entry_context(), Family::Native, Some(&json!({"matcher": "^exec$"})), "bad");
        assert_eq!(native.stages.kinds().collect::<Vec<_>>(), [BeforeTool, ApproveTool]);
        assert_eq!(native.matcher.map(|matcher| matcher.pattern().to_owned()), Some("^exec$".into()));
    }
}
