//! The texts of the choices of an answer.

use std::collections::BTreeMap;

use super::BETWEEN;

/// The texts of the choices; most answers have one.
#[derive(Debug, Default)]
pub(super) struct ChoiceTexts {
    /// That of the first choice.
    pub(super) first: String,
    others: BTreeMap<u64, String>,
}

impl ChoiceTexts {
    /// The text of the choice `index`.
    pub(super) fn of(&mut self, index: u64) -> &mut String {
        match index {
            0 => &mut self.first,
            other => self.others.entry(other).or_default(),
        }
    }

    /// All of them, with `lead` before the first one.
    pub(super) fn all(&self, lead: &str) -> String {
        let first = format!("{lead}{}", self.first);
        let all = std::iter::once(&first).chain(self.others.values()).filter(|text| !text.is_empty());
        all.map(String::as_str).collect::<Vec<_>>().join(BETWEEN)
    }
}
