//! One question to one hook, the way a turn would put it: for `hooks test`.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use domain::chain::{Asks as _, Chain};
use domain::checkpoint::Checkpoint;
use domain::id::{EventId, HookName};
use domain::record::Record;
use domain::roster::Roster;
use domain::ruling::Ruling;

use crate::dispatcher::{Dispatcher, TurnCx};
use crate::handler::{Call, WireCache};

/// What came of one question to one hook.
#[derive(Debug)]
pub struct Rehearsal<C: Checkpoint> {
    /// The value as the hook left it.
    pub subject: C,
    /// What a loop in which this hook is the only one would have to do.
    pub ruling: Ruling<C>,
    /// Whether it ran, what it said, how long it took. None if the hook does not act at this checkpoint.
    pub record: Option<Record>,
    /// The params of the question as JSON, if it crossed a wire.
    pub sent: Option<Bytes>,
    /// The answer as it came, if one came over a wire.
    pub came: Option<String>,
}

impl Dispatcher {
    /// Asks the hook called `name` about `subject`, with its matcher, its deadline and its rule for faults, as if it
    /// were the only one. Nothing is recorded. None if there is no such hook.
    pub async fn rehearse<C: Checkpoint>(&self, cx: &TurnCx, name: &HookName, subject: C) -> Option<Rehearsal<C>> {
        let hooks = self.set().roster().hooks();
        let number = hooks.iter().position(|hook| hook.name == *name)?;
        let alone = Arc::new(Roster::new(vec![(*hooks[number]).clone()]));
        let mut chain = Chain::new(alone, cx.known.clone(), subject);
        let (event_id, wire) = (EventId::fresh(), WireCache::tapped());
        while let Some(need) = chain.next() {
            // A gate that changed the value is asked again, and its first answer is the one to show.
            let again = WireCache::default();
            let wire = if wire.sent().is_none() { &wire } else { &again };
            let call = Call {
                event_id: &event_id,
                who: &cx.who,
                subject: need.subject,
                timeout: need.timeout,
                cancel: &cx.cancel,
                wire,
            };
            let asked_at = Instant::now();
            let heard = self.set().handler(number).ask(call).await;
            chain.settle(heard, asked_at.elapsed());
        }
        let concluded = chain.conclude();
        Some(Rehearsal {
            subject: concluded.subject,
            ruling: concluded.ruling,
            record: concluded.records.into_iter().next(),
            sent: wire.sent().cloned(),
            came: wire.came().map(str::to_owned),
        })
    }
}
