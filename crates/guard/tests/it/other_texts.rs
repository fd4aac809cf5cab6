//! What a call does by way of a folder above, a pipe, a terminal, a file that says names, a patch or a setting, each beside
//! everyday calls that look alike.

use pintle_domain::json::json;

use crate::everyday::{check, refusal_beside};

/// A project whose settings are there, and nothing in use.
const BESIDE: &[&str] = &[
    "/u/ann/repo/.claude",
    "/u/ann/repo/.claude/settings.json",
    "/u/ann/repo/src/a.ts",
    "/u/ann/repo/t/.claude",
    "/u/ann/repo/t/.claude/settings.json",
];

fn check_beside(texts: &[&str], refused: bool) {
    for text in texts {
        let why = refusal_beside((BESIDE, &[]), "Bash", &json!({"command": *text}));
        assert_eq!(why.is_some(), refused, "{text}: {why:?}");
    }
}

const HELD_BELOW: &[&str] = &[
    "gzip -r ~",
    "gzip -r ..",
    "gzip -r .",
    "zstd -rq --rm ~",
    "pigz -r ~",
    "dos2unix -r ~",
    "prettier --write ~",
    "npx prettier --write ..",
    "npx -y prettier@3 --write ~",
    "black ~",
    "python3 -m black ~",
    "uv run ruff format ..",
    "eslint --fix ..",
    "cd .. && eslint --fix",
    "rubocop -A ~",
    "terraform fmt -recursive ..",
];

const FREE_BELOW: &[&str] = &[
    "gzip -r src",
    "gzip -9 x.log",
    "zstd -r --rm dist",
    "prettier --check ~",
    "prettier --write ../other/src",
    "npx prettier --write .",
    "black ../other",
    "black --check ..",
    "cd ~/other && eslint --fix",
    "eslint ..",
    "gofmt -l ..",
    "gofmt -w .",
    "terraform fmt -recursive",
    "dos2unix src/*",
];

#[test]
fn no_program_changes_all_below_a_folder_with_settings() {
    check(HELD_BELOW, &[], true);
    check(FREE_BELOW, &[], false);
}

#[test]
fn a_search_that_passes_by_hidden_files_finds_no_settings() {
    let free = [
        "rg -l foo | xargs sed -i s/a/b/",
        "rg -l foo . | xargs sed -i s/a/b/",
        "rg --files | xargs sed -i s/a/b/",
        "fd -t f | xargs sed -i s/a/b/",
        "fd -e ts -x sed -i s/a/b/",
    ];
    check_beside(&free, false);
    let held = [
        "rg -l foo --hidden | xargs sed -i s/a/b/",
        "rg -uu -l foo | xargs sed -i s/a/b/",
        "rg -l. foo | xargs sed -i s/a/b/",
        "rg -l foo -g '*' | xargs sed -i s/a/b/",
        "fd -H -t f | xargs sed -i s/a/b/",
        "git grep -l foo | xargs sed -i s/a/b/",
        "grep -rl foo . | xargs sed -i s/a/b/",
    ];
    check_beside(&held, true);
}

#[test]
fn a_refusal_names_the_path_that_is_held() {
    for (text, named) in [
        ("prettier --write '**/*.json'", "`/u/ann/repo/.claude/settings.json`"),
        ("git grep -l foo | xargs sed -i s/a/b/", ".claude/settings.json`"),
        ("sqlite3 -cmd '.output /u/ann/repo/.claude/settings.json' x.db", "`/u/ann/repo/.claude/settings.json`"),
        ("vim -c 'w! ~/.claude/settings.json' x", "`~/.claude/settings.json`"),
        ("cp x ~/.$(echo clXude | tr X a)/settings.json", "`~/.$(…)/settings.json`"),
    ] {
        let why = refusal_beside((BESIDE, &[]), "Bash", &json!({"command": text}));
        assert!(why.as_ref().is_some_and(|why| why.contains(named)), "{text}: {why:?}");
    }
}

