//! What a boot does with a row of a builtin.

use pintle_domain::json::Value;
use pintle_domain::rule::Rule;

/// Why a builtin is off that the configuration names: what its row has as `disabled_reason`.
pub const BY_CONFIG: &str = "config";

/// The work that has to be done about one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Seed {
    /// The change that is to be written.
    pub write: SeedWrite,
    /// The stored version and the shipped one, where the stored one is newer and stays.
    pub downgrade: Option<(u64, u64)>,
    /// Whether the configuration switches it off with this.
    pub forced_off: bool,
}

/// The change that is to be written.
#[derive(Clone, Debug, PartialEq)]
pub enum SeedWrite {
    /// A row that is not there yet.
    Insert(Box<Rule>),
    /// A row in place of the one that is there.
    Update(Box<Rule>),
    /// Nothing: all is as it should be.
    Nothing,
}

/// The work to do so that `shipped`, a row of a builtin, is in the store, where `stored` is there at present.
/// `disable` names the builtins that the configuration forces off.
pub fn plan(stored: Option<&Rule>, shipped: &Rule, disable: &[String]) -> Seed {
    let off = disable.contains(&shipped.name);
    let Some(stored) = stored else {
        let mut row = shipped.clone();
        let forced_off = off && force_off(&mut row);
        return Seed { write: SeedWrite::Insert(Box::new(row)), downgrade: None, forced_off };
    };
    let (have, new) = (version(stored), version(shipped));
    let mut row = if new > have { replaced(stored, shipped) } else { stored.clone() };
    let forced_off = off && force_off(&mut row);
    let downgrade = (new < have).then_some((have, new));
    if new <= have && !forced_off {
        return Seed { write: SeedWrite::Nothing, downgrade, forced_off };
    }
    row.version = stored.version.saturating_add(1);
    row.updated_at.clone_from(&shipped.updated_at);
    Seed { write: SeedWrite::Update(Box::new(row)), downgrade, forced_off }
}

/// The shipped row with what its owners have decided: whether it acts, and since when it does not.
fn replaced(stored: &Rule, shipped: &Rule) -> Rule {
    Rule {
        enabled: stored.enabled,
        tripped_at: stored.tripped_at.clone(),
        disabled_reason: stored.disabled_reason.clone(),
        created_by: stored.created_by.clone(),
        created_at: stored.created_at.clone(),
        ..shipped.clone()
    }
}

/// Switches `row` off; false if it is off already. A tripped one still counts at its event, so it is no longer tripped.
fn force_off(row: &mut Rule) -> bool {
    if !row.is_candidate() {
        return false;
    }
    row.enabled = false;
    row.tripped_at = None;
    BY_CONFIG.clone_into(&mut row.disabled_reason);
    true
}

/// Which edition of a builtin a row is. The column `version` counts its changes, so it is no help here. A row that does
/// not say is older than all.
fn version(row: &Rule) -> u64 {
    row.metadata.get("version").and_then(Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use pintle_domain::json::json;

    use super::*;
    use crate::builtin::builtins;

    fn shipped() -> Rule {
        builtins()[0].rows(Timestamp::UNIX_EPOCH).remove(0)
    }

    /// A row that has been in the store for a while, switched on, of edition `version`.
    fn stored(version: u64) -> Rule {
        let mut row = shipped();
        row.metadata.insert("version".into(), json!(version));
        row.config.insert("source".into(), json!("old"));
        Rule { enabled: true, version: 4, created_at: "then".into(), updated_at: "then".into(), ..row }
    }

    fn off() -> Vec<String> {
        vec!["other".to_owned(), "pii-redactor".to_owned()]
    }

    const NOTHING: Seed = Seed { write: SeedWrite::Nothing, downgrade: None, forced_off: false };

    #[test]
    fn a_missing_row_is_inserted_as_it_is_shipped() {
        let insert = Seed { write: SeedWrite::Insert(Box::new(shipped())), ..NOTHING };
        assert_eq!(plan(None, &shipped(), &[]), insert);
        assert_eq!(plan(None, &shipped(), &off()), insert, "it is off by itself");
        let on = Rule { enabled: true, ..shipped() };
        let forced = Rule { disabled_reason: "config".into(), ..shipped() };
        let seed = Seed { write: SeedWrite::Insert(Box::new(forced)), forced_off: true, ..NOTHING };
        assert_eq!(plan(None, &on, &off()), seed);
    }

    #[test]
    fn a_newer_edition_replaces_all_but_what_its_owners_decided() {
        for enabled in [true, false] {
            let old = Rule { enabled, ..stored(2) };
            let new = Rule { enabled, version: 5, created_at: "then".into(), ..shipped() };
            let seed = plan(Some(&old), &shipped(), &[]);
            assert_eq!(seed, Seed { write: SeedWrite::Update(Box::new(new.clone())), ..NOTHING });
            assert_eq!(plan(Some(&new), &shipped(), &[]), NOTHING, "a second boot has nothing to do");
        }
        let tripped = Rule { enabled: false, tripped_at: Some("then".into()), ..stored(2) };
        let SeedWrite::Update(row) = plan(Some(&tripped), &shipped(), &[]).write else { panic!("no update") };
        assert!(row.is_candidate(), "a trip is not cleared by an update");
    }

    #[test]
    fn the_same_and_an_older_edition_stay() {
        assert_eq!(plan(Some(&stored(3)), &shipped(), &[]), NOTHING);
        assert_eq!(plan(Some(&stored(7)), &shipped(), &[]), Seed { downgrade: Some((7, 3)), ..NOTHING });
        let mut unnumbered = stored(3);
        unnumbered.metadata.clear();
        assert!(matches!(plan(Some(&unnumbered), &shipped(), &[]).write, SeedWrite::Update(_)));
    }

    #[test]
    fn the_configuration_forces_off() {
        let forced = |row: Rule| Rule {
            enabled: false,
            version: 5,
            disabled_reason: "config".into(),
            updated_at: shipped().updated_at,
            ..row
        };
        let check = |row: Rule, downgrade| {
            let write = SeedWrite::Update(Box::new(forced(stored(downgrade))));
            let downgrade = (downgrade > 3).then_some((downgrade, 3));
            assert_eq!(plan(Some(&row), &shipped(), &off()), Seed { write, downgrade, forced_off: true });
        };
        check(stored(3), 3);
        check(stored(7), 7);
        check(Rule { enabled: false, tripped_at: Some("then".into()), ..stored(3) }, 3);
        assert_eq!(plan(Some(&forced(stored(3))), &shipped(), &off()), NOTHING);
        let seed = plan(Some(&stored(2)), &shipped(), &off());
        assert_eq!(seed.write, SeedWrite::Update(Box::new(forced(Rule { created_at: "then".into(), ..shipped() }))));
    }
}
