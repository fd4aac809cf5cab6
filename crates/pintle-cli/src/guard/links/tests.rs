//! Where links, patterns and lists lead in folders of their own.

use std::os::unix::fs::symlink;

mod ways;

use super::reals::real;
use super::*;

#[test]
fn links_are_followed_wherever_they_end() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for folder in ["home/.claude", "work"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    symlink(root.join("home/.claude"), root.join("work/lnk")).unwrap();
    symlink("../home/.claude/settings.json", root.join("work/s.json")).unwrap();
    symlink(root.join("home"), root.join("person")).unwrap();
    let text = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let (cwd, home) = (text("work"), text("person"));
    let begin = Begin::of(&cwd, &home, Vec::new());
    let settings = text("person/.claude/settings.json");
    let ways = ["lnk/settings.json", "s.json", "/proc/self/cwd/s.json", "~/.claude/settings.json"];
    let urls = ["FILE://", "file://localhost", "file:"].map(|scheme| format!("{scheme}{}", text("work/s.json")));
    for path in ways.into_iter().chain(urls.iter().map(String::as_str)) {
        assert!(begin.leads_to(path).contains(&settings), "{path}");
    }
    let found = begin.leads_to("lnk/x/../settings.json");
    assert!(found.iter().any(|found| found.starts_with(&text("person/.claude"))), "{found:?}");
    assert_eq!(begin.leads_to("new/a.rs"), [""; 0]);
    symlink("loop", root.join("work/loop")).unwrap();
    assert_eq!(begin.leads_to("loop/x"), [""; 0]);
}

