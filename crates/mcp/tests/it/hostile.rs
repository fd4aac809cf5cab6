//! A server that does what servers should not.

#![expect(clippy::unwrap_used, reason = "a step that fails fails its test")]

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use tempfile::{TempDir, tempdir};
use tokio_util::sync::CancellationToken;

use crate::host::{Guest, PATIENCE, fixture, python, run, until};

/// Starts the server that misbehaves as `mode` says.
fn start(mode: &str, limit: Duration) -> (Guest, TempDir) {
    let folder = tempdir().unwrap();
    let guest = Guest::start("bad", &[&python(), &fixture("hostile.py"), mode], folder.path(), limit);
    (guest, folder)
}

/// The error of a server that cannot start.
async fn failure(mode: &str, limit: Duration) -> String {
    let (guest, _folder) = start(mode, limit);
    let why = guest.ready().await.unwrap_err();
    guest.close().await;
    why
}

#[tokio::test]
async fn a_server_that_does_not_start_says_why() {
    assert_eq!(failure("exits", PATIENCE).await, "it exited with status 3 before it listed its tools");
    let short = Duration::from_millis(300);
    assert_eq!(failure("hangs", short).await, "it did not shake hands within 300ms");
    assert_eq!(failure("refuses", PATIENCE).await, "it refused the handshake: not you");
    assert_eq!(failure("mute", PATIENCE).await, "it closed its output during the handshake");
    let folder = tempdir().unwrap();
    let guest = Guest::start("none", &["no-such-program"], folder.path(), PATIENCE);
    assert_eq!(guest.ready().await.unwrap_err(), "program `no-such-program` was not found through PATH");
    guest.close().await;
}

#[tokio::test]
async fn garbage_is_skipped_wherever_it_stands() {
    let (guest, _folder) = start("garbage", PATIENCE);
    guest.ready().await.unwrap();
    let output = guest.call("mcp_bad_ok", "{}").await;
    assert_eq!((output.is_error, output.for_llm.as_str()), (false, "fine"));
    assert_eq!(guest.server.status().restarts, 0);
    guest.close().await;
}

#[tokio::test]
async fn a_tool_whose_schema_is_too_much_work_is_not_offered() {
    let (guest, _folder) = start("schemas", PATIENCE);
    guest.ready().await.unwrap();
    assert_eq!(guest.names(), ["mcp_bad_ok"]);
    guest.close().await;
}

#[tokio::test]
async fn what_is_odd_in_a_result_spoils_nothing_else() {
    let (guest, _folder) = start("plain", PATIENCE);
    guest.ready().await.unwrap();
    let output = guest.call("mcp_bad_odd", "{}").await;
    assert_eq!(
        output.for_llm, "[a block of type \"hologram\" was left out]\nrest",
        "where there are blocks, they are the result"
    );
    guest.close().await;
}

#[tokio::test]
async fn a_line_without_end_is_an_error_of_its_call() {
    let (guest, _folder) = start("plain", PATIENCE);
    guest.ready().await.unwrap();
    let output = guest.call("mcp_bad_huge", "{}").await;
    assert_eq!(
        (output.is_error, output.for_llm.as_str()),
        (true, "MCP server `bad` refused `huge`: its reply is longer than 67108864 bytes")
    );
    assert_eq!(guest.call("mcp_bad_ok", "{}").await.for_llm, "fine");
    guest.close().await;
}

