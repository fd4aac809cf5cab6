//! The delivery of files that were taken in: to the user, and to the model.

use std::path::PathBuf;

use pintle_domain::json::Rendered;
use pintle_domain::llm::LlmRequest;
use pintle_domain::message::Message;
use pintle_domain::tool::{ToolOutput, UnusableMedia};

use super::files::ReceivedResult;
use super::work::Work;
use crate::media::{MAX_MEDIUM_BYTES, first_of_turn};

impl Work<'_> {
    /// Shows what is for the user, hands files over where the result is the answer, and tells the model what became of
    /// the rest.
    pub(super) async fn deliver(&self, received: ReceivedResult) -> ToolOutput {
        let ReceivedResult { mut output, mut unusable } = received;
        if !output.for_user.is_empty() && !output.silent {
            self.turn_env.user_output.for_user(&output.for_user);
        }
        if output.response_handled && unusable.is_empty() && !output.media.is_empty() {
            match self.turn_env.user_output.folder() {
                // A channel without files is not a failure: the model goes on with what it got.
                None => output.response_handled = false,
                Some(folder) => unusable = self.hand_over(&output.media, folder).await,
            }
        }
        output.delivered(&unusable)
    }

    /// Copies files to where the user finds them; what failed comes back.
    async fn hand_over(&self, references: &[String], folder: PathBuf) -> Vec<UnusableMedia> {
        let Some(media) = self.files.media.clone() else { return Vec::new() };
        let (references, all) = (references.to_vec(), references.to_vec());
        let copying = tokio::task::spawn_blocking(move || {
            references.iter().map(|reference| media.deliver(reference, &folder)).collect::<Vec<_>>()
        });
        let copied = match copying.await {
            Ok(copied) => copied,
            Err(error) => all.into_iter().map(|entry| Err(UnusableMedia { entry, why: error.to_string() })).collect(),
        };
        let mut failed = Vec::new();
        for one in copied {
            match one {
                Ok(path) => self.turn_env.user_output.file(&path),
                Err(unusable) => failed.push(unusable),
            }
        }
        failed
    }

    /// The request as it leaves, with the files that its messages name: `before` are the messages that the hooks got.
    pub(super) async fn with_files(&self, request: LlmRequest, before: &[Rendered<Message>]) -> LlmRequest {
        let named = |message: &Rendered<Message>| !message.get().media.is_empty();
        let Some(media) = self.files.media.clone().filter(|_| request.messages.iter().any(named)) else {
            return request;
        };
        // The system text stands before the conversation.
        let offset = before.len().saturating_sub(self.turn.messages().len());
        let first = first_of_turn(before, self.turn.base() + offset, &request.messages);
        let (messages, as_is) = (request.messages.clone(), request.messages.clone());
        let showing = tokio::task::spawn_blocking(move || media.in_request(&messages, first, MAX_MEDIUM_BYTES));
        LlmRequest { messages: showing.await.unwrap_or(as_is), ..request }
    }
}
