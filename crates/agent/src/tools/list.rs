//! `list_dir`: what lies in one folder.

use std::sync::Arc;

use pintle_domain::json::json;
use pintle_domain::llm::ToolDef;
use pintle_domain::tool::{CallPlace, ToolOutput};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::error::ToolError;
use super::walk;
use super::workspace::{Workspace, kind};
use super::{BuiltinTool, blocking};

/// Entries that one call shows; a model gains nothing from more.
const MAX_SHOWN: usize = 1000;

pub(super) struct ListDir(pub(super) Arc<Workspace>);

#[derive(Debug, Deserialize)]
pub(super) struct Args {
    pub(super) path: Option<String>,
}

impl BuiltinTool for ListDir {
    type Args = Args;
    const READ_ONLY: bool = true;

    fn definition(&self) -> ToolDef {
        ToolDef::new(
            "list_dir",
            "Lists a folder of the workspace: folders end in `/`, files show their size in bytes.",
            json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "The folder, relative to the workspace; its root by default."},
                },
                "additionalProperties": false,
            }),
        )
    }

    fn place(&self) -> CallPlace {
        CallPlace::in_folder(self.0.root().display())
    }

    async fn run(&self, args: Args, cancel: &CancellationToken) -> ToolOutput {
        let workspace = self.0.clone();
        blocking(cancel, move |cancel| list(&workspace, &args, cancel).map(ToolOutput::ok)).await
    }
}

pub(super) fn list(workspace: &Workspace, args: &Args, cancel: &CancellationToken) -> Result<String, ToolError> {
    let path = args.path.as_deref().unwrap_or(".");
    let (dir, _) = workspace.open_dir(path)?;
    let ids = workspace.ids();
    let mut lines = Vec::new();
    let entries = walk::entries(&dir, cancel).map_err(|e| ToolError::io("list", path, e))?;
    let (total, whole) = (entries.names.len(), entries.whole);
    for name in &entries.names {
        if lines.len() == MAX_SHOWN {
            break;
        }
        let Ok(of) = dir.symlink_metadata(name) else { continue };
        let shown = name.to_string_lossy();
        if of.is_dir() {
            // What is protected is not even mentioned.
            let hidden = walk::opened_below(&dir, name, &ids).is_some_and(|below| below.is_none());
            if !hidden {
                lines.push(format!("{shown}/"));
            }
        } else if of.is_symlink() {
            let to = dir.read_link_contents(name).map_or("?".into(), |to| to.to_string_lossy().into_owned());
            lines.push(format!("{shown} -> {to}"));
        } else if of.is_file() {
            lines.push(format!("{shown}  {}", of.len()));
        } else {
            lines.push(format!("{shown}  ({})", kind(of.file_type())));
        }
    }
    if cancel.is_cancelled() {
        return Err(ToolError::Cancelled);
    }
    if lines.is_empty() {
        return Ok("[empty folder]".into());
    }
    if total > MAX_SHOWN || !whole {
        let more = if whole { "" } else { "more than " };
        lines.push(format!("[cut: {MAX_SHOWN} of {more}{total} entries; use find_files for the others]"));
    }
    Ok(lines.join("\n"))
}