#[test]
fn settings_that_are_links_are_kept_where_they_lie() {
    use pintle_domain::json::json;
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for folder in ["home", "work/.codex", "work/common", "dots/claude/hooks", "dots/pi", "moved"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    symlink(root.join("dots/claude"), root.join("home/.claude")).unwrap();
    symlink(root.join("dots/pi"), root.join("home/.pi")).unwrap();
    symlink("common", root.join("work/.gemini")).unwrap();
    symlink("../common/codex.toml", root.join("work/.codex/config.toml")).unwrap();
    symlink(root.join("moved"), root.join("lnk")).unwrap();
    let text = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let kept = KeptFiles { home: text("home"), used: Vec::new(), moved: vec![text("lnk")], self_edit: false };
    let cwd = text("work");
    let looked =
        |tool: &str, arguments: pintle_domain::json::Value| kept.look(&event("claude", tool, (arguments, &cwd)));
    let write = |path: &str| looked("Write", json!({"file_path": path, "content": ""}));
    for path in [
        text("dots/claude/settings.json"),
        text("dots/claude/hooks/x.sh"),
        text("dots/pi/agent/x"),
        text("moved/x"),
        "../dots/claude/settings.json".to_owned(),
        "common/settings.json".to_owned(),
        "common/codex.toml".to_owned(),
    ] {
        assert!(matches!(write(&path), Looked::Held(_)), "{path}");
    }
    let shell = looked("Bash", json!({"command": "cd common && echo {} > settings.json"}));
    assert!(matches!(shell, Looked::Held(_)), "{shell:?}");
    for path in [text("dots/vim"), text("dots/x/settings.json"), "common/x.md".to_owned(), "x.toml".to_owned()] {
        assert_eq!(write(&path), Looked::Free, "{path}");
    }
}

/// A folder of work, the home folder of its person and links from the one into the other, each with its name.
fn linked() -> (tempfile::TempDir, KeptFiles, String) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for folder in ["home/.claude", "home/.codex", "work/sub", "store"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    symlink(root.join("home/.claude"), root.join("work/lnk")).unwrap();
    symlink("lnk", root.join("work/a b")).unwrap();
    symlink("../a b/settings.json", root.join("work/sub/s.json")).unwrap();
    symlink(root.join("home/.codex/new.toml"), root.join("work/c.toml")).unwrap();
    symlink(root.join("store"), root.join("work/kept")).unwrap();
    let text = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let kept = KeptFiles { home: text("home"), used: vec![text("store/x.db")], moved: Vec::new(), self_edit: false };
    (dir, kept, text("work"))
}

fn event(host: &'static str, tool: &str, (arguments, cwd): (pintle_domain::json::Value, &str)) -> HostEvent {
    let pintle_domain::json::Value::Object(arguments) = arguments else { panic!("{arguments}") };
    let call =
        pintle_domain::tool::ToolCall { id: "1".into(), tool: tool.to_owned(), raw_tool: tool.to_owned(), arguments };
    pintle_guard::clients::client_event(pintle_guard::host(host), &call, Path::new(cwd))
}

#[test]
fn every_path_of_a_call_is_followed() {
    use pintle_domain::json::json;
    let (_dir, kept, cwd) = linked();
    let patch = "*** Begin Patch\n*** Update File: a b/settings.json\n+x\n*** End Patch\n";
    let held = [
        ("claude", "Write", json!({"file_path": "a b/settings.json", "content": ""})),
        ("claude", "Write", json!({"file_path": "sub/s.json", "content": ""})),
        ("claude", "Write", json!({"file_path": "c.toml", "content": ""})),
        ("claude", "Write", json!({"file_path": "kept/x.db", "content": ""})),
        ("claude", "Bash", json!({"command": "echo {} > 'a b/settings.json'"})),
        ("claude", "Bash", json!({"command": "cd sub && tee s.json < /tmp/x"})),
        ("claude", "Bash", json!({"command": "cp x ../stor?/x.db"})),
        ("claude", "Bash", json!({"command": "rm -rf ../sto*"})),
        ("claude", "Bash", json!({"command": "cp foo/settings.json lnk"})),
        ("claude", "Bash", json!({"command": "cp -r foo/. lnk"})),
        ("claude", "Bash", json!({"command": "rm -rf lnk/"})),
        ("claude", "Bash", json!({"command": "chmod 000 'a b/settings.json'"})),
        ("codex", "apply_patch", json!({"command": patch})),
        ("claude", "mcp__fs__put", json!({"to": {"deep": ["x", {"dest": "sub/s.json"}]}})),
        ("claude", "mcp__fs__put", json!({"path": "a b/settings.json"})),
        ("claude", "mcp__fs__run", json!({"script": "echo {} > sub/s.json"})),
    ];
    for (host, tool, arguments) in held {
        let looked = kept.look(&event(host, tool, (arguments.clone(), &cwd)));
        assert!(matches!(looked, Looked::Held(_)), "{tool} {arguments}: {looked:?}");
    }
    for (tool, arguments) in [
        ("Write", json!({"file_path": "sub/t.json", "content": "see sub/s.json"})),
        ("Bash", json!({"command": "cat sub/s.json > sub/copy && ls lnk"})),
        ("mcp__fs__put", json!({"path": "sub/t.json", "content": "a b/settings.json of mine"})),
    ] {
        assert_eq!(kept.look(&event("claude", tool, (arguments.clone(), &cwd))), Looked::Free, "{tool} {arguments}");
    }
}

#[test]
fn a_pattern_is_settled_by_what_lies_there() {
    let (_dir, kept, cwd) = linked();
    let looked =
        |command: &str| kept.look(&event("claude", "Bash", (pintle_domain::json::json!({"command": command}), &cwd)));
    for command in ["find . -name '*.pyc' -delete", "prettier --write '**/*.{md,ts}'", "rm -rf */node_modules"] {
        assert_eq!(looked(command), Looked::Free, "{command}");
    }
    for command in ["find . -name '*.json' -delete", "sed -i s/a/b/ **/*.toml", "touch **/*.json"] {
        assert!(matches!(looked(command), Looked::Held(_)), "{command}");
    }
}

#[test]
fn a_link_behind_a_pattern_and_a_list_in_a_file_are_followed() {
    let (dir, kept, cwd) = linked();
    let file = |name: &str, text: &str| std::fs::write(dir.path().join("work").join(name), text).unwrap();
    file("held", "a.txt\nlnk/settings.json\n");
    file("free", "a.txt sub/b.txt\n");
    let looked =
        |command: &str| kept.look(&event("claude", "Bash", (pintle_domain::json::json!({"command": command}), &cwd)));
    for command in [
        "echo x > ln?/settings.local.json",
        "cd l* && echo x > settings.json",
        "rm ln?/new.json",
        "xargs rm < held",
        "rm $(cat held)",
        "while read f; do echo x > \"$f\"; done < held",
    ] {
        assert!(matches!(looked(command), Looked::Held(_)), "{command}");
    }
    for command in ["echo x > su?/settings.json", "rm -f *.json", "xargs rm < free", "xargs cat < held", "rm $(cat no)"]
    {
        assert_eq!(looked(command), Looked::Free, "{command}");
    }
}

#[test]
fn a_folder_with_settings_does_not_come_into_their_place() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for folder in ["home/work/src", "home/work/a/.claude", "home/work/b/.github/workflows", "home/work/c/work/.codex"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    std::fs::write(root.join("home/work/a/.claude/settings.local.json"), "{}").unwrap();
    let text = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let kept = KeptFiles { home: text("home"), used: Vec::new(), moved: Vec::new(), self_edit: false };
    let cwd = text("home/work");
    let looked =
        |command: &str| kept.look(&event("claude", "Bash", (pintle_domain::json::json!({"command": command}), &cwd)));
    for command in [
        "cp -r a/. .",
        "cp -rT a .",
        "cp -al a/. .",
        "cp -r a/. ..",
        "cp -r c/. ..",
        "rsync -a a/ .",
        "(cd a && tar c .) | tar x",
        "tar c -C a . | tar x",
        "mv a/.[!.]* .",
        "shopt -s dotglob; mv a/* .",
        "find a -mindepth 1 -maxdepth 1 -exec cp -r {} . \\;",
        "cd a && find . | cpio -pdm ..",
        "cp -r a/.claude src/",
        "rm -rf a/.claude",
        "mv src s2 && cp -r s2/. .",
        "cp -r $x/. .",
    ] {
        assert!(matches!(looked(command), Looked::Held(_)), "{command}");
    }
    for command in [
        "cp -r b/. .",
        "cp -r a src/",
        "cp -r a/. /tmp/x",
        "cp -r src/. .",
        "rsync -a a ../other/",
        "mv a/* .",
        "(cd b && tar c .) | tar x",
        "find a -name '*.md' -exec cp {} . \\;",
        "cp -r b/.github src/",
        "rm -rf b/.github",
    ] {
        assert_eq!(looked(command), Looked::Free, "{command}");
    }
}

#[test]
fn what_is_not_looked_at_as_a_whole_may_hold_settings() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("a/.claude");
    std::fs::create_dir_all(&folder).unwrap();
    let holds = |pattern: &str| has_below(&dir.path().join("a"), pattern);
    assert!(!holds(".claude/settings*.json") && !holds(".codex/**") && holds(".claude/**"));
    for number in 0..MAX_ENTRIES {
        std::fs::File::create(folder.join(number.to_string())).unwrap();
    }
    assert!(!holds(".claude/settings*.json"));
    std::fs::File::create(folder.join("one more")).unwrap();
    assert!(holds(".claude/settings*.json"));
    // A link that leads to itself is there, and nobody can look behind it.
    symlink("loop", dir.path().join("a/loop")).unwrap();
    assert!(holds("loop/x") && holds("loop/x*"));
}

