//! `pintle budget`.

use regex::Regex;

use super::env::TestEnv;

fn shown(env: &TestEnv, typed: &[&str]) -> String {
    let seen = env.on_terminal("", typed);
    Regex::new(r"\d{4}-\d{2}\b(-01)?").unwrap().replace_all(&seen.to_string(), "[month]").into_owned()
}

#[test]
fn a_budget_is_shown_and_set() {
    let env = TestEnv::new();
    insta::assert_snapshot!(shown(&env, &["budget", "get"]), @"
    exit 0
    --- out
    default: 1000000 of 1000000 tokens left in [month]; 0 are spent or reserved
    ");
    insta::assert_snapshot!(shown(&env, &["budget", "set", "5000", "--tenant", "default"]), @"
    exit 0
    --- out
    default: 5000 of 5000 tokens left in [month]; 0 are spent or reserved
    ");
    insta::assert_snapshot!(shown(&env, &["budget", "get", "--json"]), @r#"
    exit 0
    --- out
    {
      "monthStart": "[month]",
      "budgetTotal": 5000,
      "used": 0,
      "remaining": 5000,
      "tenant": "default"
    }
    "#);
}

#[test]
fn a_budget_that_was_lowered_has_nothing_left() {
    let env = TestEnv::new();
    let spends = "import sqlite3; db = sqlite3.connect('data/pintle/pintle.db'); \
                  db.execute('UPDATE tenant_hook_budget SET used = 700'); db.commit()";
    shown(&env, &["budget", "get"]);
    let seen = env.run(env.command("python3").current_dir(env.path("")).args(["-c", spends]), "");
    assert_eq!(seen.code, Some(0), "{seen}");
    insta::assert_snapshot!(shown(&env, &["budget", "set", "10"]), @"
    exit 0
    --- out
    default: none of 10 tokens left in [month]; 700 are spent or reserved
    ");
}

#[test]
fn only_a_person_sets_one_and_only_of_a_tenant() {
    let env = TestEnv::new();
    let seen = env.pintle(&["budget", "set", "5000"]);
    assert!(seen.code == Some(5) && seen.err.contains("only a person may do this"), "{seen}");
    let seen = env.pintle(&["budget", "get", "--tenant", "acme"]);
    assert!(seen.code == Some(2) && seen.err.contains("the tenants are default"), "{seen}");
    let seen = env.pintle(&["budget", "get", "--tenant", "global"]);
    assert_eq!(seen.code, Some(2), "nobody lives there: {seen}");
    let seen = env.pintle(&["budget", "set", "-1"]);
    assert!(seen.code == Some(2) && seen.err.contains("-1"), "{seen}");
}
