//! How commands end, and where and with what they run.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use pintle_process::command::{CommandEnd, CommandResult, CommandSpec, folder};

use super::stage::{LONG, Stage, env, is_gone, text};

#[tokio::test]
async fn codes_and_signals() {
    let stage = Stage::new();
    fs::write(stage.path("plain"), "not executable").unwrap();
    let rows = [
        ("exit 0", CommandEnd::Exit(0)),
        ("exit 1", CommandEnd::Exit(1)),
        ("exit 2", CommandEnd::Exit(2)),
        ("./plain", CommandEnd::Exit(126)),
        ("no-such-program", CommandEnd::Exit(127)),
        ("exit 255", CommandEnd::Exit(255)),
        ("", CommandEnd::Exit(0)),
        ("kill -KILL $$", CommandEnd::Signal(9)),
        ("kill -TERM $$", CommandEnd::Signal(15)),
        ("kill -ABRT $$", CommandEnd::Signal(6)),
        // The signal of another process is a code of the shell.
        ("sh -c 'kill -KILL $$'; exit $?", CommandEnd::Exit(137)),
    ];
    for (command, expected) in rows {
        assert_eq!(stage.run(command).await.end, expected, "{command}");
    }
    assert!(stage.tasks.is_empty());
}

#[tokio::test]
async fn what_it_says_is_kept_apart() {
    let stage = Stage::new();
    let ran = stage.run("echo out; echo err >&2; exit 2").await;
    assert_eq!((ran.end, text(&ran.stdout), text(&ran.stderr)), (CommandEnd::Exit(2), "out\n", "err\n"));
    let ran = stage.run("no-such-program").await;
    assert!(text(&ran.stderr).contains("no-such-program: not found"), "{ran:?}");
}

#[tokio::test]
async fn it_runs_in_its_folder() {
    let stage = Stage::new();
    fs::create_dir(stage.path("sub")).unwrap();
    let workspace = stage.folder.path().canonicalize().unwrap();
    for (cwd, expected) in [("", ""), ("sub", "sub"), ("sub/..", ""), ("./sub", "sub")] {
        let spec = CommandSpec::new("pwd -P".into(), folder(cwd, &workspace), env());
        let ran = spec.run(Bytes::new(), stage.limit(LONG), &stage.cancel, &stage.tasks).await;
        let expected = if expected.is_empty() { workspace.clone() } else { workspace.join(expected) };
        assert_eq!(Path::new(text(&ran.stdout).trim()), expected, "{cwd}");
    }
}

#[tokio::test]
async fn without_its_folder_it_does_not_run() {
    let stage = Stage::new();
    fs::write(stage.path("file"), "").unwrap();
    for name in ["missing", "file"] {
        let dir = stage.path(name);
        let spec = CommandSpec::new("echo ran".into(), dir.clone(), env());
        let CommandResult { end, stdout, stderr, .. } =
            spec.run(Bytes::new(), stage.limit(LONG), &stage.cancel, &stage.tasks).await;
        let why = format!("its folder `{}` does not exist or is not a folder", dir.display());
        assert_eq!((end, stdout, stderr), (CommandEnd::CannotStart(why), Bytes::new(), Bytes::new()));
    }
}

#[tokio::test]
async fn what_no_program_can_be_given_does_not_run() {
    let stage = Stage::new();
    let ran = stage.run("echo a\0b").await;
    assert_eq!(ran.end, CommandEnd::CannotStart("`/bin/sh`: nul byte found in provided data".into()));
    // One argument may be 128 KiB long on Linux.
    let ran = stage.run(&format!(": {}", "x".repeat(1 << 20))).await;
    let CommandEnd::CannotStart(why) = ran.end else { panic!("it ran: {ran:?}") };
    assert!(why.contains("Argument list too long"), "{why}");
}

#[tokio::test]
async fn its_environment_is_what_was_given_and_no_more() {
    let stage = Stage::new();
    let vars = vec![("A".into(), "1 \n2".into()), ("EMPTY".into(), "".into()), ("PATH".into(), "/usr/bin:/bin".into())];
    let spec = CommandSpec::new("cat /proc/$$/environ".into(), stage.folder.path().into(), vars);
    let ran = spec.run(Bytes::new(), stage.limit(LONG), &stage.cancel, &stage.tasks).await;
    assert_eq!(text(&ran.stdout), "A=1 \n2\0EMPTY=\0PATH=/usr/bin:/bin\0");
    // A foreign PATH does not choose the shell.
    let spec = CommandSpec::new("echo $PATH".into(), stage.folder.path().into(), vec![("PATH".into(), "/none".into())]);
    let ran = spec.run(Bytes::new(), stage.limit(LONG), &stage.cancel, &stage.tasks).await;
    assert_eq!((ran.end, text(&ran.stdout)), (CommandEnd::Exit(0), "/none\n"));
}

#[tokio::test]
async fn it_leads_a_group_of_its_own_with_three_descriptors() {
    let stage = Stage::new();
    // The shell itself looks, so that nothing else is open but the folder that it reads.
    let look = "read -r _ _ _ _ group _ </proc/self/stat; echo $$ $group; cd /proc/$$/fd; echo *";
    let ran = stage.run(look).await;
    let said = text(&ran.stdout);
    let (first, descriptors) = said.split_once('\n').unwrap();
    let (leader, group) = first.split_once(' ').unwrap();
    assert_eq!((leader, descriptors), (group, "0 1 2 3\n"), "{said}");
    assert!(is_gone(leader));
}
