//! What the databases have in common: one way to run a statement, to bind a value and to read a column, so that the
//! SQL of a port is written once.
//!
//! Statements number their parameters as SQLite does (`?1`). Columns that only PostgreSQL has a type for (UUID,
//! TIMESTAMPTZ, DATE, JSONB, arrays of UUIDs) are bound and read as the text that SQLite keeps.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use pintle_domain::store::StoreError;

/// The dialect of the SQL, where there is a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

impl Dialect {
    /// Ends a SELECT whose rows nobody else may change until the end of the transaction. In SQLite, nobody else
    /// writes anyway.
    pub(crate) fn for_update(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR UPDATE",
        }
    }
}

/// A value on its way into a statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    /// Nothing.
    Null,
    /// Text; also UUIDs, dates and JSON: the column says which.
    Text(Cow<'a, str>),
    /// A number.
    Int(i64),
    /// Yes or no.
    Flag(bool),
    /// Bytes that are not text.
    Bytes(Cow<'a, [u8]>),
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

impl<'a> From<&'a String> for Cell<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text.as_str().into())
    }
}

impl From<String> for Cell<'_> {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<i64> for Cell<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u32> for Cell<'_> {
    fn from(number: u32) -> Self {
        Self::Int(number.into())
    }
}

impl From<bool> for Cell<'_> {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A statement and what is bound to it.
#[derive(Clone, Debug)]
pub(crate) struct Statement<'a> {
    /// With parameters `?1`, `?2` and so on.
    pub(crate) sql: &'static str,
    /// In the order of their numbers.
    pub(crate) cells: Vec<Cell<'a>>,
    /// The statement that runs in its place, with the same cells, if a row that it points at is not there.
    pub(crate) orphan: Option<&'static str>,
}

impl<'a> Statement<'a> {
    /// One that points at no row, or at one that is there for sure.
    pub(crate) fn new(sql: &'static str, cells: Vec<Cell<'a>>) -> Self {
        Self { sql, cells, orphan: None }
    }

    /// How many bytes its texts take.
    pub(crate) fn bytes(&self) -> usize {
        let of = |cell: &Cell<'_>| match cell {
            Cell::Null | Cell::Int(_) | Cell::Flag(_) => 0,
            Cell::Text(text) => text.len(),
            Cell::Bytes(bytes) => bytes.len(),
        };
        self.cells.iter().map(of).sum()
    }
}

/// A row that was read, column by column.
pub(crate) trait Columns {
    /// The text in `column`, also of a UUID, a moment, a date or JSON; `None` if there is nothing.
    fn maybe_text(&self, column: &str) -> Result<Option<Cow<'_, str>>, Failure>;

    /// The number in `column`; `None` if there is nothing.
    fn maybe_int(&self, column: &str) -> Result<Option<i64>, Failure>;

    /// The bytes in `column`; `None` if there is nothing.
    fn maybe_bytes(&self, column: &str) -> Result<Option<Vec<u8>>, Failure>;

    /// The yes or no in `column`.
    fn flag(&self, column: &str) -> Result<bool, Failure>;
}

impl dyn Columns + '_ {
    /// The text in `column`, which has one.
    pub(crate) fn text(&self, column: &str) -> Result<Cow<'_, str>, Failure> {
        self.maybe_text(column)?.ok_or_else(|| nothing_in(column))
    }

    /// The number in `column`, which has one.
    pub(crate) fn int(&self, column: &str) -> Result<i64, Failure> {
        self.maybe_int(column)?.ok_or_else(|| nothing_in(column))
    }

    /// The text in `column`, to keep.
    pub(crate) fn string(&self, column: &str) -> Result<String, Failure> {
        self.text(column).map(Cow::into_owned)
    }

    /// The text in `column`, to keep; `None` if there is nothing.
    pub(crate) fn maybe_string(&self, column: &str) -> Result<Option<String>, Failure> {
        Ok(self.maybe_text(column)?.map(Cow::into_owned))
    }

    /// The number in `column`, which is never below 0 unless somebody else wrote it.
    pub(crate) fn count(&self, column: &str) -> Result<u64, Failure> {
        self.int(column).map(|count| u64::try_from(count).unwrap_or(0))
    }
}

fn nothing_in(column: &str) -> Failure {
    Failure::Foreign { what: format!("column `{column}`"), why: "there is nothing in it".into() }
}

/// A connection, in or out of a transaction.
pub(crate) trait Db {
    /// The dialect of SQL that it takes.
    fn dialect(&self) -> Dialect;

    /// Runs a statement and says how many rows it touched.
    fn run(&self, sql: &str, cells: &[Cell<'_>]) -> Result<u64, Failure>;

    /// Runs statements in their order, without waiting for each of them where the database is far away. Says how many
    /// rows each of them touched.
    fn run_each(&self, statements: &[&Statement<'_>]) -> Result<Vec<u64>, Failure>;

    /// Runs `statements` for whoever does not want to know how many rows they changed.
    fn run_all(&self, statements: &[Statement<'_>]) -> Result<(), Failure> {
        self.run_each(&statements.iter().collect::<Vec<_>>()).map(drop)
    }

    /// Hands every row of a query to `take`, until it fails.
    fn each(&self, sql: &str, cells: &[Cell<'_>], take: &mut Take<'_>) -> Result<(), Failure>;

    /// Runs a script of several statements.
    fn script(&self, sql: &str) -> Result<(), Failure>;

    /// From here to the end of the transaction, nobody else goes past their own call of this for `what`.
    fn exclude(&self, what: Exclusive) -> Result<(), Failure>;
}

/// Takes a row.
pub(crate) type Take<'a> = dyn FnMut(&dyn Columns) -> Result<(), Failure> + 'a;

/// The work that only one transaction at a time does, because it acts on what it does not find, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exclusive {
    /// Bringing the schema up to date.
    Schema,
    /// Taking and deleting sessions.
    Sessions,
    /// Asking and answering questions.
    Approvals,
    /// Taking uploads in, as far as there is room.
    Uploads,
    /// Appending to one audit chain: a number made from the name of its tenant.
    Chain(i32),
    /// Counting what is used: a number made from what is counted, and for whom.
    Uses(i32),
}

impl dyn Db + '_ {
    /// All rows of a query, each as `read` makes it.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        cells: &[Cell<'_>],
        mut read: impl FnMut(&dyn Columns) -> Result<T, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let mut found = Vec::new();
        self.each(sql, cells, &mut |row| {
            found.push(read(row)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// The last row of a query that finds at most one.
    pub(crate) fn one<T>(
        &self,
        sql: &str,
        cells: &[Cell<'_>],
        read: impl FnMut(&dyn Columns) -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        self.all(sql, cells, read).map(|mut found| found.pop())
    }
}

/// Why something was not done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// SQLite, its file or the disk.
    Sqlite(rusqlite::Error),
    /// PostgreSQL, or the way to it.
    Postgres(tokio_postgres::Error),
    /// PostgreSQL did not answer in time.
    Silence,
    /// A rule; the words are ready.
    Said(StoreError),
    /// The content is not what this program writes.
    Foreign {
        /// The row.
        what: String,
        /// The reason why it is wrong.
        why: String,
    },
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

/// In whole microseconds, however many of them are zero.
const MOMENT: DateTimePrinter = DateTimePrinter::new().precision(Some(6));

/// A moment as both databases keep it in columns that are compared: in whole microseconds and all of one length, so
/// that texts sort as moments.
pub(crate) fn moment(at: Timestamp) -> String {
    MOMENT.timestamp_to_string(&at)
}

/// A number of rows for LIMIT.
pub(crate) fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
