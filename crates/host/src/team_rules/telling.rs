//! Tells the gateway what the rules of its team did here. What is to be told stands in the history of this store: there
//! is no second queue. It is told at least once, and the gateway keeps each record once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use pintle_domain::execution::Execution;
use pintle_domain::id::HookId;
use pintle_domain::json::{Value, json, parse};
use pintle_domain::store::{ExecutionQuery, StoreError, TenantScope};
use pintle_rules::team::{MAX_RECORDS, MachineName, TeamRecord, is_of_team};
use tokio::time::sleep;

use super::TeamKeeper;
use super::asking::{GatewayClient, TellFault};
use super::kept::Told;

/// The pause between looks for something to tell.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// The longest pause after a failure.
const MOST: Duration = Duration::from_secs(30);

/// How much later than it happened a record may come into the store and still be told.
const LATE: SignedDuration = SignedDuration::from_secs(120);

/// What is older than this is told no more: a machine that was away for longer tells what is newer.
const OLDEST: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Most rows that are looked at together.
const MAX_ROWS: usize = 1000;

/// The name of this machine, where the system says it.
const HOSTNAME: &str = "/proc/sys/kernel/hostname";

/// What is to be told next.
#[derive(Debug, Default)]
struct Next {
    records: Vec<TeamRecord>,
    /// Until when everything is told once these are.
    until: Option<Timestamp>,
    /// Whether there is more.
    more: bool,
}

impl Told {
    /// From when on rows are looked at, since nothing before `since` was of the team.
    fn from(&self, since: Timestamp, now: Timestamp) -> Timestamp {
        let oldest = now.checked_sub(OLDEST).unwrap_or(Timestamp::MIN);
        let until = self.until.unwrap_or(since);
        until.checked_sub(LATE).unwrap_or(Timestamp::MIN).max(since).max(oldest)
    }

    /// Whether the record `id` was told.
    fn knows(&self, id: &str) -> bool {
        self.ids.iter().any(|(known, _)| known == id)
    }

    /// Notes that `records` are told, and everything until then.
    fn note(&mut self, records: &[TeamRecord], until: Timestamp) {
        self.ids.extend(records.iter().map(|record| (record.id.clone(), record.at)));
        self.until = Some(self.until.map_or(until, |before| before.max(until)));
        let kept = self.until.and_then(|until| until.checked_sub(LATE).ok()).unwrap_or(Timestamp::MIN);
        self.ids.retain(|(_, at)| *at >= kept);
    }
}

impl TeamKeeper {
    /// Tells until it is dropped.
    pub(super) async fn tell(self: &Arc<Self>, client: &GatewayClient) {
        let (mut told, mut failures, mut most) = (self.told(), 0_u32, MAX_RECORDS);
        let mut rules = BTreeMap::new();
        loop {
            let keeper = self.clone();
            let (asked, known) = (told.clone(), std::mem::take(&mut rules));
            let next = tokio::task::spawn_blocking(move || keeper.next(&asked, known, most)).await;
            let (next, known) = match next {
                Ok(Ok(next)) => next,
                Ok(Err(error)) => {
                    tracing::debug!("what is to be told to the gateway cannot be read: {error}");
                    (Next::default(), BTreeMap::new())
                }
                Err(_) => (Next::default(), BTreeMap::new()),
            };
            rules = known;
            let (more, outcome) = (next.more, self.send(client, &mut told, next).await);
            match outcome {
                Ok(()) => (failures, most) = (0, MAX_RECORDS),
                // One that alone is too long was passed over.
                Err(TellFault::TooLong) => most = (most / 2).max(1),
                Err(TellFault::Away(_) | TellFault::Refused(_)) => failures = failures.saturating_add(1),
            }
            match failures {
                0 if more || most < MAX_RECORDS => {}
                0 => sleep(LOOK_EVERY).await,
                _ => sleep((LOOK_EVERY * 2_u32.saturating_pow(failures.min(10))).min(MOST)).await,
            }
        }
    }

