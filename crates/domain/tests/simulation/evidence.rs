//! What must be true of every event, whoever was asked and whatever they said.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pintle_domain::chain::{Chain, HookMachine};
use pintle_domain::checkpoint::{AgentInfo, Checkpoint, CheckpointKind, Duty, Facts, Reply, Snapshot, Subject};
use pintle_domain::clearing::{ApprovalQuestion, CLEARING, Clearing, ClearingOutcome};
use pintle_domain::fault::{Fault, ProtocolBreach};
use pintle_domain::hook::{Hook, HookState, OnFailure};
use pintle_domain::id::TurnId;
use pintle_domain::identity::Identity;
use pintle_domain::record::{HookOutcome as Ran, Record};
use pintle_domain::roster::Roster;
use pintle_domain::ruling::Ruling;
use pintle_domain::tool::{Digest, ToolCall};
use pintle_domain::verdict::{Verdict, VerdictKind};

use super::world::{Agent, Dice, answer, told};

/// How many bits of a version count the changes within one chain: those above tell the chains of a clearing apart.
const RUN_BITS: u32 = 16;

/// One question and its answer.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) hook: usize,
    pub(crate) kind: CheckpointKind,
    pub(crate) version: u32,
    pub(crate) saw: Snapshot,
    pub(crate) call: Option<ToolCall>,
    pub(crate) answer: Result<Reply, Fault>,
}

impl Asked {
    /// The call as this hook left it: what it saw, or what it made of it.
    fn left(&self) -> Option<ToolCall> {
        let mut call = self.call.clone()?;
        if let Ok(Reply::PreToolUse(heard)) = &self.answer
            && let Verdict::Modify(arguments) = &heard.verdict
        {
            call.arguments = arguments.clone();
        }
        Some(call)
    }
}

/// Answers at random until nobody is left to ask, or until `cancelled` says so: then everyone is cancelled.
pub(crate) fn play(
    asks: &mut impl HookMachine,
    dice: &mut impl Dice,
    mut took: impl FnMut() -> Duration,
    mut cancelled: impl FnMut() -> bool,
) -> Vec<Asked> {
    let mut log = Vec::new();
    let mut over = false;
    while let Some(need) = asks.next() {
        over |= cancelled();
        let kind = need.subject.kind();
        let answer = if over { Err(Fault::Cancelled) } else { answer(dice, kind) };
        let (saw, call) = seen(&need.subject);
        log.push(Asked { hook: need.hook, kind, version: need.version, saw, call, answer: answer.clone() });
        asks.settle(answer, took());
        assert!(log.len() < 1000, "the machine does not end");
    }
    log
}

fn seen(subject: &Subject<'_>) -> (Snapshot, Option<ToolCall>) {
    match subject {
        Subject::UserPromptSubmit(it) => (it.snapshot(), None),
        Subject::BeforeLlm(it) => (it.snapshot(), None),
        Subject::AfterLlm(it) => (it.snapshot(), None),
        Subject::BeforeTool(it) => (it.snapshot(), Some(it.call.clone())),
        Subject::PreToolUse(it) => (it.snapshot(), Some(it.call.clone())),
        Subject::ApproveTool(it) => (it.snapshot(), Some(it.call.clone())),
        Subject::AfterTool(it) => (it.snapshot(), Some(it.call.clone())),
        Subject::SubagentStart(it) => (it.snapshot(), None),
    }
}

/// The digest of `call` within one turn of one session.
pub(crate) fn digest(call: &ToolCall) -> Digest {
    Digest::of(&Identity::top("main", "s", TurnId::from("t")), call)
}

/// One cleared call with everything that led to it.
pub(crate) struct Cleared {
    pub(crate) roster: Arc<Roster>,
    pub(crate) agent: Agent,
    pub(crate) log: Vec<Asked>,
    /// What a person said yes to.
    pub(crate) approved: Vec<ToolCall>,
    pub(crate) outcome: ClearingOutcome,
    pub(crate) records: Vec<Record>,
}

/// What a person says to a question.
pub(crate) enum Said {
    Yes,
    No(String),
    /// Nothing yet.
    Later,
}

/// A person who says anything.
pub(crate) fn anything(dice: &mut impl Dice) -> Said {
    match dice.below(4) {
        0 | 1 => Said::Yes,
        2 => Said::No("a person said no".into()),
        _ => Said::Later,
    }
}

