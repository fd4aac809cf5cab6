//! What outlives a process: journals, questions for persons, and what was done to the world.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use pintle_domain::approval::{Approval, ApprovalStanding, ApprovalState, PersonAnswer, QuestionPlan, plan};
use pintle_domain::session::{JournalEntry, Session};
use pintle_domain::turn::Fact;

/// One effect: the turn, the round, the place in the batch.
pub(crate) type Effect = (String, u32, usize);

/// Everything that is kept, and everything that was done.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    journals: BTreeMap<String, Vec<JournalEntry>>,
    approvals: Vec<Approval>,
    effects: BTreeSet<Effect>,
}

impl Disk {
    pub(crate) fn append(&mut self, session: &str, entry: JournalEntry) {
        let journal = self.journals.entry(session.to_owned()).or_default();
        if matches!(entry, JournalEntry::Turn(Fact::Ended { .. })) {
            let begun = |entry: &JournalEntry| match entry {
                JournalEntry::Turn(Fact::Begun { turn_id, .. }) => Some(turn_id.clone()),
                JournalEntry::Turn(_)
                | JournalEntry::Opened { .. }
                | JournalEntry::Closed { .. }
                | JournalEntry::Kept(_) => None,
            };
            let turn_id = journal.iter().rev().find_map(begun).expect("only what began ends");
            let open = |it: &&mut Approval| matches!(it.state, ApprovalState::Waiting | ApprovalState::Approved);
            let of_turn = self.approvals.iter_mut().filter(|it| it.turn_id == turn_id);
            of_turn.filter(open).for_each(|it| it.state = ApprovalState::Void);
        }
        journal.push(entry);
    }

    pub(crate) fn fold(&self, session: &str) -> Session {
        Session::fold(self.journals.get(session).cloned().unwrap_or_default())
    }

    /// Sessions whose last turn stands open.
    pub(crate) fn open_sessions(&self) -> Vec<String> {
        self.journals.keys().filter(|session| self.fold(session).open().is_some()).cloned().collect()
    }

    /// What the port of the store promises of `ask`.
    pub(crate) fn ask(&mut self, question: Approval, now: Timestamp) -> ApprovalStanding {
        let same = |it: &&Approval| (&it.turn_id, &it.tool_call_id) == (&question.turn_id, &question.tool_call_id);
        let earlier: Vec<Approval> = self.approvals.iter().filter(same).cloned().collect();
        match plan(question, &earlier, now) {
            QuestionPlan::Stands(standing) => standing,
            QuestionPlan::Park { new, void } => {
                let voided = |it: &&mut Approval| void.contains(&it.id);
                self.approvals.iter_mut().filter(voided).for_each(|it| it.state = ApprovalState::Void);
                self.approvals.push((*new).clone());
                ApprovalStanding::Waiting(new)
            }
        }
    }

    pub(crate) fn use_up(&mut self, id: &str, now: Timestamp) {
        let it = self.approvals.iter_mut().find(|it| it.id == id).expect("only what was asked is used");
        assert_eq!(it.state_at(now), ApprovalState::Approved, "leave is used that nobody gave");
        it.state = ApprovalState::Used;
    }

    /// A person answers; whoever answers after them changes nothing.
    pub(crate) fn answer(&mut self, id: &str, approve: bool, now: Timestamp) {
        let it = self.approvals.iter_mut().find(|it| it.id == id).expect("only what was asked is answered");
        let said = |approve| PersonAnswer { approve, by: "anna".into(), note: String::new() };
        it.answer(said(approve), now).expect("nobody was faster");
        let answered = it.clone();
        it.answer(said(!approve), now).expect_err("the first answer stands");
        assert_eq!(*it, answered);
    }

    /// The questions that wait.
    pub(crate) fn waiting(&self, now: Timestamp) -> Vec<String> {
        self.approvals.iter().filter(|it| it.state_at(now) == ApprovalState::Waiting).map(|it| it.id.clone()).collect()
    }

    pub(crate) fn fresh_id(&self) -> String {
        format!("q{}", self.approvals.len())
    }

    /// Does something to the world, which cannot be undone.
    pub(crate) fn effect(&mut self, effect: Effect) {
        assert!(self.effects.insert(effect.clone()), "{effect:?} happens twice");
    }

    pub(crate) fn happened(&self, effect: &Effect) -> bool {
        self.effects.contains(effect)
    }

    /// How many calls of the turn were used, whatever came of them.
    pub(crate) fn used(&self, session: &str) -> usize {
        let journal = self.journals.get(session).map(Vec::as_slice).unwrap_or_default();
        let of_turn = journal.iter().rev().take_while(|entry| !matches!(entry, JournalEntry::Turn(Fact::Begun { .. })));
        of_turn.filter(|entry| matches!(entry, JournalEntry::Turn(Fact::Used { .. }))).count()
    }

    /// At the end of the day: one end for each beginning, one close for each opening, and no leave that outlives its
    /// turn.
    pub(crate) fn is_settled(&self) {
        for (session, journal) in &self.journals {
            let (mut open, mut held) = (false, false);
            for entry in journal {
                match entry {
                    JournalEntry::Opened { .. } => {
                        assert!(!std::mem::replace(&mut held, true), "{session} is opened twice")
                    }
                    JournalEntry::Closed { .. } => {
                        assert!(std::mem::replace(&mut held, false), "{session} is closed twice")
                    }
                    JournalEntry::Turn(Fact::Begun { .. }) => {
                        assert!(!std::mem::replace(&mut open, true), "{session} begins a turn in a turn");
                    }
                    JournalEntry::Turn(Fact::Ended { .. }) => {
                        assert!(std::mem::replace(&mut open, false), "{session} ends a turn twice");
                    }
                    JournalEntry::Turn(_) | JournalEntry::Kept(_) => {}
                }
            }
            assert!(!open && !held, "{session} stays open");
        }
        let live = |it: &&Approval| matches!(it.state, ApprovalState::Waiting | ApprovalState::Approved);
        assert_eq!(self.approvals.iter().find(live), None, "leave outlives its turn");
    }
}
