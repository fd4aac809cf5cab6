//! Seals on rows that say who may do what: whoever can write to the store can make such a row, and only a host its seal.

use super::ChangeKey;
use crate::json::{self, Value};

/// What is sealed begins so; nothing that entries are sealed over does.
const MESSAGE: &str = "pintle row seal 1";

/// What proves that a host wrote a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowProof {
    /// The seal of a key that is known here.
    Sealed {
        /// The row of the audit chain that tells of it; 0 where none does.
        entry: u64,
        /// Whether the key is the one that seals now, and no older one.
        is_current: bool,
    },
    /// A seal that is not the one of this row, or of a key that is not known here.
    Other,
    /// Nothing.
    Unsealed,
}

impl ChangeKey {
    /// The seal on a row that says `row`, of which the row `entry` of the audit chain tells.
    pub fn seal_row(&self, entry: u64, row: &Value) -> String {
        format!("{entry}.{}", self.0.seal(&message(entry, row)))
    }

    /// What `seal` proves of a row that says `row`; with no `key`, nothing does.
    pub fn row_proof(key: Option<&Self>, row: &Value, seal: Option<&str>) -> RowProof {
        let Some(seal) = seal else { return RowProof::Unsealed };
        let parts = seal.split_once('.').and_then(|(entry, code)| Some((entry.parse::<u64>().ok()?, code)));
        let (Some((entry, code)), Some(key)) = (parts, key) else { return RowProof::Other };
        let message = message(entry, row);
        match key.0.holds(&message, code) {
            true => RowProof::Sealed { entry, is_current: key.0.seal(&message) == code },
            false => RowProof::Other,
        }
    }
}

fn message(entry: u64, row: &Value) -> Vec<u8> {
    [MESSAGE, &entry.to_string(), &json::canonical(row)].join("\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    #[test]
    fn a_seal_is_one_of_its_row_and_its_entry_alone() {
        let (key, other) = (ChangeKey::of(b"one"), ChangeKey::of(b"two"));
        let row = json!({ "table": "members", "tenant_id": "t", "user_id": "ben", "role": "viewer" });
        let edited = json!({ "table": "members", "tenant_id": "t", "user_id": "ben", "role": "admin" });
        let elsewhere = json!({ "table": "members", "tenant_id": "u", "user_id": "ben", "role": "viewer" });
        let seal = key.seal_row(7, &row);
        let (_, code) = seal.split_once('.').unwrap();
        let proof = |key: Option<&ChangeKey>, row: &Value, seal: &str| ChangeKey::row_proof(key, row, Some(seal));
        let sealed = |is_current| RowProof::Sealed { entry: 7, is_current };
        let newer = other.clone().and_older(&key);
        let table = [
            (proof(Some(&key), &row, &seal), sealed(true)),
            (proof(Some(&newer), &row, &seal), sealed(false)),
            (proof(Some(&other), &row, &seal), RowProof::Other),
            (proof(None, &row, &seal), RowProof::Other),
            (proof(Some(&key), &edited, &seal), RowProof::Other),
            (proof(Some(&key), &elsewhere, &seal), RowProof::Other),
            (proof(Some(&key), &row, &format!("8.{code}")), RowProof::Other),
            (proof(Some(&key), &row, code), RowProof::Other),
            (proof(Some(&key), &row, ""), RowProof::Other),
            (ChangeKey::row_proof(Some(&key), &row, None), RowProof::Unsealed),
        ];
        for (i, (found, expected)) in table.into_iter().enumerate() {
            assert_eq!(found, expected, "case {i}");
        }
    }
}
