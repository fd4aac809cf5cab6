//! Links and sessions of the console.

use jiff::Timestamp;
use pintle_domain::audit::ChangeKey;
use pintle_domain::id::TenantId;
use pintle_domain::store::{ConsoleSession, SecretDigest, SessionSecrets, SignInLink};

use super::sealed_row::{self, SealedRow};
use super::{column_of, raise, shown_at, tenant_in, uuid, word};
use crate::db::{Columns, Db, Failure};
use crate::rows::tenants;
use crate::rules;

const COLUMNS: &str =
    "tenant_id, id, user_id, role, origin, device, key_digest, cookie_digest, created_at, seen_at, seal";

const LINK_COLUMNS: &str = "digest, tenant_id, user_id, role, expires_at, seal";

pub(crate) fn add_link(
    db: &dyn Db,
    (link, code): (&SignInLink, &SecretDigest),
    key: Option<&ChangeKey>,
) -> Result<(), Failure> {
    let tenant = tenants::spelled(&link.tenant)?;
    db.run(
        "INSERT INTO console_links (digest, tenant_id, user_id, role, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        &[
            code.as_str().into(),
            tenant.as_str().into(),
            (&link.user).into(),
            link.role.word().into(),
            column_of(&link.expires_at)?.into(),
        ],
    )?;
    let Some(key) = key else { return Ok(()) };
    let sql = format!("SELECT {LINK_COLUMNS} FROM console_links WHERE digest = ?1");
    let Some(row) = db.one(&sql, &[code.as_str().into()], read_link)? else { return Ok(()) };
    let sql = "UPDATE console_links SET seal = ?2 WHERE digest = ?1";
    db.run(sql, &[code.as_str().into(), key.seal_row(0, &row.says).into()]).map(drop)
}

/// Takes a link: whoever deletes the row has it.
pub(crate) fn take_link(
    db: &dyn Db,
    code: &SecretDigest,
    now: Timestamp,
) -> Result<Option<SealedRow<SignInLink>>, Failure> {
    let sql = format!("DELETE FROM console_links WHERE digest = ?1 RETURNING {LINK_COLUMNS}");
    let found = db.one(&sql, &[code.as_str().into()], read_link)?;
    Ok(found.filter(|link| link.it.expires_at.parse::<Timestamp>().is_ok_and(|until| until > now)))
}

fn read_link(row: &dyn Columns) -> Result<SealedRow<SignInLink>, Failure> {
    let it = SignInLink {
        tenant: tenant_in(row)?,
        user: row.string("user_id")?,
        role: word(row, "role")?,
        expires_at: shown_at(row, "expires_at")?,
    };
    Ok(SealedRow { says: sealed_row::of_link(&it, &row.text("digest")?), it, seal: row.maybe_string("seal")? })
}

pub(crate) fn add(
    db: &dyn Db,
    (session, secrets): (&ConsoleSession, &SessionSecrets),
    key: Option<&ChangeKey>,
) -> Result<(), Failure> {
    let tenant = tenants::spelled(&session.tenant)?;
    db.run(
        "INSERT INTO console_sessions (tenant_id, id, user_id, role, origin, device, key_digest, cookie_digest, \
         created_at, seen_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        &[
            tenant.as_str().into(),
            (&session.id).into(),
            (&session.user).into(),
            session.role.word().into(),
            session.origin.to_string().into(),
            (&session.device).into(),
            secrets.key.as_str().into(),
            secrets.cookie.as_str().into(),
            column_of(&session.created_at)?.into(),
            column_of(&session.seen_at)?.into(),
        ],
    )?;
    let (Some(key), Some(row)) = (key, one(db, &session.tenant, &session.id)?) else { return Ok(()) };
    let sql = "UPDATE console_sessions SET seal = ?3 WHERE tenant_id = ?1 AND id = ?2";
    let cells = [tenant.as_str().into(), (&session.id).into(), key.seal_row(0, &row.says).into()];
    db.run(sql, &cells).map(drop)
}

/// The sessions of all tenants, and what cannot be read of them.
pub(crate) fn every(db: &dyn Db) -> Result<(Vec<SealedRow<ConsoleSession>>, Vec<String>), Failure> {
    super::every(db, &format!("SELECT {COLUMNS} FROM console_sessions ORDER BY tenant_id, id"), read)
}

