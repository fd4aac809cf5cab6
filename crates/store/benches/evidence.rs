//! What a large store of events takes and costs: bytes, questions of `pintle why`, and forgetting beside calls.
//!
//! `cargo bench -p pintle-store --bench evidence` measures with a million events, anything else runs with a few.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use jiff::{Timestamp, ToSpan as _};
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::{CallId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::json;
use pintle_domain::record::{EventRecord, EventRuling, HookOutcome};
use pintle_domain::store::{RecordQuery, TenantScope};
use pintle_domain::verdict::VerdictKind;
use pintle_store::{Durability, Sqlite, Store};
use pintle_testkit::conformance::store::{event, hook, keep};
use report::{Report, shown};

#[expect(dead_code, reason = "it is shared, and ratios of exchanges are for others")]
#[path = "../../process/benches/hooks/report.rs"]
mod report;

const EVENTS: usize = 1_000_000;
const FEW_EVENTS: usize = 2_000;
/// Events of one turn; every seventh turn has a refusal.
const TURN_EVENTS: usize = 40;
/// Turns of one session.
const SESSION_TURNS: usize = 5;
const HOOKS: usize = 10;
/// Events that are kept at once while the store is filled.
const BATCH: usize = 1000;
/// The most bytes that an event with ten hooks may take.
const MAX_BYTES: f64 = 600.0;
/// The longest that a question may take.
const MAX_ANSWER: Duration = Duration::from_millis(20);
/// How often each question is asked; the slowest time counts.
const TIMES: usize = 5;
/// Calls that are kept before and while events are forgotten.
const CALLS: usize = 200;
/// Events that go at a time; as many as the program takes.
const FORGOTTEN_AT_ONCE: usize = 500;

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("evidence: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> anyhow::Result<()> {
    let Some(mut report) = Report::from_args() else { return Ok(()) };
    if !report.wants("evidence") {
        return report.print();
    }
    let has = |word: &str| std::env::args().any(|argument| argument == word);
    let events = if has("--bench") && !has("--test") { EVENTS } else { FEW_EVENTS };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("pintle.db");
    let store = Sqlite::open(&path, Durability::Commit)?;
    let empty = size(&path)?;
    let began = Instant::now();
    let last = fill(&store, events)?;
    report.noted("filling, events a second", format!("{:.0}", events as f64 / began.elapsed().as_secs_f64()));
    let bytes = (size(&path)? - empty) as f64 / events as f64;
    let most = format!("{MAX_BYTES:.0}");
    let cells = [format!("{bytes:.0}"), String::new(), String::new(), most];
    report.row("bytes an event with ten hooks", cells, Some(bytes <= MAX_BYTES));
    questions(&mut report, &store, &last)?;
    forgetting(&mut report, &store, events)?;
    report.print()
}

/// The bytes of the file and its log.
fn size(path: &Path) -> anyhow::Result<i64> {
    let connection = rusqlite::Connection::open(path)?;
    let pages = |what: &str| connection.pragma_query_value(None, what, |row| row.get::<_, i64>(0));
    Ok((pages("page_count")? - pages("freelist_count")?) * pages("page_size")?)
}

/// The event number `at`, of a turn with calls.
fn numbered(at: usize, turn: &TurnId) -> EventRecord {
    let checkpoints = [CheckpointKind::BeforeTool, CheckpointKind::PreToolUse, CheckpointKind::ApproveTool];
    let session = format!("cli:{}", at / TURN_EVENTS / SESSION_TURNS);
    let refused = at % (7 * TURN_EVENTS) == TURN_EVENTS - 1;
    let word = if refused { VerdictKind::Deny } else { VerdictKind::Continue };
    let begins = Timestamp::UNIX_EPOCH + 500_000.hours();
    let records = (0..HOOKS).map(|number| {
        let took = Duration::from_micros(40 + ((at * 7 + number * 13) % 900) as u64);
        hook(&format!("guard-{number}"), HookOutcome::Said { word: VerdictKind::Continue, reason: None, took })
    });
    let call = CallId::from(format!("call_{at:08x}").as_str());
    EventRecord {
        at: begins + jiff::SignedDuration::from_millis(i64::try_from(at).unwrap_or(i64::MAX)),
        checkpoint: checkpoints[at % checkpoints.len()],
        who: Identity::top("main", &session, turn.clone()).for_call(&call),
        tool: Some("exec".to_owned()),
        input: json!({"command": "git push --force"}).as_object().cloned().map(std::sync::Arc::new),
        ruling: EventRuling::word(word),
        hooks: records.collect::<Vec<_>>().into(),
        ..event(turn)
    }
}

/// Keeps so many events. Gives one of the middle.
fn fill(store: &dyn Store, events: usize) -> anyhow::Result<EventRecord> {
    let (mut turn, mut batch, mut middle) = (TurnId::fresh(), Vec::new(), None);
    for at in 0..events {
        if at % TURN_EVENTS == 0 {
            turn = TurnId::fresh();
        }
        let event = numbered(at, &turn);
        if at == events / 2 {
            middle = Some(event.clone());
        }
        batch.push(event);
        if batch.len() == BATCH || at + 1 == events {
            keep(store, std::mem::take(&mut batch))?;
        }
    }
    middle.context("there are no events")
}

fn questions(report: &mut Report, store: &dyn Store, one: &EventRecord) -> anyhow::Result<()> {
    let of = || RecordQuery { limit: 1000, ..RecordQuery::of(TenantScope::All) };
    let (turn, event) = (one.who.turn_id.as_str(), one.event_id.as_str());
    let call = one.who.tool_call_id.as_ref().map(ToString::to_string);
    let newest: Timestamp =
        store.find(&RecordQuery { limit: 1, ..of() })?.pop().context("it is not empty")?.at.parse()?;
    // One of so many events is refused.
    let since = newest - jiff::SignedDuration::from_millis(10 * TURN_EVENTS as i64);
    let asked = [
        ("why", RecordQuery { last_turn: true, ..of() }),
        ("why EVENT", RecordQuery { event_id: Some(event.to_owned()), limit: 2, ..of() }),
        ("why PREFIX of an event", RecordQuery { event_id: Some(event[..8].to_owned()), limit: 20, ..of() }),
        ("why TURN", RecordQuery { turn: Some(turn.to_owned()), ..of() }),
        ("why the last digits of a TURN", RecordQuery { turn: Some(turn[turn.len() - 8..].to_owned()), ..of() }),
        ("why SESSION", RecordQuery { session: Some(one.who.session_id.to_string()), ..of() }),
        ("why CALL", RecordQuery { call, ..of() }),
        ("why nothing that is there", RecordQuery { call: Some("no such call".to_owned()), ..of() }),
        ("why --denied", RecordQuery { refused: true, limit: 20, ..of() }),
        ("why --denied --since", RecordQuery { refused: true, since: Some(since), ..of() }),
        ("why --hook", RecordQuery { hook: Some("guard-3".to_owned()), limit: 20, ..of() }),
    ];
    for (what, query) in asked {
        let slowest = slowest(|| store.find(&query).map(|found| found.len()))?;
        ensure!(slowest.1 > 0 || query.call.as_deref() == Some("no such call"), "{what} finds nothing");
        answered(report, &format!("{what}, {} events", slowest.1), slowest.0);
    }
    let list = slowest(|| store.turns(None, None, 20).map(|turns| turns.len()))?;
    answered(report, "why --list", list.0);
    let timings = slowest(|| store.hook_timings(5000).map(|timings| timings.len()))?;
    report.noted("hooks list, times of 5,000 events", shown(timings.0));
    Ok(())
}

fn answered(report: &mut Report, what: &str, took: Duration) {
    let cells = [shown(took), String::new(), String::new(), shown(MAX_ANSWER)];
    report.row(what, cells, Some(took <= MAX_ANSWER));
}

fn slowest<E>(mut ask: impl FnMut() -> Result<usize, E>) -> anyhow::Result<(Duration, usize)>
where
    anyhow::Error: From<E>,
{
    let mut worst = (Duration::ZERO, 0);
    for _ in 0..TIMES {
        let began = Instant::now();
        let found = ask()?;
        worst = (worst.0.max(began.elapsed()), found);
    }
    Ok(worst)
}

/// Calls, one after another, alone and while the older half of the events is forgotten.
fn forgetting(report: &mut Report, store: &dyn Store, events: usize) -> anyhow::Result<()> {
    let turn = TurnId::fresh();
    let call = || -> anyhow::Result<Duration> {
        let began = Instant::now();
        keep(store, vec![numbered(events, &turn), numbered(events + 1, &turn), numbered(events + 2, &turn)])?;
        Ok(began.elapsed())
    };
    let mut alone = (0..CALLS).map(|_| call()).collect::<anyhow::Result<Vec<_>>>()?;
    let oldest = Timestamp::UNIX_EPOCH + 500_000.hours();
    let before = oldest + jiff::SignedDuration::from_millis(i64::try_from(events / 2)?);
    let over = AtomicBool::new(false);
    let (gone, took, mut beside) = std::thread::scope(|scope| -> anyhow::Result<_> {
        let forget = scope.spawn(|| {
            let began = Instant::now();
            let mut gone = 0;
            let ended = loop {
                match store.forget_events(before, FORGOTTEN_AT_ONCE) {
                    Ok(0) => break Ok(()),
                    Ok(some) => gone += some,
                    Err(error) => break Err(error),
                }
            };
            over.store(true, Ordering::Release);
            ended.map(|()| (gone, began.elapsed()))
        });
        let mut beside = Vec::new();
        while !over.load(Ordering::Acquire) || beside.is_empty() {
            beside.push(call()?);
        }
        let (gone, took) = forget.join().map_err(|_panicked| anyhow::anyhow!("forgetting panicked"))??;
        Ok((gone, took, beside))
    })?;
    let rate = gone as f64 / took.as_secs_f64();
    let cells = [format!("{rate:.0}"), String::new(), String::new(), "50000".to_owned()];
    report.row("events forgotten a second, beside calls", cells, Some(rate >= 50_000.0));
    for (word, share) in [("median", 2), ("slowest of a hundred", 100)] {
        let [alone, beside] = [&mut alone, &mut beside].map(|times| {
            times.sort_unstable();
            times[times.len() - 1 - (times.len() - 1) / share]
        });
        let ratio = beside.as_secs_f64() / alone.as_secs_f64();
        let cells = [shown(beside), shown(alone), format!("{ratio:.2}"), "2.00".to_owned()];
        let judged = (share == 2).then_some(ratio <= 2.0);
        report.row(&format!("a call beside forgetting, {word}"), cells, judged);
    }
    Ok(())
}
