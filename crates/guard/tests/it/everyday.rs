//! What agents do every day passes in a project with settings of agents: patterns are settled by what lies on the disk.

use pintle_domain::json::{self, Value, json};
use pintle_guard::{GuardedFiles, HOSTS, OnDisk, PathKind, host, pattern_means, protects_behind};

use crate::protects::write;
use crate::recorded::decode;

const HOME: &str = "/u/ann";

/// The program of a process of the guard.
const GUARD: &str = "/proc/41/exe";

/// A link in projects, and where it leads.
pub(crate) const LINK: [&str; 2] = ["/u/ann/repo/links/lnk", "/u/ann/.claude"];

/// A pipe of the project, and a file that is not there.
const PIPE: &str = "/u/ann/repo/pipe";
const MISSING: &str = "/u/ann/repo/missing";

/// Files of the project with lists, and what they say.
const LISTS: &[(&str, &str)] = &[
    ("/u/ann/repo/held.txt", "// notes\na.log\n.claude/settings.json\n"),
    ("/u/ann/repo/bare.txt", "--bare\n"),
    ("/u/ann/repo/home.env", "A=1\nHOME=/tmp/x\n"),
    ("/u/ann/repo/free.txt", "// notes\na.log src/a.rs\n.claude/commands/x.md\n"),
    ("/u/ann/repo/name.txt", "claude\n"),
    ("/u/ann/repo/key.txt", "/u/ann/.local/share/pintle/guard/key\n"),
    ("/u/ann/repo/held.cfg", "url = \"https://x.test/a\"\noutput = \"/u/ann/.claude/settings.json\"\n"),
    ("/u/ann/repo/free.cfg", "url = \"https://x.test/.claude/settings.json\"\noutput = \"a.tgz\"\n"),
    ("/u/ann/repo/held.diff", "--- /dev/null\n+++ b/.claude/settings.json\n@@ -0,0 +1 @@\n+{}\n"),
    ("/u/ann/repo/free.diff", "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-a\n+b\n"),
    ("/u/ann/repo/index.txt", "M 100644 inline .claude/settings.json\n"),
];

/// What of the project and the home folder has a hidden name, and some files beside it.
const DISK: &[&str] = &[
    "/u/ann/.claude",
    "/u/ann/.claude/settings.json",
    "/u/ann/.codex",
    "/u/ann/.codex/config.toml",
    "/u/ann/.config/pintle",
    "/u/ann/.config/pintle/pintle.toml",
    "/u/ann/.local/share/pintle",
    "/u/ann/.local/share/pintle/guard",
    "/u/ann/.local/share/pintle/guard/key",
    "/u/ann/.local/share/pintle/guard/pid",
    "/u/ann/repo/.claude",
    "/u/ann/repo/.claude/settings.json",
    "/u/ann/repo/.claude/commands/x.md",
    "/u/ann/repo/.gemini",
    "/u/ann/repo/.gemini/settings.json",
    "/u/ann/repo/.github/workflows/ci.yml",
    "/u/ann/repo/.mcp.json",
    "/u/ann/repo/.venv/lib/a.pyc",
    "/u/ann/repo/pintle.toml",
    "/u/ann/repo/scripts/x.sh",
    "/u/ann/repo/src/a.rs",
    "/u/ann/repo/src/a.ts",
];

/// The same where no project has settings of agents.
pub(crate) const CLEAN: &[&str] = &[
    "/u/ann/.claude",
    "/u/ann/.claude/settings.json",
    "/u/ann/repo/.github",
    "/u/ann/repo/.github/workflows/ci.yml",
    "/u/ann/repo/a.json",
    "/u/ann/repo/src/a.py",
];

/// Whether `pattern`, in which `**` stands for any folders, stands for `path`.
fn stands_for(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, _) => path.is_empty(),
        (Some((&"**", rest)), _) => (0..=path.len()).any(|skipped| stands_for(rest, &path[skipped..])),
        (Some((part, rest)), Some((name, below))) => pattern_means(part, name) && stands_for(rest, below),
        (Some(_), None) => false,
    }
}

