//! Turns, page by page, as values.

use pintle_domain::record::EventRecord;
use pintle_domain::store::{SessionKey, StoredEvent, TurnOutcome, TurnPage, TurnQuery, TurnRow, WhichTurns};

use super::history::{History, is_one_turn};

impl History {
    /// The page that `query` asks for; `prompt` says how the prompt of a turn begins.
    pub(super) fn turn_page(
        &self,
        query: &TurnQuery,
        prompt: impl Fn(&SessionKey, &str) -> Option<String>,
    ) -> TurnPage {
        let all = self.turns(query.tenant.one(), query.since, usize::MAX, prompt);
        let mut rows: Vec<TurnRow> = Vec::new();
        for turn in all {
            let is_it = |event: &&EventRecord| {
                !event.who.is_test
                    && (event.who.turn_id.as_str(), event.who.session_id.as_str(), event.who.agent_id.as_str())
                        == (&*turn.turn_id, &*turn.session_id, &*turn.agent_id)
                    && event.who.tenant_id.as_str() == turn.tenant_id
            };
            let Some(first) = self.events.iter().find(is_it) else { continue };
            let place = i64::try_from(first.at.as_nanosecond()).unwrap_or(i64::MAX);
            if query.until.is_some_and(|until| first.at >= until) {
                continue;
            }
            let own = self.events.iter().filter(|event| is_one_turn(&event.who, &first.who));
            let events: Vec<StoredEvent> = own.map(StoredEvent::from).collect();
            let mut row =
                TurnRow { place, turn, ended: None, status: None, error: None, reason: None, asked: 0, faults: 0 };
            tell_end(&mut row, &events);
            if is_wanted(query, &row, &events) {
                rows.push(row);
            }
        }
        if matches!(query.which, Some(WhichTurns::Below { .. })) {
            rows.reverse();
        }
        let next = (rows.len() > query.limit).then(|| rows.get(query.limit.saturating_sub(1)).map(|row| row.place));
        rows.truncate(query.limit);
        TurnPage { turns: rows, next: next.flatten() }
    }
}

fn has_failed(event: &StoredEvent) -> bool {
    event.hooks.iter().any(|hook| hook.fault.is_some())
}

fn stops(event: &StoredEvent) -> bool {
    ["ask", "deny", "abort_turn", "hard_abort"].contains(&event.ruling.as_str())
}

/// Adds to `row` what its events say of its end.
fn tell_end(row: &mut TurnRow, events: &[StoredEvent]) {
    let mut asked: Vec<&str> =
        events.iter().filter(|event| event.ruling == "ask").filter_map(|event| event.tool_call_id.as_deref()).collect();
    asked.sort_unstable();
    asked.dedup();
    row.asked = asked.len() as u64;
    row.faults = events.iter().filter(|event| has_failed(event)).count() as u64;
    for event in events {
        if stops(event) {
            row.reason = event.text.clone().or_else(|| row.reason.take());
        }
        match event.event.as_str() {
            "turn_end" => (row.ended, row.status) = (Some(event.at.clone()), event.text.clone()),
            "error" => row.error = event.text.clone().or_else(|| row.error.take()),
            _ => {}
        }
    }
    if row.ended.is_some() && row.status.is_none() {
        row.error = None;
    }
}

fn is_wanted(query: &TurnQuery, row: &TurnRow, events: &[StoredEvent]) -> bool {
    let session = row.turn.session_id.as_str();
    let which = match &query.which {
        None => true,
        Some(WhichTurns::Turn(id)) => row.turn.turn_id == *id,
        Some(WhichTurns::Session(wanted)) => session == wanted,
        Some(WhichTurns::Part(part)) => session.contains(part.as_str()),
        Some(WhichTurns::Below { session: above, from }) => {
            row.place > *from && session.strip_prefix(above.as_str()).is_some_and(|rest| rest.starts_with('/'))
        }
    };
    let stopped = events.iter().any(stops);
    let came_to = match query.came_to {
        None => true,
        Some(TurnOutcome::Allowed) => !stopped && row.faults == 0,
        Some(TurnOutcome::Blocked) => events.iter().any(|event| stops(event) && event.ruling != "ask"),
        Some(TurnOutcome::Asked) => events.iter().any(|event| event.ruling == "ask"),
        Some(TurnOutcome::Faulted) => row.faults > 0,
    };
    let says = |words: &String| {
        let words = words.to_lowercase();
        let has = |text: Option<&String>| text.is_some_and(|text| text.to_lowercase().contains(&words));
        events.iter().any(|event| {
            has(event.text.as_ref()) || event.hooks.iter().any(|hook| hook.ran && has(hook.reason.as_ref()))
        })
    };
    which
        && came_to
        && query.after.is_none_or(|after| row.place < after)
        && query.agent.as_ref().is_none_or(|agent| row.turn.agent_id == *agent)
        && query.tool.as_ref().is_none_or(|tool| events.iter().any(|event| event.tool.as_ref() == Some(tool)))
        && query
            .hook
            .as_ref()
            .is_none_or(|hook| events.iter().any(|event| event.hooks.iter().any(|line| line.hook == *hook)))
        && query.words.as_ref().is_none_or(says)
}
