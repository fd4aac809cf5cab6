//! What somebody says of a session, beside what its journal tells.

use serde::{Deserialize, Serialize};

use crate::json::Object;

/// What somebody said of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionSettings {
    /// What it is called, in place of the beginning of its first prompt; empty where nobody said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The model of its turns, in place of its agent's; empty where nobody said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// What a client keeps with it.
    #[serde(skip_serializing_if = "Object::is_empty")]
    pub metadata: Object,
}

impl SessionSettings {
    /// Whether nobody said anything.
    pub fn is_empty(&self) -> bool {
        self.label.is_empty() && self.model.is_empty() && self.metadata.is_empty()
    }

    /// The model, where somebody named one.
    pub fn model(&self) -> Option<&str> {
        Some(self.model.as_str()).filter(|model| !model.is_empty())
    }

    /// Changes what `patch` names.
    pub fn patch(&mut self, patch: &SessionPatch) {
        let SessionPatch { label, model, metadata } = patch;
        if let Some(label) = label {
            self.label.clone_from(label);
        }
        if let Some(model) = model {
            self.model.clone_from(model);
        }
        if let Some(metadata) = metadata {
            self.metadata.clone_from(metadata);
        }
    }
}

/// What is to be said of a session from now on: what is absent stays, and what is empty is cleared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionPatch {
    /// See [`SessionSettings::label`].
    pub label: Option<String>,
    /// See [`SessionSettings::model`].
    pub model: Option<String>,
    /// Replaced whole.
    pub metadata: Option<Object>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_changes_what_it_names() {
        let mut settings = SessionSettings { label: "old".into(), model: "a/b".into(), ..SessionSettings::default() };
        settings.patch(&SessionPatch { label: Some("new".into()), ..SessionPatch::default() });
        assert_eq!((settings.label.as_str(), settings.model()), ("new", Some("a/b")));
        settings.patch(&SessionPatch { label: Some(String::new()), model: Some(String::new()), metadata: None });
        assert!(settings.is_empty() && settings.model().is_none());
    }
}
