//! `pintle import picoclaw`: the hooks of a PicoClaw configuration, as a configuration of Pintle.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use clap::Args;
use pintle_domain::json::{Object, Value, json};

use crate::clean::clean;
use crate::cli::session::word;
use crate::cli::terminal;
use crate::error::{CliError, FAILED};

/// The section of hooks that PicoClaw brings itself.
const BUILTINS: &str = "builtins";

/// Largest configuration that is read, in bytes: a thousand times a long one.
const MAX_BYTES: u64 = 16 << 20;

/// The first bytes of a database, which is what GoClaw keeps its hooks in.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Whether it is an export of GoClaw: lists of rows, or one record.
fn is_goclaw(found: &Value) -> bool {
    let lists = ["hooks", "agent_hooks", "payload", "handler_type"];
    found.is_array() || lists.iter().any(|name| found.get(name).is_some())
}

/// Flags of `import picoclaw`.
#[derive(Debug, Args)]
pub struct PicoclawArgs {
    /// PicoClaw's config.json
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(args: &PicoclawArgs) -> Result<u8, CliError> {
    let file = args.file.display();
    let goclaw = |message: String| {
        let command = format!("`pintle import goclaw {}`", word(&file.to_string()));
        Err(CliError::usage(message).hint(format!("hooks of GoClaw are imported by {command}")))
    };
    let mut bytes = Vec::new();
    let read = File::open(&args.file).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    let read = read.map_err(|error| CliError::usage(format!("{file} cannot be read: {error}")))?;
    if bytes.starts_with(SQLITE) {
        return goclaw(format!("{file} is a database of SQLite, not a configuration of PicoClaw"));
    }
    if read as u64 > MAX_BYTES {
        return Err(CliError::usage(format!("{file} has more than {MAX_BYTES} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| CliError::usage(format!("{file} is not JSON: it is not UTF-8")))?;
    let found = pintle_domain::json::parse(text.strip_prefix('\u{feff}').unwrap_or(&text))
        .map_err(|why| CliError::usage(format!("{file} is not JSON: {why}")))?;
    let Some(Value::Object(members)) = found.get("hooks") else {
        let message = format!("{file} has no object `hooks`, so there is nothing to import");
        return if is_goclaw(&found) { goclaw(message) } else { Err(CliError::usage(message)) };
    };
    let entries = |kind: &str| members.get(kind).and_then(Value::as_object).map_or(0, |entries| entries.len());
    let taken: Object = members
        .iter()
        .filter(|(name, _)| *name != BUILTINS)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let configuration = serde_json::to_string_pretty(&json!({ "hooks": taken }))
        .map_err(|error| CliError::failed(error.to_string()))?;
    terminal::say(&format!("{configuration}\n"))?;
    let (processes, builtins) = (entries("processes"), entries(BUILTINS));
    terminal::note(&format!("imported: `hooks`, with {processes} under `processes`"));
    if builtins > 0 {
        terminal::note(&format!(
            "not imported: {builtins} under `builtins`, whose code is part of PicoClaw; what they guard is not guarded here"
        ));
    }
    let others = found.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let others: Vec<String> = others.filter(|name| *name != "hooks").map(clean).collect();
    if !others.is_empty() {
        terminal::note(&format!("left: {}", others.join(", ")));
    }
    terminal::note("save it as pintle.json, look at it with `pintle hooks lint`, and accept it with `pintle trust`");
    // One that is left out may have been a guard.
    Ok(if builtins > 0 { FAILED } else { 0 })
}
