//! One question to one hook, the way a turn would put it: for `hooks test`.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use pintle_domain::chain::{Chain, HookMachine as _};
use pintle_domain::checkpoint::Checkpoint;
use pintle_domain::id::{EventId, HookName};
use pintle_domain::record::Record;
use pintle_domain::roster::Roster;
use pintle_domain::ruling::Ruling;

use crate::dispatcher::Dispatcher;
use crate::handler::{HookCall, WireCache};

/// The outcome of one question to one hook.
#[derive(Debug)]
pub struct HookTrial<C: Checkpoint> {
    /// The value as the hook left it.
    pub subject: C,
    /// The ruling that a loop in which this hook is the only one would have to follow.
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
    pub async fn try_hook<C: Checkpoint>(&self, name: &HookName, subject: C) -> Option<HookTrial<C>> {
        let set = self.set();
        let hooks = set.roster().hooks();
        let number = hooks.iter().position(|hook| hook.name == *name)?;
        let alone = Arc::new(Roster::new(vec![(*hooks[number]).clone()]));
        let mut chain = Chain::new(alone, self.event_context(), subject);
        let (event_id, wire) = (EventId::fresh(), WireCache::tapped());
        while let Some(need) = chain.next() {
            let call = HookCall {
                event_id: &event_id,
                who: self.who(),
                subject: need.subject,
                timeout: need.timeout,
                budget: need.budget,
                again: need.again,
                cancel: self.cancel(),
                known: &**self.known(),
                wire: &wire,
            };
            let asked_at = Instant::now();
            let heard = set.handler(number).ask(call).await;
            chain.settle(heard, asked_at.elapsed());
        }
        let concluded = chain.conclude();
        Some(HookTrial {
            subject: concluded.subject,
            ruling: concluded.ruling,
            record: concluded.records.iter().next().map(Cow::into_owned),
            sent: wire.sent().cloned(),
            came: wire.came().map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, HookCx, NativeAnswer, NativeHook, NullStore};
    use pintle_domain::checkpoint::{ApproveTool, BeforeTool, CheckpointKind};
    use pintle_domain::identity::Identity;
    use pintle_domain::json::Object;
    use pintle_domain::record::{HookOutcome, NotRun};
    use pintle_domain::tool::ToolCall;
    use pintle_domain::verdict::{Verdict, VerdictKind};

    struct NoRm;

    #[async_trait::async_trait]
    impl NativeHook for NoRm {
        fn stages(&self) -> Vec<CheckpointKind> {
            vec![CheckpointKind::BeforeTool]
        }

        async fn before_tool(&self, _cx: &HookCx<'_>, _at: &BeforeTool) -> NativeAnswer<BeforeTool> {
            Ok(Verdict::deny("never"))
        }
    }

    fn call(tool: &str) -> ToolCall {
        ToolCall { id: "c1".into(), tool: tool.into(), raw_tool: tool.into(), arguments: Object::new() }
    }

    #[tokio::test]
    async fn a_hook_is_asked_alone_and_its_matcher_counts() {
        let engine = Engine::new(Arc::new(NullStore), Vec::new());
        let mounts = ["a", "b"].map(|name| engine.native(name, 0, Arc::new(NoRm)).matching("^exec$").unwrap());
        engine.replace(mounts.into()).unwrap();
        let hooks = engine.dispatcher(Identity::top("main", "s", "t".into()));
        let ask = async |tool: &str| {
            let asked = hooks.try_hook(&"b".into(), BeforeTool { call: call(tool), owner: None }).await.unwrap();
            (asked.ruling.word(false), asked.record.unwrap().outcome)
        };
        let (word, said) = ask("exec").await;
        assert_eq!(word, VerdictKind::Deny);
        assert!(matches!(said, HookOutcome::Said { word: VerdictKind::Deny, reason: Some(why), .. } if why == "never"));
        let no = NotRun::Matcher { pattern: "^exec$".into(), value: "read_file".into() };
        assert_eq!(ask("read_file").await, (VerdictKind::Continue, HookOutcome::NotRun(no)));
        let elsewhere = hooks.try_hook(&"b".into(), ApproveTool { call: call("exec") }).await.unwrap();
        assert!(elsewhere.record.is_none());
        assert!(hooks.try_hook(&"c".into(), ApproveTool { call: call("exec") }).await.is_none());
        engine.close().await;
    }
}
