//! One cell: a child that does one thing wrong at one place of one turn, between two healthy hooks.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pintle_dialects::process::config::raw::RawProcess;
use pintle_dialects::process::config::{Defaults, EntryContext, process};
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::hook::{OnFailure, Stage};
use pintle_domain::json::{Value, json};
use pintle_domain::record::{HookOutcome, NotRun};
use pintle_domain::tool::ToolOutput;
use pintle_domain::verdict::Verdict;
use pintle_engine::Mount;
use pintle_process::hook::ProcessHook;
use pintle_process::mounting::spec;

use crate::hooks::{OwnTool, Rule};
use crate::host::{Host, Parts};

/// A deadline that is meant to pass.
const SHORT: Duration = Duration::from_millis(400);
/// A deadline that is not.
const LONG: Duration = Duration::from_secs(60);

/// What runs as the hook.
pub(super) struct Child {
    runs: Runs,
    /// Whether its deadlines are meant to pass.
    late: bool,
}

enum Runs {
    /// A shell that answers everything but what it is to fail at; there it does this.
    Shell(String),
    /// A file of this name, with this text if there is to be one.
    File(&'static str, Option<&'static str>),
}

impl Child {
    pub(super) fn acting(fault: String) -> Self {
        Self { runs: Runs::Shell(fault), late: false }
    }

    pub(super) fn late(fault: String) -> Self {
        Self { runs: Runs::Shell(fault), late: true }
    }

    pub(super) fn file(name: &'static str, text: Option<&'static str>) -> Self {
        Self { runs: Runs::File(name, text), late: true }
    }
}

/// Where the child fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// At a stage that it names, with what its faults become there.
    Stage(&'static str, OnFailure),
    /// At `after_llm`, where it is asked only because it named `before_llm`.
    Twin,
    /// While it is told what happens.
    Observer,
}

impl Place {
    /// The stage at which it fails.
    fn stage(self) -> &'static str {
        match self {
            Self::Stage(stage, _) => stage,
            Self::Twin => "after_llm",
            Self::Observer => "event",
        }
    }

    fn entry(self) -> Value {
        match self {
            Self::Stage("before_tool", OnFailure::Continue) => {
                json!({"intercept": ["before_tool"], "on_failure": {"before_tool": "continue"}})
            }
            Self::Stage(stage, _) => json!({ "intercept": [stage] }),
            Self::Twin => json!({"intercept": ["before_llm"]}),
            Self::Observer => json!({"observe": ["all"]}),
        }
    }
}

/// A shell that counts its calls as their ids are counted, notes its process id, and answers what `act` does not.
fn shell(act: &str, stage: &str) -> String {
    let (good, empty) = match stage {
        "approve_tool" => (r#"{"approved":true}"#, "{}"),
        _ => (r#"{"action":"continue"}"#, "{}"),
    };
    format!(
        r#"echo $$ >>pids; n=0; good='{good}'; empty='{empty}'
        while read -r line; do
            case "$line" in '{{"jsonrpc":"2.0","id":'*) n=$((n+1));; esac
            case "$line" in
                *'"method":"hook.{stage}"'*) {act};;
                *'"method":"hook.event"'*|*'"method":"hook.cancel"'*) ;;
                *'"method":"hook.hello"'*) echo "{{\"id\":$n,\"result\":{{}}}}";;
                *) printf '{{"id":%s,"result":%s}}\n' "$n" "$good";;
            esac
        done"#
    )
}

pub(super) struct Cell {
    pub(super) host: Host,
    place: Place,
    echo: Arc<OwnTool>,
}

