//! A call that needs a person: held while somebody can answer, refused in the name of its approval, found again.

use pintle_domain::json::Value as Json;
use serde_json::json;

use super::door::{Door, LONG, document, refusal, wait_for};
use crate::env::{PINTLE, TestEnv};

/// A folder in which every shell call needs a person.
fn asking() -> Door {
    let env = TestEnv::new();
    env.user_config("[agents.main]\nask = ['exec']\n");
    Door::open(env)
}

/// The approval that waits.
pub(super) fn waiting(door: &Door) -> Option<String> {
    let output = door.env.command(PINTLE).args(["approvals", "list", "--json"]).output().unwrap();
    let list: Json = serde_json::from_slice(&output.stdout).ok()?;
    Some(list.as_array()?.first()?.get("id")?.as_str()?.to_owned())
}

#[test]
fn a_held_call_runs_as_soon_as_a_person_approves_it_elsewhere() {
    let door = asking();
    let hook = door.ask(LONG, &door.shell("toolu_1", "make"));
    let id = wait_for(|| waiting(&door));
    let seen = door.env.on_terminal("", &["approvals", "approve", &id]);
    assert_eq!(seen.code, Some(0), "{seen}");
    assert!(seen.out.contains("have the agent make the same call again"), "{seen}");
    assert_eq!(document(&hook.wait_with_output().unwrap()), json!({}));
}

#[test]
fn a_held_call_that_a_person_refuses_does_not_run() {
    let door = asking();
    let hook = door.ask(LONG, &door.shell("toolu_1", "make"));
    let id = wait_for(|| waiting(&door));
    let seen = door.env.on_terminal("", &["approvals", "refuse", &id, "--note", "use ninja"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    assert!(seen.out.contains("the agent is told") && !seen.out.contains("same call again"), "{seen}");
    let told = document(&hook.wait_with_output().unwrap());
    assert!(refusal(&told).contains("use ninja"), "{told}");
    // Whoever reads the chain sees who it was, also where the call never comes again.
    let tail = door.env.pintle(&["audit", "tail"]);
    assert!(tail.out.contains("exec approval [id]  approval_refused  by "), "{tail}");
}

#[test]
fn the_same_call_made_again_finds_its_approval_once() {
    let door = asking();
    let told = document(&door.ask(1500, &door.shell("toolu_1", "make")).wait_with_output().unwrap());
    let id = waiting(&door).expect("the question stays");
    assert!(refusal(&told).contains(&id) && !refusal(&told).contains("pintle"), "{told}");
    let seen = door.env.on_terminal("", &["approvals", "approve", &id]);
    assert_eq!(seen.code, Some(0), "{seen}");
    // Another turn, another id, the same call.
    let mut again = door.shell("toolu_2", "make");
    again["prompt_id"] = json!("p2");
    let mut other = again.clone();
    other["tool_input"]["command"] = json!("make install");
    let told = document(&door.ask(1500, &other).wait_with_output().unwrap());
    assert!(!refusal(&told).contains(&id), "another call has a question of its own: {told}");
    assert_eq!(document(&door.ask(1500, &again).wait_with_output().unwrap()), json!({}));
    let told = document(&door.ask(1500, &again).wait_with_output().unwrap());
    assert!(!refusal(&told).contains(&id), "it is used once: {told}");
}

#[test]
fn what_waits_is_said_to_wait_until_it_ran() {
    let door = asking();
    let told = document(&door.ask(1500, &door.shell("toolu_1", "make")).wait_with_output().unwrap());
    let id = waiting(&door).expect("the question stays");
    assert!(refusal(&told).contains(&id), "{told}");
    let seen = |args: &[&str], text: &str| {
        wait_for(|| Some(door.env.pintle(args)).filter(|seen| seen.out.contains(text)));
    };
    let to_do = "to let it run: `pintle approvals approve [id]`";
    seen(&["why"], "1 waiting for a person");
    seen(&["why"], to_do);
    seen(&["why", "--denied"], to_do);
    seen(&["why", "--list"], "1 waiting");
    assert_eq!(door.env.on_terminal("", &["approvals", "approve", &id]).code, Some(0));
    seen(&["why"], ", and not used yet");
    let mut again = door.shell("toolu_2", "make");
    again["prompt_id"] = json!("p2");
    assert_eq!(document(&door.ask(LONG, &again).wait_with_output().unwrap()), json!({}));
    seen(&["why", "--denied"], "nothing was blocked, and nothing waits for a person");
}
