//! Values of PostgreSQL as the texts and numbers that SQLite keeps, and back.

use std::borrow::Cow;
use std::error::Error;

use bytes::BytesMut;
use jiff::Timestamp;
use jiff::civil::Date;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

use super::text;
use crate::db::{Cell, Columns, Failure, moment};

type Foul = Box<dyn Error + Sync + Send>;

/// The moment that TIMESTAMPTZ counts microseconds from, and DATE days: the beginning of 2000, UTC.
const EPOCH_SECONDS: i64 = 946_684_800;

/// A day, which DATE counts.
const DAY_SECONDS: i64 = 86_400;

/// The version byte that JSONB begins with.
const JSONB_VERSION: u8 = 1;

impl ToSql for Cell<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Foul> {
        match self {
            Self::Null => return Ok(IsNull::Yes),
            Self::Text(value) => return text_to_sql(value, ty, out),
            Self::Int(number) if *ty == Type::INT2 => i16::try_from(*number)?.to_sql(ty, out)?,
            Self::Int(number) if *ty == Type::INT4 => i32::try_from(*number)?.to_sql(ty, out)?,
            Self::Int(number) if *ty == Type::INT8 => number.to_sql(ty, out)?,
            Self::Flag(flag) if *ty == Type::BOOL => flag.to_sql(ty, out)?,
            Self::Bytes(bytes) if *ty == Type::BYTEA => bytes.as_ref().to_sql(ty, out)?,
            Self::Int(_) | Self::Flag(_) | Self::Bytes(_) => return Err(unfit(ty)),
        };
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        // Whether a value fits depends on the value too.
        true
    }

    to_sql_checked!();
}

/// Values are not repeated: they may be anybody's.
fn unfit(ty: &Type) -> Foul {
    format!("a value is nothing for a column of type `{ty}`").into()
}

fn text_to_sql(value: &str, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Foul> {
    if [Type::TEXT, Type::VARCHAR, Type::BPCHAR].contains(ty) {
        text::kept(value).to_sql(ty, out)
    } else if *ty == Type::UUID {
        Uuid::parse_str(value)?.to_sql(ty, out)
    } else if *ty == Type::UUID_ARRAY {
        let uuids: Vec<Uuid> =
            serde_json::from_str::<Vec<&str>>(value)?.into_iter().map(Uuid::parse_str).collect::<Result<_, _>>()?;
        uuids.to_sql(ty, out)
    } else if *ty == Type::TIMESTAMPTZ {
        let at: Timestamp = value.parse()?;
        (at.as_microsecond() - EPOCH_SECONDS * 1_000_000).to_sql(&Type::INT8, out)
    } else if *ty == Type::DATE {
        let date: Date = value.parse()?;
        let seconds = date.to_zoned(jiff::tz::TimeZone::UTC)?.timestamp().as_second() - EPOCH_SECONDS;
        i32::try_from(seconds / DAY_SECONDS)?.to_sql(&Type::INT4, out)
    } else if *ty == Type::JSONB {
        out.extend_from_slice(&[JSONB_VERSION]);
        out.extend_from_slice(value.as_bytes());
        Ok(IsNull::No)
    } else {
        Err(unfit(ty))
    }
}

/// The text of a cell, whatever type the column has.
struct Text<'a>(Cow<'a, str>);

impl<'a> FromSql<'a> for Text<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Foul> {
        let text = if *ty == Type::UUID {
            Uuid::from_sql(ty, raw)?.to_string().into()
        } else if *ty == Type::UUID_ARRAY {
            let uuids: Vec<String> = Vec::<Uuid>::from_sql(ty, raw)?.iter().map(Uuid::to_string).collect();
            serde_json::to_string(&uuids)?.into()
        } else if *ty == Type::TIMESTAMPTZ {
            let micros = i64::from_sql(&Type::INT8, raw)?;
            moment(Timestamp::from_microsecond(micros.saturating_add(EPOCH_SECONDS * 1_000_000))?).into()
        } else if *ty == Type::DATE {
            let days = i64::from(i32::from_sql(&Type::INT4, raw)?);
            let at = Timestamp::from_second(EPOCH_SECONDS + days * DAY_SECONDS)?;
            at.to_zoned(jiff::tz::TimeZone::UTC).date().to_string().into()
        } else if *ty == Type::JSONB {
            let [JSONB_VERSION, json @ ..] = raw else { return Err("JSONB of an unknown version".into()) };
            std::str::from_utf8(json)?.into()
        } else {
            text::read(<&str>::from_sql(ty, raw)?)
        };
        Ok(Self(text))
    }

    fn accepts(ty: &Type) -> bool {
        [
            Type::TEXT,
            Type::VARCHAR,
            Type::BPCHAR,
            Type::UUID,
            Type::UUID_ARRAY,
            Type::TIMESTAMPTZ,
            Type::DATE,
            Type::JSONB,
        ]
        .contains(ty)
    }
}

/// The number of a cell, however wide the column is.
struct Int(i64);

