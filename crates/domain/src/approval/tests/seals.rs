//! What somebody alters in a store gives no leave, as tables.

use super::*;
use crate::tool::ServerEntry;

fn key() -> ApprovalKey {
    ApprovalKey::of(&[7; 32])
}

fn there() -> CallPlace {
    CallPlace::in_folder("/work")
}

/// A change behind the program's back.
type Edit = fn(&mut Approval);

/// Every member of a question, each with something else in its place.
const EDITS: [(&str, Edit); 16] = [
    ("id", |it| it.id = "b".into()),
    ("tenant", |it| it.tenant_id = TenantId::from("other")),
    ("agent", |it| it.agent_id = AgentId::from("other")),
    ("session", |it| it.session_id = SessionId::from("other")),
    ("turn", |it| it.turn_id = TurnId::from("other")),
    ("call", |it| it.tool_call_id = CallId::from("other")),
    ("tool", |it| it.tool = "read_file".into()),
    ("arguments", |it| it.arguments = crate::testing::args("echo harmless")),
    ("digest", |it| it.digest = "00".repeat(32)),
    ("asks", |it| it.by = HookName::from("nobody")),
    ("why", |it| it.reason = "nothing to see".into()),
    ("before", |it| it.changed_from = Some(crate::testing::args("pwd"))),
    ("again", |it| it.again_because = Some("nothing".into())),
    ("place", |it| it.place = Some(CallPlace::in_folder("/harmless"))),
    ("asked", |it| it.asked_at = after(1)),
    ("until", |it| it.expires_at = after(10 * LIFETIME_SECONDS)),
];

/// What only an answer has.
const ANSWER_EDITS: [(&str, Edit); 2] =
    [("who", |it| it.answered_by = Some("eve".into())), ("note", |it| it.note = "whatever".into())];

fn sealed(state: ApprovalState) -> (Approval, String) {
    let asked = question("a", "rm", ApprovalState::Waiting).at(there());
    let it = Approval { state, answered_by: (state != ApprovalState::Waiting).then(|| "anna".into()), ..asked };
    let seal = key().seal(&it);
    (it, seal)
}

#[test]
fn a_seal_is_over_everything_that_is_shown_and_said() {
    for state in [ApprovalState::Waiting, ApprovalState::Approved] {
        let (it, seal) = sealed(state);
        assert_eq!(it.clone().examined(Some(&key()), Some(&seal)).state_at(after(1)), state);
        let answer = ANSWER_EDITS.iter().filter(|_| state == ApprovalState::Approved);
        for (what, edit) in EDITS.iter().chain(answer) {
            let mut altered = it.clone();
            edit(&mut altered);
            let found = altered.examined(Some(&key()), Some(&seal));
            assert!(found.is_altered(), "{what}");
            assert_eq!(found.state_at(after(1)), ApprovalState::Void, "{what}");
        }
    }
}

#[test]
fn a_state_that_nobody_sealed_is_none() {
    let flaw = |state, seal: Option<&str>| {
        let it = Approval { state, ..sealed(ApprovalState::Waiting).0 };
        it.examined(Some(&key()), seal).flaw
    };
    let (_, waiting) = sealed(ApprovalState::Waiting);
    let foreign = ApprovalKey::of(&[8; 32]).seal(&sealed(ApprovalState::Approved).0);
    assert_eq!(flaw(ApprovalState::Approved, None), Some(ApprovalFlaw::Unsealed));
    for seal in [&waiting, &foreign, "", "?"] {
        assert_eq!(flaw(ApprovalState::Approved, Some(seal)), Some(ApprovalFlaw::BrokenSeal), "{seal}");
    }
    // What was used or refused gives no leave, whoever wrote so.
    for state in [ApprovalState::Refused, ApprovalState::Used, ApprovalState::Void, ApprovalState::Expired] {
        assert_eq!(flaw(state, None), None);
    }
    // Whoever takes the seal off a question is seen, also where its place went with it: those that a version without
    // seals asked got one when the store was brought up to date.
    assert_eq!(flaw(ApprovalState::Waiting, None), Some(ApprovalFlaw::Altered));
    let of_before = question("a", "rm", ApprovalState::Waiting);
    assert!(of_before.is_of_before_seals() && !sealed(ApprovalState::Waiting).0.is_of_before_seals());
    assert_eq!(of_before.clone().examined(Some(&key()), None).flaw, Some(ApprovalFlaw::Altered));
    // A host without a key proves nothing, and takes what stands there as far as its digest fits.
    assert_eq!(Approval { state: ApprovalState::Approved, ..of_before.clone() }.examined(None, None).flaw(), None);
    let altered = Approval { arguments: crate::testing::args("ls"), ..of_before };
    assert_eq!(altered.examined(None, None).flaw(), Some(ApprovalFlaw::Altered));
}

