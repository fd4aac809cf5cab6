//! Nothing outlives a run, however it ends, and nobody waits for what is still there.

use std::time::Duration;

use bytes::Bytes;
use pintle_process::command::{CommandEnd, CommandResult, CommandSpec, RunLimit, Stream};

use super::stage::{LONG, Stage, env, is_gone, text};

/// A command that hears nothing, with a grandchild that does not either. Both hold the pipe `held` open, through
/// which the command says who it is; both hold its outputs open.
const STUBBORN: &str = r#"trap '' TERM; exec 9>held
    sh -c 'trap "" TERM; while :; do sleep 1000; done' &
    echo $$ >&9; echo early
    while :; do sleep 1000; done"#;

/// Runs `command` with growing deadlines until it has spoken before its deadline: a loaded machine starts it late.
async fn timed_out(stage: &Stage, command: &str) -> (CommandResult, String) {
    for deadline_ms in [200, 2_000, 20_000] {
        stage.fifo("held");
        let held = stage.line("held");
        let deadline = Duration::from_millis(deadline_ms);
        let ran = stage
            .spec(command)
            .run(Bytes::from_static(b"{}"), stage.limit(deadline), &stage.cancel, &stage.tasks)
            .await;
        if ran.stdout.is_empty() {
            // Whoever waits for its line waits no more.
            std::fs::write(stage.path("held"), "late").unwrap();
            drop(held.await.unwrap());
            stage.cleaned().await;
            stage.tasks.reopen();
            std::fs::remove_file(stage.path("held")).unwrap();
            continue;
        }
        let (leader, rest) = held.await.unwrap();
        // A run is over at its deadline, while the processes are still there for their half second.
        assert_eq!(stage.tasks.len(), 1);
        assert!(ran.took >= deadline);
        stage.cleaned().await;
        assert_eq!(rest(), "");
        return (ran, leader);
    }
    panic!("it never spoke");
}

#[tokio::test]
async fn a_deadline_ends_what_ignores_everything() {
    let stage = Stage::new();
    let (ran, leader) = timed_out(&stage, STUBBORN).await;
    assert_eq!((ran.end, text(&ran.stdout)), (CommandEnd::TimedOut, "early\n"));
    assert!(is_gone(&leader));
}

#[tokio::test]
async fn what_is_said_after_the_deadline_is_not_heard() {
    let stage = Stage::new();
    let late = r#"exec 9>held; trap 'echo late; echo late >&2; : >cleaned; exit 0' TERM
        echo $$ >&9; echo early; while :; do sleep 1000; done"#;
    let (ran, leader) = timed_out(&stage, late).await;
    assert_eq!((ran.end, text(&ran.stdout), text(&ran.stderr)), (CommandEnd::TimedOut, "early\n", ""));
    // Its pipes were still there to speak into.
    assert!(stage.path("cleaned").exists());
    assert!(is_gone(&leader));
}

#[tokio::test]
async fn cancelling_ends_it_at_once() {
    let stage = Stage::new();
    stage.fifo("held");
    let held = stage.line("held");
    let run = stage.run(STUBBORN);
    let (ran, (leader, rest)) = futures_util::future::join(run, async {
        let heard = held.await.unwrap();
        stage.cancel.cancel();
        heard
    })
    .await;
    assert_eq!((ran.end, stage.tasks.len()), (CommandEnd::Cancelled, 1));
    stage.cleaned().await;
    assert_eq!(rest(), "");
    assert!(is_gone(&leader));
}

#[tokio::test]
async fn what_is_cancelled_before_its_start_does_not_start() {
    let stage = Stage::new();
    stage.cancel.cancel();
    let ran = stage.run("echo ran; : >ran").await;
    assert_eq!((ran.end, ran.stdout), (CommandEnd::Cancelled, Bytes::new()));
    assert!(stage.tasks.is_empty());
    assert!(!stage.path("ran").exists());
}

#[tokio::test]
async fn a_run_that_is_given_up_while_it_starts_is_ended() {
    let stage = Stage::new();
    let spec = stage.spec("trap '' TERM; : >started.$$; while :; do sleep 1000; done");
    for _ in 0..20 {
        let mut run = Box::pin(spec.run(Bytes::new(), stage.limit(LONG), &stage.cancel, &stage.tasks));
        // One look begins the start, on another thread.
        assert!(futures_util::poll!(&mut run).is_pending());
        drop(run);
    }
    assert_eq!(stage.tasks.len(), 20);
    stage.cleaned().await;
    for started in std::fs::read_dir(stage.folder.path()).unwrap() {
        let name = started.unwrap().file_name().into_string().unwrap();
        assert!(is_gone(name.strip_prefix("started.").unwrap()), "{name}");
    }
}

#[tokio::test]
async fn a_dropped_run_is_ended() {
    let stage = Stage::new();
    stage.fifo("held");
    let held = stage.line("held");
    let (leader, rest) = tokio::select! {
        ran = stage.run(STUBBORN) => panic!("it ended: {ran:?}"),
        heard = held => heard.unwrap(),
    };
    stage.cleaned().await;
    assert_eq!(rest(), "");
    assert!(is_gone(&leader));
}

