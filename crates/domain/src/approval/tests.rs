//! Questions for a person and what becomes of them, as tables.

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::clearing::ApprovalQuestion;
use crate::testing::call;
use crate::tool::ToolCall;
use crate::verdict::Reason;

mod seals;

/// The day begins here.
const BEGIN: Timestamp = Timestamp::UNIX_EPOCH;

fn after(seconds: i64) -> Timestamp {
    BEGIN.checked_add(SignedDuration::from_secs(seconds)).unwrap()
}

/// A question about `exec {"cmd": cmd}`, in `state`.
fn question(id: &str, cmd: &str, state: ApprovalState) -> Approval {
    let who = Identity::top("main", "s", TurnId::from("t"));
    let (by, why) = (HookName::from("gate"), Reason::new("risky"));
    let question = ApprovalQuestion { call: &call("exec", cmd), by: &by, why: &why };
    let answered_by = (state == ApprovalState::Refused).then(|| "anna".to_owned());
    Approval { state, answered_by, ..Approval::question(id.into(), &who, question, BEGIN) }
}

/// What becomes of a new question about `cmd` after `earlier`, `seconds` into the day.
fn planned(cmd: &str, earlier: &[Approval], seconds: i64) -> String {
    match plan(question("new", cmd, ApprovalState::Waiting), earlier, after(seconds)) {
        QuestionPlan::Stands(ApprovalStanding::Approved { id }) => format!("approved {id}"),
        QuestionPlan::Stands(ApprovalStanding::Refused { by, note }) => {
            format!("refused by {}: {note}", by.unwrap_or_default())
        }
        QuestionPlan::Stands(ApprovalStanding::Expired) => "expired".into(),
        QuestionPlan::Stands(ApprovalStanding::Waiting(it)) => format!("waiting {}", it.id),
        QuestionPlan::Park { new, void } => {
            let changed = new.changed_from.as_ref().map(|from| format!(", was {}", from["cmd"])).unwrap_or_default();
            assert_eq!(Approval { changed_from: None, ..*new }, question("new", cmd, ApprovalState::Waiting));
            format!("park, void {void:?}{changed}")
        }
    }
}

#[test]
fn a_question_carries_everything_that_it_is_about() {
    let it = question("a", "ls", ApprovalState::Waiting);
    assert_eq!((it.asked_at, it.expires_at), (BEGIN, after(LIFETIME_SECONDS)));
    assert_eq!((it.tool.as_str(), it.by.as_str(), it.reason.as_str()), ("exec", "gate", "risky"));
    assert_eq!(it.arguments, crate::testing::args("ls"));
    let who = Identity::top("main", "s", TurnId::from("t"));
    assert_eq!(it.digest, Digest::of(&who, &call("exec", "ls")).to_string());
    assert_ne!(it.digest, question("a", "pwd", ApprovalState::Waiting).digest);
    assert_eq!(serde_json::from_str::<Approval>(&serde_json::to_string(&it).unwrap()).unwrap(), it);
}

