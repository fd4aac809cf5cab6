//! What hooks decided over time, from the records of events. Pure.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use pintle_domain::fault::FaultKind;
use pintle_domain::json::{Value, json};
use pintle_domain::store::{StoredEvent, StoredRecord};

/// The number of buckets that a time is parted into.
const BUCKETS: usize = 24;

/// The most hooks of a list.
const MAX_LISTED: usize = 10;

/// How often hooks decided what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    allowed: u64,
    blocked: u64,
    asked: u64,
    faults: u64,
}

impl Counts {
    fn add(&mut self, hook: &StoredRecord) {
        let count = match (hook.fault.is_some(), hook.verdict.as_deref()) {
            (true, _) => &mut self.faults,
            (false, Some("ask")) => &mut self.asked,
            (false, Some("deny" | "abort_turn" | "hard_abort")) => &mut self.blocked,
            (false, Some(_)) => &mut self.allowed,
            // It was only told.
            (false, None) => return,
        };
        *count += 1;
    }

    fn shown(self) -> Value {
        json!({ "allowed": self.allowed, "blocked": self.blocked, "asked": self.asked, "faults": self.faults })
    }
}

/// What one hook did.
#[derive(Clone, Debug, Default)]
struct HookCounts {
    family: String,
    runs: u64,
    counts: Counts,
    took_ms: Vec<f64>,
    /// When it ran last.
    last: Option<Timestamp>,
}

/// The questions that were seen: a turn that goes on after an answer asks its hooks about the same call again, and that is
/// no other question.
#[derive(Default)]
struct Questions(BTreeSet<(String, u32, String, String, String)>);

impl Questions {
    /// Whether what `hook` said at `event` is a question that was seen already.
    fn is_again(&mut self, event: &StoredEvent, hook: &StoredRecord) -> bool {
        let Some(call) = event.tool_call_id.as_ref().filter(|_| hook.verdict.as_deref() == Some("ask")) else {
            return false;
        };
        let (turn, at, by) = (event.turn_id.clone(), hook.checkpoint.clone(), hook.hook.clone());
        !self.0.insert((turn, event.iteration, call.clone(), at, by))
    }
}

/// What each hook did at each checkpoint, of `events`.
pub(crate) fn at_checkpoints<'a>(events: impl IntoIterator<Item = &'a StoredEvent>) -> Vec<Value> {
    let mut all: BTreeMap<(&str, &str), HookCounts> = BTreeMap::new();
    let mut questions = Questions::default();
    for event in events.into_iter().filter(|event| !event.is_test) {
        let at = event.at.parse::<Timestamp>().ok();
        for hook in event.hooks.iter().filter(|hook| hook.ran) {
            if questions.is_again(event, hook) {
                continue;
            }
            all.entry((&hook.checkpoint, &hook.hook)).or_default().add(hook, at);
        }
    }
    let shown = |((checkpoint, name), counts): ((&str, &str), HookCounts)| {
        let mut shown = counts.shown(name);
        shown["event"] = json!(checkpoint);
        shown["lastAt"] = json!(counts.last.map(|at| at.to_string()));
        shown
    };
    all.into_iter().map(shown).collect()
}

/// The same for each tenant of `events`, with whose it is.
pub(crate) fn of_each_tenant(events: &[&StoredEvent]) -> Vec<Value> {
    let mut tenants: BTreeMap<&str, Vec<&StoredEvent>> = BTreeMap::new();
    for event in events {
        tenants.entry(event.tenant_id.as_str()).or_default().push(event);
    }
    let named = |(tenant, events): (&str, Vec<&StoredEvent>)| {
        let mut counts = at_checkpoints(events);
        counts.iter_mut().for_each(|one| one["tenantId"] = json!(tenant));
        counts
    };
    tenants.into_iter().flat_map(named).collect()
}

/// What hooks decided in a time.
pub(crate) struct Decisions {
    since: Timestamp,
    bucket_ms: i64,
    buckets: [Counts; BUCKETS],
    hooks: BTreeMap<String, HookCounts>,
    questions: Questions,
}

