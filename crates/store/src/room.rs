//! How much may wait to be written without anybody waiting for it.

use std::sync::Arc;

use pintle_domain::account::Account;
use pintle_domain::checkpoint::Snapshot;
use pintle_domain::json::{Object, Value};
use pintle_domain::record::{EventRecord, HookOutcome, Record};
use pintle_domain::store::{Room, RoomSoon};
use tokio::sync::Semaphore;

/// Most bytes that may wait: enough for every burst of a busy machine, too little to be felt in its memory.
pub const ROOM_BYTES: usize = 64 << 20;

/// Most batches that wait for the writer. At one batch a tool call this is far more than the writer can lag behind
/// by while the disk works at all; beyond it, waiting longer would not help.
pub const QUEUE_BATCHES: usize = 2048;

/// What the smallest batch takes. With it, at most half of the writer's queue is taken by what nobody waits for; the
/// other half is for those who do.
pub const MIN_ROOM_BYTES: usize = ROOM_BYTES / (QUEUE_BATCHES / 2);

/// What an event or a hook's line takes beside its texts, roughly.
const FIXED_BYTES: usize = 512;
/// What the line of a hook that was passed over holds: a number and a byte, in their places.
const LINE_BYTES: usize = 16;

/// What a number, a member or an element takes, roughly.
const VALUE_BYTES: usize = 32;

/// Gives out room.
#[derive(Debug)]
pub(crate) struct Rooms(Arc<Semaphore>);

impl Default for Rooms {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ROOM_BYTES)))
    }
}

impl Rooms {
    /// Room for `records`. In the order of asking, so that nobody waits for ever.
    pub(crate) fn soon(&self, records: &[EventRecord]) -> RoomSoon {
        let bytes = records.iter().map(weight).sum::<usize>().clamp(MIN_ROOM_BYTES, ROOM_BYTES);
        let bytes = u32::try_from(bytes).expect("at most `ROOM_BYTES`");
        let semaphore = self.0.clone();
        Box::pin(async move {
            let room = semaphore.acquire_many_owned(bytes).await.expect("nobody closes it");
            Box::new(room) as Room
        })
    }
}

/// About how many bytes of memory `record` holds.
fn weight(record: &EventRecord) -> usize {
    let text = record.ruling.text.as_ref().map_or(0, String::len);
    let input = record.input.as_deref().map_or(0, of_object);
    FIXED_BYTES + text + input + record.hooks.whole().map(of_hook).sum::<usize>() + record.hooks.len() * LINE_BYTES
}

fn of_hook(record: &Record) -> usize {
    let reason = match &record.outcome {
        HookOutcome::Said { reason, .. } => reason.as_ref().map_or(0, String::len),
        HookOutcome::Failed { .. } | HookOutcome::Told | HookOutcome::NotRun(_) => 0,
    };
    let warnings: usize = record.warnings.iter().map(String::len).sum();
    let account = record.account.as_deref().map_or(0, of_account);
    let change = record.change.as_ref().map_or(0, |it| of_snapshot(&it.before) + of_snapshot(&it.after));
    FIXED_BYTES + reason + warnings + account + change
}

fn of_account(account: &Account) -> usize {
    let detail = account.detail.as_ref().map(|cause| cause.unredacted().to_owned());
    let texts = [&detail, &account.stdout, &account.stderr, &account.model];
    texts.into_iter().flatten().map(String::len).sum()
}

fn of_snapshot(snapshot: &Snapshot) -> usize {
    match snapshot {
        Snapshot::Prompt(text) => text.len(),
        // The conversation holds the messages too; what is counted is what would keep them alive.
        Snapshot::Request(request) => {
            request.messages.iter().map(|message| VALUE_BYTES + message.get().content.len()).sum::<usize>()
                + request.tools.len() * VALUE_BYTES
                + of_object(&request.options)
        }
        Snapshot::Reply(reply) => reply.content.len() + reply.reasoning_content.len() + FIXED_BYTES,
        Snapshot::Call { tool, arguments } => tool.len() + of_object(arguments),
        Snapshot::Output(output) => output.for_llm.len() + output.for_user.len() + FIXED_BYTES,
        Snapshot::Task { agent, task } => agent.len() + task.len(),
    }
}

fn of_object(object: &Object) -> usize {
    object.iter().map(|(name, value)| VALUE_BYTES + name.len() + of_value(value)).sum()
}

fn of_value(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => VALUE_BYTES,
        Value::String(text) => VALUE_BYTES + text.len(),
        Value::Array(items) => items.iter().map(of_value).sum(),
        Value::Object(members) => of_object(members),
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use pintle_domain::id::TurnId;
    use pintle_testkit::conformance::store::event;

    use super::*;

    /// The room, if it is there already.
    fn now(soon: &mut RoomSoon) -> Option<Room> {
        match Pin::new(soon).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(room) => Some(room),
            Poll::Pending => None,
        }
    }

    #[test]
    fn whoever_comes_to_a_full_house_waits_in_order() {
        let rooms = Rooms::default();
        let small = [event(&TurnId::from("t"))];
        let mut taken: Vec<Room> =
            (0..ROOM_BYTES / MIN_ROOM_BYTES).map(|_| now(&mut rooms.soon(&small)).expect("there is room")).collect();
        let (mut first, mut second) = (rooms.soon(&small), rooms.soon(&small));
        assert!(now(&mut first).is_none() && now(&mut second).is_none());
        drop(taken.pop());
        assert!(now(&mut second).is_none(), "the first one comes first");
        let first = now(&mut first).expect("there is room again");
        assert!(now(&mut second).is_none());
        drop(first);
        assert!(now(&mut second).is_some());
    }

    #[test]
    fn a_batch_takes_what_it_holds() {
        let mut large = event(&TurnId::from("t"));
        large.ruling.text = Some("x".repeat(2 * ROOM_BYTES));
        let rooms = Rooms::default();
        let all = now(&mut rooms.soon(&[large])).expect("more than everything is everything");
        assert!(now(&mut rooms.soon(&[])).is_none());
        drop(all);
        assert!(now(&mut rooms.soon(&[])).is_some());
    }
}
