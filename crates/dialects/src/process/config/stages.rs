//! Where a hook acts, how long each call may take, and what its faults become.

use std::collections::BTreeMap;
use std::time::Duration;

use pintle_domain::checkpoint::{CheckpointKind, Duty};
use pintle_domain::hook::{APPROVAL_TIMEOUT, INTERCEPTOR_TIMEOUT, OBSERVER_TIMEOUT, OnFailure, Stage, Stages};

use super::problem::EntryProblem;
use super::raw::{EachStage, PerStage, RawDefaults};

/// The stages that `intercept` may name, in the order of a turn.
pub const INTERCEPTS: [CheckpointKind; 5] = [
    CheckpointKind::BeforeLlm,
    CheckpointKind::AfterLlm,
    CheckpointKind::BeforeTool,
    CheckpointKind::ApproveTool,
    CheckpointKind::AfterTool,
];

/// The stages that one name in a pair switches on together.
const PAIRS: [(CheckpointKind, CheckpointKind); 2] =
    [(CheckpointKind::BeforeLlm, CheckpointKind::AfterLlm), (CheckpointKind::BeforeTool, CheckpointKind::AfterTool)];

/// The words that `on_failure` takes.
const ON_FAILURE_WORDS: [&str; 3] = ["deny", "continue", "abort_turn"];

/// The longest deadline: a week. Longer ones are typing mistakes, and sums of them must not overflow.
pub const MAX_TIMEOUT_MS: i64 = 7 * 24 * 3600 * 1000;

/// The smallest limit of a line: what the first hosts of this protocol could already send.
pub const MIN_FRAME_BYTES: i64 = 1 << 20;

/// The largest limit of a line: one line is held in memory whole.
pub const MAX_FRAME_BYTES: i64 = 1 << 30;

/// Limits for hooks that do not set their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// How long an event may wait to be written to an observer.
    pub observer_timeout: Duration,
    /// How long a rewriter may take for one call.
    pub interceptor_timeout: Duration,
    /// How long an approver may take for one call.
    pub approval_timeout: Duration,
    /// The longest line, either way.
    pub max_frame_bytes: usize,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            observer_timeout: OBSERVER_TIMEOUT,
            interceptor_timeout: INTERCEPTOR_TIMEOUT,
            approval_timeout: APPROVAL_TIMEOUT,
            max_frame_bytes: 64 << 20,
        }
    }
}

impl Defaults {
    /// Reads what is written; a bad value is a problem and leaves the built-in default in force.
    pub fn read(raw: &RawDefaults) -> (Self, Vec<EntryProblem>) {
        let mut read = Self::default();
        let mut problems = Vec::new();
        for (key, value, to) in [
            ("observer_timeout_ms", raw.observer_timeout_ms, &mut read.observer_timeout),
            ("interceptor_timeout_ms", raw.interceptor_timeout_ms, &mut read.interceptor_timeout),
            ("approval_timeout_ms", raw.approval_timeout_ms, &mut read.approval_timeout),
        ] {
            match value.map(millis) {
                Some(Ok(timeout)) => *to = timeout,
                Some(Err(message)) => problems.push(EntryProblem::new(&[key], message)),
                None => {}
            }
        }
        match raw.max_frame_bytes.map(frame_bytes) {
            Some(Ok(bytes)) => read.max_frame_bytes = bytes,
            Some(Err(message)) => problems.push(EntryProblem::new(&["max_frame_bytes"], message)),
            None => {}
        }
        (read, problems)
    }

    fn timeout(&self, kind: CheckpointKind) -> Duration {
        match kind.duty() {
            Duty::Observer => self.observer_timeout,
            Duty::Approver => self.approval_timeout,
            Duty::Gate | Duty::Rewriter | Duty::Injector => self.interceptor_timeout,
        }
    }
}

/// A deadline of `value` milliseconds.
///
/// # Errors
/// What is wrong with the number.
pub(super) fn millis(value: i64) -> Result<Duration, String> {
    match u64::try_from(value) {
        Ok(0) | Err(_) => Err("must be greater than 0".to_owned()),
        Ok(_) if value > MAX_TIMEOUT_MS => Err(format!("must be at most {MAX_TIMEOUT_MS}")),
        Ok(value) => Ok(Duration::from_millis(value)),
    }
}

fn frame_bytes(value: i64) -> Result<usize, String> {
    if value < MIN_FRAME_BYTES {
        return Err(format!("must be at least {MIN_FRAME_BYTES}"));
    }
    usize::try_from(value.min(MAX_FRAME_BYTES + 1))
        .ok()
        .filter(|_| value <= MAX_FRAME_BYTES)
        .ok_or_else(|| format!("must be at most {MAX_FRAME_BYTES}"))
}

/// The stages that `intercept` names, and those that come with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedStages {
    /// Those that stand there.
    pub named: Vec<CheckpointKind>,
    /// Those called only because their twin stands there.
    pub paired: Vec<CheckpointKind>,
}

