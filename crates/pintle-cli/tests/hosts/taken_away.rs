//! Words with which an agent leaves our hooks out: nothing says so before, and what it did is found after.

use std::time::{Duration, Instant};

use pintle_domain::json::{self, Value};

use crate::model::Model;
use crate::world::{World, shell};

/// How long the daemon has to find by itself what was written down: it looks at everything once a minute.
const PATIENCE: Duration = Duration::from_secs(150);

fn standing(world: &World, id: &str) -> (Option<i32>, Value) {
    let output = world.seen(&["guard", "status", "--host", id, "--json"]);
    let said = json::parse(&String::from_utf8(output.stdout).unwrap()).unwrap();
    (output.status.code(), said["hosts"][0].clone())
}

/// The agent runs without its hooks when it is started with `words`: `status` names what it wrote down, `reconcile` keeps
/// it in the record.
fn left_out(id: &str, words: &[&str]) {
    let world = World::guarded(id, "");
    let (code, host) = standing(&world, id);
    assert_eq!((code, host["unheard"].as_array().map(Vec::len)), (Some(0), Some(0)), "{host}");
    let model = Model::start(vec![shell(id, "touch ran")]);
    let output = world.agent_started_with(id, &model, words);
    assert!(world.ran("ran"), "it was held, so that this row is none: {output:?} {:?}", model.results());
    let (code, host) = standing(&world, id);
    assert_eq!((code, &host["unheard"][0]["calls"]), (Some(5), &Value::from(1)), "{host}");
    let output = world.seen(&["guard", "reconcile"]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let began = Instant::now();
    loop {
        let why = String::from_utf8(world.seen(&["why", "-vv"]).stdout).unwrap();
        if why.contains("unheard: ") {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "it is not in the record: {why}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn claude_bare() {
    left_out("claude", &["--bare"]);
}

#[test]
fn claude_in_safe_mode() {
    left_out("claude", &["--safe-mode"]);
}

#[test]
fn opencode_pure() {
    left_out("opencode", &["--pure"]);
}

#[test]
fn pi_without_extensions() {
    left_out("pi", &["--no-extensions"]);
}

/// What an agent wrote down of an ordinary session was all asked about.
fn whole(id: &str) {
    let world = World::guarded(id, "");
    let model = Model::start(vec![shell(id, "touch ran"), shell(id, "touch more")]);
    let output = world.agent_started_with(id, &model, &[]);
    assert!(world.ran("ran") && world.ran("more"), "{output:?}");
    let output = world.seen(&["guard", "reconcile", "--json"]);
    let said = json::parse(&String::from_utf8_lossy(&output.stdout)).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said["sessions"][0]["calls"], Value::from(2), "it is known where it writes: {said}");
}

/// The tests of one agent.
macro_rules! whole {
    ($($agent:ident),* $(,)?) => {$(
        mod $agent {
            #[test]
            fn every_call_that_it_wrote_down_was_asked_about() {
                super::whole(stringify!($agent));
            }
        }
    )*};
}

whole! { claude, codex, gemini, qwen, copilot, kimi, cline, opencode, pi }
