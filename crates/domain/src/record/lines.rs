//! The lines of one event, those of hooks that were passed over written out only when somebody reads them.
//!
//! Most hooks of an event are passed over, by the dozen, on the way of a call that waits. Of each of them a byte and
//! a number say everything, together with the roster that they stand in; a whole line would be more work than to find
//! out that the hook is not about the call.

use std::borrow::Cow;
use std::sync::Arc;

use super::{HookOutcome, NotRun, Record};
use crate::checkpoint::CheckpointKind;
use crate::hook::Hook;
use crate::roster::Roster;

/// One line for every hook that is registered for an event, in running order.
#[derive(Clone, Debug, Default)]
pub struct RecordLines(Vec<Line>);

#[derive(Clone, Debug)]
enum Line {
    Whole(Record),
    Over(PassedOver),
}

/// Hooks that did not run, one behind the other in running order.
#[derive(Clone, Debug)]
pub struct PassedOver {
    roster: Arc<Roster>,
    checkpoint: CheckpointKind,
    /// The value that matchers were compared with.
    value: Arc<str>,
    again: bool,
    /// The numbers of the hooks in the roster, and why each did not run.
    hooks: Vec<(usize, Why)>,
}

/// Why a hook was passed over, as far as hook and event do not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Disabled,
    Untrusted,
    OutOfScope,
    Matcher,
    Condition,
}

impl Why {
    /// This reason with everything that is known of `hook`, whose matcher was compared with `value`.
    pub(crate) fn of(self, hook: &Hook, value: &Arc<str>) -> NotRun {
        let condition = || hook.stored.as_ref().and_then(|stored| stored.condition.as_ref());
        match self {
            Self::Disabled => NotRun::Disabled,
            Self::Untrusted => NotRun::Untrusted,
            Self::OutOfScope => NotRun::OutOfScope,
            Self::Matcher => NotRun::Matcher {
                pattern: hook.matcher.as_ref().map_or_else(|| "".into(), |matcher| matcher.shared_pattern()),
                value: value.clone(),
            },
            Self::Condition => {
                NotRun::Condition { text: condition().map_or_else(|| "".into(), |condition| condition.text().clone()) }
            }
        }
    }
}

impl PassedOver {
    /// Nobody of `roster` yet, at `checkpoint`.
    pub(crate) fn new(roster: Arc<Roster>, checkpoint: CheckpointKind, value: Arc<str>) -> Self {
        Self { roster, checkpoint, value, again: false, hooks: Vec::new() }
    }

    /// These hooks of the roster.
    pub(crate) fn with(self, hooks: Vec<(usize, Why)>) -> Self {
        Self { hooks, ..self }
    }

    fn line(&self, (number, why): (usize, Why)) -> Record {
        let hook = self.roster.hook(number);
        let outcome = HookOutcome::NotRun(why.of(hook, &self.value));
        Record { again: self.again, ..Record::of(hook, self.checkpoint, outcome) }
    }
}

impl Line {
    fn checkpoint(&self) -> CheckpointKind {
        match self {
            Self::Whole(record) => record.checkpoint,
            Self::Over(over) => over.checkpoint,
        }
    }

    fn is_again(&self) -> bool {
        match self {
            Self::Whole(record) => record.again,
            Self::Over(over) => over.again,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Whole(_) => 1,
            Self::Over(over) => over.hooks.len(),
        }
    }
}

impl RecordLines {
    /// No lines, with room for some.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a line.
    pub fn push(&mut self, record: Record) {
        self.0.push(Line::Whole(record));
    }

    /// Adds the lines of hooks that did not run.
    pub(crate) fn pass_over(&mut self, over: PassedOver) {
        if !over.hooks.is_empty() {
            self.0.push(Line::Over(over));
        }
    }

    /// Adds other lines behind these.
    pub fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The number of lines.
    pub fn len(&self) -> usize {
        self.0.iter().map(Line::len).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, each written out.
    pub fn iter(&self) -> RecordLinesIter<'_> {
        RecordLinesIter { lines: self.0.iter(), over: None }
    }

    /// All of them, each written out, to be kept.
    pub fn to_vec(&self) -> Vec<Record> {
        self.iter().map(Cow::into_owned).collect()
    }

    /// Those that are kept whole. Every hook that was asked or told is among them; of those that were not, only some.
    pub fn whole(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.0.iter().filter_map(|line| match line {
            Line::Whole(record) => Some(record),
            Line::Over(_) => None,
        })
    }

    /// The lines as whole records, to be changed.
    pub fn whole_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Record> {
        self.0.iter_mut().filter_map(|line| match line {
            Line::Whole(record) => Some(record),
            Line::Over(_) => None,
        })
    }

    /// The number of hooks that had their turn at `checkpoint`, those that were asked again counted once.
    pub(crate) fn reached(&self, checkpoint: CheckpointKind) -> usize {
        let own = self.0.iter().filter(|line| line.checkpoint() == checkpoint && !line.is_again());
        own.map(Line::len).sum()
    }

    /// Whether any is of `checkpoint`.
    pub(crate) fn has(&self, checkpoint: CheckpointKind) -> bool {
        self.0.iter().any(|line| line.checkpoint() == checkpoint)
    }

    /// These lines as those of another time that the hooks were asked.
    pub(crate) fn again(mut self) -> Self {
        for line in &mut self.0 {
            match line {
                Line::Whole(record) => record.again = true,
                Line::Over(over) => over.again = true,
            }
        }
        self
    }

    /// Takes those of `checkpoint` out.
    pub(crate) fn take(&mut self, checkpoint: CheckpointKind) -> Self {
        let (own, others) = std::mem::take(&mut self.0).into_iter().partition(|line| line.checkpoint() == checkpoint);
        self.0 = others;
        Self(own)
    }
}

/// Goes through [`RecordLines`].
#[derive(Debug)]
pub struct RecordLinesIter<'a> {
    lines: std::slice::Iter<'a, Line>,
    /// The hooks passed over whose lines are being written out.
    over: Option<(&'a PassedOver, std::slice::Iter<'a, (usize, Why)>)>,
}

impl<'a> Iterator for RecordLinesIter<'a> {
    type Item = Cow<'a, Record>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((over, hooks)) = &mut self.over {
                match hooks.next() {
                    Some(hook) => return Some(Cow::Owned(over.line(*hook))),
                    None => self.over = None,
                }
            }
            match self.lines.next()? {
                Line::Whole(record) => return Some(Cow::Borrowed(record)),
                Line::Over(over) => self.over = Some((over, over.hooks.iter())),
            }
        }
    }
}

impl<'a> IntoIterator for &'a RecordLines {
    type Item = Cow<'a, Record>;
    type IntoIter = RecordLinesIter<'a>;

    fn into_iter(self) -> RecordLinesIter<'a> {
        self.iter()
    }
}

impl From<Vec<Record>> for RecordLines {
    fn from(records: Vec<Record>) -> Self {
        records.into_iter().collect()
    }
}

impl FromIterator<Record> for RecordLines {
    fn from_iter<I: IntoIterator<Item = Record>>(records: I) -> Self {
        Self(records.into_iter().map(Line::Whole).collect())
    }
}
