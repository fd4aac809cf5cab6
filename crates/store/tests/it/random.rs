//! Whatever is done in whatever order: a database says what memory says, and what the journal itself tells.

use std::cell::Cell;
use std::collections::BTreeMap;

use pintle_domain::approval::{ApprovalStanding, LIFETIME_SECONDS, PersonAnswer};
use pintle_domain::checkpoint::runtime::TurnStatus;
use pintle_domain::id::{DEFAULT_TENANT, SessionId, TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::session::{JournalEntry, ReleaseReason, Session};
use pintle_domain::store::{
    ApprovalQuery, ApprovalStore, JournalAppend, SessionHold, SessionKey, SessionRow, SessionStore, StoreError,
    TenantScope,
};
use pintle_domain::turn::Fact;
use pintle_store::{Durability, Memory, Sqlite};
use pintle_testkit::conformance::approvals::{call, moment, question};
use pintle_testkit::conformance::sessions::{append_of, begun, hand_over, queued};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseResult, TestRunner};

/// How many sequences are tried.
const SEQUENCES: u32 = 1_000;

/// Longest sequence.
const STEPS: usize = 24;

/// How many sequences share a pair of stores; each has a tenant of its own.
const SHARE: u32 = 250;

/// Small spaces, so that everything meets everything.
const SESSIONS: u8 = 3;
const TURNS: u8 = 2;
const CALLS: u8 = 2;

#[derive(Clone, Debug)]
enum Line {
    Opened,
    Closed(ReleaseReason),
    Begun(u8),
    Ended(bool),
    Queued,
}

#[derive(Clone, Debug)]
enum Step {
    /// Several appends that nobody waits for in between.
    Append(Vec<(u8, Option<u8>, Vec<Line>)>),
    Ask {
        session: u8,
        turn: u8,
        call: u8,
        arguments: u8,
        at: i64,
    },
    /// The question of this number, in the order of asking; its id may be cut short.
    Answer {
        which: usize,
        approve: bool,
        at: i64,
        cut: usize,
    },
    Use {
        which: usize,
        at: i64,
    },
    Hold(u8),
    Release(u8),
    Delete(u8),
}

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let cause = prop::sample::select(vec![ReleaseReason::Done, ReleaseReason::Failed, ReleaseReason::Waiting]);
    let line = prop_oneof![
        1 => Just(Line::Opened),
        1 => cause.prop_map(Line::Closed),
        3 => (0..TURNS).prop_map(Line::Begun),
        2 => any::<bool>().prop_map(Line::Ended),
        1 => Just(Line::Queued),
    ];
    prop::collection::vec(line, 0..4)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Before the end of a question's life, at it, and after.
    let at = || prop::sample::select(vec![0, 1, LIFETIME_SECONDS - 1, LIFETIME_SECONDS, LIFETIME_SECONDS + 1]);
    let which = || 0..6_usize;
    let append = (0..SESSIONS, prop::option::of(0..SESSIONS), lines());
    let step = prop_oneof![
        4 => prop::collection::vec(append, 1..4).prop_map(Step::Append),
        4 => (0..SESSIONS, 0..TURNS, 0..CALLS, 0..2_u8, at())
            .prop_map(|(session, turn, call, arguments, at)| Step::Ask { session, turn, call, arguments, at }),
        3 => (which(), any::<bool>(), at(), 0..3_usize)
            .prop_map(|(which, approve, at, cut)| Step::Answer { which, approve, at, cut }),
        2 => (which(), at()).prop_map(|(which, at)| Step::Use { which, at }),
        1 => (0..SESSIONS).prop_map(Step::Hold),
        1 => (0..SESSIONS).prop_map(Step::Release),
        1 => (0..SESSIONS).prop_map(Step::Delete),
    ];
    prop::collection::vec(step, 1..STEPS)
}

pub(crate) trait Both: SessionStore + ApprovalStore {}

impl<S: SessionStore + ApprovalStore> Both for S {}

/// One store, in one sequence.
struct Player<'a, S> {
    store: &'a S,
    tenant: TenantId,
    asked: usize,
    holds: BTreeMap<u8, Box<dyn SessionHold>>,
}

