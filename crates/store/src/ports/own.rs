//! What only a store of this crate does.

use std::fmt;

use jiff::Timestamp;
use pintle_domain::id::{EventId, TenantId, TurnId};
use pintle_domain::json::Object;
use pintle_domain::node::NodeKeys;
use pintle_domain::rule::Rule;
use pintle_domain::store::{Actor, SessionKey, StoreError, StoredTurn, TurnPage, TurnQuery};

use crate::Store;
use crate::anchoring;
use crate::database::{Database, SqlStore};
use crate::keyring::Keyring;
use crate::rows::identity::{other_key, sealed_anew, seals};
use crate::rows::rotation::{self, RotationBatch, SealedColumn};
use crate::rows::{approvals, exchange, records};
use crate::timing::HookTiming;

impl<D: Database + fmt::Debug> Store for SqlStore<D> {
    fn hook_timings(&self, limit: usize) -> Result<Vec<HookTiming>, StoreError> {
        self.0.list(|db| records::hook_timings(db, limit))
    }

    fn turns(
        &self,
        tenant: Option<&TenantId>,
        since: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<StoredTurn>, StoreError> {
        self.0.list(|db| records::query::turns(db, tenant, since, limit))
    }

    fn turn_page(&self, query: &TurnQuery) -> Result<TurnPage, StoreError> {
        self.0.list(|db| records::turns::page(db, query))
    }

    fn forget_events(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.0.write(|db| records::forget(db, before, limit))
    }

    fn missing_events(&self, told: &[(EventId, Timestamp)]) -> Result<Vec<EventId>, StoreError> {
        self.0.list(|db| records::query::missing(db, told))
    }

    fn rotate(
        &self,
        what: SealedColumn,
        keyring: &Keyring,
        after: Option<&str>,
        limit: usize,
    ) -> Result<RotationBatch, StoreError> {
        self.0.write(|db| rotation::column(db, what, keyring, (after, limit)))
    }

    fn rotate_config(&self, before: &Rule, config: &Object) -> Result<bool, StoreError> {
        self.0.write(|db| rotation::config(db, before, config))
    }

    fn void_session(&self, key: &SessionKey, why: Option<&str>) -> Result<(), StoreError> {
        self.0.write(|db| approvals::void_session(db, key, why))
    }

    fn forget_session(&self, key: &SessionKey) -> Result<(), StoreError> {
        self.0.write(|db| exchange::forget_session(db, key))
    }

    fn decided_turns(&self, limit: usize) -> Result<Vec<(SessionKey, TurnId)>, StoreError> {
        self.0.read(|db| approvals::decided_turns(db, limit))
    }

    fn key_ids(&self) -> NodeKeys {
        let keys = self.0.sealing();
        let signing = keys.signing.as_ref().map(|key| key.kid().to_owned());
        let encryption = keys.keyring.as_ref().and_then(|keyring| keyring.kid().map(str::to_owned));
        NodeKeys { signing, encryption }
    }

    fn identity_doubts(&self) -> Result<Vec<String>, StoreError> {
        let doubts = self.0.list(|db| seals::doubts(db, self.0.sealing()))?;
        Ok(doubts.into_iter().map(|doubt| format!("{}; {}", doubt.text, doubt.remedy)).collect())
    }

    fn other_key(&self) -> Result<Option<String>, StoreError> {
        let key = self.0.sealing().change_key();
        let is_other = self.0.read(|db| other_key::is_other(db, key.as_ref()))?;
        Ok(is_other.then(other_key::sentence))
    }

    fn reseal_identities(&self, keyring: &Keyring) -> Result<(), StoreError> {
        let Some(key) = keyring.change_key() else { return Ok(()) };
        // What this machine sealed by itself, other nodes do not know.
        let key = self.0.sealing().signing.iter().fold(key, |key, own| key.and_older(own.change_key()));
        self.0.write(|db| sealed_anew::older(db, &key))
    }

    fn accept(&self, by: &Actor) -> Result<Vec<String>, StoreError> {
        anchoring::accept(&self.0, by)
    }

    fn check_pages(&self) -> Result<(), StoreError> {
        self.0.check_pages()
    }
}
