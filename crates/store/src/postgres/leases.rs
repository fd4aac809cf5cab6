//! Who works on which session: a lease for each, in a row that any node can read. The rules are those of
//! [`pintle_domain::lease`]; this asks the database and the clock.
//!
//! One thread renews all leases of this store, with one statement on a connection of its own, so that no flood of others
//! is in its way. Another one only looks at the clock: it says what is lost when the first one hangs.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pintle_domain::lease::{Fence, LEASE_TIME, OwnLeases, RENEW_EVERY};
use pintle_domain::store::{OnLost, SessionHold, SessionKey, StoreError};

use super::base::{Base, locked};
use super::boottime::boottime;
use super::holder::Holder;
use super::link::{Link, SESSIONS_LOCK};
use crate::db::{Columns, Db, Failure};
use crate::place::place;
use crate::refusal;
use crate::rows::batch::Batch;
use crate::rows::nodes::{RELEASE, as_int, now_ms};

/// How often it is looked whether a lease is lost: a tenth of what is to spare before somebody else may take it.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How long a renewal may go without an answer: then another connection is tried, while there is time for it.
const RENEW_PATIENCE: Duration = Duration::from_secs(2);

/// After a renewal that failed.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// How long whoever gives a lease back waits until others see it. It runs out by itself if that takes longer.
const RELEASE_PATIENCE: Duration = Duration::from_secs(5);

/// The leases that this store has.
pub(super) struct Leases {
    base: Arc<Base>,
    pub(super) me: Holder,
    /// The node that works with this store, once it said so.
    node: OnceLock<String>,
    state: Mutex<State>,
    /// Rung when there is a first lease, or the store ends.
    bell: Condvar,
    /// Where a lease is given back behind what was appended under it, until the store ends.
    queue: Mutex<Option<SyncSender<Batch>>>,
}

#[derive(Default)]
struct State {
    own: OwnLeases<i64>,
    /// Whom to tell once one is lost.
    told: BTreeMap<(i64, Fence), Vec<OnLost>>,
    threads: bool,
    closed: bool,
}

/// The lease of one session, until it is dropped.
struct Lease {
    leases: Arc<Leases>,
    key: SessionKey,
    place: i64,
    fence: Fence,
}

impl SessionHold for Lease {
    fn fence(&self) -> Option<Fence> {
        Some(self.fence)
    }

    fn stands(&self) -> bool {
        locked(&self.leases.state).own.stands(&self.place, self.fence, boottime())
    }

    fn on_lost(&self, lost: OnLost) {
        let mut state = locked(&self.leases.state);
        if state.own.stands(&self.place, self.fence, boottime()) {
            return state.told.entry((self.place, self.fence)).or_default().push(lost);
        }
        drop(state);
        lost();
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.leases.release(self.place, self.fence, &self.key);
    }
}

impl Leases {
    pub(super) fn new(base: Arc<Base>) -> Self {
        Self {
            base,
            me: Holder::me(),
            node: OnceLock::new(),
            state: Mutex::default(),
            bell: Condvar::new(),
            queue: Mutex::default(),
        }
    }

    /// What is given back goes through `queue`, behind what was handed over before.
    pub(super) fn behind(&self, queue: SyncSender<Batch>) {
        *locked(&self.queue) = Some(queue);
    }

    /// The store ends. Leases that somebody still has are renewed until they are dropped.
    pub(super) fn close(&self) {
        drop(locked(&self.queue).take());
        locked(&self.state).closed = true;
        self.bell.notify_all();
    }

    /// The node called `name` works with this store.
    pub(super) fn join(&self, name: &str) {
        self.node.get_or_init(|| name.to_owned());
    }

    /// Takes `key`, unless somebody has it.
    pub(super) fn take(self: &Arc<Self>, key: &SessionKey) -> Result<Box<dyn SessionHold>, StoreError> {
        let (place, asked) = (place(key), boottime());
        let taken = self.base.read(|db| self.taken_by_us(db, (place, key)))?;
        let fence = taken.map_err(|by| refusal::in_use(&key.session, &by))?;
        {
            let mut state = locked(&self.state);
            state.own.granted(place, fence, asked);
            if !std::mem::replace(&mut state.threads, true) {
                self.start()?;
            }
        }
        self.bell.notify_all();
        Ok(Box::new(Lease { leases: self.clone(), key: key.clone(), place, fence }))
    }

