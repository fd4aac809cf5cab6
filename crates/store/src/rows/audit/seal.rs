//! When the end of a chain is signed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use pintle_domain::audit::{AuditCheckpoint, CHECKPOINT_EVERY, ChainHead, ChangeKey, due, due_at_stop};
use pintle_domain::id::TenantId;
use pintle_domain::store::StoreError;

use super::super::records::KnownRows;
use super::sealers::whose_seals;
use super::{ChainGrowth, audited, doubt, head, last_checkpoint, last_signed, lock_head, number};
use crate::anchor_file::AnchorFile;
use crate::db::{Db, Failure, moment};
use crate::keyring::ENV_KEYS;
use crate::keyring::signing::{ENV_SIGNING_KEY, SigningKey};
use crate::refusal::swallowed;
use crate::sealing::StoreKeys;

/// Most chains that are watched at once. A chain that is not watched any more is looked up again when it grows.
const MAX_WATCHED: usize = 10_000;

/// Most chains that are signed as the program stops, so that it does stop; those that are left out are signed when they
/// grow again.
const MAX_AT_STOP: usize = 1000;

/// Watches the chains that one writer appends to, and signs them in its transactions. What others sign meanwhile it does
/// not see: then there is a checkpoint more than need be.
#[derive(Debug)]
pub(crate) struct Sealer {
    signing: Option<Signer>,
    chains: HashMap<TenantId, Watched>,
    /// What was signed in the transaction that is under way, or in the last one.
    signed: Vec<(TenantId, ChainHead)>,
    /// What else the writer has written by now.
    pub(crate) known: KnownRows,
}

#[derive(Clone, Copy, Debug)]
struct Watched {
    /// The last row that is signed.
    signed: u64,
    /// The last row.
    end: u64,
    /// Since when there is a row that is not signed.
    since: Instant,
}

impl Watched {
    fn is_due(&self, now: Instant) -> bool {
        due(self.end.saturating_sub(self.signed), now.saturating_duration_since(self.since))
    }
}

impl Sealer {
    /// Signs with `signing`; without it, never.
    pub(crate) fn new(signing: Option<Signer>) -> Self {
        Self { signing, chains: HashMap::new(), signed: Vec::new(), known: KnownRows::default() }
    }

    /// Takes note of chains that have just grown, in their transaction, and signs those that are due. If the transaction
    /// comes to nothing, [`Self::forget`] has to be called.
    pub(crate) fn grown(&mut self, db: &dyn Db, grown: &[ChainGrowth], now: Instant) -> Result<(), Failure> {
        let Some(signing) = self.signing.clone() else { return Ok(()) };
        for ChainGrowth { tenant, from, to } in grown {
            let mut watched = match self.chains.get(tenant) {
                Some(watched) => *watched,
                None => first_sight(db, tenant, from, now)?,
            };
            if watched.signed >= watched.end {
                watched.since = now;
            }
            watched.end = to.seq;
            if watched.is_due(now) {
                match signing.sign(db, tenant, to)? {
                    true => {
                        self.signed.push((tenant.clone(), *to));
                        watched.signed = to.seq;
                    }
                    false => watched.since = now,
                }
            }
            if self.chains.len() >= MAX_WATCHED {
                self.chains.clear();
            }
            self.chains.insert(tenant.clone(), watched);
        }
        Ok(())
    }

    /// Remembers nothing: what was noted last is not so.
    pub(crate) fn forget(&mut self) {
        self.known.forget();
        self.chains.clear();
        self.signed.clear();
    }

    /// What was signed and is committed by now; once.
    pub(crate) fn take_signed(&mut self) -> Vec<(TenantId, ChainHead)> {
        std::mem::take(&mut self.signed)
    }

    /// How long until a chain is due if nothing comes; nothing if all are signed.
    pub(crate) fn due_in(&self, now: Instant) -> Option<Duration> {
        let open = self.chains.values().filter(|watched| watched.signed < watched.end);
        open.map(|watched| (watched.since + CHECKPOINT_EVERY).saturating_duration_since(now)).min()
    }

    /// Signs the chains that are due although they did not grow.
    pub(crate) fn tend(&mut self, db: &dyn Db, now: Instant) -> Result<(), Failure> {
        let Some(signing) = self.signing.clone() else { return Ok(()) };
        let waiting = self.chains.iter_mut().filter(|(_, watched)| watched.is_due(now));
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_by(|a, b| a.0.cmp(b.0));
        for (tenant, watched) in waiting {
            let end = lock_head(db, tenant)?;
            let signed = match signing.sign(db, tenant, &end)? {
                true => {
                    self.signed.push((tenant.clone(), end));
                    end.seq
                }
                false => watched.signed,
            };
            *watched = Watched { signed, end: end.seq, since: now };
        }
        Ok(())
    }
}

