//! Ways past the guard that somebody found, and work that looks like them.

use pintle_domain::json::{Value, json};

use super::*;

fn bash(command: impl Into<String>) -> (&'static str, Value) {
    ("Bash", json!({ "command": command.into() }))
}

fn write(path: impl Into<String>) -> (&'static str, Value) {
    ("Write", json!({ "file_path": path.into(), "content": "" }))
}

#[test]
fn what_is_too_much_to_read_is_refused() {
    let (_dir, kept, cwd) = linked();
    let nested =
        |open: &str, close: &str, times: usize| bash(format!("{}rm -rf ~{}", open.repeat(times), close.repeat(times)));
    let held = [
        nested("$(", ")", 13),
        nested("( ", " )", 25),
        nested("{ ", "; }", 31),
        nested("eval ", "", 22),
        nested("sudo ", "", 22),
        nested("if true; then ", "; fi", 30),
        nested("f() { ", "; }; f", 16),
        bash(format!("echo {}; rm -rf ~", "a ".repeat(1100))),
        bash(format!("rm {} lnk/settings.json", (0..1100).map(|at| format!("s{at} ")).collect::<String>())),
        bash(format!("rm -rf ~ # {}", "x".repeat(70_000))),
        bash("rm x{1..3000} lnk/settings.json"),
        bash(format!("env -S 'rm {}lnk/settings.json'", "a ".repeat(1100))),
    ];
    for (tool, arguments) in held {
        let looked = kept.look(&event("claude", tool, (arguments.clone(), &cwd)));
        assert!(matches!(looked, Looked::Held(_)), "{arguments:.120}");
    }
    let free = [
        bash("function f { ls; }; f"),
        bash("select at in a b; do break; done"),
        bash("for at in {1..5000}; do echo $at; done"),
        bash("echo {1..5000} | wc"),
        bash(format!("git add {}", "a.rs ".repeat(900))),
        bash("( ( ( cargo test ) ) )"),
    ];
    for (tool, arguments) in free {
        let looked = kept.look(&event("claude", tool, (arguments.clone(), &cwd)));
        assert_eq!(looked, Looked::Free, "{arguments:.120}");
    }
}

#[test]
fn a_second_name_is_kept_like_the_first() {
    let (dir, kept, cwd) = linked();
    let settings = dir.path().join("home/.claude/settings.json");
    std::fs::write(&settings, "{}").unwrap();
    std::fs::write(dir.path().join("store/x.db"), "").unwrap();
    std::fs::hard_link(&settings, dir.path().join("work/hard")).unwrap();
    std::fs::hard_link(dir.path().join("store/x.db"), dir.path().join("work/harder")).unwrap();
    std::fs::write(dir.path().join("work/one"), "").unwrap();
    std::fs::hard_link(dir.path().join("work/one"), dir.path().join("work/two")).unwrap();
    let held = [
        write("hard"),
        write("harder"),
        bash("echo {} > hard"),
        bash("cp -s ~/.claude/settings.json q && echo {} > q"),
        bash("cp -rs ~/.claude/. q"),
        bash("cp -P c.toml q && echo x > q"),
        bash("cp -a lnk q; echo x > q/settings.json"),
        bash("rsync -a c.toml q; echo x > q"),
    ];
    for (tool, arguments) in held {
        let looked = kept.look(&event("claude", tool, (arguments.clone(), &cwd)));
        assert!(matches!(looked, Looked::Held(_)), "{arguments}");
    }
    let free = [
        write("two"),
        write("one"),
        bash("cp -r sub q"),
        bash("cp -a one three && echo x > three"),
        bash("mv one three"),
        bash("rsync -a sub/ q/"),
        bash("cp ~/.claude/settings.json q"),
    ];
    for (tool, arguments) in free {
        let looked = kept.look(&event("claude", tool, (arguments.clone(), &cwd)));
        assert_eq!(looked, Looked::Free, "{arguments}");
    }
}

#[test]
fn steps_up_are_taken_as_the_system_and_as_programs_take_them() {
    let (dir, kept, cwd) = linked();
    symlink(dir.path().join("home"), dir.path().join("work/far")).unwrap();
    let held = [
        write("nowhere/../c.toml"),
        write("nowhere/../lnk/settings.json"),
        write("far/../lnk/settings.json"),
        write("far/.claude/../.claude/settings.json"),
        write(format!("{}lnk/settings.json", "sub/../".repeat(700))),
    ];
    for (tool, arguments) in held {
        let looked = kept.look(&event("claude", tool, (arguments.clone(), &cwd)));
        assert!(matches!(looked, Looked::Held(_)), "{arguments:.120}");
    }
    let free = write("nowhere/../sub/x.rs");
    assert_eq!(kept.look(&event("claude", free.0, (free.1, &cwd))), Looked::Free);
}

#[test]
fn a_folder_above_linked_settings_is_not_taken_away() {
    let (dir, kept, cwd) = linked();
    std::fs::create_dir_all(dir.path().join("home/dot/deep/claude")).unwrap();
    std::fs::write(dir.path().join("home/dot/deep/claude/settings.json"), "{}").unwrap();
    std::fs::remove_dir(dir.path().join("home/.claude")).unwrap();
    symlink("dot/deep/claude", dir.path().join("home/.claude")).unwrap();
    for command in
        ["rm -rf ~/dot/deep/claude", "rm -rf ~/dot/deep", "rm -rf ~/dot", "mv ~/dot ~/dot2", "chmod -R 000 ~/dot"]
    {
        let (tool, arguments) = bash(command);
        let looked = kept.look(&event("claude", tool, (arguments, &cwd)));
        assert!(matches!(looked, Looked::Held(_)), "{command}");
    }
    for command in ["rm -rf ~/dots", "ls -R ~/dot", "cat ~/dot/vimrc", "rm -rf sub"] {
        let (tool, arguments) = bash(command);
        assert_eq!(kept.look(&event("claude", tool, (arguments, &cwd))), Looked::Free, "{command}");
    }
}
