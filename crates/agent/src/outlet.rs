//! Where words for the user go while a turn runs.

/// Takes what the user reads before the turn is over. Must not block for long.
pub trait Outlet: Send + Sync {
    /// Whether pieces of an answer are shown as they arrive. What was shown cannot be taken back, so a call that
    /// showed something is not tried again.
    fn streams(&self) -> bool;

    /// A piece of the answer.
    fn delta(&self, text: &str);

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
