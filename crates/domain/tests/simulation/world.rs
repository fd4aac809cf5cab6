//! Random agents, rosters and answers, from a seed or from a tape of bytes that a property test can shrink.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::LazyLock;
use std::time::Duration;

use pintle_domain::checkpoint::{
    AfterLlm, AfterTool, AgentInfo, ApproveTool, AskedKind, BeforeLlm, BeforeTool, CHECKPOINTS, CallPatch, Checkpoint,
    CheckpointKind, Duty, EventContext, LlmPatch, PreToolUse, Reply, SubagentStart, Substitute, UserPromptSubmit,
};
use pintle_domain::fault::{Direction, Fault, ProtocolBreach};
use pintle_domain::hook::{Family, Hook, HookState, OnFailure, Scope, Stage, Stages};
use pintle_domain::id::{AgentId, CallId, HookName, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Object, Rendered};
use pintle_domain::llm::{LlmReply, ToolDef};
use pintle_domain::matcher::{Matcher, RespondTools};
use pintle_domain::message::{CallPart, Message, Role};
use pintle_domain::roster::Roster;
use pintle_domain::tool::{ToolCall, ToolOutput};
use pintle_domain::verdict::{Abort, AbortScope, Verdict};

/// Where randomness comes from.
pub(crate) trait Dice {
    /// A number below `n`; 0 is always the plainest choice.
    fn below(&mut self, n: u32) -> u32;

    /// True once in `n` times.
    fn once_in(&mut self, n: u32) -> bool {
        self.below(n) == n - 1
    }

    /// One of `choices`.
    fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T
    where
        Self: Sized,
    {
        &choices[self.below(u32::try_from(choices.len()).expect("choices are few")) as usize]
    }
}

impl Dice for fastrand::Rng {
    fn below(&mut self, n: u32) -> u32 {
        self.u32(..n)
    }
}

/// Bytes that are used up one by one; after the last one every choice is the plainest.
pub(crate) struct Tape<'a>(pub(crate) std::slice::Iter<'a, u8>);

impl Dice for Tape<'_> {
    fn below(&mut self, n: u32) -> u32 {
        self.0.next().map_or(0, |byte| u32::from(*byte) % n)
    }
}

/// The tools of every agent; those that begin with `read` change nothing.
const TOOLS: [&str; 5] = ["exec", "read_a", "read_b", "write", "delegate"];

/// The tools that hooks may bring.
const BROUGHT: [&str; 2] = ["web_x", "web_y"];

/// What a model may ask for, canonical or not.
pub(crate) const ASKED_FOR: [&str; 8] = ["exec", "read_a", "read_b", "write", "web_x", "web_y", "bash", "nothing"];

/// Who may act, and for whom; the first is a host that does not say.
const LINES: [&[&str]; 5] = [&[], &["main"], &["a", "main"], &["b", "main"], &["b", "a", "main"]];

/// What an agent knows: its tools, and who brought which.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agent {
    pub(crate) owners: BTreeMap<String, HookName>,
    /// The agent itself, then those that it works for.
    pub(crate) acting_for: Vec<AgentId>,
}

impl Agent {
    /// An agent for which hooks brought tools.
    pub(crate) fn random(dice: &mut impl Dice, roster: &Roster) -> Self {
        let mut owners = BTreeMap::new();
        for tool in BROUGHT {
            if !roster.hooks().is_empty() && dice.once_in(2) {
                owners.insert(tool.to_owned(), dice.pick(roster.hooks()).name.clone());
            }
        }
        let acting_for = dice.pick(&LINES).iter().map(|name| AgentId::from(*name)).collect();
        Self { owners, acting_for }
    }
}

impl Agent {
    /// An event of this agent. Who it is concerns no rule that is played here.
    pub(crate) fn event_context(&self) -> EventContext<'_> {
        static WHO: LazyLock<Identity> = LazyLock::new(|| Identity::top("main", "s", TurnId::from("t")));
        EventContext { who: &WHO, known: self }
    }
}

impl AgentInfo for Agent {
    fn tool(&self, name: &str) -> Option<String> {
        let name = if name == "bash" { "exec" } else { name };
        (TOOLS.contains(&name) || self.owners.contains_key(name)).then(|| name.to_owned())
    }

    fn model(&self, model: &str) -> bool {
        ["m", "big"].contains(&model)
    }

    fn owner(&self, name: &str) -> Option<HookName> {
        self.owners.get(name).cloned()
    }

