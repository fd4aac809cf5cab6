//! Turns that a person undoes.

use super::*;

#[tokio::test]
async fn a_turn_whose_taking_back_cannot_be_noted_stays() {
    let store = Arc::new(Breaking { inner: Memory::new(), broken: AtomicBool::new(false) });
    let asked = Arc::new(tokio::sync::Notify::new());
    let hears = asked.clone();
    let model = Mind::slow(move |_, _| {
        hears.notify_one();
        std::future::pending().boxed()
    });
    let test_agents = TestAgentsParts::of(model, &["main"]).test_agents();
    let mut conversation = Conversation::open(store.clone(), "s").unwrap();
    let turn_handle = TurnHandle::default();
    let stops = async {
        asked.notified().await;
        turn_handle.cancel();
    };
    let turn = test_agents.turn_by(&mut conversation, "go", &turn_handle);
    let (report, ()) = futures_util::future::join(turn, stops).await;
    assert_eq!(report.ending, TurnEnding::Cancelled);
    store.broken.store(true, Ordering::SeqCst);
    let before = said(&conversation);
    // Whoever opens the session next would find it there.
    assert_eq!(conversation.take_back().await, Err(StoreError::Unavailable("no space".into())));
    assert_eq!((said(&conversation), before.first().map(String::as_str)), (before.clone(), Some("user: go")));
    store.broken.store(false, Ordering::SeqCst);
    assert_eq!((conversation.take_back().await, said(&conversation)), (Ok(true), Vec::new()));
}
