//! Questions for persons, as rows. What becomes of them is decided in `domain`; this carries it out.

use pintle_domain::approval::{
    Approval, ApprovalFlaw, ApprovalKey, ApprovalStanding, ApprovalState, PersonAnswer, QuestionPlan, plan,
};
use pintle_domain::id::{TenantId, TurnId};
use pintle_domain::store::{ApprovalQuery, SessionKey, StoreError, TenantScope};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as WordError, StrDeserializer};

use super::audit::ChainGrowth;
use super::identity::other_key;
use crate::db::{Cell, Columns, Db, Exclusive, Failure, Statement, limit_of};
use crate::sealing::Proofs;
use crate::{body, refusal};

mod used;

const COLUMNS: &str = "id, state, answered_by, note, seal, body";

/// How many of the newest questions tell whose key sealed them: more than anybody alters of those that wait.
const COMPARED: usize = 200;

/// The question that somebody answers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked<'a> {
    /// The one of theirs whose id is or begins so.
    Named(&'a TenantScope, &'a str),
    /// The one that they were shown, if it still says the same.
    Shown(&'a Approval),
}

/// Brings `question` to where it stands.
pub(crate) fn ask(
    db: &dyn Db,
    proofs: &Proofs,
    question: Approval,
    now: jiff::Timestamp,
) -> Result<ApprovalStanding, Failure> {
    db.exclude(Exclusive::Approvals)?;
    let of_call = "WHERE tenant_id = ?1 AND session_id = ?2 AND turn_id = ?3 AND tool_call_id = ?4 ORDER BY seq";
    let mut earlier = select(
        (db, proofs),
        &format!("{of_call}{}", db.dialect().for_update()),
        &[
            question.tenant_id.as_str().into(),
            question.session_id.as_str().into(),
            question.turn_id.as_str().into(),
            question.tool_call_id.as_str().into(),
        ],
    )?;
    used::examine(db, proofs, &mut earlier, now)?;
    match plan(question, &earlier, now) {
        QuestionPlan::Stands(standing) => Ok(standing),
        QuestionPlan::Park { new, void } => {
            for id in &void {
                set_state(db, id, ApprovalState::Void)?;
            }
            insert(db, proofs, &new)?;
            Ok(ApprovalStanding::Waiting(new))
        }
    }
}

/// Answers a question, and seals what was said. A refusal stands in the chain from then on; a yes does as it is used.
pub(crate) fn answer(
    db: &dyn Db,
    proofs: &Proofs,
    asked: Asked<'_>,
    (said, now): (&PersonAnswer, jiff::Timestamp),
) -> Result<(Approval, Vec<ChainGrowth>), Failure> {
    db.exclude(Exclusive::Approvals)?;
    let mut approval = match asked {
        Asked::Named(of, id) => named((db, proofs), of, id)?,
        Asked::Shown(shown) => {
            let found = to_change((db, proofs), &TenantScope::from(&shown.tenant_id), &shown.id)?;
            let found = found.ok_or_else(|| Failure::Said(refusal::unknown(&shown.id)))?;
            if found.shown() != shown.shown() {
                return Err(Failure::Said(refusal::altered(&found.id)));
            }
            found
        }
    };
    approval.answer(said.clone(), now).map_err(|why| Failure::Said(refusal::unanswerable(&approval.id, &why)))?;
    // An answer may end sooner than the question.
    let ends_sooner = approval.usable_seconds.is_some();
    let body = if ends_sooner { Some(body_of(&approval)?) } else { None };
    db.run(
        "UPDATE approvals SET state = ?2, answered_by = ?3, note = ?4, seal = ?5, body = coalesce(?6, body) \
         WHERE id = ?1",
        &[
            (&approval.id).into(),
            approval.state.word().into(),
            approval.answered_by.as_ref().into(),
            (&approval.note).into(),
            proofs.key.as_ref().map(|key| key.seal(&approval)).into(),
            body.into(),
        ],
    )?;
    let grown = match approval.state {
        ApprovalState::Refused => used::record(db, &approval, (approval.refused_by_person(now), now))?,
        ApprovalState::Waiting
        | ApprovalState::Approved
        | ApprovalState::Used
        | ApprovalState::Void
        | ApprovalState::Expired => Vec::new(),
    };
    Ok((approval, grown))
}

