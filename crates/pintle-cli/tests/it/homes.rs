//! Homes that earlier programs left: today's program says of them what theirs said, and goes on with them.
//!
//! The README of `tests/fixtures/homes` says how the next one is made.

mod recipe;
mod world;

use pintle_domain::json::Value;
use regex::Regex;

use self::world::{Kind, World, fixtures};

/// The variable that keeps the homes that the recipe makes, as the fixture of this name.
const KEEP: &str = "PINTLE_KEEP_HOME";

/// The schema of today.
const NEWEST_SCHEMA: u32 = 60;

/// What is asked of a home before anything is done in it: the name of the answer, and the command.
const LISTINGS: [(&str, &[&str]); 27] = [
    ("hooks-list", &["hooks", "list"]),
    ("hooks-list-json", &["hooks", "list", "--json"]),
    ("hooks-history", &["hooks", "history"]),
    ("hooks-history-json", &["hooks", "history", "--json"]),
    ("hook-no-force-push", &["hooks", "show", "no-force-push"]),
    ("hook-no-writing", &["hooks", "show", "no-writing"]),
    ("hook-service", &["hooks", "show", "service"]),
    ("hook-service-json", &["hooks", "show", "service", "--json"]),
    ("hook-judge", &["hooks", "show", "judge"]),
    ("hook-switched-off", &["hooks", "show", "switched-off"]),
    ("hook-from-a-file", &["hooks", "show", "from-a-file"]),
    ("hook-project-guard", &["hooks", "show", "project-guard"]),
    ("sessions-list", &["sessions", "list", "--all"]),
    ("sessions-list-json", &["sessions", "list", "--all", "--json"]),
    ("session-well-json", &["sessions", "show", "well", "--json"]),
    ("session-asked-json", &["sessions", "show", "asked", "--json"]),
    ("session-refused-json", &["sessions", "show", "refused", "--json"]),
    ("session-killed-json", &["sessions", "show", "killed", "--json"]),
    ("session-killed", &["sessions", "show", "killed"]),
    ("session-parked", &["sessions", "show", "parked"]),
    ("approvals", &["approvals", "list", "--all"]),
    ("approvals-json", &["approvals", "list", "--all", "--json"]),
    ("why", &["why", "-v", "--last"]),
    ("why-json", &["why", "--last", "--json"]),
    ("trust", &["trust"]),
    ("audit-tail", &["audit", "tail", "-n", "100"]),
    ("audit-verify", &["audit", "verify"]),
];

/// The fixtures of this kind, oldest first.
fn kept(kind: Kind) -> Vec<(String, std::path::PathBuf)> {
    let mut found: Vec<_> = std::fs::read_dir(fixtures())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join(kind.word()).join("data").exists())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path().join(kind.word())))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "there is no home of {kind:?}");
    found
}

/// Why each event went as it did in which a rule took part, newest first.
fn explained(world: &World) -> String {
    let history: Value = serde_json::from_str(&world.out(&["hooks", "history", "--json", "--limit", "200"])).unwrap();
    let rows = history["executions"].as_array().unwrap();
    let mut events: Vec<&str> = rows.iter().map(|row| row["event_id"].as_str().unwrap()).collect();
    events.dedup();
    events.into_iter().map(|event| world.said(&["why", event]).to_string()).collect()
}

/// Every listing says what it said when the home was made.
fn tells(world: &World, answers: &std::path::Path) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(answers);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (name, args) in LISTINGS {
            insta::assert_snapshot!(name, world.said(args));
        }
        insta::assert_snapshot!("why-events", explained(world));
        for args in [&["why", "killed"][..], &["why", "--list"]] {
            let said = world.out(args);
            assert!(said.contains("cut off"), "{said}");
        }
        // What was spent is of one month, and so is the name of it.
        let budget = world.out(&["budget", "get"]);
        let budget =
            Regex::new(r"\d+ of |\d{4}-\d{2}|\d+ are spent").unwrap().replace_all(&budget, "[now] ").into_owned();
        insta::assert_snapshot!("budget", budget);
    });
}

/// The entries of the audit chains.
fn entries(world: &World) -> Vec<Value> {
    let export = world.out(&["audit", "export"]);
    let lines = export.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["type"] == "entry").collect()
}

