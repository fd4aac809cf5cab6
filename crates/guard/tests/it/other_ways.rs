//! What a link, an archive, a list, a variable or a runner would bring an agent to, each beside everyday calls that look alike.

use pintle_domain::json::json;

use crate::everyday::{LINK, check, refusal_beside};

/// Texts that are refused, and texts that pass, where this lies on the disk.
fn check_beside(on_disk: &[&str], held: &[&str], free: &[&str]) {
    let all = held.iter().map(|text| (text, true)).chain(free.iter().map(|text| (text, false)));
    for (text, refused) in all {
        let why = refusal_beside((on_disk, &[]), "Bash", &json!({"command": *text}));
        assert_eq!(why.is_some(), refused, "{text}: {why:?}");
    }
}

#[test]
fn a_pattern_that_stands_for_a_link_leads_where_that_does() {
    let held = [
        "echo x > links/ln?/settings.json",
        "echo x > links/l*/new.json",
        "cp a.json links/[l]nk/settings.json",
        "tee links/ln?/settings.json < x",
        "sed -i s/a/b/ links/ln?/settings.json",
        "rm links/ln?/new.json",
        "cd links/ln? && echo x > settings.json",
        "for d in links/ln?; do echo x > $d/settings.json; done",
        "echo x > links/lnk/../.claude.json",
        "cd links/lnk && echo x > ../.claude.json",
    ];
    let free = [
        "echo x > src/ln?/settings.json",
        "echo x > links/k*/settings.json",
        "rm -f links/*.json",
        "cat links/ln?/settings.json",
        "echo x > links/lnk/../notes.md",
        "cat links/lnk/../.claude.json",
        "echo x > links/a/../.claude.json",
    ];
    check_beside(&[LINK[0], "/u/ann/repo/links/a.txt"], &held, &free);
}

const HELD_ARCHIVES: &[&str] = &[
    "unzip a.zip '.local/*' -d ~",
    "unzip a.zip '.l*' -d ~",
    "unzip a.zip '*.json' -d ~",
    "unzip -j a.zip x/.claude.json -d ~",
    "bsdunzip a.zip '.local/*' -d ~",
    "tar xf a.tar -C ~ .local",
    "tar xf a.tar -C ~ .config",
    "tar xf a.tar -C ~ --wildcards '.l*'",
    "tar xf a.tar -C ~ --strip-components 1 x/y",
    "bsdtar xf a.zip -C ~ '.local/*'",
    "cd ~ && tar xf a.tar .local",
    "7z x a.7z '.local' -o../",
    "cd ~ && pax -rf a.pax",
    "cd ~ && pax -rf a.pax '.local/*'",
    "cd ~ && ar x a.a",
    "unar -o ~ a.zip",
];

const FREE_ARCHIVES: &[&str] = &[
    "unzip a.zip docs/a.md -d ~",
    "unzip a.zip 'notes/*' -d ~",
    "unzip a.zip '*.md'",
    "unzip a.zip 'src/*' -d vendor",
    "tar xf a.tar -C ~ repo/src",
    "tar xf a.tar -C ~ --wildcards 'x*'",
    "tar xf a.tar -C out --strip-components 1 x/y",
    "7z x a.7z docs -oout",
    "pax -rf a.pax",
    "ar x a.a",
    "unar a.zip",
];

#[test]
fn no_part_of_an_archive_comes_where_settings_lie() {
    check(HELD_ARCHIVES, &[], true);
    check(FREE_ARCHIVES, &[], false);
}

/// Texts that take `LIST` as a list of files and change them.
const TAKES_LIST: &[&str] = &[
    "xargs rm < LIST",
    "xargs -a LIST rm",
    "xargs --arg-file=LIST -n1 rm -f",
    "cat LIST | xargs rm",
    "sort LIST | xargs sed -i s/a/b/",
    "cat LIST | xargs -n1 sh -c 'rm \"$1\"' _",
    "rm $(cat LIST)",
    "rm `cat LIST`",
    "rm $(<LIST)",
    "f=$(head -5 LIST); rm \"$f\"",
    "while read f; do rm \"$f\"; done < LIST",
    "while read -r f; do echo x > \"$f\"; done < LIST",
    "cat LIST | while read f; do echo x > \"$f\"; done",
    "for f in $(cat LIST); do cp x $f; done",
    "mapfile -t a < LIST; rm \"${a[@]}\"",
    "parallel rm < LIST",
    "parallel rm :::: LIST",
    "git rm --pathspec-from-file=LIST",
];

