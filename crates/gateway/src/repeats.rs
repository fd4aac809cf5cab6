//! Requests that name themselves, so that they may come a second time: one joins the run of the first, or gets what came of
//! it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pintle_domain::id::{SessionId, TenantId, TurnId};
use pintle_domain::json::{Value, canonical};
use pintle_domain::store::{RepeatName, SessionKey};
use pintle_store::Store;
use sha2::{Digest as _, Sha256};
use tokio_util::task::TaskTracker;

use crate::error::ApiError;
use crate::outcome::KeptOutcome;
use crate::principal::Principal;
use crate::run::Run;
use crate::session_name::SessionName;

/// Longest name of a request, in bytes: four times an UUID, and short enough for a line of a log.
const MAX_NAME_BYTES: usize = 255;

/// The beginning of the names of requests that were left because an approval was not answered in time; no client gives one
/// that begins so.
const PENDING: &str = "\u{0}pending:";

/// The requests whose runs are worked here, by the digests of their names.
pub(crate) struct Repeats {
    at_work: Mutex<HashMap<String, Arc<Run>>>,
    /// This process.
    pub(crate) owner: String,
}

impl Default for Repeats {
    fn default() -> Self {
        Self { at_work: Mutex::default(), owner: uuid::Uuid::now_v7().to_string() }
    }
}

/// A request that names itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: RepeatName,
    /// Of what it asks for.
    pub(crate) digest: String,
}

/// Where a request stands.
pub(crate) enum Standing {
    /// It came for the first time.
    New(Noted),
    /// It is worked.
    Works(Arc<Run>),
    /// This turn of its was left open, and nobody here works it: it waits for a person, or its process died.
    Left(TurnId),
    /// It is over.
    Over(Box<(TurnId, KeptOutcome)>),
}

/// The name of a request of which nothing began yet. Dropped, as by a client that hangs up, it is free again.
pub(crate) struct Noted {
    store: Arc<dyn Store>,
    tasks: TaskTracker,
    tenant: TenantId,
    /// The turn that it was noted for, until that begins.
    turn: Option<TurnId>,
}

impl Noted {
    /// `named`, noted for `turn` if that has not begun. The names of one that has begun are not to be freed, whatever
    /// becomes of this one: by another of them its request would be worked twice.
    pub(crate) fn new((store, tasks): (Arc<dyn Store>, TaskTracker), named: &Named, turn: Option<&TurnId>) -> Self {
        Self { store, tasks, tenant: named.name.session.tenant.clone(), turn: turn.cloned() }
    }

    /// Whoever has the turn sees to the name from now on.
    pub(crate) fn begun(mut self) {
        self.turn = None;
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        let (store, tenant) = (self.store.clone(), self.tenant.clone());
        self.tasks.spawn_blocking(move || {
            // By its turn: somebody else may have the name by now.
            if let Err(error) = store.end_repeats(&tenant, &turn, None) {
                tracing::warn!("the name of a request that never began could not be freed: {error}");
            }
        });
    }
}

impl Named {
    /// The request `key` of `who`, about `session` if the host keeps the conversation; `digest` is that of what it asks
    /// for.
    pub(crate) fn new(
        who: &Principal,
        session: Option<&SessionName>,
        key: &str,
        digest: String,
    ) -> Result<Self, ApiError> {
        if key.len() > MAX_NAME_BYTES || key.chars().any(char::is_control) {
            return Err(ApiError::invalid(format!(
                "the name of a request must have at most {MAX_NAME_BYTES} bytes and no control characters"
            )));
        }
        Ok(Self::of(who, session, key.to_owned(), digest))
    }

    /// The request of `who` in `session` whose prompt has the digest `prompt`, as long as its run waits for an approval.
    pub(crate) fn pending(who: &Principal, session: &SessionName, prompt: &str) -> Self {
        Self::of(who, Some(session), format!("{PENDING}{prompt}"), prompt.to_owned())
    }

    fn of(who: &Principal, session: Option<&SessionName>, key: String, digest: String) -> Self {
        let session = session.map_or_else(|| SessionId::from(""), SessionName::id);
        let session = SessionKey { tenant: who.tenant.clone(), session };
        Self { name: RepeatName { session, user: who.user.clone(), key }, digest }
    }
}

/// The digest of what is asked for.
pub(crate) fn digest_of(what: &Value) -> String {
    Sha256::digest(canonical(what).as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Repeats {
    pub(crate) fn at_work(&self) -> MutexGuard<'_, HashMap<String, Arc<Run>>> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `run` works the request.
    pub(crate) fn works(&self, named: &Named, run: &Arc<Run>) {
        self.at_work().insert(named.name.digest(), run.clone());
    }

    /// The run that works the request here.
    pub(crate) fn run_of(&self, named: &Named) -> Option<Arc<Run>> {
        self.at_work().get(&named.name.digest()).cloned()
    }

    /// Whether a request that named itself waits for what comes of `run`.
    pub(crate) fn is_named(&self, run: &Arc<Run>) -> bool {
        self.at_work().values().any(|other| Arc::ptr_eq(other, run))
    }

    /// `run` is over.
    pub(crate) fn over(&self, run: &Arc<Run>) {
        self.at_work().retain(|_, other| !Arc::ptr_eq(other, run));
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use pintle_domain::store::Repeat;
    use pintle_store::Memory;

    use super::*;

    #[tokio::test]
    async fn a_name_of_which_nothing_began_is_free_again_and_no_other() {
        let store: Arc<dyn Store> = Arc::new(Memory::new());
        let tasks = TaskTracker::new();
        let name = |key: &str| RepeatName {
            session: SessionKey { tenant: TenantId::default_tenant(), session: SessionId::from("") },
            user: "anna".into(),
            key: key.into(),
        };
        let named = |key: &str| Named { name: name(key), digest: "d".into() };
        let note = |key: &str, turn: &str| {
            let turn = TurnId::from(turn);
            let new = Repeat {
                digest: "d".into(),
                turn_id: turn.clone(),
                owner: "o".into(),
                began_at: Timestamp::UNIX_EPOCH,
                outcome: None,
            };
            assert_eq!(store.begin_repeat(&name(key), &new, Timestamp::MIN), Ok(None), "{key}");
            Noted::new((store.clone(), tasks.clone()), &named(key), Some(&turn))
        };
        let (hung_up, began) = (note("a", "t1"), note("b", "t2"));
        drop(hung_up);
        began.begun();
        tasks.close();
        tasks.wait().await;
        assert_eq!(store.repeat(&name("a"), Timestamp::MIN), Ok(None));
        assert!(store.repeat(&name("b"), Timestamp::MIN).is_ok_and(|found| found.is_some()));
        // Noted anew by somebody else, it is not theirs to lose.
        let late = Noted::new((store.clone(), tasks.clone()), &named("a"), Some(&TurnId::from("t1")));
        note("a", "t3").begun();
        drop(late);
        // A second name of the turn that began could not be noted.
        drop(Noted::new((store.clone(), tasks.clone()), &named("c"), None));
        tasks.wait().await;
        for kept in ["a", "b"] {
            assert!(store.repeat(&name(kept), Timestamp::MIN).is_ok_and(|found| found.is_some()), "{kept}");
        }
    }
}
