//! `pintle schema`: the JSON Schema of the configuration.

use super::terminal;
use crate::error::CliError;
use pintle_host::config;

pub(super) fn run() -> Result<u8, CliError> {
    let schema = serde_json::to_string_pretty(&config::schema())
        .map_err(|error| CliError::failed(format!("the schema cannot be written: {error}")))?;
    terminal::say(&format!("{schema}\n"))?;
    Ok(0)
}