/// Why a call of Claude Code is refused in the project.
fn refusal(tool: &str, arguments: &Value) -> Option<String> {
    refusal_beside((DISK, &["/u/ann/repo/pintle.toml".to_owned()]), tool, arguments)
}

/// The same where this lies on the disk, and is in use.
pub(crate) fn refusal_beside((on_disk, own): (&[&str], &[String]), tool: &str, arguments: &Value) -> Option<String> {
    let finds = |pattern: &str, matters: &dyn Fn(&str) -> bool| {
        let pattern = pattern.replacen('~', HOME, usize::from(pattern.starts_with("~/")));
        let pattern: Vec<&str> = pattern.split('/').collect();
        let is_found = |path: &&&str| stands_for(&pattern, &path.split('/').collect::<Vec<&str>>());
        Some(on_disk.iter().filter(is_found).any(|path| matters(path)))
    };
    let leads = |path: &str| match path.strip_prefix(LINK[0]) {
        Some(rest) => vec![format!("{}{rest}", LINK[1])],
        None if path == GUARD => vec!["/usr/local/bin/pintle".to_owned()],
        None => Vec::new(),
    };
    let is_below = |path: &str, folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    let holds = |folder: &str, below: &str| below == "*" && on_disk.iter().any(|path| is_below(path, folder));
    let says = |path: &str| LISTS.iter().find(|(list, _)| *list == path).map(|(_, said)| (*said).to_owned());
    let kind = |path: &str| match path.replace("/./", "/").as_str() {
        PIPE => PathKind::Stream,
        MISSING => PathKind::Nothing,
        _ => PathKind::Unknown,
    };
    let disk = OnDisk { leads: &leads, holds: &holds, finds: &finds, says: &says, kind: &kind };
    let files = GuardedFiles { home: HOME, own, lifted: false };
    let payload = json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/u/ann/repo", "tool_name": tool, "tool_input": arguments
    });
    let event = decode(host("claude").unwrap(), None, &[], payload.to_string().as_bytes()).unwrap();
    protects_behind(&event, &files, disk)
}

pub(crate) fn check(texts: &[&str], tools: &[(&str, &str)], refused: bool) {
    for text in texts {
        let why = refusal("Bash", &json!({"command": *text}));
        assert_eq!(why.is_some(), refused, "{text}: {why:?}");
    }
    for (tool, arguments) in tools {
        let why = refusal(tool, &json::parse(arguments).unwrap());
        assert_eq!(why.is_some(), refused, "{tool} {arguments}: {why:?}");
    }
}

