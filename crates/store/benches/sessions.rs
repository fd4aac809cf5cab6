//! What many conversations cost: listing them, loading one, and the memory of a store that holds them all.
//!
//! `cargo bench -p pintle-store --bench sessions` measures, anything else runs each case once, with few of them.

use std::env;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use pintle_domain::checkpoint::runtime::{ToolExecution, TurnStatus};
use pintle_domain::id::{AgentId, SessionId, TenantId, TurnId};
use pintle_domain::message::{CallPart, Message, Role};
use pintle_domain::session::{JournalEntry, ReleaseReason, Session};
use pintle_domain::store::{JournalAppend, SessionKey, SessionStore};
use pintle_domain::turn::{Fact, ModelAnswer};
use pintle_store::{Durability, Sqlite};
use report::{Report, shown};

#[path = "../../process/benches/hooks/report.rs"]
mod report;

/// Conversations in the file, and messages in each.
const SESSIONS: usize = 1000;
const MESSAGES: usize = 200;
/// A turn leaves a prompt, a call, its result and an answer.
const MESSAGES_OF_TURN: usize = 4;
/// Listing is what a person waits for at every `sessions list`.
const LIST_LIMIT: Duration = Duration::from_millis(10);
/// Loading comes before the first turn of every resumed session.
const LOAD_LIMIT: Duration = Duration::from_millis(20);
/// Nothing of a session stays in memory, so this is the libraries, and the pages that SQLite keeps.
const RESIDENT_LIMIT_KIB: u64 = 20 << 10;
/// Set in the process whose memory is measured: the file that it opens.
const FILE: &str = "PINTLE_BENCH_FILE";

