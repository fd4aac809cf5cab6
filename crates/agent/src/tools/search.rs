//! `search_text`: lines that match a regular expression.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use pintle_domain::json::json;
use pintle_domain::llm::ToolDef;
use pintle_domain::tool::{CallPlace, ToolOutput};
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::error::ToolError;
use super::find::Pattern;
use super::read::is_binary;
use super::walk::{End, Next, Walk};
use super::workspace::{Opened, Workspace, open_regular};
use super::{BuiltinTool, blocking};

/// Lines that are shown unless asked otherwise.
const DEFAULT_SHOWN: usize = 100;

/// The most lines that can be asked for.
const MAX_SHOWN: usize = 1000;

/// Larger files are passed over and counted: they are data, not text that somebody wrote.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// How much is read in one call; a disk gives that in seconds.
const MAX_TOTAL_BYTES: u64 = 512 * 1024 * 1024;

/// How much of a matching line is shown, in characters.
const MAX_LINE: usize = 300;

/// How large a pattern may become once compiled, in bytes.
const MAX_REGEX: usize = 1024 * 1024;

pub(super) struct SearchText(pub(super) Arc<Workspace>);

#[derive(Debug, Deserialize)]
pub(super) struct Args {
    pub(super) pattern: String,
    pub(super) path: Option<String>,
    pub(super) glob: Option<String>,
    #[serde(default)]
    pub(super) ignore_case: bool,
    #[serde(default)]
    pub(super) include_ignored: bool,
    pub(super) max_results: Option<usize>,
}

impl BuiltinTool for SearchText {
    type Args = Args;
    const READ_ONLY: bool = true;

    fn definition(&self) -> ToolDef {
        ToolDef::new(
            "search_text",
            "Searches the text files of the workspace for lines that match a regular expression (Rust syntax, no \
             look-around); prints `path:line: text`.",
            json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "minLength": 1, "description": "The regular expression."},
                    "path": {"type": "string", "description": "A file or folder; the workspace by default."},
                    "glob": {"type": "string", "minLength": 1, "description": "Only files like this, such as `*.rs`."},
                    "ignore_case": {"type": "boolean"},
                    "include_ignored": {"type": "boolean", "description": "Also files that .gitignore excludes."},
                    "max_results": {"type": "integer", "minimum": 1, "maximum": MAX_SHOWN},
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
        blocking(cancel, move |cancel| search(&workspace, &args, cancel).map(ToolOutput::ok)).await
    }
}

pub(super) fn search(workspace: &Workspace, args: &Args, cancel: &CancellationToken) -> Result<String, ToolError> {
    let regex = RegexBuilder::new(&args.pattern).case_insensitive(args.ignore_case).size_limit(MAX_REGEX).build();
    let regex =
        regex.map_err(|e| ToolError::Argument(format!("`{}` is not a regular expression: {e}", args.pattern)))?;
    let glob = args.glob.as_deref().map(Pattern::new).transpose()?;
    let limit = args.max_results.unwrap_or(DEFAULT_SHOWN);
    let mut search = Search { regex, limit, lines: Vec::new(), too_large: 0, read: 0 };
    let start = args.path.as_deref().unwrap_or(".");
    if !workspace.is_dir(start)? {
        let opened = workspace.open_file(start)?;
        let end = if search.file(opened, start) == Next::Stop { End::Stopped } else { End::Whole };
        return Ok(search.render(end));
    }
    let (_, base) = workspace.open_dir(start)?;
    let ids = workspace.ids();
    let wanted = |path: &Path| glob.as_ref().is_none_or(|glob| glob.matches(path.strip_prefix(&base).unwrap_or(path)));
    let end = Walk::new(workspace, start, args.include_ignored, &ids, cancel)?.run(&mut |found| {
        if !found.file_type.is_file() || !wanted(found.path) {
            return Next::On;
        }
        let shown = found.path.to_string_lossy();
        match open_regular(found.dir, found.name, &shown, &ids) {
            Ok(opened) => search.file(opened, &shown),
            // Not readable, protected or gone: there is nothing in it for the model.
            Err(_) => Next::On,
        }
    })?;
    Ok(search.render(end))
}

struct Search {
    regex: Regex,
    limit: usize,
    lines: Vec<String>,
    too_large: usize,
    read: u64,
}

impl Search {
    fn file(&mut self, opened: Opened, shown: &str) -> Next {
        if opened.metadata.len() > MAX_FILE_BYTES {
            self.too_large += 1;
            return Next::On;
        }
        let mut bytes = Vec::new();
        if opened.file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).is_err() || is_binary(&bytes) {
            return Next::On;
        }
        self.read += bytes.len() as u64;
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !self.regex.is_match(line) {
                continue;
            }
            if self.lines.len() == self.limit {
                return Next::Stop;
            }
            self.lines.push(format!("{shown}:{}: {}", number + 1, cut(line)));
        }
        if self.read > MAX_TOTAL_BYTES { Next::Stop } else { Next::On }
    }

    fn render(mut self, end: End) -> String {
        let found = self.lines.len();
        if found == 0 {
            self.lines.push("[no line matches]".into());
        }
        match end {
            End::Whole => {}
            End::Stopped if found == self.limit => {
                self.lines.push(format!("[cut after {found} lines; narrow the pattern, the path or the glob]"));
            }
            End::Stopped | End::TooMuch => {
                self.lines.push("[not everything was searched: there is too much; narrow the path or the glob]".into());
            }
        }
        if self.too_large > 0 {
            self.lines.push(format!("[{} files over {MAX_FILE_BYTES} bytes were not searched]", self.too_large));
        }
        self.lines.join("\n")
    }
}

fn cut(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    match text.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}