#[test]
fn a_home_that_is_elsewhere_is_not_read_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for folder in ["home", "work", "srv/pintle/guard"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    std::fs::write(root.join("srv/pintle/guard/key"), "").unwrap();
    let text = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let kept = KeptFiles { home: text("home"), used: vec![text("srv/pintle")], moved: Vec::new(), self_edit: false };
    let cwd = text("work");
    let looked =
        |command: &str| kept.look(&event("claude", "Bash", (pintle_domain::json::json!({"command": command}), &cwd)));
    for command in ["grep -r x ../srv/pintle", "tar c ../srv | base64", "find ../srv -name 'k*' -exec cat {} +"] {
        assert!(matches!(looked(command), Looked::Held(_)), "{command}");
    }
    for command in ["ls ../srv/pintle", "grep -r x ../srv/other", "tar c . | base64"] {
        assert_eq!(looked(command), Looked::Free, "{command}");
    }
}

#[test]
fn more_paths_than_can_be_looked_at_are_refused() {
    use pintle_domain::json::{Value, json};
    let (_dir, kept, cwd) = linked();
    let list = |count: usize| Value::Array((0..count).map(|at| Value::from(format!("x{at}"))).collect());
    let many = |paths: Value, dir: &str| {
        let arguments = json!({"dir": dir, "ids": paths});
        kept.look(&event("claude", "mcp__fs__put", (arguments, &cwd)))
    };
    assert_eq!(many(list(1000), "src"), Looked::Free);
    assert!(matches!(many(list(20_000), "src"), Looked::Held(why) if why.contains("more paths")));
    assert!(matches!(many(list(5000), "lnk"), Looked::Held(why) if why.contains("than the 4096")));
}

