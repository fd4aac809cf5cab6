//! The confinement of commands. Without Landlock in the kernel there is nothing to test, and that is printed.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use landlock::{AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use tokio_util::sync::CancellationToken;

use super::Tree;
use crate::tools::exec::{Exec, ExecGuard, ExecShell, RunningExec, exec_helper_main, helper_args};
use crate::tools::protected::Protected;
use crate::tools::sandbox::{Confinement, Enforced, confine, confine_in};

fn tree() -> Tree {
    let tree = Tree::new(&[
        ("ws/src/a", "a\n"),
        ("ws/note", "note\n"),
        ("other/b", "b\n"),
        ("home/deep/key", "key\n"),
        ("spare/pintle.toml", "evil\n"),
    ]);
    tree.link("ws/src/link", "../../home/db");
    fs::hard_link(tree.at("ws/pintle.toml"), tree.at("ws/twin")).unwrap();
    tree
}

/// Asked of the kernel without our own code, which might only believe that there is none.
fn kernel_has_landlock() -> bool {
    let strict = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    strict.handle_access(AccessFs::Execute).and_then(Ruleset::create).is_ok()
}

/// Confinement is for one thread and for ever, so each check has a thread of its own.
/// `None` if the kernel has no Landlock.
fn confined<T: Send>(protected: &Protected, check: impl FnOnce(&Confinement) -> T + Send) -> Option<T> {
    let expected = kernel_has_landlock();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let confinement = confine(protected).unwrap();
            assert_eq!(confinement.enforced != Enforced::Not, expected);
            expected.then(|| check(&confinement))
        });
        thread.join().unwrap()
    })
}

fn skipped() {
    println!("skipped: this kernel has no Landlock");
}

#[test]
fn protected_folders_can_neither_be_read_nor_changed() {
    let tree = tree();
    let ran = confined(&tree.protected, |_| {
        assert!(fs::read(tree.at("home/db")).is_err());
        assert!(fs::read(tree.at("home/deep/key")).is_err());
        assert!(fs::read(tree.at("ws/src/link")).is_err());
        assert!(fs::read_dir(tree.at("home")).is_err());
        assert!(fs::write(tree.at("home/db"), "evil").is_err());
        assert!(fs::write(tree.at("home/new"), "evil").is_err());
        assert!(fs::remove_file(tree.at("home/db")).is_err());
        assert!(fs::rename(tree.at("home"), tree.at("moved")).is_err());
        assert!(fs::rename(tree.at("home/db"), tree.at("other/db")).is_err());
        assert!(fs::hard_link(tree.at("home/db"), tree.at("other/db")).is_err());
    });
    ran.unwrap_or_else(skipped);
    assert_eq!(tree.text("home/db"), "the home's data\n");
}

#[test]
fn protected_files_can_be_read_and_not_changed_by_any_means() {
    let tree = tree();
    let config = tree.at("ws/pintle.toml");
    let ran = confined(&tree.protected, |confinement| {
        assert_eq!(fs::read_to_string(&config).unwrap(), "secret_of = 1\n");
        assert!(fs::write(&config, "evil").is_err());
        assert!(fs::OpenOptions::new().append(true).open(&config).is_err());
        assert!(fs::remove_file(&config).is_err());
        assert!(fs::rename(&config, tree.at("ws/src/x")).is_err());
        assert!(fs::rename(tree.at("spare/pintle.toml"), &config).is_err());
        assert!(fs::rename(tree.at("ws/note"), &config).is_err());
        assert!(fs::rename(tree.at("ws"), tree.at("moved")).is_err());
        assert!(fs::hard_link(&config, tree.at("ws/src/x")).is_err());
        assert!(fs::write(tree.at("ws/twin"), "evil").is_err());
        // One that does not exist yet, too.
        assert!(fs::write(tree.at("ws/later.toml"), "evil").is_err());
        assert_eq!(confinement.hard_linked, [config.canonicalize().unwrap()]);
        if confinement.enforced == Enforced::Fully {
            let path = nix::unistd::truncate(&config, 0);
            assert!(path.is_err());
        }
    });
    ran.unwrap_or_else(skipped);
    assert_eq!(tree.text("ws/pintle.toml"), "secret_of = 1\n");
    assert!(!tree.at("ws/later.toml").exists());
}

#[test]
fn everything_beside_the_way_works_as_before() {
    let tree = tree();
    let ran = confined(&tree.protected, |_| {
        assert_eq!(fs::read_to_string(tree.at("ws/note")).unwrap(), "note\n");
        fs::write(tree.at("ws/note"), "changed").unwrap();
        fs::write(tree.at("ws/src/new"), "new").unwrap();
        fs::create_dir(tree.at("ws/src/d")).unwrap();
        fs::rename(tree.at("ws/src/new"), tree.at("other/new")).unwrap();
        fs::hard_link(tree.at("other/b"), tree.at("other/c")).unwrap();
        fs::remove_file(tree.at("other/b")).unwrap();
        assert!(fs::read_dir(tree.at("ws")).unwrap().count() >= 4);
        assert_eq!(fs::read_dir(tree.at("other")).unwrap().count(), 2);
        fs::write("/dev/null", "x").unwrap();
        // As documented: nothing new directly on the way, and no listing on the way to a folder.
        assert!(fs::write(tree.at("ws/new"), "x").is_err());
        assert!(fs::create_dir(tree.at("new")).is_err());
        assert!(fs::read_dir(tree.at("home").parent().unwrap()).is_err());
        assert!(fs::metadata(tree.at("home/db")).is_ok());
    });
    ran.unwrap_or_else(skipped);
}

