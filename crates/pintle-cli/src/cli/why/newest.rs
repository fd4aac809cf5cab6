//! The newest turn, with those of its sub-agents: what was refused to them belongs to it.

use std::collections::BTreeMap;

use pintle_domain::store::{RecordQuery, SessionRow, SessionStore, StoredEvent, TenantScope};
use pintle_store::Store;

use super::chosen::of_tool;
use super::{MAX_EVENTS, find};
use crate::cli::session::tenant;
use crate::error::CliError;

/// The events of the newest turn, then those of each of its sub-agents' turns; those about `tool` if one is named.
pub(super) fn events(
    store: &dyn Store,
    sessions: &dyn SessionStore,
    tool: Option<&str>,
) -> Result<Vec<StoredEvent>, CliError> {
    let query = RecordQuery { last_turn: true, limit: MAX_EVENTS, ..RecordQuery::of(TenantScope::All) };
    let newest = find(store, &query)?;
    let Some(last) = newest.last() else {
        return Err(CliError::failed("there is no record of any turn").hint("start one: `pintle run \"hello\"`"));
    };
    let rows = sessions.sessions(&tenant()).map_err(|error| CliError::failed(error.to_string()))?;
    let parents = Parents::of(&rows);
    let whole = if parents.has_children(parents.top(&last.session_id)) {
        let all = find(store, &RecordQuery { limit: MAX_EVENTS, ..RecordQuery::of(TenantScope::All) })?;
        family(all, &parents, parents.top(&last.session_id)).unwrap_or(newest)
    } else {
        newest
    };
    of_tool(whole, tool)
}

/// Of `all`, in their order: the newest turn of the session `top`, and what its sub-agents did since that began. Turn
/// by turn, that of `top` first.
fn family(all: Vec<StoredEvent>, parents: &Parents<'_>, top: &str) -> Option<Vec<StoredEvent>> {
    let all: Vec<StoredEvent> = all.into_iter().filter(|event| !event.is_test).collect();
    let turn = all.iter().rev().find(|event| event.session_id == top)?.turn_id.clone();
    let began = all.iter().position(|event| event.turn_id == turn)?;
    let belongs = |event: &StoredEvent| match event.session_id == top {
        true => event.turn_id == turn,
        false => parents.top(&event.session_id) == top,
    };
    let mut found: Vec<StoredEvent> = all.into_iter().skip(began).filter(belongs).collect();
    let mut order = vec![turn];
    for event in &found {
        if !order.contains(&event.turn_id) {
            order.push(event.turn_id.clone());
        }
    }
    found.sort_by_key(|event| order.iter().position(|turn| *turn == event.turn_id));
    Some(found)
}

/// Which session works for which.
struct Parents<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Parents<'a> {
    fn of(rows: &'a [SessionRow]) -> Self {
        let works_for = |row: &'a SessionRow| Some((row.session_id.as_str(), row.parent.as_deref()?));
        Self(rows.iter().filter_map(works_for).collect())
    }

    /// The session at the top of those that `session` works for; itself, if it works for none.
    fn top<'s>(&self, session: &'s str) -> &'s str
    where
        'a: 's,
    {
        let mut top = session;
        // A session is younger than the one that it works for, so this ends; a file that somebody changed must not
        // keep it going.
        for _ in 0..=self.0.len() {
            match self.0.get(top) {
                Some(parent) => top = parent,
                None => break,
            }
        }
        top
    }

    fn has_children(&self, session: &str) -> bool {
        self.0.values().any(|parent| *parent == session)
    }
}