    /// One statement: nobody else takes it meanwhile, nobody deletes it, and appends that are under way are waited for.
    fn taken_by_us(&self, db: &dyn Db, (place, key): (i64, &SessionKey)) -> Result<Result<Fence, String>, Failure> {
        let (now, time, me) = (now_ms(db.dialect()), LEASE_TIME.as_millis(), &self.me);
        let sql = format!(
            "WITH gate AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared({SESSIONS_LOCK}) AS open) \
             INSERT INTO leases (place, tenant_id, session_id, fence, owner, expires_ms, pid, host, boot, node) \
             SELECT ?1::bigint, ?2::text, ?3::text, nextval('lease_fence'), ?4::uuid, {now} + {time}, ?5::bigint, \
             ?6::text, ?7::text, ?8::text FROM gate ON CONFLICT (place) DO UPDATE SET \
             tenant_id = excluded.tenant_id, session_id = excluded.session_id, fence = nextval('lease_fence'), \
             owner = excluded.owner, expires_ms = {now} + {time}, pid = excluded.pid, host = excluded.host, \
             boot = excluded.boot, node = coalesce(nullif(excluded.node, ''), leases.node) \
             WHERE leases.owner IS NULL OR leases.expires_ms <= {now} RETURNING fence"
        );
        let cells = [
            place.into(),
            key.tenant.as_str().into(),
            key.session.as_str().into(),
            (&me.token).into(),
            me.pid.into(),
            (&me.host).into(),
            (&me.boot).into(),
            self.node.get().map_or("", String::as_str).into(),
        ];
        if let Some(fence) = db.one(&sql, &cells, fence)? {
            return Ok(Ok(fence));
        }
        let noted = "SELECT pid, host, boot, owner FROM leases WHERE place = ?1 AND owner IS NOT NULL";
        let noted = db.one(noted, &[place.into()], Holder::of)?;
        Ok(Err(noted.map_or_else(|| "another process".into(), |holder| holder.name_for(&self.me))))
    }