#[test]
fn without_folders_to_protect_all_can_be_read_and_without_anything_all_done() {
    let tree = tree();
    let files = Protected { dirs: vec![], ..tree.protected.clone() };
    confined(&files, |_| {
        assert!(fs::read_dir("/").is_ok());
        assert_eq!(fs::read_to_string(tree.at("home/db")).unwrap(), "the home's data\n");
        fs::write(tree.at("home/new"), "x").unwrap();
        assert!(fs::write(tree.at("ws/pintle.toml"), "evil").is_err());
    })
    .unwrap_or_else(skipped);
    confined(&Protected::default(), |_| fs::write(tree.at("ws/pintle.toml"), "mine").unwrap()).unwrap_or_else(skipped);
}

/// The words behind the `--` that only the test below puts into the command line of a test binary.
fn helper_words() -> Option<Vec<OsString>> {
    let words: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    words.iter().any(|word| word == "--command").then_some(words)
}

/// A tool whose helper is this test, named `test`.
fn through_the_helper(tree: &Tree, test: &str, unconfined: bool) -> Exec {
    let name = format!("tools::tests::sandbox::{test}");
    let guard = ExecGuard {
        program: std::env::current_exe().unwrap(),
        args: ["--exact", &name, "--nocapture", "--"].map(Into::into).to_vec(),
    };
    Exec {
        workspace: tree.at("ws"),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        guard: Some(guard),
        protected: tree.protected.clone(),
        shell: ExecShell::default(),
        unconfined,
    }
}

fn ran(exec: &Exec, command: &str) -> String {
    let asked = RunningExec { command, timeout: Duration::from_secs(600), grace: Duration::from_secs(600) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(exec.exec(&asked, &CancellationToken::new())).for_llm
}

/// Takes Landlock away from this thread and from all that it starts, as an older kernel would answer.
fn without_landlock() {
    // `landlock_create_ruleset` has this number everywhere.
    let calls = [(444, Vec::new())].into();
    let no_such_call = SeccompAction::Errno(nix::libc::ENOSYS.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, no_such_call, arch).unwrap();
    seccompiler::apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
    assert!(!kernel_has_landlock());
}

#[test]
fn without_landlock_no_command_runs_unless_somebody_accepts_that() {
    if let Some(words) = helper_words() {
        std::process::exit(exec_helper_main(words).into());
    }
    let tree = tree();
    let [refused, accepted] = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            without_landlock();
            [false, true].map(|unconfined| {
                let test = "without_landlock_no_command_runs_unless_somebody_accepts_that";
                ran(&through_the_helper(&tree, test, unconfined), "echo ran > src/ran_$$; echo it ran; ls src")
            })
        });
        thread.join().unwrap()
    });
    assert!(refused.contains("the command was not run: this kernel has no Landlock"), "{refused}");
    assert!(refused.contains("unconfined = true") && refused.contains("[exit code 126]"), "{refused}");
    assert!(!refused.contains("it ran"), "{refused}");
    assert!(accepted.contains("it ran\n") && accepted.matches("ran_").count() == 1, "{accepted}");
}

/// Runs itself once more, as the helper that the binary is in real life.
#[test]
fn the_exec_tool_runs_commands_through_the_helper() {
    if let Some(words) = helper_words() {
        std::process::exit(exec_helper_main(words).into());
    }
    let tree = tree();
    let exec = through_the_helper(&tree, "the_exec_tool_runs_commands_through_the_helper", true);
    let landlock = kernel_has_landlock();
    let command = "echo self $$ $(cut -d ' ' -f 6 /proc/$$/stat); echo ok > src/ok; cat pintle.toml; \
                   (echo evil > pintle.toml) 2>&1; cat ../home/db 2>&1; echo end; exit 7";
    let output = ran(&exec, command);
    assert!(
        output.contains("secret_of = 1\n")
            && output.contains("end\n[exit code 7]\n[These belong to the program that runs you"),
        "{output}"
    );
    assert_eq!(tree.text("ws/src/ok"), "ok\n");
    // The helper has become the shell, which leads the session.
    let line = output.lines().find_map(|line| line.strip_prefix("self ")).unwrap();
    let (shell, session) = line.split_once(' ').unwrap();
    assert_eq!(shell, session);
    if landlock {
        assert!(!output.contains("the home's data"), "{output}");
        assert_eq!(tree.text("ws/pintle.toml"), "secret_of = 1\n");
    } else {
        skipped();
    }
}

