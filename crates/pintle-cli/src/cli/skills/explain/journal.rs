//! A turn that was worked: found in the journals of sessions.

use pintle_agent::driver::rehearsal::{CallPurpose, ModelCall, RecordedTurn};
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::{SessionId, TurnId};
use pintle_domain::session::JournalEntry;
use pintle_domain::store::{RecordQuery, SessionKey, SessionRow, SessionStore, StoreError, TenantScope};
use pintle_domain::turn::Fact;
use pintle_store::Store;

use crate::clean::prose;
use crate::cli::session::tenant;
use crate::error::CliError;

/// Among how many of the newest events the rewriters of a turn's requests are looked for: some days of one person's work.
const MAX_EVENTS: usize = 5000;

/// Most turns that are named where several may be meant.
const MAX_CANDIDATES: usize = 3;

/// A turn and its session.
pub(super) struct FoundTurn {
    pub(super) row: SessionRow,
    pub(super) recorded: RecordedTurn,
}

/// The turn whose id is `id` or begins with it; without it the newest one that is no sub-agent's. With `agent` only
/// turns of that agent count.
pub(super) fn find(store: &dyn SessionStore, id: Option<&str>, agent: Option<&str>) -> Result<FoundTurn, CliError> {
    let rows = store.sessions(&tenant()).map_err(failed)?;
    let rows = rows.into_iter().filter(|row| agent.is_none_or(|agent| row.agent_id == agent));
    match id {
        None => newest(store, rows.filter(|row| row.parent.is_none()), agent),
        Some("") => Err(CliError::usage("TURN_ID is empty").hint("`pintle why` shows the id of the newest turn")),
        Some(id) => named(store, rows, id),
    }
}

fn newest(
    store: &dyn SessionStore,
    rows: impl Iterator<Item = SessionRow>,
    agent: Option<&str>,
) -> Result<FoundTurn, CliError> {
    for row in rows {
        let entries = journal(store, &row)?;
        let last = turns(&entries).last().cloned();
        if let Some(recorded) = last.and_then(|turn| RecordedTurn::find(entries, &turn)) {
            return Ok(FoundTurn { row, recorded });
        }
    }
    let of = agent.map(|agent| format!(" of the agent `{agent}`")).unwrap_or_default();
    Err(CliError::failed(format!("there is no record of any turn{of}")).hint("start one: `pintle run \"hello\"`"))
}

fn named(store: &dyn SessionStore, rows: impl Iterator<Item = SessionRow>, id: &str) -> Result<FoundTurn, CliError> {
    let mut found: Vec<(SessionRow, TurnId)> = Vec::new();
    for row in rows {
        let entries = journal(store, &row)?;
        let exact = turns(&entries).find(|turn| turn.as_str() == id).cloned();
        if let Some(turn) = exact {
            found = vec![(row, turn)];
            break;
        }
        found.extend(
            turns(&entries).filter(|turn| turn.as_str().starts_with(id)).map(|turn| (row.clone(), turn.clone())),
        );
    }
    if found.len() > 1 {
        let error = CliError::usage(format!("`{id}` is ambiguous: {} turns begin with it", found.len()));
        let candidate = |(row, turn): &(SessionRow, TurnId)| format!("{turn}  session {}", row.session_id);
        return Err(found.iter().take(MAX_CANDIDATES).fold(error, |error, one| error.hint(candidate(one))));
    }
    let recorded = match found.pop() {
        Some((row, turn)) => {
            RecordedTurn::find(journal(store, &row)?, &turn).map(|recorded| FoundTurn { row, recorded })
        }
        None => None,
    };
    recorded.ok_or_else(|| {
        CliError::usage(format!("there is no record of a turn `{id}`"))
            .hint("`pintle why` shows the id of the newest turn, --last explains it")
    })
}

fn turns(entries: &[JournalEntry]) -> impl Iterator<Item = &TurnId> {
    entries.iter().filter_map(|entry| match entry {
        JournalEntry::Turn(Fact::Begun { turn_id, .. }) => Some(turn_id),
        JournalEntry::Opened { .. } | JournalEntry::Closed { .. } | JournalEntry::Kept(_) | JournalEntry::Turn(_) => {
            None
        }
    })
}

fn journal(store: &dyn SessionStore, row: &SessionRow) -> Result<Vec<JournalEntry>, CliError> {
    let session = SessionId::from(row.session_id.as_str());
    store.journal(&SessionKey { tenant: tenant(), session }).map_err(failed)
}

/// Notes in the calls of the turn `turn` which hooks changed their requests, as far as that is in the record.
pub(super) fn note_rewriters(store: &dyn Store, turn: &str, calls: &mut [ModelCall]) -> Result<(), CliError> {
    let query = RecordQuery { limit: MAX_EVENTS, ..RecordQuery::of(TenantScope::All) };
    let events = store.find(&query).map_err(failed)?;
    let asked = events.iter().filter(|event| event.turn_id == turn && event.event == CheckpointKind::BeforeLlm.name());
    for event in asked {
        let round = event.iteration;
        let Some(call) =
            calls.iter_mut().find(|call| call.round == round && (call.aim == CallPurpose::Plan) == (round == 0))
        else {
            continue;
        };
        for hook in event.hooks.iter().filter(|hook| hook.change.is_some()) {
            let note = format!("`{}` changed this request: `pintle why {}` shows how", hook.hook, event.event_id);
            call.notes.push(note);
        }
    }
    Ok(())
}

fn failed(error: StoreError) -> CliError {
    CliError::failed(prose(&error.to_string()))
}