const FREE_TEXTS: &[&str] = &[
    "mkdir -p src/{a,b}/{d,e}",
    "mkdir -p src/{a,b}",
    "mkdir {a,b}",
    "mkdir -p {src,tests}/{unit,it}",
    "touch {a,b}{1,2}.txt",
    "touch {a,b}{1,2}",
    "touch src/{mod,lib}.rs",
    "touch a{1..3}.md",
    "touch {1..3}/{a,b}",
    "rm -f {1..300} x{01..40}.log",
    "prettier --write 'src/{1..9}.{ts,tsx}'",
    "cp src/{a,b}.rs /tmp/x/",
    "cp src/a.rs{,.bak}",
    "mv src/{old,new}.rs",
    "mv {a,b}.txt docs/",
    "rm -f src/{a,b}.rs",
    "rm -rf {dist,build}/{a,b}",
    "mkdir -p app/{api,web}/{src,test}/{unit,e2e}",
    "find . -name '*.pyc' -delete",
    "find . -name '*.pyc' -type f -delete",
    "find . -name node_modules -prune -o -name '*.log' -type f -print -delete",
    "find . -name node_modules -prune -o -type f -name '*.tmp' -print -delete",
    "find . -name __pycache__ -exec rm -rf {} +",
    r"find . -name '*.orig' -exec rm {} \;",
    "find . -type d -name target -prune -exec rm -rf {} +",
    "find src -name '*.rs' -exec sed -i s/a/b/ {} +",
    "find . -name '*.rs' -exec sed -i s/a/b/ {} +",
    "find . -name '*.sh' -exec chmod +x {} +",
    "find . -name '*.json' -exec cat {} +",
    "find . -type f -name '*.ts' | xargs sed -i s/a/b/",
    "find . -name '*.ts' -print0 | xargs -0 prettier --write",
    "find . -iname '*.bak' -delete",
    "find dist -type f -delete",
    "find dist -mindepth 1 -delete",
    "find . -type f -name '*.swp' -mtime +7 -delete",
    "find . -path './node_modules' -prune -o -name '*.js' -print",
    "find . -maxdepth 1 -name '*.txt' -delete",
    "find . -depth 1 -name '*.txt' -delete",
    "find . -mnewer x -name '*.txt' -delete",
    "find . -empty -nouser -name '*.txt' -delete",
    "find -E . -name '*.txt' -delete",
    r"find . \( -name '*.pyc' -o -name '*.pyo' \) -delete",
    "find . -not -name '*.md' -name '*.tmp' -delete",
    r#"prettier --write "src/**/*.ts""#,
    r#"npx prettier --write "src/**/*.ts""#,
    "prettier --write .",
    "npx prettier --write .",
    "prettier --write '**/*.{ts,tsx}'",
    r#"prettier --write "**/*.md""#,
    "eslint --fix 'src/**'",
    "eslint --fix .",
    "npx eslint . --fix",
    r#"eslint --fix "src/**/*.{js,ts}""#,
    "stylelint --fix 'src/**/*.css'",
    "ruff check --fix .",
    "ruff format .",
    "black .",
    "isort .",
    "gofmt -w .",
    "clang-format -i src/*.c",
    "rm -rf dist/*",
    "rm -rf build/* dist/*",
    "rm -f *.log",
    "rm -rf node_modules",
    "sed -i s/a/b/ src/*.rs",
    "sed -i s/a/b/ src/**/*.rs",
    "sed -i 's/foo/bar/g' *.md",
    "sed -i s/a/b/ **/*.ts",
    "chmod +x scripts/*",
    "chmod +x scripts/**/*.sh",
    "chmod -R u+w src",
    "git add '*.rs'",
    "git add .",
    "git add -A",
    "git commit -am 'x'",
    "git status",
    "git diff HEAD~1",
    "git log --oneline -5",
    "git checkout -b feature/x",
    "git checkout -- src/a.rs",
    "git checkout -- '*.rs'",
    "git checkout -- 'src/*.rs'",
    "git restore src",
    "git stash && git stash pop",
    "git clean -fd",
    "git clean -fdx",
    "git reset --hard HEAD",
    "git rm -r --cached node_modules",
    "git rm 'docs/*.txt'",
    "git mv src/a.rs src/b.rs",
    "git pull --rebase",
    "git push origin HEAD",
    "git rebase -i HEAD~3",
    "git merge main",
    "git cherry-pick abc",
    "git worktree add ../x",
    "git tag v1",
    "git fetch -q",
    "git apply fix.patch",
    "git --no-pager -C ../other apply fix.patch",
    "git apply --directory=src fix.patch",
    "git restore --staged '*.rs'",
    "cp -r .github ../other/",
    "rm -rf .github",
    "mount /dev/sdb1 /mnt",
    "mount --bind src /mnt/x",
    "mount | grep ext4",
    r#"awk '{print > $1".txt"}' x"#,
    "awk '{print > \"out.txt\"}' x",
    "awk '{n += $1} END {print n > 10}' x",
    "bash --norc -c true",
    "cat /proc/cpuinfo",
    "cat /proc/self/environ",
    "cat /proc/40/environ",
    "ls -l /proc/41/fd",
    "strace -f ls",
    "gdb -p 40",
    "gdb ./a.out",
    "diff -r a b",
    "git diff --no-index a b",
    r#"cat "$d/key""#,
    "rg -n foo ~/src",
    "grep -rn '~/.local/share' docs",
    "ls ~/.local/share && grep -rn foo .",
    "grep -r x ~/.config/foo",
    "git checkout main",
    "git --work-tree=build checkout main",
    "git config core.autocrlf input",
    "python3 -m zipfile -e a.zip vendor",
    "sudo dpkg -i a.deb",
    r#"cp -r "$SRC" "$OUT""#,
    r#"cp -r "$SRC/." build/"#,
    r#"cp "$f" ."#,
    "mkdir -p out && cp -r src/. out/ && cp -r out/. dist/",
    "npx tsc -p .",
    "tsc --build",
    "cargo fmt",
    "cargo fmt --all",
    "cargo build --release",
    "cargo test -p x",
    "cargo clippy --fix --allow-dirty",
    "npm install",
    "npm ci",
    "npm run build",
    "npm test -- --watch=false",
    "npm install --save-dev typescript",
    "pnpm install && pnpm build",
    "yarn",
    "pip install -r requirements.txt",
    "pip install -e .",
    "python3 -m venv .venv",
    "python3 -m pytest -q",
    "uv pip install requests",
    "make",
    "make -j4 test",
    "make clean",
    "cmake -B build -S . && cmake --build build",
    "docker build -t x .",
    "docker compose up -d",
    "docker run --rm -v $(pwd):/w x",
    r#"docker run --rm -v "$PWD":/w -w /w node:20 npm test"#,
    "docker cp x:/app/dist ./dist",
    "go build ./...",
    "go test ./...",
    "rg -n foo",
    "rg -l foo src | xargs sed -i s/foo/bar/",
    "grep -rl foo src | xargs sed -i s/foo/bar/",
    "git ls-files '*.rs' | xargs sed -i s/a/b/",
    "git ls-files | xargs wc -l",
    "tar czf x.tgz src",
    "tar czf /tmp/x.tgz --exclude=target .",
    "tar xzf x.tgz",
    "tar xf x.tar -C dist",
    "unzip x.zip -d vendor",
    "patch -p1 < fix.patch",
    "patch src/a.rs fix.patch",
    "cp -r src /tmp/x",
    "cp src/*.rs /tmp/x/",
    "cp -r src/. dist/",
    "mv src/*.js lib/",
    "mv *.md docs/",
    "cp -r templates/* .",
    "rsync -a src/ dist/",
    "ln -s src lib",
    r#"for f in src/*.rs; do sed -i s/a/b/ "$f"; done"#,
    r#"for f in *.txt; do mv "$f" "${f%.txt}.md"; done"#,
    r#"for d in a b c; do mkdir -p "$d/src"; done"#,
    r#"for f in $(git ls-files '*.py'); do black "$f"; done"#,
    "ls *.rs | while read f; do wc -l $f; done",
    r#"echo x > "$TMPDIR/y""#,
    "echo x > $HOME/notes.txt",
    "cat > src/a.rs <<'E'\nfn main() {}\nE",
    "echo 'a' | tee -a log.txt",
    "truncate -s 0 *.log",
    "touch src/mod.rs && ls -la",
    "perl -pi -e 's/a/b/' src/*.rs",
    "awk '{print $1}' x.txt > y.txt",
    "jq . package.json > x.json && mv x.json package.json",
    "curl -sSL https://x.test/y -o y.tgz",
    "wget https://x.test/y.tgz",
    "shopt -s globstar; sed -i s/a/b/ src/**/*.ts",
    "rm -rf target/ && cargo build",
    "rm -rf */node_modules",
    "rm -rf packages/*/dist",
    "rm -f packages/*/tsconfig.tsbuildinfo",
    "cp packages/*/dist/*.js out/",
    "chmod 644 src/*",
    "chown -R me:me src",
    "dos2unix src/*",
    r#"mkdir -p "$OUT/x""#,
    r#"rm -rf "$TMP""#,
    "pre-commit run --all-files",
    "terraform fmt -recursive",
    "sed -i '' s/a/b/ README.md",
    r#"node -e "require('fs').writeFileSync('a.txt','x')""#,
    r#"python3 -c "open('a.txt','w').write('x')""#,
];

