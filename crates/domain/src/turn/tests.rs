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

fn answer(text: &str) -> ModelAnswer {
    let execution = ToolExecution { name: text.into(), success: true, error_summary: None };
    ModelAnswer { execution: Some(execution), ..ModelAnswer::not_run(text) }
}

fn handled(text: &str) -> ModelAnswer {
    ModelAnswer { handled: true, ..answer(text) }
}

/// The next step, as short words: `inject a, b`, `model 2`, `clear 0 exec`, `skip 0: …`, `start 0`, `await 0`, `end …`.
fn step(turn: &mut Turn) -> String {
    match turn.next() {
        TurnStep::Inject { waiting } => {
            format!("inject {}", waiting.iter().map(WaitingMessage::text).collect::<Vec<_>>().join(", "))
        }
        TurnStep::Plan => "plan".into(),
        TurnStep::CallModel { iteration, terminal } => {
            format!("model {iteration}{}", if terminal { " last" } else { "" })
        }
        TurnStep::Skip { call, why, .. } => format!("skip {call}: {}", why.reason()),
        TurnStep::Clear { call, part } => format!("clear {call} {}", part.function.name),
        TurnStep::Start { call } => format!("start {call}"),
        TurnStep::Await { call } => format!("await {call}"),
        TurnStep::End(end) => match end.error {
            Some((stage, text)) => format!("end {:?} {stage}: {text}", end.status),
            None => format!("end {:?} {:?}{}", end.status, end.reply, if end.roll_back { " back" } else { "" }),
        },
    }
}

/// A message of a person.
fn says(text: &str) -> Fact {
    Fact::Queued(WaitingMessage {
        message: Message::text(Role::User, text).into(),
        from: MessageSender::Person,
        notes: Vec::new(),
    })
}

/// What a sub-agent brought.
fn brings(text: &str) -> Fact {
    let from = MessageSender::Subturn { agent: "helper".into(), turn_id: "t2".into() };
    Fact::Queued(WaitingMessage { message: Message::text(Role::User, text).into(), from, notes: Vec::new() })
}

/// The messages that wait.
fn waits(turn: &Turn) -> Vec<&str> {
    turn.waiting().map(WaitingMessage::text).collect()
}

/// Reports the next step, which must be `expected`, as a driver to which everything succeeds.
fn report(turn: &mut Turn, expected: &str) {
    let seen = turn.next();
    assert_eq!(step(turn), expected);
    match seen {
        TurnStep::Inject { waiting } => turn.apply(Fact::Injected { count: waiting.len() }),
        TurnStep::Skip { call, why, .. } => turn.answered(call, ModelAnswer::not_run(why.text())),
        TurnStep::Clear { call, part } => turn.cleared(call, part.function.name.starts_with("read")),
        TurnStep::Start { call } => turn.started(call),
        TurnStep::Await { call } => turn.answered(call, answer(&format!("r{call}"))),
        TurnStep::Plan | TurnStep::CallModel { .. } | TurnStep::End(_) => panic!("nobody reports {expected} like this"),
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
