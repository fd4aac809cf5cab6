//! Files that tools and hooks hand over: taken in, delivered to the user, shown to the model.

use std::path::PathBuf;
use std::sync::Arc;

use domain::id::HookName;
use domain::json::Rendered;
use domain::llm::LlmRequest;
use domain::message::Message;
use domain::tool::{ToolOutput, UnusableMedia};
use engine::{Dispatcher, FileSink, async_trait};

use super::work::Work;
use crate::media::{MAX_MEDIUM_BYTES, MediaOrigin, TurnMedia, first_of_turn};

/// Why media of a hook or tool goes nowhere.
const NO_MEDIA: &str = "no media store is in use";

/// A result whose media were taken in.
pub(super) struct ReceivedResult {
    pub(super) output: ToolOutput,
    pub(super) unusable: Vec<UnusableMedia>,
}

/// Where the files of one turn go.
pub(super) struct Files {
    /// The files of this turn; they stay as long as it is worked. None where the host keeps no files.
    media: Option<Arc<TurnMedia>>,
    /// Knows from which folders hooks may hand files over.
    hooks: Dispatcher,
}

#[async_trait]
impl FileSink for Files {
    async fn take(&self, output: ToolOutput, by: &HookName) -> ToolOutput {
        let ReceivedResult { output, unusable } = self.receive(output, Some(by)).await;
        output.lacking(&unusable)
    }
}

impl Files {
    pub(super) fn new(media: Option<TurnMedia>, hooks: Dispatcher) -> Arc<Self> {
        Arc::new(Self { media: media.map(Arc::new), hooks })
    }

    /// Takes over the media of a result before anything else sees them. Files of this machine are taken only from the
    /// folder of the hook `by` that handed them over.
    pub(super) async fn receive(&self, output: ToolOutput, by: Option<&HookName>) -> ReceivedResult {
        if output.media.is_empty() {
            return ReceivedResult { output, unusable: Vec::new() };
        }
        let Some(media) = self.media.clone() else { return none_usable(output, NO_MEDIA) };
        let dir = by.and_then(|by| self.media_dir(by));
        let source = by.map_or_else(|| "tool".to_owned(), ToString::to_string);
        let kept = output.clone();
        let receiving = tokio::task::spawn_blocking(move || {
            let (output, unusable) = media.receive(&MediaOrigin { dir: dir.as_deref(), source: &source }, output);
            ReceivedResult { output, unusable }
        });
        match receiving.await {
            Ok(received) => received,
            Err(error) => none_usable(kept, &error.to_string()),
        }
    }

    fn media_dir(&self, hook: &HookName) -> Option<PathBuf> {
        let set = self.hooks.set();
        set.roster().hooks().iter().find(|known| known.name == *hook)?.media_dir.clone()
    }
}

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
                // A channel without files is no failure: the model goes on with what it got.
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

fn none_usable(output: ToolOutput, why: &str) -> ReceivedResult {
    let gone = |entry: &String| UnusableMedia { entry: entry.clone(), why: why.into() };
    let unusable = output.media.iter().map(gone).collect();
    ReceivedResult { output: ToolOutput { media: Vec::new(), ..output }, unusable }
}