impl<S: Both> Player<'_, S> {
    fn key(&self, session: u8) -> SessionKey {
        SessionKey { tenant: self.tenant.clone(), session: name(session) }
    }

    /// What the store says to it.
    fn play(&mut self, step: &Step) -> String {
        match step {
            Step::Append(appends) => {
                let answers: Vec<_> = appends.iter().map(|append| hand_over(self.store, self.append(append))).collect();
                format!("{:?}", answers.iter().map(|it| it.recv().unwrap()).collect::<Vec<_>>())
            }
            Step::Ask { session, turn, call, arguments, at } => {
                self.asked += 1;
                let standing = self.ask(&self.id(self.asked), (*session, *turn, *call), *arguments, *at);
                format!("{standing:?}")
            }
            Step::Answer { which, approve, at, cut } => {
                let id = self.id(*which);
                let by = format!("by {cut}");
                let said = PersonAnswer { approve: *approve, by, note: "note".into() };
                format!("{:?}", self.store.answer(&TenantScope::All, &id[..id.len() - cut], said, moment(*at)))
            }
            Step::Use { which, at } => {
                format!("{:?}", self.store.use_up(&DEFAULT_TENANT.into(), &self.id(*which), moment(*at)))
            }
            Step::Hold(session) => match self.store.hold(&self.key(*session)) {
                Ok(hold) => format!("held {}", self.holds.insert(*session, hold).is_none()),
                Err(error) => format!("{error:?}"),
            },
            Step::Release(session) => format!("released {}", self.holds.remove(session).is_some()),
            Step::Delete(session) => format!("{:?}", self.store.delete(&self.key(*session))),
        }
    }

    fn append(&self, (session, parent, lines): &(u8, Option<u8>, Vec<Line>)) -> JournalAppend {
        let entry = |line: &Line| match line {
            Line::Opened => JournalEntry::Opened { by: "pid 1".into(), under: None },
            Line::Closed(cause) => JournalEntry::Closed { cause: *cause },
            Line::Begun(turn) => begun(&turn_id(*turn), &format!("turn {turn}")),
            Line::Ended(roll_back) => JournalEntry::Turn(Fact::Ended {
                status: TurnStatus::Completed,
                roll_back: *roll_back,
                error: None,
                reply: String::new(),
            }),
            Line::Queued => queued("x"),
        };
        let append = append_of(&self.key(*session), lines.iter().map(entry).collect());
        JournalAppend { parent: parent.map(name), ..append }
    }

    fn ask(
        &self,
        id: &str,
        (session, turn, number): (u8, u8, u8),
        arguments: u8,
        at: i64,
    ) -> Result<ApprovalStanding, StoreError> {
        let mut who = Identity::top("main", name(session).as_str(), turn_id(turn));
        who.tenant_id = self.tenant.clone();
        let mut call = call(&format!(r#"{{"n":{arguments}}}"#));
        call.id = format!("call_{number}").as_str().into();
        self.store.ask(question(id, &who, &call), moment(at))
    }

    fn id(&self, number: usize) -> String {
        format!("{}-{number}", self.tenant)
    }

    /// Everything that can be seen.
    fn seen(&self) -> (Vec<SessionRow>, Vec<Vec<JournalEntry>>, String) {
        let journals = (0..SESSIONS).map(|it| self.store.journal(&self.key(it)).unwrap()).collect();
        let lists = [(false, 8), (true, 8), (true, 1)].map(|(waiting, limit)| {
            self.store
                .approvals(&ApprovalQuery { waiting_only: waiting, ..ApprovalQuery::newest(TenantScope::All, limit) })
        });
        let each: Vec<_> = (0..8).map(|which| self.store.approval(&TenantScope::All, &self.id(which))).collect();
        (self.store.sessions(&self.tenant).unwrap(), journals, format!("{lists:?} {each:?}"))
    }
}

fn name(session: u8) -> SessionId {
    SessionId::from(format!("s{session}").as_str())
}

fn turn_id(turn: u8) -> TurnId {
    TurnId::from(format!("t{turn}").as_str())
}

fn play(steps: &[Step], tenant: &TenantId, tried: &impl Both, memory: &Memory) -> TestCaseResult {
    let mut file = Player { store: tried, tenant: tenant.clone(), asked: 0, holds: BTreeMap::new() };
    let mut model = Player { store: memory, tenant: tenant.clone(), asked: 0, holds: BTreeMap::new() };
    for step in steps {
        prop_assert_eq!(file.play(step), model.play(step), "after {:?}", step);
    }
    let (rows, journals, rest) = file.seen();
    prop_assert_eq!((&rows, &journals, &rest), (&model.seen().0, &model.seen().1, &model.seen().2));
    // A row says what its journal tells.
    for row in rows {
        let number: usize = row.session_id[1..].parse().unwrap();
        let session = Session::fold(journals[number].clone());
        let turn = session.open().map(|open| open.turn_id.to_string());
        let cause = session.last_cause().map(|cause| cause.word().to_owned());
        prop_assert_eq!((row.open_turn, row.last_end), (turn, cause), "{:?}", journals[number]);
    }
    Ok(())
}

/// Plays many sequences with `tried` and with memory; `share` names which.
pub(crate) fn says_what_memory_says(tried: &impl Both, share: u32, sequences: u32) {
    let config = ProptestConfig {
        cases: sequences,
        rng_seed: RngSeed::Fixed(share.into()),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let (memory, played) = (Memory::new(), Cell::new(0));
    let all = TestRunner::new(config).run(&steps(), |steps| {
        // Shrinking plays again, and then too nothing of before is in the way.
        played.set(played.get() + 1);
        play(&steps, &TenantId::from(format!("tenant {}", played.get()).as_str()), tried, &memory)
    });
    all.unwrap_or_else(|failed| panic!("{failed}"));
    assert!(played.get() >= sequences);
}

#[test]
fn the_file_says_what_memory_says() {
    for share in 0..SEQUENCES / SHARE {
        let folder = tempfile::tempdir().unwrap();
        let sqlite = Sqlite::open(&folder.path().join("pintle.db"), Durability::Commit).unwrap();
        says_what_memory_says(&sqlite, share, SHARE);
    }
}
