//! Settings and keys that a call names in parts, beside everyday calls that look alike.

use crate::everyday::check;

const HELD_TEXTS: &[&str] = &[
    // A suffix or a template makes the name.
    "cp -b -S .json a.txt .claude/settings",
    "SIMPLE_BACKUP_SUFFIX=.json cp -b a.txt .claude/settings",
    "install -b -S .json a.txt .claude/settings",
    "ln -b -S .json -f a.txt .claude/settings",
    "sed -i.json s/x/y/ .claude/settings",
    "sed -i'settings.*' s/x/y/ .claude/json",
    "perl -pi.json -e s/x/y/ .claude/settings",
    "ruby -pi.json -e 'gsub(/x/, \"y\")' .claude/settings",
    "patch -b -z .json .claude/settings x.patch",
    "split -l1 -a1 --additional-suffix=.json x19 .claude/setting",
    "curl -o '.claude/settings.#1' 'file:///tmp/x.{json}'",
    // A URL of a file is a path.
    "curl -s -T package.json file:///u/ann/.claude/settings.json",
    "curl -s -T package.json file:///u/ann/%2Eclaude/settings.json",
    "curl file://$HOME/.local/share/pintle/guard/key",
    "echo 'url = file:///u/ann/.local/share/pintle/guard/key' | curl -K -",
    "curl --unix-socket ~/.local/share/pintle/guard/guard.sock http://x/",
    // Where `cd` goes.
    "HOME=~/.claude; cd; rm settings.json",
    "HOME=$PWD/.claude; rm ~/settings.json",
    "OLDPWD=$PWD/.claude; cd -; rm settings.json",
    r#"cd "$(dirname "$(find ~ -maxdepth 2 -name settings.json | head -1)")" && rm settings.json"#,
    r#"d=$(cat p); echo {} > "$d/settings.json""#,
    r#"cp a.json "$(cat p)/settings.json""#,
    // Lists for another program.
    r"printf '%s\n' ~/.*/settings.json | xargs rm",
    "compgen -G '../.*/settings.json' | xargs rm",
    "du -a ~ | cut -f2 | xargs rm -f",
    "git ls-files --others ~ | xargs rm",
    // What a text computes.
    r#"cp package.json "$(echo ../.clXude/settings.json | tr X a)""#,
    r#"p=$(echo ../.clXude/x | tr X a); cp package.json "$p""#,
    r#"eval "$(echo 'nosj.sgnittes/edualc./~ mr' | rev)""#,
    r"find docs -type f -exec cp {} .claude \;",
    // Programs that nobody knows.
    "python3 -m json.tool package.json ../.claude/settings.json",
    "python3 fix.py .claude/settings.json",
    "mytool ../.claude/settings.json",
    "jest --outputFile=.claude/settings.json",
    "npx jest --outputFile .claude/settings.json",
    "node --redirect-warnings=.claude/settings.json x.js",
    "cmake -E chdir .claude rm settings.json",
    "cmake -E copy a.json .claude/settings.json",
    "just --command rm .claude/settings.json",
    "podman unshare rm .claude/settings.json",
    "cargo watch -s 'rm .claude/settings.json'",
    // This machine by another name.
    "wget -x -nH http://x/.claude/settings.json",
    "cd .. && scp a.txt localhost:.claude/settings.json",
    "rsync a.json ann@127.0.0.1:.claude/settings.json",
    "scp localhost:.local/share/pintle/guard/key x",
    // What others get at.
    "docker run -v ~/.local/share:/x alpine cat /x/pintle/guard/key",
    "docker run --mount type=bind,source=/u/ann,target=/x alpine ls",
    "podman run -v ~/.claude:/x alpine rm /x/settings.json",
    "python3 -m http.server -d ~/.local",
    "cd ~ && npx http-server",
    "git --git-dir=/tmp/g --work-tree=$HOME stash -u",
];

