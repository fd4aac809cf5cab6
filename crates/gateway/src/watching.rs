//! Sees to it that what is taken away from somebody is gone at once, on every node: who may what is looked at again
//! whenever the store counts a change, and connections of whoever may less by now are closed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use pintle_domain::id::{TenantId, TurnId};
use pintle_domain::session::Session;
use pintle_domain::store::{ApprovalQuery, SessionKey, TenantScope};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::Shared;
use crate::among_nodes::{Alone, MAX_QUESTIONS};
use crate::error::{ApiError, ErrorCode};
use crate::hub::{Connection, Guest};
use crate::model_doors::HELD;
use crate::principal::{Credential, Principal};
use crate::quotas::{KEEP_EVERY, KEPT};
use crate::run::Run;
use crate::session_name::SessionName;
use crate::sign_in::{IDLE, LONGEST, Registry};

/// How often the store is asked whether something was taken away. Source: revoking is in force within a second.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How often turns that somebody asked for with an API key are looked at: nobody counts that a key expires.
const KEYS_EVERY: Duration = Duration::from_secs(5);

/// How often what is too old is forgotten, and what users did long ago: rates are counted by the minute.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// How long what was spent at doors on a day is kept: longer than any clock is wrong that somebody still serves by.
const SPENT_FOR: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Watches until connections are closed.
pub(crate) async fn watch(shared: Arc<Shared>) {
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut seen, mut kept, mut swept) = (None, Instant::now(), Instant::now());
    let mut asked = Instant::now();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shared.guests.changed.notified() => {}
            () = shared.life.hard_stop.cancelled() => break,
        }
        let with_keys = asked.elapsed() >= KEYS_EVERY;
        if with_keys {
            asked = Instant::now();
        }
        match shared.look_at_all(seen, with_keys).await {
            Ok(epoch) => seen = Some(epoch),
            Err(error) => tracing::debug!(%error, "who may what cannot be looked at"),
        }
        if kept.elapsed() >= KEEP_EVERY {
            kept = Instant::now();
            let now = Timestamp::now();
            shared.keep_quotas(now + KEPT, now + HELD).await;
        }
        if swept.elapsed() >= SWEEP_EVERY {
            swept = Instant::now();
            shared.sweep().await;
        }
    }
    // Nothing of this node counts any more.
    let now = Timestamp::now();
    shared.keep_quotas(now, now).await;
}

/// Turns that may not go on.
#[derive(Default)]
struct OverTurns {
    /// Those that are still to be ended.
    turns: Vec<(SessionKey, TurnId)>,
    /// Why one could not be looked at, or ended.
    failed: Option<ApiError>,
}

impl OverTurns {
    fn fails(&mut self, key: &SessionKey, error: ApiError) {
        tracing::warn!(session = %key.session, tenant = %key.tenant, %error, "whether a turn may go on is not known yet");
        self.failed.get_or_insert(error);
    }
}

impl Shared {
    /// Looks at everybody, and at what they asked for: at that also where nobody counted anything, if it is `with_keys`.
    async fn look_at_all(self: &Arc<Self>, seen: Option<u64>, with_keys: bool) -> Result<u64, ApiError> {
        let epoch = self.look_for_changes(seen).await?;
        let changed = seen != Some(epoch);
        if changed || with_keys {
            self.end_turns(changed).await?;
        }
        Ok(epoch)
    }

    /// Looks at everybody again if the store counts another number than `seen`, and at those whose time is over.
    async fn look_for_changes(self: &Arc<Self>, seen: Option<u64>) -> Result<u64, ApiError> {
        let now = Timestamp::now();
        self.blocking(move |shared| {
            let ended = shared.guests.quotas.ended();
            if !ended.is_empty() {
                let written = shared.store.end_uses(&ended);
                written.inspect_err(|_| shared.guests.quotas.not_ended(ended))?;
            }
            let epoch = shared.store.identity_epoch()?;
            let changed = seen != Some(epoch);
            let is_due = |who: &Principal| changed || who.until.is_some_and(|until| until <= now);
            // Whoever is not here yet looks again by themselves once they are.
            let (mut connections, mut guests) = (shared.hub.all(), shared.hub.guests());
            connections.retain(|it| is_due(&it.who));
            guests.retain(|it| is_due(&it.who));
            if !changed && connections.is_empty() && guests.is_empty() {
                return Ok(epoch);
            }
            let asked_for = |connection: Arc<Connection>| Box::new(connection) as Box<dyn LetIn>;
            let due = connections.into_iter().map(asked_for);
            let due = due.chain(guests.into_iter().map(|guest| Box::new(guest) as Box<dyn LetIn>)).collect();
            shared.look_again(due).map(|()| epoch)
        })
        .await
    }