/// Uses the question `id` of `tenant` up, if it stands approved and the chain does not say that it was used; from then on it does.
pub(crate) fn use_up(
    (db, proofs): Keyed<'_>,
    (tenant, id): (&TenantId, &str),
    now: jiff::Timestamp,
) -> Result<Vec<ChainGrowth>, Failure> {
    db.exclude(Exclusive::Approvals)?;
    let found = to_change((db, proofs), &TenantScope::from(tenant), id)?;
    let mut approval = found.ok_or_else(|| Failure::Said(refusal::unknown(id)))?;
    used::examine(db, proofs, std::slice::from_mut(&mut approval), now)?;
    match approval.state_at(now) {
        ApprovalState::Approved => {
            set_state(db, id, ApprovalState::Used)?;
            used::record(db, &approval, (approval.used_by_call(now), now))
        }
        state @ (ApprovalState::Waiting
        | ApprovalState::Refused
        | ApprovalState::Used
        | ApprovalState::Void
        | ApprovalState::Expired) => Err(Failure::Said(refusal::unusable(id, state))),
    }
}

/// The question of `of` of exactly this id.
pub(crate) fn by_id((db, proofs): Keyed<'_>, of: &TenantScope, id: &str) -> Result<Option<Approval>, Failure> {
    let (theirs, cells) = of_theirs(of, id);
    let mut found = select((db, proofs), &format!("WHERE id = ?1{theirs}"), &cells)?;
    used::examine(db, proofs, &mut found, jiff::Timestamp::now())?;
    Ok(found.pop())
}

/// The newest questions that `query` asks for, oldest first.
pub(crate) fn newest(db: &dyn Db, proofs: &Proofs, query: &ApprovalQuery) -> Result<Vec<Approval>, Failure> {
    let mut cells: Vec<Cell<'_>> = vec![limit_of(query.limit).into()];
    let mut conditions = vec!["TRUE".to_owned()];
    if query.waiting_only {
        conditions.push("state = 'waiting'".to_owned());
    }
    let wanted = [("tenant_id", query.tenant.one().map(TenantId::as_str)), ("id", query.id.as_deref())];
    for (column, value) in wanted {
        let Some(value) = value else { continue };
        cells.push(value.into());
        conditions.push(format!("{column} = ?{}", cells.len()));
    }
    let rest = format!("WHERE {} ORDER BY seq DESC LIMIT ?1", conditions.join(" AND "));
    let mut found = select((db, proofs), &rest, &cells)?;
    used::examine(db, proofs, &mut found, jiff::Timestamp::now())?;
    found.reverse();
    Ok(found)
}

/// Open turns of which persons answered a question, and no other waits.
pub(crate) fn decided_turns(db: &dyn Db, limit: usize) -> Result<Vec<(SessionKey, TurnId)>, Failure> {
    let of_turn = "FROM approvals AS it WHERE it.tenant_id = s.tenant_id AND it.session_id = s.session_id \
                   AND it.turn_id = s.open_turn AND it.state";
    let sql = format!(
        "SELECT s.tenant_id, s.session_id, s.open_turn FROM sessions AS s WHERE s.open_turn IS NOT NULL \
         AND EXISTS (SELECT 1 {of_turn} IN ('approved', 'refused')) \
         AND NOT EXISTS (SELECT 1 {of_turn} = 'waiting') LIMIT ?1"
    );
    db.all(&sql, &[limit_of(limit).into()], |row| {
        let (tenant, session) = (TenantId::new(row.string("tenant_id")?), row.string("session_id")?.as_str().into());
        Ok((SessionKey { tenant, session }, TurnId::new(row.string("open_turn")?)))
    })
}

/// The statement after which the questions of a turn that nobody answered or used no longer count.
pub(crate) fn void_turn<'a>(key: &'a SessionKey, turn: &'a str) -> Statement<'a> {
    let sql = "UPDATE approvals SET state = 'void', seal = NULL \
               WHERE tenant_id = ?1 AND session_id = ?2 AND turn_id = ?3 \
               AND state IN ('waiting', 'approved')";
    Statement::new(sql, vec![key.tenant.as_str().into(), key.session.as_str().into(), turn.into()])
}

/// Makes void what nobody answered or used of the questions of a session, and notes why, where somebody says it.
pub(crate) fn void_session(db: &dyn Db, key: &SessionKey, why: Option<&str>) -> Result<(), Failure> {
    db.exclude(Exclusive::Approvals)?;
    let sql = "UPDATE approvals SET state = 'void', seal = NULL, note = coalesce(?3, note) \
               WHERE tenant_id = ?1 AND session_id = ?2 AND state IN ('waiting', 'approved')";
    db.run(sql, &[key.tenant.as_str().into(), key.session.as_str().into(), why.into()]).map(drop)
}