impl Decisions {
    /// Between `since` and `until`, of `events`.
    pub(crate) fn of<'a>(
        (since, until): (Timestamp, Timestamp),
        events: impl IntoIterator<Item = &'a StoredEvent>,
    ) -> Self {
        let span = until.as_millisecond().saturating_sub(since.as_millisecond()).max(1);
        let bucket_ms = span.div_euclid(BUCKETS as i64) + i64::from(span.rem_euclid(BUCKETS as i64) > 0);
        let (buckets, hooks, questions) = ([Counts::default(); BUCKETS], BTreeMap::new(), Questions::default());
        let mut all = Self { since, bucket_ms, buckets, hooks, questions };
        for event in events.into_iter().filter(|event| !event.is_test) {
            all.add(event);
        }
        all
    }

    fn add(&mut self, event: &StoredEvent) {
        let Ok(at) = event.at.parse::<Timestamp>() else { return };
        let place = at.as_millisecond().saturating_sub(self.since.as_millisecond()).div_euclid(self.bucket_ms);
        let Ok(place) = usize::try_from(place) else { return };
        for hook in event.hooks.iter().filter(|hook| hook.ran) {
            if self.questions.is_again(event, hook) {
                continue;
            }
            self.buckets[place.min(BUCKETS - 1)].add(hook);
            self.hooks.entry(hook.hook.clone()).or_default().add(hook, Some(at));
        }
    }

    /// The counts of each bucket, and of all.
    pub(crate) fn shown(&self) -> Value {
        let at = |number: usize| {
            let after = self.bucket_ms.saturating_mul(i64::try_from(number).unwrap_or(i64::MAX));
            Timestamp::from_millisecond(self.since.as_millisecond().saturating_add(after)).unwrap_or(Timestamp::MAX)
        };
        let bucket = |(number, counts): (usize, &Counts)| {
            let mut shown = counts.shown();
            shown["at"] = json!(at(number).to_string());
            shown
        };
        let total = self.buckets.iter().fold(Counts::default(), |total, one| Counts {
            allowed: total.allowed + one.allowed,
            blocked: total.blocked + one.blocked,
            asked: total.asked + one.asked,
            faults: total.faults + one.faults,
        });
        json!({
            "bucketMs": self.bucket_ms,
            "buckets": self.buckets.iter().enumerate().map(bucket).collect::<Vec<_>>(),
            "total": total.shown(),
        })
    }

    /// The hooks whose runs take longest.
    pub(crate) fn slowest(&self) -> Vec<Value> {
        let mut timed: Vec<(f64, &String, &HookCounts)> =
            self.hooks.iter().filter_map(|(name, hook)| Some((p95(&hook.took_ms)?, name, hook))).collect();
        timed.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
        let shown = |(p95, name, hook): (f64, &String, &HookCounts)| {
            let mut shown = hook.shown(name);
            shown["p95Ms"] = json!(p95);
            shown
        };
        timed.into_iter().take(MAX_LISTED).map(shown).collect()
    }

    /// The hooks that stop most.
    pub(crate) fn blocking(&self) -> Vec<Value> {
        let stops = |hook: &HookCounts| hook.counts.blocked + hook.counts.asked;
        let mut found: Vec<(&String, &HookCounts)> = self.hooks.iter().filter(|(_, hook)| stops(hook) > 0).collect();
        found.sort_by_key(|(name, hook)| (std::cmp::Reverse(stops(hook)), (*name).clone()));
        found.into_iter().take(MAX_LISTED).map(|(name, hook)| hook.shown(name)).collect()
    }
}

impl HookCounts {
    fn add(&mut self, hook: &StoredRecord, at: Option<Timestamp>) {
        self.family.clone_from(&hook.family);
        self.runs += 1;
        self.counts.add(hook);
        self.last = self.last.max(at);
        // What never started cost nothing.
        if hook.fault.as_deref() != Some(FaultKind::CannotStart.word()) {
            self.took_ms.extend(hook.duration_ms);
        }
    }

    fn shown(&self, name: &str) -> Value {
        let mut shown = self.counts.shown();
        shown["name"] = json!(name);
        shown["family"] = json!(self.family);
        shown["runs"] = json!(self.runs);
        shown["p95Ms"] = json!(p95(&self.took_ms));
        shown
    }
}

