//! Why there is no gateway.

/// Why there is no gateway.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadSettings {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}