/// Texts that read it, or change something else.
const READS_LIST: &[&str] = &[
    "xargs cat < LIST",
    "while read f; do cp \"$f\" /tmp/x/; done < LIST",
    "while read f; do sed -n 1p \"$f\"; done < LIST",
    "while read -r line; do echo \"$line\" >> \"$OUT\"; done < LIST",
    "rm \"$TMP\"; cat LIST",
    "grep -l x LIST | xargs sed -i s/a/b/",
    "git add --pathspec-from-file=LIST",
    "rm $(cat none.txt)",
];

#[test]
fn a_list_in_a_file_is_read_before_it_is_taken() {
    for text in TAKES_LIST {
        check(&[&text.replace("LIST", "held.txt")], &[], true);
        check(&[&text.replace("LIST", "free.txt")], &[], false);
    }
    for text in READS_LIST {
        check(&[&text.replace("LIST", "held.txt")], &[], false);
    }
}

const HELD_VARIABLES: &[&str] = &[
    r#"echo 'export NODE_OPTIONS="--require /tmp/x.js"' >> ~/.bashrc"#,
    r#"echo "export NODE_OPTIONS=\"--a --require /tmp/x.js\"" >> ~/.bashrc"#,
    "echo 'export BASH_ENV=/tmp/x' >> ~/.profile",
    "echo 'export LD_PRELOAD=/tmp/x.so' >> ~/.zshenv",
    "echo 'NODE_OPTIONS=--import=/tmp/x.mjs' > ~/.config/environment.d/x.conf",
    "echo 'node-options=--require=/tmp/x.js' >> ~/.npmrc",
    "echo /tmp/x.so > /etc/ld.so.preload",
    "tmux setenv -g NODE_OPTIONS '--require /tmp/x.js'",
    "fish -c 'set -Ux NODE_OPTIONS --require=/tmp/x.js'",
    "systemctl --user set-environment LD_PRELOAD=/tmp/x.so",
    "npm config set node-options '--require /tmp/x.js'",
    "NODE_OPTIONS='--require /tmp/x.js' claude -p x",
    "BASH_ENV=/tmp/x codex exec y",
];

const FREE_VARIABLES: &[&str] = &[
    "echo 'export NODE_OPTIONS=--max-old-space-size=4096' >> ~/.bashrc",
    "echo 'export PYTHONSTARTUP=~/.pythonrc' >> ~/.bashrc",
    "echo 'registry=https://x.test' >> ~/.npmrc",
    "tmux setenv -g NODE_OPTIONS --no-warnings",
    "npm config set registry https://x.test",
    "NODE_OPTIONS=--max-old-space-size=4096 claude -r abc -p x",
    "NODE_OPTIONS=--max-old-space-size=4096 npm run build",
    "NODE_OPTIONS='--require ts-node/register' mocha",
    "BASH_ENV=ci.env bash build.sh",
];

