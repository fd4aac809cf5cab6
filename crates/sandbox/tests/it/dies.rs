//! Children that are killed, cannot start, or are no children of ours.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pintle_sandbox::{CompileError, Launcher, Sandbox, ScriptFault};

use crate::stage::{self, launcher, run, runtime, sandbox};

const GOOD: &str = "function handle(event) { return { decision: 'block' }; }";
const ENDLESS: &str = "function handle(event) { for (;;); }";

fn pid(id: u32) -> Pid {
    Pid::from_raw(i32::try_from(id).expect("process ids are small"))
}

/// Waits until no such process is left, not even its remains.
async fn gone(id: u32) {
    let look = async {
        while kill(pid(id), None).is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(stage::PATIENT, look).await.expect("the child is gone");
}

#[test]
fn a_child_that_is_killed_in_the_middle_is_a_fault() {
    runtime().block_on(async {
        let sandbox = sandbox();
        let kill_all = async {
            while sandbox.processes().is_empty() {
                tokio::task::yield_now().await;
            }
            for id in sandbox.processes() {
                kill(pid(id), Signal::SIGKILL).unwrap();
            }
        };
        let (ran, ()) = tokio::join!(run(&sandbox, ENDLESS), kill_all);
        assert_eq!(ran.returned, Err(ScriptFault::Ended("signal 9".into())));
        assert!(run(&sandbox, GOOD).await.returned.is_ok());
    });
}

#[test]
fn children_that_were_killed_while_idle_are_not_asked() {
    runtime().block_on(async {
        let sandbox = sandbox();
        assert!(run(&sandbox, GOOD).await.returned.is_ok());
        for id in sandbox.processes() {
            kill(pid(id), Signal::SIGKILL).unwrap();
        }
        for _ in 0..3 {
            // A child may still be dying when it is asked; that is told, and not taken for an answer.
            let ran = run(&sandbox, GOOD).await;
            assert!(matches!(ran.returned, Ok(_) | Err(ScriptFault::Ended(_))), "{ran:?}");
        }
        assert!(run(&sandbox, GOOD).await.returned.is_ok());
    });
}

#[test]
fn a_dropped_run_leaves_no_process() {
    runtime().block_on(async {
        let sandbox = sandbox();
        let mut running = Box::pin(run(&sandbox, ENDLESS));
        assert!(futures_util::poll!(running.as_mut()).is_pending());
        let children = sandbox.processes();
        assert!(!children.is_empty());
        drop(running);
        gone(children[0]).await;
        assert!(!sandbox.processes().contains(&children[0]));
        assert!(run(&sandbox, GOOD).await.returned.is_ok());
    });
}

#[test]
fn the_last_clone_ends_all_children() {
    runtime().block_on(async {
        let first = sandbox();
        let last = first.clone();
        assert!(run(&first, GOOD).await.returned.is_ok());
        drop(first);
        let children = last.processes();
        assert!(!children.is_empty());
        drop(last);
        for id in children {
            gone(id).await;
        }
    });
}

#[test]
fn a_timeout_costs_the_next_caller_no_start() {
    runtime().block_on(async {
        let sandbox = sandbox();
        let event = stage::event().to_string();
        let timeout = Duration::from_millis(50);
        let ran = sandbox.run(pintle_sandbox::ScriptRun { timeout, ..stage::call(ENDLESS, &event) }).await;
        assert_eq!(ran.returned, Err(ScriptFault::Timeout { after_ms: 50 }));
        let ready = sandbox.processes();
        assert_eq!(ready.len(), 1, "one is ready");
        assert!(run(&sandbox, GOOD).await.returned.is_ok());
        assert!(sandbox.processes().contains(&ready[0]), "and was the one that ran");
    });
}

#[test]
fn a_program_that_is_no_child_is_told() {
    runtime().block_on(async {
        let with = |program: &str, args: &[&str]| {
            let args = args.iter().map(Into::into).collect();
            Sandbox::new(Launcher { program: program.into(), args, vars: Vec::new() })
        };
        let ran = run(&with("/does/not/exist", &[]), GOOD).await;
        let Err(ScriptFault::Engine(text)) = ran.returned else { panic!("{ran:?}") };
        assert!(text.starts_with("`/does/not/exist` could not be started: "), "{text}");
        let ran = run(&with("/bin/sh", &["-c", "exit 3"]), GOOD).await;
        assert_eq!(ran.returned, Err(ScriptFault::Ended("exit code 3".into())));
        let nonsense = Err(ScriptFault::Ended("it answered something that is not an answer".into()));
        let ran = run(&with("/bin/sh", &["-c", "printf '\\377\\377\\377\\377'; cat"]), GOOD).await;
        assert_eq!(ran.returned, nonsense);
        let ran = run(&with("/bin/sh", &["-c", "printf '\\2\\0\\0\\0zz'; cat >&2"]), GOOD).await;
        assert_eq!(ran.returned, nonsense);
        // The child says that the source was checked when it should have run it.
        let ran = run(&with("/bin/sh", &["-c", "printf '\\5\\0\\0\\0c\\0\\0\\0\\0'; cat >&2"]), GOOD).await;
        assert!(matches!(ran.returned, Err(ScriptFault::Ended(_))), "{ran:?}");
        let checked = with("/bin/sh", &["-c", "exit 3"]).compile(GOOD).await;
        assert_eq!(checked, Err(CompileError::Unchecked(ScriptFault::Ended("exit code 3".into()))));
    });
}

#[test]
fn a_child_has_given_up_what_it_does_not_need() {
    runtime().block_on(async {
        let sandbox = Sandbox::new(launcher());
        assert!(run(&sandbox, GOOD).await.returned.is_ok());
        let id = sandbox.processes()[0];
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{id}/{name}")).unwrap();
        let status = read("status");
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        assert_eq!((field("Seccomp:"), field("NoNewPrivs:")), (Some("2"), Some("1")), "{status}");
        let limits = read("limits");
        let limit = |name: &str| limits.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
        assert_eq!(limit("Max file size"), Some("0"));
        assert_eq!(limit("Max core file size"), Some("0"));
        let address: u64 = limit("Max address space").unwrap().parse().unwrap();
        assert!(address < 1 << 31, "{address}");
        assert_eq!(read("environ").trim_matches('\0'), "TZ=UTC0");
    });
}
