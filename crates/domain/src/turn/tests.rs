//! What the driver must do next, as tables.

use super::*;
use crate::llm::LlmReply;

mod calls;
mod compaction;
mod ends;
mod facts;
mod interrupts;
mod rounds;
mod steering;
mod texts;

fn turn(max_iterations: u32) -> Turn {
    Turn::new(vec![Message::text(Role::System, "history").into()], Message::text(Role::User, "hi"), max_iterations)
}

/// A turn whose model asked for `tools`, named `c0`, `c1`…; those that begin with `read` change nothing.
fn asking(tools: &[&str]) -> Turn {
    let mut turn = turn(2);
    assert_eq!(step(&mut turn), "model 1");
    turn.replied(calls(tools), "m", |tool| tool.starts_with("read"));
    turn
}

fn calls(tools: &[&str]) -> LlmReply {
    LlmReply::calls(tools.iter().enumerate().map(|(i, tool)| CallPart::new(&format!("c{i}"), tool, "{}")).collect())
}

fn answer(text: &str) -> Answer {
    let execution = ToolExecution { name: text.into(), success: true, error_summary: None };
    Answer { execution: Some(execution), ..Answer::not_run(text) }
}

fn handled(text: &str) -> Answer {
    Answer { handled: true, ..answer(text) }
}

/// The next step, as short words: `inject a, b`, `model 2`, `clear 0 exec`, `skip 0: …`, `start 0`, `await 0`, `end …`.
fn step(turn: &mut Turn) -> String {
    match turn.next() {
        Step::Inject { waiting } => {
            format!("inject {}", waiting.iter().map(Waiting::text).collect::<Vec<_>>().join(", "))
        }
        Step::Plan => "plan".into(),
        Step::CallModel { iteration, terminal } => format!("model {iteration}{}", if terminal { " last" } else { "" }),
        Step::Skip { call, why, .. } => format!("skip {call}: {}", why.reason()),
        Step::Clear { call, part } => format!("clear {call} {}", part.function.name),
        Step::Start { call } => format!("start {call}"),
        Step::Await { call } => format!("await {call}"),
        Step::End(end) => match end.error {
            Some((stage, text)) => format!("end {:?} {stage}: {text}", end.status),
            None => format!("end {:?} {:?}{}", end.status, end.reply, if end.roll_back { " back" } else { "" }),
        },
    }
}

/// A message of a person.
fn says(text: &str) -> Fact {
    Fact::Queued(Waiting { message: Message::text(Role::User, text).into(), from: Origin::Person, notes: Vec::new() })
}

/// What a sub-agent brought.
fn brings(text: &str) -> Fact {
    let from = Origin::Subturn { agent: "helper".into(), turn_id: "t2".into() };
    Fact::Queued(Waiting { message: Message::text(Role::User, text).into(), from, notes: Vec::new() })
}

/// The messages that wait.
fn waits(turn: &Turn) -> Vec<&str> {
    turn.waiting().map(Waiting::text).collect()
}

/// Reports the next step, which must be `expected`, as a driver to which everything succeeds.
fn report(turn: &mut Turn, expected: &str) {
    let seen = turn.next();
    assert_eq!(step(turn), expected);
    match seen {
        Step::Inject { waiting } => turn.apply(Fact::Injected { count: waiting.len() }),
        Step::Skip { call, why, .. } => turn.answered(call, Answer::not_run(why.text())),
        Step::Clear { call, part } => turn.cleared(call, part.function.name.starts_with("read")),
        Step::Start { call } => turn.started(call),
        Step::Await { call } => turn.answered(call, answer(&format!("r{call}"))),
        Step::Plan | Step::CallModel { .. } | Step::End(_) => panic!("nobody reports {expected} like this"),
    }
}

/// Reports several steps.
fn reports(turn: &mut Turn, expected: &[&str]) {
    expected.iter().for_each(|step| report(turn, step));
}

/// Everything in the conversation after the history, one message a line.
fn said(turn: Turn) -> Vec<String> {
    let messages = turn.into_messages();
    let line = |message: &Message| match message.role {
        Role::Tool => format!("{}: {}", message.tool_call_id, message.content),
        Role::System | Role::User | Role::Assistant if message.tool_calls.is_empty() => message.content.clone(),
        Role::System | Role::User | Role::Assistant => {
            message.tool_calls.iter().map(|part| part.id.as_str()).collect::<Vec<_>>().join(" ")
        }
    };
    messages.iter().skip(1).map(|message| line(message.get())).collect()
}