impl<'a> FromSql<'a> for Int {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Foul> {
        Ok(Self(if *ty == Type::INT2 {
            i16::from_sql(ty, raw)?.into()
        } else if *ty == Type::INT4 {
            i32::from_sql(ty, raw)?.into()
        } else {
            i64::from_sql(ty, raw)?
        }))
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT2, Type::INT4, Type::INT8].contains(ty)
    }
}

impl Columns for Row {
    fn maybe_text(&self, column: &str) -> Result<Option<Cow<'_, str>>, Failure> {
        Ok(self.try_get::<_, Option<Text<'_>>>(column)?.map(|text| text.0))
    }

    fn maybe_int(&self, column: &str) -> Result<Option<i64>, Failure> {
        Ok(self.try_get::<_, Option<Int>>(column)?.map(|int| int.0))
    }

    fn maybe_bytes(&self, column: &str) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.try_get(column)?)
    }

    fn flag(&self, column: &str) -> Result<bool, Failure> {
        Ok(self.try_get(column)?)
    }
}

#[cfg(test)]
mod tests {
    use pintle_testkit::postgres::Server;

    use super::super::base::Base;
    use super::super::target::Target;
    use super::*;
    use crate::Durability;
    use crate::db::Statement;

    const COLUMNS: [(&str, &str); 10] = [
        ("uuid", "UUID"),
        ("uuids", "UUID[]"),
        ("at", "TIMESTAMPTZ"),
        ("day", "DATE"),
        ("json", "JSONB"),
        ("short", "VARCHAR(255)"),
        ("hash", "CHAR(4)"),
        ("text", "TEXT"),
        ("bytes", "BYTEA"),
        ("number", "INT"),
    ];

    fn texts(row: &dyn Columns) -> Result<Vec<Option<String>>, Failure> {
        COLUMNS[..8].iter().map(|(name, _)| row.maybe_string(name)).collect()
    }

    #[test]
    fn every_kind_of_value_comes_back_as_the_text_that_sqlite_keeps() {
        let server = Server::start();
        let target = Target::of(&server.fresh_database()).unwrap();
        let link = Base::new(target, Durability::Commit).unwrap();
        link.write(|db| {
            let columns: Vec<String> = COLUMNS.iter().map(|(name, ty)| format!("{name} {ty}")).collect();
            db.script(&format!("CREATE TABLE kinds (row SERIAL, {})", columns.join(", ")))?;
            let sql = "INSERT INTO kinds (uuid, uuids, at, day, json, short, hash, text, bytes, number) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
            let uuid = "0193a5b0-7000-7000-8000-000000000001";
            let uuids = format!(r#"["{uuid}","00000000-0000-0000-0000-000000000000"]"#);
            let rest = [Cell::Bytes(vec![0, 255].into()), Cell::Int(-7)];
            let full = |at: &'static str, day: &'static str| -> Vec<Cell<'_>> {
                let texts =
                    [uuid, &uuids, at, day, r#"{"n": 12345678901234567890.10}"#, "s\0", "0af9", "nul \0\u{fdd0}1"];
                texts.into_iter().map(Cell::from).chain(rest.clone()).collect()
            };
            let nothing = vec![Cell::Null; 10];
            db.run_all(&[
                Statement::new(sql, full("2026-11-22T08:09:10.123456789Z", "1999-12-31")),
                Statement::new(sql, full("1969-12-31T23:59:59+00:00", "2026-02-28")),
                Statement::new(sql, nothing),
            ])?;
            let found = db.all("SELECT * FROM kinds ORDER BY row", &[], texts)?;
            let kept = |at: &str, day: &str| {
                let texts = [uuid, &uuids.clone(), at, day, r#"{"n": 12345678901234567890.10}"#, "s\0", "0af9"];
                let mut texts: Vec<_> = texts.map(|text| Some(text.to_owned())).into();
                texts.push(Some("nul \0\u{fdd0}1".to_owned()));
                texts
            };
            assert_eq!(found[0], kept("2026-11-22T08:09:10.123456Z", "1999-12-31"));
            assert_eq!(found[1], kept("1969-12-31T23:59:59.000000Z", "2026-02-28"));
            assert_eq!(found[2], vec![None; 8]);
            let rest = db.all("SELECT bytes, number FROM kinds ORDER BY row LIMIT 2", &[], |row| {
                Ok((row.maybe_bytes("bytes")?, row.maybe_int("number")?))
            })?;
            assert_eq!(rest[0], (Some(vec![0, 255]), Some(-7)));
            Ok(())
        })
        .unwrap();
        for (sql, cell) in [
            ("UPDATE kinds SET uuid = ?1", Cell::from("no uuid")),
            ("UPDATE kinds SET at = ?1", Cell::from("yesterday")),
            ("UPDATE kinds SET json = ?1", Cell::from("{")),
            ("UPDATE kinds SET number = ?1", Cell::Int(i64::MAX)),
            ("UPDATE kinds SET text = ?1", Cell::Int(1)),
        ] {
            let said = link.write(|db| db.run(sql, std::slice::from_ref(&cell))).expect_err(sql).to_string();
            assert!(!said.contains("yesterday") && !said.contains("no uuid"), "{said}");
        }
    }
}
