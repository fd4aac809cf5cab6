//! Who works on which session: an advisory lock of the server for each, on a connection that this store keeps for them.
//!
//! A lock ends with its connection, so with the process, however that ends. A connection can also end while the
//! process lives; then the locks are taken anew on another one. Whoever took a session meanwhile has put their own
//! token into its row of `holders`, and what this process still wanted to append to it is refused.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use domain::store::{SessionHold, SessionKey, StoreError};

use super::base::{Base, locked};
use super::holder::Holder;
use super::link::Link;
use crate::db::{Db, Exclusive, Failure};
use crate::place::place;
use crate::refusal;

/// The locks that are held now, by whomever. A lock has its number in two halves.
const TAKEN: &str = "SELECT place, holders.pid, host, boot, token FROM holders JOIN pg_locks \
                     ON locktype = 'advisory' AND objsubid = 1 AND granted \
                     AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
                     AND place = (classid::bigint << 32) | objid::bigint";

/// The sessions that this store holds.
#[derive(Debug)]
pub(super) struct Holds {
    base: Arc<Base>,
    me: Holder,
    /// The connection of the locks. Taken before `held`, by those who take both.
    line: Mutex<Line>,
    held: Mutex<BTreeMap<i64, State>>,
}

#[derive(Default)]
struct Line(Option<Link>);

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Line").field(&self.0.is_some()).finish()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The lock is on the connection.
    Locked,
    /// The connection ended; nobody else is known to have come.
    Unlocked,
    /// Somebody else came meanwhile.
    Lost,
}

/// The lock of one session.
#[derive(Debug)]
pub(super) struct Guard {
    holds: Arc<Holds>,
    place: i64,
}

impl SessionHold for Guard {}

impl Drop for Guard {
    fn drop(&mut self) {
        self.holds.release(self.place);
    }
}

impl Holds {
    pub(super) fn new(base: Arc<Base>) -> Self {
        Self { base, me: Holder::me(), line: Mutex::default(), held: Mutex::default() }
    }

    /// Takes `key`, unless somebody has it.
    pub(super) fn take(self: &Arc<Self>, key: &SessionKey) -> Result<Guard, StoreError> {
        let place = place(key);
        let mut line = locked(&self.line);
        if locked(&self.held).contains_key(&place) {
            return Err(refusal::in_use(&key.session, &self.me.name_for(&self.me)));
        }
        let link = self.connected(&mut line)?;
        let taken = link.transact(|link| self.lock(link, place, key));
        if let Err(failure) = taken {
            // The lock outlives a transaction that failed after it.
            drop(unlock(link, place));
            return Err(self.base.target.error(failure));
        }
        locked(&self.held).insert(place, State::Locked);
        Ok(Guard { holds: self.clone(), place })
    }

    /// The lock and its note belong together: nobody else takes or deletes sessions meanwhile.
    fn lock(&self, link: &dyn Db, place: i64, key: &SessionKey) -> Result<(), Failure> {
        link.exclude(Exclusive::Sessions)?;
        if !try_lock(link, place)? {
            let noted =
                link.one("SELECT pid, host, boot, token FROM holders WHERE place = ?1", &[place.into()], Holder::of)?;
            let by = noted.map_or_else(|| "another process".into(), |holder| holder.name_for(&self.me));
            return Err(Failure::Said(refusal::in_use(&key.session, &by)));
        }
        let me = &self.me;
        link.run(
            "INSERT INTO holders (place, tenant_id, session_id, pid, host, boot, token) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (place) DO UPDATE SET tenant_id = excluded.tenant_id, \
             session_id = excluded.session_id, pid = excluded.pid, host = excluded.host, boot = excluded.boot, \
             token = excluded.token",
            &[
                place.into(),
                key.tenant.as_str().into(),
                key.session.as_str().into(),
                me.pid.into(),
                (&me.host).into(),
                (&me.boot).into(),
                (&me.token).into(),
            ],
        )?;
        Ok(())
    }

    fn release(&self, place: i64) {
        let mut line = locked(&self.line);
        let held = locked(&self.held).remove(&place);
        if held == Some(State::Locked)
            && let Some(link) = &line.0
            && unlock(link, place).is_err()
        {
            // The lock ends with its connection; the other locks are taken anew on the next.
            line.0 = None;
        }
    }

