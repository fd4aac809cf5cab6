//! Long conversations: `before_llm`, answered with `continue` or with the whole request, by one child or by five.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures_util::future::BoxFuture;
use pintle_dialects::process::{frame, wire};
use pintle_domain::account::HandlerAnswer;
use pintle_domain::checkpoint::{BeforeLlm, Notice, Subject};
use pintle_domain::hook::Family;
use pintle_domain::id::EventId;
use pintle_domain::message::Message;
use pintle_domain::ruling::Ruling;
use pintle_engine::Dispatcher;
use pintle_engine::handler::{Handler, HookCall, NoticeViews};

use crate::against::Target;
use crate::child::Answers;
use crate::conversation::{messages, request};
use crate::floor::{Blocking, Request, Straight, line};
use crate::report::Report;
use crate::stage::{Stage, process_hook, turn};

/// The method of the calls in question.
const METHOD: &str = "hook.before_llm";
/// A number as long as those of a hook that has been asked for a while.
const ID: u64 = 100;
/// What the barest floor reads at once: all that a pipe of a hook holds.
const ROOM_BYTES: usize = 1 << 20;
/// Hooks that act at one checkpoint.
const HOOKS: usize = 5;

type Conversation = Arc<Vec<Message>>;
type Children = Arc<tokio::sync::Mutex<Vec<Straight>>>;

/// One hook and a conversation of `kib` KiB, against the same exchange by hand.
pub(crate) fn one_hook(stage: &Stage, report: &mut Report, kib: usize) -> anyhow::Result<()> {
    let conversation: Conversation = Arc::new(messages(kib << 10)?);
    for (answers, said) in [(Answers::Continue, "continue"), (Answers::Echo, "the whole request back")] {
        let engine = stage.process("before_llm", answers)?;
        let hooks = Arc::new(engine.dispatcher(turn()));
        let mut ours = |times| stage.run(check_often(hooks.clone(), conversation.clone(), times));
        let mut again = |times| stage.run(check_again(hooks.clone(), conversation.clone(), times));
        let children = children(stage, answers, 1)?;
        let typed = typed(&conversation)?;
        let mut floor = |times| stage.run(exchange_often(children.clone(), typed.clone(), times));
        let (ready, mut room) = (line(ID, METHOD, &*typed)?, vec![0; ROOM_BYTES]);
        let mut bare = Blocking::start(answers)?;
        let mut moved = |times| move_often(&mut bare, &ready, &mut room, times);
        let times = 12_000 / kib.max(100);
        let sides = report.medians(times, [&mut ours, &mut again, &mut floor, &mut moved])?;
        let [fresh, kept, floored, moved] = sides;
        let what = format!("before_llm, {kib} KiB, {said}");
        report.against(&what, [fresh, floored], Target::RatioAtMost(1.2));
        let again = "  the same messages once more, beside bytes that are only moved";
        report.against(again, [kept, moved], Target::RatioAtMost(1.4));
        stage.end(&engine);
        end(stage, children)?;
        bare.end()?;
    }
    Ok(())
}

/// Five hooks and a long conversation: it is written as JSON once.
pub(crate) fn five_hooks(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    const KIB: usize = 900;
    const TIMES: usize = 6;
    let conversation: Conversation = Arc::new(messages(KIB << 10)?);
    let seen: Arc<Seen> = Arc::default();
    let engine = stage.engine(|engine| {
        let mount = |number| {
            let mut mount = process_hook(engine, &format!("hook-{number}"), "before_llm", Answers::Continue)?;
            mount.handler = Arc::new(Watched { hook: mount.handler, seen: seen.clone() });
            Ok(mount)
        };
        (0..HOOKS).map(mount).collect()
    })?;
    let hooks = Arc::new(engine.dispatcher(turn()));
    let mut ours = |times| stage.run(check_often(hooks.clone(), conversation.clone(), times));
    let children = children(stage, Answers::Continue, HOOKS)?;
    let typed = typed(&conversation)?;
    let mut floor = |times| stage.run(exchange_often(children.clone(), typed.clone(), times));
    let took = report.medians(TIMES, [&mut ours, &mut floor])?;
    report.against("five process hooks on one before_llm, 900 KiB", took, Target::RatioAtMost(1.2));
    let most = seen.most_renderings()?;
    report.limited("  renderings of the conversation for the five", most, 1, |count| count.to_string());
    stage.end(&engine);
    end(stage, children)
}

