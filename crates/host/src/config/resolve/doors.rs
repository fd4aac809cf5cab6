//! The doors through which agents of others come.

use dialects::process::config::EntryProblem;
use url::Url;

use crate::config::raw::{RawDoors, RawModelDoor};
use crate::config::{Config, MODEL_DOORS, ModelDoorConfig};

/// The words that `deny` takes.
const DENIES: [&str; 2] = ["answer", "text"];

/// Takes over what a file says of doors.
pub(super) fn add(config: &mut Config, raw: RawDoors) -> Vec<EntryProblem> {
    let mut problems = Vec::new();
    for (name, raw) in raw.model.unwrap_or_default() {
        let path = ["doors", "model", name.as_str()];
        if !MODEL_DOORS.contains(&name.as_str()) {
            let message = format!("there is no vendor `{name}`, expected {}", MODEL_DOORS.join(" or "));
            problems.push(EntryProblem::new(&path, message).meant(&name, MODEL_DOORS));
            continue;
        }
        match read(raw) {
            Ok(door) => drop(config.model_doors.insert(name, door)),
            Err(problem) => problems.push(problem.under(&path)),
        }
    }
    problems
}

fn read(raw: RawModelDoor) -> Result<ModelDoorConfig, EntryProblem> {
    let RawModelDoor { base_url, deny, hosted } = raw;
    if let Some(text) = &base_url {
        let is_good = Url::parse(text).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https") && url.password().is_none() && url.query().is_none()
        });
        if !is_good {
            let message = "expected an http or https URL without a password and a query";
            return Err(EntryProblem::new(&["base_url"], message));
        }
    }
    let deny_as_text = match deny.as_deref() {
        None | Some("answer") => false,
        Some("text") => true,
        Some(word) => {
            let message = format!("unsupported word \"{word}\", expected {}", DENIES.join(" or "));
            return Err(EntryProblem::new(&["deny"], message).meant(word, DENIES));
        }
    };
    Ok(ModelDoorConfig { base_url, deny_as_text, hosted: hosted.unwrap_or_default() })
}
