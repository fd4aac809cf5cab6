//! A store that is gone while it is served, or not the one that was known: what the server says of it.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::http_client::{CHAT, post, says};
use super::server::Server;
use crate::rules_in_turns::stage::turn;
use crate::run::{DONE, scripted};
use crate::store::{guarded, remove_store, tell};

/// How long a server may take to hear that a person took the store: it looks each second.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_database_that_was_removed_is_one_line_of_the_log() {
    let mut server = Server::start(scripted(DONE, "[gateway]\ndrain_delay_s = 0\n"));
    std::fs::remove_file(server.env.path("data/pintle/pintle.db")).unwrap();
    let mut seen = server.until("gateway.store_unavailable");
    for _ in 0..20 {
        assert_eq!(post(&server, CHAT, "", &says("go")).status, 503);
    }
    server.signal(Signal::SIGTERM);
    seen += &server.ended().1;
    let lines: Vec<&str> = seen.lines().filter(|line| line.contains("was moved or deleted")).collect();
    let about_it = lines.iter().filter(|line| line.contains("pintle_gateway")).count();
    assert_eq!(about_it, 1, "{lines:#?}");
    assert!(lines[0].contains("restart the program") && lines.len() <= 3, "{lines:#?}");
}

#[test]
fn an_older_copy_that_a_person_takes_opens_the_gates_of_a_running_server() {
    let (_model, env) = guarded();
    let (file, copy) = (env.path("data/pintle/pintle.db"), env.path("copy.db"));
    tell(&env, "PRAGMA wal_checkpoint(TRUNCATE)");
    fs::copy(&file, &copy).unwrap();
    turn(&env, "go");
    remove_store(&env);
    fs::copy(&copy, &file).unwrap();
    let seen = env.pintle(&["serve", "--check"]);
    assert!(seen.code == Some(5) && seen.err.contains("is an older copy of itself"), "{seen}");
    let record = r#"{"event": "pre_tool_use", "name": "one-more", "handler_type": "script", "scope": "tenant",
        "config": {"source": "function handle(event) { return {decision: 'allow'}; }"}}"#;
    env.write("here/record.json", record);
    let seen = env.on_terminal("", &["hooks", "add", "record.json"]);
    assert!(seen.code != Some(0) && seen.out.contains("older") && !seen.out.contains("version conflict"), "{seen}");
    let server = Server::start(env);
    let (status, parts) = server.get("/readyz");
    assert_eq!((status, &parts["store"]), (503, &"not ok".into()), "no turn gets further than its prompt");
    let seen = server.env.on_terminal("", &["store", "accept"]);
    assert!(seen.code == Some(0) && seen.out.contains("accepted: an older copy of the store"), "{seen}");
    let began = Instant::now();
    while server.get("/readyz").0 != 200 {
        assert!(began.elapsed() < PATIENCE, "the gates stay shut");
    }
}