/// The time that nineteen of twenty runs took at most.
fn p95(took_ms: &[f64]) -> Option<f64> {
    let mut sorted = took_ms.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((sorted.len() * 95).div_ceil(100).checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: &str, hooks: &[(&str, Option<&str>, Option<&str>, f64)]) -> StoredEvent {
        let hooks = hooks.iter().map(|(name, verdict, fault, took)| StoredRecord {
            hook: (*name).to_owned(),
            family: "process".to_owned(),
            ran: true,
            verdict: verdict.map(str::to_owned),
            fault: fault.map(str::to_owned),
            duration_ms: Some(*took),
            ..StoredRecord::default()
        });
        let hooks: Vec<StoredRecord> = hooks.collect();
        let shown = json!({
            "event_id": "e", "at": at, "event": "before_tool", "checkpoint": "before_tool", "tenant_id": "",
            "agent_id": "", "session_id": "", "turn_id": "", "iteration": 1, "is_test": false, "ruling": "continue",
            "substituted": false, "hooks": hooks,
        });
        pintle_domain::json::from_value(shown).unwrap()
    }

    #[test]
    fn a_question_that_a_resumed_turn_asks_again_is_one() {
        let time = ("2026-11-25T00:00:00Z".parse().unwrap(), "2026-11-26T00:00:00Z".parse().unwrap());
        let about = |call: &str, turn: &str| StoredEvent {
            tool_call_id: Some(call.to_owned()),
            turn_id: turn.to_owned(),
            ..event("2026-11-25T00:30:00Z", &[("a", Some("ask"), None, 1.0), ("b", Some("continue"), None, 1.0)])
        };
        let events = [about("c1", "t1"), about("c1", "t1"), about("c2", "t1"), about("c1", "t2")];
        let shown = Decisions::of(time, &events).shown();
        assert_eq!((&shown["total"]["asked"], &shown["total"]["allowed"]), (&json!(3), &json!(4)));
        let at = at_checkpoints(&events);
        let asked = |name: &str| at.iter().find(|line| line["name"] == name).unwrap()["asked"].clone();
        assert_eq!((asked("a"), asked("b")), (json!(3), json!(0)));
    }

    #[test]
    fn each_run_counts_where_it_was_and_for_what_it_said() {
        let time = ("2026-11-25T00:00:00Z".parse().unwrap(), "2026-11-26T00:00:00Z".parse().unwrap());
        let events = [
            event("2026-11-25T00:30:00Z", &[("a", Some("continue"), None, 1.0), ("b", Some("deny"), None, 9.0)]),
            event(
                "2026-11-25T23:59:59Z",
                &[("a", Some("ask"), None, 2.0), ("b", Some("deny"), Some("timed_out"), 5.0)],
            ),
            event("2026-11-25T23:59:59Z", &[("c", None, None, 100.0)]),
            event("2026-11-24T23:59:59Z", &[("a", Some("deny"), None, 1.0)]),
        ];
        let all = Decisions::of(time, &events);
        let shown = all.shown();
        assert_eq!(shown["bucketMs"], 3_600_000);
        assert_eq!(shown["total"], json!({"allowed": 1, "blocked": 1, "asked": 1, "faults": 1}));
        let buckets = shown["buckets"].as_array().unwrap();
        assert_eq!(buckets.len(), 24);
        assert_eq!((buckets[0]["allowed"].as_u64(), buckets[0]["blocked"].as_u64()), (Some(1), Some(1)));
        assert_eq!((buckets[23]["asked"].as_u64(), buckets[23]["faults"].as_u64()), (Some(1), Some(1)));
        let names =
            |list: Vec<Value>| list.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(names(all.slowest()), ["c", "b", "a"]);
        assert_eq!(names(all.blocking()), ["a", "b"]);
        let each = at_checkpoints(&events);
        let a = each.iter().find(|it| it["name"] == "a").unwrap();
        let told = (a["runs"].as_u64(), a["p95Ms"].as_f64(), a["lastAt"].as_str());
        assert_eq!(told, (Some(3), Some(2.0), Some("2026-11-25T23:59:59Z")), "{a}");
    }

    #[test]
    fn each_tenant_has_counts_of_its_own() {
        let of = |tenant: &str, verdict| StoredEvent {
            tenant_id: tenant.to_owned(),
            ..event("2026-11-25T00:30:00Z", &[("a", Some(verdict), None, 1.0)])
        };
        let events = [of("one", "continue"), of("two", "deny"), of("one", "continue")];
        let counts = of_each_tenant(&events.iter().collect::<Vec<_>>());
        let told = counts.iter().map(|it| (it["tenantId"].as_str(), it["runs"].as_u64(), it["blocked"].as_u64()));
        let expected = [(Some("one"), Some(2), Some(0)), (Some("two"), Some(1), Some(1))];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }
}