#[test]
fn no_code_is_loaded_into_agents_that_begin_later() {
    let held = [
        ("Write", r#"{"file_path":"/u/ann/.bashrc","content":"export BASH_ENV=/tmp/x"}"#),
        ("Write", r#"{"file_path":"/etc/ld.so.preload","content":"/tmp/x.so"}"#),
    ];
    check(HELD_VARIABLES, &held, true);
    let free = [("Write", r#"{"file_path":"/u/ann/.bashrc","content":"export NODE_OPTIONS=--no-warnings"}"#)];
    check(FREE_VARIABLES, &free, false);
}

const HELD_RUNNERS: &[&str] = &[
    "cargo run -p pintle -- guard uninstall",
    "cargo run --bin=pintle -- approvals approve 1",
    "cargo r -ppintle -- trust .",
    "cargo +nightly run --release -p pintle-cli -- guard uninstall --yes",
    "cargo run --manifest-path ../pintle/Cargo.toml -- hooks disable x",
    "cargo run -- guard uninstall --host claude",
    "npx -y pintle@latest trust .",
    "npm run pintle -- guard uninstall",
    "uvx pintle guard uninstall",
    "uv run pintle guard uninstall",
    "uv tool run pintle guard uninstall",
    "pipx run pintle guard uninstall",
    "poetry run pintle guard uninstall",
    "mise x pintle -- pintle guard uninstall",
    "nix run nixpkgs#pintle -- guard uninstall",
    "go run example.com/x/pintle@latest guard uninstall",
    "go run ./cmd/pintle guard uninstall",
    "node x/pintle.js guard uninstall",
    "node x/pintle/cli.js guard uninstall",
    "sh ./pintle guard uninstall",
    "bash -x pintle trust .",
    "python3 bin/pintle.py approvals approve 1",
    "java -jar pintle.jar trust .",
    "dotnet pintle.dll guard uninstall",
    "mise exec -- claude --bare -p x",
    "uv run claude --bare -p x",
];

const FREE_RUNNERS: &[&str] = &[
    "cargo run -p pintle -- why",
    "cargo run -p pintle -- guard status",
    "cargo run -p pintle-soak -- guard",
    "cargo run -- serve",
    "cargo test -p pintle guard",
    "npx pintle why",
    "npm install pintle",
    "npm run guard",
    "uv pip install pintle",
    "go test ./pintle -run guard",
    "node docs/pintle/build.js hooks",
    "python3 manage.py guard list",
    "npx prettier --write docs/pintle/guard.md",
    "sudo bash setup.sh claude",
];

#[test]
fn no_runner_runs_a_command_of_a_person() {
    check(HELD_RUNNERS, &[], true);
    check(FREE_RUNNERS, &[], false);
}

#[test]
fn what_a_search_finds_is_looked_at_however_it_is_taken() {
    let held = [
        r#"find . -name '*.json' -exec sh -c 'mv "$1" "${1%.json}.txt"' _ {} \;"#,
        r#"find . -name '*.json' | while read f; do rm "$f"; done"#,
        "find . -type f | xargs rm",
        "find . -type f -exec rm {} +",
        "find -L . -type f -exec rm {} +",
        "find . -type f -o -type l | xargs rm",
        r"find . -type d -exec touch {}/settings.json \;",
        "find . -type d | xargs -I{} touch {}/settings.json",
        r#"find . -type d | while read d; do touch "$d/settings.json"; done"#,
        "find . -type f | xargs sed -i s/a/b/",
        r#"find . -type f | while read f; do echo x > "$f"; done"#,
    ];
    check(&held, &[], true);
    let free = [
        r#"find . -name '*.tmp' -exec sh -c 'mv "$1" "${1%.tmp}.txt"' _ {} \;"#,
        r#"find . -name '*.tmp' -exec bash -c 'for f; do mv "$f" "${f%.tmp}.txt"; done' _ {} +"#,
        r#"find . -name '*.rs' -exec sh -c 'sed -i s/a/b/ "$1"' _ {} \;"#,
        r#"find . -name '*.rs' | while read -r f; do sed -i s/a/b/ "$f"; done"#,
        r#"find . -name '*.rs' -print0 | while IFS= read -r -d '' f; do sed -i s/a/b/ "$f"; done"#,
        r#"find . -name '*.txt' | while read f; do mv "$f" "${f%.txt}.md"; done"#,
        r#"find . -name '*.log' | while read f; do rm "$f"; done"#,
        r#"find . -name '*.log' | while read f; do gzip "$f"; done"#,
        r#"find src -type f | while read f; do sed -i s/a/b/ "$f"; done"#,
        r#"find src -type f | while read f; do echo x > "$f"; done"#,
        "find src -type f | xargs sed -i s/a/b/",
        "find dist -type f -exec rm {} +",
        "find . -type f -exec grep x {} +",
        r"find . -type d -exec touch {}/.gitkeep \;",
        r#"find src -type d | while read d; do touch "$d/settings.json"; done"#,
    ];
    check(&free, &[], false);
}

#[test]
fn a_new_ending_makes_no_settings_of_what_a_search_finds() {
    let found = ["/u/ann/repo/.claude", "/u/ann/repo/.claude/settings.tmp", "/u/ann/repo/a.tmp"];
    let held = [
        r#"find . -name '*.tmp' -exec sh -c 'mv "$1" "${1%.tmp}.json"' _ {} \;"#,
        r#"find . -name '*.tmp' | while read f; do mv "$f" "${f%.tmp}.json"; done"#,
    ];
    let free = [r#"find . -name '*.tmp' -exec sh -c 'mv "$1" "${1%.tmp}.txt"' _ {} \;"#];
    check_beside(&found, &held, &free);
}