const HELD_STREAMS: &[&str] = &[
    "coproc bash; echo 'rm ../.cla*/s*' >&${COPROC[1]}",
    "coproc sh -s",
    "mkfifo ff; bash < ff & echo 'rm ../.cla*/s*' > ff",
    "mkfifo ff; sh ff & echo x > ff",
    "bash < pipe",
    "sh pipe",
    ". ./pipe",
    "cat pipe | sh",
    "python3 < pipe",
    "tail -f x.txt | bash",
    "while :; do [ -f missing ] && . ./missing; done &",
    "(sleep 5; . ./missing) &",
    "until ./missing; do sleep 1; done",
    r#"tmux send-keys "rm ../.cl" "a*/s*" Enter"#,
    "tmux send-keys -t x:0 rm Space ../.claude/settings.json C-m",
    "screen -X stuff 'rm ../.cla*/s*^M'",
    "xdotool type 'rm ../.cla*/s*'",
];

const FREE_STREAMS: &[&str] = &[
    "mkfifo p; cat p & echo x > p",
    "[ -f missing ] && . ./missing",
    "[ -f missing ] && . ./missing; npm start & sleep 3; curl localhost:3000",
    "make; sleep 2; ./missing",
    "sleep 1; ./run.sh",
    "while ! curl -s localhost:3000; do sleep 1; done; npm test",
    "while read l; do echo $l; done < x.txt",
    "bash build.sh < /dev/null",
    "source <(kubectl completion bash)",
    "tail -f x.log | grep y",
    "tmux send-keys -t x 'npm test' Enter",
    "tmux send-keys C-c",
    "screen -X stuff 'npm test^M'",
];

#[test]
fn nothing_that_nobody_read_comes_to_a_shell() {
    check(HELD_STREAMS, &[], true);
    check(FREE_STREAMS, &[], false);
}

const HELD_NAMES: &[&str] = &[
    r#"echo '{}' > "$(cat held.txt)""#,
    "cp README.md $(tail -n1 held.txt)",
    "tar cf x.tar --remove-files -T held.txt",
    "tar xf x.tar -T held.txt",
    "rsync -a --files-from=held.txt . ../x",
    "zip -m x.zip -@ < held.txt",
    "curl -K held.cfg",
    r#"mv ~/."$(<name.txt)" x"#,
    "rm -rf ~/.$(cat name.txt)",
    r#"f=$(cat name.txt); rm -rf "$HOME/.$f""#,
    "cat $(cat key.txt)",
    "f=$(cat key.txt); cat $f",
    r#"cat < "$(cat key.txt)""#,
    "tar cf x.tar -T key.txt",
    "cd ~; compgen -f .c | while read f; do rm -r $f; done",
    "compgen -f .c | xargs rm -r",
    "rm -r $(compgen -f .c)",
    "bash -c 'for f in t; do mv $f .${0}; done' claude",
    r#"mv x ".$n""#,
];

const FREE_NAMES: &[&str] = &[
    "tar cf x.tar -T held.txt",
    "tar xf x.tar -T free.txt",
    "rsync -a --files-from=free.txt . ../x",
    "zip x.zip -@ < held.txt",
    "curl -K free.cfg",
    "cat $(cat held.txt)",
    "cat $(cat free.txt)",
    "rm -rf build/$(cat name.txt)",
    "kill $(cat app.pid)",
    r#"mv "$f" ".$f.bak""#,
    r#"echo x > ".env.$ENV""#,
    "compgen -c git | head",
    "compgen -f src/ | xargs wc -l",
];

#[test]
fn names_that_a_file_says_are_read() {
    check(HELD_NAMES, &[], true);
    check(FREE_NAMES, &[], false);
}

const HELD_PATCHES: &[&str] = &[
    "git apply held.diff",
    "git am held.diff",
    "patch -p1 < held.diff",
    "patch -p1 -i held.diff",
    "cat held.diff | patch -p1",
    "git fast-import < index.txt",
    "diff -Nu /dev/null t/settings.json | sed 's/+++ t/+++ .claude/' | patch -p0",
    "patch -p0 < <(sed s/x/y/ free.diff)",
    "curl -s https://x.test/a | git apply",
    "curl -s https://x.test/a | (cd src && patch -p1)",
    "tar cf - -C t xclaude | tar xf - --xform 's,^x,.,'",
    "tar xf a.tar --transform 's,^,.,'",
    "pax -rf a.pax -s ,^x,., x",
];

