//! Rules as rows: changing them, their circuit breakers, and reading everything that puts them in force.
//!
//! Every transaction that changes rules raises the epoch first: that row is their queue, so no two of them meet further
//! on, and the numbers come in the order of the commits.

mod columns;

use std::collections::BTreeMap;

use jiff::Timestamp;
use pintle_domain::anchor::{AnchoredRule, DoubtKind, RuleDoubt};
use pintle_domain::audit::ChangeKey;
use pintle_domain::breaker::BreakerRun;
use pintle_domain::id::{HookId, SENTINEL_TENANT, TenantId};
use pintle_domain::json::{canonical, json};
use pintle_domain::rule::Rule;
use pintle_domain::store::{Actor, LoggedChange, OpenBreaker, RuleChange, RuleChangeResult, StoredRules, TenantScope};

use super::anchor::{EPOCH, ROW};
use super::identity::members;
use super::{audit, epoch, executions, tenants};
use crate::db::{Cell, Columns, Db, Dialect, Failure, limit_of, moment};
use crate::evidence::{self, Note};
use crate::refusal::swallowed;
use crate::rules::{self, CREATED, DELETED, RESET, RowChange, TRIPPED};
use crate::{body, jsonb};
use columns::{COLUMNS, cells, hook};

/// Everything that puts rules in force. In one transaction, or the parts do not fit together.
pub(crate) fn rules(db: &dyn Db) -> Result<StoredRules, Failure> {
    let (tenants, disabled) = (tenants::all(db)?, members::disabled(db)?);
    let (epoch, is_of_server) = (epoch::now(db)?, db.dialect() == Dialect::Postgres);
    let mut found = StoredRules { epoch, tenants, disabled, is_of_server, ..StoredRules::default() };
    db.each(&format!("SELECT {COLUMNS} FROM agent_hooks ORDER BY id"), &[], &mut |row| {
        match hook(db.dialect(), row) {
            Ok(rule) => found.hooks.push(rule),
            Err(why) => found.doubts.push(columns::odd(row, &why)),
        }
        Ok(())
    })?;
    let sql = "SELECT hook_id, tenant_id, run, tripped_at FROM hook_breakers ORDER BY hook_id, tenant_id";
    db.each(sql, &[], &mut |row| {
        match breaker(row) {
            Ok((trip, run)) => {
                found.trips.extend(trip);
                found.runs.extend(run);
            }
            Err(why) => {
                let id = row.maybe_string("hook_id").ok().flatten();
                let rule = found.hooks.iter().find(|rule| Some(rule.id.as_str()) == id.as_deref());
                found.doubts.extend(rule.map(|rule| RuleDoubt {
                    hook: rule.id.clone(),
                    rule: AnchoredRule::of(rule, &BTreeMap::new()),
                    why: DoubtKind::Unreadable(format!("its breaker: {}", columns::said(&why))),
                }));
            }
        }
        Ok(())
    })?;
    Ok(found)
}

type Breaker = (Option<OpenBreaker>, Option<(HookId, TenantId, BreakerRun)>);

fn breaker(row: &dyn Columns) -> Result<Breaker, Failure> {
    let hook_id = HookId::new(row.string("hook_id")?);
    let tenant_id = TenantId::new(row.string("tenant_id")?);
    let run: BreakerRun = body::read(&row.text("run")?).map_err(|why| columns::foreign(&hook_id, why))?;
    let run = (!run.is_empty()).then(|| (hook_id.clone(), tenant_id.clone(), run));
    let since = row.maybe_text("tripped_at")?.map(|since| columns::moment(&since)).transpose()?;
    Ok((since.map(|tripped_at| OpenBreaker { tripped_at, hook_id, tenant_id }), run))
}

/// The row `id`.
pub(crate) fn by_id(db: &dyn Db, id: &HookId) -> Result<Option<Rule>, Failure> {
    // No UUID, no row.
    let Some(id) = rules::uuid(id.as_str()) else { return Ok(None) };
    let sql = format!("SELECT {COLUMNS} FROM agent_hooks WHERE id = ?1");
    db.one(&sql, &[id.into()], |row| hook(db.dialect(), row))
}

/// The row `id`, which is there.
fn row(db: &dyn Db, id: &HookId) -> Result<Rule, Failure> {
    by_id(db, id)?.ok_or_else(|| Failure::Said(rules::no_hook(id)))
}

/// Who changes rules, and what seals the entries about that.
pub(crate) struct Changer<'a> {
    pub(crate) by: &'a Actor,
    pub(crate) key: Option<&'a ChangeKey>,
}

