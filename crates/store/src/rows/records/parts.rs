//! The two halves of what is kept of the hooks of an event: what they had in common at many events, which a dictionary
//! has once, and times and texts, which stand with the event.

use std::collections::BTreeMap;

use pintle_domain::json::Value;
use pintle_domain::store::StoredRecord;
use serde::{Deserialize, Serialize};

use crate::body;

/// Times and texts of the hooks of one event. This is also their JSON.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Details {
    /// The milliseconds that each hook took, up to the last that took any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ms: Vec<Option<f64>>,
    /// What else is its own, by the place of the hook.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    at: BTreeMap<usize, HookTexts>,
}

/// The texts of one hook at one event.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct HookTexts {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slot_wait_ms: Option<f64>,
}

/// Both halves as JSON; the second is nothing where no hook took time or said anything.
pub(super) fn split(hooks: Vec<StoredRecord>) -> (String, Option<String>) {
    let mut details = Details::default();
    let mut common = hooks;
    for (place, hook) in common.iter_mut().enumerate() {
        if let Some(ms) = hook.duration_ms.take() {
            details.ms.resize(place, None);
            details.ms.push(Some(ms));
        }
        // The reason of a hook that did not run is a word of a closed list.
        let reason = if hook.ran { hook.reason.take() } else { None };
        let texts = HookTexts {
            reason,
            fault: hook.fault_detail.take(),
            cause: hook.cause.take(),
            change: hook.change.take(),
            warnings: std::mem::take(&mut hook.warnings),
            dropped: std::mem::take(&mut hook.dropped),
            slot_wait_ms: hook.slot_wait_ms.take(),
        };
        if texts != HookTexts::default() {
            details.at.insert(place, texts);
        }
    }
    let details = (details != Details::default()).then(|| json(&details));
    (json(&common), details)
}

fn json(what: &impl Serialize) -> String {
    serde_json::to_string(what).expect("strings, numbers and JSON values are plain JSON")
}

/// The hooks whose halves are `common` and `details`.
///
/// # Errors
/// Somebody else wrote one of them, in words.
pub(super) fn joined(common: &str, details: Option<&str>) -> Result<Vec<StoredRecord>, String> {
    let mut hooks: Vec<StoredRecord> = body::read(common)?;
    let Some(details) = details else { return Ok(hooks) };
    let mut details: Details = body::read(details)?;
    for (hook, ms) in hooks.iter_mut().zip(&details.ms) {
        hook.duration_ms = *ms;
    }
    for (place, hook) in hooks.iter_mut().enumerate() {
        let Some(texts) = details.at.remove(&place) else { continue };
        hook.reason = texts.reason.or_else(|| hook.reason.take());
        (hook.fault_detail, hook.cause, hook.change) = (texts.fault, texts.cause, texts.change);
        (hook.warnings, hook.dropped) = (texts.warnings, texts.dropped);
        hook.slot_wait_ms = texts.slot_wait_ms;
    }
    Ok(hooks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_split_comes_back_and_has_its_times_and_texts_apart() {
        let passed_over = StoredRecord { hook: "a".into(), reason: Some("disabled".into()), ..StoredRecord::default() };
        let said = StoredRecord {
            hook: "b".into(),
            ran: true,
            reason: Some("why".into()),
            verdict: Some("deny".into()),
            duration_ms: Some(0.812),
            slot_wait_ms: Some(31.5),
            warnings: vec!["w".into()],
            dropped: vec!["context: nothing is added here".into()],
            change: Some(pintle_domain::json::json!([{"op": "remove", "path": "/x"}])),
            ..StoredRecord::default()
        };
        let failed = StoredRecord {
            ran: true,
            fault: Some("timed_out".into()),
            fault_detail: Some("after 2 s".into()),
            cause: Some("last line".into()),
            ..said.clone()
        };
        let hooks = vec![passed_over.clone(), said, passed_over.clone(), failed];
        let (common, details) = split(hooks.clone());
        for own in ["why", "0.812", "31.5", "after 2 s", "last line", "\"w\"", "remove"] {
            assert!(!common.contains(own) && details.as_ref().unwrap().contains(own), "{own}");
        }
        assert_eq!(joined(&common, details.as_deref()).unwrap(), hooks);
        assert_eq!(split(vec![passed_over.clone()]).1, None);
        assert_eq!(split(vec![]), ("[]".to_owned(), None));
        assert!(joined("{", None).is_err() && joined("[]", Some("7")).is_err());
    }
}