impl Cell {
    /// A turn with one call of a tool, and the child in its place between a native hook and another child.
    pub(super) async fn mount(child: &Child, place: Place) -> Self {
        let echo = OwnTool::giving("echo", ToolOutput::ok("hi"));
        let script = json!([{"tool_calls": [{"id": "c1", "name": "echo", "arguments": {}}]}, {"text": "done"}]);
        let host = Parts::of(script).own(echo.clone()).host();
        let cell = Self { host, place, echo };
        let command = match &child.runs {
            Runs::Shell(act) => json!(["sh", "-c", shell(act, place.stage())]),
            Runs::File(name, text) => {
                if let Some(text) = text {
                    cell.write(name, text);
                }
                json!([format!("./{name}")])
            }
        };
        let h = cell.child("h", 0, command, if child.late { SHORT } else { LONG }).await;
        let quiet = shell(r#"printf '{"id":%s,"result":%s}\n' "$n" "$good""#, place.stage());
        let later = cell.child("later", 1, json!(["sh", "-c", quiet]), LONG).await;
        let first = Rule {
            before_llm: Some(Box::new(|_| Verdict::Continue)),
            after_llm: Some(Box::new(|_| Verdict::Continue)),
            before_tool: Some(Box::new(|_| Verdict::Continue)),
            approve: Some(Box::new(|_| Verdict::Continue)),
            after_tool: Some(Box::new(|_| Verdict::Continue)),
            ..Rule::default()
        };
        cell.host.mount(vec![cell.host.engine.native("first", 0, Arc::new(first)), h, later]);
        cell
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.host.folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    async fn child(&self, name: &str, priority: i32, command: Value, timeout: Duration) -> Mount {
        let mut entry = self.place.entry();
        entry["enabled"] = json!(true);
        entry["priority"] = json!(priority);
        entry["command"] = command;
        entry["start_timeout_ms"] = json!(60_000);
        let raw: RawProcess = pintle_domain::json::from_value(entry).unwrap();
        let folder = self.host.folder.path();
        let defaults = Defaults { max_frame_bytes: 1 << 20, ..Defaults::default() };
        let (mut hook, entry) = process(&EntryContext { name, origin: "test", folder, defaults }, &raw).unwrap();
        let kinds: Vec<CheckpointKind> = hook.stages.kinds().collect();
        for kind in kinds {
            let stage = hook.stages.get(kind).unwrap().clone();
            hook.stages.set(kind, Stage { timeout, ..stage });
        }
        let vars = std::env::vars_os().filter(|(name, _)| name == "PATH").collect();
        let spec = spec(&hook, &entry, vars, Arc::new(|| Ok(Box::new(|| Ok(())))));
        let handler = ProcessHook::start(spec, self.host.engine.tasks().clone(), self.host.engine.deadlines().clone());
        // Whether it can start is known before the turn begins, so that no deadline runs against a slow machine.
        drop(handler.ready().await);
        Mount { hook, handler }
    }

    /// How often the tool ran.
    pub(super) fn ran(&self) -> usize {
        self.echo.calls().len()
    }

    /// Each `error` event says `phrase` of `h`, and there is one if there is a phrase.
    pub(super) fn check_errors(&self, phrase: Option<&str>, at: &str) {
        let errors = self.host.seen.errors();
        let Some(phrase) = phrase else { return assert_eq!(errors, [""; 0], "{at}") };
        let said = |stage: &str| format!("hook.{stage}: hook \"h\" {phrase}");
        assert!(errors.contains(&said(self.place.stage())), "{at}: {errors:?}");
        let stages = ["before_llm", "after_llm", "before_tool", "after_tool", "approve_tool"];
        let foreign: Vec<&String> = errors.iter().filter(|e| stages.iter().all(|stage| **e != said(stage))).collect();
        assert!(foreign.is_empty(), "{at}: {foreign:?}");
    }

    /// Nobody but `h` failed, everyone has a record for every event, and `later` ran unless `h` ended the chain.
    pub(super) fn check_others(&self, at: &str) {
        let records = self.host.seen.records.lock().unwrap();
        for record in records.iter().flat_map(|event| &event.hooks) {
            let by_h = matches!(&record.outcome, HookOutcome::NotRun(NotRun::Decided { by }) if by.as_str() == "h");
            let fine = match (record.hook.as_str(), &record.outcome) {
                ("h", _) | (_, HookOutcome::Said { .. } | HookOutcome::Told) => true,
                ("later", _) => by_h,
                // The approvers' turn does not come when `before_tool` refused.
                ("first", _) => by_h && record.checkpoint == CheckpointKind::ApproveTool,
                (_, _) => false,
            };
            assert!(fine, "{at}: {record:?}");
        }
        let asked = records.iter().flat_map(|event| &event.hooks).filter(|r| r.hook.as_str() == "later").count();
        assert!(asked > 0, "{at}");
    }

    /// Closes the hooks; no process of any of their groups is left.
    pub(super) async fn close(self, at: &str) {
        let pids = std::fs::read_to_string(self.host.folder.path().join("pids")).unwrap();
        let groups: Vec<i32> = pids.lines().map(|pid| pid.parse().unwrap()).collect();
        assert!(groups.iter().any(|group| runs(*group)), "{at}: the healthy child runs until it is closed");
        self.host.engine.close().await;
        let gone = async {
            while let Some(left) = groups.iter().find(|group| runs(**group)) {
                tracing::debug!("group {left} is on its way out");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(
            tokio::time::timeout(Duration::from_secs(5), gone).await.is_ok(),
            "{at}: something of {groups:?} is left"
        );
    }
}

/// Whether any process of `group` runs; one that is dead and not waited for does not.
fn runs(group: i32) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes.filter_map(|entry| stat(&entry.path())).any(|(state, of)| of == group && state != "Z")
}

/// State and group of a process.
fn stat(process: &Path) -> Option<(String, i32)> {
    let text = std::fs::read_to_string(process.join("stat")).ok()?;
    // The name stands in brackets and may hold anything.
    let mut words = text.rsplit_once(')')?.1.split_whitespace();
    let state = words.next()?.to_owned();
    Some((state, words.nth(1)?.parse().ok()?))
}
