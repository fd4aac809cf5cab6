//! What agents do every day passes where no settings of agents are.

use pintle_domain::json::json;

use crate::everyday::{CLEAN, refusal_beside};

const FREE_WITHOUT_SETTINGS: &[&str] = &[
    "find . -name '*.py' -exec sed -i s/a/b/ {} +",
    "find . -name '*.pyc' -delete",
    "find . -name __pycache__ -exec rm -rf {} +",
    r"find . -name '*.orig' -exec rm {} \;",
    "find . -name '*.rs' -exec rustfmt {} +",
    "grep -rl foo . | xargs sed -i s/foo/bar/g",
    "sed -i s/a/b/ **/*.py",
    "rm -f **/*.bak",
    "prettier --write '**/*.json'",
    "git ls-files '*.json' | xargs sed -i s/a/b/",
    "rm -rf .[!.]*",
    "rm -rf .claude",
];

#[test]
fn everyday_work_passes_where_no_settings_are() {
    for text in FREE_WITHOUT_SETTINGS {
        assert_eq!(refusal_beside((CLEAN, &[]), "Bash", &json!({"command": *text})), None, "{text}");
    }
    for text in ["rm -rf .claude; ln -s ~/.claude .github; cp -r .github ../x", "rm -rf ~/.claude", "rm -rf ../.claude"]
    {
        assert!(refusal_beside((CLEAN, &[]), "Bash", &json!({"command": text})).is_some(), "{text}");
    }
}
