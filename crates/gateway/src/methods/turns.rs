//! `turns.*`: which turns there were, and what happened in one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use pintle_agent::AgentSettings;
use pintle_agent::driver::rehearsal::{RecordedTurn, Rehearsal};
use pintle_domain::id::{SessionId, TenantId, TurnId};
use pintle_domain::json::{Value, json};
use pintle_domain::skill::Skills;
use pintle_domain::store::{
    ExecutionQuery, RecordQuery, SessionKey, SessionRow, TenantScope, TurnOutcome, TurnQuery, TurnRow, WhichTurns,
};
use sha2::{Digest as _, Sha256};

use super::sessions::session;
use crate::Shared;
use crate::error::{ApiError, ErrorCode};
use crate::model_doors::ModelPrices;
use crate::params::Params;
use crate::principal::Principal;
use crate::roles;
use crate::session_name::own_part;
use crate::turns::{Kept, TurnEnding, handed_over, handed_to, line, may_see, parent_of, seen, spent, waterfall};

/// Turns in a page unless it is said, and most of them.
const PAGE: usize = 50;
const MAX_PAGE: usize = 200;

/// Most events of one turn that are shown, the newest.
const MAX_EVENTS: usize = 2000;

/// Most entries of the journal that are read of one turn.
const MAX_ENTRIES: usize = 4000;

/// Most executions that are read of one turn.
const MAX_EXECUTIONS: usize = 2000;

/// Most turns of sub-agents that are shown with one turn.
const MAX_SUB_TURNS: usize = 50;

/// What stands for the model of an agent that is gone.
const UNKNOWN_MODEL: &str = "unknown/unknown";

/// How much earlier than its turn an execution is looked for: stores keep whole microseconds.
const SLACK: SignedDuration = SignedDuration::from_millis(1);

/// What hooks say behind the end of a turn comes within this.
const AFTERWARDS: SignedDuration = SignedDuration::from_mins(10);

/// Where a page ended, for whoever asked for it.
fn cursor(bound: &str, place: i64) -> String {
    URL_SAFE_NO_PAD.encode(format!("1|{bound}|{place}"))
}

/// The place in a cursor that was given for the same question.
fn place_in(cursor: &str, bound: &str) -> Result<i64, ApiError> {
    let bad = || ApiError::invalid("invalid cursor");
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| bad())?;
    let text = String::from_utf8(bytes).map_err(|_| bad())?;
    let rest = text.strip_prefix("1|").and_then(|text| text.strip_prefix(bound)).ok_or_else(bad)?;
    rest.strip_prefix('|').and_then(|place| place.parse().ok()).ok_or_else(bad)
}

impl Shared {
    pub(super) async fn turns_list(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let names = [
            "agentId",
            "sessionKey",
            "tool",
            "decision",
            "hook",
            "text",
            "since",
            "until",
            "allTenants",
            "tenantId",
            "limit",
            "cursor",
        ];
        let params = Params::of(params, &names)?;
        let text = |name: &str| Ok::<_, ApiError>(params.text(name)?.map(str::to_owned));
        let which = match params.text("sessionKey")? {
            Some(key) => Some(WhichTurns::Session(session(key, who)?.id().to_string())),
            None => (!who.sees_others()).then(|| WhichTurns::Part(own_part(&who.user))),
        };
        let query = TurnQuery {
            tenant: roles::looks_in(who, &params)?,
            agent: text("agentId")?,
            which,
            tool: text("tool")?,
            hook: text("hook")?,
            came_to: params.word("decision", TurnOutcome::named)?,
            words: text("text")?,
            since: params.moment("since")?,
            until: params.moment("until")?,
            after: None,
            limit: params.count("limit", MAX_PAGE)?.filter(|limit| *limit > 0).unwrap_or(PAGE),
        };
        let bound = URL_SAFE_NO_PAD.encode(Sha256::digest(format!("{}|{}|{query:?}", who.user, who.role.word())));
        let after = params.text("cursor")?.map(|cursor| place_in(cursor, &bound)).transpose()?;
        let who = who.clone();
        self.blocking(move |shared| {
            let mut page = shared.store.turn_page(&TurnQuery { after, ..query })?;
            page.turns.retain(|row| may_see(&who, &row.turn.session_id));
            let sessions = shared.sessions_of_open(&page.turns)?;
            let turns: Vec<Value> = page.turns.iter().map(|row| line(row, ending(row, &sessions), &who)).collect();
            let next = page.next.map(|place| cursor(&bound, place)).unwrap_or_default();
            Ok(json!({ "turns": turns, "nextCursor": next }))
        })
        .await
    }

