//! Questions for a person: asked here, parked, answered, used once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pintle::prelude::*;
use pintle::store::StoreError;
use tokio::sync::{Barrier, Notify};

use crate::host::{TOOLS, Till, memory, open, refund, turn};

fn answer(approve: bool) -> Answer {
    Answer { approve, by: "ada".into(), note: String::new() }
}

fn asking(pintle: &Pintle) {
    pintle.hook("limit", "refund", |_: &PreToolUse| Verdict::Ask("is that right?".into())).unwrap();
}

fn the_turn(pintle: &Pintle, id: &TurnId) -> Turn {
    pintle.tenant("default").unwrap().turn("support", "session-1", id.clone())
}

async fn parked(pintle: &Pintle, id: &TurnId) -> String {
    match the_turn(pintle, id).call(refund("c1"), &Till::default()).await {
        Err(Stop::Parked(parked)) => parked.question.id,
        other => panic!("{other:?}"),
    }
}

/// What a person there does.
enum Person {
    Says(bool),
    Declines,
    /// Is asked, and never answers.
    Thinks(Arc<tokio::sync::Notify>),
}

impl Ui for Person {
    fn ask<'a>(&'a self, question: &'a Approval) -> Fut<'a, Option<Answer>> {
        assert_eq!(question.tool, "refund");
        Box::pin(async move {
            match self {
                Self::Says(approve) => Some(answer(*approve)),
                Self::Declines => None,
                Self::Thinks(asked) => {
                    asked.notify_one();
                    std::future::pending().await
                }
            }
        })
    }
}

#[tokio::test]
async fn a_person_who_is_there_is_asked_and_what_they_say_counts() {
    let pintle = open();
    asking(&pintle);
    let till = Till::default();
    pintle.ui(Person::Says(true));
    assert_eq!(turn(&pintle).call(refund("c1"), &till).await.unwrap().output.for_llm, "refund done");
    pintle.ui(Person::Says(false));
    let Err(Stop::Refused(refusal)) = turn(&pintle).call(refund("c1"), &till).await else { panic!("it ran") };
    assert!(refusal.text.contains("refused by a person"), "{}", refusal.text);
    pintle.ui(Person::Declines);
    assert!(matches!(turn(&pintle).call(refund("c1"), &till).await, Err(Stop::Parked(_))));
    assert_eq!(till.runs(), 1);
}

