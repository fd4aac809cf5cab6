//! Commands of a person, and agents without their hooks, that are told in code, to programs that start others, or to be run
//! later, each beside everyday calls that look alike.

use crate::everyday::check;
use crate::protects::ruled;

/// Shell texts, and whether they are refused.
const TEXTS: &[(&str, bool)] = &[
    // Code of other languages.
    (r#"awk 'BEGIN{system("setsid -f pintle guard uninstall --host claude --yes")}'"#, true),
    (r#"node -e "require('child_process').spawn('pintle',['guard','uninstall','--yes'])""#, true),
    ("vim -es --cmd '!setsid -f pintle guard uninstall --yes' -c q", true),
    (r#"python3 -c "import os; os.system('pintle guard uninstall --yes')""#, true),
    (r#"python3.12 -c "import os; os.system('pintle trust .')""#, true),
    ("python3 - <<'E'\nimport os\nos.system('pintle approvals approve 1')\nE", true),
    (r#"python3 -c "p='pintle'; c=['approvals', 'approve', '1']; import subprocess; subprocess.run([p, *c])""#, true),
    (r#"perl -e 'system("pintle guard uninstall --yes")'"#, true),
    ("ruby -e '`pintle approvals approve 1`'", true),
    (r#"php -r 'passthru("pintle hooks disable all");'"#, true),
    (r#"lua -e 'os.execute("pintle serve")'"#, true),
    (r#"deno eval "new Deno.Command('pintle',{args:['guard','uninstall']}).spawn()""#, true),
    (r#"bun -e "Bun.spawn(['pintle','keys','create'])""#, true),
    (r"printf '!pintle guard uninstall --yes\n' | ed", true),
    ("ex -sc '!pintle trust .'", true),
    (r#"emacs --batch --eval '(call-process "pintle" nil 0 nil "guard" "uninstall" "--yes")'"#, true),
    ("gdb -batch -ex '!pintle guard uninstall --yes'", true),
    (r#"python3 -c "import subprocess; subprocess.run(['claude','--bare','-p','x'])""#, true),
    ("node -e \"spawn('claude',\n['--safe-mode'])\"", true),
    (r#"python3 -c "import os; os.environ['CLAUDE_CONFIG_DIR']='/tmp'; os.execvp('claude',['claude'])""#, true),
    (r#"node -e "process.env.CODEX_HOME='/tmp'; spawn('codex')""#, true),
    (r#"python3 -c "import os; print(os.environ['CLAUDE_CONFIG_DIR'])""#, false),
    (r#"python3 -c "print('pintle is great')""#, false),
    (r#"python3 -c "print('pintle guard is great')""#, false),
    (r#"python3 -c "import os; os.system('pintle why')""#, false),
    (r#"python3 -c "import os; os.system('pintle hooks list; pintle guard status')""#, false),
    (r#"node -e "require('child_process').spawn('claude',['-p','x'])""#, false),
    ("vim docs/pintle/guard.md", false),
    // Programs that start others.
    ("screen -dm pintle approvals approve 1", true),
    ("dtach -n /tmp/s pintle approvals approve 1", true),
    ("abduco -n s pintle trust .", true),
    ("zellij run -- pintle approvals approve 1", true),
    ("kitty pintle guard uninstall --yes", true),
    ("foot pintle approvals approve 1", true),
    ("gnome-terminal -- pintle approvals approve 1", true),
    ("wezterm start pintle approvals approve 1", true),
    ("ttyd pintle approvals approve 1", true),
    ("openvt -- pintle approvals approve 1", true),
    ("socat EXEC:'pintle approvals approve 1',pty,setsid,ctty -", true),
    ("tini -- pintle guard uninstall --yes", true),
    ("dumb-init pintle guard uninstall --yes", true),
    ("screen -dm claude --bare -p x", true),
    ("HOME=/x screen -dm claude -p y", true),
    (r#"setsid -f script -qc "sleep 1; $(type -p pintle) approvals approve 1" /dev/null"#, true),
    ("screen -dm pintle why", false),
    ("tmux new -d -s claude", false),
    ("tmux new -d 'claude -p x'", false),
    // A program whose name another one says.
    ("$(type -p pintle) approvals approve 1", true),
    (r#""$(realpath ../bin/pintle)" guard uninstall --yes"#, true),
    (r#""$(ls ../bin/pintle)" approvals approve 1"#, true),
    ("$(compgen -c pintle | head -1) approvals approve 1", true),
    ("read p < <(which pintle); $p approvals approve 1", true),
    (r"find .. -name pintle -exec {} approvals approve 1 \;", true),
    ("p=$(cat x); $p guard uninstall --yes", true),
    ("$(type -p claude) --bare -p x", true),
    ("$RUN serve", false),
    ("$(npm bin)/vite serve && ls pintle", false),
    // Recipes and settings that the same text writes or sets.
    (r"printf 'all:\n\tpintle guard uninstall --yes\n' | make -f -", true),
    (r"printf 'all:\n\tpintle trust .\n' > Makefile; make", true),
    (
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.z GIT_CONFIG_VALUE_0='!setsid -f pintle guard uninstall --yes' git z",
        true,
    ),
    ("V='!pintle guard uninstall --yes' git --config-env=alias.z=V z", true),
    (r"printf '[alias]\nz = !pintle guard uninstall --yes\n' >> .git/config; git z", true),
    (r"printf 'pintle guard uninstall --yes\n' > .git/hooks/post-commit; git commit -m x", true),
    (r#"echo '{"scripts":{"c":"pintle guard uninstall --yes"}}' > package.json; npm run c"#, true),
    ("go test -exec 'pintle guard uninstall --yes'", true),
    (r#"GOFLAGS='-exec="pintle guard uninstall --yes"' go test"#, true),
    ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER='pintle guard uninstall --yes' cargo run", true),
    (r#"git commit -m "pintle guard uninstall removes the entry""#, false),
    (r#"git config user.name x && git commit -m "pintle guard uninstall removes the entry""#, false),
    (r#"echo "run pintle guard uninstall" >> README.md"#, false),
    (r#"grep -r "pintle approvals approve" docs"#, false),
    (r#"echo 'echo ok' > .git/hooks/pre-push; git commit -m "pintle guard uninstall asks first""#, false),
    ("cat > \"$d/x.md\" <<'E'\nRun `pintle guard uninstall`.\nE", false),
    ("cd \"$ROOT\" && cat > docs/x.md <<'E'\n    pintle guard uninstall\nE\ngit add docs/x.md", false),
    ("cat > \"$d/x.md\" <<'E'\npintle guard uninstall\nE\nsh \"$d/x.md\"", true),
    ("cat > \"$d/x.sh\" <<'E'\npintle guard uninstall\nE", true),
    ("cat > \"$d/x.md\" <<'E'\npintle guard uninstall\nE\n$RUN", true),
    ("GOFLAGS=-mod=mod go build ./...", false),
    (r"printf 'all:\n\techo x\n' | make -f -", false),
    // Runners of packages, and what is loaded into an agent.
    ("npm exec @anthropic-ai/claude-code -- --bare -p x", true),
    ("npm exec --package=@anthropic-ai/claude-code -- claude --bare -p x", true),
    ("npm x @anthropic-ai/claude-code -- --bare", true),
    ("pnpm dlx @anthropic-ai/claude-code --bare", true),
    ("yarn dlx @anthropic-ai/claude-code --bare", true),
    ("bunx @anthropic-ai/claude-code --bare", true),
    ("LD_PRELOAD=./x.so claude -p x", true),
    ("npm exec @anthropic-ai/claude-code -- -p x", false),
    ("npm run dev -- --bare", false),
    ("LD_PRELOAD=./x.so ls", false),
    // What is kept for later.
    (r#"echo "export CLAUDE_CONFIG_""DIR=/tmp" >> ~/.bashrc"#, true),
    ("echo 'set -x CLAUDE_CONFIG_DIR /tmp' >> ~/.config/fish/config.fish", true),
    ("fish -c 'set -Ux CLAUDE_CONFIG_DIR /tmp'", true),
    ("tmux setenv -g CLAUDE_CONFIG_DIR /tmp", true),
    ("systemctl --user set-environment CLAUDE_CONFIG_DIR=/tmp", true),
    ("echo 'pintle guard uninstall --yes' >> ~/.bash_logout", true),
    (r#"echo 'run-shell "pintle guard uninstall --yes"' > ~/.tmux.conf"#, true),
    ("echo 'set-environment -g CLAUDE_CONFIG_DIR /tmp' > ~/.tmux.conf", true),
    ("echo '* * * * * ann pintle trust .' > /etc/cron.d/x", true),
    ("echo 'pintle guard uninstall --yes' > /etc/cron.hourly/x", true),
    ("echo 'set -x EDITOR vim' >> ~/.config/fish/config.fish", false),
    ("tmux setenv -g EDITOR vim", false),
    ("systemctl --user set-environment EDITOR=vim", false),
    ("echo 'set -g mouse on' > ~/.tmux.conf", false),
];

#[test]
fn what_is_told_to_other_programs_is_read() {
    for host in ["claude", "codex", "pi"] {
        for (text, refused) in TEXTS {
            ruled(host, text, *refused);
        }
    }
}

#[test]
fn no_tool_writes_it_for_later_or_reads_a_process_of_the_guard() {
    let held = [
        ("Write", r#"{"file_path":"/u/ann/.vimrc","content":"autocmd VimEnter * !pintle guard uninstall --yes"}"#),
        ("Write", r##"{"file_path":".git/hooks/post-commit","content":"#!/bin/sh\npintle guard uninstall --yes"}"##),
        ("Write", r#"{"file_path":"/u/ann/.ssh/rc","content":"pintle trust ."}"#),
        ("Write", r#"{"file_path":"/u/ann/.config/zsh/.zshrc","content":"export CLAUDE_CONFIG_DIR=/tmp"}"#),
        ("Write", r#"{"file_path":"/var/spool/cron/ann","content":"* * * * * pintle guard uninstall --yes"}"#),
        ("Write", r#"{"file_path":"/etc/rc.local","content":"claude --bare -p x"}"#),
        ("Read", r#"{"file_path":"/proc/41/environ"}"#),
        ("mcp__fs__read_text_file", r#"{"path":"/proc/41/environ"}"#),
    ];
    check(&["gcore 41", "strace -p 41", "cat /proc/41/environ"], &held, true);
    let free = [
        ("Write", r#"{"file_path":"/u/ann/.vimrc","content":"\" pintle guard keeps this file"}"#),
        ("Write", r##"{"file_path":".git/hooks/pre-commit","content":"#!/bin/sh\ncargo fmt --check"}"##),
        ("Read", r#"{"file_path":"/proc/40/environ"}"#),
        ("Read", r#"{"file_path":"/proc/self/environ"}"#),
    ];
    check(&["gcore 40", "strace -p 40"], &free, false);
}