#[tokio::test]
async fn a_flood_of_changes_and_a_reply_without_bottom_hold_no_call() {
    let (guest, _folder) = start("plain", PATIENCE);
    guest.ready().await.unwrap();
    assert_eq!(guest.call("mcp_bad_flood", "{}").await.for_llm, "flooded");
    let output = guest.call("mcp_bad_deep", "{}").await;
    assert_eq!(
        (output.is_error, output.for_llm.as_str()),
        (true, "MCP server `bad` refused `deep`: its answer cannot be read: nested deeper than 512 levels")
    );
    assert_eq!(guest.call("mcp_bad_ok", "{}").await.for_llm, "fine");
    assert_eq!(guest.server.status().restarts, 0);
    guest.close().await;
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_is_named_and_comes_back() {
    let (guest, _folder) = start("plain", PATIENCE);
    guest.ready().await.unwrap();
    let output = guest.call("mcp_bad_die", "{}").await;
    assert_eq!(
        (output.is_error, output.for_llm.as_str()),
        (
            true,
            "MCP server `bad` cannot answer `die`: it exited with status 7; whether the call had an effect is not known"
        )
    );
    assert_eq!(guest.call("mcp_bad_ok", "{}").await.for_llm, "fine");
    assert_eq!(guest.server.status().restarts, 1);
    guest.close().await;
}

#[tokio::test]
async fn a_server_that_does_not_come_back_holds_no_call_for_long() {
    let (guest, _folder) = start("once", PATIENCE);
    guest.ready().await.unwrap();
    let tool = guest.tool("mcp_bad_ok");
    assert!(guest.call("mcp_bad_die", "{}").await.is_error);
    let output = run(tool, "{}", CancellationToken::new()).await;
    assert_eq!(
        (output.is_error, output.for_llm.as_str()),
        (true, "MCP server `bad` cannot answer `ok`: it exited with status 4 before it listed its tools")
    );
    guest.close().await;
}

#[tokio::test]
async fn tools_that_would_have_one_name_keep_apart() {
    let (guest, _folder) = start("names", PATIENCE);
    guest.ready().await.unwrap();
    let names = guest.names();
    assert_eq!(names[1], "mcp_bad_a_b", "the one that needs no change keeps its name: {names:?}");
    let apart: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!((names.len(), apart.len()), (4, 4), "{names:?}");
    assert!(names.iter().all(|name| name.len() <= 64), "{names:?}");
    guest.close().await;
}

#[tokio::test]
async fn a_list_without_end_ends() {
    let (guest, _folder) = start("endless", PATIENCE);
    guest.ready().await.unwrap();
    assert_eq!(guest.names().len(), 9, "the same tools on every page are the same tools");
    guest.close().await;
}

#[tokio::test]
async fn changed_tools_are_listed_again() {
    let (guest, _folder) = start("plain", PATIENCE);
    guest.ready().await.unwrap();
    assert_eq!(guest.call("mcp_bad_grow", "{}").await.for_llm, "grown");
    until("the new tool is there", || guest.names().contains(&"mcp_bad_grown".to_owned())).await;
    assert_eq!(guest.call("mcp_bad_grown", "{}").await.for_llm, "fine");
    guest.close().await;
}

#[tokio::test]
async fn a_server_that_asks_for_more_is_refused_politely() {
    let (guest, _folder) = start("plain", PATIENCE);
    guest.ready().await.unwrap();
    let no = |what: &str| format!("this client does not offer {what}; go on without it");
    let expected = pintle_domain::json::json!([
        ["sampling/createMessage", no("sampling")],
        ["elicitation/create", no("elicitation")],
        ["roots/list", no("roots")],
        ["ping", "result"],
        ["no/such", "no/such"],
    ]);
    let output = guest.call("mcp_bad_ask", "{}").await;
    assert_eq!(pintle_domain::json::parse(&output.for_llm), Ok(expected), "{output:?}");
    guest.close().await;
}

#[tokio::test]
async fn a_flood_on_standard_error_blocks_nobody() {
    let (guest, _folder) = start("noisy", PATIENCE);
    guest.ready().await.unwrap();
    assert_eq!(guest.call("mcp_bad_ok", "{}").await.for_llm, "fine");
    guest.close().await;
}

#[tokio::test]
async fn a_server_that_will_not_leave_is_killed_with_what_it_started() {
    let (guest, _folder) = start("stays", PATIENCE);
    guest.ready().await.unwrap();
    assert_eq!(guest.processes().len(), 2, "itself and its child");
    guest.close().await;
}

#[tokio::test]
async fn a_withdrawn_call_is_told_to_the_server_and_its_late_answer_is_nobodys() {
    let (guest, folder) = start("plain", PATIENCE);
    guest.ready().await.unwrap();
    let cancel = CancellationToken::new();
    let there = |name: &str| folder.path().join(name).exists();
    let (output, ()) = tokio::join!(run(guest.tool("mcp_bad_hold"), "{}", cancel.clone()), async {
        until("the call has begun", || there("begun")).await;
        cancel.cancel();
    });
    assert_eq!((output.is_error, output.for_llm.as_str()), (true, "cancelled"));
    until("the server knows", || there("withdrawn")).await;
    let told = std::fs::read_to_string(folder.path().join("withdrawn")).unwrap();
    assert_eq!(told, r#"["notifications/cancelled", true]"#);
    assert_eq!(guest.call("mcp_bad_ok", "{}").await.for_llm, "fine");
    guest.close().await;
}

#[tokio::test]
async fn who_escapes_with_the_pipes_holds_nobody() {
    let (guest, _folder) = start("escapes", PATIENCE);
    guest.ready().await.unwrap();
    let output = guest.call("mcp_bad_die", "{}").await;
    assert!(output.for_llm.contains("it exited with status 7"), "{output:?}");
    assert_eq!(guest.call("mcp_bad_ok", "{}").await.for_llm, "fine");
    guest.server.close().await;
    // They left the group, so only who knows them can end them.
    guest.processes().into_iter().for_each(|pid| kill(pid, Signal::SIGKILL).unwrap());
    until("they are gone", || guest.processes().is_empty()).await;
    guest.close().await;
}

#[tokio::test]
async fn a_server_that_is_closed_answers_nothing_more() {
    let (guest, _folder) = start("plain", PATIENCE);
    guest.ready().await.unwrap();
    let tool = guest.tool("mcp_bad_ok");
    guest.server.close().await;
    let output = run(tool, "{}", CancellationToken::new()).await;
    assert_eq!(output.for_llm, "MCP server `bad` cannot answer `ok`: it is closed");
    guest.close().await;
}