/// Carries `changes` out in their order.
pub(crate) fn change(db: &dyn Db, changes: &[RuleChange], changer: &Changer<'_>) -> Result<RuleChangeResult, Failure> {
    let (epoch, by) = (epoch::raise(db)?, changer.by);
    let mut lines = Vec::with_capacity(changes.len());
    let versions = changes.iter().map(|change| one(db, change, by, &mut lines)).collect::<Result<_, _>>()?;
    let notes: Vec<Note> = lines.iter().map(|line| note(db, line, (epoch, by.at))).collect::<Result<_, _>>()?;
    // Last, after all locks of rows.
    audit::append_sealed(db, &notes.iter().collect::<Vec<_>>(), changer.key)?;
    Ok(RuleChangeResult { epoch, versions })
}

/// Carries one change out, and gives the version that it left.
fn one(db: &dyn Db, change: &RuleChange, by: &Actor, lines: &mut Vec<LoggedChange>) -> Result<u32, Failure> {
    match change {
        RuleChange::Create(hook) | RuleChange::Add(hook) => {
            let new = rules::created(Rule::clone(hook), by.at).map_err(Failure::Said)?;
            tenants::known(db, &new.tenant_id)?;
            if matches!(change, RuleChange::Add(_)) {
                place_is_free(db, &new)?;
            }
            insert(db, &new)?;
            lines.push(log(db, RowChange::of(&new, CREATED, rules::diff(None, Some(&new))), by)?);
            Ok(new.version)
        }
        RuleChange::Update { hook, if_version, action } => {
            tenants::known(db, &hook.tenant_id)?;
            let old = row(db, &hook.id)?;
            let new = rules::updated(&old, Rule::clone(hook), *if_version, by.at).map_err(Failure::Said)?;
            update(db, &new)?;
            lines.push(log(db, RowChange::of(&new, action, rules::diff(Some(&old), Some(&new))), by)?);
            Ok(new.version)
        }
        RuleChange::Delete { id, reason } => {
            let old = row(db, id)?;
            whole(db.run("DELETE FROM agent_hooks WHERE id = ?1", &[old.id.as_str().into()])?)?;
            let gone = Rule { version: 0, ..old.clone() };
            lines.push(log(db, RowChange::of(&gone, DELETED, rules::deletion(&old, reason)), by)?);
            Ok(gone.version)
        }
    }
}

/// Refuses `new` where another hook is what it is to be. Nobody adds one meanwhile: the epoch was raised before.
fn place_is_free(db: &dyn Db, new: &Rule) -> Result<(), Failure> {
    let sql = format!("SELECT {COLUMNS} FROM agent_hooks WHERE event = ?1 AND name = ?2");
    let mut taken = None;
    db.each(&sql, &[new.event.name().into(), (&new.name).into()], &mut |row| {
        // A row that is none is nobody's place.
        if let Ok(there) = hook(db.dialect(), row)
            && there.has_place_of(new)
        {
            taken = Some(there.id);
        }
        Ok(())
    })?;
    taken.map_or(Ok(()), |id| Err(Failure::Said(rules::place_taken(&id))))
}

fn insert(db: &dyn Db, new: &Rule) -> Result<(), Failure> {
    let sql = format!(
        "INSERT INTO agent_hooks ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, \
         ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25) ON CONFLICT (id) DO NOTHING"
    );
    match db.run(&sql, &cells(db.dialect(), new)?)? {
        0 if by_id(db, &new.id)?.is_some() => Err(Failure::Said(rules::hook_taken(&new.id))),
        rows => whole(rows),
    }
}

fn update(db: &dyn Db, new: &Rule) -> Result<(), Failure> {
    let sql = "UPDATE agent_hooks SET tenant_id = ?2, agent_ids = ?3, event = ?4, handler_type = ?5, scope = ?6, \
               name = ?7, config = ?8, matcher = ?9, if_expr = ?10, timeout_ms = ?11, on_timeout = ?12, \
               priority = ?13, enabled = ?14, version = ?15, source = ?16, may_rewrite = ?17, breaker = ?18, \
               on_trip = ?19, tripped_at = ?20, disabled_reason = ?21, metadata = ?22, created_by = ?23, \
               created_at = ?24, updated_at = ?25 WHERE id = ?1";
    whole(db.run(sql, &cells(db.dialect(), new)?)?)
}

/// A change of one row touched `rows` of them: a trigger of somebody else's may have swallowed it.
fn whole(rows: u64) -> Result<(), Failure> {
    if rows == 1 { Ok(()) } else { Err(swallowed("the change of a rule", "agent_hooks")) }
}

