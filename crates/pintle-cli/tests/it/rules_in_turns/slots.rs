//! A flood of observers, and the gates that nobody may wait for because of it.

use pintle_domain::json::{Value, json};

use super::stage::{Model, calls, history, says, script, whole_turn};

/// The body of a script that computes for so many milliseconds.
fn busy(ms: u32) -> String {
    format!("var end = Date.now() + {ms}; while (Date.now() < end); return {{ decision: 'allow' }};")
}

#[test]
fn a_flood_of_observers_holds_up_no_gate_and_is_blamed_for_no_wait() {
    // Three observers hear of twelve calls: 36 runs of 150 ms, two at once, far more than the 400 ms that each of them
    // has. Then a gate is asked in the same tenant.
    let many: Vec<(String, Value)> = (0..12).map(|n| (format!("c{n}"), json!({ "path": "here.txt" }))).collect();
    let many: Vec<_> = many.iter().map(|(id, path)| (id.as_str(), "read_file", path.clone())).collect();
    let model =
        Model::giving(vec![calls(&many), calls(&[("last", "list_dir", json!({ "path": "." }))]), says("Done.")]);
    let observers = ["one", "two", "three"].map(|name| script(name, "post_tool_use", "timeout_ms = 400", &busy(150)));
    let gate =
        script("gate", "pre_tool_use", "matcher = '^list_dir$'\ntimeout_ms = 5000", "return { decision: 'allow' };");
    let env = model.env("tools = ['read_file', 'list_dir']\n", &(observers.concat() + &gate));
    env.write("here/here.txt", "hi");
    assert_eq!(whole_turn(&env, "go"), "Done.\n");
    let rows = history(&env);
    let (gates, told): (Vec<&Value>, Vec<&Value>) = rows.iter().partition(|row| row["hook_name"] == "gate");
    assert_eq!(gates.len(), 1, "{rows:#?}");
    let waits = |row: &Value| row["metadata"]["slot_wait_ms"].as_u64().unwrap_or_default();
    assert_eq!((&gates[0]["decision"], waits(gates[0])), (&json!("allow"), 0), "{rows:#?}");
    assert_eq!(told.len(), 39, "the last call is told, too: {rows:#?}");
    assert!(told.iter().all(|row| row["decision"] == "allow" && row["error"].is_null()), "{rows:#?}");
    // Nearly all of them waited longer than they may take themselves, and what they took is not what they waited.
    let waited: Vec<&&Value> = told.iter().filter(|row| waits(row) > 400).collect();
    assert!(waited.len() > 10, "{rows:#?}");
    assert!(waited.iter().all(|row| row["duration_ms"].as_u64().unwrap() < 400), "{rows:#?}");
    let list = env.raw(&["hooks", "list"]);
    assert!(!list.contains("tripped") && !list.contains("breaker"), "{list}");
    let line = env.raw(&["hooks", "history", "three", "--limit", "1"]);
    assert!(line.contains(", waited ") && line.contains(" for a slot"), "{line}");
    let why = env.raw(&["why", "-v", "--last"]);
    assert!(why.contains("waited ") && why.contains(" for a slot"), "{why}");
}
