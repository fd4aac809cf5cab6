//! Nothing that a child has started outlives it, whatever it does to get away.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pintle_dialects::process::config::EventForm;
use pintle_domain::id::HookName;
use pintle_engine::Deadlines;
use pintle_engine::handler::Handler as _;
use pintle_process::child::{Child, Launch};
use pintle_process::command::{CommandEnd, CommandSpec, RunLimit};
use pintle_process::hook::{ProcessHook, ProcessSpec, unchecked};
use pintle_testkit::leftovers::{self, WAYS, alive};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A bound for what must happen: only a failing test ever waits that long.
const LONG: Duration = Duration::from_secs(60);

/// Answers the handshake of a process hook.
const HELLO: &str = r#"read -r line; echo '{"id":1,"result":{}}'; "#;

/// A number that stands in the command lines of one test alone.
fn mark() -> String {
    uuid::Uuid::new_v4().as_u128().to_string()
}

fn env() -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]
}

/// Runs `command` as rules do, until nothing is left to clean up.
async fn run(command: &str, folder: &Path, time: Duration) -> CommandEnd {
    let (tasks, deadlines, cancel) = (TaskTracker::new(), Deadlines::default(), CancellationToken::new());
    let limit = RunLimit { time, deadlines: &deadlines };
    let spec = CommandSpec::new(command.to_owned(), folder.to_owned(), env());
    let ran = spec.run(Bytes::new(), limit, &cancel, &tasks).await;
    tasks.close();
    tokio::time::timeout(LONG, tasks.wait()).await.expect("it does not take that long");
    ran.end
}

fn hook(script: &str, folder: &Path, tracker: &TaskTracker) -> Arc<ProcessHook> {
    let spec = ProcessSpec {
        name: HookName::from("h"),
        argv: ["/bin/sh", "-c", &format!("{HELLO}{script}")].map(Into::into).to_vec(),
        dir: Some(folder.to_owned()),
        env: env(),
        modes: vec!["observe", "tool"],
        start_timeout: LONG,
        max_frame_bytes: 1 << 20,
        observer_timeout: LONG,
        strict: false,
        event_form: EventForm::Hook,
        events: None,
        before_spawn: unchecked(),
    };
    ProcessHook::start(spec, tracker.clone(), Deadlines::default())
}

/// Waits until what a shell text leaves is there.
fn wait_for(file: &Path) {
    let bound = Instant::now() + LONG;
    while !file.exists() {
        assert!(Instant::now() < bound, "it never came up");
        std::thread::yield_now();
    }
}

/// Waits until nobody with `mark` is left, and says who is after all.
fn left_in_the_end(mark: &str) -> Vec<String> {
    let bound = Instant::now() + LONG;
    loop {
        let left = alive(mark);
        if left.is_empty() || Instant::now() > bound {
            return left;
        }
        std::thread::yield_now();
    }
}