/// Forgets what is open beside the row, and what counts: for everybody, or for one tenant.
fn forget_breakers(db: &dyn Db, id: &HookId, tenant: Option<&TenantId>) -> Result<u64, Failure> {
    match tenant {
        None => db.run("DELETE FROM hook_breakers WHERE hook_id = ?1", &[id.as_str().into()]),
        Some(tenant) => {
            let sql = "DELETE FROM hook_breakers WHERE hook_id = ?1 AND tenant_id = ?2";
            db.run(sql, &[id.as_str().into(), tenant.as_str().into()])
        }
    }
}

/// Forgets what counts, for everybody.
fn forget_runs(db: &dyn Db, id: &HookId) -> Result<(), Failure> {
    db.run("DELETE FROM hook_breakers WHERE hook_id = ?1 AND tripped_at IS NULL", &[id.as_str().into()])?;
    db.run("UPDATE hook_breakers SET run = '[]' WHERE hook_id = ?1", &[id.as_str().into()]).map(drop)
}

/// One line in the change log in the name of `tenant`, whom it is about.
fn log(db: &dyn Db, change: RowChange<'_>, by: &Actor) -> Result<LoggedChange, Failure> {
    insert_line(db, rules::logged(change, by), by)
}

fn insert_line(db: &dyn Db, line: LoggedChange, by: &Actor) -> Result<LoggedChange, Failure> {
    let diff = jsonb::kept(db.dialect(), &line.diff)
        .map_err(|why| Failure::Said(rules::unkeepable(&format!("the change of hook `{}`", line.hook_id), &why)))?;
    let rows = db.run(
        "INSERT INTO hook_changes (id, tenant_id, hook_id, at, actor, action, version, diff) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        &[
            (&line.id).into(),
            line.tenant_id.as_str().into(),
            line.hook_id.as_str().into(),
            rules::column(by.at).into(),
            (&line.actor).into(),
            (&line.action).into(),
            line.version.into(),
            diff.into(),
        ],
    )?;
    if rows == 1 { Ok(line) } else { Err(swallowed("the change of a rule", "hook_changes")) }
}

/// The same, and an entry in the audit chain: where nothing else is to be changed.
fn log_alone(db: &dyn Db, change: RowChange<'_>, (epoch, changer): (u64, &Changer<'_>)) -> Result<(), Failure> {
    let line = log(db, change, changer.by)?;
    audit::append_sealed(db, &[&note(db, &line, (epoch, changer.by.at))?], changer.key).map(drop)
}

/// A line about the budget of a tenant, and its entry in the audit chain.
pub(crate) fn log_budget(db: &dyn Db, line: LoggedChange, changer: &Changer<'_>) -> Result<(), Failure> {
    let epoch = epoch::raise(db)?;
    let line = insert_line(db, line, changer.by)?;
    audit::append_sealed(db, &[&note(db, &line, (epoch, changer.by.at))?], changer.key).map(drop)
}

/// The entry of the audit chain about a change, with how the row was left: what is made of the row by other means is
/// known by that.
fn note(db: &dyn Db, line: &LoggedChange, (epoch, at): (u64, Timestamp)) -> Result<Note, Failure> {
    let (kind, mut data) = rules::noted(line);
    let left = by_id(db, &line.hook_id)?;
    let left = left.map(|rule| Ok::<_, Failure>(AnchoredRule::of(&rule, &open_for(db, &rule.id)?))).transpose()?;
    data.insert(EPOCH.to_owned(), epoch.into());
    data.insert(ROW.to_owned(), json!(left));
    evidence::note(&line.tenant_id, at, kind, &canonical(&data.into())).map_err(Failure::Said)
}

/// Takes rules as somebody else left them: a line and an entry for each that is in doubt.
pub(crate) fn accept(
    db: &dyn Db,
    rules: &StoredRules,
    doubts: &[RuleDoubt],
    changer: &Changer<'_>,
) -> Result<(), Failure> {
    let (epoch, by) = (epoch::raise(db)?, changer.by);
    for doubt in doubts {
        let kept = rules.hooks.iter().find(|rule| rule.id == doubt.hook);
        let line = rules::taken(&doubt.rule, (&doubt.hook, kept), by);
        let line = insert_line(db, line, by)?;
        audit::append_sealed(db, &[&note(db, &line, (epoch, by.at))?], changer.key)?;
    }
    Ok(())
}

