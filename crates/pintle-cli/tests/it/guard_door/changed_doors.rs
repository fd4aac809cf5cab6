//! The model door: settings that change while the daemon runs.

use std::fs;

use super::door::wait_for;
use super::models::{ANTHROPIC, bare, guarded};
use crate::env::TestEnv;

/// A request with a tool that runs at the vendor.
const SEARCHES: &str = concat!(
    r#"{"model":"m","messages":[{"role":"user","content":"hello"}],"#,
    r#""tools":[{"type":"web_search_20250305","name":"web_search"}]}"#
);

#[test]
fn changed_settings_of_the_model_door_are_in_force_without_a_restart() {
    let guarded = guarded("");
    let status = || guarded.send(ANTHROPIC, "", SEARCHES).0;
    assert_eq!(status(), 403);
    let file = guarded.door.env.path("config/pintle/pintle.toml");
    let strict = fs::read_to_string(&file).unwrap();
    let entry = "[doors.model.anthropic]\n";
    assert!(strict.contains(entry), "{strict}");
    fs::write(&file, strict.replace(entry, &format!("{entry}hosted = ['web_search']\n"))).unwrap();
    wait_for(|| (status() == 200).then_some(()));
    // What is taken away counts as soon.
    fs::write(&file, &strict).unwrap();
    wait_for(|| (status() == 403).then_some(()));
    // What cannot be read opens nothing.
    fs::write(&file, strict.replace(entry, &format!("{entry}deny = 'never'\n"))).unwrap();
    assert_eq!(status(), 403);
}

#[test]
fn a_configuration_that_comes_later_is_in_force_without_a_restart() {
    let bare = bare();
    let status = || bare.send(ANTHROPIC, "", SEARCHES).0;
    assert_eq!(status(), 403);
    let text =
        format!("[doors.model.anthropic]\nbase_url = 'http://{}'\nhosted = ['web_search']\n", bare.vendor.address);
    bare.door.env.user_config(&text);
    wait_for(|| (status() == 200).then_some(()));
    let seen = bare.door.env.pintle(&["guard", "status"]);
    assert!(seen.out.contains("model door  open at http://127.0.0.1:"), "{seen}");
    assert!(seen.out.contains("/door, with settings for anthropic"), "{seen}");
}

#[test]
fn a_model_door_that_nobody_opened_is_closed() {
    let env = TestEnv::new();
    env.user_config("[doors.model.anthropic]\nhosted = ['web_search']\n");
    let seen = env.pintle(&["guard", "status"]);
    assert!(seen.out.contains("model door  closed, with settings for anthropic: `pintle guard serve --http"), "{seen}");
    let door = seen.out.split("model door").nth(1).unwrap_or_default();
    assert!(!door.split("tool door").next().unwrap_or_default().contains("held"), "{seen}");
}
