//! Hooks written in Rust: one trait, whose parameter is the stage.

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_domain::checkpoint::{
    AfterLlm, AfterTool, ApproveTool, BeforeLlm, BeforeTool, Checkpoint, CheckpointKind, Notice, PreToolUse,
    SubagentStart, UserPromptSubmit,
};
use pintle_domain::verdict::Verdict;
use pintle_engine::{HookCx, NativeHook};

/// A future that a trait object returns.
pub type Fut<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A hook at the checkpoint `C`. What it may answer there is what [`Verdict<C>`] can hold.
///
/// A closure that looks at the subject and answers at once is one. It runs in the calling task and cannot be interrupted:
/// what waits or blocks belongs into a type with this trait. An answer may take 5 seconds, an approver's 60. A panic or an
/// overrun deadline is a fault: `user_prompt_submit`, `before_tool`, `pre_tool_use`, `approve_tool` and `subagent_start`
/// refuse then; at `before_llm`, `after_llm` and `after_tool` the value passes unchanged, and the fault is recorded.
pub trait HookAt<C: Checkpoint>: Send + Sync + 'static {
    /// Says what becomes of `at`.
    fn answer<'a>(&'a self, cx: &'a HookCx<'a>, at: &'a C) -> Fut<'a, Verdict<C>>;
}

impl<C: Checkpoint, F: Fn(&C) -> Verdict<C> + Send + Sync + 'static> HookAt<C> for F
where
    Verdict<C>: Send,
{
    fn answer<'a>(&'a self, _cx: &'a HookCx<'a>, at: &'a C) -> Fut<'a, Verdict<C>> {
        let verdict = self(at);
        Box::pin(async move { verdict })
    }
}

/// Hears what happened and answers nothing.
pub trait Observer: Send + Sync + 'static {
    /// Called once for each notice, in order, with half a second for it. At most 1,024 notices wait; more are dropped and
    /// recorded as dropped.
    fn hear<'a>(&'a self, notice: &'a Notice) -> Fut<'a, ()>;
}

impl<F: Fn(&Notice) + Send + Sync + 'static> Observer for F {
    fn hear<'a>(&'a self, notice: &'a Notice) -> Fut<'a, ()> {
        self(notice);
        Box::pin(async {})
    }
}

/// A checkpoint at which a [`Turn`](crate::Turn) asks hooks. The set is closed.
pub trait Stage: Checkpoint + sealed::Sealed {
    /// `hook` as the engine mounts it.
    #[doc(hidden)]
    fn native(hook: impl HookAt<Self>) -> Arc<dyn NativeHook>;
}

mod sealed {
    /// Only checkpoints of this crate are stages.
    pub trait Sealed {}
}

macro_rules! stages {
    ($($checkpoint:ident $method:ident,)*) => {$(
        impl sealed::Sealed for $checkpoint {}

        impl Stage for $checkpoint {
            fn native(hook: impl HookAt<Self>) -> Arc<dyn NativeHook> {
                struct At<H>(H);

                #[async_trait]
                impl<H: HookAt<$checkpoint>> NativeHook for At<H> {
                    fn stages(&self) -> Vec<CheckpointKind> {
                        vec![$checkpoint::KIND]
                    }

                    async fn $method(&self, cx: &HookCx<'_>, at: &$checkpoint) -> pintle_engine::NativeAnswer<$checkpoint> {
                        Ok(self.0.answer(cx, at).await)
                    }
                }

                Arc::new(At(hook))
            }
        }
    )*};
}

stages! {
    UserPromptSubmit user_prompt_submit,
    BeforeLlm before_llm,
    AfterLlm after_llm,
    BeforeTool before_tool,
    PreToolUse pre_tool_use,
    ApproveTool approve_tool,
    AfterTool after_tool,
    SubagentStart subagent_start,
}

/// The checkpoints that are only told of and that a [`Turn`](crate::Turn) reaches.
const TOLD: [CheckpointKind; 5] = [
    CheckpointKind::SessionStart,
    CheckpointKind::PostToolUse,
    CheckpointKind::SubagentStop,
    CheckpointKind::Stop,
    CheckpointKind::Runtime,
];

/// An observer as the engine mounts it.
pub(crate) fn observing(observer: impl Observer) -> Arc<dyn NativeHook> {
    struct Listening<O>(O);

    #[async_trait]
    impl<O: Observer> NativeHook for Listening<O> {
        fn stages(&self) -> Vec<CheckpointKind> {
            TOLD.to_vec()
        }

        async fn on_event(&self, notice: &Notice) {
            self.0.hear(notice).await;
        }
    }

    Arc::new(Listening(observer))
}