#[test]
fn a_key_that_was_replaced_still_proves_what_it_sealed() {
    let (it, seal) = sealed(ApprovalState::Approved);
    let newer = ApprovalKey::of(&[8; 32]).and_older(&key());
    assert!(newer.holds(&it, &seal) && newer.holds(&it, &newer.seal(&it)) && !key().holds(&it, &newer.seal(&it)));
    let newest = ApprovalKey::of(&[9; 32]).and_older(&newer);
    assert!(newest.holds(&it, &seal) && newest.holds(&it, &newer.seal(&it)));
    assert_eq!(format!("{newest:?}"), "ApprovalKey(…)");
}

#[test]
fn what_was_altered_is_void_and_asked_again_with_the_reason() {
    for state in [ApprovalState::Waiting, ApprovalState::Approved] {
        for (what, edit) in EDITS.iter().filter(|(what, _)| *what != "id") {
            let (mut row, seal) = sealed(state);
            edit(&mut row);
            let row = row.examined(Some(&key()), Some(&seal));
            let plan = plan(question("new", "rm", ApprovalState::Waiting).at(there()), &[row], after(1));
            let QuestionPlan::Park { new, void } = plan else { panic!("{what} {state:?}: it stands") };
            assert_eq!((void, new.changed_from), (vec!["a".to_owned()], None), "{what} {state:?}");
            assert!(new.again_because.unwrap().starts_with("approval `a` is void: "), "{what} {state:?}");
        }
    }
}

#[test]
fn a_question_that_says_what_was_asked_may_be_of_another_key() {
    let (it, _) = sealed(ApprovalState::Waiting);
    let foreign = ApprovalKey::of(&[8; 32]).seal(&it);
    let it = it.examined(Some(&key()), Some(&foreign));
    assert_eq!((it.flaw, it.state_at(after(1))), (Some(ApprovalFlaw::BrokenSeal), ApprovalState::Void));
}

#[test]
fn what_was_altered_takes_no_answer() {
    let (mut it, seal) = sealed(ApprovalState::Waiting);
    it.arguments = crate::testing::args("echo harmless");
    let mut it = it.examined(Some(&key()), Some(&seal));
    let said = PersonAnswer { approve: true, by: "anna".into(), note: String::new() };
    let why = "it is void: what stands in the store is not what was asked";
    assert_eq!((it.answer(said, after(1)), it.state), (Err(why.into()), ApprovalState::Waiting));
}

/// What becomes of the same call there, after it was asked about here.
fn moved(here: Option<CallPlace>, state: ApprovalState, there: CallPlace) -> String {
    let earlier = Approval { place: here, ..question("a", "rm", state) };
    match plan(question("new", "rm", ApprovalState::Waiting).at(there), &[earlier], after(1)) {
        QuestionPlan::Stands(ApprovalStanding::Approved { .. }) => "approved".into(),
        QuestionPlan::Stands(ApprovalStanding::Refused { .. }) => "refused".into(),
        QuestionPlan::Stands(ApprovalStanding::Waiting(_)) => "waiting".into(),
        QuestionPlan::Stands(ApprovalStanding::Expired) => "expired".into(),
        QuestionPlan::Park { new, void } => format!("{}, void {void:?}", new.again_because.unwrap_or_default()),
    }
}

#[test]
fn an_approval_holds_where_it_was_given() {
    let folder = |name: &str| CallPlace::in_folder(name);
    let shell = |name: &str| CallPlace { shell: Some(name.into()), ..folder("/a") };
    let server = |runs: &str, digest: &str| {
        let entry = ServerEntry { name: "files".into(), runs: runs.into(), digest: digest.into() };
        CallPlace { server: Some(entry), ..CallPlace::default() }
    };
    let void = |why: &str| format!(r#"approval `a` is void: {why}, void ["a"]"#);
    for (here, there, why) in [
        (folder("/a"), folder("/b"), "its workspace is /b now, and was /a"),
        (folder("/a"), CallPlace::default(), "its workspace is none now, and was /a"),
        (shell("/bin/sh"), shell("/bin/bash"), "its shell is /bin/bash now, and was /bin/sh"),
        (server("npx a", "1"), server("npx b", "2"), "its server is `npx b` now, and was `npx a`"),
        (server("npx a", "1"), server("npx a", "2"), "the entry of its server changed"),
    ] {
        for state in [ApprovalState::Waiting, ApprovalState::Approved] {
            assert_eq!(moved(Some(here.clone()), state, there.clone()), void(why));
        }
        // A no stays a no wherever the call would run.
        assert_eq!(moved(Some(here.clone()), ApprovalState::Refused, there.clone()), "refused");
        assert_eq!(moved(Some(here.clone()), ApprovalState::Approved, here), "approved");
    }
    // Versions that did not say where a call runs asked for everywhere, and showed that.
    assert_eq!(moved(None, ApprovalState::Waiting, folder("/a")), "waiting");
    assert_eq!(moved(None, ApprovalState::Approved, folder("/a")), "approved");
}
