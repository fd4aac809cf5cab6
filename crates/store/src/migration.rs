//! The schema, step by step, in one sequence for both databases; a database keeps the number of its last step.
//!
//! A step has four scripts, up and down for each of them. What has been released is never changed: append.

use pintle_domain::approval::ApprovalKey;
use pintle_domain::id::DEFAULT_TENANT;

use crate::db::{Db, Dialect, Failure};
use crate::rows::audit::Sealer;
use crate::rows::batch::tail;
use crate::rows::{approvals, records};

/// The way through a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// To a newer schema.
    Up,
    /// Back to an older one.
    Down,
}

/// One step.
#[derive(Debug)]
pub(crate) struct Migration {
    /// Its number in the sequence.
    pub(crate) number: u32,
    sqlite: Scripts,
    postgres: Scripts,
    /// The step that SQL cannot do: after the script on the way up, before it on the way down.
    beside: Option<Beside>,
}

type Beside = fn(&dyn Db, Way) -> Result<(), Failure>;

#[derive(Debug)]
struct Scripts {
    up: &'static str,
    down: &'static str,
}

macro_rules! step {
    ($number:literal, $name:literal, $beside:expr) => {
        Migration {
            number: $number,
            sqlite: Scripts {
                up: include_str!(concat!("../migrations/sqlite/", $name, ".up.sql")),
                down: include_str!(concat!("../migrations/sqlite/", $name, ".down.sql")),
            },
            postgres: Scripts {
                up: include_str!(concat!("../migrations/postgres/", $name, ".up.sql")),
                down: include_str!(concat!("../migrations/postgres/", $name, ".down.sql")),
            },
            beside: $beside,
        }
    };
}

/// All steps, oldest first. The gaps belong to the sequence of the design that rules are compatible with.
pub(crate) const MIGRATIONS: &[Migration] = &[
    step!(1, "000001_records", None),
    step!(2, "000002_sessions", None),
    step!(51, "000051_tenants", Some(give_questions)),
    step!(52, "000052_agent_hooks", None),
    step!(53, "000053_agent_hooks_ext", None),
    step!(54, "000054_evidence", Some(bring_events_over)),
    step!(55, "000055_approvals", None),
    step!(56, "000056_anchor", None),
    step!(57, "000057_tail", Some(fold_tail)),
    step!(58, "000058_sessions_index", None),
    step!(59, "000059_identity", None),
    step!(60, "000060_exchange", None),
    step!(61, "000061_nodes", None),
    step!(62, "000062_webhooks", None),
    step!(63, "000063_pages", None),
    step!(67, "000067_session_settings", None),
    step!(68, "000068_removed_members", None),
    step!(69, "000069_webhook_cursor", None),
    step!(70, "000070_row_seals", None),
    step!(71, "000071_door_spending", None),
    step!(72, "000072_door_holds", None),
    // What a program before this step cannot read of the tail is folded.
    step!(73, "000073_output_and_sender", Some(fold_tail)),
];

/// The number of the newest step.
pub(crate) const NEWEST: u32 = MIGRATIONS[MIGRATIONS.len() - 1].number;

/// The first step of each release that has one: programs of one release and of the next work with one database at the
/// same time, so all steps of a release count as one level.
const LEVELS: [u32; 2] = [1, 58];

/// The level of the schema `number`.
pub(crate) fn level_of(number: u32) -> u32 {
    LEVELS.iter().map(|first| u32::from(*first <= number)).sum()
}

/// The name of the only tenant there was before there were tenants.
const BEFORE_TENANTS: &str = "default";

fn give_questions(db: &dyn Db, way: Way) -> Result<(), Failure> {
    match way {
        Way::Up => approvals::give(db, BEFORE_TENANTS, DEFAULT_TENANT),
        Way::Down => approvals::give(db, DEFAULT_TENANT, BEFORE_TENANTS),
    }
}

fn bring_events_over(db: &dyn Db, way: Way) -> Result<(), Failure> {
    match way {
        Way::Up => records::bring_over(db),
        Way::Down => records::take_back(db),
    }
}

fn fold_tail(db: &dyn Db, way: Way) -> Result<(), Failure> {
    match way {
        Way::Up => Ok(()),
        // Whatever is not signed then is signed with what comes next.
        Way::Down if db.dialect() == Dialect::Sqlite => tail::fold(db, &mut Sealer::new(None)).map(drop),
        Way::Down => Ok(()),
    }
}

/// Whether a database that says `number` was left by one of these steps, or is new.
pub(crate) fn is_known(number: i64) -> bool {
    number == 0 || MIGRATIONS.iter().any(|step| i64::from(step.number) == number)
}

/// The step from which on each question that waits has a seal, where there is a key.
const ALL_SEALED: u32 = 57;

/// Takes a database from the schema `seen` to the schema `to`; both are known. All or nothing is up to the caller's
/// transaction, and so is keeping the number.
pub(crate) fn run(db: &dyn Db, seen: i64, to: i64, key: Option<&ApprovalKey>) -> Result<(), Failure> {
    let numbered =
        |low: i64, high: i64| MIGRATIONS.iter().filter(move |step| (low + 1..=high).contains(&i64::from(step.number)));
    for step in numbered(seen, to) {
        step.go(db, Way::Up)?;
        if let Some(key) = key.filter(|_| step.number == ALL_SEALED) {
            approvals::seal_older(db, key)?;
        }
    }
    for step in numbered(to, seen).rev() {
        step.go(db, Way::Down)?;
    }
    Ok(())
}

impl Migration {
    fn go(&self, db: &dyn Db, way: Way) -> Result<(), Failure> {
        let scripts = match db.dialect() {
            Dialect::Sqlite => &self.sqlite,
            Dialect::Postgres => &self.postgres,
        };
        let beside = || self.beside.map_or(Ok(()), |beside| beside(db, way));
        match way {
            Way::Up => {
                db.script(scripts.up)?;
                beside()
            }
            Way::Down => {
                beside()?;
                db.script(scripts.down)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_stand_in_order_and_only_they_are_known() {
        assert!(MIGRATIONS.is_sorted_by(|a, b| a.number < b.number));
        let known: Vec<i64> = (-2..100).filter(|number| is_known(*number)).collect();
        assert_eq!(known, [0, 1, 2, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 67, 68, 69, 70, 71, 72, 73]);
        assert_eq!(crate::rows::strangers::SHAPE_OF, NEWEST, "the shapes are written anew with it");
        assert_eq!([0, 1, 57, 58, NEWEST].map(level_of), [0, 1, 1, 2, 2]);
    }
}