/// The state of a chain whose end was `end` and that nobody watched. Rows that somebody left unsigned are due.
fn first_sight(db: &dyn Db, tenant: &TenantId, end: &ChainHead, now: Instant) -> Result<Watched, Failure> {
    let signed = last_signed(db, tenant)?.map_or(0, |link| link.seq);
    let since = if signed < end.seq { now.checked_sub(CHECKPOINT_EVERY).unwrap_or(now) } else { now };
    Ok(Watched { signed, end: end.seq, since })
}

/// Signs chains that are what the anchor of their store knows, and no other: a signature says that rows are those that
/// were written.
#[derive(Clone, Debug)]
pub(crate) struct Signer {
    key: Arc<SigningKey>,
    anchor: Option<Arc<AnchorFile>>,
    /// What seals the entries about changes here.
    changes: Option<ChangeKey>,
}

impl Signer {
    /// What signs with `keys`; nothing if none of them does.
    pub(crate) fn of(keys: &StoreKeys) -> Option<Self> {
        let changes = keys.change_key();
        keys.signing.clone().map(|key| Self { key, anchor: keys.anchor.clone(), changes })
    }

    /// Signs the end of the chain of `tenant`, whose lock is held. Says whether it may.
    fn sign(&self, db: &dyn Db, tenant: &TenantId, end: &ChainHead) -> Result<bool, Failure> {
        let doubt = self.anchor.as_ref().map(|file| doubt(db, &file.now(), tenant)).transpose()?.flatten();
        if let Some(why) = doubt {
            // Each commit tries again, and a person reads it once.
            if self.anchor.as_ref().is_some_and(|file| file.is_news(&why)) {
                tracing::warn!("security.audit.not_sealed: {why}; nothing of it is signed until `pintle store accept`");
            }
            return Ok(false);
        }
        if self.is_strange(db, tenant)? {
            let why =
                format!("another host signs and seals the audit chain of tenant {tenant}, with keys unknown here");
            if self.anchor.as_ref().is_none_or(|file| file.is_news(&why)) {
                tracing::warn!(
                    "security.audit.not_sealed: {why}; nothing of it is signed here until `{}` and `{ENV_SIGNING_KEY}` are \
                     set as they are there",
                    ENV_KEYS[0]
                );
            }
            return Ok(false);
        }
        sign(db, &self.key, tenant, end)?;
        Ok(true)
    }

    /// Whether the chain is one of other hosts: none of them would know a signature that is made here.
    fn is_strange(&self, db: &dyn Db, tenant: &TenantId) -> Result<bool, Failure> {
        if last_checkpoint(db, tenant)?.is_none_or(|last| last.kid == self.key.kid()) {
            return Ok(false);
        }
        let seals = whose_seals(db, self.changes.as_ref())?;
        Ok(!seals.is_empty() && seals.iter().all(|is_ours| !is_ours))
    }
}

fn sign(db: &dyn Db, signing: &SigningKey, tenant: &TenantId, end: &ChainHead) -> Result<(), Failure> {
    let point: AuditCheckpoint = signing.checkpoint(tenant, end, Timestamp::now());
    let signature = STANDARD.decode(&point.signature).map_err(|_| {
        Failure::Said(StoreError::Unavailable("audit checkpoint could not be signed: no base64".into()))
    })?;
    // Another process may have signed the same row.
    let sql = "INSERT INTO audit_checkpoints (tenant_id, seq, hash, at, kid, signature) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING";
    let cells = [
        tenant.as_str().into(),
        number(point.seq),
        point.hash.to_string().into(),
        moment(point.at).into(),
        (&point.kid).into(),
        crate::db::Cell::Bytes(signature.into()),
    ];
    if db.run(sql, &cells)? == 0 && last_signed(db, tenant)?.is_none_or(|signed| signed.seq < end.seq) {
        return Err(swallowed("a signature of the audit chain", "audit_checkpoints"));
    }
    Ok(())
}

/// The chains with rows that are not signed, but for those beyond what is signed at once.
pub(crate) fn unsealed(db: &dyn Db) -> Result<Vec<TenantId>, Failure> {
    let mut found = Vec::new();
    for tenant in audited(db)? {
        let signed = last_signed(db, &tenant)?.map_or(0, |link| link.seq);
        if due_at_stop(head(db, &tenant)?.seq.saturating_sub(signed)) {
            found.push(tenant);
        }
        if found.len() == MAX_AT_STOP {
            break;
        }
    }
    Ok(found)
}

/// Signs the ends of `chains`, which stand in the order of their names, and says which these are.
pub(crate) fn seal_all(
    db: &dyn Db,
    signing: &Signer,
    chains: &[TenantId],
) -> Result<Vec<(TenantId, ChainHead)>, Failure> {
    let mut signed = Vec::with_capacity(chains.len());
    for tenant in chains {
        let end = lock_head(db, tenant)?;
        if signing.sign(db, tenant, &end)? {
            signed.push((tenant.clone(), end));
        }
    }
    Ok(signed)
}
