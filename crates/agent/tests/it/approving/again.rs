//! After every answer the clearing begins again, wherever somebody waited for it: the hooks in force then rule.

use super::*;

/// Where a person is waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Column {
    /// Somebody is at the terminal, and answers there.
    Chat,
    /// A client waits, and the answer comes from elsewhere.
    Mcp,
    /// The turn is parked, and resumed after the answer.
    Parked,
}

const COLUMNS: [Column; 3] = [Column::Chat, Column::Mcp, Column::Parked];

/// What happens between the question and the answer.
type Meanwhile = Arc<dyn Fn(&Machine) + Send + Sync>;

/// Does something, then says the same as ever.
struct SaysAfter(Machine, Meanwhile, bool, AtomicUsize);

#[async_trait]
impl Asker for SaysAfter {
    async fn ask(&self, _: &Approval) -> Option<PersonAnswer> {
        // Whoever is asked once more leaves it.
        if self.3.fetch_add(1, Ordering::Relaxed) > 0 {
            return None;
        }
        (self.1)(&self.0);
        Some(says(self.2, ""))
    }
}

/// What the gate says now; somebody may change that while a person is waited for.
fn gate_by(word: &Arc<Mutex<HooksDecision>>) -> Rule {
    let word = word.clone();
    let gate = move |at: &PreToolUse| match (at.call.tool.as_str(), *word.lock().unwrap()) {
        ("work", HooksDecision::Ask) => Verdict::Ask("is it safe?".into()),
        ("work", HooksDecision::Deny) => Verdict::deny("not any more"),
        _ => Verdict::Continue,
    };
    Rule { gate: Some(Box::new(gate)), ..Rule::default() }
}

/// A call that is asked about and answered in `column`, with `meanwhile` in between. Returns the result that the model
/// reads, and how often the tool ran.
async fn answered(
    column: Column,
    approve: bool,
    word: Arc<Mutex<HooksDecision>>,
    meanwhile: Meanwhile,
) -> (String, usize) {
    let machine = Machine::new();
    let part = || call(1, "work", &json!({"n": 1}));
    let result = match column {
        Column::Chat => {
            let there =
                Machine { store: machine.store.clone(), work: machine.work.clone(), clock: machine.clock.clone() };
            let asker = Arc::new(SaysAfter(there, meanwhile, approve, AtomicUsize::new(0)));
            let approvals = Approvals::new(machine.store.clone(), ApprovalMode::Chat);
            let approvals = approvals.with_clock(machine.clock.clone()).with_asker(asker);
            let test_agents = machine.process_with(approvals, gate_by(&word));
            let mut conversation = machine.open();
            test_agents.turn(&mut conversation, "go").await;
            said(&conversation).get(2).cloned().unwrap_or_default()
        }
        Column::Mcp => {
            let test_agents = machine.process(ApprovalMode::Mcp, None, gate_by(&word));
            let mut conversation = machine.open();
            let cancel = TurnHandle::default();
            let works = test_agents.main().call(&mut conversation, part(), test_agents.seen.clone(), &cancel);
            let answers = async {
                while machine.questions().is_empty() {
                    tokio::task::yield_now().await;
                }
                meanwhile(&machine);
                // It may be too late for an answer.
                drop(machine.answer(&machine.questions()[0].id, says(approve, "")));
            };
            let (output, ()) = join(works, answers).await;
            format!("c1: {}", output.for_llm)
        }
        Column::Parked => {
            let mut conversation = machine.open();
            let test_agents = machine.process(ApprovalMode::Run, None, gate_by(&word));
            let question = waiting(test_agents.turn(&mut conversation, "go").await);
            drop(conversation);
            meanwhile(&machine);
            drop(machine.answer(&question.id, says(approve, "")));
            let (_, lines) = machine.resumed(gate_by(&word)).await;
            lines.get(2).cloned().unwrap_or_default()
        }
    };
    (result, machine.work.calls().len())
}

/// Lets the gate say `then` while a person is waited for.
async fn changed(column: Column, approve: bool, then: HooksDecision) -> (String, usize) {
    let word = Arc::new(Mutex::new(HooksDecision::Ask));
    let meanwhile = word.clone();
    answered(column, approve, word, Arc::new(move |_| *meanwhile.lock().unwrap() = then)).await
}

#[tokio::test(start_paused = true)]
async fn law_11_the_hooks_in_force_after_the_answer_rule() {
    let refused = "c1: Tool execution refused by a person (asked by hook \"h\")";
    for column in COLUMNS {
        for (approve, then, result) in [
            (true, HooksDecision::Ask, "c1: worked"),
            (false, HooksDecision::Ask, refused),
            // A rule that blocks came in meanwhile: an approval satisfies a question, and overrules nobody.
            (true, HooksDecision::Deny, "c1: Hook blocked: pre_tool_use: h: not any more"),
            // The rule that asked went: a yes lets run, and a no stays a no.
            (true, HooksDecision::Allow, "c1: worked"),
            (false, HooksDecision::Allow, refused),
        ] {
            let ran = usize::from(result == "c1: worked");
            let seen = changed(column, approve, then).await;
            assert_eq!(seen, (result.to_owned(), ran), "{column:?} {approve} {then:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_too_late_lets_nothing_run() {
    for column in COLUMNS {
        let word = Arc::new(Mutex::new(HooksDecision::Ask));
        let seen = answered(column, true, word, Arc::new(|machine: &Machine| machine.clock.pass(25))).await;
        let late = "c1: Tool execution was not approved in time (asked by hook \"h\")".to_owned();
        assert_eq!(seen, (late, 0), "{column:?}");
    }
}

#[tokio::test]
async fn hooks_are_asked_anew_and_each_time_leaves_its_records() {
    let (machine, anna) = (Machine::new(), Says::new(Some(true)));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let gate = move |at: &PreToolUse| {
        if at.call.tool != "work" {
            return Verdict::Continue;
        }
        count.fetch_add(1, Ordering::Relaxed);
        Verdict::Ask("is it safe?".into())
    };
    let rule = Rule { gate: Some(Box::new(gate)), ..Rule::default() };
    let test_agents = machine.process(ApprovalMode::Chat, Some(anna.clone()), rule);
    let mut conversation = machine.open();
    let report = test_agents.turn(&mut conversation, "go").await;
    assert_eq!(report.ending, TurnEnding::Completed);
    assert_eq!((asked.load(Ordering::Relaxed), anna.times(), machine.work.calls().len()), (2, 1, 1));
    assert_eq!(machine.states(), [ApprovalState::Used]);
}
