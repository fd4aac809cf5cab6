//! Events, executions and audit chains as values.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use pintle_domain::audit::{AuditCheckpoint, AuditEntry, AuditKind, ChainHead, cut_at, due};
use pintle_domain::execution::Execution;
use pintle_domain::id::TenantId;
use pintle_domain::identity::Identity;
use pintle_domain::json::{Object, canonical};
use pintle_domain::record::EventRecord;
use pintle_domain::store::{ExecutionQuery, SessionKey, StoreError, StoredTurn, TenantScope};
use pintle_domain::verdict::VerdictKind;
use uuid::Uuid;

use super::{MAX_ENTRIES, MAX_EVENTS, MAX_EXECUTIONS};
use crate::evidence::{EventEvidence, ExecutionRow, Note, SealedTexts, executed, fit_session, note, traces};
use crate::keyring::signing::SigningKey;
use crate::rows::executions::place;
use crate::sealing::StoreKeys;

/// The tables that one mutex guards: each method is one transaction.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The engine's own records: they become rows when somebody looks, so that keeping costs next to nothing.
    pub(super) events: VecDeque<EventRecord>,
    /// How many of the newest events left no traces yet, for the same reason.
    untraced: usize,
    /// In the order of keeping.
    executions: VecDeque<ExecutionRow>,
    /// The keys of those.
    known: HashSet<String>,
    chains: BTreeMap<TenantId, Chain>,
    pub(super) sealing: StoreKeys,
}

#[derive(Debug)]
struct Chain {
    entries: VecDeque<AuditEntry>,
    checkpoints: Vec<AuditCheckpoint>,
    end: ChainHead,
    /// Since when there is an entry that is not signed.
    since: Instant,
}

impl History {
    pub(super) fn new(sealing: StoreKeys) -> Self {
        Self { sealing, ..Self::default() }
    }

    pub(super) fn push(&mut self, records: Vec<EventRecord>) {
        self.untraced += records.len();
        self.events.extend(records);
        let too_many = self.events.len().saturating_sub(MAX_EVENTS);
        if too_many > 0 {
            // None goes without its traces.
            if too_many > self.events.len() - self.untraced {
                self.trace();
            }
            self.events.drain(..too_many);
        }
    }

    /// Does for all events what a database does in their transaction.
    pub(super) fn trace(&mut self) {
        let from = self.events.len() - std::mem::take(&mut self.untraced);
        // Each is a batch of its own here, so that one that cannot be kept does no harm to others.
        let fresh: Vec<Result<Vec<EventEvidence>, StoreError>> = self.events.make_contiguous()[from..]
            .chunk_by(|a, b| a.who.turn_id == b.who.turn_id && a.who.tool_call_id == b.who.tool_call_id)
            .map(|batch| traces(batch, &self.sealing))
            .collect();
        for traces in fresh {
            match traces {
                Ok(traces) => traces.into_iter().for_each(|traces| self.take(traces)),
                Err(why) => tracing::error!("security.hook.audit_write_failed: {why}"),
            }
        }
    }

    fn take(&mut self, traces: EventEvidence) {
        traces.executions.into_iter().for_each(|executed| self.take_execution(executed));
        if let Some(note) = traces.decision {
            self.append(&note);
        }
    }

    fn take_execution(&mut self, executed: ExecutionRow) {
        let id = executed.execution.id.clone();
        let key = executed.execution.dedup_key.clone();
        if self.known.contains(&id) || key.as_ref().is_some_and(|key| self.known.contains(key)) {
            return;
        }
        self.known.insert(id);
        self.known.extend(key);
        self.append(&executed.note);
        self.executions.push_back(executed);
        if self.executions.len() > MAX_EXECUTIONS
            && let Some(gone) = self.executions.pop_front()
        {
            self.unlearn(&gone.execution);
        }
    }

    fn unlearn(&mut self, gone: &Execution) {
        self.known.remove(&gone.id);
        if let Some(key) = &gone.dedup_key {
            self.known.remove(key);
        }
    }

