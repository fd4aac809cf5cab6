//! Sub-agents answer to every gate above them, and end once.

use pintle::checkpoint::ObservedEvent;
use pintle::checkpoint::runtime::TurnStatus;
use pintle::prelude::*;

use crate::host::{Ears, Till, open, refund, turn};

#[tokio::test]
async fn a_sub_agent_is_let_begin_by_gates_and_never_stands_too_deep() {
    let pintle = open();
    pintle
        .hook("no-clerks", "", |at: &SubagentStart| match at.agent.as_str() {
            "clerk" => Verdict::deny("clerks are asleep"),
            _ => Verdict::Continue,
        })
        .unwrap();
    let top = turn(&pintle);
    let refused = |came: Result<Turn, Stop>| match came {
        Err(Stop::Refused(refusal)) => refusal.text,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it began"),
    };
    let clerk = top.delegate("clerk", "t", None, TurnId::fresh()).await;
    assert_eq!(refused(clerk), "delegation to \"clerk\" blocked by hook policy: no-clerks: clerks are asleep");
    let one = top.delegate("a", "t", None, TurnId::fresh()).await.unwrap();
    let two = one.delegate("b", "t", None, TurnId::fresh()).await.unwrap();
    let three = two.delegate("c", "t", None, TurnId::fresh()).await.unwrap();
    let who = three.identity();
    let above: Vec<&str> = who.ancestors.iter().map(|agent| agent.as_str()).collect();
    assert_eq!((who.depth, above.join(" ")), (3, "b a support".to_owned()));
    let deep = three.delegate("d", "t", None, TurnId::fresh()).await;
    assert_eq!(refused(deep), "sub-agents may stand at most 3 levels below the first agent");
}

#[tokio::test]
async fn a_sub_agent_has_one_end_with_what_it_was_denied() {
    let pintle = open();
    pintle.hook("limit", "refund", |_: &PreToolUse| Verdict::deny("no")).unwrap();
    let mut ears = Ears::of(&pintle);
    let top = turn(&pintle);
    let child = top.delegate("clerk", "look", None, TurnId::fresh()).await.unwrap();
    let _begun = child.begin("look", InputKind::First).await.unwrap();
    let came = child.call(refund("c1"), &Till::default()).await;
    assert!(matches!(came, Err(Stop::Refused(_))));
    child.end("nothing found");
    let ObservedEvent::SubagentStop { status, outcome, denials, .. } =
        ears.until("subagent_stop").await.pop().unwrap().what
    else {
        panic!("it is called so");
    };
    assert_eq!((status, outcome.as_str()), (TurnStatus::Completed, "nothing found"));
    assert_eq!(denials, ["refund: Hook blocked: pre_tool_use: limit: no"]);
    drop(top.delegate("clerk", "look", None, TurnId::fresh()).await.unwrap());
    let ObservedEvent::SubagentStop { status, outcome, .. } = ears.until("subagent_stop").await.pop().unwrap().what
    else {
        panic!("it is called so");
    };
    assert_eq!((status, outcome.as_str()), (TurnStatus::Aborted, "it was stopped"));
}

#[tokio::test]
async fn a_hard_abort_below_stops_the_whole_run_and_a_question_below_is_refused() {
    let pintle = open();
    pintle.hook("stop", "refund", |_: &BeforeTool| Verdict::hard_abort("thieves")).unwrap();
    pintle.hook("ask", "lookup", |_: &PreToolUse| Verdict::Ask("sure?".into())).unwrap();
    let (till, top) = (Till::default(), turn(&pintle));
    let child = top.delegate("clerk", "look", None, TurnId::fresh()).await.unwrap();
    let asked = child.call(Call::new("c0", "lookup", [("a", 1)]), &till).await;
    assert!(matches!(asked, Err(Stop::Refused(_))), "whoever delegated waits, and cannot be parked");
    assert!(matches!(child.call(refund("c1"), &till).await, Err(Stop::Aborted(_))));
    assert!(matches!(top.call(Call::new("c2", "lookup", [("a", 1)]), &till).await, Err(Stop::Aborted(_))));
    assert!(top.cancel().is_cancelled());
    assert!(!turn(&pintle).cancel().is_cancelled(), "another run goes on");
    assert_eq!(till.runs(), 0);
}
