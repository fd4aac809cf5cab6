//! `read_file`: lines of a text file.

use std::io::{BufRead, BufReader};
use std::sync::Arc;

use pintle_domain::json::json;
use pintle_domain::kept_result::MAX_RESULT_BYTES;
use pintle_domain::llm::ToolDef;
use pintle_domain::tool::{CallPlace, ToolOutput};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::error::ToolError;
use super::workspace::Workspace;
use super::{BuiltinTool, READ_FILE, blocking};

/// Lines that are shown unless asked otherwise: more than most source files have.
const DEFAULT_LINES: u64 = 2000;

/// The room for the notes at the end, in bytes.
const NOTE_BYTES: usize = 512;

/// The most that one call shows, in bytes: with the notes, what a model reads of one result.
const MAX_BYTES: usize = MAX_RESULT_BYTES - NOTE_BYTES;

/// How far a file is searched for the zero byte that betrays binary data; as other tools do.
const BINARY_PROBE: usize = 8 * 1024;

/// The read buffer.
const BUFFER: usize = 64 * 1024;

pub(super) struct ReadFile(pub(super) Arc<Workspace>);

#[derive(Debug, Deserialize)]
pub(super) struct Args {
    pub(super) path: String,
    pub(super) offset: Option<u64>,
    pub(super) limit: Option<u64>,
}

impl BuiltinTool for ReadFile {
    type Args = Args;
    const READ_ONLY: bool = true;

    fn definition(&self) -> ToolDef {
        ToolDef::new(
            READ_FILE,
            "Reads a text file of the workspace, or a long result under its `result://` name. What is long is cut; the \
             last line then says how to go on.",
            json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "minLength": 1, "description": "The file, relative to the workspace, or `result://ID`."},
                    "offset": {"type": "integer", "minimum": 1, "description": "The first line to show; 1 by default."},
                    "limit": {"type": "integer", "minimum": 1, "description": "How many lines to show; 2000 by default."},
                },
                "required": ["path"],
                "additionalProperties": false,
            }),
        )
    }

    fn place(&self) -> CallPlace {
        CallPlace::in_folder(self.0.root().display())
    }

    async fn run(&self, args: Args, cancel: &CancellationToken) -> ToolOutput {
        let workspace = self.0.clone();
        blocking(cancel, move |cancel| read(&workspace, &args, cancel).map(ToolOutput::ok)).await
    }
}

pub(super) fn read(workspace: &Workspace, args: &Args, cancel: &CancellationToken) -> Result<String, ToolError> {
    let failed = |e| ToolError::io("read", &args.path, e);
    let opened = workspace.open_file(&args.path)?;
    let bytes = opened.metadata.len();
    let mut reader = BufReader::with_capacity(BUFFER, opened.file);
    if is_binary(reader.fill_buf().map_err(failed)?) {
        return Err(ToolError::Binary { path: args.path.clone(), bytes });
    }
    let first = args.offset.unwrap_or(1);
    let skipped = Lines { reader: &mut reader, cancel, limit: first - 1, cap: None }.take(&args.path)?;
    if skipped.lines < first - 1 || (skipped.ended && first > 1) {
        let lines = skipped.lines;
        return Err(ToolError::Argument(format!("`{}` has only {lines} lines, got offset {first}", args.path)));
    }
    let limit = args.limit.unwrap_or(DEFAULT_LINES);
    let shown = Lines { reader: &mut reader, cancel, limit, cap: Some(MAX_BYTES) }.take(&args.path)?;
    Ok(render(&shown, first, bytes))
}

/// Whether the start of a file is not that of a text.
pub(super) fn is_binary(start: &[u8]) -> bool {
    start.iter().take(BINARY_PROBE).any(|byte| *byte == 0)
}

/// A walk over lines that never holds more than `cap` bytes, however long a line is.
struct Lines<'a, R> {
    reader: &'a mut R,
    cancel: &'a CancellationToken,
    limit: u64,
    /// `None`: the bytes are only counted past.
    cap: Option<usize>,
}

/// The part that was walked over.
struct Taken {
    text: Vec<u8>,
    lines: u64,
    /// Whether the last line was left in its middle.
    inside_line: bool,
    /// Whether there is nothing after it.
    ended: bool,
}

impl<R: BufRead> Lines<'_, R> {
    fn take(self, shown: &str) -> Result<Taken, ToolError> {
        let mut taken = Taken { text: Vec::new(), lines: 0, inside_line: false, ended: false };
        loop {
            if self.cancel.is_cancelled() {
                return Err(ToolError::Cancelled);
            }
            let buffer = self.reader.fill_buf().map_err(|e| ToolError::io("read", shown, e))?;
            if buffer.is_empty() {
                taken.ended = true;
                taken.lines += u64::from(taken.inside_line);
                taken.inside_line = false;
                return Ok(taken);
            }
            let room = self.cap.map_or(usize::MAX, |cap| cap - taken.text.len());
            if taken.lines == self.limit || room == 0 {
                return Ok(taken);
            }
            let (used, line_ended) = match buffer.iter().take(room).position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len().min(room), false),
            };
            if self.cap.is_some() {
                taken.text.extend_from_slice(&buffer[..used]);
            }
            self.reader.consume(used);
            taken.lines += u64::from(line_ended);
            taken.inside_line = !line_ended;
        }
    }
}

fn render(taken: &Taken, first: u64, bytes: u64) -> String {
    let text = if taken.inside_line { whole_chars(&taken.text) } else { &taken.text };
    let mut out = String::from_utf8_lossy(text).into_owned();
    let lossy = std::str::from_utf8(text).is_err();
    let mut note = |text: String| {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&text);
    };
    let next = first + taken.lines;
    if bytes == 0 && taken.lines == 0 {
        note("[empty file]".into());
    } else if taken.inside_line {
        note(format!("[cut inside line {next}; the file has {bytes} bytes; go on with offset {}]", next + 1));
    } else if !taken.ended {
        note(format!("[cut after line {}; the file has {bytes} bytes; go on with offset {next}]", next - 1));
    }
    if lossy {
        note("[not UTF-8: bytes that are not text are shown as \u{fffd}]".into());
    }
    out
}

/// `text` without the character that its end cuts in two.
fn whole_chars(text: &[u8]) -> &[u8] {
    match std::str::from_utf8(text) {
        Err(e) if e.error_len().is_none() => &text[..e.valid_up_to()],
        Ok(_) | Err(_) => text,
    }
}
