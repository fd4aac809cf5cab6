//! The laws of the pure machines, each for ten thousand random rosters and answers.

use std::time::Duration;

use pintle_domain::checkpoint::{
    AfterLlm, AfterTool, AgentInfo, ApproveTool, BeforeLlm, BeforeTool, CheckpointKind, PreToolUse, SubagentStart,
    UserPromptSubmit,
};
use pintle_domain::clearing::{CLEARING, Clearing};
use pintle_domain::json::Object;
use pintle_domain::llm::{LlmReply, LlmRequest};
use pintle_domain::message::{Message, Role};
use pintle_domain::record::{HookOutcome as Ran, Record};
use pintle_domain::tool::ToolOutput;
use pintle_domain::turn::{Fact, MessageSender, ModelAnswer, Turn, TurnEnd, TurnStep, WaitingMessage};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, RngSeed};

use super::evidence::{Cleared, anything, chain, faults_stay_shut, one_record_each, play};
use super::tape::{Bytes, Tapes};
use super::world::{ASKED, Agent, Dice, Tape, call, parts, roster};

/// How many worlds each law is tried in.
const CASES: u32 = 10_000;

/// The same worlds each time; `PROPTEST_RNG_SEED=n` tries others.
pub(crate) fn config() -> ProptestConfig {
    let set = ProptestConfig::default();
    let rng_seed = if set.rng_seed == RngSeed::Random { RngSeed::Fixed(0) } else { set.rng_seed };
    ProptestConfig { cases: CASES, failure_persistence: None, rng_seed, rng_algorithm: RngAlgorithm::XorShift, ..set }
}

fn cleared(tape: &Bytes) -> Cleared {
    let mut dice = Tape(tape.0.iter());
    let roster = roster(&mut dice);
    let agent = Agent::random(&mut dice, &roster);
    let call = call(&mut dice, &agent);
    Cleared::play((&roster, &agent), call, &mut dice, || false, |dice, _| anything(dice))
}

/// Plays the chain of some checkpoint; everything that holds for every chain is looked at on the way.
fn any_chain(tape: &Bytes) {
    let mut dice = Tape(tape.0.iter());
    let roster = roster(&mut dice);
    let agent = Agent::random(&mut dice, &roster);
    let call = call(&mut dice, &agent);
    let never = || false;
    match dice.pick(&ASKED) {
        CheckpointKind::UserPromptSubmit => {
            drop(chain(&roster, &agent, UserPromptSubmit::first("hi"), &mut dice, never));
        }
        CheckpointKind::BeforeLlm => {
            let messages = vec![Message::text(Role::User, "hi").into()];
            let (tools, options) = (Vec::new(), Object::new());
            let request = LlmRequest { model: "m".into(), messages, tools, options, graceful_terminal: false };
            drop(chain(&roster, &agent, BeforeLlm::new(request), &mut dice, never));
        }
        CheckpointKind::AfterLlm => {
            let subject = AfterLlm { model: "m".into(), response: LlmReply::text("hello") };
            drop(chain(&roster, &agent, subject, &mut dice, never));
        }
        CheckpointKind::BeforeTool => {
            let owner = agent.owner(&call.tool);
            drop(chain(&roster, &agent, BeforeTool { call, owner }, &mut dice, never));
        }
        CheckpointKind::PreToolUse => drop(chain(&roster, &agent, PreToolUse { call }, &mut dice, never)),
        CheckpointKind::ApproveTool => drop(chain(&roster, &agent, ApproveTool { call }, &mut dice, never)),
        CheckpointKind::AfterTool => {
            let subject = AfterTool { call, result: ToolOutput::ok("done"), duration: Duration::ZERO };
            drop(chain(&roster, &agent, subject, &mut dice, never));
        }
        CheckpointKind::SubagentStart => {
            let subject = SubagentStart::new("a".into(), "look", 1, None);
            drop(chain(&roster, &agent, subject, &mut dice, never));
        }
        CheckpointKind::SessionStart
        | CheckpointKind::PostToolUse
        | CheckpointKind::SubagentStop
        | CheckpointKind::Stop
        | CheckpointKind::AfterUserInput
        | CheckpointKind::BeforePlanning
        | CheckpointKind::BeforeEachAgent
        | CheckpointKind::BeforeFirstAgent
        | CheckpointKind::AfterToolCall
        | CheckpointKind::Runtime => unreachable!("nobody is asked there"),
    }
}

/// The same clearing with other durations: the outcome, who was asked, and the records without their durations.
fn timed(tape: &Bytes, took: impl FnMut() -> Duration) -> String {
    let mut dice = Tape(tape.0.iter());
    let roster = roster(&mut dice);
    let agent = Agent::random(&mut dice, &roster);
    let call = call(&mut dice, &agent);
    let mut clearing = Clearing::new(roster, agent.event_context(), call);
    let log = play(&mut clearing, &mut dice, took, || false);
    let asked: Vec<_> = log.iter().map(|asked| (asked.hook, asked.kind)).collect();
    let (outcome, records) = clearing.conclude();
    let mut records = records.to_vec();
    records.iter_mut().for_each(forget_duration);
    format!("{outcome:?} {asked:?} {records:?}")
}

fn forget_duration(record: &mut Record) {
    match &mut record.outcome {
        Ran::Said { took, .. } | Ran::Failed { took, .. } => *took = Duration::ZERO,
        Ran::Told | Ran::NotRun(_) => {}
    }
}

