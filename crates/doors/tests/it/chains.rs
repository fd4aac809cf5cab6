//! Conversations that stand at the vendor: which answers requests may go on from, whose these are, and what is known then.

use jiff::{SignedDuration, Timestamp};
use pintle_domain::json::json;
use pintle_doors::answer::{AnswerStep, AnswerTo, DenyMode, StoredAnswer};
use pintle_doors::keeper::{ChainOwner, KEPT_FOR, Keeper, MAX_CHAINS, MAX_SESSIONS};
use pintle_doors::request::{AnswerChain, Previous, SeenCall, SeenRequest};
use pintle_doors::responses;

use crate::played::{Wire, ruled};

/// What may be gone on from of an answer in `rounds`, as it is known when its bytes are sent.
fn stored(wire: Wire, to: AnswerTo, mode: DenyMode, rounds: &[String]) -> Option<StoredAnswer> {
    let mut machine = wire.vendor().answer(AnswerTo { streams: wire.streams(), ..to }, mode);
    let (mut rounds, mut stored) = (rounds.iter(), None);
    loop {
        match machine.next() {
            Some(AnswerStep::Send(_)) => stored = machine.take_stored().or(stored),
            Some(AnswerStep::Rule(call)) => machine.rule(ruled(&call)),
            Some(AnswerStep::GoOn(_) | AnswerStep::Unread { .. }) => {}
            Some(AnswerStep::Done(_)) => return stored,
            Some(AnswerStep::Broken(why)) => panic!("{why}"),
            None => {
                machine.feed(rounds.next().expect("another round").as_bytes());
                machine.end();
            }
        }
    }
}

fn call(id: &str, name: &str) -> SeenCall {
    let arguments = json!({"n": 1}).as_object().unwrap().clone();
    SeenCall { id: id.into(), made: None, name: name.into(), arguments }
}

