//! Files that the model sends to the user, and the paths that hooks named for this.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_domain::tool::{ToolCall, ToolOutput};

use super::files::NO_MEDIA;
use super::work::Work;
use crate::media::{NewMedia, TurnMedia};
use crate::tools::{SEND_FILE, Tools};

impl Work<'_> {
    /// The work of `call` of `send_file`; nothing if it calls another tool.
    pub(super) fn sending(&self, call: &ToolCall) -> Option<BoxFuture<'static, ToolOutput>> {
        let tools = self.runner.tools.clone();
        if call.tool != SEND_FILE || tools.get(SEND_FILE).is_none() {
            return None;
        }
        let path = call.text("path").unwrap_or_default().to_owned();
        let (media, named) = (self.files.media.clone(), self.conversation.session.has_named(&path));
        Some(Box::pin(async move {
            let Some(media) = media else { return ToolOutput::error(NO_MEDIA) };
            let sent = tokio::task::spawn_blocking(move || send(&media, &tools, &path, named)).await;
            match sent {
                Ok(Ok(output)) => output,
                Ok(Err(why)) => ToolOutput::error(why),
                Err(error) => ToolOutput::error(error.to_string()),
            }
        }))
    }

    /// The paths that a hook named with the result `output`, where the tool itself had given `before`: then only the
    /// artifacts that the hook added are its own words.
    pub(super) fn named_by_hooks(output: &ToolOutput, before: Option<&ToolOutput>) -> Vec<String> {
        match before {
            None => output.named_paths().into_iter().collect(),
            Some(before) => {
                let of_the_tool = before.named_paths();
                let added = output.artifact_tags.iter().filter(|tag| !before.artifact_tags.contains(tag));
                let tags = ToolOutput { artifact_tags: added.cloned().collect(), ..ToolOutput::default() };
                tags.named_paths().into_iter().filter(|path| !of_the_tool.contains(path)).collect()
            }
        }
    }
}

fn send(media: &Arc<TurnMedia>, tools: &Tools, path: &str, named: bool) -> Result<ToolOutput, String> {
    let reference = if path.starts_with("media://") {
        media.resolve(path).map_err(|why| why.to_string())?.reference
    } else {
        let file = tools.file_to_send(path, named).map_err(|why| why.to_string())?;
        let new = NewMedia { bytes: &file.bytes, file_name: &file.name, content_type: None, source: SEND_FILE };
        media.add(new).map_err(|why| format!("`{path}` cannot be kept: {why}"))?
    };
    Ok(ToolOutput { media: vec![reference], response_handled: true, ..ToolOutput::ok(format!("`{path}`")) })
}