const HELD_TOOLS: &[(&str, &str)] = &[
    ("WebFetch", r#"{"url":"file:///u/ann/.local/share/pintle/guard/key","prompt":"x"}"#),
    ("mcp__fs__apply_patch", r#"{"patch":"*** Begin Patch\n*** Add File: .claude/settings.json\n+{}\n*** End Patch"}"#),
    ("mcp__fs__edit", r#"{"diff":"--- /dev/null\n+++ b/.claude/settings.json\n@@ -0,0 +1 @@\n+{}"}"#),
    ("mcp__fs__write", r#"{"uri":"file:///u/ann/%2Eclaude/settings.json","content":"{}"}"#),
    ("mcp__sh__execute", r#"{"command":"claude -p x","env":{"CLAUDE_CONFIG_DIR":"/tmp"}}"#),
    ("mcp__db__query", r#"{"sql":"attach '/u/ann/.local/share/pintle/pintle.db' as x"}"#),
    ("mcp__fs__search_content", r#"{"root":"/u/ann/.local","query":"."}"#),
];

const FREE_TEXTS: &[&str] = &[
    "cp -b -S .json a.txt data/settings",
    "cp -b --suffix=.orig a.txt b.txt",
    "sed -i.bak s/x/y/ src/a.rs && perl -pi.orig -e s/a/b/ README.md",
    "split -l 1000 big.csv parts/x_",
    "curl -o 'img_#1.png' 'https://x.test/{a,b}.png'",
    "curl -s -T a.tgz https://x.test/y",
    "curl file:///etc/hosts",
    r#"cd "$dir" && npm test"#,
    r#"cd "$(git rev-parse --show-toplevel)" && rm -rf build"#,
    r#"cd "$dir" && cat settings.json"#,
    "cd src && cd - && touch x",
    r#"echo {} > "$d/.vscode/settings.json""#,
    r#"echo {} > "$TMPDIR/settings.json""#,
    r#"cat "$d/settings.json""#,
    r"printf '%s\n' a.log b.log | xargs rm",
    "git ls-files '*.tmp' | xargs rm",
    "cat list.txt | xargs rm -f",
    r#"for f in *.TXT; do cp "$f" "$(echo "$f" | tr A-Z a-z)"; done"#,
    r#"cp "$f" "$(echo "$f" | rev | cut -c5- | rev)""#,
    r#"eval "$(ssh-agent)""#,
    r#"eval "$(direnv hook bash)""#,
    r#"eval "$(brew shellenv)""#,
    r"find docs -type f -exec cp {} out \;",
    "python3 -m json.tool .claude/settings.json",
    "python3 -m json.tool a.json b.json",
    "jq . .claude/settings.json && diff .claude/settings.json x.json && wc -l .claude/settings.json",
    "git diff .claude/settings.json && git add .claude/settings.json",
    "jest --outputFile=out.json",
    "mytool config.toml",
    "cmake -E rm -rf build && cmake -E copy a.txt out/",
    "just --command cargo test",
    "cargo watch -x test -s 'cargo clippy'",
    "wget -x https://x.test/a/b.tgz",
    "scp a.txt localhost:notes/",
    "rsync -a src/ host:src/",
    "docker run -v data:/x -v ./src:/w alpine ls",
    "docker run -v ~/.cache/pip:/cache/pip x",
    "python3 -m http.server -d dist 8000",
    "npx serve dist",
    "git --work-tree=build add .",
];

const FREE_TOOLS: &[(&str, &str)] = &[
    ("WebFetch", r#"{"url":"https://x.test/file:/a","prompt":"x"}"#),
    ("mcp__fs__apply_patch", r#"{"patch":"*** Begin Patch\n*** Update File: src/a.rs\n+x\n*** End Patch"}"#),
    ("mcp__fs__edit", r#"{"diff":"--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-a\n+b"}"#),
    ("mcp__sh__execute", r#"{"command":"npm test","env":{"CI":"1"}}"#),
    ("mcp__db__query", r#"{"sql":"select a/b from x where path = '/u/ann/x.db'"}"#),
    ("mcp__fs__search_content", r#"{"root":"/u/ann/repo","query":"x"}"#),
    ("mcp__fs__search_content", r#"{"root":".","query":"x"}"#),
];

#[test]
fn no_name_in_parts_gets_past() {
    check(HELD_TEXTS, HELD_TOOLS, true);
}

#[test]
fn names_of_other_files_may_be_put_together() {
    check(FREE_TEXTS, FREE_TOOLS, false);
}
