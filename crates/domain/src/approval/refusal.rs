//! Who refuses a call, a person or the host in the place of one who did not come, and what the model reads of it.

use std::time::Duration;

/// Who refuses in the place of a person who did not come. No person answers by this name.
const HOST: &str = "pintle";

/// How the text begins that the model reads of a call that was refused in the place of a person.
const REFUSED: &str = "Tool execution refused";

/// How it begins where a person refused.
const REFUSED_BY_PERSON: &str = "Tool execution refused by a person";

/// The answer of a person to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonAnswer {
    /// Whether the call may run.
    pub approve: bool,
    /// Who says so, for the record.
    pub by: String,
    /// The note that the agent is to know; may be empty.
    pub note: String,
}

impl PersonAnswer {
    /// What the person called `name` says. Somebody whose name is the host's is kept as a user of that name.
    pub fn of(name: String, approve: bool, note: String) -> Self {
        let by = if name == HOST { format!("user {name}") } else { name };
        Self { approve, by, note }
    }

    /// The refusal of the host where nobody came within `waited`.
    pub fn nobody_within(waited: Duration) -> Self {
        Self { approve: false, by: HOST.to_owned(), note: format!("nobody answered within {} s", waited.as_secs()) }
    }
}

/// The text that the model reads of a call that `by` refused, with this note.
pub fn refusal(by: Option<&str>, note: &str) -> String {
    let refused = if by == Some(HOST) { REFUSED } else { REFUSED_BY_PERSON };
    let note = if note.is_empty() { String::new() } else { format!(": {note}") };
    format!("{refused}{note}")
}

/// Whether `text` is that of a call that a person refused.
pub fn is_refused_by_person(text: &str) -> bool {
    text.starts_with(REFUSED_BY_PERSON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_did_not_come_has_refused_nothing() {
        let person = |name: &str, note: &str| PersonAnswer::of(name.to_owned(), false, note.to_owned());
        for (said, text) in [
            (person("anna", ""), "Tool execution refused by a person"),
            (person("anna", "use a branch"), "Tool execution refused by a person: use a branch"),
            (
                person("anna", "nobody answered within 4 s"),
                "Tool execution refused by a person: nobody answered within 4 s",
            ),
            (person("pintle", "use a branch"), "Tool execution refused by a person: use a branch"),
            (PersonAnswer::nobody_within(Duration::from_secs(4)), "Tool execution refused: nobody answered within 4 s"),
        ] {
            assert_eq!(refusal(Some(&said.by), &said.note), text, "{said:?}");
            assert_eq!(is_refused_by_person(text), said.by != HOST, "{said:?}");
        }
    }
}