/// The newest `limit` changes of a hook that are about `of` or everybody, newest first. Identifiers sort by time, for
/// those of one moment.
pub(crate) fn changes(db: &dyn Db, of: &TenantScope, id: &HookId, limit: usize) -> Result<Vec<LoggedChange>, Failure> {
    let Some(uuid) = rules::uuid(id.as_str()) else { return Ok(Vec::new()) };
    let (mut condition, mut cells) = ("", vec![Cell::from(uuid), limit_of(limit).into()]);
    if let Some(tenant) = of.one() {
        // One with another id has no rules of its own.
        let own = rules::uuid(tenant.as_str()).map_or_else(|| Cell::from(SENTINEL_TENANT), Cell::from);
        cells.extend([own, SENTINEL_TENANT.into()]);
        condition = "AND tenant_id IN (?3, ?4) ";
    }
    let sql = format!(
        "SELECT id, tenant_id, hook_id, at, actor, action, version, diff FROM hook_changes WHERE hook_id = ?1 \
         {condition}ORDER BY at DESC, id DESC LIMIT ?2"
    );
    db.all(&sql, &cells, |row| logged(db, row))
}

/// The changes of every hook since `since`, oldest first.
pub(crate) fn changes_since(db: &dyn Db, since: Timestamp, limit: usize) -> Result<Vec<LoggedChange>, Failure> {
    let sql = "SELECT id, tenant_id, hook_id, at, actor, action, version, diff FROM hook_changes WHERE at >= ?1 \
               ORDER BY at, id LIMIT ?2";
    db.all(sql, &[rules::column(since).into(), limit_of(limit).into()], |row| logged(db, row))
}

/// A line of the change log.
fn logged(db: &dyn Db, row: &dyn Columns) -> Result<LoggedChange, Failure> {
    let hook_id = HookId::new(row.string("hook_id")?);
    Ok(LoggedChange {
        id: row.string("id")?,
        tenant_id: TenantId::new(row.string("tenant_id")?),
        at: columns::moment(&row.text("at")?)?,
        actor: row.string("actor")?,
        action: row.string("action")?,
        version: columns::number(row, "version")?,
        diff: jsonb::read(db.dialect(), &row.text("diff")?).map_err(|why| columns::foreign(&hook_id, why))?,
        hook_id,
    })
}

/// The newest `limit` changes of the hooks of `tenant` and of everybody's, or of all, after the line `after`.
pub(crate) fn change_log(
    db: &dyn Db,
    tenant: Option<&TenantId>,
    after: Option<&(String, String)>,
    limit: usize,
) -> Result<Vec<LoggedChange>, Failure> {
    let (mut conditions, mut cells) = (String::new(), Vec::new());
    if let Some(tenant) = tenant {
        let Some(uuid) = rules::uuid(tenant.as_str()) else { return Ok(Vec::new()) };
        cells.extend([Cell::from(uuid), SENTINEL_TENANT.into()]);
        conditions += " AND tenant_id IN (?1, ?2)";
    }
    if let Some((at, id)) = after {
        let (at, id) = executions::place(at, id).map_err(Failure::Said)?;
        cells.extend([moment(at).into(), id.into()]);
        conditions += &format!(" AND (at, id) < (?{}, ?{})", cells.len() - 1, cells.len());
    }
    cells.push(limit_of(limit).into());
    let sql = format!(
        "SELECT id, tenant_id, hook_id, at, actor, action, version, diff FROM hook_changes WHERE TRUE{conditions} \
         ORDER BY at DESC, id DESC LIMIT ?{}",
        cells.len()
    );
    db.all(&sql, &cells, |row| logged(db, row))
}

/// Opens a circuit breaker and clears the run; the epoch stays where nothing else changes.
pub(crate) fn trip(db: &dyn Db, id: &HookId, tenant: &TenantId, by: &Changer<'_>) -> Result<u64, Failure> {
    let epoch = epoch::raise(db)?;
    let old = row(db, id)?;
    let opened = if rules::trips_itself(&old) {
        forget_runs(db, &old.id)?;
        trip_row(db, &old, (epoch, by))?
    } else {
        trip_beside(db, &old, tenant, (epoch, by))?
    };
    if opened { Ok(epoch) } else { epoch::lower(db, epoch) }
}

