//! What can go wrong while we serve.

/// Why serving ended before its client left.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The client did not shake hands as the protocol says.
    #[error("the MCP client did not shake hands: {0}")]
    Handshake(String),
    /// A task of the service panicked.
    #[error("the MCP service failed: {0}")]
    Failed(String),
}
