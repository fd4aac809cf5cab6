//! Which of a server's notices are handed on: a server may send them as fast as it writes.

use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage};

/// The notice that the list of tools is another one.
const LIST_CHANGED: &str = "notifications/tools/list_changed";
/// A line of the server's log.
const MESSAGE: &str = "notifications/message";
/// The server does not wait for an answer of ours any more.
const CANCELLED: &str = "notifications/cancelled";

/// Whether it is known that the list of tools changed since it was asked for last. One notice of it is as good as
/// 200,000, until the list is asked for again.
#[derive(Debug, Default)]
pub(crate) struct News(AtomicBool);

impl News {
    /// Notes a message that is about to be sent.
    pub(crate) fn sent(&self, message: &ClientJsonRpcMessage) {
        if let JsonRpcMessage::Request(request) = message
            && matches!(request.request, ClientRequest::ListToolsRequest(_))
        {
            self.0.store(false, Ordering::Release);
        }
    }

    /// Whether the notice `method` says anything that somebody here wants to know.
    pub(crate) fn is_wanted(&self, method: &str) -> bool {
        match method {
            LIST_CHANGED => !self.0.swap(true, Ordering::AcqRel),
            MESSAGE => tracing::enabled!(target: "mcp.log", tracing::Level::DEBUG),
            CANCELLED => true,
            _ => false,
        }
    }
}