impl NamedStages {
    /// Adds the twins of `named` if `pair` says so.
    pub fn new(named: Vec<CheckpointKind>, pair: bool) -> Self {
        let twins = PAIRS.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
        let paired = twins
            .filter(|(one, twin)| pair && named.contains(one) && !named.contains(twin))
            .map(|(_, twin)| twin)
            .collect();
        Self { named, paired }
    }
}

/// How long the calls of a hook may take and what its faults become, whatever stages it has.
#[derive(Clone, Debug, PartialEq)]
pub struct StagePolicy {
    defaults: Defaults,
    timeouts: BTreeMap<CheckpointKind, Duration>,
    on_failure: BTreeMap<CheckpointKind, OnFailure>,
}

impl StagePolicy {
    /// A policy that leaves everything to `defaults`.
    pub fn new(defaults: Defaults) -> Self {
        Self { defaults, timeouts: BTreeMap::new(), on_failure: BTreeMap::new() }
    }

    /// Reads `timeout_ms`.
    pub(super) fn read_timeouts(&mut self, raw: Option<&PerStage<i64>>) -> Vec<EntryProblem> {
        let mut problems = Vec::new();
        let values: Vec<(Option<CheckpointKind>, i64)> = match raw {
            None => Vec::new(),
            Some(PerStage::All(value)) => vec![(None, *value)],
            Some(PerStage::Each(each)) => each.iter().map(|(kind, value)| (Some(kind), *value)).collect(),
        };
        for (kind, value) in values {
            match (millis(value), kind) {
                (Ok(timeout), Some(kind)) => drop(self.timeouts.insert(kind, timeout)),
                (Ok(timeout), None) => self.timeouts.extend(INTERCEPTS.map(|kind| (kind, timeout))),
                (Err(message), kind) => problems.push(EntryProblem::new(&path("timeout_ms", kind), message)),
            }
        }
        problems
    }

    /// Reads `on_failure` for a hook whose stages are `named`; `None` if only its code knows them.
    pub(super) fn read_on_failure(
        &mut self,
        raw: Option<&PerStage<String>>,
        named: Option<&NamedStages>,
    ) -> Vec<EntryProblem> {
        match raw {
            None => Vec::new(),
            Some(PerStage::All(word)) => self.read_bare(word, named).into_iter().collect(),
            Some(PerStage::Each(each)) => {
                each.iter().filter_map(|(kind, word)| self.read_one(kind, word, named)).collect()
            }
        }
    }

    /// A bare word applies to every stage that allows it, and must apply somewhere.
    fn read_bare(&mut self, word: &str, named: Option<&NamedStages>) -> Option<EntryProblem> {
        let stages = named.map_or(&INTERCEPTS[..], |named| &named.named);
        let allowed: Vec<_> = stages.iter().filter_map(|kind| Some((*kind, allowed(*kind, word)?))).collect();
        let known = ON_FAILURE_WORDS.contains(&word);
        let wants_open = known && word != "deny";
        let fits = !allowed.is_empty() || (known && stages.is_empty());
        self.on_failure.extend(allowed);
        if fits || (known && !wants_open && stages.contains(&CheckpointKind::ApproveTool)) {
            return None;
        }
        if wants_open && stages.contains(&CheckpointKind::ApproveTool) {
            return Some(EntryProblem::new(&["on_failure"], ALWAYS_REFUSES));
        }
        Some(unsupported(&["on_failure"], word))
    }

    fn read_one(&mut self, kind: CheckpointKind, word: &str, named: Option<&NamedStages>) -> Option<EntryProblem> {
        let path = path("on_failure", Some(kind));
        if kind.duty() == Duty::Approver {
            return Some(EntryProblem::new(&path, ALWAYS_REFUSES));
        }
        let paired = named.is_some_and(|named| named.paired.contains(&kind));
        match allowed(kind, word) {
            Some(OnFailure::AbortTurn | OnFailure::Close) if paired => {
                let message = format!(
                    "unsupported on_failure \"{word}\": {} is called only as a twin and always continues",
                    kind.name()
                );
                Some(EntryProblem::new(&path, message))
            }
            Some(on_failure) => {
                self.on_failure.insert(kind, on_failure);
                None
            }
            None => Some(unsupported(&path, word)),
        }
    }

    /// The stage at `kind`.
    pub fn stage(&self, kind: CheckpointKind, paired: bool) -> Stage {
        let timeout = self.timeouts.get(&kind).copied().unwrap_or_else(|| self.defaults.timeout(kind));
        let on_failure = match (paired, self.on_failure.get(&kind)) {
            (true, _) => OnFailure::Continue,
            (false, Some(on_failure)) => *on_failure,
            (false, None) => OnFailure::default_at(kind),
        };
        Stage { timeout, on_failure, paired }
    }

