//! What is kept of what handlers wrote.

use super::*;
use crate::checkpoint::Reply;

/// Whether the records of `a` and `b` may have what they wrote, if they answer `replies` about `subject`.
fn kept<C: Checkpoint>(subject: C, replies: [Reply; 2]) -> Vec<bool> {
    let roster = Arc::new(Roster::new(["a", "b"].map(|name| hook(name, &[C::KIND])).into()));
    let mut chain = Chain::new(roster, Agent::with(&[]), subject);
    for reply in replies {
        let account = Some(Box::new(Account { stderr: Some("my key is …".into()), ..Account::default() }));
        chain.settle(HandlerAnswer { heard: Ok(reply), account }, Duration::ZERO);
    }
    // Whoever is asked once more goes on.
    while chain.next().is_some() {
        chain.settle(Ok(UserPromptSubmit::reply(Verdict::Continue)), Duration::ZERO);
    }
    let records = chain.conclude().records.to_vec();
    records.iter().filter_map(|record| record.account.as_ref()).map(|account| !account.hides_output).collect()
}

#[test]
fn nothing_is_kept_of_what_was_written_about_a_message_that_a_hook_changed_or_stopped() {
    let says = |second| {
        kept(
            UserPromptSubmit::first("my key is …"),
            [UserPromptSubmit::reply(Verdict::Continue), UserPromptSubmit::reply(second)],
        )
    };
    assert_eq!(says(Verdict::Continue), [true, true]);
    assert_eq!(says(Verdict::Modify("my key is …".into())), [true, true], "the same again is no change");
    assert_eq!(says(Verdict::Modify("my key is [a key]".into())), [false, false]);
    assert_eq!(says(Verdict::Deny("that is a key".into())), [false, false]);
}

#[test]
fn what_was_written_about_a_call_stays_unless_a_hook_changed_it() {
    let says = |second| kept(pre_tool_use(), [PreToolUse::reply(Verdict::Continue), PreToolUse::reply(second)]);
    assert_eq!(says(Verdict::Deny("no".into())), [true, true], "its arguments stay, too");
    assert_eq!(says(Verdict::Ask("risky".into())), [true, true]);
}