/// What waits goes on, what was killed is recovered, and all of it joins the chain that is there.
fn goes_on(world: &World) {
    let before = entries(world);
    let endpoint = world.endpoint();

    world.operate(&["approvals", "approve", &recipe::waiting(world)]);
    assert_eq!(world.out(&["sessions", "resume", "--quiet", "parked"]), "It ran after a long time.\n");
    assert_eq!(world.work("ran-parked"), "parked\n");
    assert_eq!(world.out(&["approvals", "list"]), "nothing waits for a person\n");

    assert_eq!(world.work("ran-killed"), "begun\n");
    assert_eq!(world.out(&["sessions", "resume", "--quiet", "killed"]), "It was cut.\n");
    assert_eq!(world.work("ran-killed"), "begun\n", "it is never run again");
    assert!(world.out(&["sessions", "show", "killed"]).contains("outcome unknown"));

    assert_eq!(world.out(&["run", "--quiet", "--session", "well", "one word more"]), "The old session goes on.\n");
    assert_eq!(world.work("ran-well"), "one\nlater\n");
    let why = world.out(&["why", "--tool", "exec"]);
    let newest = world.out(&["why", "-v", "--last"]);
    for hook in ["project-guard", "no-force-push", "service", "judge"] {
        assert!(newest.contains(hook) && why.contains(hook), "{hook} took part: {newest}");
    }
    let session = world.out(&["sessions", "show", "well"]);
    assert!(session.contains("print one word") && session.contains("one word more"), "{session}");

    let requests = endpoint.seen();
    assert_eq!(requests.len(), 2, "the call that was approved and the new one: {requests:?}");
    for request in requests {
        let header = |name: &str| request.header(name).unwrap_or_default().to_owned();
        let told = ["authorization", "x-token", "x-team"].map(header);
        assert_eq!(told, ["Bearer of-the-fixture", "token-of-the-fixture", "blue"]);
        assert!(header("webhook-signature").starts_with("v1,"), "{request:?}");
    }
    let closed = world.operate(&["hooks", "reset", "no-writing"]);
    assert!(closed.contains("no-writing"), "{closed}");
    let rotated = world.operate(&["secrets", "rotate"]);
    assert!(rotated.contains("secrets of hooks     0 of 3 rewritten"), "{rotated}");

    let verified = world.said(&["audit", "verify"]);
    assert!(verified.code == Some(0) && verified.out.matches("intact").count() == 2, "{verified}");
    for tenant in ["global", "default"] {
        assert!(verified.out.contains(&format!("tenant {tenant}: ")), "{verified}");
    }
    let after = entries(world);
    let lost: Vec<_> = before.iter().filter(|entry| !after.contains(entry)).collect();
    assert!(lost.is_empty(), "what was there stays: {lost:?}");
    assert!(after.len() > before.len());
}

fn check(kind: Kind) {
    for (name, folder) in kept(kind) {
        eprintln!("{name}");
        let world = World::of(&folder, kind);
        let trusted = std::fs::read_to_string(folder.join("data/pintle/audit-signing.pub")).unwrap();
        world.env.write("trusted.pub", &trusted);
        tells(&world, &folder.join("answers"));
        goes_on(&world);
        let proven = world.out(&["audit", "verify", "--key", "../trusted.pub"]);
        assert!(!proven.contains("not proven"), "the key of that day signs on: {proven}");
    }
}

/// Up to the newest schema and down again, no row is another one.
fn check_way_back(kind: Kind) {
    for (name, folder) in kept(kind) {
        let number: u32 = name.trim_start_matches("schema-").parse().unwrap();
        let world = World::of(&folder, kind);
        let before = world.rows();
        for up in [NEWEST_SCHEMA, number, NEWEST_SCHEMA, number] {
            world.migrate(up);
        }
        assert_eq!(world.rows(), before, "{name}");
    }
}

fn check_recipe(kind: Kind) {
    let world = recipe::make(kind);
    if let Some(name) = std::env::var_os(KEEP) {
        recipe::keep(&world, name.to_str().unwrap());
    }
    goes_on(&world);
}

#[test]
fn homes_of_sqlite_open_and_go_on() {
    check(Kind::Sqlite);
}

#[test]
fn homes_of_postgresql_open_and_go_on() {
    check(Kind::Postgres);
}

#[test]
fn homes_of_sqlite_go_up_and_down_with_nothing_lost() {
    check_way_back(Kind::Sqlite);
}

#[test]
fn homes_of_postgresql_go_up_and_down_with_nothing_lost() {
    check_way_back(Kind::Postgres);
}

#[test]
fn the_recipe_makes_a_home_of_sqlite() {
    check_recipe(Kind::Sqlite);
}

#[test]
fn the_recipe_makes_a_home_of_postgresql() {
    check_recipe(Kind::Postgres);
}
