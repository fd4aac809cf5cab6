//! A message that comes in while the turn before it is taken over joins that turn, and both are in the request that the
//! model answers.

use std::fs;
use std::path::PathBuf;
use std::thread;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::journals::Journals;
use super::pair::{Node, Nodes, until};

/// Says that it is asked, and answers once the file is gone.
const HOLDS: &str = r#"while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case $line in *'"method":"hook.before_tool"'*)
    echo asked >>"$2"
    while [ -e "$1" ]; do sleep 0.02; done ;; esac
  printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id"
done
"#;

fn prompt(id: &str) -> Value {
    json!({ "sessionKey": "agent:main:ws:direct:anna", "message": format!("{id} run: echo {id} >>effects") })
}

/// A hook that holds every call as long as the file at `closed` is there.
struct Holding {
    closed: PathBuf,
    asked: PathBuf,
}

impl Holding {
    /// Two nodes that have it, closed.
    fn two_nodes(nodes: &Nodes) -> (Self, [Node; 2]) {
        let [closed, asked] = ["closed", "asked"].map(|name| nodes.env.path(name));
        nodes.env.write("config/pintle/holds.sh", HOLDS);
        let hook = format!(
            "[hooks.processes.holds]\nenabled = true\ncommand = ['sh', 'holds.sh', '{}', '{}']\n\
             intercept = ['before_tool']\n",
            closed.display(),
            asked.display()
        );
        let started = ["a", "b"].map(|name| nodes.start_at(name, &hook, &nodes.url));
        fs::write(&closed, "").unwrap();
        (Self { closed, asked }, started)
    }

    fn opens(&self) {
        fs::remove_file(&self.closed).unwrap();
    }

    fn was_asked(&self, times: usize) -> Option<()> {
        let lines = fs::read_to_string(&self.asked).unwrap_or_default().lines().count();
        (lines == times).then_some(())
    }
}

#[test]
fn a_message_that_comes_again_elsewhere_while_it_is_worked_joins_it() {
    let nodes = Nodes::new();
    let (holding, [a, b]) = Holding::two_nodes(&nodes);
    let mut message = prompt("anna-1");
    message["messageId"] = json!("m1");
    let (mut at_a, mut at_b) = (a.client("anna"), b.client("anna"));
    let sent = at_a.ask("chat.send", message.clone()).unwrap();
    at_a.event("agent", |it| it["type"] == "run.started");
    until("its hook is asked", || holding.was_asked(1));
    let mut others = [b.client("anna"), b.client("anna")].map(|mut client| {
        let id = client.ask("chat.send", message.clone()).unwrap();
        // By then it was looked at, or is looked at now.
        client.done("agents.list", json!({}));
        (client, id)
    });
    holding.opens();
    let first = at_a.answer(&sent).unwrap();
    assert_eq!(first["ok"], true, "{first}");
    for (client, id) in &mut others {
        let joined = client.answer(id).unwrap();
        for member in ["runId", "content"] {
            assert_eq!(joined["payload"][member], first["payload"][member], "{joined} {first}");
        }
    }
    // What came of it is known everywhere, under its own run.
    let again = at_b.done("chat.send", message);
    for member in ["runId", "content"] {
        assert_eq!(again[member], first["payload"][member], "{again} {first}");
    }
    assert_eq!(holding.was_asked(1), Some(()), "the call ran once");
}

#[test]
fn a_message_that_joins_a_turn_that_is_taken_over_is_read_with_its_prompt() {
    let nodes = Nodes::new();
    let (holding, [a, b]) = Holding::two_nodes(&nodes);
    let mut at_a = a.client("anna");
    at_a.ask("chat.send", prompt("anna-1")).unwrap();
    at_a.event("agent", |it| it["type"] == "run.started");
    until("its hook is asked", || holding.was_asked(1));
    a.signal(Signal::SIGKILL);
    until("the other node goes on with the call", || holding.was_asked(2));
    let mut at_b = b.client("anna");
    let joined = at_b.done("chat.send", prompt("anna-2"));
    assert_eq!(joined["injected"], true, "{joined}");
    holding.opens();
    until("the turn is over", || {
        (nodes.ask("SELECT count(*) FROM sessions WHERE open_turn IS NOT NULL") == "0").then_some(())
    });
    let (journals, answered) = (Journals::read(&nodes), nodes.model.answered());
    let answers = ["anna-1", "anna-2"].map(|id| journals.answer_to("anna", id, &answered));
    assert_eq!(answers[0], answers[1], "one answer to both: {}", journals.shown("anna"));
    let answer = answers[0].as_ref().unwrap_or_else(|| panic!("it is lost: {}", journals.shown("anna")));
    assert!(answer.starts_with("answer anna-2 "), "{answer}");
    assert_eq!(journals.out_of_turn(), Vec::<String>::new());
}

#[test]
fn a_message_that_is_cut_off_before_it_is_kept_is_answered() {
    let nodes = Nodes::new();
    let (a, b) = (nodes.start("a"), nodes.start("b"));
    let (mut at_a, mut at_b) = (a.client("anna"), b.client("anna"));
    // The session is there, so that the next turn has only its own beginning to write.
    at_a.done("chat.send", json!({ "sessionKey": "agent:main:ws:direct:anna", "message": "hello" }));
    let sent = thread::scope(|scope| {
        let holds = || nodes.ask("BEGIN; LOCK TABLE journal; SELECT pg_sleep(3); COMMIT");
        let lock = scope.spawn(holds);
        let is_locked =
            "SELECT count(*) FROM pg_locks WHERE relation = 'journal'::regclass AND mode = 'AccessExclusiveLock'";
        until("nobody can write", || (nodes.ask(is_locked) == "1").then_some(()));
        let sent = at_a.ask("chat.send", prompt("anna-1")).unwrap();
        until("the session is taken", || {
            (nodes.ask("SELECT count(*) FROM leases WHERE owner IS NOT NULL") == "1").then_some(())
        });
        a.signal(Signal::SIGSTOP);
        lock.join().unwrap();
        sent
    });
    let held = "SELECT count(*) FROM leases WHERE owner IS NOT NULL \
                AND expires_ms > (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    until("the lease is over", || (nodes.ask(held) == "0").then_some(()));
    // The other one has the session from now on.
    at_b.done("chat.send", prompt("anna-2"));
    a.signal(Signal::SIGCONT);
    let answer = at_a.answer(&sent).unwrap();
    let (journals, answered) = (Journals::read(&nodes), nodes.model.answered());
    match journals.answer_to("anna", "anna-1", &answered) {
        // It was kept at the last moment: then it is a prompt like any other.
        Some(_) => assert_eq!(answer["ok"], true, "{answer}"),
        None => {
            assert_eq!((&answer["error"]["code"], &answer["error"]["retryable"]), (&json!("UNAVAILABLE"), &json!(true)))
        }
    }
    assert_eq!(journals.out_of_turn(), Vec::<String>::new());
}