#[test]
fn what_a_person_lifts_is_said() {
    let (_dir, kept, cwd) = linked();
    let lifting = KeptFiles { self_edit: true, ..kept };
    let write = |path: &str| {
        lifting.look(&event("claude", "Write", (pintle_domain::json::json!({"file_path": path, "content": ""}), &cwd)))
    };
    assert!(matches!(write("lnk/settings.json"), Looked::Lifted(_)));
    assert!(matches!(write("kept/x.db"), Looked::Held(_)));
}

#[test]
fn a_link_to_an_agent_is_that_agent_and_a_pattern_in_code_what_it_finds() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for folder in ["home/.claude", "home/.local/share/pintle/guard", "home/work/src", "bin", "versions"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    for file in [
        "home/.claude/settings.json",
        "home/.local/share/pintle/encryption.key",
        "home/.local/share/pintle/guard/pid",
        "home/work/src/a.rs",
        "versions/2.1",
    ] {
        std::fs::write(root.join(file), "").unwrap();
    }
    std::fs::write(root.join("home/work/opt"), "--bare\n").unwrap();
    symlink("../versions/2.1", root.join("bin/claude")).unwrap();
    symlink(root.join("bin/claude"), root.join("home/work/assist")).unwrap();
    let text = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let kept = KeptFiles { home: text("home"), used: vec![text("bin/claude")], moved: Vec::new(), self_edit: false };
    let cwd = text("home/work");
    let looked =
        |command: &str| kept.look(&event("claude", "Bash", (pintle_domain::json::json!({"command": command}), &cwd)));
    for command in [
        "./assist --bare -p x",
        "HOME=/tmp/x ./assist -p x",
        "claude -p $(cat opt)",
        "xargs claude < opt",
        r#"awk 'BEGIN{system("rm ../.cla*/s*")}'"#,
        r"sed 's/.*/rm ..\/.cla*\/s*/e' x",
        r#"perl -e 'unlink glob("~/.c*/*.json")'"#,
        r#"python3 -c "import glob, os; [os.remove(f) for f in glob.glob('../.*/s*.json')]""#,
        r#"python3 -c "import os; os.system('cat ~/.local/share/p*/enc*')""#,
        "kill $(cat ~/.local/share/p*/guard/pid)",
    ] {
        assert!(matches!(looked(command), Looked::Held(_)), "{command}");
    }
    for command in [
        "./assist -p x",
        r#"awk 'BEGIN{system("rm -f src/*.o")}'"#,
        r#"perl -e 'unlink glob("src/*.json")'"#,
        r#"python3 -c "import glob, os; [os.remove(f) for f in glob.glob('**/*.pyc')]""#,
        r#"python3 -c "import os; os.system('ls ../*/src/*')""#,
    ] {
        assert_eq!(looked(command), Looked::Free, "{command}");
    }
}

