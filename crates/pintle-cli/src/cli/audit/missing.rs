//! Events that decisions of the chain name and that the store has no more.
//!
//! A decision and its event are written in one transaction, and events are forgotten from the oldest on. So one that is
//! gone though an older one is still there was taken by somebody else, as long as it is younger than the term: with a
//! shorter term of before, the oldest one that is left would be younger than it.

use std::borrow::Cow;

use jiff::Timestamp;
use pintle_domain::audit::{AuditEntry, AuditKind};
use pintle_domain::id::EventId;
use pintle_domain::store::StoreError;
use pintle_store::Store;
use serde::Deserialize;

use crate::text::counted;

/// Events that are asked about at once: as many as a statement takes without trouble.
const AT_ONCE: usize = 500;

/// Turns that are named, each on a line: whoever deleted more meant all of them.
const MAX_NAMED: usize = 20;

/// What the body of a decision says of its event.
#[derive(Deserialize)]
struct DecisionBody<'a> {
    #[serde(borrow)]
    data: DecisionData<'a>,
}

#[derive(Deserialize)]
struct DecisionData<'a> {
    #[serde(borrow)]
    event_id: Cow<'a, str>,
    #[serde(borrow)]
    turn_id: Cow<'a, str>,
}

/// Collects what decisions name, and asks for it.
pub(super) struct MissingEvents<'a> {
    store: &'a dyn Store,
    /// What is older may have been forgotten.
    young: Timestamp,
    told: Vec<(EventId, Timestamp)>,
    /// The turns of those.
    turns: Vec<String>,
    /// How many are gone of each turn, in the order of the chain.
    gone: Vec<(String, usize)>,
}

impl<'a> MissingEvents<'a> {
    pub(super) fn new(store: &'a dyn Store, young: Timestamp) -> Self {
        Self { store, young, told: Vec::new(), turns: Vec::new(), gone: Vec::new() }
    }

    /// Takes note of what `entry` names.
    pub(super) fn note(&mut self, entry: &AuditEntry) -> Result<(), StoreError> {
        if entry.kind != AuditKind::Decision || entry.at < self.young {
            return Ok(());
        }
        // A body that says something else is told of as one that was altered.
        let Ok(DecisionBody { data }) = serde_json::from_str::<DecisionBody<'_>>(&entry.body) else { return Ok(()) };
        self.told.push((EventId::from(&*data.event_id), entry.at));
        self.turns.push(data.turn_id.into_owned());
        if self.told.len() < AT_ONCE { Ok(()) } else { self.ask() }
    }

    fn ask(&mut self) -> Result<(), StoreError> {
        let missing = self.store.missing_events(&self.told)?;
        let turns = std::mem::take(&mut self.turns);
        for ((event, _), turn) in std::mem::take(&mut self.told).into_iter().zip(turns) {
            if !missing.contains(&event) {
                continue;
            }
            match self.gone.iter_mut().find(|(known, _)| *known == turn) {
                Some((_, events)) => *events += 1,
                None => self.gone.push((turn, 1)),
            }
        }
        Ok(())
    }

    /// A line for each turn of which something is gone.
    pub(super) fn lines(mut self) -> Result<Vec<String>, StoreError> {
        self.ask()?;
        let line = |(turn, events): &(String, usize)| {
            format!(
                "turn {turn}: {} of its calls gone from the store, and retention did not take them: older ones are still \
                 there; what they decided stands in the chain",
                counted(*events, "event")
            )
        };
        let mut lines: Vec<String> = self.gone.iter().take(MAX_NAMED).map(line).collect();
        if let Some(more) = self.gone.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
            lines.push(format!("and so of {}", counted(more, "more turn")));
        }
        Ok(lines)
    }
}