#[test]
fn a_helper_that_is_called_wrongly_runs_nothing() {
    let marker = tempfile::tempdir().unwrap();
    let touch = format!("touch {}", marker.path().join("ran").display());
    for words in [
        vec![],
        vec!["--command"],
        vec!["--file"],
        vec!["--fil", "x", "--command", &touch],
        vec!["--command", &touch, "more"],
        vec!["--dir", "/x"],
        vec!["--unconfined"],
    ] {
        let code = exec_helper_main(words.iter().map(OsString::from));
        assert_eq!(code, 126, "{words:?}");
    }
    assert!(!marker.path().join("ran").exists());
    let protected = Protected {
        files: vec!["/a".into()],
        dirs: vec![Path::new("/b").into()],
        names: vec!["n".into()],
        ..Protected::default()
    };
    let shell = ExecShell::default();
    let args = |unconfined| helper_args(&protected, &shell, unconfined, "c");
    assert_eq!(args(false), ["--file", "/a", "--dir", "/b", "--name", "n", "--shell", "/bin/sh", "--command", "c"]);
    assert_eq!(
        args(true),
        ["--file", "/a", "--dir", "/b", "--name", "n", "--shell", "/bin/sh", "--unconfined", "--command", "c"]
    );
}

/// With the configuration in the root of the project, as most people have it.
#[test]
fn the_top_level_of_the_workspace_is_open_but_for_what_is_protected() {
    let tree = Tree::new(&[
        ("ws/src/a", "a\n"),
        ("ws/note", "note\n"),
        ("ws/guards/guard.py", "guard\n"),
        ("spare", "evil\n"),
    ]);
    let ws = tree.at("ws").canonicalize().unwrap();
    let protected = Protected {
        files: ["pintle.toml", "guards/guard.py", "later.toml"].map(|name| ws.join(name)).to_vec(),
        names: vec!["later.toml".into()],
        beside: [(ws.join("guards"), "hook g".into()), (ws.clone(), "hook h".into())].into(),
        ..tree.protected.clone()
    };
    let may = std::thread::scope(|scope| {
        scope.spawn(|| nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).is_ok()).join().unwrap()
    });
    if !kernel_has_landlock() || !may {
        println!("skipped: no Landlock, or no mount namespace for a thread of this user");
        return;
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            confine_in(&ws, &protected).unwrap();
            check_open(&tree);
        });
    });
    assert_eq!(
        (tree.text("ws/pintle.toml"), tree.text("ws/guards/guard.py")),
        ("secret_of = 1\n".into(), "guard\n".into())
    );
    assert_eq!(
        (tree.text("ws/new"), tree.text("ws/dir/file")),
        ("new".into(), "x".into()),
        "what was made is really there"
    );
    assert!(!tree.at("ws/note").exists());
}

fn check_open(tree: &Tree) {
    // What stands beside a hook's script may be loaded by it.
    fs::write(tree.at("ws/guards/json.py"), "evil").unwrap_err();
    // All that builds, tests and version control do at the top level.
    fs::write(tree.at("ws/new"), "new").unwrap();
    fs::create_dir(tree.at("ws/dir")).unwrap();
    fs::write(tree.at("ws/dir/file"), "x").unwrap();
    fs::rename(tree.at("ws/dir"), tree.at("ws/moved")).unwrap();
    fs::rename(tree.at("ws/moved"), tree.at("ws/dir")).unwrap();
    fs::remove_file(tree.at("ws/note")).unwrap();
    // The protected names alone are out of reach, by any means.
    for file in ["ws/pintle.toml", "ws/guards/guard.py"] {
        assert!(fs::read(tree.at(file)).is_ok());
        assert!(fs::write(tree.at(file), "evil").is_err(), "{file}");
        assert!(fs::OpenOptions::new().append(true).open(tree.at(file)).is_err(), "{file}");
        assert!(fs::remove_file(tree.at(file)).is_err(), "{file}");
        assert!(fs::rename(tree.at(file), tree.at("ws/taken")).is_err(), "{file}");
        assert!(fs::rename(tree.at("ws/new"), tree.at(file)).is_err(), "{file}");
        assert!(fs::hard_link(tree.at(file), tree.at("ws/twin")).is_err(), "{file}");
        assert!(nix::unistd::truncate(&tree.at(file), 0).is_err(), "{file}");
    }
    assert!(fs::rename(tree.at("ws/guards"), tree.at("ws/elsewhere")).is_err(), "the way to it");
    assert!(fs::remove_dir_all(tree.at("ws/guards")).is_err());
    assert!(fs::rename(tree.at("ws"), tree.at("gone")).is_err(), "the workspace itself");
    // Nothing of it can be undone.
    for file in ["ws/pintle.toml", "ws/guards"] {
        assert!(nix::mount::umount(&tree.at(file)).is_err(), "{file}");
    }
    let none = None::<&Path>;
    let again = nix::mount::MsFlags::MS_REMOUNT | nix::mount::MsFlags::MS_BIND;
    assert!(nix::mount::mount(none, &tree.at("ws/pintle.toml"), none, again, none).is_err());
    assert!(fs::read(tree.at("home/db")).is_err(), "the home stays out of reach");
}