    /// Who has a session now, by its place, as of now.
    pub(super) fn taken(&self, db: &dyn Db) -> Result<BTreeMap<i64, String>, Failure> {
        let taken = db.all(TAKEN, &[], |row| Ok((row.int("place")?, Holder::of(row)?.name_for(&self.me))))?;
        Ok(taken.into_iter().collect())
    }

    /// Whether this store may append to `key`: it never held it, or it still does.
    pub(super) fn may_append(&self, db: &dyn Db, key: &SessionKey) -> Result<(), Failure> {
        let place = place(key);
        let Some(state) = locked(&self.held).get(&place).copied() else { return Ok(()) };
        // Whoever takes the session from now on waits for our transaction.
        let sql = "SELECT pid, host, boot, token FROM holders WHERE place = ?1 FOR SHARE";
        let noted = db.one(sql, &[place.into()], Holder::of)?;
        if state != State::Lost && noted.as_ref().is_some_and(|holder| holder.token == self.me.token) {
            return Ok(());
        }
        if let Some(state) = locked(&self.held).get_mut(&place) {
            *state = State::Lost;
        }
        let by = noted.map_or_else(|| "somebody".into(), |holder| holder.name_for(&self.me));
        Err(Failure::Said(StoreError::Conflict(format!(
            "session {:?} was taken by {by} while the database was out of reach; end this and resume it",
            key.session
        ))))
    }

    /// Takes the locks anew that a broken connection gave away. Quick while there are none.
    pub(super) fn tend(&self) {
        let nothing_to_do = |held: &BTreeMap<i64, State>| held.values().all(|state| *state != State::Unlocked);
        let mut line = locked(&self.line);
        let broken = line.0.as_ref().is_none_or(Link::is_broken);
        let held = locked(&self.held);
        if held.is_empty() || (!broken && nothing_to_do(&held)) {
            return;
        }
        drop(held);
        // Out of reach: the next time.
        drop(self.connected(&mut line));
    }

    /// The connection, on which all locks are that are still ours.
    fn connected<'a>(&self, line: &'a mut Line) -> Result<&'a Link, StoreError> {
        if line.0.as_ref().is_some_and(Link::is_broken) {
            line.0 = None;
        }
        if line.0.is_none() {
            for state in locked(&self.held).values_mut().filter(|state| **state == State::Locked) {
                *state = State::Unlocked;
            }
            line.0 = Some(self.base.connect()?);
        }
        let link = line.0.as_ref().expect("it was made above");
        let unlocked: Vec<i64> = {
            let held = locked(&self.held);
            held.iter().filter(|(_, state)| **state == State::Unlocked).map(|(place, _)| *place).collect()
        };
        if !unlocked.is_empty() {
            let states = link.transact(|link| self.lock_again(link, &unlocked));
            let states = states.map_err(|failure| self.base.target.error(failure))?;
            let mut held = locked(&self.held);
            for (place, state) in states {
                held.entry(place).and_modify(|known| *known = state);
            }
        }
        Ok(link)
    }

    fn lock_again(&self, link: &dyn Db, places: &[i64]) -> Result<Vec<(i64, State)>, Failure> {
        link.exclude(Exclusive::Sessions)?;
        let again = |place: &i64| {
            let noted =
                link.one("SELECT token FROM holders WHERE place = ?1", &[(*place).into()], |row| row.string("token"))?;
            let state = if noted.as_ref() != Some(&self.me.token) {
                State::Lost
            } else if try_lock(link, *place)? {
                State::Locked
            } else {
                // The server has not noticed yet that our old connection is gone.
                State::Unlocked
            };
            Ok((*place, state))
        };
        places.iter().map(again).collect()
    }
}

fn try_lock(link: &dyn Db, place: i64) -> Result<bool, Failure> {
    let got = link.one("SELECT pg_try_advisory_lock(?1) AS got", &[place.into()], |row| row.flag("got"))?;
    Ok(got == Some(true))
}

fn unlock(link: &dyn Db, place: i64) -> Result<(), Failure> {
    link.one("SELECT pg_advisory_unlock(?1) AS done", &[place.into()], |row| row.flag("done")).map(drop)
}
