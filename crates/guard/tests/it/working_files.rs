//! What the guarded agent writes as it works, below the folder of its settings and anywhere else.

use crate::protects::{ruled, write};

#[test]
fn an_agent_keeps_its_plans_and_no_settings_beside_them() {
    for (host, free, guarded) in [
        (
            "claude",
            &[
                "~/.claude/plans/calm-fox.md",
                "~/.claude/projects/-u-ann-repo/memory/MEMORY.md",
                "~/.claude/projects/-u-ann-repo/s/session-memory/summary.md",
                "~/.claude/todos/s.json",
                "~/.claude/CLAUDE.md",
                "~/.claude-squad/worktrees/x/src/main.rs",
            ][..],
            &[
                "~/.claude/plans/../settings.json",
                "~/.claude/plans/.claude/settings.json",
                "~/.claude/projects/-u-ann-repo/s.jsonl",
                "~/.claude/agents/x.md",
                "~/.claude/commands/x.md",
                "~/.claude/plugins/x/hooks.json",
                "~/.claude/.credentials.json",
                "~/.claude.json.backup",
                "~/.claude-work/settings.json",
                "~/.claude-work/.claude.json",
                "~/.claude-squad/worktrees/x/.claude/settings.json",
            ][..],
        ),
        (
            "codex",
            &["~/.codex/AGENTS.md", "~/.codex/memories/x.md", "~/.codex/worktrees/1/repo/src/a.rs"],
            &["~/.codex/worktrees/1/repo/.codex/hooks.json", "~/.codex/sessions/2026/11/26/rollout-x.jsonl"],
        ),
        ("gemini", &["~/.gemini/tmp/x/plan.md", "~/.gemini/GEMINI.md"], &["~/.gemini/settings.json"]),
        ("qwen", &["~/.qwen/todos/s.json", "~/.qwen/QWEN.md"], &["~/.qwen/projects/x/chats/s.jsonl", ".qwen/plans/x"]),
        (
            "copilot",
            &["~/.copilot/session-state/s/plan.md", "~/.copilot/session-state/s/files/a.md"],
            &["~/.copilot/session-state/s/events.jsonl", "~/.copilot/config.json"],
        ),
        ("kimi", &["~/.kimi-code/plans/x.md"], &["~/.kimi-code/sessions/x/wire.jsonl"]),
        ("cline", &["~/.cline/worktrees/1/repo/a.rs"], &["~/.cline/worktrees/1/repo/.clinerules/hooks/PreToolUse"]),
        ("opencode", &["~/.config/opencode/AGENTS.md"], &["~/.config/opencode/agent/x.md"]),
        ("pi", &["~/.pi/agent/AGENTS.md"], &["~/.pi/agent/sessions/x/s.jsonl"]),
    ] {
        for path in free {
            assert_eq!(write(host, path), None, "{host} may not write {path}");
        }
        for path in guarded {
            assert!(write(host, path).is_some(), "{host} writes {path}");
        }
    }
}

#[test]
fn letters_of_patterns_are_letters_to_a_tool_of_files() {
    for host in pintle_guard::HOSTS {
        for path in
            ["app/[id]/page.tsx", "app/[...slug]/page.tsx", "{{cookiecutter.name}}/a.py", "routes/$id/edit.tsx", "a/*"]
        {
            assert_eq!(write(host.id, path), None, "{} may not write {path}", host.id);
        }
        assert!(write(host.id, "app/[id]/.codex/config.toml").is_some(), "{}", host.id);
    }
}

#[test]
fn patterns_of_everyday_texts_mean_no_hidden_folder() {
    for host in pintle_guard::HOSTS {
        for (text, refused) in [
            ("rm -rf dist/*", false),
            ("cd dist && rm -rf *", false),
            ("chmod +x scripts/*", false),
            ("sed -i s/a/b/ src/*", false),
            ("cp a.md app/[id]/", false),
            ("rm ~/.claude/plans/old.md", false),
            ("rm -rf ~/.claude/plans/*", false),
            ("echo done >> ~/.claude/plans/x.md", false),
            ("rm -rf ~/.claude/p*", true),
            ("rm -rf ~/.claude/*", true),
            ("echo x > ~/.claude/plans/$X", true),
            ("mv x ~/.claude/plans/../settings.json", true),
            ("rm -rf ~/.config/*", true),
            ("rm -rf /*", true),
            ("rm -rf .*", true),
            ("shopt -s dotglob; rm -rf *", true),
            ("rm -rf .git* .cod?x", true),
        ] {
            ruled(host.id, text, refused);
        }
    }
}

#[test]
fn nothing_is_brought_into_the_place_of_settings() {
    for host in pintle_guard::HOSTS {
        for (text, refused) in [
            ("cd foo && cp --parents .claude/settings.json ..", true),
            ("rsync -aR foo/./.qwen/settings.json .", true),
            ("rsync -a --link-dest=/u/ann/repo/.claude foo/ x", true),
            ("rsync -a --link-dest=../.claude foo/ x", true),
            ("git checkout other .claude/settings.json", true),
            ("git checkout other .claude", true),
            ("git stash push -- .codex", true),
            ("git clean -fdx .qwen", true),
            ("git apply <<'E'\n--- a/.claude/settings.json\n+++ b/.claude/settings.json\n@@ -1 +1 @@\n-a\n+b\nE", true),
            ("patch -p1 <<'E'\n--- a/x\n+++ b/.gemini/settings.json\n@@ -1 +1 @@\n-a\n+b\nE", true),
            ("cp --parents .github/workflows/ci.yml /tmp/x", false),
            ("rsync -aR src/a.rs /tmp/x", false),
            ("git checkout main", false),
            ("git checkout main src/a.rs", false),
            ("git stash && git stash pop", false),
            ("git reset --hard HEAD", false),
            ("git apply <<'E'\n--- a/x.md\n+++ b/x.md\n@@ -1 +1 @@\n-a\n+b\nE", false),
        ] {
            ruled(host.id, text, refused);
        }
    }
}

#[test]
fn a_text_that_cannot_be_read_may_name_a_copy_of_a_project() {
    for (text, refused) in [
        ("cd ~/.claude-squad/worktrees/x && $RUN", false),
        ("cd .claude/worktrees/x && $RUN", false),
        ("cd ~/.codex/worktrees/1/repo && $RUN", false),
        ("cd .claude/worktrees/x && $RUN && cd ../..", true),
        ("cd .claude/worktrees/$X && $RUN", true),
        ("cd ~/.codex/worktrees/1/.codex && $RUN", true),
        ("cd ~/.claude-squad && $RUN", true),
        ("$RUN .claude/x", true),
    ] {
        ruled("claude", text, refused);
    }
}