    /// The stages of a hook whose code says that it acts at `kinds`.
    pub fn stages(&self, kinds: &[CheckpointKind]) -> Stages {
        let mut stages = Stages::default();
        for kind in kinds {
            stages.set(*kind, self.stage(*kind, false));
        }
        stages
    }
}

const ALWAYS_REFUSES: &str = "approve_tool always refuses on a fault";

fn unsupported(path: &[&str], word: &str) -> EntryProblem {
    EntryProblem::new(path, format!("unsupported on_failure \"{word}\"")).meant(word, ON_FAILURE_WORDS)
}

/// What `word` makes of a fault at `kind`, where it is allowed.
fn allowed(kind: CheckpointKind, word: &str) -> Option<OnFailure> {
    let denies = kind == CheckpointKind::BeforeTool;
    match (kind.duty(), word) {
        (Duty::Rewriter, "continue") => Some(OnFailure::Continue),
        (Duty::Rewriter, "deny") if denies => Some(OnFailure::Close),
        (Duty::Rewriter, "abort_turn") if !denies => Some(OnFailure::AbortTurn),
        (Duty::Observer | Duty::Gate | Duty::Rewriter | Duty::Approver | Duty::Injector, _) => None,
    }
}

fn path(key: &'static str, kind: Option<CheckpointKind>) -> Vec<&'static str> {
    std::iter::once(key).chain(kind.map(CheckpointKind::name)).collect()
}

impl<T> EachStage<T> {
    /// Those that are set, in the order of a turn.
    pub fn iter(&self) -> impl Iterator<Item = (CheckpointKind, &T)> {
        let values = [&self.before_llm, &self.after_llm, &self.before_tool, &self.approve_tool, &self.after_tool];
        INTERCEPTS.into_iter().zip(values).filter_map(|(kind, value)| Some((kind, value.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CheckpointKind::{AfterLlm, AfterTool, ApproveTool, BeforeLlm, BeforeTool};

    #[test]
    fn a_stage_brings_its_twin_unless_told_not_to() {
        let check = |named: &[CheckpointKind], pair, paired: &[CheckpointKind]| {
            assert_eq!(NamedStages::new(named.to_vec(), pair).paired, paired, "{named:?}");
        };
        check(&[BeforeLlm], true, &[AfterLlm]);
        check(&[AfterLlm], true, &[BeforeLlm]);
        check(&[AfterTool, AfterLlm, BeforeLlm], true, &[BeforeTool]);
        check(&[ApproveTool], true, &[]);
        check(&[BeforeLlm, AfterTool], false, &[]);
    }

    fn on_failure(word: &str, named: &[CheckpointKind]) -> Result<Vec<OnFailure>, String> {
        let named = NamedStages::new(named.to_vec(), true);
        let mut policy = StagePolicy::new(Defaults::default());
        let problems = policy.read_on_failure(Some(&PerStage::All(word.into())), Some(&named));
        match problems.first() {
            Some(problem) => Err(problem.to_string()),
            None => Ok(named.named.iter().map(|kind| policy.stage(*kind, false).on_failure).collect()),
        }
    }

    #[test]
    fn a_bare_on_failure_applies_where_it_is_allowed() {
        use OnFailure::{AbortTurn, Close, Continue};
        let all = [BeforeLlm, BeforeTool, ApproveTool, AfterTool];
        assert_eq!(on_failure("continue", &all), Ok(vec![Continue, Continue, Close, Continue]));
        assert_eq!(on_failure("deny", &all), Ok(vec![Continue, Close, Close, Continue]));
        assert_eq!(on_failure("abort_turn", &all), Ok(vec![AbortTurn, Close, Close, AbortTurn]));
        assert_eq!(on_failure("deny", &[ApproveTool]), Ok(vec![Close]));
        assert_eq!(on_failure("continue", &[ApproveTool]), Err(ALWAYS_REFUSES.into()));
        assert_eq!(on_failure("deny", &[BeforeLlm]), Err("unsupported on_failure \"deny\"".into()));
        assert_eq!(
            on_failure("contine", &all),
            Err("unsupported on_failure \"contine\"; did you mean \"continue\"?".into())
        );
    }

    #[test]
    fn limits_have_two_ends() {
        assert_eq!(millis(5), Ok(Duration::from_millis(5)));
        assert_eq!(millis(0), Err("must be greater than 0".into()));
        assert_eq!(millis(i64::MIN), Err("must be greater than 0".into()));
        assert_eq!(millis(i64::MAX), Err("must be at most 604800000".into()));
        assert_eq!(frame_bytes(1_048_575), Err("must be at least 1048576".into()));
        assert_eq!(frame_bytes(1_048_576), Ok(1_048_576));
        assert_eq!(frame_bytes(i64::MAX), Err("must be at most 1073741824".into()));
    }
}