/// Waits until somebody with `mark` is there, and says who: a program that says that it is up is called by its mark only
/// when it has become what it waits as.
fn there_in_the_end(mark: &str) -> Vec<String> {
    let bound = Instant::now() + LONG;
    loop {
        let there = alive(mark);
        if !there.is_empty() || Instant::now() > bound {
            return there;
        }
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn a_command_that_leaves_by_itself_leaves_nobody() {
    let folder = TempDir::new().unwrap();
    for (name, way) in WAYS {
        let mark = mark();
        let text = leftovers::text(way, folder.path(), &mark, "exit 7");
        assert_eq!(run(&text, folder.path(), LONG).await, CommandEnd::Exit(7), "{name}");
        assert_eq!(alive(&mark), Vec::<String>::new(), "{name}");
    }
}

#[tokio::test]
async fn a_run_that_is_cut_leaves_nobody() {
    let folder = TempDir::new().unwrap();
    for (name, way) in WAYS {
        let mark = mark();
        let text = leftovers::text(way, folder.path(), &mark, "trap '' TERM; while :; do sleep 1000; done");
        let (tasks, deadlines, cancel) = (TaskTracker::new(), Deadlines::default(), CancellationToken::new());
        let spec = CommandSpec::new(text, folder.path().to_owned(), env());
        let limit = RunLimit { time: LONG, deadlines: &deadlines };
        let up = folder.path().join("up");
        let is_up = tokio::task::spawn_blocking(move || wait_for(&up));
        let run = spec.run(Bytes::new(), limit, &cancel, &tasks);
        let (ran, ()) = futures_util::future::join(run, async {
            is_up.await.unwrap();
            cancel.cancel();
        })
        .await;
        assert_eq!(ran.end, CommandEnd::Cancelled, "{name}");
        tasks.close();
        tokio::time::timeout(LONG, tasks.wait()).await.expect("it does not take that long");
        assert_eq!(alive(&mark), Vec::<String>::new(), "{name}");
        std::fs::remove_file(folder.path().join("up")).unwrap();
    }
}

#[tokio::test]
async fn a_process_hook_leaves_nobody() {
    let folder = TempDir::new().unwrap();
    for (name, way) in WAYS {
        let (mark, tracker) = (mark(), TaskTracker::new());
        let text = leftovers::text(way, folder.path(), &mark, "while read -r line; do :; done");
        let hook = hook(&text, folder.path(), &tracker);
        hook.ready().await.unwrap();
        let up = folder.path().join("up");
        tokio::task::spawn_blocking(move || wait_for(&up)).await.unwrap();
        tokio::time::timeout(LONG, hook.close()).await.expect("it does not take that long");
        assert_eq!(alive(&mark), Vec::<String>::new(), "{name}");
        std::fs::remove_file(folder.path().join("up")).unwrap();
    }
}

/// What a tool server is to the host.
#[tokio::test]
async fn another_child_leaves_nobody_and_its_end_is_told() {
    let folder = TempDir::new().unwrap();
    for (name, way) in WAYS {
        let mark = mark();
        let text = leftovers::text(way, folder.path(), &mark, "kill -9 $$");
        let argv = ["/bin/sh", "-c", &text].map(Into::into).to_vec();
        let launch = Launch { argv, dir: Some(folder.path().to_owned()), vars: env() };
        let (mut child, _output) = Child::start_apart(&launch).await.unwrap();
        child.ended().await;
        assert_eq!(child.end_all().await, "was killed by signal 9", "{name}");
        assert_eq!(alive(&mark), Vec::<String>::new(), "{name}");
    }
}

#[tokio::test]
async fn what_one_child_leaves_costs_no_other_its_own() {
    let (here, there) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (kept, tracker) = (mark(), TaskTracker::new());
    let text = leftovers::text("setsid ./left &", there.path(), &kept, "while read -r line; do :; done");
    let hook = hook(&text, there.path(), &tracker);
    hook.ready().await.unwrap();
    let up = kept.clone();
    let before = tokio::task::spawn_blocking(move || there_in_the_end(&up)).await.unwrap();
    for (name, way) in WAYS {
        let mark = mark();
        let text = leftovers::text(way, here.path(), &mark, "exit 0");
        assert_eq!(run(&text, here.path(), LONG).await, CommandEnd::Exit(0), "{name}");
        assert_eq!((alive(&mark), alive(&kept)), (Vec::new(), before.clone()), "{name}");
    }
    hook.close().await;
    assert_eq!((before.is_empty(), alive(&kept)), (false, Vec::<String>::new()));
}

/// Names the folder and the mark to the process that plays the host, and what it starts.
const HOST: &str = "PINTLE_TEST_DESCENDANTS_HOST";

/// Plays both parts: run by the test runner it starts itself again as a host, which it then kills.
#[tokio::test]
async fn a_killed_host_leaves_nobody() {
    if let Some(told) = std::env::var_os(HOST) {
        let told = told.into_string().unwrap();
        let [what, folder, text] = told.splitn(3, '|').collect::<Vec<_>>().try_into().unwrap();
        let (folder, tracker) = (Path::new(folder), TaskTracker::new());
        if what == "hook" {
            let _hook = hook(text, folder, &tracker);
            return std::future::pending().await;
        }
        run(text, folder, LONG).await;
        return;
    }
    let folder = TempDir::new().unwrap();
    let up = folder.path().join("up");
    for (number, (name, way)) in WAYS.into_iter().enumerate() {
        let mark = mark();
        let text = leftovers::text(way, folder.path(), &mark, "trap '' TERM; while :; do sleep 1000; done");
        let what = if number % 2 == 0 { "hook" } else { "command" };
        // A hook waits for its greeting, which is sent before anything else.
        let mut host = tokio::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "descendants::a_killed_host_leaves_nobody"])
            .env(HOST, format!("{what}|{}|{text}", folder.path().display()))
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let ready = up.clone();
        tokio::task::spawn_blocking(move || wait_for(&ready)).await.unwrap();
        host.kill().await.unwrap();
        assert_eq!(left_in_the_end(&mark), Vec::<String>::new(), "{name} of a {what}");
        std::fs::remove_file(&up).unwrap();
    }
}