    fn told(&self) -> Told {
        self.folder.told().unwrap_or_else(|error| {
            tracing::warn!("what was told to the gateway is not known, so some is told again: {error}");
            Told::default()
        })
    }

    /// What is to be told after `told`, at most `most` records. `rules` are those that are known, by the ids of their
    /// rows. Blocks.
    fn next(
        &self,
        told: &Told,
        mut rules: BTreeMap<HookId, Option<String>>,
        most: usize,
    ) -> Result<(Next, BTreeMap<HookId, Option<String>>), StoreError> {
        // Whoever trusts no gateway yet has nothing for it.
        let Some(pin) = self.folder.pin().ok().flatten() else { return Ok((Next::default(), rules)) };
        let now = Timestamp::now();
        let mut from = told.from(pin.since, now);
        loop {
            let (found, to) = self.rows(from, now)?;
            for id in found.iter().filter_map(|it| it.hook_id.as_ref()) {
                if !rules.contains_key(id) {
                    let rule = self.store.hook(id)?.and_then(|row| Some(is_of_team(&row)?.1.to_owned()));
                    rules.insert(id.clone(), rule);
                }
            }
            let of_team = |it: &Execution| {
                let rule = rules.get(it.hook_id.as_ref()?)?.as_ref()?;
                (!told.knows(&it.id)).then(|| TeamRecord::of(it, rule))
            };
            let mut records: Vec<TeamRecord> = found.iter().rev().filter_map(of_team).collect();
            if records.is_empty() && to < now {
                from = to;
                continue;
            }
            let is_cut = records.len() > most;
            records.truncate(most);
            let until = if is_cut { records.last().map(|record| record.at) } else { Some(to) };
            return Ok((Next { records, until, more: is_cut || to < now }, rules));
        }
    }

    /// The rows from `from` on, newest first, as many as are looked at together, and until when these are all.
    fn rows(&self, from: Timestamp, now: Timestamp) -> Result<(Vec<Execution>, Timestamp), StoreError> {
        let mut to = now;
        loop {
            // A clock that was set back leaves rows of tomorrow: they wait until then.
            // The rules of a team hold for everybody here.
            let everybody = ExecutionQuery::of(TenantScope::All);
            let query = ExecutionQuery { since: Some(from), until: Some(to), limit: MAX_ROWS + 1, ..everybody };
            let found = self.store.executions(&query)?;
            let span = to.duration_since(from);
            if found.len() <= MAX_ROWS || span <= SignedDuration::from_millis(1) {
                return Ok((found, to));
            }
            to = from.checked_add(span / 2).unwrap_or(to);
        }
    }

    /// Sends what is next, and keeps that it was.
    async fn send(self: &Arc<Self>, client: &GatewayClient, told: &mut Told, next: Next) -> Result<(), TellFault> {
        let Some(until) = next.until else { return Ok(()) };
        if next.records.is_empty() {
            // Nothing to write down: the next process looks at the same rows again.
            told.note(&[], until);
            return Ok(());
        }
        let Some(machine) = self.machine() else { return Ok(()) };
        let records: Vec<Value> = next.records.iter().map(TeamRecord::value).collect();
        let body = json!({ "machine": { "id": machine.id, "name": machine.name }, "records": records });
        let sent = client.tell(body.to_string()).await;
        let sent = match sent {
            Ok(answer) => taken(&answer, next.records.len()),
            // Smaller it cannot be: it stays here.
            Err(TellFault::TooLong) if next.records.len() == 1 => Ok(vec!["it is too long".to_owned()]),
            Err(TellFault::Refused(why)) if next.records.len() == 1 => Ok(vec![why]),
            // Which of them it was is found out.
            Err(TellFault::Refused(_)) => Err(TellFault::TooLong),
            Err(fault) => Err(fault),
        };
        match &sent {
            Ok(refused) => {
                told.note(&next.records, until);
                told.count += (next.records.len() - refused.len()) as u64;
                if let Some(why) = refused.last() {
                    told.refused = (told.refused.0 + refused.len() as u64, why.clone());
                    tracing::warn!("the gateway of the team did not take {} records: {why}", refused.len());
                }
                told.away = None;
            }
            Err(TellFault::Away(why)) => {
                let since = told.away.as_ref().map_or_else(Timestamp::now, |(since, _)| *since);
                told.away = Some((since, why.clone()));
            }
            Err(TellFault::TooLong | TellFault::Refused(_)) => {}
        }
        let (folder, kept) = (self.folder.clone(), told.clone());
        if let Ok(Err(error)) = tokio::task::spawn_blocking(move || folder.keep_told(&kept)).await {
            tracing::warn!("what was told to the gateway cannot be kept, so it may be told again: {error}");
        }
        sent.map(drop)
    }

