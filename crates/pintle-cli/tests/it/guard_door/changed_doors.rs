//! The model door: settings that change while the daemon runs.

use std::fs;

use super::door::wait_for;
use super::models::{ANTHROPIC, guarded};

#[test]
fn changed_settings_of_the_model_door_are_in_force_without_a_restart() {
    let guarded = guarded("");
    let body = concat!(
        r#"{"model":"m","messages":[{"role":"user","content":"hello"}],"#,
        r#""tools":[{"type":"web_search_20250305","name":"web_search"}]}"#
    );
    let status = || guarded.send(ANTHROPIC, "", body).0;
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
