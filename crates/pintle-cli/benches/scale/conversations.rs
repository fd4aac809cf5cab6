//! Many conversations that are open in one process, and wait for their next prompt.

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use pintle_agent::Conversation;
use pintle_domain::checkpoint::runtime::TurnStatus;
use pintle_domain::id::{AgentId, SessionId, TenantId, TurnId};
use pintle_domain::message::{Message, Role as Speaker};
use pintle_domain::session::JournalEntry;
use pintle_domain::store::{JournalAppend, SessionKey};
use pintle_domain::turn::Fact;
use pintle_store::{Durability, Store};

use crate::report::{Report, shown};
use crate::role::{Role, kib};
use crate::size;
use crate::stage::Stage;

/// Conversations at once.
const OPEN: usize = 1000;
const FEW_OPEN: usize = 4;
/// Turns that each has had; each leaves a prompt and an answer.
const TURNS: usize = 5;
const MESSAGES: usize = 2 * TURNS;
/// Appends of one round.
const APPENDS: usize = 100;
/// The most memory that one may take while nothing happens.
const MOST_KIB: u64 = 50;
/// An append beside them takes at most so many times as long as one where no other is open.
const MOST_TIMES: f64 = 1.3;
/// Where they are kept.
pub(crate) const URL: &str = "sqlite://open.db";

pub(crate) fn conversations(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    if !report.wants("scale-open") {
        return Ok(());
    }
    let number = size(OPEN, FEW_OPEN);
    let store = stage.open(URL, Durability::Commit)?;
    let alone = stage.open("sqlite://one.db", Durability::Commit)?;
    for turn in 0..TURNS {
        (0..number).try_for_each(|session| append(&*store, session, turn))?;
        append(&*alone, 0, turn)?;
    }
    drop(store);
    let home = stage.folder.path().to_str().context("the temporary folder has a name")?;
    let [memory, descriptors, threads] = Role::said(&["open", home, &number.to_string()])?;
    let name = format!("{number} open conversations of {MESSAGES} messages");
    report.limited(&format!("{name}: memory for each"), memory, MOST_KIB << 10, |bytes| {
        format!("{:.1} KiB", bytes as f64 / 1024.0)
    });
    report.noted(&format!("{name}: descriptors and threads more than one"), format!("{descriptors}, {threads}"));

    let store = stage.open(URL, Durability::Commit)?;
    let held = (0..number).map(|session| opened(&store, session)).collect::<anyhow::Result<Vec<_>>>()?;
    let only = opened(&alone, 0)?;
    let (mut next, mut turn) = (0, TURNS);
    let mut beside = |times: usize| {
        let start = Instant::now();
        for _ in 0..times {
            next = (next + 7) % number;
            append(&*store, next, TURNS)?;
        }
        Ok(start.elapsed())
    };
    let mut by_itself = |times: usize| {
        let start = Instant::now();
        for _ in 0..times {
            turn += 1;
            append(&*alone, 0, turn)?;
        }
        Ok(start.elapsed())
    };
    let [beside, by_itself] = report.medians(APPENDS, [&mut beside, &mut by_itself])?;
    let ratio = beside.div_duration_f64(by_itself);
    let cells = [shown(beside), shown(by_itself), format!("{ratio:.2}"), format!("<= {MOST_TIMES}")];
    report.row(&format!("{name}: append a turn to one of them"), cells, Some(ratio <= MOST_TIMES));
    drop((held, only));
    Ok(())
}

/// What so many open conversations take beyond the first of them: bytes for each, descriptors and threads in all.
pub(crate) fn held(store: &Arc<dyn Store>, number: usize) -> anyhow::Result<[u64; 3]> {
    let count = |what: &str| anyhow::Ok(fs::read_dir(format!("/proc/self/{what}"))?.count() as u64);
    let mut held = vec![opened(store, 0)?];
    held.reserve(number);
    let before = [kib("VmRSS:")?, count("fd")?, count("task")?];
    for session in 1..number {
        held.push(opened(store, session)?);
    }
    let after = [kib("VmRSS:")?, count("fd")?, count("task")?];
    ensure!(held.iter().all(|one| one.messages().len() == MESSAGES), "a message is missing");
    let [memory, descriptors, threads] = [0, 1, 2].map(|at: usize| after[at].saturating_sub(before[at]));
    Ok([(memory << 10) / (number as u64 - 1), descriptors, threads])
}

fn opened(store: &Arc<dyn Store>, session: usize) -> anyhow::Result<Conversation> {
    Ok(Conversation::open(store.clone(), name(session).as_str())?)
}

fn name(session: usize) -> String {
    format!("cli:{session}")
}

/// Appends a whole turn, and waits for it.
pub(crate) fn append(store: &dyn Store, session: usize, turn: usize) -> anyhow::Result<()> {
    let (say, hear) = channel();
    store.append(whole_turn(session, turn), Box::new(move |how| drop(say.send(how))));
    hear.recv().context("the store forgot to say")??;
    Ok(())
}

/// A turn with a prompt and an answer.
fn whole_turn(session: usize, turn: usize) -> JournalAppend {
    let prompt = Message::text(Speaker::User, format!("Please read chapter {turn} and tell me what it is about."));
    let said = "A gate hangs on its pintle. ".repeat(15);
    let answer = Message { model_name: "m".into(), ..Message::text(Speaker::Assistant, said) };
    let facts = [
        Fact::Begun { turn_id: TurnId::fresh(), prompts: vec![prompt.into()], max_iterations: 20, key: None },
        Fact::Replied {
            iteration: 1,
            message: answer.into(),
            read_only: Vec::new(),
            terminal: false,
            owners: Default::default(),
            cut: false,
            usage: None,
        },
        Fact::Ended {
            status: TurnStatus::Completed,
            roll_back: false,
            error: None,
            reply: "It is about hinges.".into(),
        },
    ];
    JournalAppend {
        key: SessionKey { tenant: TenantId::default_tenant(), session: SessionId::from(name(session).as_str()) },
        agent: AgentId::from("main"),
        parent: None,
        fence: None,
        at: jiff::Timestamp::now(),
        entries: facts.into_iter().map(JournalEntry::Turn).collect(),
        records: Vec::new(),
        worded: Vec::new(),
    }
}