    fn machine(&self) -> Option<MachineName> {
        let pin = self.folder.pin().ok().flatten()?;
        let name = std::fs::read_to_string(HOSTNAME).unwrap_or_default();
        Some(MachineName::new(pin.machine, name.trim()))
    }
}

/// Why records were not taken, of `all`, as the gateway says it. Whoever says something else is not believed to have
/// taken any.
fn taken(answer: &[u8], all: usize) -> Result<Vec<String>, TellFault> {
    let unclear = || TellFault::Away("it does not say which records it took".to_owned());
    let answer = std::str::from_utf8(answer).ok().and_then(|text| parse(text).ok()).ok_or_else(unclear)?;
    let refused = answer.get("refused").and_then(Value::as_array).ok_or_else(unclear)?;
    let why = |it: &Value| it["why"].as_str().unwrap_or_default().to_owned();
    if refused.len() > all { Err(unclear()) } else { Ok(refused.iter().map(why).collect()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_rules::team::record::{RecordEnd, RecordPlace, RecordRule};

    fn record(id: &str, at: Timestamp) -> TeamRecord {
        TeamRecord {
            id: id.into(),
            at,
            rule: RecordRule {
                id: String::new(),
                name: String::new(),
                version: 1,
                handler: pintle_domain::rule::HandlerType::Script,
            },
            place: RecordPlace {
                event: String::new(),
                event_id: String::new(),
                session: None,
                turn: None,
                tool: None,
                call: None,
                input_hash: None,
            },
            end: RecordEnd {
                decision: pintle_domain::rule::Decision::Allow,
                reason: None,
                error: None,
                duration_ms: 0,
                retry: 0,
                metadata: pintle_domain::json::Object::new(),
            },
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn what_was_told_is_known_as_long_as_it_is_looked_at_again() {
        let mut told = Told::default();
        let (now, since) = (at(1_000_000), at(999_000));
        assert_eq!(told.from(since, now), since);
        told.note(&[record("a", at(999_100)), record("b", at(999_990))], at(999_995));
        assert!(told.knows("b") && !told.knows("a"), "what is not looked at again is not kept: {told:?}");
        assert_eq!(told.from(since, now), at(999_995 - 120));
        told.note(&[], at(999_000));
        assert_eq!(told.until, Some(at(999_995)), "it only grows");
        let long = Told { until: Some(at(0)), ..Told::default() };
        assert_eq!(long.from(at(0), now), at(1_000_000 - 7 * 24 * 3600));
    }

    #[test]
    fn an_answer_says_what_was_not_taken() {
        let of = |text: &str| taken(text.as_bytes(), 2).ok();
        assert_eq!(of(r#"{"refused":[]}"#), Some(vec![]));
        assert_eq!(of(r#"{"refused":[{"id":"x","why":"no"}]}"#), Some(vec!["no".to_owned()]));
        for text in ["", "{}", "[]", "null", r#"{"refused":3}"#, r#"{"refused":[{},{},{}]}"#, "\u{fffd}"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