    pub(super) fn keep(&mut self, executions: Vec<Execution>) -> Result<(), StoreError> {
        let executions: Result<Vec<_>, _> = executions.into_iter().map(|it| executed(it, &self.sealing)).collect();
        let executions = executions?;
        self.trace();
        executions.into_iter().for_each(|executed| self.take_execution(executed));
        Ok(())
    }

    /// Appends an entry about `data` to the chain of `tenant`.
    pub(super) fn note(
        &mut self,
        tenant: &TenantId,
        at: Timestamp,
        kind: AuditKind,
        data: Object,
    ) -> Result<(), StoreError> {
        let note = note(tenant, at, kind, &canonical(&data.into()))?;
        self.trace();
        self.append(&note);
        Ok(())
    }

    fn append(&mut self, note: &Note) {
        let now = Instant::now();
        let chain = self.chains.entry(note.draft.tenant_id().clone()).or_insert_with(|| Chain::new(now));
        match note.draft.append(&chain.end) {
            Ok((entry, end)) => chain.extend(entry, end, now, self.sealing.signing.as_ref()),
            Err(why) => tracing::error!("security.hook.audit_write_failed: {why}"),
        }
    }

    pub(super) fn executions(&mut self, query: &ExecutionQuery) -> Result<Vec<Execution>, StoreError> {
        let after = query.after.as_ref().map(|(at, id)| place(at, id)).transpose()?;
        self.trace();
        let session = query.session.as_deref().map(fit_session);
        let wanted = |it: &&Execution| {
            is_theirs(&query.tenant, &it.tenant_id)
                && query
                    .hook
                    .as_ref()
                    .is_none_or(|hook| is_same(hook.as_str(), it.hook_id.as_ref().map(|id| id.as_str())))
                && query.agent.as_ref().is_none_or(|agent| is_same(agent, it.agent_id.as_deref()))
                && query.name.as_ref().is_none_or(|name| *name == it.hook_name)
                && query.event.is_none_or(|event| event == it.event)
                && query.decision.is_none_or(|decision| decision == it.decision)
                && session.as_ref().is_none_or(|session| Some(session) == it.session_id.as_ref())
                && query.since.is_none_or(|since| it.created_at >= since)
                && query.until.is_none_or(|until| it.created_at < until)
                && after.as_ref().is_none_or(|(at, id)| (it.created_at, &it.id) < (*at, id))
        };
        let mut found: Vec<&Execution> = self.executions.iter().map(|it| &it.execution).filter(wanted).collect();
        found.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        Ok(found.into_iter().take(query.limit).cloned().collect())
    }

    /// The owner of the newest turn of `session` that is not a test.
    pub(super) fn last_turn_of(&self, session: &str) -> Option<Identity> {
        let of_session = |event: &&EventRecord| !event.who.is_test && event.who.session_id.as_str() == session;
        // As numbers of turns go: by the first record of each.
        let mut newest: Option<&EventRecord> = None;
        for event in self.events.iter().filter(of_session) {
            if newest.is_none_or(|known| !is_one_turn(&known.who, &event.who))
                && self.first_of(&event.who).is_some_and(|first| std::ptr::eq(first, event))
            {
                newest = Some(event);
            }
        }
        newest.map(|event| event.who.clone())
    }

    fn first_of(&self, who: &Identity) -> Option<&EventRecord> {
        self.events.iter().find(|event| is_one_turn(&event.who, who))
    }

