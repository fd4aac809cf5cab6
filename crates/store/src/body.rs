//! JSON in a column: what is written can be read again, within the same bounds.

use pintle_domain::json::depth;
use pintle_domain::store::MAX_ROW_DEPTH;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest JSON of one entry or question, in bytes. A message of 10 MiB that must be escaped throughout takes 60 MiB;
/// SQLite ends at 1 GB, and by then reading one session would take the memory of the machine.
pub const MAX_BODY_BYTES: usize = 128 << 20;

/// `what` as JSON.
///
/// # Errors
/// It is longer or deeper than what can be read again, in words.
pub(crate) fn write(what: &impl Serialize) -> Result<String, String> {
    let text = serde_json::to_string(what).map_err(|e| e.to_string())?;
    if text.len() > MAX_BODY_BYTES {
        return Err(format!("{} bytes of JSON, more than {MAX_BODY_BYTES}", text.len()));
    }
    bounded(&text)?;
    Ok(text)
}

/// The value that `text` holds.
///
/// # Errors
/// Somebody else wrote it; what is wrong with it, in words.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    bounded(text)?;
    serde_json::from_str(text).map_err(|e| e.to_string())
}

fn bounded(text: &str) -> Result<(), String> {
    if depth(text.as_bytes()) > MAX_ROW_DEPTH {
        return Err(format!("nested deeper than {MAX_ROW_DEPTH} levels"));
    }
    Ok(())
}