const FREE_PATCHES: &[&str] = &[
    "git apply free.diff",
    "patch -p1 < free.diff",
    "cat free.diff | patch -p1",
    "sed -i s/a/b/ src/b.rs && git apply free.diff",
    "make | tee x.log; git apply free.diff",
    "git diff HEAD~1 | git apply -R",
    "git show abc -- src | git apply",
    "git format-patch --stdout main | git -C ../other am",
    "git fast-export main | git -C ../other fast-import",
    "git stash apply",
    "tar xf a.tar --strip-components=1",
    "tar xf a.tar --transform 's,^[^/]*/,,'",
    "tar czf x.tgz --transform 's,^,x-1.0/,' src",
];

#[test]
fn a_patch_is_read_before_it_is_applied() {
    check(HELD_PATCHES, &[], true);
    check(FREE_PATCHES, &[], false);
}

#[test]
fn what_is_packed_does_not_come_out_as_settings() {
    let held = [
        "tar cf - -C t .claude | tar xf -",
        "(cd t && tar c .claude) | tar x",
        "tar cf - t/.claude | tar xf - --strip-components=1",
        "tar c -C t .claude/settings.json | tar x",
    ];
    check_beside(&held, true);
    let free = [
        "tar cf - src | tar xf - -C /tmp/x",
        "tar cf - t/src | tar xf - --strip-components=1 -C out",
        "tar c .github | tar x -C /tmp/x",
    ];
    check_beside(&free, false);
}

const HELD_TOOLS: &[(&str, &str)] = &[
    ("Grep", r#"{"pattern":".","path":"/u/ann","glob":"**/*.key","output_mode":"content"}"#),
    ("Grep", r#"{"pattern":".","path":"~"}"#),
    ("Grep", r#"{"pattern":".","path":".."}"#),
    ("Grep", r#"{"pattern":".","path":"~","glob":"*.json"}"#),
    ("Grep", r#"{"pattern":".","path":"~","type":"json"}"#),
    ("Grep", r#"{"pattern":".","path":"~","glob":"!*.rs"}"#),
    ("Config", r#"{"setting":"disableAllHooks","value":true}"#),
    ("mcp__cfg__set", r#"{"key":"claude.disableAllHooks","value":"true"}"#),
    ("mcp__cfg__update", r#"{"settings":{"disableAllHooks":true}}"#),
    ("Bash", r#"{"command":["rm","-rf","/u/ann/.claude"]}"#),
    ("Bash", r#"{"command":["rm -rf","/u/ann/.claude"]}"#),
    ("mcp__term__type", r#"{"text":"rm ../.cla*/s*\n"}"#),
    ("mcp__iterm_terminal__send", r#"{"input":{"keys":"rm -rf ~/.claude\n"}}"#),
];

const FREE_TOOLS: &[(&str, &str)] = &[
    ("Grep", r#"{"pattern":".","path":"~","glob":"*.rs"}"#),
    ("Grep", r#"{"pattern":".","path":"~","type":"rust"}"#),
    ("Grep", r#"{"pattern":".","path":"~","glob":"!.local/**"}"#),
    ("Grep", r#"{"pattern":".","path":"~/src"}"#),
    ("Grep", r#"{"pattern":"."}"#),
    ("Config", r#"{"setting":"theme","value":"dark"}"#),
    ("Config", r#"{"setting":"disableAllHooks","value":false}"#),
    ("mcp__docs__search", r#"{"query":"disableAllHooks"}"#),
    ("Bash", r#"{"command":["npm","test"]}"#),
    ("mcp__term__type", r#"{"text":"npm test\n"}"#),
    ("mcp__playwright__browser_type", r#"{"ref":"e1","text":"rm ../.cla*/s* is what it says"}"#),
];

#[test]
fn tools_search_set_and_type_nothing_that_is_held() {
    check(&[], HELD_TOOLS, true);
    check(&[], FREE_TOOLS, false);
}