impl Cleared {
    pub(crate) fn play<D: Dice>(
        (roster, agent): (&Arc<Roster>, &Agent),
        call: ToolCall,
        dice: &mut D,
        mut cancelled: impl FnMut() -> bool,
        mut person: impl FnMut(&mut D, ApprovalQuestion<'_>) -> Said,
    ) -> Self {
        let mut clearing = Clearing::new(roster.clone(), agent.event_context(), call);
        let (mut log, mut approved) = (Vec::new(), Vec::new());
        loop {
            log.extend(play(&mut clearing, dice, || Duration::ZERO, &mut cancelled));
            let Some(question) = clearing.question() else { break };
            let call = question.call.clone();
            match person(dice, question) {
                Said::Yes => {
                    approved.push(call);
                    clearing.approved();
                }
                Said::No(text) => clearing.refused(&text),
                Said::Later => break,
            }
        }
        let (outcome, records) = clearing.conclude();
        Self { roster: roster.clone(), agent: agent.clone(), log, approved, outcome, records: records.to_vec() }
    }

    /// Whether this may have an effect.
    fn lets_pass(&self) -> Option<&ToolCall> {
        match &self.outcome {
            ClearingOutcome::Run(call) | ClearingOutcome::Substituted { call, .. } => Some(call),
            ClearingOutcome::Ask { .. } | ClearingOutcome::Refused { .. } | ClearingOutcome::Abort { .. } => None,
        }
    }

    /// No denied call passes, and what passes is what every gate and approver last saw, digit for digit.
    pub(crate) fn passes_only_what_was_seen(&self) {
        let Some(call) = self.lets_pass() else { return };
        let denied = |asked: &Asked| {
            asked.answer.as_ref().is_ok_and(|reply| told(reply).0 == asked.kind && told(reply).1 > VerdictKind::Ask)
        };
        assert!(!self.log.iter().any(denied), "a refused call passes: {:?}", self.outcome);
        let judges: &[CheckpointKind] = match self.outcome {
            ClearingOutcome::Run(_) => &[CheckpointKind::PreToolUse, CheckpointKind::ApproveTool],
            ClearingOutcome::Substituted { .. }
            | ClearingOutcome::Ask { .. }
            | ClearingOutcome::Refused { .. }
            | ClearingOutcome::Abort { .. } => &[CheckpointKind::PreToolUse],
        };
        for kind in judges {
            for number in self.roster.at(*kind).iter().filter(|number| self.applies(**number, call)) {
                let last = self.log.iter().rev().find(|asked| asked.kind == *kind && asked.hook == *number);
                let stands = last.and_then(Asked::left).as_ref().map(digest);
                assert_eq!(stands, Some(digest(call)), "{kind:?} {number} did not see what passes");
            }
        }
    }

    /// What a hook wanted a person to say about does not pass unless one said yes to exactly that.
    pub(crate) fn nothing_passes_unasked(&self) {
        let Some(call) = self.lets_pass() else { return };
        let asks =
            |asked: &&Asked| asked.answer.as_ref().is_ok_and(|reply| told(reply) == (asked.kind, VerdictKind::Ask));
        let said_yes = |call: &ToolCall| self.approved.iter().any(|yes| digest(yes) == digest(call));
        for asked in self.log.iter().filter(asks) {
            assert!(!self.approved.is_empty(), "a question was forgotten: {:?}", self.outcome);
            let about = asked.call.as_ref().expect("a gate sees a call");
            assert!(digest(about) != digest(call) || said_yes(call), "{call:?} passes without a person");
        }
        for yes in &self.approved {
            let asked = self.log.iter().filter(asks).count();
            assert!(asked >= self.approved.len(), "nobody asked about {yes:?}");
        }
    }

    /// Whoever wants the call as it ends up was asked, whatever the call was named before.
    pub(crate) fn nobody_is_renamed_past(&self) {
        let ClearingOutcome::Run(call) = &self.outcome else { return };
        for number in self.roster.at(CheckpointKind::BeforeTool).iter().filter(|number| self.applies(**number, call)) {
            let asked = |asked: &Asked| (asked.kind, asked.hook) == (CheckpointKind::BeforeTool, *number);
            assert!(self.log.iter().any(asked), "{} was never asked: {call:?}", self.roster.hook(*number).name);
        }
    }

    fn applies(&self, number: usize, call: &ToolCall) -> bool {
        let hook = self.roster.hook(number);
        let facts = Facts::of_call(call);
        let owns = self.agent.owner(&call.tool).as_ref() == Some(&hook.name);
        let covers = hook.scope.covers(&self.agent.acting_for);
        hook.state == HookState::Armed && covers && (owns || hook.matches(&facts))
    }

    /// The owner of a tool is asked only about what the gates let pass.
    pub(crate) fn gates_precede_owners(&self) {
        for (at, asked) in self.log.iter().enumerate().filter(|(_, asked)| asked.kind == CheckpointKind::BeforeTool) {
            let call = asked.call.as_ref().expect("a tool's hook sees a call");
            if self.agent.owner(&call.tool).as_ref() != Some(&self.roster.hook(asked.hook).name) {
                continue;
            }
            let again = self.log[..at].iter().any(|earlier| earlier.kind == asked.kind && earlier.hook == asked.hook);
            for gate in self.roster.at(CheckpointKind::PreToolUse).iter().filter(|gate| self.applies(**gate, call)) {
                let saw = |earlier: &Asked| {
                    earlier.hook == *gate
                        && earlier.kind == CheckpointKind::PreToolUse
                        && earlier.left().as_ref().map(digest) == Some(digest(call))
                };
                assert!(again || self.log[..at].iter().any(saw), "the owner is asked before gate {gate}");
            }
        }
    }

    /// Whoever was asked before a gate changed the input knows what became of it; only the owner is not asked twice.
    pub(crate) fn who_was_asked_sees_what_gates_changed(&self) {
        let Some(call) = self.lets_pass() else { return };
        let stands = |asked: &Asked| asked.left().as_ref() == Some(call);
        let changes = |asked: &Asked| asked.kind == CheckpointKind::PreToolUse && asked.left() != asked.call;
        let Some(last) = self.log.iter().rposition(changes) else { return };
        // What this run of the gates began with: several changes may come to none. Where a hook answered for another call,
        // a run on that follows the one on the call that it was asked about, with nobody between them.
        let run = |asked: &Asked| (asked.kind, asked.version >> RUN_BITS);
        let of_run = run(&self.log[last]);
        let gates = self.log[..last].iter().rev().take_while(|asked| run(asked) == of_run);
        let began_with = gates.last().unwrap_or(&self.log[last]).call.as_ref();
        if began_with == Some(call) || !self.log[last..].iter().all(stands) {
            return;
        }
        let owner = self.agent.owner(&call.tool);
        for asked in self.log[..last].iter().filter(|asked| asked.kind == CheckpointKind::BeforeTool) {
            let owns = owner.as_ref() == Some(&self.roster.hook(asked.hook).name);
            if owns || !self.applies(asked.hook, call) {
                continue;
            }
            let same = |other: &&Asked| other.kind == asked.kind && other.hook == asked.hook;
            let knows = self.log.iter().filter(same).any(|other| other.call.as_ref() == Some(call));
            assert!(knows, "hook {} does not know what a gate made of the input", asked.hook);
        }
    }

    /// The outcome is at least as strict as everything that was said.
    pub(crate) fn the_strictest_wins(&self) {
        let outcome = self.outcome.word().max(VerdictKind::Modify);
        for asked in &self.log {
            let Ok(reply) = &asked.answer else { continue };
            let (kind, word) = told(reply);
            if word == VerdictKind::Ask && !self.approved.is_empty() {
                continue;
            }
            assert!(kind != asked.kind || outcome >= word, "{word:?} was weakened to {outcome:?}");
        }
    }

    /// Needs per hook are bounded: the gates run before each owner, after the rewriters and on a substitute's call,
    /// twice at most each time, and the rewriters are asked once more each time.
    pub(crate) fn ends_in_time(&self) {
        let [before, gates, approvers] = CLEARING.map(|kind| self.roster.at(kind).len());
        let runs = self.agent.owners.len() + 2;
        let bound = before + approvers + runs * (2 * gates + before);
        assert!(self.log.len() <= bound, "{} needs of at most {bound}", self.log.len());
    }

    /// Whoever was asked twice about two things could tell them apart.
    pub(crate) fn versions_tell_subjects_apart(&self) {
        let mut seen: BTreeMap<(CheckpointKind, u32), &Snapshot> = BTreeMap::new();
        for asked in &self.log {
            let first = seen.entry((asked.kind, asked.version)).or_insert(&asked.saw);
            assert_eq!(*first, &asked.saw, "two subjects under version {}", asked.version);
        }
    }

    /// Everything above, and what holds for every event.
    pub(crate) fn holds(&self) {
        self.passes_only_what_was_seen();
        self.nothing_passes_unasked();
        self.gates_precede_owners();
        self.nobody_is_renamed_past();
        self.who_was_asked_sees_what_gates_changed();
        self.the_strictest_wins();
        self.ends_in_time();
        self.versions_tell_subjects_apart();
        for kind in CLEARING {
            one_record_each(&self.roster, kind, &self.records);
        }
        faults_stay_shut(&self.roster, &self.log, &self.records, self.outcome.word());
    }
}

/// Plays a chain over `subject` and looks at everything that holds for every chain.
pub(crate) fn chain<C: Checkpoint>(
    roster: &Arc<Roster>,
    agent: &Agent,
    subject: C,
    dice: &mut impl Dice,
    cancelled: impl FnMut() -> bool,
) -> (C, Ruling<C>) {
    let mut chain = Chain::new(roster.clone(), agent.event_context(), subject);
    let log = play(&mut chain, dice, || Duration::ZERO, cancelled);
    let conclusion = chain.conclude();
    let word = conclusion.ruling.word(true);
    for asked in &log {
        let Ok(reply) = &asked.answer else { continue };
        let (kind, said) = told(reply);
        assert!(kind != C::KIND || word >= said, "{said:?} was weakened to {word:?}");
    }
    assert!(log.len() <= 2 * roster.at(C::KIND).len());
    let records = conclusion.records.to_vec();
    one_record_each(roster, C::KIND, &records);
    faults_stay_shut(roster, &log, &records, word);
    (conclusion.subject, conclusion.ruling)
}

/// Every hook that is registered for `kind` left one record, in running order; more only when asked again.
pub(crate) fn one_record_each(roster: &Roster, kind: CheckpointKind, records: &[Record]) {
    let first = records.iter().filter(|record| record.checkpoint == kind && !record.again);
    let left: Vec<&str> = first.map(|record| record.hook.as_str()).collect();
    let registered: Vec<&str> = roster.at(kind).iter().map(|number| roster.hook(*number).name.as_str()).collect();
    assert_eq!(left, registered, "records at {kind:?}");
}

/// Every fault left its record, and none became an answer that its hook does not allow.
pub(crate) fn faults_stay_shut(roster: &Roster, log: &[Asked], records: &[Record], ruling: VerdictKind) {
    for asked in log {
        let Err(fault) = &asked.answer else { continue };
        let name = &roster.hook(asked.hook).name;
        let kept = records.iter().any(|record| {
            let Ran::Failed { fault: recorded, .. } = &record.outcome else { return false };
            record.checkpoint == asked.kind && record.hook == *name && recorded == fault
        });
        assert!(kept, "the fault of {name} left no record");
    }
    for record in records {
        let Ran::Failed { fault, became, .. } = &record.outcome else { continue };
        let hook = roster.hooks().iter().find(|hook| hook.name == record.hook).expect("hooks leave records");
        if *became == VerdictKind::Continue {
            assert!(may_go_on(hook, record.checkpoint, fault), "{fault:?} of {} became an allow", record.hook);
        } else {
            assert!(ruling >= *became, "{fault:?} of {} became {became:?}, then {ruling:?}", record.hook);
        }
    }
}

/// The table of process-hooks.md 6 and lifecycle.md 8, once more and independent of the chain.
fn may_go_on(hook: &Hook, kind: CheckpointKind, fault: &Fault) -> bool {
    let stage = hook.stages.get(kind).expect("only registered hooks are asked");
    let says_so = stage.on_failure == OnFailure::Continue;
    match kind.duty() {
        Duty::Approver => false,
        Duty::Gate => says_so && matches!(fault, Fault::TimedOut { .. }),
        Duty::Rewriter if matches!(fault, Fault::Protocol(ProtocolBreach::Respond(_))) => false,
        // A turn that is ending anyway is not aborted; only what may run a tool stays shut.
        Duty::Rewriter if *fault == Fault::Cancelled && kind != CheckpointKind::BeforeTool => true,
        Duty::Rewriter => says_so || stage.paired,
        Duty::Observer | Duty::Injector => true,
    }
}