/// Seals the questions that wait and were asked before there were seals. Once, as the schema is brought up to date:
/// from then on a question without a seal is one that somebody took it from.
pub(crate) fn seal_older(db: &dyn Db, key: &ApprovalKey) -> Result<(), Failure> {
    let ids = "SELECT id FROM approvals WHERE state = 'waiting' AND seal IS NULL";
    for id in db.all(ids, &[], |row| row.string("id"))? {
        let sql = format!("SELECT {COLUMNS} FROM approvals WHERE id = ?1");
        // One that nobody can read stays as it is; whoever looks for it is told.
        let found = db.one(&sql, &[(&id).into()], |row| Ok(approval(row, None).ok()))?.flatten();
        if let Some(question) = found.filter(Approval::is_of_before_seals) {
            let seal = key.seal(&question);
            db.run("UPDATE approvals SET seal = ?2 WHERE id = ?1", &[id.into(), seal.into()])?;
        }
    }
    Ok(())
}

/// Gives the questions of the tenant `from` to the tenant `to`, in what was asked and in its digest too: the owner of
/// a call is part of what makes it this call.
pub(crate) fn give(db: &dyn Db, from: &str, to: &str) -> Result<(), Failure> {
    let ids = db.all("SELECT id FROM approvals WHERE tenant_id = ?1", &[from.into()], |row| row.string("id"))?;
    for id in ids {
        let read = db.one("SELECT body FROM approvals WHERE id = ?1", &[(&id).into()], |row| {
            // One that nobody can read stays as it is; whoever looks for it is told.
            Ok(body::read::<Approval>(&row.text("body")?).ok())
        })?;
        let given = read.flatten().and_then(|approval| body::write(&given(approval, to)).ok());
        db.run(
            "UPDATE approvals SET tenant_id = ?2, body = coalesce(?3, body) WHERE id = ?1",
            &[id.into(), to.into(), given.into()],
        )?;
    }
    Ok(())
}

fn given(approval: Approval, to: &str) -> Approval {
    // A digest that never was the call's must not become it.
    let was_its_own = approval.flaw().is_none();
    let given = Approval { tenant_id: TenantId::from(to), ..approval };
    let digest = if was_its_own { given.shown_digest().to_string() } else { given.digest.clone() };
    Approval { digest, ..given }
}

/// From here on it gives no leave, and what was sealed of it is forgotten.
fn set_state(db: &dyn Db, id: &str, state: ApprovalState) -> Result<(), Failure> {
    db.run("UPDATE approvals SET state = ?2, seal = NULL WHERE id = ?1", &[id.into(), state.word().into()]).map(drop)
}

/// What is kept of everything that stands in no column of its own.
fn body_of(approval: &Approval) -> Result<String, Failure> {
    body::write(approval).map_err(|why| {
        Failure::Said(StoreError::Unavailable(format!("approval `{}` cannot be kept: {why}", approval.id)))
    })
}

fn insert(db: &dyn Db, proofs: &Proofs, new: &Approval) -> Result<(), Failure> {
    let body = body_of(new)?;
    let inserted = db.run(
        "INSERT INTO approvals \
         (id, tenant_id, session_id, turn_id, tool_call_id, state, answered_by, note, body, seal) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (id) DO NOTHING",
        &[
            (&new.id).into(),
            new.tenant_id.as_str().into(),
            new.session_id.as_str().into(),
            new.turn_id.as_str().into(),
            new.tool_call_id.as_str().into(),
            new.state.word().into(),
            new.answered_by.as_ref().into(),
            (&new.note).into(),
            body.into(),
            proofs.key.as_ref().map(|key| key.seal(new)).into(),
        ],
    )?;
    if inserted == 0 {
        return Err(Failure::Said(refusal::taken(&new.id)));
    }
    Ok(())
}

/// The condition that a row is one of `of`, where that is one tenant, and the cells with `id` before its tenant.
fn of_theirs<'a>(of: &'a TenantScope, id: &'a str) -> (&'static str, Vec<Cell<'a>>) {
    match of {
        TenantScope::One(tenant) => (" AND tenant_id = ?2", vec![id.into(), tenant.as_str().into()]),
        TenantScope::All => ("", vec![id.into()]),
    }
}