#[test]
fn digits_of_a_question_come_back_from_its_json() {
    let arguments: Object =
        serde_json::from_str(r#"{"n":0.10000000000000000001,"big":1234567890123456789012}"#).unwrap();
    let changed_from = Some(arguments.clone());
    let it = Approval {
        arguments,
        changed_from,
        answered_by: Some("anna".into()),
        note: "ok".into(),
        ..question("a", "ls", ApprovalState::Used)
    };
    let text = serde_json::to_string(&it).unwrap();
    assert!(text.contains("0.10000000000000000001") && text.contains("1234567890123456789012"));
    assert_eq!(serde_json::from_str::<Approval>(&text).unwrap(), it);
}

#[test]
fn the_same_call_finds_what_was_said() {
    let earlier = |state| [Approval { note: "not today".into(), ..question("a", "ls", state) }];
    assert_eq!(planned("ls", &[], 1), "park, void []");
    assert_eq!(planned("ls", &earlier(ApprovalState::Waiting), 1), "waiting a");
    assert_eq!(planned("ls", &earlier(ApprovalState::Approved), 1), "approved a");
    assert_eq!(planned("ls", &earlier(ApprovalState::Refused), 1), "refused by anna: not today");
    assert_eq!(planned("ls", &earlier(ApprovalState::Expired), 1), "expired");
    // What was used or given up is asked again.
    assert_eq!(planned("ls", &earlier(ApprovalState::Used), 1), "park, void []");
    assert_eq!(planned("ls", &earlier(ApprovalState::Void), 1), "park, void []");
    // Time takes questions and leave away, but no refusal.
    assert_eq!(planned("ls", &earlier(ApprovalState::Waiting), LIFETIME_SECONDS), "expired");
    assert_eq!(planned("ls", &earlier(ApprovalState::Approved), LIFETIME_SECONDS), "expired");
    assert_eq!(planned("ls", &earlier(ApprovalState::Approved), LIFETIME_SECONDS - 1), "approved a");
    assert_eq!(planned("ls", &earlier(ApprovalState::Refused), LIFETIME_SECONDS), "refused by anna: not today");
    // The newest counts.
    let both = [question("a", "ls", ApprovalState::Used), question("b", "ls", ApprovalState::Approved)];
    assert_eq!(planned("ls", &both, 1), "approved b");
}

#[test]
fn a_changed_call_is_asked_anew_and_shows_what_it_was() {
    let earlier = |state| [question("a", "ls", state)];
    assert_eq!(planned("rm", &earlier(ApprovalState::Waiting), 1), r#"park, void ["a"], was "ls""#);
    assert_eq!(planned("rm", &earlier(ApprovalState::Approved), 1), r#"park, void ["a"], was "ls""#);
    // A no stays a no for what it was said to.
    assert_eq!(planned("rm", &earlier(ApprovalState::Refused), 1), r#"park, void [], was "ls""#);
    assert_eq!(planned("rm", &earlier(ApprovalState::Used), 1), "park, void []");
    assert_eq!(planned("rm", &earlier(ApprovalState::Void), 1), "park, void []");
    assert_eq!(planned("rm", &earlier(ApprovalState::Expired), 1), "park, void []");
    assert_eq!(planned("rm", &earlier(ApprovalState::Waiting), LIFETIME_SECONDS), r#"park, void [], was "ls""#);

    let back = [question("a", "ls", ApprovalState::Refused), question("b", "rm", ApprovalState::Approved)];
    assert_eq!(planned("ls", &back, 1), "refused by anna: ");
    let back = [question("a", "ls", ApprovalState::Void), question("b", "rm", ApprovalState::Waiting)];
    assert_eq!(planned("ls", &back, 1), r#"park, void ["b"], was "rm""#);
    let both = [question("a", "ls", ApprovalState::Waiting), question("b", "rm", ApprovalState::Approved)];
    assert_eq!(planned("cp", &both, 1), r#"park, void ["a", "b"], was "rm""#);
}

#[test]
fn digits_tell_calls_apart() {
    let asked = |text: &str| {
        let call = ToolCall { arguments: serde_json::from_str(text).unwrap(), ..call("exec", "") };
        let who = Identity::top("main", "s", TurnId::from("t"));
        let question = ApprovalQuestion { call: &call, by: &HookName::from("g"), why: &Reason::new("") };
        Approval::question("a".into(), &who, question, BEGIN)
    };
    let approved = Approval { state: ApprovalState::Approved, ..asked(r#"{"n":1,"m":2}"#) };
    let stands =
        |text: &str| matches!(plan(asked(text), std::slice::from_ref(&approved), BEGIN), QuestionPlan::Stands(_));
    assert!(stands(r#"{"m":2,"n":1}"#));
    assert!(!stands(r#"{"n":1.0,"m":2}"#));
    assert!(!stands(r#"{"n":1}"#));
}

#[test]
fn time_passes_without_anybody_writing_it_down() {
    let states = [
        ApprovalState::Waiting,
        ApprovalState::Approved,
        ApprovalState::Refused,
        ApprovalState::Used,
        ApprovalState::Void,
        ApprovalState::Expired,
    ];
    let at = |seconds| states.map(|state| question("a", "ls", state).state_at(after(seconds)).word());
    assert_eq!(at(LIFETIME_SECONDS - 1), ["waiting", "approved", "refused", "used", "void", "expired"]);
    assert_eq!(at(LIFETIME_SECONDS), ["expired", "expired", "refused", "used", "void", "expired"]);
    for state in states {
        assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{}\"", state.word()));
    }
}

#[test]
fn the_first_answer_stands_and_a_second_one_says_why_it_does_nothing() {
    let says = |approve| PersonAnswer { approve, by: "anna".into(), note: "fine".into() };
    for (approve, state, text) in [
        (true, ApprovalState::Approved, "it was approved already, by anna"),
        (false, ApprovalState::Refused, "it was refused already, by anna"),
    ] {
        let mut it = question("a", "ls", ApprovalState::Waiting);
        it.answer(says(approve), after(1)).unwrap();
        let answered = it.clone();
        assert_eq!((it.state, it.answered_by.as_deref(), it.note.as_str()), (state, Some("anna"), "fine"));
        for second in [true, false] {
            let said = PersonAnswer { approve: second, by: "bob".into(), note: "no".into() };
            assert_eq!(it.answer(said, after(2)), Err(text.into()));
            assert_eq!(it, answered);
        }
    }
    let refused = |state, seconds| {
        let mut it = question("a", "ls", state);
        let why = it.answer(says(true), after(seconds)).unwrap_err();
        assert_eq!(it, question("a", "ls", state));
        why
    };
    assert_eq!(refused(ApprovalState::Used, 1), "it was approved and used already");
    assert_eq!(refused(ApprovalState::Void, 1), "it is void: the call changed or its turn is over");
    assert_eq!(refused(ApprovalState::Expired, 1), "it expired at 1970-01-02T00:00:00Z");
    assert_eq!(refused(ApprovalState::Waiting, LIFETIME_SECONDS), "it expired at 1970-01-02T00:00:00Z");
    assert_eq!(refused(ApprovalState::Approved, LIFETIME_SECONDS), "it expired at 1970-01-02T00:00:00Z");
    assert_eq!(refused(ApprovalState::Refused, LIFETIME_SECONDS), "it was refused already, by anna");
}

#[test]
fn the_table_cell_by_cell() {
    use CallHandling::{AskedHere, Parked, Refused, Runs, WaitsHere};
    // Verdict, then chat, run, resume, mcp, serve, sub-agent: with somebody present, and without.
    let table = [
        (HooksDecision::Allow, [(Runs, Runs); 6]),
        (HooksDecision::Deny, [(Refused, Refused); 6]),
        (
            HooksDecision::Ask,
            [
                (AskedHere, Parked),
                (Parked, Parked),
                (AskedHere, Parked),
                (WaitsHere, WaitsHere),
                (Parked, Parked),
                (AskedHere, Refused),
            ],
        ),
    ];
    for (came, row) in table {
        for (mode, (present, absent)) in MODES.into_iter().zip(row) {
            assert_eq!(handling(came, mode, true), present, "{came:?} {mode:?}, somebody is there");
            assert_eq!(handling(came, mode, false), absent, "{came:?} {mode:?}, nobody is there");
        }
    }
}

#[test]
fn the_model_learns_the_tool_and_the_number_and_the_person_how_to_answer() {
    let model = told_meanwhile("Bash", "0190-7");
    assert!(model.starts_with("this call of `Bash` needs a person's approval with the id 0190-7; "), "{model}");
    assert!(!model.contains("pintle"), "{model}");
    let person = how_to_answer("Bash", "0190-7", " it pushes ");
    assert!(person.starts_with("A call of `Bash` waits for you as approval 0190-7 (it pushes): "), "{person}");
    for answer in ["approve", "refuse"] {
        assert!(person.contains(&format!("`pintle approvals {answer} 0190-7`")), "{person}");
    }
    assert!(how_to_answer("Bash", "0190-7", "").contains("approval 0190-7: "));
}
