//! Calls: what runs, what stands in its place, and what goes wrong.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use pintle::checkpoint::before_tool::{CallPatch, Substitute};
use pintle::prelude::*;
use pintle::record::EventRecord;
use pintle::store::{OnKept, RecordQuery, RecordStore, StoreError, StoredEvent};

use crate::host::{Ears, TOOLS, Till, open, refund, turn};

/// A store that is gone.
struct Dead;

impl RecordStore for Dead {
    fn keep(&self, _records: Vec<EventRecord>, done: OnKept) {
        done(Err(StoreError::Unavailable("it is gone".into())));
    }

    fn find(&self, _query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
        Err(StoreError::Unavailable("it is gone".into()))
    }
}

#[tokio::test]
async fn a_result_of_a_hook_stands_in_the_place_of_the_tools() {
    let pintle = open();
    pintle
        .hook("cache", "refund", |_: &BeforeTool| {
            Verdict::respond(Substitute { call: None, result: Output::ok("kept") })
        })
        .unwrap();
    pintle.hook("after", "", |_: &AfterTool| Verdict::Modify(Output::ok("never"))).unwrap();
    let mut ears = Ears::of(&pintle);
    let (till, turn) = (Till::default(), turn(&pintle));
    let done = turn.call(refund("c1"), &till).await.unwrap();
    assert_eq!((done.output.for_llm.as_str(), done.by.unwrap().as_str(), till.runs()), ("kept", "cache", 0));
    assert_eq!(ears.names_until("post_tool_use").await, ["tool_exec_start", "tool_exec_end", "post_tool_use"]);
}

#[tokio::test]
async fn a_permit_reaches_only_what_runs_its_tool() {
    struct OnlyRefunds(Till);

    impl Executor for OnlyRefunds {
        type Error = String;

        fn runs(&self, tool: &str) -> bool {
            tool == "refund"
        }

        async fn execute(&self, permit: Permit, cancel: &Cancel) -> Result<Output, String> {
            assert_eq!(permit.call().tool, "refund");
            assert_eq!(permit.owner().session_id.as_str(), "session-1");
            self.0.execute(permit, cancel).await
        }
    }

    let pintle = open();
    pintle
        .hook("instead", "refund", |at: &BeforeTool| match at.call.text("to") {
            Some(tool) => Verdict::Modify(CallPatch { tool: Some(tool.to_owned()), arguments: None }),
            None => Verdict::Continue,
        })
        .unwrap();
    let (only, turn) = (OnlyRefunds(Till::default()), turn(&pintle));
    let refused = |came: Result<Done, Stop<String>>| match came {
        Err(Stop::Refused(refusal)) => refusal.text,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(turn.call(Call::new("c1", "lookup", [("a", 1)]), &only).await), "tool \"lookup\" not found");
    assert_eq!(refused(turn.call(Call::new("c2", "delete", [("a", 1)]), &only).await), "tool \"delete\" not found");
    let moved = turn.call(Call::new("c3", "refund", [("to", "lookup")]), &only).await;
    let text = "hooks changed the tool to \"lookup\", which does not run here".to_owned();
    assert_eq!((refused(moved), only.0.runs()), (text, 0));
    assert_eq!(turn.call(refund("c4"), &only).await.unwrap().output.for_llm, "refund done");
    // A host whose executor runs both runs what the hook made of it.
    let till = Till::default();
    let moved = turn.call(Call::new("c5", "refund", [("to", "lookup")]), &till).await.unwrap();
    assert_eq!((moved.call.tool.as_str(), moved.output.for_llm.as_str()), ("lookup", "lookup done"));
}