/// The session whose page has the secret `key`, with the digest of the other one.
pub(crate) fn of(
    db: &dyn Db,
    key: &SecretDigest,
) -> Result<Option<(SealedRow<ConsoleSession>, SecretDigest)>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM console_sessions WHERE key_digest = ?1");
    db.one(&sql, &[key.as_str().into()], |row| Ok((read(row)?, SecretDigest::kept(row.string("cookie_digest")?))))
}

pub(crate) fn one(db: &dyn Db, tenant: &TenantId, id: &str) -> Result<Option<SealedRow<ConsoleSession>>, Failure> {
    let (Some(tenant), Some(id)) = (uuid(tenant.as_str()), uuid(id)) else { return Ok(None) };
    let sql = format!("SELECT {COLUMNS} FROM console_sessions WHERE tenant_id = ?1 AND id = ?2");
    db.one(&sql, &[tenant.into(), id.into()], read)
}

pub(crate) fn all(db: &dyn Db, tenant: &TenantId, user: &str) -> Result<Vec<SealedRow<ConsoleSession>>, Failure> {
    let Some(tenant) = uuid(tenant.as_str()) else { return Ok(Vec::new()) };
    let sql = format!(
        "SELECT {COLUMNS} FROM console_sessions WHERE tenant_id = ?1 AND user_id = ?2 ORDER BY created_at DESC, id DESC"
    );
    db.all(&sql, &[tenant.into(), user.into()], read)
}

pub(crate) fn seen(db: &dyn Db, tenant: &TenantId, id: &str, at: Timestamp) -> Result<(), Failure> {
    let (Some(tenant), Some(id)) = (uuid(tenant.as_str()), uuid(id)) else { return Ok(()) };
    let sql = "UPDATE console_sessions SET seen_at = ?3 WHERE tenant_id = ?1 AND id = ?2";
    db.run(sql, &[tenant.into(), id.into(), rules::column(at).into()]).map(drop)
}

pub(crate) fn end(db: &dyn Db, tenant: &TenantId, user: &str, id: Option<&str>) -> Result<usize, Failure> {
    let Some(tenant) = uuid(tenant.as_str()) else { return Ok(0) };
    let ended = match id.map(uuid) {
        None => {
            db.run("DELETE FROM console_sessions WHERE tenant_id = ?1 AND user_id = ?2", &[tenant.into(), user.into()])?
        }
        Some(Some(id)) => db.run(
            "DELETE FROM console_sessions WHERE tenant_id = ?1 AND user_id = ?2 AND id = ?3",
            &[tenant.into(), user.into(), id.into()],
        )?,
        Some(None) => 0,
    };
    if ended > 0 {
        raise(db)?;
    }
    Ok(usize::try_from(ended).unwrap_or(usize::MAX))
}

/// Forgets what is too old to count.
pub(crate) fn forget(
    db: &dyn Db,
    now: Timestamp,
    (unused_since, begun_before): (Timestamp, Timestamp),
) -> Result<(), Failure> {
    db.run("DELETE FROM console_links WHERE expires_at <= ?1", &[rules::column(now).into()])?;
    db.run(
        "DELETE FROM console_sessions WHERE seen_at <= ?1 OR created_at <= ?2",
        &[rules::column(unused_since).into(), rules::column(begun_before).into()],
    )?;
    db.run("DELETE FROM gateway_uses WHERE until <= ?1", &[rules::column(now).into()]).map(drop)
}

fn read(row: &dyn Columns) -> Result<SealedRow<ConsoleSession>, Failure> {
    let it = ConsoleSession {
        tenant: tenant_in(row)?,
        id: row.string("id")?,
        user: row.string("user_id")?,
        role: word(row, "role")?,
        origin: word(row, "origin")?,
        device: row.string("device")?,
        created_at: shown_at(row, "created_at")?,
        seen_at: shown_at(row, "seen_at")?,
    };
    let secrets = (row.text("key_digest")?, row.text("cookie_digest")?);
    let says = sealed_row::of_console_session(&it, (&secrets.0, &secrets.1));
    Ok(SealedRow { it, says, seal: row.maybe_string("seal")? })
}
