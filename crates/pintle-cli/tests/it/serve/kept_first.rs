//! What came of a request with a name is kept before anybody hears the end of it. A lock in the database holds the server
//! right there, and it is killed between the two.

use std::io::Read as _;
use std::time::{Duration, Instant};

use pintle_testkit::postgres::Server as Database;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls};

use super::http_client::{CHAT, post, says, sent};
use super::repeats::times;
use super::server::Server;
use crate::env::TestEnv;
use crate::run::scripted;

/// How long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Those who wait for a lock.
const WAITING: &str = "FROM pg_stat_activity WHERE wait_event_type = 'Lock'";

/// Nobody changes what is known of requests, as long as this lives.
struct Held {
    _client: Client,
    _runtime: Runtime,
}

impl Held {
    fn at(url: &str) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (client, connection) = runtime.block_on(tokio_postgres::connect(url, NoTls)).unwrap();
        runtime.spawn(connection);
        runtime.block_on(client.batch_execute("BEGIN; LOCK TABLE repeats IN SHARE MODE")).unwrap();
        Self { _client: client, _runtime: runtime }
    }
}

/// An agent whose one call waits until a file `go` is there, and notes then that it ran.
fn waits_for_go(url: &str) -> TestEnv {
    let call = r#"{"tool_calls": [{"name": "exec", "arguments": {"command": "echo >begun; while [ ! -e go ]; do sleep 0.02; done; echo once >>done.txt"}}]}"#;
    let done = r#"{"text": ["All ", "done."]}"#;
    scripted(&[call, done].join(","), &format!("tools = ['exec']\n[store]\nurl = '{url}'\n"))
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_kill_before_the_outcome_is_kept_leaves_no_end_with_the_client() {
    let database = Database::start();
    for stream in [true, false] {
        let url = database.fresh_database();
        let mut server = Server::start(waits_for_go(&url));
        let mut body = says("go");
        body["stream"] = json!(stream);
        let headers = "Content-Type: application/json\nIdempotency-Key: one\n";
        let mut answer = sent(&server, &format!("POST {CHAT}"), headers, body.to_string().as_bytes());
        until("the call begins", || server.env.path("here/begun").exists());
        let held = Held::at(&url);
        server.env.write("here/go", "");
        let waiting = || database.execute(&url, &format!("SELECT count(*) {WAITING}"));
        until("somebody is about to keep what came of the request", || waiting().trim() != "0");
        server.signal(nix::sys::signal::Signal::SIGKILL);
        server.ended();
        let mut told = Vec::new();
        // A connection that was cut may say so.
        answer.read_to_end(&mut told).ok();
        let told = String::from_utf8_lossy(&told);
        assert_eq!(stream, told.contains("done."), "what is said comes as it is said: {told}");
        assert!(!told.contains("\"finish_reason\":\"stop\"") && !told.contains("[DONE]"), "{told}");
        // What it was about to write is not written after its end.
        database.execute(&url, &format!("SELECT pg_terminate_backend(pid) {WAITING}"));
        drop(held);
        // Nobody knows what came of it, and it is not done again.
        let server = Server::start(server.into_env());
        let again = post(&server, CHAT, "Idempotency-Key: one\n", &says("go"));
        assert_eq!((again.refused().1.as_str(), again.header("x-should-retry")), ("outcome_unknown", Some("false")));
        assert_eq!(times(&server.env), 1);
    }
}