#[tokio::test]
async fn a_tool_that_fails_or_panics_has_an_end_and_after_tool_sees_it() {
    let pintle = open();
    let (say, mut seen) = tokio::sync::mpsc::unbounded_channel();
    pintle
        .hook("after", "", move |at: &AfterTool| {
            drop(say.send(at.result.for_llm.clone()));
            Verdict::Continue
        })
        .unwrap();
    let mut ears = Ears::of(&pintle);
    let (till, turn) = (Till::default(), turn(&pintle));
    let failed = turn.call(Call::new("c1", "refund", [("do", "fail")]), &till).await;
    assert!(matches!(&failed, Err(stop @ Stop::Own(_)) if stop.text() == "the tool failed"));
    let panics = turn.call(Call::new("c2", "refund", [("do", "panic")]), &till);
    assert!(AssertUnwindSafe(panics).catch_unwind().await.is_err(), "the panic is the host's own");
    for _ in 0..2 {
        assert_eq!(seen.recv().await.unwrap(), "the tool failed");
        assert_eq!(ears.names_until("post_tool_use").await, ["tool_exec_start", "tool_exec_end", "post_tool_use"]);
    }
}

#[tokio::test]
async fn a_panic_in_a_hook_shuts_its_gate_and_the_next_call_asks_it_again() {
    let pintle = open();
    pintle
        .hook("shaky", "", |at: &PreToolUse| {
            assert_ne!(at.call.id.as_str(), "c1");
            Verdict::Continue
        })
        .unwrap();
    let (till, turn) = (Till::default(), turn(&pintle));
    let Err(Stop::Refused(refusal)) = turn.call(refund("c1"), &till).await else { panic!("it ran") };
    assert!(refusal.text.contains("shaky"), "{}", refusal.text);
    assert_eq!(till.runs(), 0);
    let _done = turn.call(refund("c2"), &till).await.unwrap();
    assert_eq!(till.runs(), 1);
}

#[tokio::test]
async fn nothing_runs_whose_record_cannot_be_kept() {
    let pintle = Pintle::open(Stores::records(Arc::new(Dead)), &TOOLS).unwrap();
    let (till, turn) = (Till::default(), turn(&pintle));
    let Err(Stop::Refused(refusal)) = turn.call(refund("c1"), &till).await else { panic!("it ran") };
    assert_eq!((refusal.text.as_str(), refusal.by, till.runs()), ("audit record could not be written", None, 0));
}

#[tokio::test]
async fn a_cancelled_turn_runs_nothing_and_shows_no_unreviewed_result() {
    let pintle = open();
    let (till, first) = (Till::default(), turn(&pintle));
    first.cancel().cancel();
    assert!(matches!(first.call(refund("c1"), &till).await, Err(Stop::Cancelled)));
    assert!(matches!(first.begin("p", InputKind::First).await, Err(Stop::Cancelled)));
    assert_eq!(till.runs(), 0);

    pintle.hook("after", "", |_: &AfterTool| Verdict::Continue).unwrap();
    let second = Arc::new(turn(&pintle));
    struct CancelsMeanwhile(Cancel);

    impl Executor for CancelsMeanwhile {
        type Error = String;

        fn runs(&self, tool: &str) -> bool {
            tool == "refund"
        }

        async fn execute(&self, _permit: Permit, _cancel: &Cancel) -> Result<Output, String> {
            self.0.cancel();
            Ok(Output::ok("a secret"))
        }
    }

    let came = second.call(refund("c1"), &CancelsMeanwhile(second.cancel().clone())).await;
    let Err(Stop::Refused(refusal)) = came else { panic!("{came:?}") };
    assert!(refusal.ran && refusal.text.contains("withheld"), "{refusal:?}");
}

#[tokio::test]
async fn a_model_that_does_not_answer_is_dropped_when_the_turn_is_cancelled() {
    let pintle = open();
    let turn = turn(&pintle);
    let cancel = turn.cancel().clone();
    let hangs = async move |_| {
        cancel.cancel();
        std::future::pending::<Result<pintle::llm::LlmReply, String>>().await
    };
    assert!(matches!(turn.model(crate::host::request("p"), hangs).await, Err(Stop::Cancelled)));
}