    fn acting_for(&self) -> &[AgentId] {
        &self.acting_for
    }
}

/// The checkpoints at which hooks are asked.
pub(crate) const ASKED: [CheckpointKind; 8] = [
    CheckpointKind::UserPromptSubmit,
    CheckpointKind::BeforeLlm,
    CheckpointKind::AfterLlm,
    CheckpointKind::BeforeTool,
    CheckpointKind::PreToolUse,
    CheckpointKind::ApproveTool,
    CheckpointKind::AfterTool,
    CheckpointKind::SubagentStart,
];

/// Most hooks in a roster.
const MAX_HOOKS: u32 = 6;

/// Compiled once: ten thousand rosters share them.
static MATCHERS: LazyLock<Vec<Matcher>> = LazyLock::new(|| {
    ["^exec$", "read", "^web_", "b", "^nothing$"].iter().map(|p| Matcher::compile(p).expect("a good pattern")).collect()
});

static GRANTS: LazyLock<Vec<RespondTools>> = LazyLock::new(|| {
    let only = |globs: &[&str]| {
        RespondTools::only(&globs.iter().map(ToString::to_string).collect::<Vec<_>>()).expect("good globs")
    };
    vec![RespondTools::Any, only(&[]), only(&["web_*", "read_a"])]
});

/// Up to [`MAX_HOOKS`] hooks, each at several checkpoints, in any state, with settings that no configuration
/// would let pass as well.
pub(crate) fn roster(dice: &mut impl Dice) -> Arc<Roster> {
    let hooks = dice.below(MAX_HOOKS + 1);
    Arc::new(Roster::new((0..hooks).map(|i| hook(dice, i)).collect()))
}

fn hook(dice: &mut impl Dice, number: u32) -> Hook {
    let mut stages = Stages::default();
    for row in CHECKPOINTS.iter().filter(|row| ![Duty::Observer, Duty::Injector].contains(&row.duty)) {
        if !dice.once_in(3) {
            stages.set(row.kind, stage(dice, row.kind));
        }
    }
    let fault = Fault::CannotStart { cause: "bad entry".into() };
    Hook {
        name: HookName::new(format!("h{number}")),
        family: *dice.pick(&[Family::Process, Family::Process, Family::Native]),
        origin: String::new(),
        priority: [-1, 0, 1][dice.below(3) as usize],
        state: match dice.below(20) {
            17 => HookState::Disabled,
            18 => HookState::Untrusted,
            19 => HookState::Broken(fault),
            _ => HookState::Armed,
        },
        matcher: dice.once_in(3).then(|| dice.pick(&MATCHERS).clone()),
        respond: dice.pick(&GRANTS).clone(),
        events: None,
        media_dir: None,
        scope: scope(dice),
        stages,
        stored: None,
    }
}

fn scope(dice: &mut impl Dice) -> Scope {
    match dice.below(4) {
        3 => Scope::Agents([AgentId::from(*dice.pick(&["main", "a", "b"]))].into()),
        _ => Scope::Everyone,
    }
}

/// The same hooks with one more: whoever acts for `agent` may not `write`. It is a gate that cannot work, so it
/// always blocks.
pub(crate) fn with_rule(roster: &Roster, agent: &str) -> Arc<Roster> {
    let kind = CheckpointKind::PreToolUse;
    let mut stages = Stages::default();
    stages.set(kind, Stage { timeout: Duration::ZERO, on_failure: OnFailure::default_at(kind), paired: false });
    let rule = Hook {
        name: HookName::from("rule"),
        family: Family::Process,
        origin: String::new(),
        priority: 2,
        state: HookState::Broken(Fault::CannotStart { cause: "a rule".into() }),
        scope: Scope::Agents([AgentId::from(agent)].into()),
        matcher: Some(Matcher::compile("^write$").expect("a good pattern")),
        respond: RespondTools::Any,
        events: None,
        media_dir: None,
        stages,
        stored: None,
    };
    Arc::new(Roster::new(roster.hooks().iter().map(|hook| (**hook).clone()).chain([rule]).collect()))
}

fn stage(dice: &mut impl Dice, kind: CheckpointKind) -> Stage {
    let by_default = OnFailure::default_at(kind);
    let on_failure = *dice.pick(&[by_default, by_default, OnFailure::Continue, OnFailure::AbortTurn, OnFailure::Close]);
    Stage { timeout: Duration::from_secs(5), on_failure, paired: dice.once_in(8) }
}

