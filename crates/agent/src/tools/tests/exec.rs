//! Commands: what they see, what they print, and that nothing of them is left.

use std::fs;
use std::time::Duration;

use pintle_domain::tool::ToolOutput;
use tokio_util::sync::CancellationToken;

use super::Tree;
use crate::tools::BuiltinTool as _;
use crate::tools::exec::{Exec, ExecShell, RunningExec};

/// Never reached: a test that hangs is seen.
const LONG: Duration = Duration::from_secs(600);

/// For what ignores being asked.
const SHORT: Duration = Duration::from_millis(50);

struct Shell {
    tree: Tree,
    exec: Exec,
    mark: String,
}

impl Shell {
    /// Every process of this shell carries a mark in its environment.
    fn new() -> Self {
        let tree = Tree::new(&[("ws/a", "")]);
        let mark = format!("mark-{}", uuid::Uuid::new_v4());
        let env = [("PATH", "/usr/bin:/bin"), ("MARK", &mark)].map(|(k, v)| (k.into(), v.into())).to_vec();
        let exec = Exec {
            workspace: tree.at("ws"),
            env,
            guard: None,
            protected: tree.protected.clone(),
            shell: ExecShell::default(),
            unconfined: true,
        };
        Self { tree, exec, mark }
    }

    async fn run(&self, command: &str) -> ToolOutput {
        self.exec.exec(&RunningExec { command, timeout: LONG, grace: SHORT }, &CancellationToken::new()).await
    }

    /// Whether a process with the mark runs.
    fn alive(&self) -> bool {
        let pids = fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|pid| fs::read(pid.path().join("environ")).ok())
            .any(|env| env.windows(self.mark.len()).any(|part| part == self.mark.as_bytes()))
    }

    /// Waits for a word that the command writes into the pipe `ready`.
    async fn word(&self) -> String {
        let path = self.tree.at("ws/ready");
        tokio::task::spawn_blocking(move || fs::read_to_string(path).unwrap()).await.unwrap()
    }
}

#[tokio::test]
async fn a_command_answers_with_its_output_and_its_end() {
    let shell = Shell::new();
    for (command, text, is_error) in [
        ("echo out; echo err >&2; echo out", "out\nerr\nout\n", false),
        ("true", "[no output]", false),
        ("printf x; exit 3", "x\n[exit code 3]", true),
        ("kill -9 $$", "[killed by signal 9]", true),
        ("cat", "[no output]", false),
        ("pwd -P | sed 's/.*\\///'", "ws\n", false),
        ("printf 'a\\377b'", "a\u{fffd}b", false),
        ("nonsense-command 2>/dev/null", "[exit code 127]", true),
        ("a\0b", "the command holds a zero byte, which no shell can be given", true),
    ] {
        let output = shell.run(command).await;
        assert_eq!((output.for_llm.as_str(), output.is_error), (text, is_error), "{command}");
    }
}

#[tokio::test]
async fn a_command_sees_only_the_environment_it_was_given() {
    let shell = Shell::new();
    let output = shell.run("tr '\\0' '\\n' < /proc/$$/environ | sort").await;
    assert_eq!(output.for_llm, format!("MARK={}\nPATH=/usr/bin:/bin\nPINTLE_INSIDE_EXEC=1\n", shell.mark));
}

#[tokio::test]
async fn a_command_leads_a_session_without_a_terminal() {
    let shell = Shell::new();
    // Fields 5 to 7: group, session, terminal.
    let command = "echo $$; cut -d ' ' -f 5-7 /proc/$$/stat; (: < /dev/tty) 2> /dev/null && echo terminal; true";
    let output = shell.run(command).await.for_llm;
    let pid = output.lines().next().unwrap();
    assert_eq!(output, format!("{pid}\n{pid} {pid} 0\n"));
}

#[tokio::test]
async fn a_flood_is_cut_in_its_middle() {
    let output = Shell::new().run("echo first; yes | head -c 5000000; echo last").await;
    assert!(output.for_llm.len() < 65 * 1024, "{}", output.for_llm.len());
    assert!(output.for_llm.starts_with("first\ny\n") && output.for_llm.ends_with("y\nlast\n"));
    assert!(output.for_llm.contains("bytes left out"));
}

#[tokio::test]
async fn what_a_command_leaves_behind_ends_with_it() {
    let shell = Shell::new();
    for command in [
        "sleep 1000 & echo done",
        "(sleep 1000 & sleep 1000) & echo done",
        "nohup sleep 1000 >/dev/null 2>&1 & echo done",
        // Job control puts each job into a group of its own.
        "bash -c 'set -m; sleep 1000 & echo done'",
    ] {
        let output = shell.run(command).await;
        assert!(output.for_llm.ends_with("done\n") && !output.is_error, "{command}: {}", output.for_llm);
        assert!(!shell.alive(), "{command}");
    }
}