/// The question of `of` of exactly this id, which nobody else changes until the end of the transaction.
fn to_change((db, proofs): Keyed<'_>, of: &TenantScope, id: &str) -> Result<Option<Approval>, Failure> {
    let (theirs, cells) = of_theirs(of, id);
    let rest = format!("WHERE id = ?1{theirs}{}", db.dialect().for_update());
    Ok(select((db, proofs), &rest, &cells)?.pop())
}

/// The only question of `of` whose id is or begins as `id`, to be changed.
fn named((db, proofs): Keyed<'_>, of: &TenantScope, id: &str) -> Result<Approval, Failure> {
    if let Some(approval) = to_change((db, proofs), of, id)? {
        return Ok(approval);
    }
    // Every id begins with nothing, and nobody means the only one by that.
    if id.is_empty() {
        return Err(Failure::Said(refusal::unknown(id)));
    }
    // Not LIKE: ids that begin so stand together in the index, and `%` in an id is only a sign.
    let (theirs, cells) = of_theirs(of, id);
    let rest = format!("WHERE id >= ?1{theirs} ORDER BY id LIMIT 2{}", db.dialect().for_update());
    let mut found = select((db, proofs), &rest, &cells)?;
    found.retain(|it| it.id.starts_with(id));
    match found.len() {
        0 => Err(Failure::Said(refusal::unknown(id))),
        1 => Ok(found.remove(0)),
        _ => Err(Failure::Said(refusal::ambiguous(id))),
    }
}

/// Where questions stand, and the key that they are sealed with.
pub(crate) type Keyed<'a> = (&'a dyn Db, &'a Proofs);

fn select((db, proofs): Keyed<'_>, rest: &str, which: &[Cell<'_>]) -> Result<Vec<Approval>, Failure> {
    let mut found = db.all(&format!("SELECT {COLUMNS} FROM approvals {rest}"), which, |row| {
        Ok((approval(row, proofs.key.as_ref())?, row.maybe_text("seal")?.is_some()))
    })?;
    if found.iter().any(|(it, has_seal)| misses(it, *has_seal)) && are_of_other_key((db, proofs))? {
        for (it, has_seal) in &mut found {
            if misses(it, *has_seal) {
                it.flaw = Some(ApprovalFlaw::OtherKey);
            }
        }
    }
    Ok(found.into_iter().map(|(it, _)| it).collect())
}

/// Whether a question has a seal that does not hold.
fn misses(it: &Approval, has_seal: bool) -> bool {
    has_seal && matches!(it.flaw, Some(ApprovalFlaw::Altered | ApprovalFlaw::BrokenSeal))
}

/// Whether it is the key that is another one, and not what stands there: nothing that is sealed in the store holds here.
fn are_of_other_key((db, proofs): Keyed<'_>) -> Result<bool, Failure> {
    let Some(key) = proofs.key.as_ref() else { return Ok(false) };
    if !other_key::may_be_other(db, proofs.changes.as_ref())? {
        return Ok(false);
    }
    let sql = format!("SELECT {COLUMNS} FROM approvals WHERE seal IS NOT NULL ORDER BY seq DESC LIMIT ?1");
    let hold = db.all(&sql, &[limit_of(COMPARED).into()], |row| {
        let seal = row.maybe_string("seal")?.unwrap_or_default();
        // One that nobody can read says nothing of a key.
        Ok(approval(row, None).is_ok_and(|it| key.holds(&it, &seal)))
    })?;
    Ok(!hold.contains(&true))
}

/// The question as it was asked, with what became of it, and whether that holds.
fn approval(row: &dyn Columns, key: Option<&ApprovalKey>) -> Result<Approval, Failure> {
    let foreign =
        |why: String| Failure::Foreign { what: format!("approval `{}`", row.string("id").unwrap_or_default()), why };
    let word = row.text("state")?;
    let word: StrDeserializer<'_, WordError> = word.as_ref().into_deserializer();
    let body = body::read::<Approval>(&row.text("body")?).map_err(foreign)?;
    let id = row.string("id")?;
    // Whoever puts one question into the row of another answers for neither.
    let flaw = (body.id != id).then_some(ApprovalFlaw::Altered);
    let found = Approval {
        id,
        flaw,
        state: ApprovalState::deserialize(word).map_err(|e| foreign(e.to_string()))?,
        answered_by: row.maybe_string("answered_by")?,
        note: row.string("note")?,
        ..body
    };
    Ok(found.examined(key, row.maybe_text("seal")?.as_deref()))
}