    pub(super) async fn turns_get(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["turnId"])?;
        let (id, who) = (params.needed("turnId")?.to_lowercase(), who.clone());
        self.blocking(move |shared| {
            let row = shared.turn_row(&who, &id)?;
            let who = who.looking_at(&row.turn.tenant_id);
            let below = shared.sub_turns(&who, &row)?;
            let above = shared.turn_above(&who, &row)?;
            let all: Vec<TurnRow> = std::iter::once(row).chain(below).collect();
            let sessions = shared.sessions_of_open(&all)?;
            let prices = ModelPrices::of(&shared.host.blocking_read().loaded.config);
            let mut shown: Vec<Detail> = Vec::new();
            for row in &all {
                shown.push(shared.detail(&who, row, &sessions, &prices)?);
            }
            shown[0].shown["parentTurnId"] = json!(above);
            Ok(nested(&all, shown))
        })
        .await
    }

    pub(super) async fn turns_seen(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["turnId", "round"])?;
        let id = params.needed("turnId")?.to_lowercase();
        let round = params.count("round", u32::MAX as usize)?;
        let round = round.ok_or_else(|| ApiError::invalid("round is required"))?;
        let round = u32::try_from(round).unwrap_or(u32::MAX);
        let (reader, wanted) = (who.clone(), id.clone());
        let row = self.blocking(move |shared| shared.turn_row(&reader, &wanted)).await?;
        let tenant = TenantId::from(row.turn.tenant_id.as_str());
        let key = SessionKey { tenant: tenant.clone(), session: SessionId::new(row.turn.session_id.clone()) };
        // The system text and the tools are those of now; of an agent that is gone there are none.
        let agent = self.ready(&key, &row.turn.agent_id, None).await.ok();
        self.blocking(move |shared| {
            let gone = AgentSettings::new(&row.turn.agent_id, UNKNOWN_MODEL);
            let settings = agent.as_ref().map_or(&gone, |agent| agent.settings());
            let offered = agent.iter().flat_map(|agent| agent.tools().definitions()).cloned().collect();
            let nowhere = || ApiError::new(ErrorCode::NotFound, format!("round {round} of turn {id} is not kept"));
            let recorded = RecordedTurn::find(shared.sessions.journal(&key)?, &TurnId::new(id.clone()));
            let recorded = recorded.ok_or_else(nowhere)?;
            let went = Rehearsal::new(settings, offered, Skills::none()).replay(&recorded);
            let query =
                RecordQuery { turn: Some(id.clone()), limit: MAX_EVENTS, ..RecordQuery::of(TenantScope::One(tenant)) };
            let mut events = shared.store.find(&query)?;
            events.retain(|event| event.turn_id == id);
            let call = seen(&went, round, &events).ok_or_else(nowhere)?;
            Ok(json!({ "call": call }))
        })
        .await
    }

    /// The turn `id`, if `who` may see it. Blocks.
    pub(super) fn turn_row(&self, who: &Principal, id: &str) -> Result<TurnRow, ApiError> {
        let find = |tenant: TenantScope| -> Result<Option<TurnRow>, ApiError> {
            let which = Some(WhichTurns::Turn(id.to_owned()));
            let found = self.store.turn_page(&TurnQuery { which, limit: 1, ..TurnQuery::of(tenant) })?;
            Ok(found.turns.into_iter().next())
        };
        // Machines name the turns that they tell of: one of another tenant does not stand in for one's own.
        let found = match find(TenantScope::from(&who.tenant))? {
            None if who.is_owner() => find(roles::finds_in(who))?,
            own @ (Some(_) | None) => own,
        };
        let row = found.filter(|row| may_see(who, &row.turn.session_id));
        row.ok_or_else(|| ApiError::new(ErrorCode::NotFound, format!("turn not found: {id}")))
    }

    /// The turn that the one of `row` works for, where it is a sub-agent's: the last one that [`is_above`] it.
    fn turn_above(&self, who: &Principal, row: &TurnRow) -> Result<Option<String>, ApiError> {
        let Some((above, _)) = row.turn.session_id.rsplit_once('/') else { return Ok(None) };
        let query = TurnQuery {
            which: Some(WhichTurns::Session(above.to_owned())),
            // Up to that very moment, where two began at once.
            until: began(row).and_then(|at| at.checked_add(SignedDuration::from_nanos(1)).ok()),
            after: Some(row.place),
            limit: 1,
            ..TurnQuery::of(TenantScope::from(&who.tenant))
        };
        let found = self.store.turn_page(&query)?.turns.pop();
        Ok(found.filter(|found| is_above(found, row)).map(|found| found.turn.turn_id))
    }

    /// The turns of sub-agents that worked for the turn of `row`, theirs included.
    fn sub_turns(&self, who: &Principal, row: &TurnRow) -> Result<Vec<TurnRow>, ApiError> {
        let below = WhichTurns::Below { session: row.turn.session_id.clone(), from: row.place };
        // What begins behind the end of a turn works for a later one.
        let until = row.ended.as_deref().and_then(|at| at.parse::<Timestamp>().ok());
        let query = TurnQuery {
            which: Some(below),
            until,
            limit: MAX_SUB_TURNS,
            ..TurnQuery::of(TenantScope::from(&who.tenant))
        };
        Ok(self.store.turn_page(&query)?.turns)
    }

    /// The sessions of the tenants of those of `rows` whose end nobody saw.
    fn sessions_of_open(&self, rows: &[TurnRow]) -> Result<Sessions, ApiError> {
        let open = rows.iter().filter(|row| row.ended.is_none());
        let tenants: BTreeSet<&String> = open.map(|row| &row.turn.tenant_id).collect();
        let mut found = Sessions::new();
        for tenant in tenants {
            found.insert(tenant.clone(), self.sessions.sessions(&TenantId::from(tenant.as_str()))?);
        }
        Ok(found)
    }

    fn detail(
        &self,
        who: &Principal,
        row: &TurnRow,
        sessions: &Sessions,
        prices: &ModelPrices,
    ) -> Result<Detail, ApiError> {
        let turn = &row.turn;
        let mut events = self.store.find(&RecordQuery {
            turn: Some(turn.turn_id.clone()),
            limit: MAX_EVENTS + 1,
            ..RecordQuery::of(TenantScope::from(&who.tenant))
        })?;
        let truncated = events.len() > MAX_EVENTS;
        events.drain(..events.len().saturating_sub(MAX_EVENTS));
        events.retain(|event| event.turn_id == turn.turn_id && event.session_id == turn.session_id);
        let key = SessionKey { tenant: who.tenant.clone(), session: SessionId::new(turn.session_id.clone()) };
        let journal = self.sessions.turn_journal(&key, &TurnId::new(turn.turn_id.clone()), MAX_ENTRIES)?;
        let moment = |at: &String| at.parse::<Timestamp>().ok();
        let mut executions = self.store.executions(&ExecutionQuery {
            session: Some(turn.session_id.clone()),
            since: moment(&turn.began).and_then(|at| at.checked_sub(SLACK).ok()),
            until: row.ended.as_ref().and_then(moment).and_then(|at| at.checked_add(AFTERWARDS).ok()),
            limit: MAX_EXECUTIONS,
            ..ExecutionQuery::of(TenantScope::from(&who.tenant))
        })?;
        executions.retain(|it| it.turn_id.as_ref() == Some(&turn.turn_id));
        let whole = who.caller().is_master();
        let kept = Kept { events: &events, journal: &journal, executions: &executions, prices, whole };
        let (spans, took) = waterfall(&kept);
        let line = line(row, ending(row, sessions), who);
        let mut shown = json!({
            "turn": line,
            "parentTurnId": null,
            "parentSpanId": null,
            "durationMs": took,
            "spans": spans,
            "truncated": truncated,
        });
        if let Some(cost) = spent(&kept) {
            shown["costUsd"] = json!(cost);
        }
        Ok(Detail { shown, handed: handed_over(&journal), events })
    }
}