/// A message of a person.
pub(crate) fn waiting(text: &str) -> WaitingMessage {
    WaitingMessage { message: Message::text(Role::User, text).into(), from: MessageSender::Person, notes: Vec::new() }
}

/// What a driver of a turn, right or wrong, does next.
fn drive(turn: &mut Turn, dice: &mut Tape<'_>) {
    let call = dice.below(4) as usize;
    match dice.below(30) {
        24 => turn.apply(Fact::Interrupted),
        25 | 26 => turn.apply(Fact::Queued(waiting("go on"))),
        27 | 28 => turn.apply(Fact::Injected { count: dice.below(3) as usize }),
        29 => {
            let summary = Some(Message::text(Role::System, "hi").into());
            turn.apply(Fact::Compacted { upto: dice.below(9) as usize, summary });
        }
        23 => turn.started(call),
        20 => turn.end(TurnEnd::cancelled()),
        21 => turn.end(TurnEnd::failed("hook.after_tool", "hook aborted turn during after_tool: no")),
        22 => turn.end(TurnEnd::hard_aborted()),
        0..=8 => turn.answered(call, ModelAnswer::not_run("done")),
        9 => turn.answered(call, ModelAnswer { handled: true, ..ModelAnswer::not_run("shown") }),
        10..=13 => turn.cleared(call, dice.once_in(2)),
        14..=18 => turn.replied(LlmReply::calls(parts(dice)), "m", |tool| tool.starts_with("read")),
        19 => turn.replied(LlmReply::text("hello"), "m", |_| false),
        _ => {}
    }
}

/// Every call of an assistant message has exactly one tool message, in the model's order, right after it.
/// `open` says whether the last batch may still be unanswered.
pub(crate) fn messages_pair(turn: &Turn, open: bool) {
    let messages: Vec<&Message> = turn.messages().iter().map(pintle_domain::json::Rendered::get).collect();
    let mut at = 0;
    while at < messages.len() {
        let message = messages[at];
        assert_ne!(message.role, Role::Tool, "a tool message without its call");
        at += 1;
        let rest = &messages[at..];
        if open && rest.is_empty() {
            return;
        }
        let ids: Vec<&str> = message.tool_calls.iter().map(|part| part.id.as_str()).collect();
        let answered: Vec<&str> = rest.iter().take(ids.len()).map(|answer| answer.tool_call_id.as_str()).collect();
        assert_eq!(ids, answered, "calls and tool messages do not pair");
        assert!(ids.iter().all(|id| !id.is_empty()), "a call without an id");
        let distinct: std::collections::BTreeSet<&&str> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len(), "two calls with one id");
        at += ids.len();
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn law_1_nothing_denied_runs_and_what_runs_was_seen(tape in Tapes) {
        let cleared = cleared(&tape);
        cleared.passes_only_what_was_seen();
        cleared.nothing_passes_unasked();
        cleared.gates_precede_owners();
        cleared.who_was_asked_sees_what_gates_changed();
    }

    #[test]
    fn law_2_order_never_depends_on_timing(tape in Tapes, slow in any::<u32>()) {
        // Every answer takes another time, and all together less than gates have: being too late is a fault, not an order.
        let mut dice = fastrand::Rng::with_seed(slow.into());
        let slow = || Duration::from_millis(dice.u64(..400));
        prop_assert_eq!(timed(&tape, || Duration::ZERO), timed(&tape, slow));
    }

    #[test]
    fn law_3_the_strictest_decision_wins(tape in Tapes) {
        cleared(&tape).the_strictest_wins();
    }

    #[test]
    fn law_4_a_fault_never_becomes_an_allow(tape in Tapes) {
        let cleared = cleared(&tape);
        faults_stay_shut(&cleared.roster, &cleared.log, &cleared.records, cleared.outcome.word());
    }

    #[test]
    fn law_5_one_end_and_paired_messages_whatever_a_driver_does(tape in Tapes) {
        let mut dice = Tape(tape.0.iter());
        let limit = dice.below(4);
        let mut turn = Turn::new(Vec::new(), Message::text(Role::User, "hi"), limit);
        let mut ended: Option<TurnEnd> = None;
        for _ in 0..50 {
            let step = turn.next();
            messages_pair(&turn, ended.is_none());
            match (step, &ended) {
                (TurnStep::End(end), Some(first)) => prop_assert_eq!(&end, first),
                (TurnStep::End(end), None) => ended = Some(end),
                (step, Some(_)) => prop_assert!(false, "{:?} after the end", step),
                (_, None) => {}
            }
            drive(&mut turn, &mut dice);
        }
        if let Some(end) = ended {
            let messages = turn.into_messages();
            prop_assert_eq!(messages.is_empty(), end.roll_back);
            prop_assert!(end.roll_back || messages[0].get().content == "hi", "the prompt is lost");
        }
    }

    #[test]
    fn law_6_every_registered_hook_leaves_one_record(tape in Tapes) {
        let cleared = cleared(&tape);
        for kind in CLEARING {
            one_record_each(&cleared.roster, kind, &cleared.records);
        }
    }

    #[test]
    fn law_9_machines_end_after_a_bounded_number_of_needs(tape in Tapes) {
        let cleared = cleared(&tape);
        cleared.ends_in_time();
        cleared.versions_tell_subjects_apart();
    }

    #[test]
    fn laws_3_4_6_9_hold_for_every_chain(tape in Tapes) {
        any_chain(&tape);
    }
}
