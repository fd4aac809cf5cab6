//! Loops over folders and searches that move what they find, beside settings of agents.

use pintle_domain::json::json;

use crate::everyday::{LINK, check, refusal_beside};

const FREE: &[&str] = &[
    r#"for d in packages/*; do cp LICENSE "$d/"; done"#,
    r#"for d in packages/*; do echo x > "$d/VERSION"; done"#,
    r#"for d in */; do touch "$d/.gitkeep"; done"#,
    r#"for p in packages/*; do (cd "$p" && rm -rf dist && npm run build); done"#,
    r#"for d in */; do (cd "$d" && rm -f *.log && make); done"#,
    r#"for d in packages/*; do mkdir -p "$d/src" && touch "$d/src/mod.rs"; done"#,
    r#"for d in packages/*/; do echo {} | tee "$d/settings.json"; done"#,
];

const HELD: &[&str] = &[
    r#"for d in .*; do touch "$d/settings.json"; done"#,
    r#"for d in * .*; do echo x > "$d/settings.json"; done"#,
    r#"for d in .c*; do cp LICENSE "$d/settings.json"; done"#,
    r#"for d in ~/.*; do touch "$d/settings.json"; done"#,
    r#"shopt -s dotglob; for d in *; do touch "$d/settings.json"; done"#,
    r#"for d in *; do touch "$d/.claude/settings.json"; done"#,
    r#"for d in *; do ln -s ~/.claude "$d/x"; touch "$d"/*/settings.json; done"#,
    r#"ln -s ~/.claude x; for d in *; do touch "$d/settings.json"; done"#,
    r#"for d in ~/*; do rm -rf "$d/.claude"; done"#,
    r#"for d in ~/.config/*; do rm -rf "$d"; done"#,
    r#"for d in ~/.config/*; do touch "$d/x"; done"#,
];

#[test]
fn a_loop_over_folders_leaves_settings_alone() {
    check(FREE, &[], false);
}

#[test]
fn no_loop_leads_to_settings() {
    check(HELD, &[], true);
}

#[test]
fn a_search_moves_or_packs_what_is_no_settings() {
    let free = [
        r"find . -name '*.log' -exec mv {} logs/ \;",
        r"find . -name '*.tmp' -exec mv {} /tmp/ \;",
        "find . -name '*.log' | xargs mv -t logs",
        r"find . -name '*.log' -exec gzip {} \;",
        "find . -empty -type d -delete",
        "find . -mindepth 1 -type d -empty -print -delete",
        "find . -empty -delete",
        "find . -type f -empty -delete",
    ];
    check(&free, &[], false);
    let held = [
        r"find . -name '*.json' -exec mv {} logs/ \;",
        r"find . -name settings.json -exec gzip {} \;",
        r"find src -name '*.json' -exec mv {} .claude/ \;",
        r"find src -name '*.json' -exec mv {} ~/.codex/ \;",
        r"find . -name '*.log' -exec mv {} .claude/settings.json \;",
        "find . -name '*.json' | xargs mv -t logs",
        "mv src/a.rs x; find . -name '*.json' -exec gzip {} +",
        "find . -delete -empty -type d",
        "find . -type d -delete",
        "find ~ -type f -empty -delete",
        "find ~ -empty -delete",
        "find . -empty -o -type d -delete",
        "find . -empty -type d -delete; rm .claude/settings.json",
    ];
    check(&held, &[], true);
}

#[test]
fn a_link_among_the_folders_of_a_loop_is_followed() {
    let folder = LINK[0].trim_end_matches("lnk");
    for text in ["links/*", "*/*", "links/?*"] {
        let text = format!("for d in {text}; do echo x > \"$d/settings.json\"; done");
        let why = |on_disk: &[&str]| refusal_beside((on_disk, &[]), "Bash", &json!({"command": text.as_str()}));
        let file = format!("{folder}a");
        assert_eq!(why(&[file.as_str()]), None, "{text}");
        assert!(why(&[file.as_str(), LINK[0]]).is_some(), "{text}");
    }
}
