//! Every end of a tool, of a model call and of a turn is told as it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use pintle::checkpoint::{ObservedEvent, RuntimeEvent};
use pintle::llm::{LlmReply, LlmRequest, Usage};
use pintle::message::{Message, Role};
use pintle::prelude::*;
use pintle_store::Memory;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// How a tool ends, and how often one was asked for.
#[derive(Clone, Copy)]
enum Ends {
    Well,
    Fails,
    Panics,
}

struct Tool {
    ends: Ends,
    ran: AtomicUsize,
}

impl Tool {
    fn that(ends: Ends) -> Self {
        Self { ends, ran: AtomicUsize::new(0) }
    }

    fn ran(&self) -> usize {
        self.ran.load(Ordering::Relaxed)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the payment service is away")]
struct Away;

impl Executor for Tool {
    type Error = Away;

    fn runs(&self, tool: &str) -> bool {
        tool == "refund"
    }

    async fn execute(&self, permit: Permit, _cancel: &Cancel) -> Result<Output, Away> {
        self.ran.fetch_add(1, Ordering::Relaxed);
        match self.ends {
            Ends::Well => Ok(Output::ok(format!("{} done", permit.into_call().tool))),
            Ends::Fails => Err(Away),
            Ends::Panics => panic!("a fault of the tool"),
        }
    }
}

/// A host with the tool `refund`, and what its observers hear.
struct Heard {
    pintle: Pintle,
    notices: UnboundedReceiver<Notice>,
    checked: Arc<AtomicUsize>,
}

impl Heard {
    fn with(stores: Stores) -> Self {
        let pintle = Pintle::open(stores, &["refund"]).expect("a host");
        let (to, notices) = unbounded_channel();
        pintle
            .observer("ears", move |notice: &Notice| to.send(notice.clone()).unwrap_or_default())
            .expect("a free name");
        let checked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&checked);
        pintle
            .hook("results", "", move |_: &AfterTool| {
                count.fetch_add(1, Ordering::Relaxed);
                Verdict::Continue
            })
            .expect("a free name");
        Self { pintle, notices, checked }
    }

    fn turn(&self) -> Turn {
        self.pintle.tenant("default").expect("it is always there").turn("support", "s", TurnId::fresh())
    }

    /// All that observers were told, once the host is closed.
    async fn all(mut self) -> Vec<Notice> {
        let left = self.pintle.close(Duration::from_secs(10)).await;
        assert_eq!(left.tasks, 0);
        drop(self.pintle);
        let mut all = Vec::new();
        while let Some(notice) = self.notices.recv().await {
            all.push(notice);
        }
        all
    }
}

fn refund() -> Call {
    Call::new("c", "refund", [("amount", 1)])
}

fn request() -> LlmRequest {
    LlmRequest::new("any/model", [Message::text(Role::User, "refund it")])
}

fn turn_ends(all: &[Notice]) -> Vec<&RuntimeEvent> {
    all.iter()
        .filter_map(|notice| {
            let ObservedEvent::Runtime(event @ RuntimeEvent::TurnEnd { .. }) = &notice.what else { return None };
            Some(event)
        })
        .collect()
}

#[tokio::test]
async fn hooks_see_the_result_of_a_tool_that_fails() {
    let heard = Heard::with(Stores::none());
    let turn = heard.turn();
    let stop = turn.call(refund(), &Tool::that(Ends::Fails)).await.unwrap_err();
    assert!(matches!(stop, Stop::Own(Away)), "{stop:?}");
    drop(turn);
    assert_eq!(heard.checked.load(Ordering::Relaxed), 1);
    let all = heard.all().await;
    let errors: Vec<bool> = all
        .iter()
        .filter_map(|notice| {
            let ObservedEvent::PostToolUse { output, .. } = &notice.what else { return None };
            Some(output.is_error)
        })
        .collect();
    assert_eq!(errors, [true]);
}

#[tokio::test]
async fn hooks_see_the_end_of_a_tool_that_panics() {
    let heard = Heard::with(Stores::none());
    let turn = heard.turn();
    let tool = Tool::that(Ends::Panics);
    let panicked = std::panic::AssertUnwindSafe(turn.call(refund(), &tool)).catch_unwind().await;
    assert!(panicked.is_err(), "the panic is the host's own");
    drop(turn);
    assert_eq!(heard.checked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_call_that_hooks_refuse_reaches_neither_the_tool_nor_its_result_hooks() {
    let heard = Heard::with(Stores::none());
    heard.pintle.hook("no", "^refund$", |_: &PreToolUse| Verdict::deny("not today")).unwrap();
    let (turn, tool) = (heard.turn(), Tool::that(Ends::Well));
    let stop = turn.call(refund(), &tool).await.unwrap_err();
    let Stop::Refused(refusal) = stop else { panic!("{stop:?}") };
    assert_eq!((refusal.ran, tool.ran(), heard.checked.load(Ordering::Relaxed)), (false, 0, 0));
    assert_eq!(refusal.call.unwrap().tool, "refund");
}

#[tokio::test]
async fn a_turn_that_is_cancelled_waits_for_no_model() {
    let heard = Heard::with(Stores::none());
    let turn = heard.turn();
    let cancel = turn.cancel().clone();
    let send = |_| async move {
        cancel.cancel();
        std::future::pending::<Result<LlmReply, Away>>().await
    };
    let stop = turn.model(request(), send).await.unwrap_err();
    assert!(matches!(stop, Stop::Cancelled), "{stop:?}");
}

#[tokio::test]
async fn the_end_of_a_turn_says_what_ran_and_what_it_cost() {
    let heard = Heard::with(Stores::none());
    let turn = heard.turn();
    let _begun = turn.begin("refund it", InputKind::First).await.unwrap();
    let usage = Usage { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 };
    let send = |_| async move { Ok::<_, Away>(LlmReply { usage: Some(usage), ..LlmReply::text("ok") }) };
    let answer = turn.model(request(), send).await.unwrap();
    assert_eq!(answer.reply.content, "ok");
    let done = turn.call(refund(), &Tool::that(Ends::Well)).await.unwrap();
    assert_eq!(done.output.for_llm, "refund done");
    turn.end("done");
    let all = heard.all().await;
    let ends = turn_ends(&all);
    let [RuntimeEvent::TurnEnd { tool_kinds, tool_executions, iterations, .. }] = ends[..] else { panic!("{ends:?}") };
    assert_eq!((tool_kinds.as_slice(), tool_executions.len(), *iterations), (&["refund".to_owned()][..], 1, 1));
    let costs: Vec<Usage> = all
        .iter()
        .filter_map(|notice| {
            let ObservedEvent::Stop { usage, .. } = &notice.what else { return None };
            Some(*usage)
        })
        .collect();
    assert_eq!(costs, [usage]);
    let about: Vec<_> = all
        .iter()
        .filter(|notice| matches!(notice.what, ObservedEvent::PostToolUse { .. }))
        .map(|notice| notice.who.tool_call_id.as_ref().map(ToString::to_string))
        .collect();
    assert_eq!(about, [Some("c".to_owned())]);
}

#[tokio::test]
async fn a_turn_is_left_aborted_but_one_that_waits_for_a_person_stays_open() {
    for (parks, told) in [(false, 1), (true, 0)] {
        let heard = Heard::with(Stores::from(Arc::new(Memory::default())));
        let ask = |_: &PreToolUse| Verdict::Ask("it costs money".into());
        heard.pintle.hook("ask", "^refund$", ask).unwrap();
        let turn = heard.turn();
        let _begun = turn.begin("refund it", InputKind::First).await.unwrap();
        if parks {
            let stop = turn.call(refund(), &Tool::that(Ends::Well)).await.unwrap_err();
            assert!(matches!(stop, Stop::Parked(_)), "{stop:?}");
        }
        drop(turn);
        let all = heard.all().await;
        assert_eq!(turn_ends(&all).len(), told, "parked: {parks}");
    }
}
