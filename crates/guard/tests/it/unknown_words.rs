//! Words that nobody knows, beside settings of agents: what is no file, and names that only look like those of settings.

use pintle_domain::json::json;

use crate::everyday::{CLEAN, check, refusal_beside};

/// Branches, commits, owners and modes stand where no file does.
const FREE: &[&str] = &[
    r#"git checkout -b "$b""#,
    r#"git checkout "$BRANCH""#,
    "git checkout $b -- src/a.rs",
    r#"git checkout "origin/$b""#,
    r#"git checkout "$(git branch --show-current)""#,
    "git checkout $(git describe --tags)",
    r#"git checkout main -- "$f""#,
    "git reset $b",
    "git reset --soft $(git merge-base HEAD main)",
    "git reset --hard $(git rev-parse @{u})",
    r#"git restore --source "$b" -- src/a.rs"#,
    r#"git restore --source "$(git branch --show-current)" -- src/a.rs"#,
    r#"git restore "$f""#,
    "git stash apply $s",
    "for b in $(git branch --list); do git checkout $b && npm test; done",
    "chown -R $(id -u):$(id -g) dist",
    "chown -R $USER:$USER dist",
    "chgrp $(id -g) a.txt",
    "chmod $MODE a.txt",
    r#"chmod "$(stat -c %a a.txt)" b.txt"#,
    r#"chmod +x "$f""#,
    "sudo chown -R $(whoami) ~/.npm",
    // What a link leads to is looked at when it is used.
    r#"ln -sfn "releases/$v" current"#,
    r#"ln -sf "$T" current"#,
    "ln -s $(brew --prefix)/bin/x ~/bin/x",
    // Names that only begin or end as those of settings do.
    "kill $(cat app.pid)",
    "pid=$(cat app.pid); kill $pid",
    "kill $(cat /run/nginx.pid)",
    "node $s & echo $! > app.pid",
    r#"rm -f "$d"/*.pid"#,
    r#"sed -i "s/$a/$b/" azure.pipelines.yml"#,
    r#"mv "$f" model.pickle"#,
    r#"cp "$f" .pixi/x"#,
    r#"cp "$f" README.claude.md"#,
    r#"cp "$f" a.codex.md"#,
    r#"cp "$f" .github/copilot-instructions.md"#,
];

const HELD: &[&str] = &[
    r#"ln -sf "$T" .claude"#,
    r#"ln -sf "$T" .claude/settings.json"#,
    r#"ln -sf "$T" ~/.codex/config.toml"#,
    r#"ln -s "$T" x; echo {} > x/settings.json"#,
    "git checkout $b -- .claude/settings.json",
    "git checkout $b .claude",
    r#"git checkout main -- ".claude/$f""#,
    r#"git checkout main -- ".cl$f""#,
    r#"git checkout main -- "$d/.gemini""#,
    r#"git checkout main -- "$d/.cod?x""#,
    r#"git checkout main -- "$HOME/.claude""#,
    "cd .gemini && git checkout main -- $f",
    r#"git restore --source "$b" -- .claude/settings.json"#,
    r#"git restore -s "$b" .gemini"#,
    r#"git stash push -- ".codex/$x""#,
    "git clean -fdx .qwen/$x",
    "chown -R $USER:$USER .claude",
    "chmod -x .claude/settings.json",
    "chmod -x ~/.cline/hooks/PreToolUse",
    "chmod $MODE .claude/settings.json",
    "chmod $MODE ~/.codex",
    "chmod --reference=x .claude/settings.json",
    r#"chmod 000 ".claude/$f""#,
    r#"chmod 000 "$d/.gemini""#,
    "sudo chown -R $(whoami) ~/.claude",
    "chgrp $(id -g) ~/.codex/config.toml",
    r#"cp "$f" .pi/extensions/x.ts"#,
    r#"cp "$f" ~/.pi"#,
    r#"cp "$f" "$d.pi/extensions/x.ts""#,
    r#"cp "$f" "${d}.codex/hooks.json""#,
    "cp -vt.codex $f",
    "$y | xargs -I X cp f X.codex/hooks.json",
    r"printf 'a\n.codex/hooks.json' | xargs $c",
    r#"cp "$f" .codex"#,
    r#"cp "$f" .github/copilot/settings.json"#,
];

#[test]
fn a_word_that_is_no_file_holds_no_settings() {
    check(FREE, &[], false);
    let text = r#"chown -R "$USER:$USER" ."#;
    assert_eq!(refusal_beside((CLEAN, &[]), "Bash", &json!({"command": text})), None, "{text}");
}

#[test]
fn settings_are_held_beside_words_that_nobody_knows() {
    check(HELD, &[], true);
}

#[test]
fn all_of_a_folder_in_an_archive_is_taken_as_the_archive_is() {
    let free = ["unzip y.zip 'src/*'", "unzip -o y.zip 'src/*' -d out", "tar xf y.tar --wildcards 'src/*'"];
    check(&free, &[], false);
    let held = [
        "unzip y.zip '.claude/*'",
        "unzip y.zip '.cl*/*'",
        "unzip y.zip '.*/*'",
        "unzip y.zip 'src/*' -d .claude",
        "unzip y.zip '.config/*' -d ~",
        "unzip -j y.zip 'src/*' -d ~",
        "tar xf y.tar --wildcards '.codex/*'",
        "tar xf y.tar --wildcards 'src/*' -C ~ --strip-components 1",
    ];
    check(&held, &[], true);
}

#[test]
fn an_agent_may_have_lists_shown_and_nothing_more() {
    check(&["pintle approvals list", "pintle hooks list", "pintle guard status"], &[], false);
    let held = [
        "pintle approvals approve 1",
        "pintle approvals list; pintle approvals approve 1",
        "pintle approvals",
        "pintle hooks disable list",
        "pintle guard stop status",
        "pintle hooks $X",
        "pintle --config list approvals approve 1",
        "echo approve 1 | xargs pintle approvals",
    ];
    check(&held, &[], true);
}