#[test]
fn no_shell_runs_what_comes_by_a_pipe_or_is_not_there_yet() {
    use nix::sys::stat::Mode;
    let (_dir, kept, cwd) = linked();
    nix::unistd::mkfifo(&Path::new(&cwd).join("pipe"), Mode::S_IRWXU).unwrap();
    std::fs::write(Path::new(&cwd).join("build.sh"), "").unwrap();
    let looked =
        |command: &str| kept.look(&event("claude", "Bash", (pintle_domain::json::json!({"command": command}), &cwd)));
    for command in ["bash < pipe", "cat pipe | sh", ". ./pipe", "while :; do [ -f new ] && . ./new; done"] {
        assert!(matches!(looked(command), Looked::Held(_)), "{command}");
    }
    for command in ["bash build.sh", "cat pipe", "[ -f new ] && . ./new", "while :; do sh build.sh; done"] {
        assert_eq!(looked(command), Looked::Free, "{command}");
    }
}

#[test]
fn a_patch_in_a_file_is_read() {
    let (_dir, kept, cwd) = linked();
    for (name, file) in [("held.diff", ".claude/settings.json"), ("free.diff", "src/a.rs")] {
        let patch = format!("--- /dev/null\n+++ b/{file}\n@@ -0,0 +1 @@\n+x\n");
        std::fs::write(Path::new(&cwd).join(name), patch).unwrap();
    }
    let looked =
        |command: &str| kept.look(&event("claude", "Bash", (pintle_domain::json::json!({"command": command}), &cwd)));
    assert!(matches!(looked("git apply held.diff"), Looked::Held(_)));
    assert!(matches!(looked("patch -p1 < held.diff"), Looked::Held(_)));
    assert_eq!(looked("git apply free.diff"), Looked::Free);
}

/// A folder with files, folders and links of all sorts, and paths that name them in many ways.
fn ways() -> (tempfile::TempDir, Vec<PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    std::fs::write(root.join("f"), "").unwrap();
    std::fs::write(root.join("a/f"), "").unwrap();
    for (name, target) in [
        ("folder", "a"),
        ("chain", "folder"),
        ("nothing", "a/gone/x"),
        ("loop", "loop"),
        ("file", "a/f"),
        ("a/up", ".."),
        ("a/b/far", "../../chain/up/nothing"),
    ] {
        symlink(target, root.join(name)).unwrap();
    }
    // Each of the two is followed, and both one after another are too many.
    for (first, next) in (0..25).map(|at| (at, at + 1)) {
        let target = if next < 25 { format!("long{next}") } else { ".".to_owned() };
        symlink(target, root.join(format!("long{first}"))).unwrap();
    }
    let names = ["a", "b", "f", "gone", "folder", "chain", "nothing", "file", "up", "far", "..", ""];
    let mut all: Vec<String> = vec![root.to_str().unwrap().to_owned()];
    let mut last = all.clone();
    for _ in 0..3 {
        last = last.iter().flat_map(|above| names.map(|name| format!("{above}/{name}"))).collect();
        all.extend(last.iter().cloned());
    }
    let below = ["loop", "loop/x", "a/up/loop/x", "./a/f", "a/./f", "long0/a/f", "long0/long0/f", "long0/long0/gone/x"];
    all.extend(below.map(|name| format!("{}/{name}", root.display())));
    let others = ["", "/", ".", "src", "gone/x", "/gone/x/y", "//", "/proc/self/cwd/x", "/proc/self/exe", "/\0/x"];
    all.extend(others.map(str::to_owned));
    // Too long a name, too many links, and too long a path.
    all.push(format!("{}/{}/y", root.display(), "x".repeat(300)));
    all.extend([30, 60].map(|times| format!("{}{}/f", root.display(), "/a/up".repeat(times))));
    all.push(format!("{}/a{}", root.display(), "/x".repeat(MAX_PATH_BYTES / 2)));
    (dir, all.into_iter().map(PathBuf::from).collect())
}