#[tokio::test]
async fn a_timeout_ends_children_and_their_children() {
    let shell = Shell::new();
    for command in [
        "sleep 1000 & sleep 1000",
        "trap '' TERM; (trap '' TERM; sleep 1000; sleep 1000) & sleep 1000; sleep 1000",
        "while :; do sleep 1000 & sleep 0.01; done",
        "bash -c 'set -m; trap \"\" TERM; sleep 1000 & while :; do :; done'",
    ] {
        let asked = RunningExec { command, timeout: SHORT, grace: SHORT };
        let output = shell.exec.exec(&asked, &CancellationToken::new()).await;
        assert_eq!(output.for_llm, "[not done after 0.05 s; the command was stopped]", "{command}");
        assert!(output.is_error);
        assert!(!shell.alive(), "{command}");
    }
}

#[tokio::test]
async fn a_cancelled_command_may_say_good_bye() {
    let shell = Shell::new();
    shell.tree.fifo("ws/ready");
    let cancel = CancellationToken::new();
    // The child is past its own start when it reports: a shell that forks may lose a signal for its child.
    let command = "trap 'echo bye; exit' TERM; echo waiting; sh -c 'echo ready > ready; exec sleep 1000' & wait";
    let asked = RunningExec { command, timeout: LONG, grace: LONG };
    let (output, word) = tokio::join!(shell.exec.exec(&asked, &cancel), async {
        let word = shell.word().await;
        cancel.cancel();
        word
    });
    assert_eq!(word, "ready\n");
    assert_eq!(output.for_llm, "waiting\nbye\n[cancelled; the command was stopped]");
    assert!(output.is_error && !shell.alive());
}

#[tokio::test]
async fn nobody_is_asked_to_end_twice() {
    let shell = Shell::new();
    shell.tree.fifo("ws/ready");
    let cancel = CancellationToken::new();
    // It takes its time to end, so that a second request would find it.
    let command = "trap 'echo asked; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit' TERM; \
                   echo ready > ready; while :; do :; done";
    let asked = RunningExec { command, timeout: LONG, grace: LONG };
    let (output, _) = tokio::join!(shell.exec.exec(&asked, &cancel), async {
        shell.word().await;
        cancel.cancel();
    });
    assert_eq!(output.for_llm, "asked\n[cancelled; the command was stopped]");
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_killed() {
    let shell = Shell::new();
    shell.tree.fifo("ws/ready");
    let never = CancellationToken::new();
    let asked =
        RunningExec { command: "trap '' TERM; sleep 1000 & echo ready > ready; wait", timeout: LONG, grace: LONG };
    tokio::select! {
        output = shell.exec.exec(&asked, &never) => panic!("it ended: {}", output.for_llm),
        word = shell.word() => assert_eq!(word, "ready\n"),
    }
    // The kill was sent; the kernel needs a moment for it.
    while shell.alive() {
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn a_command_that_cannot_start_says_why() {
    let shell = Shell::new();
    let gone = Exec { workspace: shell.tree.at("gone"), ..shell.exec.clone() };
    let asked = RunningExec { command: "true", timeout: LONG, grace: LONG };
    let output = gone.exec(&asked, &CancellationToken::new()).await;
    assert!(output.is_error && output.for_llm.starts_with("the command could not be started: "), "{}", output.for_llm);
}

#[tokio::test]
async fn the_shell_is_the_one_that_is_set_and_the_model_is_told_its_name() {
    let shell = Shell::new();
    let bash = Exec { shell: ExecShell::new("/bin/bash".into()), ..shell.exec.clone() };
    let asked = RunningExec { command: "[[ a == a ]] && echo {a,b}", timeout: LONG, grace: SHORT };
    assert_eq!(bash.exec(&asked, &CancellationToken::new()).await.for_llm, "a b\n");
    let told = |exec: &Exec| exec.definition().function.description;
    assert!(told(&bash).starts_with("Runs a command with `/bin/bash -c` in the workspace"), "{}", told(&bash));
    assert!(told(&shell.exec).starts_with("Runs a command with `sh -c` in the workspace"), "{}", told(&shell.exec));
    let gone = Exec { shell: ExecShell::new("/nowhere/sh".into()), ..shell.exec.clone() };
    let ran = gone.exec(&asked, &CancellationToken::new()).await;
    assert!(ran.is_error && ran.for_llm.starts_with("the command could not be started: "), "{}", ran.for_llm);
}

#[tokio::test]
async fn a_command_has_been_nowhere_before() {
    let shell = Shell::new();
    let mut exec = shell.exec.clone();
    exec.env.extend([("OLDPWD".into(), "/".into()), ("CDPATH".into(), "/".into())]);
    let asked = RunningExec { command: "echo \"${OLDPWD-none} ${CDPATH-none}\"", timeout: LONG, grace: SHORT };
    assert_eq!(exec.exec(&asked, &CancellationToken::new()).await.for_llm, "none none\n");
}
