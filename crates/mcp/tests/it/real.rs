//! Servers of others, as they come from their registries.

#![expect(clippy::unwrap_used, reason = "a step that fails fails its test")]

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use pintle_domain::json::Value;
use pintle_domain::tool::Annotations;
use tempfile::tempdir;
use tokio_util::sync::CancellationToken;

use crate::host::{Guest, PATIENCE, installed, run, until, until_written};

const EVERYTHING: &str = "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js";

fn everything() -> String {
    installed(EVERYTHING).to_str().unwrap().to_owned()
}

const NOON: &str = r#"{"source_timezone":"Europe/Berlin","time":"12:00","target_timezone":"Asia/Tokyo"}"#;

#[tokio::test]
async fn a_python_server_is_listed_called_killed_in_a_call_and_used_again() {
    let folder = tempdir().unwrap();
    let program = installed("venv/bin/mcp-server-time");
    let guest = Guest::start("time", &[program.to_str().unwrap()], folder.path(), PATIENCE);
    guest.ready().await.unwrap();
    assert_eq!(guest.names(), ["mcp_time_get_current_time", "mcp_time_convert_time"]);
    let tool = guest.tool("mcp_time_convert_time");
    assert!(tool.definition().function.parameters["properties"]["source_timezone"].is_object());
    assert!(!tool.read_only(), "only built-in tools may overlap");

    let check = |output: &pintle_domain::tool::ToolOutput| {
        let answer = pintle_domain::json::parse(&output.for_llm).unwrap_or_else(|_| panic!("{output:?}"));
        assert_eq!(answer["target"]["timezone"], "Asia/Tokyo", "{output:?}");
    };
    check(&guest.call("mcp_time_convert_time", NOON).await);
    let wrong = guest.call("mcp_time_get_current_time", r#"{"timezone":"Mars/Base"}"#).await;
    assert!(wrong.is_error && wrong.for_llm.contains("Mars/Base"), "{wrong:?}");

    let pid = guest.freeze();
    let ended = tokio::join!(guest.call("mcp_time_convert_time", NOON), async {
        until_written(pid).await;
        kill(pid, Signal::SIGKILL).unwrap();
    });
    assert!(ended.0.is_error);
    assert_eq!(
        ended.0.for_llm,
        "MCP server `time` cannot answer `convert_time`: it was killed by signal 9; whether the call had an effect is \
         not known"
    );
    check(&guest.call("mcp_time_convert_time", NOON).await);
    let status = guest.server.status();
    assert_eq!((status.up, status.restarts), (true, 1));
    guest.close().await;
}

#[tokio::test]
async fn a_call_to_a_server_that_was_killed_before_waits_for_the_next() {
    let folder = tempdir().unwrap();
    let program = installed("venv/bin/mcp-server-time");
    let guest = Guest::start("time", &[program.to_str().unwrap()], folder.path(), PATIENCE);
    guest.ready().await.unwrap();
    let tool = guest.tool("mcp_time_convert_time");
    kill(guest.processes()[0], Signal::SIGKILL).unwrap();
    until("it is down", || !guest.server.status().up).await;
    let output = run(tool, NOON, CancellationToken::new()).await;
    assert!(!output.is_error, "{output:?}");
    guest.close().await;
}

/// Calls what shows every kind of block.
async fn exercise(guest: &Guest) {
    let call = async |tool: &str, arguments: &str| {
        let output = guest.call(&format!("mcp_all_{tool}"), arguments).await;
        assert!(!output.is_error, "{tool}: {output:?}");
        output
    };
    let echoed = call("echo", r#"{"message":"größer\u0000\n"}"#).await;
    assert_eq!(echoed.for_llm, "Echo: größer\0\n");
    assert!(call("get-sum", r#"{"a":1.25,"b":2}"#).await.for_llm.contains("3.25"));
    let image = call("get-tiny-image", "{}").await;
    assert_eq!(image.media.len(), 1);
    assert!(image.media[0].starts_with("data:image/png;base64,iVBOR"), "{image:?}");
    assert!(!image.for_llm.is_empty());
    let links = call("get-resource-links", r#"{"count":2}"#).await;
    assert_eq!(links.for_llm.matches("demo://resource/").count(), 2, "{links:?}");
    let blob = call("get-resource-reference", r#"{"resourceType":"Blob","resourceId":1}"#).await;
    assert!(blob.media.iter().any(|url| url.starts_with("data:")), "{blob:?}");
    let structured = call("get-structured-content", r#"{"location":"Chicago"}"#).await;
    let Value::Object(weather) = pintle_domain::json::parse(&structured.for_llm).unwrap() else {
        panic!("{structured:?}")
    };
    assert!(weather.contains_key("temperature"));
    let refused = guest.call("mcp_all_get-sum", r#"{"a":"x"}"#).await;
    assert!(refused.is_error, "{refused:?}");
    let annotations = Annotations { read_only: Some(true), destructive: Some(false) };
    assert_eq!(guest.tool("mcp_all_echo").annotations(), annotations);
}

#[tokio::test]
async fn a_node_server_shows_every_kind_of_block() {
    let folder = tempdir().unwrap();
    let guest = Guest::start("all", &["node", &everything(), "stdio"], folder.path(), PATIENCE);
    guest.ready().await.unwrap();
    exercise(&guest).await;
    guest.close().await;
}

#[tokio::test]
async fn a_cancelled_call_ends_and_the_server_goes_on() {
    let folder = tempdir().unwrap();
    let guest = Guest::start("all", &["node", &everything(), "stdio"], folder.path(), PATIENCE);
    guest.ready().await.unwrap();
    let cancel = CancellationToken::new();
    let long = guest.tool("mcp_all_trigger-long-running-operation");
    let pid = guest.freeze();
    let (output, ()) = tokio::join!(run(long, r#"{"duration":600,"steps":2}"#, cancel.clone()), async {
        until_written(pid).await;
        cancel.cancel();
        kill(pid, Signal::SIGCONT).unwrap();
    });
    assert_eq!((output.is_error, output.for_llm.as_str()), (true, "cancelled"));
    assert_eq!(guest.call("mcp_all_echo", r#"{"message":"still here"}"#).await.for_llm, "Echo: still here");
    assert_eq!(guest.server.status().restarts, 0);
    guest.close().await;
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A server behind a port of its own; it ends when this is dropped.
struct Listening(Child, u16);

impl Listening {
    fn start() -> Self {
        Self::at(free_port())
    }

    fn at(port: u16) -> Self {
        let mut command = Command::new("node");
        command.args([&everything(), "streamableHttp"]).env("PORT", port.to_string());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut lines = stderr.lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("listening")), "the server does not listen");
        // Read on, so that it can go on complaining.
        std::thread::spawn(move || lines.count());
        Self(child, port)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[tokio::test]
async fn a_server_is_reached_over_http_and_again_after_it_was_away() {
    let listening = Listening::start();
    let guest = Guest::connect("all", format!("http://127.0.0.1:{}/mcp", listening.1));
    guest.ready().await.unwrap();
    exercise(&guest).await;
    let port = listening.1;
    drop(listening);
    let lost = guest.call("mcp_all_echo", r#"{"message":"x"}"#).await;
    assert!(lost.is_error && lost.for_llm.starts_with("MCP server `all` cannot answer `echo`: "), "{lost:?}");
    let _listening = Listening::at(port);
    until("it is reached again", || guest.server.status().up).await;
    assert_eq!(guest.call("mcp_all_echo", r#"{"message":"x"}"#).await.for_llm, "Echo: x");
    guest.close().await;
}

#[tokio::test]
async fn an_address_where_nobody_listens_is_an_error_that_names_it() {
    let port = free_port();
    let guest = Guest::connect("away", format!("http://127.0.0.1:{port}/mcp"));
    let why = guest.ready().await.unwrap_err();
    assert!(why.contains("Connection refused") && !why.contains("rmcp"), "{why}");
    guest.close().await;
}
