//! What the writer knows of the tail of the evidence: how long it is, and when it is folded.

use std::time::{Duration, Instant};

use rusqlite::Connection;

/// When the tail is folded if nothing else is written: soon, as its entries have no hashes before, and late enough that
/// calls of one turn are folded together.
const FOLD_AFTER: Duration = Duration::from_millis(250);

/// Most rows of the tail: whoever comes then folds them, which takes about a millisecond.
const MAX_TAIL_ROWS: u32 = 24;

/// The tail, as far as this writer made it.
#[derive(Debug, Default)]
pub(super) struct Tail {
    rows: u32,
    /// When the first of them was committed.
    since: Option<Instant>,
    /// Whether the last fold failed. Nothing is added then: what fails there has to refuse calls.
    is_stuck: bool,
    /// The version of the schema that has no triggers: one that swallows rows must be met before the call runs.
    plain: Option<i64>,
}

impl Tail {
    /// Whether a row may be added.
    pub(super) fn has_room(&mut self, connection: &Connection) -> bool {
        !self.is_stuck && self.rows < MAX_TAIL_ROWS && self.is_plain(connection).unwrap_or(false)
    }

    /// Whether nobody put triggers on tables.
    fn is_plain(&mut self, connection: &Connection) -> rusqlite::Result<bool> {
        let number = |sql: &str| connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0));
        let version = number("PRAGMA schema_version")?;
        if self.plain != Some(version) {
            let triggers = number("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'")?;
            self.plain = (triggers == 0).then_some(version);
        }
        Ok(self.plain == Some(version))
    }

    /// A row was committed.
    pub(super) fn grown(&mut self, now: Instant) {
        self.rows += 1;
        self.since.get_or_insert(now);
    }

    /// It was folded, or could not be.
    pub(super) fn folded(&mut self, well: bool) {
        self.is_stuck = !well;
        if well {
            (self.rows, self.since) = (0, None);
        } else if self.since.is_some() {
            self.since = Some(Instant::now());
        }
    }

    /// How long until it is to be folded; nothing if there is none.
    pub(super) fn due_in(&self, now: Instant) -> Option<Duration> {
        self.since.map(|since| (since + FOLD_AFTER).saturating_duration_since(now))
    }
}