    /// Closes what is no longer anybody's of `due`.
    fn look_again(&self, due: Vec<Box<dyn LetIn>>) -> Result<(), ApiError> {
        let registry = Registry::read(&self.guests.known_by, &*self.store, Timestamp::now())?;
        let mut known: BTreeMap<(TenantId, String, Credential), Option<Principal>> = BTreeMap::new();
        for connection in due {
            let who = connection.who();
            let place = (who.tenant.clone(), who.user.clone(), who.credential.clone());
            let now = match known.get(&place) {
                Some(now) => now.clone(),
                None => again(&registry, who)?,
            };
            let stays = now.as_ref().is_some_and(|now| connection.stays_as(now));
            known.insert(place, now);
            if !stays {
                tracing::info!(user = %who.user, tenant = %who.slug, "security.connection_revoked");
                connection.revoke();
            }
        }
        Ok(())
    }

    /// Ends the turns of those who may no longer ask for them: `all`, those included that wait and that nobody works, or
    /// those only that somebody asked for with a key.
    async fn end_turns(self: &Arc<Self>, all: bool) -> Result<(), ApiError> {
        let found = self.blocking(move |shared| {
            let registry = Registry::read(&shared.guests.known_by, &*shared.store, Timestamp::now())?;
            let working = shared.runs_over(&registry, all);
            Ok((working, if all { shared.parked_over(&registry)? } else { OverTurns::default() }))
        });
        let (working, parked) = found.await?;
        for (key, turn) in parked.turns {
            self.work_alone(&key, Alone::Stopped(turn)).await;
        }
        // What could not be looked at is looked at again, after the others have ended.
        working.failed.or(parked.failed).map_or(Ok(()), Err)
    }

    /// Cancels the runs of this node that may not go on, of `all` or of those with a key. What persons are asked about
    /// them is void. One that cannot be looked at keeps no other going. What somebody said into a run goes like that.
    fn runs_over(&self, registry: &Registry<'_>, all: bool) -> OverTurns {
        let mut over = OverTurns::default();
        for run in self.lanes.all() {
            take_back(registry, &run, all).unwrap_or_else(|error| over.fails(&run.key, error));
            let keys = run.keys();
            if !all && keys.is_empty() {
                continue;
            }
            let ended = registry.why_over(&run.key.tenant, &run.name.user, &keys).and_then(|why| {
                let Some(why) = why else { return Ok(()) };
                run.handle.cancel();
                self.is_over(&run.key, why)
            });
            ended.unwrap_or_else(|error| over.fails(&run.key, error));
        }
        over
    }

    /// The turns that wait for a person, that nobody works here, and that may not go on. What persons are asked about
    /// them is void.
    fn parked_over(&self, registry: &Registry<'_>) -> Result<OverTurns, ApiError> {
        let waiting = self.store.approvals(&ApprovalQuery::waiting(TenantScope::All, MAX_QUESTIONS))?;
        let waiting = waiting.into_iter().map(|it| SessionKey { tenant: it.tenant_id, session: it.session_id });
        let mut over = OverTurns::default();
        for key in waiting.collect::<BTreeSet<_>>() {
            match self.parked_is_over(registry, &key) {
                Ok(turn) => over.turns.extend(turn.map(|turn| (key, turn))),
                Err(error) => over.fails(&key, error),
            }
        }
        Ok(over)
    }

    /// The turn of the session `key` that waits, that nobody works here, that may not go on and that this node may end.
    fn parked_is_over(&self, registry: &Registry<'_>, key: &SessionKey) -> Result<Option<TurnId>, ApiError> {
        let name = SessionName::kept(key.session.as_str()).filter(|_| self.lanes.of(key).is_none());
        let Some(name) = name else { return Ok(None) };
        let session = Session::fold(self.sessions.journal(key)?);
        let Some(turn) = session.open().map(|open| open.turn_id.clone()) else { return Ok(None) };
        let keys: BTreeSet<String> = session.asked_with().map(str::to_owned).into_iter().collect();
        let Some(why) = registry.why_over(&key.tenant, &name.user, &keys)? else { return Ok(None) };
        self.is_over(key, why)?;
        // Where its files are elsewhere, that node ends it.
        let is_here = self.life.nodes.may_have(&name, self.sessions.last_node(key)?.as_deref()).is_ok();
        Ok(Some(turn).filter(|_| is_here && !self.life.draining.is_cancelled()))
    }

    /// What persons are asked about the turn of a session is void, and says `why`.
    fn is_over(&self, key: &SessionKey, why: &str) -> Result<(), ApiError> {
        tracing::info!(session = %key.session, tenant = %key.tenant, "security.turn_ended: {why}");
        Ok(self.store.void_session(key, Some(why))?)
    }

    /// Whether `who`, who is among the open connections now, is still who they were when they signed in.
    pub(crate) async fn is_still(self: &Arc<Self>, who: &Principal) -> Result<bool, ApiError> {
        let who = who.clone();
        self.blocking(move |shared| {
            let registry = Registry::read(&shared.guests.known_by, &*shared.store, Timestamp::now())?;
            stays(&registry, &who)
        })
        .await
    }

