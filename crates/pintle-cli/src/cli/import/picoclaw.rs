//! `pintle import picoclaw`: the hooks of a PicoClaw configuration, as a configuration of Pintle.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use clap::Args;
use domain::json::{Value, json};

use crate::clean::clean;
use crate::cli::terminal;
use crate::error::CliError;

/// Largest configuration that is read, in bytes: a thousand times a long one.
const MAX_BYTES: u64 = 16 << 20;

/// Flags of `import picoclaw`.
#[derive(Debug, Args)]
pub struct PicoclawArgs {
    /// PicoClaw's config.json
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(args: &PicoclawArgs) -> Result<u8, CliError> {
    let file = args.file.display();
    let mut text = String::new();
    let read = File::open(&args.file).and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text));
    let bytes = read.map_err(|error| CliError::usage(format!("{file} cannot be read: {error}")))?;
    if bytes as u64 > MAX_BYTES {
        return Err(CliError::usage(format!("{file} has more than {MAX_BYTES} bytes")));
    }
    let found = domain::json::parse(text.strip_prefix('\u{feff}').unwrap_or(&text))
        .map_err(|why| CliError::usage(format!("{file} is no JSON: {why}")))?;
    let Some(hooks @ Value::Object(members)) = found.get("hooks") else {
        return Err(CliError::usage(format!("{file} has no object `hooks`, so there is nothing to take over")));
    };
    let entries = |kind: &str| members.get(kind).and_then(Value::as_object).map_or(0, |entries| entries.len());
    let configuration = serde_json::to_string_pretty(&json!({ "hooks": hooks }))
        .map_err(|error| CliError::failed(error.to_string()))?;
    terminal::say(&format!("{configuration}\n"))?;
    let (processes, builtins) = (entries("processes"), entries("builtins"));
    terminal::note(&format!("taken over: `hooks`, with {processes} under `processes`"));
    if builtins > 0 {
        terminal::note(&format!(
            "not taken over: {builtins} under `builtins` are compiled into PicoClaw, and not in here"
        ));
    }
    let others = found.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let others: Vec<String> = others.filter(|name| *name != "hooks").map(clean).collect();
    if !others.is_empty() {
        terminal::note(&format!("left: {}", others.join(", ")));
    }
    terminal::note("save it as pintle.json, look at it with `pintle hooks lint`, and accept it with `pintle trust`");
    Ok(0)
}
