//! Whether a hook can do its work: one value, the words for it, and what it means for a start that is strict.
//!
//! Whoever shows hooks shows this, so that a run, its timeline, listings and `doctor` never say different things of one
//! hook.

use jiff::Timestamp;

use crate::fault::Fault;
use crate::hook::HookState;

/// How a hook stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Health {
    /// It answered as it is now.
    Armed(HookProof),
    /// Switched off by its owner, so that nobody relies on it.
    Disabled,
    /// Nobody knows that it works, or it is known that it does not.
    Unproven {
        /// The first step that it did not pass.
        step: Step,
        /// Why, for a person.
        why: String,
    },
}

/// The last good answer of a hook as it is now: another entry, program or script is another hook.
#[derive(Clone, Debug, PartialEq)]
pub struct HookProof {
    /// When it answered.
    pub at: Timestamp,
    /// What came of the canary, where it was refused.
    pub refused: Option<CanaryRefusal>,
}

/// A guard that refused the canary, as one with a list of what is allowed does rightly, and a broken one too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanaryRefusal {
    /// What it said last on its standard error or, if nothing, its reason.
    pub said: Option<String>,
}

/// What has to hold before a hook is proven, in the order in which it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Its edition runs it.
    Edition,
    /// Somebody accepted it.
    Trust,
    /// Its entry is good.
    Configuration,
    /// Its circuit breaker is closed.
    Breaker,
    /// Its condition can be evaluated.
    Condition,
    /// It is about somebody.
    Scope,
    /// Its secrets open.
    Secrets,
    /// A model can judge.
    Judge,
    /// Its script can run.
    Script,
    /// Its child started.
    Spawn,
    /// Its child shook hands.
    Hello,
    /// It answered a made-up call.
    Canary,
    /// It is about something that happens.
    Matcher,
    /// It answered anything yet.
    Answer,
}

impl Step {
    /// Its name, behind *unproven at*.
    pub fn word(self) -> &'static str {
        match self {
            Self::Edition => "edition",
            Self::Trust => "trust",
            Self::Configuration => "configuration",
            Self::Breaker => "breaker",
            Self::Condition => "condition",
            Self::Scope => "scope",
            Self::Secrets => "secrets",
            Self::Judge => "judge",
            Self::Script => "script",
            Self::Spawn => "spawn",
            Self::Hello => "hello",
            Self::Canary => "the canary",
            Self::Matcher => "matcher",
            Self::Answer => "answer",
        }
    }
}

impl Health {
    /// A hook that did not pass `step`.
    pub fn unproven(step: Step, why: impl Into<String>) -> Self {
        Self::Unproven { step, why: why.into() }
    }

    /// A hook that never answered as it is now, and against which nothing is known.
    pub fn unanswered() -> Self {
        Self::unproven(Step::Answer, "has not answered yet")
    }

    /// A hook that answered once, and not as it is now.
    pub fn outdated() -> Self {
        Self::unproven(Step::Answer, "answered before, but not as it is now")
    }

    /// What is wrong with a hook in `state` whose child ended its start in `down`; none if nothing is.
    pub fn standing(state: &HookState, down: Option<&Fault>) -> Option<Self> {
        let fault = match (state, down) {
            (HookState::Disabled, _) => return Some(Self::Disabled),
            (HookState::Untrusted, _) => {
                return Some(Self::unproven(Step::Trust, "it has not been accepted; see `pintle trust`"));
            }
            (HookState::Broken(fault), _) => return Some(Self::unproven(Step::Configuration, misconfigured(fault))),
            (HookState::Tripped { since }, _) => {
                return Some(Self::unproven(Step::Breaker, format!("its circuit breaker tripped at {since}")));
            }
            (HookState::Armed, None) => return None,
            (HookState::Armed, Some(fault)) => fault,
        };
        // A child that ran and did not shake hands says so.
        let ran = !matches!(fault, Fault::CannotStart { cause } if !cause.shown().contains("hook.hello"));
        let step = if ran { Step::Hello } else { Step::Spawn };
        Some(Self::unproven(step, fault.explained().to_string()))
    }

    /// Whether a start that is strict may not go on with a guard that stands so. One that is switched off guards
    /// nothing, and one that has not been asked yet can only be proven by going on.
    pub fn stops_a_strict_start(&self) -> bool {
        match self {
            Self::Armed(_) | Self::Disabled | Self::Unproven { step: Step::Answer, .. } => false,
            Self::Unproven { .. } => true,
        }
    }

    /// Whether it is proven.
    pub fn is_armed(&self) -> bool {
        matches!(self, Self::Armed(_))
    }