#[tokio::test]
async fn what_a_command_leaves_running_is_ended() {
    let stage = Stage::new();
    let commands = [
        // It holds the outputs open.
        "sleep 1000 & echo $$",
        "sleep 1000 >/dev/null 2>&1 & echo $$",
        "(trap '' TERM; while :; do sleep 1000; done) & echo $$",
    ];
    for command in commands {
        let ran = stage.run(command).await;
        assert_eq!(ran.end, CommandEnd::Exit(0), "{command}");
        let leader = text(&ran.stdout).trim().to_owned();
        stage.cleaned().await;
        assert!(is_gone(&leader), "{command}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_words_of_a_pipeline_are_heard() {
    let stage = Stage::new();
    // The clock stands still while a thread is busy, so that no load of the machine makes the words come late.
    let (done, busy) = std::sync::mpsc::channel::<()>();
    let still = tokio::task::spawn_blocking(move || busy.recv().is_err());
    // The shell is gone when its child answers.
    let late = "(while [ -d /proc/$$ ] && ! grep -q 'State:.Z' /proc/$$/status; do :; done; echo last) & exit 0";
    let ran = stage.run(late).await;
    drop(done);
    assert!(still.await.unwrap());
    assert_eq!((ran.end, text(&ran.stdout)), (CommandEnd::Exit(0), "last\n"));
}

#[tokio::test]
async fn a_flood_is_ended() {
    let stage = Stage::new();
    let rows = [
        ("echo $$ >&2; yes", Stream::Stdout),
        ("echo $$; yes >&2", Stream::Stderr),
        (
            "echo $$ >&2; trap '' TERM; while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done",
            Stream::Stdout,
        ),
        ("echo $$ >&2; yes & yes & exit 0", Stream::Stdout),
    ];
    for (command, stream) in rows {
        let ran = stage.run(command).await;
        assert_eq!(ran.end, CommandEnd::TooMuch { stream }, "{command}");
        let leader = if stream == Stream::Stdout { &ran.stderr } else { &ran.stdout };
        stage.cleaned().await;
        assert!(is_gone(text(leader).trim()), "{command}");
    }
}

#[test]
fn a_runtime_that_ends_takes_its_commands_along() {
    let stage = Stage::new();
    let host = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let rest = host.block_on(async {
        stage.fifo("held");
        let held = stage.line("held");
        // It speaks when it was spoken to, so that the runtime does not end while it starts.
        let spec = stage.spec(&format!("read -r line; {STUBBORN}"));
        let (cancel, tasks, deadlines) = (stage.cancel.clone(), stage.tasks.clone(), stage.deadlines.clone());
        stage.tasks.spawn(async move {
            spec.run(Bytes::from_static(b"{}\n"), RunLimit { time: LONG, deadlines: &deadlines }, &cancel, &tasks)
                .await;
        });
        held.await.unwrap().1
    });
    drop(host);
    assert_eq!(rest(), "");
}

/// Names the folder of the stage to the process that plays the host.
const HOST: &str = "PINTLE_TEST_COMMAND_HOST";

/// Plays both parts: run by the test runner it starts itself again as a host, which it then kills.
#[tokio::test]
async fn a_killed_host_takes_its_command_along() {
    if let Some(folder) = std::env::var_os(HOST) {
        let stage = Stage::new();
        let spec = CommandSpec::new("exec 9>held; echo $$ >&9; exec sleep 1000 9>&9".into(), folder.into(), env());
        spec.run(Bytes::new(), stage.limit(LONG), &stage.cancel, &stage.tasks).await;
        return;
    }
    let stage = Stage::new();
    stage.fifo("held");
    let held = stage.line("held");
    let mut host = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "command::leftovers::a_killed_host_takes_its_command_along"])
        .env(HOST, stage.folder.path())
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (leader, rest) = held.await.unwrap();
    host.kill().await.unwrap();
    assert_eq!(rest(), "");
    assert!(is_gone(&leader));
}

/// What binds a command to its host is told of the end of a thread, too.
#[test]
fn a_command_outlives_the_thread_that_started_it() {
    let stage = Stage::new();
    stage.fifo("go");
    let host = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let spec = stage.spec("read -r line <go; echo $line");
    let (cancel, tasks, deadlines) = (stage.cancel.clone(), stage.tasks.clone(), stage.deadlines.clone());
    let mut run = Box::pin(async move {
        spec.run(Bytes::new(), RunLimit { time: LONG, deadlines: &deadlines }, &cancel, &tasks).await
    });
    let inside = host.handle().clone();
    let thread = std::thread::spawn(move || {
        let _inside = inside.enter();
        assert!(futures_util::FutureExt::now_or_never(&mut run).is_none());
        (nix::unistd::gettid(), run)
    });
    let (id, run) = thread.join().unwrap();
    // Whoever joins a thread may be faster than its end.
    while std::path::Path::new(&format!("/proc/self/task/{id}")).exists() {
        std::thread::yield_now();
    }
    std::fs::write(stage.path("go"), "on\n").unwrap();
    let ran = host.block_on(run);
    assert_eq!((ran.end, text(&ran.stdout)), (CommandEnd::Exit(0), "on\n"));
}
