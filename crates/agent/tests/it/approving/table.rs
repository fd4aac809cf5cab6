//! The published table of verdict, mode and approver, through the dispatcher that turns use.

use super::*;
use pintle_domain::store::{ApprovalQuery, TenantScope};

fn one_call() -> ToolCall {
    ToolCall { id: CallId::from("c1"), tool: "work".into(), raw_tool: "work".into(), arguments: Object::new() }
}

/// What became of a call in one cell of the table, by the dispatcher that a turn uses.
async fn cell(came: HooksDecision, mode: ApprovalMode, asker: Option<Arc<Says>>) -> CallHandling {
    let (store, present) = (Arc::new(Memory::new()), asker.clone());
    let engine = Engine::new(Arc::new(NullStore), Vec::new());
    engine.replace(vec![engine.native("h", 0, Arc::new(gate(came)))]).unwrap();
    let approvals =
        Approvals::new(store.clone(), if mode == ApprovalMode::Subagent { ApprovalMode::Chat } else { mode });
    let approvals = match asker {
        Some(asker) => approvals.with_asker(asker),
        None => approvals,
    };
    let approvals = if mode == ApprovalMode::Subagent { approvals.for_subagents() } else { approvals };
    let who = Identity::top("main", "s", TurnId::fresh());
    let hooks = engine.dispatcher(who).with_approvals(Some(Arc::new(approvals)));
    let mut clearing = Box::pin(hooks.clear(one_call()));
    // An hour without an answer.
    let cleared = tokio::time::timeout(Duration::from_secs(3600), &mut clearing).await;
    let asked = present.is_some_and(|says| says.times() == 1);
    match cleared {
        Ok(Clearance::Run(..)) if asked => CallHandling::AskedHere,
        Ok(Clearance::Run(..)) => CallHandling::Runs,
        Ok(Clearance::Refused { .. }) => CallHandling::Refused,
        Ok(Clearance::Waiting { .. }) => CallHandling::Parked,
        Ok(other) => panic!("{other:?}"),
        Err(_waiting) => {
            let question = store.approvals(&ApprovalQuery::waiting(TenantScope::All, 1)).unwrap().remove(0);
            store.answer(&TenantScope::All, &question.id, says(true, ""), jiff::Timestamp::now()).unwrap();
            assert!(matches!(clearing.await, Clearance::Run(..)));
            CallHandling::WaitsHere
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_cell_of_the_published_table_is_what_happens() {
    let mut cells = 0;
    for came in [HooksDecision::Allow, HooksDecision::Deny, HooksDecision::Ask] {
        for mode in MODES {
            for present in [false, true] {
                let asker = present.then(|| Says::new(Some(true)));
                let seen = cell(came, mode, asker).await;
                assert_eq!(seen, handling(came, mode, present), "{came:?} {mode:?} {present}");
                cells += 1;
            }
        }
    }
    assert_eq!(cells, 36);
}

#[tokio::test(start_paused = true)]
async fn no_mode_makes_leave_of_a_question_that_nobody_answers() {
    for mode in MODES {
        for asker in [None, Some(Says::new(None)), Some(Says::new(Some(false)))] {
            let (store, said_no) = (Arc::new(Memory::new()), asker.as_ref().is_some_and(|says| says.answer.is_some()));
            let engine = Engine::new(Arc::new(NullStore), Vec::new());
            engine.replace(vec![engine.native("h", 0, Arc::new(gate(HooksDecision::Ask)))]).unwrap();
            let approvals = Approvals::new(store, mode);
            let approvals = match asker {
                Some(asker) => approvals.with_asker(asker),
                None => approvals,
            };
            let who = Identity::top("main", "s", TurnId::fresh());
            let hooks = engine.dispatcher(who).with_approvals(Some(Arc::new(approvals)));
            let cleared = tokio::time::timeout(Duration::from_secs(3600), hooks.clear(one_call())).await;
            assert!(!matches!(cleared, Ok(Clearance::Run(..))), "{mode:?}, {said_no}");
        }
    }
    // Where no place for questions is set up at all, it is refused.
    let engine = Engine::new(Arc::new(NullStore), Vec::new());
    engine.replace(vec![engine.native("h", 0, Arc::new(gate(HooksDecision::Ask)))]).unwrap();
    let hooks = engine.dispatcher(Identity::top("main", "s", TurnId::fresh()));
    assert!(matches!(hooks.clear(one_call()).await, Clearance::Refused { .. }));
}

#[tokio::test]
async fn a_question_that_cannot_be_kept_refuses() {
    struct Broken(AtomicUsize);
    impl pintle_domain::store::ApprovalStore for Broken {
        fn ask(
            &self,
            _: Approval,
            _: jiff::Timestamp,
        ) -> Result<pintle_domain::approval::ApprovalStanding, StoreError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Err(StoreError::Unavailable("/secret/place is full".into()))
        }

        fn answer(
            &self,
            _: &TenantScope,
            id: &str,
            _: PersonAnswer,
            _: jiff::Timestamp,
        ) -> Result<Approval, StoreError> {
            Err(StoreError::NotFound(id.into()))
        }

        fn use_up(&self, _: &TenantId, id: &str, _: jiff::Timestamp) -> Result<(), StoreError> {
            Err(StoreError::NotFound(id.into()))
        }

        fn approval(&self, _: &TenantScope, _: &str) -> Result<Option<Approval>, StoreError> {
            Ok(None)
        }

        fn approvals(&self, _: &ApprovalQuery) -> Result<Vec<Approval>, StoreError> {
            Ok(Vec::new())
        }
    }
    let store = Arc::new(Broken(AtomicUsize::new(0)));
    let engine = Engine::new(Arc::new(NullStore), Vec::new());
    engine.replace(vec![engine.native("h", 0, Arc::new(gate(HooksDecision::Ask)))]).unwrap();
    let who = Identity::top("main", "s", TurnId::fresh());
    let approvals = Some(Arc::new(Approvals::new(store.clone(), ApprovalMode::Run)));
    let hooks = engine.dispatcher(who).with_approvals(approvals);
    let Clearance::Refused { text, .. } = hooks.clear(one_call()).await else { panic!() };
    assert!(text.starts_with("Tool execution needs a person's approval, and the question could not be kept"), "{text}");
    assert!(!text.contains("secret") && store.0.load(Ordering::Relaxed) == 1, "{text}");
}
