//! Turns with texts of hooks and prompts of the host.

use super::*;
use crate::ledger::MsgId;
use crate::message::Lifetime;
use crate::planning::StepPrompts;
use crate::skill::Skills;

mod edges;
mod golden;
mod oracle;
mod script;

fn planned() -> TurnFlow {
    TurnFlow::Planned(StepPrompts { planning: "PLAN".into(), first_step: "FIRST".into(), agent_loop: "LOOP".into() })
}

/// A turn with the texts of `skills`, whose conversation begins with `S0 U1`.
fn equipped(skills: Skills, flow: TurnFlow, tools: ToolUse) -> Turn {
    let history = vec![Message::text(Role::System, "S0").into()];
    let mut turn = Turn::new(history, Message::text(Role::User, "U1"), 9);
    turn.apply(Fact::Equipped { with: Box::new(TurnSetup { skills, flow, tools }) });
    turn
}

/// The model plans, and says what it needs.
fn plans(text: &str, need_tool: bool) -> Fact {
    Fact::Planned { message: Message::text(Role::Assistant, text).into(), need_tool, usage: None }
}

/// The model asks for `tools` in its `n`th answer; calls are named `c1`, `c2`….
fn asks(n: u32, tools: &[&str]) -> Fact {
    let part = |(i, tool): (usize, &&str)| CallPart::new(&format!("c{}", i + 1), tool, "{}");
    let tool_calls = tools.iter().enumerate().map(part).collect();
    let message = Message { tool_calls, ..Message::text(Role::Assistant, format!("A{n}")) };
    Fact::Replied {
        iteration: n,
        message: message.into(),
        read_only: Vec::new(),
        terminal: false,
        owners: BTreeMap::new(),
        cut: false,
        usage: None,
    }
}

/// Every call of the batch is answered, the last one first.
fn answer_all(turn: &mut Turn, texts: &[(&str, &str)]) {
    for (place, (tool, text)) in texts.iter().enumerate().rev() {
        turn.answered(place, ModelAnswer::not_run(*text).about(*tool));
    }
}