    fn release(&self, place: i64, fence: Fence, key: &SessionKey) {
        {
            let mut state = locked(&self.state);
            state.own.released(&place, fence);
            state.told.remove(&(place, fence));
        }
        self.bell.notify_all();
        let (say, hear) = sync_channel(1);
        let done = Box::new(move |how| drop(say.send(how)));
        let batch = Batch::release((place, fence, self.me.token.clone()), done);
        let queue = locked(&self.queue).clone();
        // A batch that is not taken is dropped, and nobody waits for it.
        let how = match queue.is_some_and(|queue| queue.try_send(batch).is_ok()) {
            true => match hear.recv_timeout(RELEASE_PATIENCE) {
                Ok(how) => how,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    Err(StoreError::Unavailable("the store does not answer".into()))
                }
            },
            false => {
                let cells = [place.into(), as_int(fence).into(), (&self.me.token).into()];
                self.base.read(|db| db.run(RELEASE, &cells)).map(drop)
            }
        };
        if let Err(error) = how {
            tracing::debug!("the lease of session {:?} runs out by itself: {error}", key.session);
        }
    }

    /// Who has a session now, by its place.
    pub(super) fn holders(&self, db: &dyn Db) -> Result<BTreeMap<i64, String>, Failure> {
        let sql = format!(
            "SELECT place, pid, host, boot, owner FROM leases WHERE owner IS NOT NULL AND expires_ms > {}",
            now_ms(db.dialect())
        );
        let taken = db.all(&sql, &[], |row| Ok((row.int("place")?, Holder::of(row)?.name_for(&self.me))))?;
        Ok(taken.into_iter().collect())
    }

    /// Who has `key` now.
    pub(super) fn holder(&self, db: &dyn Db, key: &SessionKey) -> Result<Option<String>, Failure> {
        let sql = format!(
            "SELECT pid, host, boot, owner FROM leases WHERE place = ?1 AND owner IS NOT NULL AND expires_ms > {}",
            now_ms(db.dialect())
        );
        let noted = db.one(&sql, &[place(key).into()], Holder::of)?;
        Ok(noted.map(|holder| holder.name_for(&self.me)))
    }

    /// Whether what was made under `fence` may be appended to `key`, to the end of the transaction. What was made under
    /// none comes from somebody who works no turn: it is refused only while somebody else does.
    pub(super) fn may_append(&self, db: &dyn Db, key: &SessionKey, fence: Option<Fence>) -> Result<(), Failure> {
        let sql = format!(
            "SELECT fence, pid, host, boot, coalesce(owner::text, '') AS owner, \
             owner IS NOT NULL AND expires_ms > {} AS held FROM leases WHERE place = ?1 FOR KEY SHARE",
            now_ms(db.dialect())
        );
        let read = |row: &dyn Columns| Ok((self::fence(row)?, Holder::of(row)?, row.flag("held")?));
        let row = db.one(&sql, &[place(key).into()], read)?;
        let good = match (&row, fence) {
            (Some((newest, ..)), Some(fence)) => *newest == fence,
            (None, Some(_)) => false,
            (Some((_, holder, held)), None) => !held || holder.token == self.me.token,
            (None, None) => true,
        };
        if good {
            return Ok(());
        }
        let by = row.map_or_else(|| "somebody".into(), |(_, holder, _)| holder.name_for(&self.me));
        Err(Failure::Said(StoreError::Conflict(format!(
            "session {:?} was taken by {by} meanwhile: what this process had of it has run out",
            key.session
        ))))
    }

    fn start(self: &Arc<Self>) -> Result<(), StoreError> {
        let spawn = |name: &str, work: fn(&Self), leases: Arc<Self>| {
            let thread = thread::Builder::new().name(name.into()).spawn(move || work(&leases));
            thread.map(drop).map_err(|error| StoreError::Unavailable(format!("leases cannot be renewed: {error}")))
        };
        spawn("pintle-leases", Self::renew_all, self.clone())?;
        spawn("pintle-lease-clock", Self::watch, self.clone())
    }

    /// Waits until there is a lease; `false` once the store ended and nobody has one.
    fn until_needed(&self) -> bool {
        let mut state = locked(&self.state);
        while state.own.is_empty() {
            if state.closed {
                return false;
            }
            state = self.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    /// Says in time what is lost, whatever hangs.
    fn watch(&self) {
        while self.until_needed() {
            self.tell_lost();
            thread::sleep(LOOK_EVERY);
        }
    }

    fn tell_lost(&self) {
        let told: Vec<OnLost> = {
            let mut state = locked(&self.state);
            let lost = state.own.lost(boottime());
            lost.iter().filter_map(|lease| state.told.remove(lease)).flatten().collect()
        };
        if !told.is_empty() {
            tracing::warn!("a lease was lost: its turn is stopped here");
        }
        told.into_iter().for_each(|lost| lost());
    }

    fn renew_all(&self) {
        let mut link: Option<Link> = None;
        let mut due = Instant::now() + RENEW_EVERY;
        while self.until_needed() {
            if let Some(left) = due.checked_duration_since(Instant::now()) {
                thread::sleep(left.min(LOOK_EVERY));
                continue;
            }
            let asked = boottime();
            let wanted = locked(&self.state).own.to_renew(asked);
            if wanted.is_empty() {
                due = Instant::now() + LOOK_EVERY;
                continue;
            }
            due = Instant::now() + RETRY_AFTER;
            let Some(connected) = link.take().filter(|link| !link.is_broken()).or_else(|| self.link()) else {
                continue;
            };
            match self.renew(&connected, &wanted) {
                Ok(renewed) => {
                    due = Instant::now() + RENEW_EVERY;
                    locked(&self.state).own.answered(asked, &wanted, &renewed);
                    self.tell_lost();
                    link = Some(connected);
                }
                Err(failure) => tracing::warn!("leases were not renewed: {}", self.base.target.error(failure)),
            }
        }
    }

    fn link(&self) -> Option<Link> {
        let link = self.base.connect().ok()?.with_patience(RENEW_PATIENCE);
        let millis = RENEW_PATIENCE.as_millis();
        link.script(&format!("SET lock_timeout = {millis}; SET statement_timeout = {millis}")).ok()?;
        Some(link)
    }

    /// One statement for all.
    fn renew(&self, db: &dyn Db, wanted: &[(i64, Fence)]) -> Result<Vec<(i64, Fence)>, Failure> {
        let (now, time) = (now_ms(db.dialect()), LEASE_TIME.as_millis());
        let fences: Vec<String> = wanted.iter().map(|(_, fence)| fence.to_string()).collect();
        let sql = format!(
            "UPDATE leases SET expires_ms = {now} + {time} WHERE owner = ?1 AND expires_ms > {now} \
             AND fence = ANY (string_to_array(?2, ',')::bigint[]) RETURNING place, fence"
        );
        db.all(&sql, &[(&self.me.token).into(), fences.join(",").into()], |row| Ok((row.int("place")?, fence(row)?)))
    }
}

fn fence(row: &dyn Columns) -> Result<Fence, Failure> {
    row.count("fence").map(Fence)
}
