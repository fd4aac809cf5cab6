//! The stage on which children perform: a folder, a hook, calls.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pintle_dialects::process::config::EventForm;
use pintle_domain::checkpoint::{BeforeTool, Reply, Subject};
use pintle_domain::fault::Fault;
use pintle_domain::id::{CallId, EventId, HookName, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::json;
use pintle_domain::tool::ToolCall;
use pintle_domain::verdict::{ParsedVerdict, Verdict};
use pintle_engine::AsNamed;
use pintle_engine::handler::{Handler as _, HookCall, WireCache};
use pintle_process::hook::{ProcessHook, ProcessSpec, unchecked};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A bound for what must happen: only a failing test ever waits that long.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// Answers the handshake; what follows acts.
pub(super) const HELLO: &str = r#"read -r line; echo '{"id":1,"result":{}}';"#;

pub(super) struct Stage {
    pub(super) folder: tempfile::TempDir,
    pub(super) tracker: TaskTracker,
}

impl Stage {
    pub(super) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), tracker: TaskTracker::new() }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Writes a file with these permissions.
    pub(super) fn file(&self, name: &str, text: &str, mode: u32) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(super) fn spec(&self, argv: &[&str]) -> ProcessSpec {
        let vars = ["PATH", "HOME"].map(|name| (OsString::from(name), std::env::var_os(name).unwrap_or_default()));
        ProcessSpec {
            name: HookName::from("h"),
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            dir: Some(self.folder.path().to_owned()),
            env: vars.to_vec(),
            modes: vec!["observe", "tool"],
            start_timeout: LONG,
            max_frame_bytes: 1 << 20,
            observer_timeout: LONG,
            strict: false,
            event_form: EventForm::Hook,
            events: None,
            before_spawn: unchecked(),
        }
    }

    pub(super) fn start(&self, spec: ProcessSpec) -> Arc<ProcessHook> {
        ProcessHook::start(spec, self.tracker.clone(), pintle_engine::Deadlines::default())
    }

    /// A hook that answers the handshake and then does what `script` says.
    pub(super) async fn hook(&self, script: &str) -> Arc<ProcessHook> {
        let hook = self.start(self.spec(&["sh", "-c", &format!("{HELLO}{script}")]));
        hook.ready().await.unwrap();
        hook
    }

    /// A pipe with a name: reading it to its end waits for everybody who holds it open.
    pub(super) fn fifo(&self, name: &str) -> Fifo {
        nix::unistd::mkfifo(&self.path(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
        Fifo(pipe::OpenOptions::new().open_receiver(self.path(name)).unwrap())
    }

    /// Closes `hook` and waits until none of its tasks runs.
    pub(super) async fn close(&self, hook: &ProcessHook) {
        within(hook.close()).await;
        self.tracker.close();
        within(self.tracker.wait()).await;
    }
}

pub(super) struct Fifo(pipe::Receiver);

impl Fifo {
    /// Everything that is written until nobody holds the other end any more. The first writer must be there.
    pub(super) async fn rest(mut self) -> String {
        let mut text = String::new();
        within(self.0.read_to_string(&mut text)).await.unwrap();
        text
    }

    /// Waits for a line.
    pub(super) async fn line(&mut self) -> io::Result<String> {
        let mut text = Vec::new();
        while !text.ends_with(b"\n") {
            self.0.readable().await?;
            text.push(within(self.0.read_u8()).await?);
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

pub(super) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, what).await.expect("it does not take that long")
}

/// Asks `hook` about a tool call with arguments of about `bytes` bytes.
pub(super) async fn ask_about(hook: &ProcessHook, bytes: usize, timeout: Duration) -> Result<Reply, Fault> {
    ask_until(hook, bytes, timeout, &CancellationToken::new()).await
}

pub(super) async fn ask_until(
    hook: &ProcessHook,
    bytes: usize,
    timeout: Duration,
    cancel: &CancellationToken,
) -> Result<Reply, Fault> {
    let arguments = json!({ "text": "x".repeat(bytes) }).as_object().unwrap().clone();
    let call = ToolCall { id: CallId::from("c1"), tool: "echo".into(), raw_tool: "echo".into(), arguments };
    let asked = BeforeTool { call, owner: None };
    let who = Identity::top("main", "cli:direct", TurnId::from("t1"));
    let call = HookCall {
        event_id: &EventId::from("e1"),
        who: &who,
        subject: Subject::BeforeTool(&asked),
        timeout,
        budget: timeout,
        again: false,
        cancel,
        known: &AsNamed,
        wire: &WireCache::default(),
    };
    hook.ask(call).await.heard
}

/// Asks with a small question and a generous deadline.
pub(super) async fn ask(hook: &ProcessHook) -> Result<Reply, Fault> {
    ask_about(hook, 10, LONG).await
}

/// Whether a reply lets the call pass as it is.
pub(super) fn continues(reply: &Result<Reply, Fault>) -> bool {
    matches!(reply, Ok(Reply::BeforeTool(heard)) if heard.verdict == Verdict::Continue)
}

/// The reason of a denial.
pub(super) fn denied(reply: &Result<Reply, Fault>) -> &str {
    let Ok(Reply::BeforeTool(ParsedVerdict { verdict: Verdict::Deny(reason), .. })) = reply else {
        panic!("expected a denial, got {reply:?}");
    };
    reason.as_str()
}

/// The fault of a reply.
pub(super) fn fault(reply: Result<Reply, Fault>) -> Fault {
    reply.expect_err("a fault")
}