    /// Why what `user` of `tenant` asked for, with these API `keys` where they had any, may not go on; nothing where it may.
    /// Blocks.
    pub(crate) fn why_over(
        &self,
        tenant: &TenantId,
        user: &str,
        keys: &BTreeSet<String>,
    ) -> Result<Option<&'static str>, ApiError> {
        Registry::read(&self.guests.known_by, &*self.store, Timestamp::now())?.why_over(tenant, user, keys)
    }

    /// Whether `key`, with which somebody asked for the turn that is open in the session of `run`, gives nothing any more.
    pub(crate) async fn is_key_gone(self: &Arc<Self>, run: &Run, key: Option<&str>) -> Result<bool, ApiError> {
        let Some(key) = key else { return Ok(false) };
        let (tenant, user, keys) = (run.key.tenant.clone(), run.name.user.clone(), BTreeSet::from([key.to_owned()]));
        self.blocking(move |shared| Ok(shared.why_over(&tenant, &user, &keys)?.is_some())).await
    }

    /// What this node has counts until `until`, and what it holds at doors until `held`.
    async fn keep_quotas(self: &Arc<Self>, until: Timestamp, held: Timestamp) {
        // What could not be counted is tried again.
        self.settle_spending().await;
        let kept = self.blocking(move |shared| {
            let node = &shared.guests.quotas.node;
            shared.store.keep_uses(node, until)?;
            Ok(shared.store.keep_spending_holds(node, held)?)
        });
        match kept.await {
            Ok(()) => {}
            // That is told of the store itself.
            Err(error) if error.code == ErrorCode::Unavailable => {
                tracing::debug!(%error, "quota use of this node could not be renewed");
            }
            Err(error) => tracing::warn!(%error, "quota use of this node could not be renewed"),
        }
    }

    async fn sweep(self: &Arc<Self>) {
        self.guests.rates.sweep();
        if let Err(error) = self.blocking(|shared| shared.forget_old()).await {
            tracing::debug!(%error, "what is old could not be forgotten");
        }
        let now = Timestamp::now();
        let used: Vec<Principal> = self.hub.all().into_iter().map(|it| it.who.clone()).collect();
        let swept = self.blocking(move |shared| {
            // Whoever is connected uses their session.
            for who in used {
                if let Credential::Console { session, .. } = &who.credential {
                    shared.store.console_session_seen(&who.tenant, session, now)?;
                }
            }
            // Nobody's today goes, also where this node's clock is days ahead.
            shared.store.forget_spending((now - SPENT_FOR).to_zoned(TimeZone::UTC).date())?;
            Ok(shared.store.forget_identities(now, (now - IDLE, now - LONGEST))?)
        });
        if let Err(error) = swept.await {
            tracing::debug!(%error, "what is too old stays for now");
        }
    }
}

/// Takes back what `run` has not heard of those who may no longer talk to it, of `all` or of those with a key.
fn take_back(registry: &Registry<'_>, run: &Run, all: bool) -> Result<(), ApiError> {
    for by in run.handle.steerers() {
        let keys: BTreeSet<String> = by.key.iter().cloned().collect();
        if !all && keys.is_empty() {
            continue;
        }
        if let Some(why) = registry.why_over(&run.key.tenant, &by.user, &keys)? {
            tracing::info!(session = %run.key.session, user = %by.user, "security.message_taken_back: {why}");
            run.handle.take_back(&by);
        }
    }
    Ok(())
}

/// Somebody who was let in, and may have to go.
trait LetIn {
    fn who(&self) -> &Principal;

    /// Whether they may stay as `now`: whoever is connected comes again where they may more, and a request does not.
    fn stays_as(&self, now: &Principal) -> bool;

    fn revoke(&self);
}

impl LetIn for Arc<Connection> {
    fn who(&self) -> &Principal {
        &self.who
    }

    fn stays_as(&self, now: &Principal) -> bool {
        now.may_as(&self.who)
    }

    fn revoke(&self) {
        Connection::revoke(self);
    }
}

impl LetIn for Arc<Guest> {
    fn who(&self) -> &Principal {
        &self.who
    }

    fn stays_as(&self, now: &Principal) -> bool {
        now.may_all_of(&self.who)
    }

    fn revoke(&self) {
        self.gone.cancel();
    }
}

/// Whether `who` still may exactly what they might when they came.
fn stays(registry: &Registry<'_>, who: &Principal) -> Result<bool, ApiError> {
    Ok(again(registry, who)?.is_some_and(|now| now.may_as(who)))
}

/// Who they are by now, if they may come in at all.
fn again(registry: &Registry<'_>, who: &Principal) -> Result<Option<Principal>, ApiError> {
    match registry.again(who) {
        Ok(now) => Ok(Some(now)),
        Err(error) if matches!(error.code, ErrorCode::Unauthorized | ErrorCode::TenantAccessRevoked) => Ok(None),
        Err(error) => Err(error),
    }
}