const FREE_TOOLS: &[(&str, &str)] = &[
    ("Write", r#"{"file_path":"src/a.rs","content":"x"}"#),
    ("Write", r#"{"file_path":"/u/ann/repo/app/[id]/page.tsx","content":"x"}"#),
    ("Write", r#"{"file_path":"README.md","content":"see ~/.claude/settings.json"}"#),
    ("Write", r#"{"file_path":".github/workflows/ci.yml","content":"x"}"#),
    ("Write", r#"{"file_path":".vscode/settings.json","content":"{}"}"#),
    ("Write", r#"{"file_path":"package.json","content":"{}"}"#),
    ("Write", r#"{"file_path":".claude/commands/x.md","content":"x"}"#),
    ("Write", r#"{"file_path":".mcp.json","content":"{}"}"#),
    ("Edit", r#"{"file_path":"src/a.rs","old_string":"a","new_string":"b"}"#),
    ("MultiEdit", r#"{"file_path":"src/a.rs","edits":[{"old_string":"a","new_string":"b"}]}"#),
    ("Read", r#"{"file_path":"/etc/hosts"}"#),
    ("Glob", r#"{"pattern":"**/*.json"}"#),
    ("Grep", r#"{"pattern":"x","path":"."}"#),
    ("Grep", r#"{"pattern":"x","glob":"*.rs"}"#),
    ("Grep", r#"{"pattern":"x","path":"~/src","glob":"**/*.{json,key}"}"#),
    ("Glob", r#"{"pattern":"**/key","path":"~"}"#),
    ("mcp__github__create_issue", r#"{"owner":"a","repo":"b","title":"t","body":"see /"}"#),
    ("mcp__github__create_issue", r#"{"owner":"a","repo":"b","title":"/","body":"~"}"#),
    (
        "mcp__github__create_or_update_file",
        r#"{"owner":"a","repo":"b","path":"src/a.rs","content":"x","message":"m","branch":"main"}"#,
    ),
    (
        "mcp__github__create_or_update_file",
        r#"{"owner":"a","repo":"b","path":"/","content":"x","message":"m","branch":"main"}"#,
    ),
    (
        "mcp__github__push_files",
        r#"{"owner":"a","repo":"b","branch":"main","files":[{"path":"src/a.rs","content":"x"}],"message":"m"}"#,
    ),
    ("mcp__github__get_file_contents", r#"{"owner":"a","repo":"b","path":"/"}"#),
    ("mcp__github__delete_file", r#"{"owner":"a","repo":"b","path":"docs/a.md","message":"m","branch":"main"}"#),
    ("mcp__github__update_issue", r#"{"owner":"a","repo":"b","issue_number":1,"body":"~/x"}"#),
    ("mcp__github__merge_pull_request", r#"{"owner":"a","repo":"b","pull_number":1}"#),
    ("mcp__github__create_branch", r#"{"owner":"a","repo":"b","branch":"feature/x"}"#),
    ("mcp__github__delete_branch", r#"{"owner":"a","repo":"b","branch":"feature/x"}"#),
    ("mcp__github__rename_branch", r#"{"owner":"a","repo":"b","branch":"feature/x","new_name":"y"}"#),
    ("mcp__github__search_code", r#"{"q":"path:/ foo"}"#),
    ("mcp__fs__write_file", r#"{"path":"/u/ann/repo/src/a.rs","content":"x"}"#),
    ("mcp__fs__edit_file", r#"{"path":"src/a.rs","edits":[{"oldText":"/","newText":"~"}]}"#),
    ("mcp__fs__create_directory", r#"{"path":"src/x"}"#),
    ("mcp__fs__list_directory", r#"{"path":"/"}"#),
    ("mcp__fs__list_directory", r#"{"path":"."}"#),
    ("mcp__fs__move_file", r#"{"source":"src/a.rs","destination":"src/b.rs"}"#),
    ("mcp__fs__read_text_file", r#"{"path":"README.md"}"#),
    ("mcp__fs__read_text_file", r#"{"path":".claude/settings.json"}"#),
    ("mcp__fs__read_multiple_files", r#"{"paths":["~/.claude/settings.json","pintle.toml"]}"#),
    ("mcp__github__get_file_contents", r#"{"owner":"a","repo":"b","path":".claude/settings.json"}"#),
    ("mcp__web__request", r#"{"headers":{"Content-Type":"a/b","x/y":"1"}}"#),
    ("mcp__fs__search_files", r#"{"path":".","pattern":"**/*.ts"}"#),
    ("mcp__fs__directory_tree", r#"{"path":"."}"#),
    ("mcp__fs__write_file", r#"{"path":"notes.md","content":"/"}"#),
    ("mcp__fs__write_file", r#"{"path":"notes.md","content":"~"}"#),
    ("mcp__fs__write_file", r#"{"path":"notes.md","content":"."}"#),
    (
        "mcp__memory__create_entities",
        r#"{"entities":[{"name":"/","entityType":"x","observations":["~ is home","/"]}]}"#,
    ),
    ("mcp__memory__delete_entities", r#"{"entityNames":["a/b","/"]}"#),
    ("mcp__memory__add_observations", r#"{"observations":[{"entityName":"x","contents":["/"]}]}"#),
    ("mcp__notes__write_note", r#"{"text":"~ is home"}"#),
    ("mcp__notes__write_note", r#"{"text":"~"}"#),
    ("mcp__notes__write_note", r#"{"title":"x","text":"/"}"#),
    ("mcp__notion__notion_write_page", r#"{"path":"/"}"#),
    ("mcp__notion__notion-update-page", r#"{"page_id":"x","content":"/"}"#),
    ("mcp__notion__API-delete-a-block", r#"{"block_id":"x"}"#),
    ("mcp__chat__edit_message", r#"{"channel":"/general"}"#),
    ("mcp__chat__edit_message", r#"{"channel":"/","text":"."}"#),
    ("mcp__slack__slack_post_message", r#"{"channel_id":"C1","text":"/"}"#),
    ("mcp__slack__slack_delete_message", r##"{"channel":"#x","ts":"1"}"##),
    ("mcp__slack__slack_write", r#"{"text":"/remind ~"}"#),
    ("mcp__playwright__browser_navigate", r#"{"url":"http://localhost:3000/"}"#),
    ("mcp__playwright__browser_click", r#"{"element":"/","ref":"e1"}"#),
    ("mcp__playwright__browser_type", r#"{"ref":"e1","text":"/"}"#),
    ("mcp__playwright__browser_file_upload", r#"{"paths":["/u/ann/repo/src/a.rs"]}"#),
    ("mcp__postgres__query", r#"{"sql":"select '/' from x"}"#),
    ("mcp__postgres__write_query", r#"{"sql":"delete from x where path = '/'"}"#),
    ("mcp__postgres__execute", r#"{"query":"update x set a='~'","params":["/","~"]}"#),
    ("mcp__redis__delete", r#"{"key":"/"}"#),
    ("mcp__redis__set", r#"{"key":"/","value":"~"}"#),
    ("mcp__cms__write_page", r#"{"slug":"/","body":"x"}"#),
    ("mcp__router__delete_route", r#"{"route":"/"}"#),
    ("mcp__router__write_route", r#"{"path":"/","method":"GET"}"#),
    ("mcp__gitlab__delete_file", r#"{"file_path":"docs/x.md","branch":"main"}"#),
    ("mcp__linear__update_issue", r#"{"id":"x","description":"./"}"#),
    ("mcp__jira__delete_comment", r#"{"issue":"X-1","body":"."}"#),
];

/// Starts of agents that stay guarded, and commands beside them that look alike.
const FREE_STARTS: &[&str] = &[
    "claude -p x",
    "ln -s $(which claude) /tmp/x; /tmp/x -p y",
    "ln -s $(which node) /tmp/x; /tmp/x --bare",
    "claude -p 'add an mcp server'",
    "claude mcp list",
    "claude mcp get x",
    "claude plugin list",
    "claude --model x -p 'install the plugin'",
    "codex exec 'add mcp to the docs'",
    "codex mcp list",
    "gemini extensions list",
    "copilot -p x",
    "opencode run 'enable plugin x'",
    "qwen -p x",
    "timeout 60 claude -p x",
    "nohup claude -p x",
    "env -u CLAUDECODE claude -p x",
    "env X=1 claude -p x",
    "sudo apt-get update && claude -p x",
    "sudo npm install -g @anthropic-ai/claude-code",
    "sudo chown -R ann /usr/local/bin/claude",
    "su postgres -c psql",
    "unshare -m ls",
    "firejail ls",
    "docker run --name claude image ls",
    "docker build -t claude .",
    "env -i ls",
    "unset HOME",
    "git init --bare x",
    "npm install && npm run bare",
];

/// Commands that leave the guard and its person alone.
const FREE_COMMANDS: &[&str] = &[
    "systemctl --user status pintle-guard",
    "systemctl --user stop nginx",
    "launchctl list",
    "crontab -l",
    "echo '0 4 * * * backup x' | crontab -",
    "expect -c 'spawn ls'",
    "pintle why",
    "pintle audit verify",
    "pintle doctor",
    "pintle budget get",
    "pintle sessions list",
    "pintle sessions show x",
    "cp /usr/bin/pintle x && ./x doctor",
    "./run serve",
    "./manage.py hooks list",
    "[ -f x ] && ls",
    "git commit -m 'say what pintle guard does'",
];

/// What people keep for their shells and services.
const FREE_FOR_LATER: &[&str] = &[
    r#"echo 'alias ll="ls -l"' >> ~/.bashrc"#,
    "echo 'export PATH=$HOME/bin:$PATH' >> ~/.profile",
    "echo 'export XDG_CONFIG_HOME=$HOME/.config' >> ~/.zshenv",
    "echo 'alias cc=claude' >> ~/.bashrc",
    r#"echo 'alias gb="git init --bare"; alias cc=claude' >> ~/.bashrc"#,
    "echo 'ExecStart=backup' > ~/.config/systemd/user/backup.service",
    "rm ~/.config/systemd/user/backup.service",
    "echo 'CLAUDE_CONFIG_DIR=/tmp/x' >> notes.md",
];

const FREE_FILES: &[(&str, &str)] = &[
    ("Write", r#"{"file_path":"/u/ann/.bashrc","content":"export EDITOR=vi"}"#),
    ("Write", r#"{"file_path":"docs/x.md","content":"`claude --bare` runs no hooks, see pintle guard"}"#),
    ("mcp__notes__write_note", r#"{"text":"claude --bare"}"#),
];

#[test]
fn what_is_kept_for_later_may_be_about_anything_else() {
    check(FREE_FOR_LATER, FREE_FILES, false);
}

#[test]
fn commands_about_other_things_pass() {
    check(FREE_COMMANDS, &[], false);
}

#[test]
fn agents_start_agents_that_are_guarded() {
    check(FREE_STARTS, &[], false);
}

#[test]
fn everyday_work_passes_beside_settings() {
    check(FREE_TEXTS, FREE_TOOLS, false);
    let files = [
        ".github/workflows/ci.yml",
        ".vscode/settings.json",
        ".mcp.json",
        "package.json",
        "src/a.rs",
        "app/[id]/p.tsx",
    ];
    for (host, path) in HOSTS.iter().flat_map(|host| files.iter().map(move |path| (host.id, *path))) {
        assert_eq!(write(host, path), None, "{host} may not write {path}");
    }
}