    /// The newest `limit` turns that are no tests, newest first; `prompt` says how the prompt of one begins.
    pub(super) fn turns(
        &self,
        tenant: Option<&TenantId>,
        since: Option<Timestamp>,
        limit: usize,
        prompt: impl Fn(&SessionKey, &str) -> Option<String>,
    ) -> Vec<StoredTurn> {
        let mut found: Vec<(&EventRecord, TurnCounts<'_>)> = Vec::new();
        for event in self.events.iter().filter(|event| !event.who.is_test) {
            let known = found.iter().position(|(first, ..)| is_one_turn(&first.who, &event.who));
            let place = known.unwrap_or_else(|| {
                found.push((event, TurnCounts::default()));
                found.len() - 1
            });
            found[place].1.add(event);
        }
        let wanted = |(first, _): &&(&EventRecord, TurnCounts<'_>)| {
            tenant.is_none_or(|tenant| first.who.tenant_id == *tenant) && since.is_none_or(|since| first.at >= since)
        };
        let line = |(first, counts): &(&EventRecord, TurnCounts<'_>)| {
            let who = &first.who;
            let key = SessionKey { tenant: who.tenant_id.clone(), session: who.session_id.clone() };
            StoredTurn {
                turn_id: who.turn_id.to_string(),
                tenant_id: who.tenant_id.to_string(),
                session_id: who.session_id.to_string(),
                agent_id: who.agent_id.to_string(),
                began: first.at.to_string(),
                prompt: prompt(&key, who.turn_id.as_str()).filter(|prompt| !prompt.is_empty()),
                calls: counts.calls.len() as u64,
                refused: counts.refused.len() as u64,
                waiting: counts.asked.difference(&counts.done).count() as u64,
            }
        };
        found.iter().rev().filter(wanted).take(limit).map(line).collect()
    }

    pub(super) fn forget_events(&mut self, before: Timestamp, limit: usize) -> usize {
        self.trace();
        let (mut gone, mut seen) = (0, 0);
        self.events.retain(|event| {
            let is_old = seen < limit && event.at < before;
            seen += 1;
            gone += usize::from(is_old);
            !is_old
        });
        gone
    }

    pub(super) fn execution(&mut self, of: &TenantScope, id: &str) -> Option<ExecutionRow> {
        self.trace();
        let is_it = |it: &&ExecutionRow| is_theirs(of, &it.execution.tenant_id) && is_same(id, Some(&it.execution.id));
        self.executions.iter().find(is_it).cloned()
    }

    pub(super) fn forget(&mut self, rows_before: Timestamp, details_before: Timestamp, limit: usize) -> usize {
        self.trace();
        let mut ages: Vec<(Timestamp, String)> =
            self.executions.iter().map(|it| (it.execution.created_at, it.execution.id.clone())).collect();
        ages.sort();
        let old = |before, limit| ages.iter().filter(move |(at, _)| *at < before).take(limit).map(|(_, id)| id);
        let gone: HashSet<&String> = old(rows_before, limit).collect();
        let (gone, kept): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.executions).into_iter().partition(|it| gone.contains(&it.execution.id));
        self.executions = kept;
        gone.iter().for_each(|it| self.unlearn(&it.execution));
        let mut oldest: Vec<&mut ExecutionRow> = self.executions.iter_mut().filter(|it| !it.sealed.is_none()).collect();
        oldest.sort_by_key(|it| it.execution.created_at);
        let old = oldest.into_iter().filter(|it| it.execution.created_at < details_before).take(limit);
        gone.len() + old.map(|it| it.sealed = SealedTexts::default()).count()
    }

    pub(super) fn entries(&mut self, tenant: &TenantId, from_seq: u64, limit: usize) -> Vec<AuditEntry> {
        self.trace();
        let entries = self.chains.get(tenant).map(|chain| &chain.entries);
        entries.into_iter().flatten().filter(|entry| entry.seq >= from_seq).take(limit).cloned().collect()
    }

    pub(super) fn checkpoints(&mut self, tenant: &TenantId, from_seq: u64, limit: usize) -> Vec<AuditCheckpoint> {
        self.trace();
        let points = self.chains.get(tenant).map(|chain| &chain.checkpoints);
        points.into_iter().flatten().filter(|point| point.seq >= from_seq).take(limit).cloned().collect()
    }

    pub(super) fn last_checkpoint(&mut self, tenant: &TenantId) -> Option<AuditCheckpoint> {
        self.trace();
        self.chains.get(tenant)?.checkpoints.last().cloned()
    }

