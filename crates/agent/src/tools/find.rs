//! `find_files`: files by the pattern of their names.

use std::path::Path;
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use pintle_domain::json::json;
use pintle_domain::llm::ToolDef;
use pintle_domain::tool::{CallPlace, ToolOutput};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::error::ToolError;
use super::walk::{End, Next, Walk};
use super::workspace::Workspace;
use super::{BuiltinTool, blocking};

/// Paths that one call shows; who needs more asks more narrowly.
const MAX_SHOWN: usize = 500;

pub(super) struct FindFiles(pub(super) Arc<Workspace>);

#[derive(Debug, Deserialize)]
pub(super) struct Args {
    pub(super) pattern: String,
    pub(super) path: Option<String>,
    #[serde(default)]
    pub(super) include_ignored: bool,
}

impl BuiltinTool for FindFiles {
    type Args = Args;
    const READ_ONLY: bool = true;

    fn definition(&self) -> ToolDef {
        ToolDef::new(
            "find_files",
            "Finds files of the workspace by a glob such as `*.rs` or `src/**/test_*.py`. A pattern without `/` is \
             matched against the name in every folder, one with `/` against the path below `path`.",
            json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "minLength": 1, "description": "The glob; `{a,b}` and `[a-z]` work."},
                    "path": {"type": "string", "description": "The folder to search; the workspace by default."},
                    "include_ignored": {"type": "boolean", "description": "Also files that .gitignore excludes."},
                },
                "required": ["pattern"],
                "additionalProperties": false,
            }),
        )
    }

    fn place(&self) -> CallPlace {
        CallPlace::in_folder(self.0.root().display())
    }

    async fn run(&self, args: Args, cancel: &CancellationToken) -> ToolOutput {
        let workspace = self.0.clone();
        blocking(cancel, move |cancel| find(&workspace, &args, cancel).map(ToolOutput::ok)).await
    }
}

pub(super) fn find(workspace: &Workspace, args: &Args, cancel: &CancellationToken) -> Result<String, ToolError> {
    let pattern = Pattern::new(&args.pattern)?;
    let start = args.path.as_deref().unwrap_or(".");
    let (_, base) = workspace.open_dir(start)?;
    let ids = workspace.ids();
    let mut paths = Vec::new();
    let end = Walk::new(workspace, start, args.include_ignored, &ids, cancel)?.run(&mut |found| {
        if !found.file_type.is_dir() && pattern.matches(found.path.strip_prefix(&base).unwrap_or(found.path)) {
            if paths.len() == MAX_SHOWN {
                return Next::Stop;
            }
            paths.push(found.path.to_string_lossy().into_owned());
        }
        Next::On
    })?;
    if paths.is_empty() {
        paths.push(format!("[no file matches `{}`]", args.pattern));
    }
    match end {
        End::Whole => {}
        End::Stopped => paths.push(format!("[cut after {MAX_SHOWN} files; narrow the pattern or the path]")),
        End::TooMuch => paths.push("[not everything was searched: the folder is too large; narrow the path]".into()),
    }
    Ok(paths.join("\n"))
}

/// A glob on a file's name, or on its path if it has a slash.
pub(super) struct Pattern {
    glob: GlobMatcher,
    on_path: bool,
}

impl Pattern {
    pub(super) fn new(pattern: &str) -> Result<Self, ToolError> {
        let bare = pattern.strip_prefix("./").unwrap_or(pattern);
        let glob = GlobBuilder::new(bare).literal_separator(true).build();
        let glob = glob.map_err(|e| ToolError::Argument(format!("`{pattern}` is not a glob: {}", e.kind())))?;
        Ok(Self { glob: glob.compile_matcher(), on_path: bare.contains('/') })
    }

    pub(super) fn matches(&self, path: &Path) -> bool {
        if self.on_path {
            return self.glob.is_match(path);
        }
        path.file_name().is_some_and(|name| self.glob.is_match(name))
    }
}
