//! Texts that bash and dash read differently: each shell is told what it would do, and one that is not known is told
//! both.

use pintle_domain::shell::ShellKind;

use crate::judge::dangers;
use crate::{SHELLS, WORKSPACE, facts_as};

/// Whether somebody who guards against `want` would notice it.
fn shows(shell: ShellKind, text: &str) -> bool {
    let facts = facts_as(shell, text, WORKSPACE);
    facts.unknown || facts.deletes.iter().any(|path| path == "/x") || !dangers(&facts).is_empty()
}

/// What dash runs, and bash does not.
const OF_DASH: &[&str] = &[
    "((rm -rf /x))",
    "[[ a || rm -rf /x ]]",
    "[[ a && rm -rf /x ]]",
    "[[ a ]] || rm -rf /x",
    "echo x &>/dev/null rm -rf /x",
    "echo x &>>/dev/null rm -rf /x",
    "echo $'\\'; rm -rf /x; echo '",
    "x=rm; declare x=ls; $x -rf /x",
    "x=rm; typeset x=ls; $x -rf /x",
    "x=rm; printf -v x ls; $x -rf /x",
    "x=rm; x+=z; $x -rf /x",
    "${RANDOM:-rm} -rf /x",
    "$RANDOM rm -rf /x",
    "$SECONDS rm -rf /x",
    "cd /; pushd /code/app; rm -rf x",
    "cd / && builtin cd /code/app; rm -rf x",
    "time -o /x ls",
    "echo 'a\\nrm -rf /x' | sh",
    "exec {fd}>/x",
    "12>/x ls",
    "[[ a > /x ]]",
    "((a > /x))",
    "echo '\\0162m -rf /x' | dash",
];

/// What bash runs, and dash does not.
const OF_BASH: &[&str] = &[
    "{rm,-rf,/x}",
    "$'rm' -rf /x",
    "$\"rm\" -rf /x",
    "declare x=rm; $x -rf /x",
    "x=r; x+=m; $x -rf /x",
    "printf -v x rm; $x -rf /x",
    "pushd / && rm -rf x",
    "time rm -rf /x",
    "function f { rm -rf /x; }; f",
    "cat <(rm -rf /x)",
    "rm -rf /x &>/dev/null",
    "bash <<< 'rm -rf /x'",
    "x=(rm -rf /x); \"${x[@]}\"",
    "echo 'rm -rf /x' |& bash",
    "exec -a ls rm -rf /x",
    "coproc rm -rf /x",
    "source /dev/stdin <<< 'rm -rf /x'",
];

#[test]
fn what_only_dash_runs_is_told_of_dash_and_of_a_shell_that_is_not_known() {
    for text in OF_DASH {
        assert!(shows(ShellKind::Dash, text), "{text}: {:?}", facts_as(ShellKind::Dash, text, WORKSPACE));
        assert!(shows(ShellKind::Unknown, text), "{text}: {:?}", facts_as(ShellKind::Unknown, text, WORKSPACE));
        let inner = format!("sh -c {}", quoted(text));
        assert!(SHELLS.iter().all(|shell| shows(*shell, &inner)), "{inner}");
    }
}

#[test]
fn what_only_bash_runs_is_told_of_bash_and_of_a_shell_that_is_not_known() {
    for text in OF_BASH {
        assert!(shows(ShellKind::Bash, text), "{text}: {:?}", facts_as(ShellKind::Bash, text, WORKSPACE));
        assert!(shows(ShellKind::Unknown, text), "{text}: {:?}", facts_as(ShellKind::Unknown, text, WORKSPACE));
        let inner = format!("bash -c {}", quoted(text));
        assert!(SHELLS.iter().all(|shell| shows(*shell, &inner)), "{inner}");
    }
}

#[test]
fn a_text_that_both_read_alike_is_told_once() {
    for text in ["rm -rf build; cd build; ls > out", "f() { git status; }; f | sort", "for i in a b; do make $i; done"]
    {
        let [bash, dash, either] = SHELLS.map(|shell| facts_as(shell, text, WORKSPACE));
        assert_eq!((&bash, &bash), (&dash, &either), "{text}");
    }
}

#[test]
fn dash_alone_is_not_told_what_it_does_not_do() {
    // Words that are not a command to dash stay words.
    for text in ["echo {rm,-rf,/x}", "echo $'rm'", "[ a = b ] && ls", "[[ $x == y ]] && ls"] {
        let facts = facts_as(ShellKind::Dash, text, WORKSPACE);
        assert!(!facts.unknown && facts.deletes.is_empty(), "{text}: {facts:?}");
    }
}

/// The folders in which `ls` may run.
#[track_caller]
fn check_folders(text: &str, expected: &[&str]) {
    for shell in SHELLS {
        let facts = facts_as(shell, text, WORKSPACE);
        let mut found: Vec<&str> =
            facts.commands.iter().filter(|found| found.name == "ls").map(|found| found.cwd.as_str()).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, expected, "{text}, {shell:?}");
    }
}

#[test]
fn a_cd_may_have_failed_unless_the_text_has_asked() {
    let both = ["/code/app", "/code/app/b"];
    for text in [
        "cd b; ls",
        "cd b\nls",
        "cd b || true; ls",
        "cd b && true; ls",
        "f() { cd b; }; f; ls",
        "eval 'cd b'; ls",
        "{ cd b; }; ls",
        "if cd b; then true; fi; ls",
        "! cd b && ls",
        "set -e; { cd b; ls; } || true",
        "set -e; cd b || true; ls",
        "set -e; set +e; cd b; ls",
        "if true; then cd b; fi; ls",
        "command cd b; ls",
    ] {
        check_folders(text, &both);
    }
    for text in [
        "cd b && ls",
        "cd b || exit; ls",
        "cd b || exit 1\nls",
        "set -e; cd b; ls",
        "set -e\ncd b\nls",
        "set -o errexit; cd b; ls",
        "if cd b; then ls; fi",
        "{ cd b; } && ls",
        "eval 'cd b' && ls",
        "f() { cd b; }; f && ls",
        "if ! cd b; then exit 1; fi; cd b && ls",
        "cd /code/app; cd ./b && ls",
    ] {
        check_folders(text, if text.starts_with("if !") { &["/code/app/b", "/code/app/b/b"] } else { &both[1..] });
    }
    check_folders("cd b || ls", &both[..1]);
    check_folders("if cd b; then true; else ls; fi", &both[..1]);
    check_folders("cd ..; ls", &["/code"]);
    check_folders("cd b; cd -; ls", &both[..1]);
    check_folders("OLDPWD=b; cd - && ls", &both[1..]);
    check_folders("HOME=b; cd && ls", &both[1..]);
    check_folders("HOME=$PWD; cd ~/b && ls", &both[1..]);
    check_folders("(cd b); ls", &both[..1]);
    check_folders("cd b & ls", &both[..1]);
    check_folders("cd a; cd b; ls", &["/code/app", "/code/app/a", "/code/app/a/b", "/code/app/b"]);
    check_folders("while true; do cd b; done; ls", &[""]);
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
