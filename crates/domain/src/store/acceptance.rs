//! What the audit chain says where somebody takes a store that is not the one that was known.

use super::Actor;
use crate::id::TenantId;
use crate::json::{Object, Value};

/// The action of an entry that says that somebody took the store, or its audit chain, as it was found.
pub const STORE_ACCEPTED: &str = "store_accepted";

/// That a person takes a store as it was found, as it is told in one chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreAcceptance {
    /// In whose chain it stands.
    pub tenant: TenantId,
    /// What is wrong with the store, in words.
    pub why: String,
    /// The first and the last row of the chain that were known, and are not there.
    pub missing: Option<(u64, u64)>,
}

impl StoreAcceptance {
    /// What is taken, for people.
    pub fn text(&self) -> String {
        let Self { why, missing, .. } = self;
        match missing {
            None => why.clone(),
            Some((first, last)) if first == last => format!("{why}; row {first} is missing"),
            Some((first, last)) => format!("{why}; rows {first} to {last} are missing"),
        }
    }

    /// What the entry says.
    pub fn data(&self, by: &Actor) -> Object {
        let every: [(&str, Value); 5] = [
            ("action", STORE_ACCEPTED.into()),
            ("actor", by.name.as_str().into()),
            ("at", by.at.to_string().into()),
            ("tenant_id", self.tenant.as_str().into()),
            ("reason", self.text().into()),
        ];
        let missing = self
            .missing
            .into_iter()
            .flat_map(|(first, last)| [("missing_from", Value::from(first)), ("missing_to", Value::from(last))]);
        every.into_iter().chain(missing).map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_says_who_took_which_copy() {
        let tenant = TenantId::from("t");
        let why = "an older copy of the store: its audit chain of t ends at row 3, and there were 9";
        let taken = StoreAcceptance { tenant, why: why.into(), missing: Some((4, 9)) };
        let by = Actor { name: "anna".into(), at: jiff::Timestamp::UNIX_EPOCH, reason: String::new() };
        let expected = crate::json::json!({
            "action": "store_accepted", "actor": "anna", "at": "1970-01-01T00:00:00Z", "tenant_id": "t",
            "reason": format!("{why}; rows 4 to 9 are missing"), "missing_from": 4, "missing_to": 9,
        });
        assert_eq!(Value::Object(taken.data(&by)), expected);
        let one = StoreAcceptance { missing: Some((4, 4)), ..taken.clone() };
        assert_eq!(one.text(), format!("{why}; row 4 is missing"));
        assert_eq!(StoreAcceptance { missing: None, ..taken }.text(), why);
    }
}
