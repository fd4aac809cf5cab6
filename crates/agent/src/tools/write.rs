//! `write_file`: a whole file, old or new.

use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::sync::Arc;

use cap_std::fs::{Dir, OpenOptions};
use pintle_domain::json::json;
use pintle_domain::llm::ToolDef;
use pintle_domain::tool::{CallPlace, ToolOutput};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::error::ToolError;
use super::workspace::{Target, Workspace};
use super::{BuiltinTool, blocking};

/// The mode bits that a file keeps when it is replaced: who may read, write and run it, but no set-user-id on new
/// content.
const KEPT_MODE: u32 = 0o777;

pub(super) struct WriteFile(pub(super) Arc<Workspace>);

#[derive(Debug, Deserialize)]
pub(super) struct Args {
    pub(super) path: String,
    pub(super) content: String,
}

impl BuiltinTool for WriteFile {
    type Args = Args;
    const READ_ONLY: bool = false;

    fn definition(&self) -> ToolDef {
        ToolDef::new(
            "write_file",
            "Writes a whole file of the workspace, replacing what was there; missing folders are made. To change a \
             part of a file use edit_file.",
            json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "minLength": 1, "description": "The file, relative to the workspace."},
                    "content": {"type": "string", "description": "All of its text."},
                },
                "required": ["path", "content"],
                "additionalProperties": false,
            }),
        )
    }

    fn place(&self) -> CallPlace {
        CallPlace::in_folder(self.0.root().display())
    }

    async fn run(&self, args: Args, cancel: &CancellationToken) -> ToolOutput {
        let workspace = self.0.clone();
        blocking(cancel, move |_| write(&workspace, &args)).await
    }
}

pub(super) fn write(workspace: &Workspace, args: &Args) -> Result<ToolOutput, ToolError> {
    let target = workspace.target(&args.path)?;
    let done = if target.existing.is_some() { "replaced" } else { "wrote" };
    replace(&target, args.content.as_bytes()).map_err(|e| ToolError::io("write", &args.path, e))?;
    let text = format!("{done} `{}` ({} bytes)", args.path, args.content.len());
    Ok(ToolOutput { artifact_tags: vec![args.path.clone()], ..ToolOutput::ok(text) })
}

/// Puts `content` in the place of the target in one step: a reader sees the old file or the new one.
pub(super) fn replace(target: &Target, content: &[u8]) -> io::Result<()> {
    let draft = format!(".pintle-{:016x}.tmp", fastrand::u64(..));
    let result =
        fill(target, &draft, content).and_then(|()| target.parent.rename(&draft, &target.parent, &target.name));
    if result.is_err() {
        discard(&target.parent, &draft);
    }
    result
}

fn fill(target: &Target, draft: &str, content: &[u8]) -> io::Result<()> {
    let file = target.parent.open_with(draft, OpenOptions::new().write(true).create_new(true))?;
    let mut file = file.into_std();
    if let Some(old) = &target.existing {
        let new = file.metadata()?;
        if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
            // Only root can give a file away; anybody else becomes its owner, as with every editor.
            let refused = |e: &io::Error| e.kind() == io::ErrorKind::PermissionDenied;
            fchown(&file, Some(old.uid()), Some(old.gid())).or_else(|e| if refused(&e) { Ok(()) } else { Err(e) })?;
        }
        file.set_permissions(std::fs::Permissions::from_mode(old.mode() & KEPT_MODE))?;
    }
    file.write_all(content)?;
    file.sync_data()
}

/// Removes a draft that did not become the file. If that fails as well, the first failure is the one to tell.
fn discard(parent: &Dir, draft: &str) {
    drop(parent.remove_file(draft));
}