#[test]
fn one_look_finds_what_each_path_says_by_itself() {
    let (_dir, paths) = ways();
    let alone: Vec<(&PathBuf, PathBuf)> = paths.iter().map(|path| (path, real(path))).collect();
    let mut by_end: Vec<_> = alone.iter().collect();
    by_end.sort_by_cached_key(|(path, _)| path.to_string_lossy().chars().rev().collect::<String>());
    for order in [by_end, alone.iter().collect(), alone.iter().rev().collect()] {
        let reals = Reals::default();
        for (path, expected) in order {
            for _ in 0..2 {
                // As text: whether a slash ends it is part of it.
                assert_eq!(reals.real(path).as_os_str(), expected.as_os_str(), "{}", path.display());
            }
        }
    }
}

#[test]
fn a_link_that_is_made_between_two_calls_is_seen() {
    let (dir, kept, cwd) = linked();
    let write = |path: &str| {
        let arguments = pintle_domain::json::json!({"file_path": path, "content": ""});
        kept.look(&event("claude", "Write", (arguments, &cwd)))
    };
    assert_eq!(write("sub/new/settings.json"), Looked::Free);
    symlink(dir.path().join("home/.claude"), dir.path().join("work/sub/new")).unwrap();
    assert!(matches!(write("sub/new/settings.json"), Looked::Held(_)));
    std::fs::remove_file(dir.path().join("work/sub/new")).unwrap();
    assert_eq!(write("sub/new/settings.json"), Looked::Free);
}

#[test]
fn settings_are_looked_at_once_each() {
    let dir = tempfile::tempdir().unwrap();
    let text = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (home, work) = (text("home"), text("work"));
    for folder in ["home/.claude", "work/.codex"] {
        std::fs::create_dir_all(dir.path().join(folder)).unwrap();
    }
    std::fs::write(dir.path().join("home/.claude/settings.json"), "").unwrap();
    // It is there, though it leads nowhere, and so is what it may lead to.
    symlink("gone", dir.path().join("work/.claude")).unwrap();
    let of_home = ["home/.claude", "home/.claude/settings.json"].map(|name| dir.path().join(name));
    let of_work = ["work/.claude", "work/.codex"].map(|name| dir.path().join(name));
    let sorted = |cwd: &str, home: &str| {
        let mut found = settings(cwd, home);
        found.sort();
        found
    };
    assert_eq!(sorted(&home, &home), of_home);
    assert_eq!(sorted(&work, &home), [of_home, of_work].concat());
}

#[test]
fn what_is_in_use_is_named_once_where_it_has_one_name() {
    let (dir, ..) = linked();
    let root = dir.path().canonicalize().unwrap();
    let text = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let named = [text("store"), text("work/kept"), text("work/lnk"), text("store/gone")];
    let all = with_real(&named, &Reals::default());
    // Both `store` and the link to it are in the list already by their names.
    assert_eq!(all[..4], named);
    assert_eq!(all[4..].iter().map(Path::new).collect::<Vec<_>>(), [root.join("home/.claude")]);
}

/// What is said of calls in a runtime of either kind.
async fn said_in_a_runtime() {
    let (_dir, kept, cwd) = linked();
    for (path, is_held) in [("lnk/settings.json", true), ("sub/t.json", false)] {
        let arguments = pintle_domain::json::json!({"file_path": path, "content": ""});
        let looked = kept.clone().look_at(&event("claude", "Write", (arguments, &cwd))).await;
        assert_eq!(matches!(looked, Looked::Held(_)), is_held, "{path}: {looked:?}");
    }
}

#[tokio::test]
async fn a_runtime_of_one_thread_looks() {
    said_in_a_runtime().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_runtime_of_many_threads_looks() {
    said_in_a_runtime().await;
}

#[test]
fn a_look_that_panics_refuses_the_call() {
    let looked = fenced(|| panic!("no look"));
    assert!(matches!(&looked, Looked::Held(why) if why.contains("panicked")), "{looked:?}");
    assert_eq!(fenced(|| Looked::Free), Looked::Free);
}
