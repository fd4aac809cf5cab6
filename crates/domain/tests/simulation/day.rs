//! Whole sessions from a seed: the loop of the agent in small, with everything that can go wrong in it.

use pintle_domain::approval::{ApprovalMode, LIFETIME_SECONDS};
use pintle_domain::checkpoint::runtime::TurnStatus;
use pintle_domain::id::TurnId;
use pintle_domain::identity::Identity;
use pintle_domain::session::{JournalEntry, ReleaseReason, Session};
use pintle_domain::turn::{Fact, TurnEnd, WaitingMessage};

use super::disk::Disk;
use super::worker::{Went, Worker, World};
use super::world::{Dice, roster, with_rule};

/// How many seeds a plain test run takes: less than a second.
const SEEDS: u64 = 2_000;

/// How many turns are interrupted at each of their steps, in each of the ways: half a second.
const INTERRUPTED: u64 = 50;

/// Most steps of one turn of the root: four rounds of four calls, each cleared, started, awaited, where sub-agents
/// take a step while the root awaits them.
const MAX_STEPS: usize = 1_000;

/// What somebody does to a turn while it is worked.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Interrupt {
    /// A message comes in.
    Steering,
    /// The turn is to come to an end.
    Graceful,
    /// Both at once.
    Both,
    Cancel,
    Hard,
    Failure,
    /// The process is gone, and another one takes over.
    Kill,
}

const INTERRUPTS: [Interrupt; 7] = [
    Interrupt::Steering,
    Interrupt::Graceful,
    Interrupt::Both,
    Interrupt::Cancel,
    Interrupt::Hard,
    Interrupt::Failure,
    Interrupt::Kill,
];

/// What is planned for a day.
#[derive(Clone, Copy, Default)]
struct Plans {
    /// How many prompts there are at most.
    prompts: u32,
    /// Whether anything may happen at any step.
    wild: bool,
    /// What happens at which step.
    at: Option<(usize, Interrupt)>,
    traced: bool,
}

const WILD: Plans = Plans { prompts: 4, wild: true, at: None, traced: false };

/// One session in a world of its own.
struct Day {
    world: World,
    plans: Plans,
    mode: ApprovalMode,
    /// How many steps the longest turn took.
    steps: usize,
    /// How many texts there were.
    texts: usize,
    /// Texts of messages that passed the gates, in the order in which they came.
    said: Vec<String>,
}

impl Day {
    fn new(seed: u64, plans: Plans) -> Self {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut roster = roster(&mut dice);
        let ruled = *dice.pick(&[None, Some("main"), Some("a"), Some("b")]);
        if let Some(agent) = ruled {
            roster = with_rule(&roster, agent);
        }
        let mode = *dice.pick(&[ApprovalMode::Chat, ApprovalMode::Run, ApprovalMode::Resume, ApprovalMode::Mcp]);
        let (present, trace) = (dice.once_in(2), plans.traced.then(Vec::new));
        let world = World {
            dice,
            roster,
            ruled,
            disk: Disk::default(),
            now: 0,
            turns: 0,
            lossy: false,
            present,
            parked: None,
            trace,
        };
        Self { world, plans, mode, steps: 0, texts: 0, said: Vec::new() }
    }

    fn open(&mut self) -> Worker {
        Worker::open(&mut self.world, Identity::top("main", "root", TurnId::from("-")), self.mode)
    }

    /// Works the prompts of the day.
    fn live(mut self) -> Self {
        let mut root = self.open();
        for _ in 0..=self.world.dice.below(self.plans.prompts.max(1)) {
            let text = self.text();
            if root.begin(&mut self.world, &text) {
                self.said.push(text);
                root = self.work(root);
            }
        }
        self.nothing_is_lost(root.session());
        root.close(&mut self.world, ReleaseReason::Done);
        self.world.disk.is_settled();
        self
    }

    /// A text that nobody said before.
    fn text(&mut self) -> String {
        self.texts += 1;
        format!("message {}", self.texts)
    }

    /// One turn to its end, whoever works it then.
    fn work(&mut self, mut root: Worker) -> Worker {
        for step in 0..MAX_STEPS {
            self.steps = self.steps.max(step);
            if let Some(interrupt) = self.interrupt(step) {
                self.world.note(|| format!("{interrupt:?}"));
                root = self.happens(root, interrupt);
                if root.session().open().is_none() {
                    return root;
                }
            }
            match root.step(&mut self.world) {
                Went::On => {}
                Went::Over(_) => return root,
                Went::Parked => root = self.resume_parked(root),
            }
        }
        panic!("the turn does not end");
    }

    /// What happens before this step, if anything does.
    fn interrupt(&mut self, step: usize) -> Option<Interrupt> {
        if let Some((_, interrupt)) = self.plans.at.filter(|(at, _)| *at == step) {
            return Some(interrupt);
        }
        if self.plans.wild && self.world.dice.once_in(12) {
            return INTERRUPTS.get(self.world.dice.below(14) as usize).copied();
        }
        None
    }