/// Sessions by their tenants.
type Sessions = BTreeMap<String, Vec<SessionRow>>;

/// How `row` stands, of whose sessions are those in `sessions` that are known.
fn ending(row: &TurnRow, sessions: &Sessions) -> TurnEnding {
    TurnEnding::of(row, sessions.get(&row.turn.tenant_id).map(Vec::as_slice).unwrap_or_default())
}

/// A turn as it is shown, its events, and its calls that began sub-agents.
struct Detail {
    shown: Value,
    events: Vec<pintle_domain::store::StoredEvent>,
    handed: Vec<(f64, String)>,
}

fn began(row: &TurnRow) -> Option<Timestamp> {
    row.turn.began.parse().ok()
}

/// Whether the turn of `below` may work for that of `row`: one of the session above, which stands before it and began no
/// later. Of several it works for the last.
fn is_above(row: &TurnRow, below: &TurnRow) -> bool {
    let above = below.turn.session_id.rsplit_once('/').map(|(above, _)| above);
    above == Some(row.turn.session_id.as_str()) && row.place < below.place && began(row) <= began(below)
}

/// `turns.get`: the first of `shown`, and the others with the turns that they work for.
fn nested(rows: &[TurnRow], shown: Vec<Detail>) -> Value {
    let mut shown = shown;
    let mut taken = vec![BTreeSet::new(); shown.len()];
    for at in 1..shown.len() {
        let turn = &rows[at].turn;
        let Some(parent) = rows[..at].iter().rposition(|row| is_above(row, &rows[at])) else { continue };
        let Detail { events, handed, .. } = &shown[parent];
        let span = parent_of(events, &turn.began).or_else(|| handed_to(handed, &turn.began, &taken[parent]));
        taken[parent].extend(span.clone());
        shown[at].shown["parentTurnId"] = json!(rows[parent].turn.turn_id);
        shown[at].shown["parentSpanId"] = json!(span);
    }
    let mut all = shown.into_iter().map(|detail| detail.shown);
    let turn = all.next().unwrap_or_default();
    json!({ "turn": turn, "subAgents": all.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_of_one_question() {
        let given = cursor("a", 7);
        assert_eq!(place_in(&given, "a"), Ok(7));
        for (text, bound) in [(given.as_str(), "b"), ("", "a"), ("!", "a"), (cursor("aa", 7).as_str(), "a")] {
            assert!(place_in(text, bound).is_err(), "{text} {bound}");
        }
    }
}
