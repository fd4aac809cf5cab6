//! Where checkpoints and their hooks stand in time.
//!
//! An event is recorded when its ruling is there, with how long each hook took; hooks of one chain run one after another.
//! So their beginnings follow, backwards from the record.

use pintle_domain::store::{StoredEvent, StoredRecord};

/// A checkpoint and its hooks in time, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Placed {
    pub(super) start: f64,
    pub(super) end: f64,
    /// When each of its hooks began, if it ran.
    pub(super) hooks: Vec<Option<f64>>,
}

/// The checkpoints that are cleared together, and recorded at the end of all of them.
const CLEARING: [&str; 3] = ["before_tool", "pre_tool_use", "approve_tool"];

/// The moment `at` in milliseconds; the beginning of time where nobody can read it.
pub(super) fn moment(at: &str) -> f64 {
    at.parse::<jiff::Timestamp>().map_or(0.0, millis)
}

/// The milliseconds of `at`, with fractions.
pub(super) fn millis(at: jiff::Timestamp) -> f64 {
    at.as_microsecond() as f64 / 1000.0
}

/// Whether the chain waited for `hook`.
fn waited(hook: &StoredRecord) -> Option<f64> {
    // What is only told keeps nobody waiting.
    let took = hook.duration_ms.filter(|_| hook.ran && (hook.verdict.is_some() || hook.fault.is_some()))?;
    Some(took + hook.slot_wait_ms.unwrap_or_default())
}

fn chain(event: &StoredEvent) -> f64 {
    event.hooks.iter().filter_map(waited).sum()
}

/// Whether `next` was cleared together with `event`.
fn are_cleared_together(event: &StoredEvent, next: &StoredEvent) -> bool {
    let place = |event: &StoredEvent| CLEARING.iter().position(|name| *name == event.event);
    event.tool_call_id.is_some()
        && event.tool_call_id == next.tool_call_id
        && place(event).zip(place(next)).is_some_and(|(first, then)| first < then)
}

/// Where each of `events`, in the order of their records, stands.
pub(super) fn place(events: &[StoredEvent]) -> Vec<Placed> {
    let mut placed = Vec::with_capacity(events.len());
    for group in events.chunk_by(are_cleared_together) {
        let mut end = group.last().map_or(0.0, |last| moment(&last.at));
        let mut backwards: Vec<Placed> = group
            .iter()
            .rev()
            .map(|event| {
                let start = end - chain(event);
                let one = one(event, start, end);
                end = start;
                one
            })
            .collect();
        backwards.reverse();
        placed.extend(backwards);
    }
    placed
}

fn one(event: &StoredEvent, start: f64, end: f64) -> Placed {
    let mut now = start;
    let hooks = event.hooks.iter().map(|hook| {
        let began = hook.ran.then_some(if waited(hook).is_some() { now } else { end });
        let began = began.map(|began| began + hook.slot_wait_ms.unwrap_or_default());
        now += waited(hook).unwrap_or_default();
        began
    });
    Placed { hooks: hooks.collect(), start, end }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, call: Option<&str>, at: &str, hooks: &[(bool, Option<f64>)]) -> StoredEvent {
        let hook = |(ran, took): &(bool, Option<f64>)| StoredRecord {
            ran: *ran,
            duration_ms: *took,
            verdict: took.map(|_| "continue".to_owned()),
            ..StoredRecord::default()
        };
        StoredEvent {
            event_id: name.into(),
            at: format!("2026-11-25T10:00:0{at}Z"),
            event: name.into(),
            checkpoint: name.into(),
            tenant_id: String::new(),
            agent_id: String::new(),
            session_id: String::new(),
            turn_id: String::new(),
            iteration: 1,
            tool_call_id: call.map(str::to_owned),
            tool: None,
            is_test: false,
            ruling: "continue".into(),
            text: None,
            permit: None,
            substituted: false,
            call: None,
            hooks: hooks.iter().map(hook).collect(),
        }
    }

    #[test]
    fn hooks_stand_one_after_another_before_their_record() {
        let events = [
            event("before_llm", None, "1", &[(true, Some(100.0)), (false, None), (true, Some(50.0))]),
            event("before_tool", Some("a"), "3", &[(true, Some(200.0))]),
            event("pre_tool_use", Some("a"), "3", &[(true, Some(300.0)), (true, None)]),
            event("before_tool", Some("b"), "3", &[]),
        ];
        let origin = moment("2026-11-25T10:00:00Z");
        let shown: Vec<(f64, f64, Vec<Option<f64>>)> = place(&events)
            .into_iter()
            .map(|it| {
                (it.start - origin, it.end - origin, it.hooks.iter().map(|at| at.map(|at| at - origin)).collect())
            })
            .collect();
        assert_eq!(
            shown,
            [
                (850.0, 1000.0, vec![Some(850.0), None, Some(950.0)]),
                (2500.0, 2700.0, vec![Some(2500.0)]),
                (2700.0, 3000.0, vec![Some(2700.0), Some(3000.0)]),
                (3000.0, 3000.0, vec![]),
            ]
        );
    }
}