    fn happens(&mut self, mut root: Worker, interrupt: Interrupt) -> Worker {
        match interrupt {
            Interrupt::Steering => self.steer(&mut root),
            Interrupt::Graceful => root.tell(&mut self.world, Fact::Interrupted),
            Interrupt::Both => {
                root.tell(&mut self.world, Fact::Interrupted);
                self.steer(&mut root);
            }
            Interrupt::Cancel => root.end(TurnEnd::cancelled()),
            Interrupt::Hard => root.end(TurnEnd::hard_aborted()),
            Interrupt::Failure => root.end(TurnEnd::failed("llm", "the provider is gone")),
            Interrupt::Kill => return self.kill(root),
        }
        root
    }

    fn steer(&mut self, root: &mut Worker) {
        let text = self.text();
        if root.steer(&mut self.world, &text) {
            self.said.push(text);
        }
    }

    /// The process is gone with everything in its memory. Whoever comes next ends what sub-agents had begun, and goes
    /// on with the root's turn, or ends it too.
    fn kill(&mut self, root: Worker) -> Worker {
        drop(root);
        for session in self.world.disk.open_sessions() {
            if session != "root" {
                let (status, error) = (TurnStatus::Aborted, None);
                let ended = Fact::Ended { status, roll_back: false, error, reply: String::new() };
                let opened = JournalEntry::Opened { by: "pid 2".into(), under: None };
                let closed = |cause| JournalEntry::Closed { cause };
                for entry in
                    [closed(ReleaseReason::Killed), opened, JournalEntry::Turn(ended), closed(ReleaseReason::Done)]
                {
                    self.world.disk.append(&session, entry);
                }
            }
        }
        let mut root = self.open();
        if self.world.dice.once_in(4) {
            root.end(TurnEnd::cancelled());
        }
        root
    }

    /// Persons answer, or let it be; then somebody resumes the turn from its journal.
    fn resume_parked(&mut self, root: Worker) -> Worker {
        root.close(&mut self.world, ReleaseReason::Waiting);
        if self.world.dice.once_in(2) {
            self.world.now += u64::try_from(LIFETIME_SECONDS).expect("a day has seconds") * 1_000;
        }
        let now = self.world.timestamp();
        for id in self.world.disk.waiting(now) {
            if !self.world.dice.once_in(4) {
                let yes = !self.world.dice.once_in(3);
                self.world.disk.answer(&id, yes, now);
            }
        }
        self.world.note(|| "resumed".into());
        self.open()
    }

    /// Every message that passed the gates stands in the conversation or waits, and does so once.
    fn nothing_is_lost(&self, session: &Session) {
        let in_conversation = session.messages().iter().map(|message| message.get().content.as_str());
        let found: Vec<&str> = in_conversation.chain(session.queue().iter().map(WaitingMessage::text)).collect();
        for text in &self.said {
            let times = found.iter().filter(|it| **it == text).count();
            assert!(times == 1 || (times == 0 && self.world.lossy), "`{text}` is there {times} times: {found:?}");
        }
    }
}

/// Says which seed to replay when a day goes wrong.
struct Seed(u64, Plans);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let at = self.1.at.map(|at| format!(" (with {at:?})")).unwrap_or_default();
            eprintln!("replay it{at}: PINTLE_SEED={} cargo test -p pintle-domain --test simulation", self.0);
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, got `{text}`")))
}

/// The seeds to try, `usual` of them unless somebody says otherwise.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    match number("PINTLE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PINTLE_SEEDS").unwrap_or(usual),
    }
}

#[test]
fn days_of_turns_hooks_faults_and_interruptions() {
    for seed in seeds(SEEDS) {
        let _tells = Seed(seed, WILD);
        Day::new(seed, WILD).live();
    }
}

#[test]
fn each_interrupt_at_each_step_of_a_turn() {
    for seed in seeds(INTERRUPTED) {
        let calm = Plans { prompts: 1, ..Plans::default() };
        let steps = Day::new(seed, calm).live().steps;
        for at in 0..=steps {
            for interrupt in INTERRUPTS {
                let plans = Plans { at: Some((at, interrupt)), ..calm };
                let _tells = Seed(seed, plans);
                Day::new(seed, plans).live();
            }
        }
    }
}

#[test]
fn a_seed_always_gives_the_same_day() {
    let trace = |seed| Day::new(seed, Plans { traced: true, ..WILD }).live().world.trace;
    for seed in 0..20 {
        assert_eq!(trace(seed), trace(seed));
    }
}

#[test]
fn days_are_eventful() {
    let mut missing = vec![
        "Start",
        "Await",
        "Run(",
        "Substituted",
        "Refused",
        "Ask {",
        "Abort {",
        "Completed",
        "roll_back: true",
        "Inject",
        "terminal: true",
        "why: Steering",
        "why: Graceful",
        "Kill",
        "resumed",
        "outcome unknown",
        "a person refused the call",
        "nobody answered in time",
        "nobody is there to ask",
        " 3 CallModel",
        "writes beside a rule",
    ];
    // Some of it is rare.
    for seed in 0..10 * SEEDS {
        let trace = Day::new(seed, Plans { traced: true, ..WILD }).live().world.trace.unwrap_or_default();
        missing.retain(|word| !trace.iter().any(|line| line.contains(word)));
        if missing.is_empty() {
            return;
        }
    }
    panic!("no day has {missing:?}");
}