fn main() -> ExitCode {
    let done = match env::var_os(FILE) {
        Some(file) => resident(&PathBuf::from(file)),
        None => measure(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sessions: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> anyhow::Result<()> {
    let Some(mut report) = Report::from_args() else { return Ok(()) };
    if !report.wants("sessions") {
        return report.print();
    }
    // As the report has it: figures of a test run mean nothing.
    let has = |word: &str| env::args().any(|argument| argument == word);
    let (sessions, messages) = if has("--bench") && !has("--test") { (SESSIONS, MESSAGES) } else { (10, 8) };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("pintle.db");
    let made = make(&file, sessions, messages)?;
    let store = Sqlite::open(&file, Durability::Commit)?;
    let what = format!("{sessions} sessions of {messages} messages");
    let mib = fs::metadata(&file)?.len() as f64 / f64::from(1 << 20);
    report.noted(&format!("{what}: append one whole turn"), shown(made));
    report.noted(&format!("{what}: the file"), format!("{mib:.0} MiB"));

    let tenant = TenantId::default_tenant();
    let mut list = |times| {
        timed(times, |_| {
            let rows = store.sessions(&tenant)?;
            ensure!(rows.len() == sessions && rows[0].session_id == name(sessions - 1), "not all are listed");
            Ok(())
        })
    };
    let mut load = |times| {
        timed(times, |i| {
            // Another one each time: none is in any cache.
            let session = Session::fold(store.journal(&key(i * 7919 % sessions))?);
            ensure!(session.messages().len() == messages, "{} messages came back", session.messages().len());
            black_box(session);
            Ok(())
        })
    };
    let [listed, loaded] = report.medians(20, [&mut list, &mut load])?;
    report.limited(&format!("{what}: list all"), listed, LIST_LIMIT, shown);
    report.limited(&format!("{what}: load one, journal and fold"), loaded, LOAD_LIMIT, shown);

    let show = |kib: u64| format!("{:.1} MiB", kib as f64 / 1024.0);
    let resident = resident_of_another(&file)?;
    report.limited("a store that listed them and loaded one: memory", resident, RESIDENT_LIMIT_KIB, show);
    report.print()
}

fn timed(times: usize, mut work: impl FnMut(usize) -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let start = Instant::now();
    (0..times).try_for_each(&mut work)?;
    Ok(start.elapsed())
}

/// Fills `file`; says how long the append of a turn took.
fn make(file: &Path, sessions: usize, messages: usize) -> anyhow::Result<Duration> {
    let store = Sqlite::open(file, Durability::Commit)?;
    let turns = messages / MESSAGES_OF_TURN;
    let (say, hear) = channel();
    let start = Instant::now();
    // Turn by turn over all of them, so that no session's rows stand together in the file.
    for number in 0..turns {
        for session in 0..sessions {
            let say = say.clone();
            store.append(turn(session, number), Box::new(move |how| drop(say.send(how))));
            // One under way at a time: the queue is bounded.
            hear.recv().context("the store forgot to say")??;
        }
    }
    Ok(start.elapsed().div_f64((turns * sessions) as f64))
}

fn name(session: usize) -> String {
    format!("cli:{session}")
}

fn key(session: usize) -> SessionKey {
    SessionKey { tenant: TenantId::default_tenant(), session: SessionId::from(name(session).as_str()) }
}

/// One turn with one call of a tool.
fn turn(session: usize, number: usize) -> JournalAppend {
    let prompt = Message::text(Role::User, format!("Please read chapter {number} and tell me what it is about."));
    let part = CallPart::new("call_1", "read_file", r#"{"path":"chapters/one.md","from":1,"to":40}"#);
    let asked = Message { tool_calls: vec![part], model_name: "m".into(), ..Message::text(Role::Assistant, "") };
    let said = Message { model_name: "m".into(), ..Message::text(Role::Assistant, "It is about hinges. ".repeat(20)) };
    let execution = Some(ToolExecution { name: "read_file".into(), success: true, error_summary: None });
    let text = "A gate hangs on its pintle.\n".repeat(40);
    let replied = |iteration, message: Message, read_only| Fact::Replied {
        iteration,
        message: message.into(),
        read_only,
        terminal: false,
        owners: Default::default(),
        cut: false,
        usage: None,
    };
    let facts = [
        Fact::Begun { turn_id: TurnId::fresh(), prompts: vec![prompt.into()], max_iterations: 20, key: None },
        replied(1, asked, vec![true]),
        Fact::Used {
            place: 0,
            read_only: true,
            tool: "read_file".into(),
            digest: "0123456789abcdef".repeat(4),
            rewritten: None,
        },
        Fact::Answered { place: 0, answer: ModelAnswer { execution, ..ModelAnswer::not_run(text) } },
        replied(2, said, Vec::new()),
        Fact::Ended {
            status: TurnStatus::Completed,
            roll_back: false,
            error: None,
            reply: "It is about hinges.".into(),
        },
    ];
    let mut entries = vec![JournalEntry::Opened { by: "pid 4711".into(), under: None }];
    entries.extend(facts.map(JournalEntry::Turn));
    entries.push(JournalEntry::Closed { cause: ReleaseReason::Done });
    let (at, records) = (jiff::Timestamp::UNIX_EPOCH, Vec::new());
    let (agent, worded) = (AgentId::from("main"), Vec::new());
    JournalAppend { key: key(session), agent, parent: None, fence: None, at, entries, worded, records }
}

/// The resident memory of a process that opened `file`, in KiB.
fn resident_of_another(file: &Path) -> anyhow::Result<u64> {
    let output = Command::new(env::current_exe()?).env(FILE, file).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "the process with the store failed: {}", output.status);
    let said = String::from_utf8(output.stdout)?;
    said.trim().parse().with_context(|| format!("`{said}` is not a number"))
}

/// That process: it lists, loads one, and says what it holds then.
fn resident(file: &Path) -> anyhow::Result<()> {
    use std::io::Write as _;

    let store = Sqlite::open(file, Durability::Commit)?;
    ensure!(!store.sessions(&TenantId::default_tenant())?.is_empty(), "there is none");
    drop(Session::fold(store.journal(&key(0))?));
    let status = fs::read_to_string("/proc/self/status")?;
    let Some(line) = status.lines().find_map(|line| line.strip_prefix("VmRSS:")) else { bail!("no VmRSS") };
    writeln!(std::io::stdout(), "{}", line.trim().trim_end_matches(" kB")).context("the output is closed")
}
