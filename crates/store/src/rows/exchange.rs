//! What a gateway keeps beside conversations, as rows.

use std::collections::BTreeSet;

use jiff::Timestamp;
use pintle_domain::id::{SessionId, TenantId, TurnId};
use pintle_domain::store::{Repeat, RepeatName, SessionKey, Upload};

use crate::db::{Cell, Columns, Db, Exclusive, Failure, Statement, limit_of, moment};

/// How much of an upload one row holds, in bytes: small enough that a row is written and read in one go by any database,
/// large enough that the largest upload has a hundred.
const PIECE_BYTES: usize = 256 << 10;

/// Most codes that one question is about: databases bound the number of parameters.
const CODES_AT_ONCE: usize = 100;

const UPLOAD: &str =
    "SELECT id, tenant_id, user_id, session_id, content_type, file_name, size_bytes, sha256, created_at FROM uploads";

/// The statements that forget the uploads and requests of one session, for `?1` its tenant and `?2` its name.
pub(crate) const GONE: [&str; 3] = [
    "DELETE FROM upload_pieces WHERE upload_id IN (SELECT id FROM uploads WHERE tenant_id = ?1 AND session_id = ?2)",
    "DELETE FROM uploads WHERE tenant_id = ?1 AND session_id = ?2",
    "DELETE FROM repeats WHERE tenant_id = ?1 AND session_id = ?2",
];

/// Keeps an upload, if there is room.
pub(crate) fn keep_upload(db: &dyn Db, upload: &Upload, content: &[u8], quota: u64) -> Result<bool, Failure> {
    db.exclude(Exclusive::Uploads)?;
    let sum = "SELECT CAST(coalesce(sum(size_bytes), 0) AS BIGINT) AS taken FROM uploads WHERE tenant_id = ?1";
    let taken = db.one(sum, &[upload.tenant.as_str().into()], |row| row.count("taken"))?.unwrap_or(0);
    if taken.saturating_add(upload.size_bytes) > quota {
        return Ok(false);
    }
    let size = i64::try_from(upload.size_bytes).unwrap_or(i64::MAX);
    db.run(
        "INSERT INTO uploads \
         (id, tenant_id, user_id, session_id, content_type, file_name, size_bytes, sha256, created_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        &[
            (&upload.id).into(),
            upload.tenant.as_str().into(),
            (&upload.user).into(),
            upload.session.as_ref().map(SessionId::as_str).into(),
            (&upload.content_type).into(),
            (&upload.file_name).into(),
            size.into(),
            (&upload.sha256).into(),
            moment(upload.created_at).into(),
        ],
    )?;
    for (number, piece) in (0_u32..).zip(content.chunks(PIECE_BYTES)) {
        db.run(
            "INSERT INTO upload_pieces (upload_id, number, content) VALUES (?1, ?2, ?3)",
            &[(&upload.id).into(), number.into(), Cell::Bytes(piece.into())],
        )?;
    }
    Ok(true)
}

/// The upload of this id.
pub(crate) fn upload(db: &dyn Db, tenant: &TenantId, id: &str) -> Result<Option<Upload>, Failure> {
    db.one(&format!("{UPLOAD} WHERE tenant_id = ?1 AND id = ?2"), &[tenant.as_str().into(), id.into()], read_upload)
}

fn read_upload(row: &dyn Columns) -> Result<Upload, Failure> {
    let id = row.string("id")?;
    Ok(Upload {
        tenant: TenantId::new(row.string("tenant_id")?),
        user: row.string("user_id")?,
        session: row.maybe_string("session_id")?.map(SessionId::new),
        content_type: row.string("content_type")?,
        file_name: row.string("file_name")?,
        size_bytes: row.count("size_bytes")?,
        sha256: row.string("sha256")?,
        created_at: at(row, "created_at", &format!("upload `{id}`"))?,
        id,
    })
}

fn at(row: &dyn Columns, column: &str, what: &str) -> Result<Timestamp, Failure> {
    let foreign = |error: jiff::Error| Failure::Foreign { what: what.to_owned(), why: error.to_string() };
    row.text(column)?.parse().map_err(foreign)
}

/// The content of the upload of this id.
pub(crate) fn upload_content(db: &dyn Db, tenant: &TenantId, id: &str) -> Result<Option<Vec<u8>>, Failure> {
    let Some(upload) = upload(db, tenant, id)? else { return Ok(None) };
    let mut content = Vec::new();
    let sql = "SELECT content FROM upload_pieces WHERE upload_id = ?1 ORDER BY number";
    db.each(sql, &[id.into()], &mut |row| {
        content.extend(row.maybe_bytes("content")?.unwrap_or_default());
        Ok(())
    })?;
    if content.len() as u64 != upload.size_bytes {
        let why = format!("expected {} bytes, there are {}", upload.size_bytes, content.len());
        return Err(Failure::Foreign { what: format!("upload `{id}`"), why });
    }
    Ok(Some(content))
}

/// Gives an upload to a session.
pub(crate) fn take_upload(db: &dyn Db, session: &SessionKey, id: &str, user: &str) -> Result<bool, Failure> {
    let sql = "UPDATE uploads SET session_id = ?1 WHERE tenant_id = ?2 AND id = ?3 \
               AND (session_id = ?1 OR (session_id IS NULL AND user_id = ?4))";
    let cells = [session.session.as_str().into(), session.tenant.as_str().into(), id.into(), user.into()];
    Ok(db.run(sql, &cells)? > 0)
}

