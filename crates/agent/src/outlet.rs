//! Where words for the user go while a turn runs.

/// Takes what the user reads before the turn is over. Must not block for long.
pub trait Outlet: Send + Sync {
    /// Whether answers are shown while the turn runs, through [`Outlet::delta`]: then everything that the model says
    /// arrives there once, in pieces as they come, or whole after its ruling where `after_llm` hooks wait for it.
    /// What was shown cannot be taken back, so a call that showed something is not tried again.
    fn streams(&self) -> bool;

    /// A piece of an answer.
    fn delta(&self, text: &str);

    /// The answer that the last pieces belong to is complete; what follows is another one.
    fn answered(&self) {}

    /// What a tool or a hook wants the user to read now.
    fn for_user(&self, text: &str);
}

/// Shows nothing.
pub struct Quiet;

impl Outlet for Quiet {
    fn streams(&self) -> bool {
        false
    }

    fn delta(&self, _text: &str) {}

    fn for_user(&self, _text: &str) {}
}