fn trip_row(db: &dyn Db, old: &Rule, (epoch, by): (u64, &Changer<'_>)) -> Result<bool, Failure> {
    let Some(new) = rules::tripped(old, by.by.at) else { return Ok(false) };
    update(db, &new)?;
    log_alone(db, RowChange::of(&new, TRIPPED, rules::diff(Some(old), Some(&new))), (epoch, by))?;
    Ok(true)
}

fn trip_beside(db: &dyn Db, old: &Rule, tenant: &TenantId, (epoch, by): (u64, &Changer<'_>)) -> Result<bool, Failure> {
    let at = by.by.at;
    let tenant = tenants::spelled(tenant)?;
    let before = open_for(db, &old.id)?;
    if !old.enabled || before.contains_key(&tenant) {
        keep_run(db, &old.id, &tenant, &BreakerRun::default(), at)?;
        return Ok(false);
    }
    let rows = db.run(
        "INSERT INTO hook_breakers (hook_id, tenant_id, run, tripped_at, updated_at) VALUES (?1, ?2, '[]', ?3, ?4) \
         ON CONFLICT (hook_id, tenant_id) DO UPDATE SET run = '[]', tripped_at = excluded.tripped_at, \
         updated_at = excluded.updated_at",
        &[old.id.as_str().into(), tenant.as_str().into(), rules::column(at).into(), rules::column(at).into()],
    )?;
    whole(rows)?;
    let diff = rules::trips_diff(&before, &open_for(db, &old.id)?);
    log_alone(db, RowChange::of(old, TRIPPED, diff).within(&tenant), (epoch, by))?;
    Ok(true)
}

/// For whom a global hook is off, and since when.
fn open_for(db: &dyn Db, id: &HookId) -> Result<BTreeMap<TenantId, String>, Failure> {
    let sql = "SELECT tenant_id, tripped_at FROM hook_breakers WHERE hook_id = ?1 AND tripped_at IS NOT NULL";
    let read =
        |row: &dyn Columns| Ok((TenantId::new(row.string("tenant_id")?), columns::moment(&row.text("tripped_at")?)?));
    Ok(db.all(sql, &[id.as_str().into()], read)?.into_iter().collect())
}

/// Closes circuit breakers and clears runs; where there is nothing to close or to clear, nothing changes, and where
/// something only counts, there is no line about it.
pub(crate) fn reset(db: &dyn Db, id: &HookId, tenant: Option<&TenantId>, by: &Changer<'_>) -> Result<u64, Failure> {
    let epoch = epoch::raise(db)?;
    let old = row(db, id)?;
    let only = tenant.filter(|_| !rules::trips_itself(&old)).map(tenants::spelled).transpose()?;
    let before = open_for(db, &old.id)?;
    let forgotten = forget_breakers(db, &old.id, only.as_ref())?;
    if let Some(new) = rules::closed(&old, by.by.at) {
        update(db, &new)?;
        log_alone(db, RowChange::of(&new, RESET, rules::diff(Some(&old), Some(&new))), (epoch, by))?;
        return Ok(epoch);
    }
    let after = open_for(db, &old.id)?;
    if before != after {
        let diff = rules::trips_diff(&before, &after);
        let change = RowChange::of(&old, RESET, diff).within(only.as_ref().unwrap_or(&old.tenant_id));
        log_alone(db, change, (epoch, by))?;
    }
    if forgotten == 0 { epoch::lower(db, epoch) } else { Ok(epoch) }
}

/// Keeps a run; an empty one, and one of a hook that is gone, are forgotten.
pub(crate) fn keep_run(
    db: &dyn Db,
    id: &HookId,
    tenant: &TenantId,
    run: &BreakerRun,
    now: Timestamp,
) -> Result<(), Failure> {
    let Some(id) = rules::uuid(id.as_str()) else { return Ok(()) };
    let tenant = tenants::spelled(tenant)?;
    let key = || -> Vec<Cell<'_>> { vec![(&id).into(), tenant.as_str().into()] };
    if run.is_empty() {
        db.run("DELETE FROM hook_breakers WHERE hook_id = ?1 AND tenant_id = ?2 AND tripped_at IS NULL", &key())?;
        let sql = "UPDATE hook_breakers SET run = '[]' WHERE hook_id = ?1 AND tenant_id = ?2";
        return db.run(sql, &key()).map(drop);
    }
    // Whoever deletes the hook waits, or has done so before.
    let sql = format!("SELECT id FROM agent_hooks WHERE id = ?1{}", db.dialect().for_update());
    if db.one(&sql, &[(&id).into()], |row| row.string("id"))?.is_none() {
        return Ok(());
    }
    let text = body::write(run).map_err(|why| Failure::Said(rules::unkeepable("the run of a breaker", &why)))?;
    let mut cells = key();
    cells.extend([text.into(), rules::column(now).into()]);
    db.run(
        "INSERT INTO hook_breakers (hook_id, tenant_id, run, updated_at) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (hook_id, tenant_id) DO UPDATE SET run = excluded.run, updated_at = excluded.updated_at",
        &cells,
    )
    .map(drop)
}