#[test]
fn an_answer_that_the_client_gets_as_the_vendor_keeps_it_may_be_gone_on_from() {
    let cases: [(&[&str], DenyMode, bool); 8] = [
        (&[], DenyMode::Answer, true),
        (&["yes"], DenyMode::Answer, true),
        (&["yes", "also"], DenyMode::Text, true),
        // Refused beside others, refused, changed, stopped: the client gets something else.
        (&["yes", "no"], DenyMode::Answer, false),
        (&["no"], DenyMode::Answer, false),
        (&["yes", "no"], DenyMode::Text, false),
        (&["yes", "change"], DenyMode::Answer, false),
        (&["stop", "yes"], DenyMode::Answer, false),
    ];
    for (names, mode, is_stored) in cases {
        for wire in [Wire::ResponsesStream, Wire::ResponsesWhole] {
            let ids = ["c0", "c1"];
            let made: Vec<_> = names.iter().zip(ids).map(|(name, id)| (id, *name, "{\"n\":1}")).collect();
            let rounds = [wire.written("r1", "hi", &made), wire.written("r2", "well", &[])];
            let came = stored(wire, AnswerTo::default(), mode, &rounds);
            let told = came.map(|answer| {
                let calls = answer.calls.into_iter().map(|call| (call.id, call.name, call.arguments));
                (answer.id, calls.collect::<Vec<_>>())
            });
            let all = made.iter().map(|(id, name, _)| call(id, name)).map(|call| (call.id, call.name, call.arguments));
            let expected = is_stored.then(|| ("r1".to_owned(), all.collect::<Vec<_>>()));
            assert_eq!(told, expected, "{wire:?} {names:?} {mode:?}");
            // What the vendor does not keep, or did not end, nothing goes on from.
            let unkept = AnswerTo { is_stored: false, ..AnswerTo::default() };
            assert_eq!(stored(wire, unkept, mode, &rounds), None, "{wire:?} {names:?}");
            let cut = rounds.map(|round| {
                let round = round.replace("response.completed", "response.incomplete");
                round.replace(r#""status":"completed","output""#, r#""status":"incomplete","output""#)
            });
            if mode == DenyMode::Text || is_stored {
                assert_eq!(stored(wire, AnswerTo::default(), mode, &cut), None, "{wire:?} {names:?}");
            }
        }
    }
    let nameless = Wire::ResponsesWhole.written("", "hi", &[]);
    assert_eq!(stored(Wire::ResponsesWhole, AnswerTo::default(), DenyMode::Answer, &[nameless]), None);
}

/// `body` as it goes on from `chain`.
fn behind(chain: &AnswerChain, body: &str) -> SeenRequest {
    let request = responses::read(body.into()).unwrap();
    assert_eq!(request.previous, Some(Previous::Named("r".into())));
    SeenRequest { previous: Some(Previous::Known(chain.clone())), ..request }
}

#[test]
fn what_is_new_is_read_as_part_of_the_whole_conversation() {
    let calls = vec![call("c", "f"), call("d", "g")];
    let chain = AnswerChain { session: "s".into(), prompts: 3, turn: 2, calls, tokens: 90 };
    let body = r#"{"model":"m","previous_response_id":"r","input":[
        {"type":"function_call_output","call_id":"c","output":"done"},
        {"role":"user","content":"go on"},
        {"type":"function_call","call_id":"e","name":"h","arguments":"{\"n\":1}"}]}"#;
    let request = behind(&chain, body);
    let prompts: Vec<_> = request.prompts().into_iter().map(|it| (it.message, it.ordinal, it.text)).collect();
    assert_eq!(prompts, [(1, 3, "go on".to_owned())]);
    assert_eq!((request.turn(), request.tokens_before(), request.lost_result()), (3, 90, None));
    assert_eq!(request.call("c", 0), Some(&call("c", "f")));
    assert_eq!((request.call("e", 3), request.call("e", 2)), (Some(&call("e", "h")), None));
    let left = vec![call("d", "g"), call("e", "h")];
    let expected = AnswerChain { session: "s".into(), prompts: 4, turn: 3, calls: left, tokens: 90 };
    assert_eq!(request.chained("s"), expected);
    // A result of a call that nobody knows, or that was not made yet, is none that hooks could be shown.
    for other in ["x", "e"] {
        let body = body.replacen(r#""call_id":"c""#, &format!(r#""call_id":"{other}""#), 1);
        assert_eq!(behind(&chain, &body).lost_result(), Some(0), "{other}");
    }
    // A whole conversation begins from nothing.
    let whole = responses::read(body.replace(r#""previous_response_id":"r","#, "")).unwrap();
    assert_eq!((whole.previous.clone(), whole.turn(), whole.prompts()[0].ordinal), (None, 1, 0));
}

fn chain(session: &str) -> AnswerChain {
    AnswerChain { session: session.into(), prompts: 1, ..AnswerChain::default() }
}

#[test]
fn an_answer_is_known_to_whoever_got_it_in_their_session_alone() {
    let (mut keeper, now) = (Keeper::default(), Timestamp::UNIX_EPOCH);
    let own = ["a\nanna", "a\nkey", "claim", "user"];
    keeper.visit("a\nanna s", 0, now);
    keeper.keep_chain("a\nanna s", ChainOwner::new(own).key("r"), chain("s"), now);
    assert_eq!(keeper.chain(&ChainOwner::new(own).key("r"), now), Some(chain("s")));
    for other in [
        ["b\nanna", "a\nkey", "claim", "user"],
        ["a\nanna", "a\nother", "claim", "user"],
        ["a\nanna", "a\nkey", "", "user"],
        ["a\nanna", "a\nkey", "claim", "other"],
        ["a\nanna", "a\nkey", "claimuser", ""],
        ["", "", "", ""],
    ] {
        assert_eq!(keeper.chain(&ChainOwner::new(other).key("r"), now), None, "{other:?}");
    }
    assert_eq!(keeper.chain(&ChainOwner::new(own).key("r2"), now), None);
    // An answer is the end of one conversation, whatever the vendor says a second time.
    keeper.visit("a\nanna t", 0, now);
    keeper.keep_chain("a\nanna t", ChainOwner::new(own).key("r"), chain("t"), now);
    assert_eq!(keeper.chain(&ChainOwner::new(own).key("r"), now), Some(chain("t")));
}

#[test]
fn answers_are_forgotten_after_a_day_and_the_oldest_of_too_many_first() {
    let owner = ChainOwner::new(["", "", "", ""]);
    let at = |second: usize| Timestamp::from_second(i64::try_from(second).unwrap()).unwrap();
    let mut keeper = Keeper::default();
    keeper.visit("s", 0, at(0));
    for number in 0..=MAX_CHAINS {
        keeper.keep_chain("s", owner.key(&number.to_string()), chain("s"), at(number));
    }
    let is_known = |keeper: &Keeper, id: usize, now| keeper.chain(&owner.key(&id.to_string()), now).is_some();
    let now = at(MAX_CHAINS);
    assert_eq!(
        (is_known(&keeper, 0, now), is_known(&keeper, 1, now), is_known(&keeper, MAX_CHAINS, now)),
        (false, true, true)
    );
    // The session is spoken in, and the answer is old.
    keeper.visit("s", 0, now);
    let late = now + KEPT_FOR;
    keeper.visit("s", 1, late - SignedDuration::from_secs(1));
    assert!(is_known(&keeper, MAX_CHAINS, late - SignedDuration::from_secs(1)));
    assert!(!is_known(&keeper, MAX_CHAINS, late));
    // A session that gives way takes its answers with it, and one that is not known keeps none.
    keeper.keep_chain("s", owner.key("x"), chain("s"), late);
    for number in 0..MAX_SESSIONS {
        keeper.visit(&number.to_string(), 0, late);
    }
    assert_eq!(keeper.chain(&owner.key("x"), late), None);
    keeper.keep_chain("s", owner.key("x"), chain("s"), late);
    assert_eq!(keeper.chain(&owner.key("x"), late), None);
}
