//! The files of one turn, that tools and hooks hand over.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use pintle_domain::id::HookName;
use pintle_domain::tool::{ToolOutput, UnusableMedia};
use pintle_engine::{Dispatcher, FileSink, async_trait};

use crate::media::{MediaOrigin, TurnMedia};
use crate::tools::Tools;

/// Why media of a hook or tool goes nowhere.
pub(super) const NO_MEDIA: &str = "no media store is in use";

/// A result whose media were taken in.
pub(super) struct ReceivedResult {
    pub(super) output: ToolOutput,
    pub(super) unusable: Vec<UnusableMedia>,
}

/// Where the files of one turn go.
pub(super) struct Files {
    /// The files of this turn; they stay as long as it is worked. None where the host keeps no files.
    pub(super) media: Option<Arc<TurnMedia>>,
    /// Knows from which folders hooks may hand files over.
    hooks: Dispatcher,
    /// Know which files are the host's.
    tools: Arc<Tools>,
}

#[async_trait]
impl FileSink for Files {
    async fn take(&self, output: ToolOutput, by: &HookName) -> ToolOutput {
        let ReceivedResult { output, unusable } = self.receive(output, Some(by)).await;
        output.lacking(&unusable)
    }
}

impl Files {
    pub(super) fn new(media: Option<TurnMedia>, hooks: Dispatcher, tools: Arc<Tools>) -> Arc<Self> {
        Arc::new(Self { media: media.map(Arc::new), hooks, tools })
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
        let (kept, tools) = (output.clone(), self.tools.clone());
        let receiving = tokio::task::spawn_blocking(move || {
            let hides = |file: &File| tools.guard().is_some_and(|guard| guard.hides(file));
            let from = MediaOrigin { dir: dir.as_deref(), hides: Some(&hides), source: &source };
            let (output, unusable) = media.receive(&from, output);
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

fn none_usable(output: ToolOutput, why: &str) -> ReceivedResult {
    let gone = |entry: &String| UnusableMedia { entry: entry.clone(), why: why.into() };
    let unusable = output.media.iter().map(gone).collect();
    ReceivedResult { output: ToolOutput { media: Vec::new(), ..output }, unusable }
}
