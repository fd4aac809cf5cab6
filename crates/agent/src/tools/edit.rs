//! `edit_file`: one passage replaced by another.

use std::io::Read as _;
use std::sync::Arc;

use pintle_domain::json::json;
use pintle_domain::llm::ToolDef;
use pintle_domain::tool::{CallPlace, ToolOutput};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::error::ToolError;
use super::workspace::Workspace;
use super::write::replace;
use super::{BuiltinTool, blocking};

/// The largest file that is edited, in bytes; nobody edits larger ones by passages.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Lines of a near miss that are quoted.
const MAX_QUOTED_LINES: usize = 12;

/// Lines that are compared letter by letter in search of a near miss, and the longest of them in characters:
/// the comparison costs the product of the lengths.
const MAX_COMPARED: (usize, usize) = (5000, 300);

/// Below this likeness (0 to 1) a line is no near miss.
const LIKE_ENOUGH: f64 = 0.6;

pub(super) struct EditFile(pub(super) Arc<Workspace>);

#[derive(Debug, Deserialize)]
pub(super) struct Args {
    pub(super) path: String,
    pub(super) old_text: String,
    pub(super) new_text: String,
    #[serde(default)]
    pub(super) replace_all: bool,
}

impl BuiltinTool for EditFile {
    type Args = Args;
    const READ_ONLY: bool = false;

    fn definition(&self) -> ToolDef {
        ToolDef::new(
            "edit_file",
            "Replaces a passage of a file of the workspace. `old_text` must stand in the file exactly as given, white \
             space included, and exactly once unless `replace_all` is set.",
            json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "minLength": 1, "description": "The file, relative to the workspace."},
                    "old_text": {"type": "string", "minLength": 1, "description": "What stands there now."},
                    "new_text": {"type": "string", "description": "What shall stand there; empty to delete."},
                    "replace_all": {"type": "boolean", "description": "Replace every occurrence."},
                },
                "required": ["path", "old_text", "new_text"],
                "additionalProperties": false,
            }),
        )
    }

    fn place(&self) -> CallPlace {
        CallPlace::in_folder(self.0.root().display())
    }

    async fn run(&self, args: Args, cancel: &CancellationToken) -> ToolOutput {
        let workspace = self.0.clone();
        blocking(cancel, move |_| edit(&workspace, &args)).await
    }
}

pub(super) fn edit(workspace: &Workspace, args: &Args) -> Result<ToolOutput, ToolError> {
    if args.old_text == args.new_text {
        return Err(ToolError::Argument("`old_text` and `new_text` are equal: there is nothing to change".into()));
    }
    let text = text_of(workspace, &args.path)?;
    let mut places = text.match_indices(&args.old_text).map(|(at, _)| at);
    let Some(first) = places.next() else {
        let hint = near_miss(&text, &args.old_text);
        return Err(ToolError::Argument(format!("`old_text` does not stand in `{}`{hint}", args.path)));
    };
    let others: Vec<usize> = places.collect();
    if !others.is_empty() && !args.replace_all {
        return Err(ToolError::Argument(ambiguous(&text, first, &others, &args.path)));
    }
    let target = workspace.target(&args.path)?;
    let edited = text.replace(&args.old_text, &args.new_text);
    replace(&target, edited.as_bytes()).map_err(|e| ToolError::io("write", &args.path, e))?;
    let (count, line) = (others.len() + 1, line_of(&text, first));
    let done = if count == 1 {
        format!("replaced 1 passage in `{}`, at line {line}", args.path)
    } else {
        format!("replaced {count} passages in `{}`, the first at line {line}", args.path)
    };
    Ok(ToolOutput { artifact_tags: vec![args.path.clone()], ..ToolOutput::ok(done) })
}

fn text_of(workspace: &Workspace, path: &str) -> Result<String, ToolError> {
    let opened = workspace.open_file(path)?;
    let bytes = opened.metadata.len();
    if bytes > MAX_BYTES {
        return Err(ToolError::Argument(format!("`{path}` has {bytes} bytes; at most {MAX_BYTES} can be edited")));
    }
    let mut content = Vec::new();
    opened.file.take(MAX_BYTES + 1).read_to_end(&mut content).map_err(|e| ToolError::io("read", path, e))?;
    String::from_utf8(content)
        .map_err(|_| ToolError::Argument(format!("`{path}` is not UTF-8 text; it can only be edited with a command")))
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

fn ambiguous(text: &str, first: usize, others: &[usize], path: &str) -> String {
    let lines: Vec<String> = [first].iter().chain(others).take(5).map(|at| line_of(text, *at).to_string()).collect();
    let count = others.len() + 1;
    let more = if count > lines.len() { ", …" } else { "" };
    format!(
        "`old_text` stands {count} times in `{path}` (lines {}{more}); give more of its surroundings, or set `replace_all`",
        lines.join(", ")
    )
}

/// The part of `text` that comes closest to `wanted`, as the end of a sentence.
fn near_miss(text: &str, wanted: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let sought: Vec<&str> = wanted.lines().map(str::trim).collect();
    if let Some(at) = window(&lines, &sought) {
        let last = at + sought.len();
        return format!(
            "; lines {} to {last} differ from it only in white space or line ends:\n{}",
            at + 1,
            quoted(&lines[at..last], text)
        );
    }
    match likest(&lines, &sought) {
        Some(at) => {
            let last = (at + sought.len()).min(lines.len());
            format!("; the closest is at line {}:\n{}", at + 1, quoted(&lines[at..last], text))
        }
        None => "; read the file again, nothing in it comes close".into(),
    }
}

/// Where all lines of `sought` stand, white space aside.
fn window(lines: &[&str], sought: &[&str]) -> Option<usize> {
    if sought.iter().all(|line| line.is_empty()) {
        return None;
    }
    let same = |a: &&str, b: &&str| a.split_whitespace().eq(b.split_whitespace());
    lines.windows(sought.len()).position(|window| window.iter().zip(sought).all(|(a, b)| same(a, b)))
}

/// The line that is most like the first line of `sought` that holds anything, moved to where `sought` would begin.
fn likest(lines: &[&str], sought: &[&str]) -> Option<usize> {
    let (before, anchor) = sought.iter().enumerate().find(|(_, line)| !line.is_empty())?;
    let (max_lines, max_chars) = MAX_COMPARED;
    let short = |line: &str| line.len() <= max_chars;
    if !short(anchor) {
        return None;
    }
    let near = lines.iter().enumerate().take(max_lines).filter(|(_, line)| short(line));
    let scored = near.map(|(at, line)| (at, strsim::normalized_levenshtein(line.trim(), anchor)));
    let (at, score) = scored.reduce(|best, next| if next.1 > best.1 { next } else { best })?;
    (score >= LIKE_ENOUGH).then(|| at.saturating_sub(before))
}

fn quoted(lines: &[&str], text: &str) -> String {
    let mut out: Vec<String> = lines.iter().take(MAX_QUOTED_LINES).map(|line| (*line).to_owned()).collect();
    if lines.len() > MAX_QUOTED_LINES {
        out.push("…".into());
    }
    if text.contains("\r\n") {
        out.push("[the lines of this file end in carriage return and line feed]".into());
    }
    out.join("\n")
}