    /// The worse, the earlier: what somebody has to see first. Of what is not proven, what failed first.
    pub fn severity(&self) -> impl Ord + use<> {
        match self {
            Self::Unproven { step: Step::Answer, .. } => (1, None),
            Self::Unproven { step, .. } => (0, Some(*step)),
            Self::Armed(HookProof { refused: Some(_), .. }) => (2, None),
            Self::Armed(HookProof { refused: None, .. }) => (3, None),
            Self::Disabled => (4, None),
        }
    }

    /// How it stands at `now`, behind a hook's name: `armed (proven 3 h ago)`, `unproven: matches no tool`.
    pub fn words(&self, now: Timestamp) -> String {
        match self {
            Self::Armed(HookProof { at, refused: None }) => format!("armed (proven {})", ago(*at, now)),
            Self::Armed(HookProof { at, refused: Some(refusal) }) => {
                format!("{} (proven {})", refusal.words(), ago(*at, now))
            }
            Self::Disabled => "disabled".to_owned(),
            // Nobody tried to prove these: what is to be done is not to mend them.
            Self::Unproven { step: Step::Trust, why } => format!("untrusted: {why}"),
            Self::Unproven { step: Step::Configuration, why } => format!("broken: {why}"),
            Self::Unproven { why, .. } => format!("unproven: {why}"),
        }
    }
}

/// What is wrong with an entry that never got as far as a start, which its fault is named after.
fn misconfigured(fault: &Fault) -> String {
    if let Fault::CannotStart { cause } = fault {
        return format!("its configuration is wrong: {}", cause.shown());
    }
    fault.explained().to_string()
}

impl CanaryRefusal {
    /// How a guard stands that refused the canary.
    pub fn words(&self) -> String {
        match &self.said {
            Some(said) => format!("armed, denies the canary: {said}"),
            None => "armed, denies the canary".to_owned(),
        }
    }
}

/// How long ago `at` was, in the unit that people would say.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(at).as_secs().max(0);
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_proof_is_as_old_as_people_would_say() {
        let now = at("2026-11-22T12:00:00Z");
        for (when, expected) in [
            ("2026-11-22T12:00:07Z", "0 s ago"),
            ("2026-11-22T11:59:58Z", "2 s ago"),
            ("2026-11-22T11:58:59Z", "1 min ago"),
            ("2026-11-22T09:00:00Z", "3 h ago"),
            ("2026-11-20T12:00:01Z", "47 h ago"),
            ("2026-11-20T11:00:00Z", "2 days ago"),
        ] {
            let proven = Health::Armed(HookProof { at: at(when), refused: None });
            assert_eq!(proven.words(now), format!("armed (proven {expected})"), "{when}");
        }
    }

    #[test]
    fn each_standing_has_its_words_and_its_weight() {
        let now = at("2026-11-22T12:00:00Z");
        let proof = |refused| Health::Armed(HookProof { at: now, refused });
        let standing = |state: &HookState, down: Option<Fault>| Health::standing(state, down.as_ref());
        let down = |cause: &str| Some(Fault::CannotStart { cause: cause.into() });
        assert_eq!(standing(&HookState::Armed, None), None);
        let wrong = standing(&HookState::Broken(down("no command").unwrap()), None).unwrap();
        assert_eq!(wrong.words(now), "broken: its configuration is wrong: no command");
        // In the order of their severity.
        let table = [
            (
                standing(&HookState::Untrusted, None).unwrap(),
                "untrusted: it has not been accepted; see `pintle trust`",
                true,
            ),
            (standing(&HookState::Broken(Fault::broke("x")), None).unwrap(), "broken: broke the protocol: x", true),
            (
                standing(&HookState::Tripped { since: "noon".into() }, None).unwrap(),
                "unproven: its circuit breaker tripped at noon",
                true,
            ),
            (standing(&HookState::Armed, down("no program")).unwrap(), "unproven: could not start: no program", true),
            (
                standing(&HookState::Armed, down("left before it answered hook.hello")).unwrap(),
                "unproven: could not start: left before it answered hook.hello",
                true,
            ),
            (Health::unproven(Step::Matcher, "matches no tool"), "unproven: matches no tool", true),
            (Health::unanswered(), "unproven: has not answered yet", false),
            (
                proof(Some(CanaryRefusal { said: Some("no list".into()) })),
                "armed, denies the canary: no list (proven 0 s ago)",
                false,
            ),
            (proof(None), "armed (proven 0 s ago)", false),
            (standing(&HookState::Disabled, None).unwrap(), "disabled", false),
        ];
        for (health, words, stops) in &table {
            assert_eq!((health.words(now).as_str(), health.stops_a_strict_start()), (*words, *stops));
        }
        assert!(table.is_sorted_by(|(one, ..), (next, ..)| one.severity() < next.severity()));
    }
}