/// Forgets uploads that nobody took.
pub(crate) fn forget_uploads(db: &dyn Db, before: Timestamp, limit: usize) -> Result<usize, Failure> {
    let sql = "SELECT id FROM uploads WHERE session_id IS NULL AND created_at < ?1 ORDER BY created_at LIMIT ?2";
    let old = db.all(sql, &[moment(before).into(), limit_of(limit).into()], |row| row.string("id"))?;
    let of_upload = |id: &String| {
        [
            Statement::new("DELETE FROM upload_pieces WHERE upload_id = ?1", vec![id.clone().into()]),
            Statement::new("DELETE FROM uploads WHERE id = ?1", vec![id.clone().into()]),
        ]
    };
    db.run_all(&old.iter().flat_map(of_upload).collect::<Vec<_>>())?;
    Ok(old.len())
}

/// Forgets what belongs to a session whose journal is elsewhere.
pub(crate) fn forget_session(db: &dyn Db, key: &SessionKey) -> Result<(), Failure> {
    let of_session = |sql| Statement::new(sql, vec![key.tenant.as_str().into(), key.session.as_str().into()]);
    db.run_all(&GONE.map(of_session))
}

/// Notes a request, unless one by its name is there.
pub(crate) fn begin_repeat(
    db: &dyn Db,
    name: &RepeatName,
    new: &Repeat,
    since: Timestamp,
) -> Result<Option<Repeat>, Failure> {
    let digest = name.digest();
    db.run("DELETE FROM repeats WHERE name = ?1 AND began_at < ?2", &[(&digest).into(), moment(since).into()])?;
    let inserted = db.run(
        "INSERT INTO repeats (name, tenant_id, session_id, turn_id, digest, owner, began_at, outcome) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (name) DO NOTHING",
        &[
            (&digest).into(),
            name.session.tenant.as_str().into(),
            name.session.session.as_str().into(),
            new.turn_id.as_str().into(),
            (&new.digest).into(),
            (&new.owner).into(),
            moment(new.began_at).into(),
            new.outcome.as_ref().into(),
        ],
    )?;
    if inserted > 0 { Ok(None) } else { repeat(db, name, since) }
}

/// The request of this name.
pub(crate) fn repeat(db: &dyn Db, name: &RepeatName, since: Timestamp) -> Result<Option<Repeat>, Failure> {
    let sql = "SELECT digest, turn_id, owner, began_at, outcome FROM repeats WHERE name = ?1 AND began_at >= ?2";
    db.one(sql, &[name.digest().into(), moment(since).into()], |row| {
        Ok(Repeat {
            digest: row.string("digest")?,
            turn_id: TurnId::new(row.string("turn_id")?),
            owner: row.string("owner")?,
            began_at: at(row, "began_at", "a request that may come again")?,
            outcome: row.maybe_string("outcome")?,
        })
    })
}

/// Notes what came of the requests of a turn, or forgets them.
pub(crate) fn end_repeats(db: &dyn Db, tenant: &TenantId, turn: &TurnId, outcome: Option<&str>) -> Result<(), Failure> {
    let of_turn = "tenant_id = ?1 AND turn_id = ?2 AND outcome IS NULL";
    let key = [tenant.as_str().into(), turn.as_str().into()];
    match outcome {
        Some(outcome) => {
            let [tenant, turn] = key;
            db.run(&format!("UPDATE repeats SET outcome = ?3 WHERE {of_turn}"), &[tenant, turn, outcome.into()])
        }
        None => db.run(&format!("DELETE FROM repeats WHERE {of_turn}"), &key),
    }
    .map(drop)
}

/// Forgets the request of this name.
pub(crate) fn forget_repeat(db: &dyn Db, name: &RepeatName) -> Result<(), Failure> {
    db.run("DELETE FROM repeats WHERE name = ?1", &[name.digest().into()]).map(drop)
}

/// Forgets old requests and texts.
pub(crate) fn forget_repeats(db: &dyn Db, before: Timestamp, limit: usize) -> Result<usize, Failure> {
    let cells = [moment(before).into(), limit_of(limit).into()];
    let requests = "DELETE FROM repeats WHERE name IN \
                    (SELECT name FROM repeats WHERE began_at < ?1 ORDER BY began_at LIMIT ?2)";
    let texts = "DELETE FROM passed_texts WHERE code IN \
                 (SELECT code FROM passed_texts WHERE at < ?1 ORDER BY at LIMIT ?2)";
    let gone = db.run(requests, &cells)? + db.run(texts, &cells)?;
    Ok(usize::try_from(gone).unwrap_or(usize::MAX))
}

/// Remembers texts that passed.
pub(crate) fn remember_passed(db: &dyn Db, codes: &[String], at: Timestamp) -> Result<(), Failure> {
    let at = moment(at);
    let keep = |code: &String| {
        let sql =
            "INSERT INTO passed_texts (code, at) VALUES (?1, ?2) ON CONFLICT (code) DO UPDATE SET at = excluded.at";
        Statement::new(sql, vec![code.clone().into(), at.clone().into()])
    };
    db.run_all(&codes.iter().map(keep).collect::<Vec<_>>())
}

/// Those of `codes` that are remembered.
pub(crate) fn passed(db: &dyn Db, codes: &[String], since: Timestamp) -> Result<BTreeSet<String>, Failure> {
    let mut found = BTreeSet::new();
    for some in codes.chunks(CODES_AT_ONCE) {
        let places: Vec<String> = (2..some.len() + 2).map(|place| format!("?{place}")).collect();
        let sql = format!("SELECT code FROM passed_texts WHERE at >= ?1 AND code IN ({})", places.join(", "));
        let cells: Vec<Cell<'_>> = std::iter::once(moment(since).into()).chain(some.iter().map(Cell::from)).collect();
        found.extend(db.all(&sql, &cells, |row| row.string("code"))?);
    }
    Ok(found)
}