/// One of a few small inputs, so that hooks often agree by chance.
pub(crate) fn input(dice: &mut impl Dice) -> Object {
    static INPUTS: LazyLock<Vec<Object>> = LazyLock::new(|| {
        let texts = [r#"{"n":1}"#, r#"{"n":1.0}"#, r#"{"n":2}"#, "{}"];
        texts.iter().map(|text| serde_json::from_str(text).expect("an object")).collect()
    });
    dice.pick(&INPUTS).clone()
}

/// A call of any tool that `known` knows.
pub(crate) fn call(dice: &mut impl Dice, known: &dyn AgentInfo) -> ToolCall {
    let raw = *dice.pick(&ASKED_FOR);
    let tool = known.tool(raw).unwrap_or_else(|| "exec".into());
    ToolCall { id: CallId::from("c1"), tool, raw_tool: raw.into(), arguments: input(dice) }
}

/// What a hook answers at `kind`: mostly it goes on, sometimes it fails or answers another question.
pub(crate) fn answer(dice: &mut impl Dice, kind: CheckpointKind) -> Result<Reply, Fault> {
    match dice.below(16) {
        0..=6 => Ok(reply(dice, kind, true)),
        7..=13 => Ok(reply(dice, kind, false)),
        14 => Err(fault(dice)),
        _ => {
            let other = *dice.pick(&ASKED);
            Ok(reply(dice, other, false))
        }
    }
}

fn fault(dice: &mut impl Dice) -> Fault {
    let detail = || "why".to_owned();
    match dice.below(12) {
        0 => Fault::TimedOut { after: Duration::from_secs(5) },
        1 => Fault::Protocol(ProtocolBreach::Returned(detail().into())),
        2 => Fault::broke(detail()),
        3 => Fault::Protocol(ProtocolBreach::Respond(detail().into())),
        4 => Fault::Unreadable { cause: detail().into() },
        5 => Fault::TooLarge { way: Direction::Reply, limit: 1 },
        6 => Fault::CannotStart { cause: detail().into() },
        7 => Fault::exited(3),
        8 => Fault::killed(9),
        9 => Fault::Panicked,
        10 => Fault::ConditionFailed { cause: detail().into() },
        _ => Fault::Unavailable { cause: detail().into() },
    }
}

fn reply(dice: &mut impl Dice, kind: CheckpointKind, goes_on: bool) -> Reply {
    match kind.asked() {
        Some(AskedKind::UserPromptSubmit) => Reply::UserPromptSubmit(prompt_verdict(dice, goes_on).into()),
        Some(AskedKind::BeforeLlm) => Reply::BeforeLlm(request_verdict(dice, goes_on).into()),
        Some(AskedKind::AfterLlm) => Reply::AfterLlm(response_verdict(dice, goes_on).into()),
        Some(AskedKind::BeforeTool) => Reply::BeforeTool(tool_verdict(dice, goes_on).into()),
        Some(AskedKind::PreToolUse) => Reply::PreToolUse(gate_verdict(dice, goes_on).into()),
        Some(AskedKind::ApproveTool) => {
            let refuses = !goes_on && dice.once_in(3);
            let verdict = if refuses { Verdict::<ApproveTool>::Deny("no".into()) } else { Verdict::Continue };
            Reply::ApproveTool(verdict.into())
        }
        Some(AskedKind::AfterTool) => Reply::AfterTool(result_verdict(dice, goes_on).into()),
        Some(AskedKind::SubagentStart) => {
            let blocks = !goes_on && dice.once_in(4);
            let verdict = if blocks { Verdict::<SubagentStart>::Deny("no".into()) } else { Verdict::Continue };
            Reply::SubagentStart(verdict.into())
        }
        None => unreachable!("nobody is asked there"),
    }
}

fn abort(dice: &mut impl Dice) -> Abort {
    Abort { abort_scope: *dice.pick(&[AbortScope::Turn, AbortScope::Run]), reason: "stop".into() }
}

fn prompt_verdict(dice: &mut impl Dice, goes_on: bool) -> Verdict<UserPromptSubmit> {
    match dice.below(3) {
        _ if goes_on => Verdict::Continue,
        0 | 1 => Verdict::Modify((*dice.pick(&["hi", "ho"])).into()),
        _ => Verdict::Deny("no".into()),
    }
}

fn request_verdict(dice: &mut impl Dice, goes_on: bool) -> Verdict<BeforeLlm> {
    if goes_on {
        return Verdict::Continue;
    }
    if dice.once_in(8) {
        return Verdict::Abort(abort(dice));
    }
    let tools = dice.once_in(2).then(|| {
        let names = (0..dice.below(5)).map(|_| *dice.pick(&ASKED_FOR)).collect::<Vec<_>>();
        names.iter().map(|name| Rendered::new(ToolDef::new(name, "", pintle_domain::json::json!({})))).collect()
    });
    let messages = dice.once_in(8).then(|| match dice.below(4) {
        3 => Vec::new(),
        _ => vec![Rendered::new(Message::text(Role::User, "instead"))],
    });
    let model = dice.once_in(4).then(|| (*dice.pick(&["m", "big", "", "unknown"])).to_owned());
    Verdict::Modify(LlmPatch { model, messages, tools, options: None, faulty: None })
}

fn response_verdict(dice: &mut impl Dice, goes_on: bool) -> Verdict<AfterLlm> {
    match dice.below(8) {
        _ if goes_on => Verdict::Continue,
        0..=2 => Verdict::Modify(LlmReply::text("instead")),
        3..=6 => Verdict::Modify(LlmReply::calls(parts(dice))),
        _ => Verdict::Abort(abort(dice)),
    }
}

/// One to four calls, some of them without an id of their own.
pub(crate) fn parts(dice: &mut impl Dice) -> Vec<CallPart> {
    let calls = dice.below(4) + 1;
    (0..calls)
        .map(|i| {
            let id = if dice.once_in(10) { String::new() } else { format!("c{}", i.min(2)) };
            let name = *dice.pick(&ASKED_FOR);
            let arguments = pintle_domain::json::Value::Object(input(dice)).to_string();
            CallPart::new(&id, name, &arguments)
        })
        .collect()
}

fn patch(dice: &mut impl Dice) -> CallPatch {
    let tool = dice.once_in(3).then(|| (*dice.pick(&ASKED_FOR)).to_owned());
    CallPatch { tool, arguments: (!dice.once_in(3)).then(|| input(dice)) }
}

fn tool_verdict(dice: &mut impl Dice, goes_on: bool) -> Verdict<BeforeTool> {
    match dice.below(12) {
        _ if goes_on => Verdict::Continue,
        0..=5 => Verdict::Modify(patch(dice)),
        6..=8 => {
            let call = dice.once_in(2).then(|| patch(dice));
            Verdict::respond(Substitute { call, result: ToolOutput::ok("answer") })
        }
        9 | 10 => Verdict::Deny("no".into()),
        _ => Verdict::Abort(abort(dice)),
    }
}

fn gate_verdict(dice: &mut impl Dice, goes_on: bool) -> Verdict<PreToolUse> {
    match dice.below(6) {
        _ if goes_on => Verdict::Continue,
        0..=2 => Verdict::Modify(input(dice)),
        3 => Verdict::Ask("risky".into()),
        4 => Verdict::Continue,
        _ => Verdict::Deny("no".into()),
    }
}

fn result_verdict(dice: &mut impl Dice, goes_on: bool) -> Verdict<AfterTool> {
    match dice.below(8) {
        _ if goes_on => Verdict::Continue,
        0..=6 => Verdict::Modify(ToolOutput { response_handled: dice.once_in(2), ..ToolOutput::ok("redacted") }),
        _ => Verdict::Abort(abort(dice)),
    }
}

/// The checkpoint that `reply` answers, and the word of its verdict.
pub(crate) fn told(reply: &Reply) -> (CheckpointKind, pintle_domain::verdict::VerdictKind) {
    match reply {
        Reply::UserPromptSubmit(heard) => (UserPromptSubmit::KIND, heard.verdict.told().0),
        Reply::BeforeLlm(heard) => (BeforeLlm::KIND, heard.verdict.told().0),
        Reply::AfterLlm(heard) => (AfterLlm::KIND, heard.verdict.told().0),
        Reply::BeforeTool(heard) => (BeforeTool::KIND, heard.verdict.told().0),
        Reply::PreToolUse(heard) => (PreToolUse::KIND, heard.verdict.told().0),
        Reply::ApproveTool(heard) => (ApproveTool::KIND, heard.verdict.told().0),
        Reply::AfterTool(heard) => (AfterTool::KIND, heard.verdict.told().0),
        Reply::SubagentStart(heard) => (SubagentStart::KIND, heard.verdict.told().0),
    }
}