    pub(super) fn audited(&mut self) -> Vec<TenantId> {
        self.trace();
        let has_entries = self.chains.iter().filter(|(_, chain)| !chain.entries.is_empty());
        has_entries.map(|(tenant, _)| tenant.clone()).collect()
    }

    pub(super) fn forget_audit(&mut self, tenant: &TenantId, before: Timestamp, limit: usize) -> usize {
        self.trace();
        let Some(chain) = self.chains.get_mut(tenant) else { return 0 };
        let Some(first) = chain.entries.front().map(|entry| entry.seq) else { return 0 };
        cut_at(&chain.checkpoints, (first, before), limit).map_or(0, |seq| chain.cut(seq))
    }
}

/// Whether both act in one turn, as the same agent in the same session.
pub(super) fn is_one_turn(a: &Identity, b: &Identity) -> bool {
    (&a.turn_id, &a.session_id, &a.agent_id, &a.tenant_id, a.is_test)
        == (&b.turn_id, &b.session_id, &b.agent_id, &b.tenant_id, b.is_test)
}

/// Whether `wanted`, however it is written, is the UUID `id`.
/// Whether the rows of `tenant` are wanted, in whichever spelling.
fn is_theirs(of: &TenantScope, tenant: &TenantId) -> bool {
    of.one().is_none_or(|one| is_same(one.as_str(), Some(tenant.as_str())))
}

fn is_same(wanted: &str, id: Option<&str>) -> bool {
    Uuid::parse_str(wanted).ok().is_some_and(|wanted| id == Some(&wanted.to_string()))
}

impl Chain {
    fn new(now: Instant) -> Self {
        Self { entries: VecDeque::new(), checkpoints: Vec::new(), end: ChainHead::GENESIS, since: now }
    }

    fn extend(&mut self, entry: AuditEntry, end: ChainHead, now: Instant, signing: Option<&Arc<SigningKey>>) {
        let signed = self.checkpoints.last().map_or(0, |point| point.seq);
        if signed >= self.end.seq {
            self.since = now;
        }
        let tenant = entry.tenant_id.clone();
        self.entries.push_back(entry);
        self.end = end;
        let Some(signing) = signing else {
            // Nobody could prove what is cut off, nor what stays.
            self.entries.drain(..self.entries.len().saturating_sub(MAX_ENTRIES));
            return;
        };
        if due(end.seq - signed, now.saturating_duration_since(self.since)) {
            self.checkpoints.push(signing.checkpoint(&tenant, &end, Timestamp::now()));
        }
        if self.entries.len() > MAX_ENTRIES {
            let keep_from = end.seq - MAX_ENTRIES as u64 / 2;
            if let Some(seq) = self.checkpoints.iter().map(|point| point.seq).find(|seq| *seq >= keep_from) {
                self.cut(seq);
            }
        }
    }

    /// Forgets the entries up to `seq`, for which a checkpoint stands. Says how many.
    fn cut(&mut self, seq: u64) -> usize {
        self.checkpoints.retain(|point| point.seq >= seq);
        let gone = self.entries.partition_point(|entry| entry.seq <= seq);
        self.entries.drain(..gone).count()
    }
}

/// What calls of one turn came to.
#[derive(Default)]
struct TurnCounts<'a> {
    calls: BTreeSet<&'a str>,
    refused: BTreeSet<&'a str>,
    /// A person was asked about them.
    asked: BTreeSet<&'a str>,
    /// They were decided.
    done: BTreeSet<&'a str>,
}

impl<'a> TurnCounts<'a> {
    fn add(&mut self, event: &'a EventRecord) {
        let call = event.who.tool_call_id.as_ref().map(|call| call.as_str());
        self.calls.extend(call);
        let call = call.unwrap_or_default();
        if event.ruling.word == VerdictKind::Ask {
            self.asked.insert(call);
        } else if event.ruling.stops() {
            self.refused.insert(call);
            self.done.insert(call);
        } else if event.ruling.permit.is_some() || event.ruling.word == VerdictKind::Respond {
            self.done.insert(call);
        }
    }
}