#[tokio::test]
async fn a_person_who_is_slower_than_another_lost_the_race() {
    let pintle = open();
    asking(&pintle);
    let asked = Arc::new(tokio::sync::Notify::new());
    pintle.ui(Person::Thinks(asked.clone()));
    let approvals = pintle.tenant("default").unwrap().approvals().unwrap();
    let (till, turn) = (Till::default(), turn(&pintle));
    let elsewhere = async {
        asked.notified().await;
        let question = approvals.list(true, 9).unwrap().remove(0);
        approvals.answer(&question.id, answer(true)).unwrap();
    };
    let (done, ()) = tokio::join!(turn.call(refund("c1"), &till), elsewhere);
    assert_eq!((done.unwrap().output.for_llm.as_str(), till.runs()), ("refund done", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_tasks_and_another_host_race_on_one_approval_and_one_runs() {
    let store = memory();
    let hosts = [Pintle::open(store.clone(), &TOOLS).unwrap(), Pintle::open(store.clone(), &TOOLS).unwrap()];
    hosts.iter().for_each(asking);
    let id = TurnId::fresh();
    let question = parked(&hosts[0], &id).await;
    hosts[1].tenant("default").unwrap().approvals().unwrap().answer(&question, answer(true)).unwrap();
    let (till, gate, others) = (Arc::new(Till::default()), Arc::new(Barrier::new(8)), Arc::new(AtomicUsize::new(0)));
    let race = (0..8).map(|at| {
        let (turn, till) = (the_turn(&hosts[at % 2], &id), till.clone());
        let (gate, others) = (gate.clone(), others.clone());
        async move {
            gate.wait().await;
            match turn.call(refund("c1"), &*till).await {
                Ok(_) => {}
                Err(Stop::Parked(_) | Stop::Refused(_)) => drop(others.fetch_add(1, Ordering::Relaxed)),
                Err(other) => panic!("{other:?}"),
            }
        }
    });
    let mut tasks = tokio::task::JoinSet::new();
    race.for_each(|one| drop(tasks.spawn(one)));
    tasks.join_all().await;
    assert_eq!((till.runs(), others.load(Ordering::Relaxed)), (1, 7));
}

#[tokio::test]
async fn a_call_parked_by_a_host_that_is_gone_runs_in_another_one_once() {
    let store = memory();
    let id = TurnId::fresh();
    let question = {
        let gone = Pintle::open(store.clone(), &TOOLS).unwrap();
        asking(&gone);
        parked(&gone, &id).await
    };
    let pintle = Pintle::open(store, &TOOLS).unwrap();
    asking(&pintle);
    pintle.tenant("default").unwrap().approvals().unwrap().answer(&question, answer(true)).unwrap();
    let till = Till::default();
    let _done = the_turn(&pintle, &id).call(refund("c1"), &till).await.unwrap();
    assert!(matches!(the_turn(&pintle, &id).call(refund("c1"), &till).await, Err(Stop::Parked(_))), "it is asked anew");
    assert_eq!(till.runs(), 1);
}

#[tokio::test]
async fn a_no_stays_a_no_when_no_hook_asks_any_more() {
    let store = memory();
    let asks = Pintle::open(store.clone(), &TOOLS).unwrap();
    asking(&asks);
    let id = TurnId::fresh();
    let question = parked(&asks, &id).await;
    let quiet = Pintle::open(store, &TOOLS).unwrap();
    let till = Till::default();
    assert!(matches!(the_turn(&quiet, &id).call(refund("c1"), &till).await, Err(Stop::Parked(_))));
    asks.tenant("default").unwrap().approvals().unwrap().answer(&question, answer(false)).unwrap();
    let Err(Stop::Refused(refusal)) = the_turn(&quiet, &id).call(refund("c1"), &till).await else { panic!("it ran") };
    assert!(refusal.text.contains("refused by a person"), "{}", refusal.text);
    let elsewhere = the_turn(&quiet, &TurnId::fresh()).call(refund("c1"), &till).await;
    assert!(elsewhere.is_ok(), "another turn is another call");
    assert_eq!(till.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_an_answer_is_woken_by_it() {
    let pintle = open();
    asking(&pintle);
    let question = parked(&pintle, &TurnId::fresh()).await;
    let approvals = pintle.tenant("default").unwrap().approvals().unwrap();
    let waits = tokio_util::task::TaskTracker::new().spawn({
        let (approvals, id) = (pintle.tenant("default").unwrap().approvals().unwrap(), question.clone());
        async move { (approvals.answered(&id).await, tokio::time::Instant::now()) }
    });
    // It looks, and then waits for the bell.
    tokio::task::yield_now().await;
    let answered_at = tokio::time::Instant::now();
    let answered = tokio::task::spawn_blocking(move || approvals.answer(&question, answer(true))).await.unwrap();
    assert_eq!(answered.unwrap().state, pintle::approval::ApprovalState::Approved);
    let (came, woken_at) = waits.await.unwrap();
    assert_eq!(came.unwrap().state, pintle::approval::ApprovalState::Approved);
    // The clock stands still while anybody can go on: the store was not looked at again and again.
    assert!(woken_at - answered_at < Duration::from_millis(500), "{:?}", woken_at - answered_at);
}

#[tokio::test]
async fn where_nothing_is_kept_an_ask_refuses() {
    let pintle = Pintle::open(Stores::none(), &TOOLS).unwrap();
    asking(&pintle);
    pintle.ui(Person::Says(true));
    let till = Till::default();
    let Err(Stop::Refused(refusal)) = turn(&pintle).call(refund("c1"), &till).await else { panic!("it ran") };
    assert!(refusal.text.contains("nobody can be asked here"), "{}", refusal.text);
    assert_eq!(till.runs(), 0);
    assert!(pintle.tenant("default").unwrap().approvals().is_none());
}

#[tokio::test]
async fn an_answer_needs_a_question() {
    let approvals = open().tenant("default").unwrap().approvals().unwrap();
    assert!(matches!(approvals.answer("nothing", answer(true)), Err(StoreError::NotFound(_))));
    assert!(matches!(approvals.answered("nothing").await, Err(StoreError::NotFound(_))));
}

/// Says yes when it is let.
#[derive(Clone, Default)]
struct SaysLater(Arc<(Notify, Notify)>);

impl Ui for SaysLater {
    fn ask<'a>(&'a self, _question: &'a Approval) -> Fut<'a, Option<Answer>> {
        let (asked, go) = &*self.0;
        Box::pin(async move {
            asked.notify_one();
            go.notified().await;
            Some(answer(true))
        })
    }
}

#[tokio::test]
async fn what_a_person_allows_does_not_run_in_a_turn_that_was_stopped_meanwhile() {
    let pintle = open();
    asking(&pintle);
    let stops = |at: &BeforeTool| match at.call.id.as_str() {
        "c2" => Verdict::abort_turn("enough"),
        _ => Verdict::Continue,
    };
    pintle.hook("stops", "refund", stops).unwrap();
    let person = SaysLater::default();
    pintle.ui(person.clone());
    let (turn, till) = (turn(&pintle), Till::default());
    let (first, ()) = tokio::join!(turn.call(refund("c1"), &till), async {
        person.0.0.notified().await;
        assert!(matches!(turn.call(refund("c2"), &till).await, Err(Stop::Aborted(_))));
        person.0.1.notify_one();
    });
    assert!(matches!(first, Err(Stop::Aborted(_))), "{first:?}");
    assert_eq!(till.runs(), 0);
}
