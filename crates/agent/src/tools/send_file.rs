//! `send_file`: a file for the user. The turn that it is called in hands it over; here stands what may be sent.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use nix::fcntl::OFlag;
use pintle_domain::json::json;
use pintle_domain::llm::ToolDef;
use pintle_domain::tool::{CallPlace, ToolOutput};
use pintle_engine::permit::Permit;
use pintle_engine::tool::Tool;
use tokio_util::sync::CancellationToken;

use super::SEND_FILE;
use super::error::ToolError;
use super::workspace::{Opened, Workspace};
use crate::media::MAX_MEDIUM_BYTES;

/// The definition of the tool.
pub(super) struct SendFile {
    definition: ToolDef,
    root: PathBuf,
}

impl SendFile {
    pub(super) fn new(workspace: &Workspace) -> Self {
        let definition = ToolDef::new(
            SEND_FILE,
            "Hands a file over to the user: one of the workspace, a `media://` reference, or the path of a file that a \
             tool's result gave for this.",
            json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "minLength": 1, "description": "The file: relative to the workspace, `media://ID`, or a whole path, exactly as it was given."},
                },
                "required": ["path"],
                "additionalProperties": false,
            }),
        );
        Self { definition, root: workspace.root().to_owned() }
    }
}

impl Tool for SendFile {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    fn read_only(&self) -> bool {
        false
    }

    fn place(&self) -> CallPlace {
        CallPlace::in_folder(self.root.display())
    }

    /// Only a turn has files and somebody to hand them to.
    fn run<'a>(&'a self, _permit: Permit, _cancel: &'a CancellationToken) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async { ToolOutput::error(format!("`{SEND_FILE}` works only inside a turn of an agent")) })
    }
}

/// A file that is to be sent.
pub(crate) struct SentFile {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// Reads the file at `path`: one of `workspace`, or, if a hook `named` exactly this path, any that is not protected.
pub(super) fn read(workspace: &Workspace, path: &str, named: bool) -> Result<SentFile, ToolError> {
    let opened = match workspace.open_file(path) {
        Err(ToolError::Outside(_)) if named => named_file(workspace, path)?,
        Err(ToolError::Outside(_)) if Path::new(path).is_absolute() => {
            return Err(ToolError::Argument(format!(
                "`{path}` is outside the workspace, and no hook's result named exactly this path in this session"
            )));
        }
        opened => opened?,
    };
    workspace.ids().check_send(path, &opened.file, &opened.metadata)?;
    let mut bytes = Vec::new();
    let failed = |e| ToolError::io("read", path, e);
    opened.file.take(MAX_MEDIUM_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_MEDIUM_BYTES {
        return Err(ToolError::Argument(format!(
            "`{path}` is larger than {MAX_MEDIUM_BYTES} bytes, the most that is sent"
        )));
    }
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(SentFile { name, bytes })
}

/// Opens a file outside of the workspace: what was judged is what is read, and nothing but a regular file is opened.
fn named_file(workspace: &Workspace, path: &str) -> Result<Opened, ToolError> {
    let failed = |e: io::Error| ToolError::io("read", path, e);
    let place = File::options().read(true).custom_flags(OFlag::O_PATH.bits()).open(path).map_err(failed)?;
    let metadata = place.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(ToolError::NotAFile { path: path.into(), kind: "folder or special file" });
    }
    let link = format!("/proc/self/fd/{}", place.as_raw_fd());
    let real = fs::read_link(&link).map_err(failed)?;
    workspace.ids().check_read(path, &real, &metadata)?;
    let quiet = (OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits();
    let file = File::options().read(true).custom_flags(quiet).open(link).map_err(failed)?;
    Ok(Opened { file, metadata })
}