/// Asks about messages that were never written before; making them is not counted.
async fn check_often(hooks: Arc<Dispatcher>, conversation: Conversation, times: usize) -> anyhow::Result<Duration> {
    let mut took = Duration::ZERO;
    for _ in 0..times {
        let subject = BeforeLlm::new(request(&conversation));
        let start = Instant::now();
        let (subject, ruling) = hooks.check(subject).await;
        took += start.elapsed();
        ensure!(matches!(ruling, Ruling::Proceed), "the request did not pass: {ruling:?}");
        ensure!(subject.request.messages.len() == conversation.len(), "the request lost messages");
    }
    Ok(took)
}

/// Asks about the same messages time after time.
async fn check_again(hooks: Arc<Dispatcher>, conversation: Conversation, times: usize) -> anyhow::Result<Duration> {
    let mut subject = BeforeLlm::new(request(&conversation));
    subject = hooks.check(subject).await.0;
    let mut took = Duration::ZERO;
    for _ in 0..times {
        let start = Instant::now();
        let (left, ruling) = hooks.check(subject).await;
        took += start.elapsed();
        ensure!(matches!(ruling, Ruling::Proceed), "the request did not pass: {ruling:?}");
        subject = left;
    }
    Ok(took)
}

/// Writes typed messages, has them answered by each of the children and reads every reply into the same types.
async fn exchange_often(children: Children, typed: Arc<Request>, times: usize) -> anyhow::Result<Duration> {
    let mut children = children.lock().await;
    let mut took = Duration::ZERO;
    for _ in 0..times {
        let params = Request::clone(&typed);
        let mut replies = Vec::with_capacity(children.len());
        let start = Instant::now();
        let line = line(ID, METHOD, &params)?;
        for child in children.iter_mut() {
            replies.push(child.exchange(&line).await?);
        }
        took += start.elapsed();
    }
    Ok(took)
}

/// Writes a ready line and takes the reply, without a look at either.
fn move_often(child: &mut Blocking, line: &[u8], room: &mut [u8], times: usize) -> anyhow::Result<Duration> {
    let start = Instant::now();
    for _ in 0..times {
        child.move_bytes(line, room)?;
    }
    Ok(start.elapsed())
}

/// The params that a hook is sent, as the floor's types.
fn typed(conversation: &[Message]) -> anyhow::Result<Arc<Request>> {
    let asked = BeforeLlm::new(request(conversation));
    let params = wire::params(&EventId::fresh(), jiff::Timestamp::now(), &turn(), Subject::BeforeLlm(&asked));
    let typed = Request::of(&params)?;
    let sent = [frame::request_head(ID, METHOD), params, frame::FRAME_TAIL.to_vec()].concat();
    ensure!(line(ID, METHOD, &typed)?.len() == sent.len(), "the floor does not send what a hook is sent");
    Ok(Arc::new(typed))
}

fn children(stage: &Stage, answers: Answers, count: usize) -> anyhow::Result<Children> {
    let _inside = stage.runtime.enter();
    let children = (0..count).map(|_| Straight::start(answers)).collect::<anyhow::Result<_>>()?;
    Ok(Arc::new(tokio::sync::Mutex::new(children)))
}

fn end(stage: &Stage, children: Children) -> anyhow::Result<()> {
    let children = Arc::into_inner(children).context("nobody else holds the children of the floor")?.into_inner();
    for child in children {
        stage.run(child.end())?;
    }
    Ok(())
}

/// Where the renderings stood that were sent, by event.
#[derive(Default)]
struct Seen(Mutex<BTreeSet<(EventId, usize)>>);

impl Seen {
    /// The most renderings that one event needed.
    fn most_renderings(&self) -> anyhow::Result<usize> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let events: Vec<&EventId> = seen.iter().map(|(event, _)| event).collect();
        let most = events.chunk_by(|a, b| a == b).map(<[_]>::len).max();
        most.context("no event was seen")
    }
}

/// A hook that is watched while it is asked.
struct Watched {
    hook: Arc<dyn Handler>,
    seen: Arc<Seen>,
}

impl Handler for Watched {
    fn ask<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, HandlerAnswer> {
        Box::pin(async move {
            let heard = self.hook.ask(call).await;
            // What was sent is kept; a rendering that is made here would stand elsewhere and be counted.
            let sent = call.wire.rendering(Family::Process, Vec::new);
            let mut seen = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
            seen.insert((call.event_id.clone(), sent.as_ptr() as usize));
            heard
        })
    }

    fn tell(&self, notice: &Arc<Notice>, views: &NoticeViews) -> bool {
        self.hook.tell(notice, views)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.hook.close()
    }
}
