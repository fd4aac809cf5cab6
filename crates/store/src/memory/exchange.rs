//! What a gateway keeps beside conversations, as values.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use pintle_domain::id::{TenantId, TurnId};
use pintle_domain::store::{Repeat, RepeatName, RepeatStore, SessionKey, StoreError, Upload, UploadStore};

use super::Memory;

/// Uploads, requests and texts. Each method is one transaction.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    uploads: BTreeMap<String, (Upload, Vec<u8>)>,
    repeats: BTreeMap<RepeatName, Repeat>,
    passed: BTreeMap<String, Timestamp>,
}

impl Exchange {
    /// Forgets what belongs to a session.
    pub(super) fn forget_session(&mut self, key: &SessionKey) {
        self.uploads.retain(|_, (it, _)| it.tenant != key.tenant || it.session.as_ref() != Some(&key.session));
        self.repeats.retain(|name, _| name.session != *key);
    }

    fn owned(&self, tenant: &TenantId, id: &str) -> Option<&(Upload, Vec<u8>)> {
        self.uploads.get(id).filter(|(upload, _)| upload.tenant == *tenant)
    }
}

impl UploadStore for Memory {
    fn keep_upload(&self, upload: &Upload, content: &[u8], quota_bytes: u64) -> Result<bool, StoreError> {
        let mut exchange = self.exchange();
        let of_tenant = exchange.uploads.values().filter(|(it, _)| it.tenant == upload.tenant);
        let taken: u64 = of_tenant.map(|(it, _)| it.size_bytes).sum();
        let room = taken.saturating_add(upload.size_bytes) <= quota_bytes;
        if room {
            exchange.uploads.insert(upload.id.clone(), (upload.clone(), content.to_vec()));
        }
        Ok(room)
    }

    fn upload(&self, tenant: &TenantId, id: &str) -> Result<Option<Upload>, StoreError> {
        Ok(self.exchange().owned(tenant, id).map(|(upload, _)| upload.clone()))
    }

    fn upload_content(&self, tenant: &TenantId, id: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.exchange().owned(tenant, id).map(|(_, content)| content.clone()))
    }

    fn take_upload(&self, session: &SessionKey, id: &str, user: &str) -> Result<bool, StoreError> {
        let mut exchange = self.exchange();
        let found = exchange.uploads.get_mut(id).filter(|(upload, _)| upload.tenant == session.tenant);
        let Some((upload, _)) = found else { return Ok(false) };
        let theirs = match &upload.session {
            Some(taken) => *taken == session.session,
            None => upload.user == user,
        };
        if theirs {
            upload.session = Some(session.session.clone());
        }
        Ok(theirs)
    }

    fn forget_uploads(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let mut exchange = self.exchange();
        let old = |(upload, _): &(Upload, Vec<u8>)| upload.session.is_none() && upload.created_at < before;
        let gone: Vec<String> =
            exchange.uploads.iter().filter(|(_, it)| old(it)).take(limit).map(|(id, _)| id.clone()).collect();
        gone.iter().for_each(|id| drop(exchange.uploads.remove(id)));
        Ok(gone.len())
    }
}

impl RepeatStore for Memory {
    fn begin_repeat(&self, name: &RepeatName, new: &Repeat, since: Timestamp) -> Result<Option<Repeat>, StoreError> {
        let mut exchange = self.exchange();
        if let Some(earlier) = exchange.repeats.get(name).filter(|it| it.began_at >= since) {
            return Ok(Some(earlier.clone()));
        }
        exchange.repeats.insert(name.clone(), new.clone());
        Ok(None)
    }

    fn repeat(&self, name: &RepeatName, since: Timestamp) -> Result<Option<Repeat>, StoreError> {
        Ok(self.exchange().repeats.get(name).filter(|it| it.began_at >= since).cloned())
    }

    fn end_repeats(&self, tenant: &TenantId, turn_id: &TurnId, outcome: Option<&str>) -> Result<(), StoreError> {
        let mut exchange = self.exchange();
        let open = |name: &RepeatName, it: &Repeat| {
            name.session.tenant == *tenant && it.turn_id == *turn_id && it.outcome.is_none()
        };
        match outcome {
            Some(outcome) => {
                let of_turn = exchange.repeats.iter_mut().filter(|(name, it)| open(name, it));
                of_turn.for_each(|(_, it)| it.outcome = Some(outcome.to_owned()));
            }
            None => exchange.repeats.retain(|name, it| !open(name, it)),
        }
        Ok(())
    }

    fn forget_repeat(&self, name: &RepeatName) -> Result<(), StoreError> {
        self.exchange().repeats.remove(name);
        Ok(())
    }

    fn forget_repeats(&self, before: Timestamp, _limit: usize) -> Result<usize, StoreError> {
        let mut exchange = self.exchange();
        let count = |exchange: &Exchange| exchange.repeats.len() + exchange.passed.len();
        let were = count(&exchange);
        exchange.repeats.retain(|_, it| it.began_at >= before);
        exchange.passed.retain(|_, at| *at >= before);
        Ok(were - count(&exchange))
    }

    fn remember_passed(&self, codes: &[String], at: Timestamp) -> Result<(), StoreError> {
        self.exchange().passed.extend(codes.iter().map(|code| (code.clone(), at)));
        Ok(())
    }

    fn passed(&self, codes: &[String], since: Timestamp) -> Result<BTreeSet<String>, StoreError> {
        let exchange = self.exchange();
        let fresh = |code: &&String| exchange.passed.get(*code).is_some_and(|at| *at >= since);
        Ok(codes.iter().filter(fresh).cloned().collect())
    }
}
