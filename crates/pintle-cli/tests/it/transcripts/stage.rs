//! Hooks that keep what they are sent, and the conversations in which they do.

use std::fmt::Write as _;

use pintle_testkit::http::{HttpStub, ReceivedRequest};

use super::normal;
use crate::env::{self, PINTLE, TestEnv};
use crate::run::scripted;

/// Where hooks keep what they are sent.
const KEPT: &str = "config/pintle/keep";

/// A process hook that keeps what it is sent; `entry` goes on with its table.
pub(super) fn process(name: &str, entry: &str) -> String {
    format!(
        "[hooks.processes.{name}]\nenabled = true\ncommand = ['sh', 'record.sh', '{name}']\n\
         start_timeout_ms = 60000\n{entry}\n"
    )
}

/// Deadlines that no machine misses.
const PATIENT: &str = "[hooks.defaults]\nobserver_timeout_ms = 30000\ninterceptor_timeout_ms = 30000\n\
                       approval_timeout_ms = 30000\n";

/// Surroundings with a scripted model, whose agent `main` goes on with `more`.
pub(super) fn stage(replies: &str, more: &str) -> TestEnv {
    let env = scripted(replies, &format!("{more}\n{PATIENT}"));
    env.write("config/pintle/record.sh", include_str!("record.sh"));
    env.write("config/pintle/record.py", include_str!("record.py"));
    std::fs::create_dir(env.path(KEPT)).unwrap();
    env
}

/// Writes what the process hook `name` answers: method, what the call has to hold, answer.
pub(super) fn answers(env: &TestEnv, name: &str, rows: &[(&str, &str, &str)]) {
    let lines: String = rows.iter().map(|(method, with, answer)| format!("{method}\t{with}\t{answer}\n")).collect();
    env.write(&format!("config/pintle/{name}.answers"), &lines);
}

/// Runs turns in the session `s` of one process, a message each.
pub(super) fn chat(env: &TestEnv, messages: &[&str]) -> env::Seen {
    env.run(env.command(PINTLE).args(["chat", "--quiet", "--session", "s"]), &messages.join("\n"))
}

/// What the file `name` of a hook holds.
fn kept(env: &TestEnv, name: &str) -> String {
    std::fs::read_to_string(env.path(&format!("{KEPT}/{name}"))).unwrap()
}

/// What the process hooks `names` were asked and answered, with the environments of those that `with_env` names.
pub(super) fn calls(env: &TestEnv, names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| (format!("{name}.calls"), kept(env, &format!("{name}.calls")))).collect()
}

/// What the process hooks `names` were told, in order.
pub(super) fn events(env: &TestEnv, names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| (format!("{name}.events"), kept(env, &format!("{name}.events")))).collect()
}

/// The environments of the process hooks `names`.
pub(super) fn environments(env: &TestEnv, names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| (format!("{name}.env"), kept(env, &format!("{name}.env")))).collect()
}

/// Events of sessions that work side by side, one session after the other: within each the order is kept.
pub(super) fn by_session(parts: Vec<(String, String)>) -> Vec<(String, String)> {
    let session = regex::Regex::new(r#""(?:SessionKey|session_key)":"([^"]*)""#).unwrap();
    let seq = regex::Regex::new(r#","Seq":(\d+)\}"#).unwrap();
    let sort = |(part, text): (String, String)| {
        let mut lines: Vec<(usize, String)> = Vec::new();
        let mut sessions: Vec<String> = Vec::new();
        for (n, line) in (1..).zip(text.lines()) {
            let of = session.captures(line).map_or(String::new(), |found| found[1].to_owned());
            let at = sessions.iter().position(|known| *known == of).unwrap_or_else(|| {
                sessions.push(of);
                sessions.len() - 1
            });
            if let Some(found) = seq.captures(line) {
                assert_eq!(found[1].parse::<i32>().unwrap(), n, "no event is missing: {line}");
            }
            lines.push((at, seq.replace(line, r#","Seq":[next]}"#).into_owned()));
        }
        lines.sort_by_key(|(at, _)| *at);
        (part, lines.into_iter().map(|(_, line)| line + "\n").collect())
    };
    parts.into_iter().map(sort).collect()
}

/// A command that keeps its arguments, its environment, its folder and what it reads, and answers `says`.
pub(super) fn command(name: &str, says: &str) -> String {
    format!(
        "d=../config/pintle/keep/{name}.d/$$; mkdir -p $d; cat /proc/$$/cmdline >$d/argv; cat /proc/$$/environ >$d/env; \
         pwd >$d/cwd; cat >$d/stdin; printf \"%s\" '{says}'"
    )
}

/// What the runs of the commands `names` kept, in the order of their events.
pub(super) fn commands(env: &TestEnv, names: &[&str]) -> Vec<(String, String)> {
    let part = |name: &&str| {
        let folder = env.path(&format!("{KEPT}/{name}.d"));
        let folders = std::fs::read_dir(&folder).unwrap_or_else(|_| panic!("`{name}` never ran"));
        let mut runs: Vec<_> = folders.map(|entry| run(&entry.unwrap().path())).collect();
        runs.sort();
        (format!("{name}.command"), runs.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n"))
    };
    names.iter().map(part).collect()
}

/// One run of a command: when its event was, and all that it kept.
fn run(folder: &std::path::Path) -> (jiff::Timestamp, String) {
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let stdin = read("stdin");
    let mut text = String::new();
    for argument in read("argv").split_terminator('\0') {
        writeln!(text, "argument {argument}").unwrap();
    }
    for variable in read("env").split_terminator('\0') {
        writeln!(text, "variable {variable}").unwrap();
    }
    writeln!(text, "folder {}input {stdin}", read("cwd")).unwrap();
    (occurred_at(&stdin), text)
}

/// When the event of a payload was.
fn occurred_at(payload: &str) -> jiff::Timestamp {
    let payload: pintle_domain::json::Value = serde_json::from_str(payload).unwrap();
    payload["occurred_at"].as_str().unwrap().parse().unwrap()
}

/// What a server was sent, in order: heads as they came, bodies behind them.
pub(super) fn requests(name: &str, stub: &HttpStub) -> (String, String) {
    let mut requests: Vec<_> = stub.seen().into_iter().map(|seen| (occurred_at(&seen.body), seen)).collect();
    requests.sort_by_key(|(at, _)| *at);
    let texts: Vec<String> = requests.iter().map(|(_, seen)| request(seen)).collect();
    (format!("{name}.http"), texts.join("\n"))
}

/// A request as it came. How long its body is depends on times in it, so that is looked at here.
pub(super) fn request(seen: &ReceivedRequest) -> String {
    let length = format!("content-length: {}", seen.body.len());
    assert_eq!(seen.head.matches(&length).count(), 1, "{}", seen.head);
    format!("{}\r\n\r\n{}\n", seen.head.replace(&length, "content-length: [length]"), seen.body)
}

/// Compares what hooks kept in `env`.
#[track_caller]
pub(super) fn check(env: &TestEnv, name: &str, parts: Vec<(String, String)>) {
    super::check(name, &normal::parts(env, parts));
}
