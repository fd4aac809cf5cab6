//! Rows of those who may ask, held against their seals: what nobody with a key wrote grants nothing.
//!
//! A seal is over all that a row says but when it was last used, and over the number of the entry of the audit chain that
//! tells of it. A later entry about the same member or key makes it an old one: so nobody puts back what was taken away.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use pintle_domain::audit::{ChangeKey, ChangeProof, Hash, RowProof};
use pintle_domain::caller_role::CallerRole;
use pintle_domain::id::{DEFAULT_SLUG, TenantId};
use pintle_domain::json::{Object, Value, canonical};
use pintle_domain::shell_word::shell_word;
use pintle_domain::store::{ApiKey, ConsoleSession, IdentityAction, Member, SignInLink};

use super::sealed_row::SealedRow;
use super::{console, keys, members};
use crate::anchor_file::AnchorFile;
use crate::db::{Db, Failure};
use crate::keyring::ENV_KEYS;
use crate::rows::audit::number;
use crate::rows::tenants;
use crate::rules;
use crate::sealing::StoreKeys;

/// How many rows are named where another key sealed all of them: enough to know which they are.
const NAMED: usize = 3;

/// The rows that a change leaves other than they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    /// None that has a seal.
    Nothing,
    Member(TenantId, String),
    Key(TenantId, String),
    /// The keys of somebody who was taken out.
    KeysOf(TenantId, String),
}

/// Why a row grants nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowDoubt {
    Unsealed,
    Other,
    Older,
}

impl RowDoubt {
    /// The same of a row that somebody takes all the same.
    pub(super) fn why_before(self) -> &'static str {
        match self {
            Self::Unsealed => "it had no seal",
            Self::Other => "its seal was not one of the keys here over what it says",
            Self::Older => "the audit chain tells of a later change of it",
        }
    }

    fn why(self) -> &'static str {
        match self {
            Self::Unsealed => "it has no seal",
            Self::Other => {
                "its seal is not one of the keys here over what it says; if `PINTLE_ENCRYPTION_KEY`, or the file that \
                 holds the key, is not here as it was when it was made, set that first"
            }
            Self::Older => "the audit chain tells of a later change of it",
        }
    }
}

/// What the audit chain says last of a row.
pub(super) struct LastSaid {
    /// In which of its rows.
    pub(super) entry: u64,
    pub(super) data: Object,
}

/// What rows are held against.
pub(crate) struct RowSeals {
    key: Option<ChangeKey>,
    /// Whether what has no seal counts: nobody sealed the rows of before yet.
    takes_unsealed: bool,
    anchor: Option<Arc<AnchorFile>>,
}

impl RowSeals {
    pub(crate) fn of(keys: &StoreKeys) -> Self {
        let takes_unsealed = keys.anchor.as_ref().is_none_or(|file| !file.knows_row_seals());
        Self { key: keys.change_key(), takes_unsealed, anchor: keys.anchor.clone() }
    }

    /// Up to which row of the chain nothing newer is told of a row; nothing where it has no seal and needs none.
    fn proven<T>(&self, row: &SealedRow<T>) -> Result<Option<u64>, RowDoubt> {
        match ChangeKey::row_proof(self.key.as_ref(), &row.says, row.seal.as_deref()) {
            RowProof::Unsealed if self.takes_unsealed => Ok(None),
            RowProof::Unsealed => Err(RowDoubt::Unsealed),
            RowProof::Other => Err(RowDoubt::Other),
            RowProof::Sealed { entry, .. } => Ok(Some(entry)),
        }
    }

    /// Why a row grants nothing, if it does not. `newest` looks for the last entry about it after a row of the chain.
    fn doubt<T>(
        &self,
        row: &SealedRow<T>,
        newest: impl FnOnce(u64) -> Result<Option<LastSaid>, Failure>,
    ) -> Result<Option<RowDoubt>, Failure> {
        Ok(match self.proven(row) {
            Err(doubt) => Some(doubt),
            Ok(None) => None,
            Ok(Some(entry)) => newest(entry)?.map(|_| RowDoubt::Older),
        })
    }

    /// A member as they count: whose row is in doubt is shut out.
    pub(crate) fn member(&self, db: &dyn Db, row: SealedRow<Member>) -> Result<Member, Failure> {
        let doubt = self.member_doubt(db, &row)?;
        Ok(self.counted(row.it, doubt))
    }

    /// A key as it counts: one whose row is in doubt is none.
    pub(crate) fn key(&self, db: &dyn Db, row: SealedRow<ApiKey>) -> Result<ApiKey, Failure> {
        let doubt = self.key_doubt(db, &row)?;
        Ok(self.counted(row.it, doubt))
    }

    pub(super) fn member_doubt(&self, db: &dyn Db, row: &SealedRow<Member>) -> Result<Option<RowDoubt>, Failure> {
        self.doubt(row, |after| self.last_of_member(db, &row.it, after))
    }

    pub(super) fn key_doubt(&self, db: &dyn Db, row: &SealedRow<ApiKey>) -> Result<Option<RowDoubt>, Failure> {
        self.doubt(row, |after| self.last_of_key(db, &row.it, after))
    }

    /// Whether a row has a seal of a chain that ends with the row `end`: entries that are still to come are later ones.
    pub(super) fn is_within<T>(&self, row: &SealedRow<T>, end: u64) -> bool {
        matches!(self.proven(row), Ok(Some(entry)) if entry <= end)
    }

    /// What is said of a member after the row `after` of the chain.
    pub(super) fn last_of_member(&self, db: &dyn Db, member: &Member, after: u64) -> Result<Option<LastSaid>, Failure> {
        let like = containing("subject", &member.user);
        let is_it = |about: &About<'_>| *about == About::Member(&member.user, about.is_gone());
        self.newest(db, (&member.tenant, after), &Wanted { like: &like, is_it: &is_it })
    }

    /// What is said of a key after the row `after` of the chain. With a member go their keys.
    pub(super) fn last_of_key(&self, db: &dyn Db, key: &ApiKey, after: u64) -> Result<Option<LastSaid>, Failure> {
        let (like, is_it) = (containing("key_id", &key.id), |it: &About<'_>| *it == About::Key(&key.id));
        let changed = self.newest(db, (&key.tenant, after), &Wanted { like: &like, is_it: &is_it })?;
        let (like, is_it) =
            (containing("subject", &key.owner), |it: &About<'_>| *it == About::Member(&key.owner, true));
        let removed = self.newest(db, (&key.tenant, after), &Wanted { like: &like, is_it: &is_it })?;
        Ok([changed, removed].into_iter().flatten().max_by_key(|said| said.entry))
    }

    /// A session of the console, if nobody but Pintle began it.
    pub(crate) fn session(&self, row: SealedRow<ConsoleSession>) -> Option<ConsoleSession> {
        let doubt = self.proven(&row).err();
        doubt.inspect(|doubt| self.tell(&of_session(&row.it), *doubt));
        doubt.is_none().then_some(row.it)
    }

    /// A link that signs somebody in, if nobody but Pintle made it.
    pub(crate) fn link(&self, row: SealedRow<SignInLink>) -> Option<SignInLink> {
        let called = || format!("the sign-in link of {} in tenant {}", named(&row.it.user), row.it.tenant);
        let doubt = self.proven(&row).err();
        doubt.inspect(|doubt| self.tell(&called(), *doubt));
        doubt.is_none().then_some(row.it)
    }

    fn counted<T: Countable>(&self, it: T, doubt: Option<RowDoubt>) -> T {
        match doubt {
            None => it,
            Some(doubt) => {
                self.tell(&it.called(), doubt);
                it.void()
            }
        }
    }

    fn tell(&self, called: &str, doubt: RowDoubt) {
        let line = line(called, doubt);
        // Each request finds it again, and a person reads it once.
        if self.anchor.as_ref().is_none_or(|file| file.is_news(&line)) {
            tracing::warn!("security.identity.row_in_doubt: {line}");
        }
    }

    /// The last entry that is wanted after the row `after` of the chain of `tenant`. What has no seal was written by somebody else, and takes nothing from anybody.
    fn newest(
        &self,
        db: &dyn Db,
        (tenant, after): (&TenantId, u64),
        wanted: &Wanted<'_>,
    ) -> Result<Option<LastSaid>, Failure> {
        let Some(tenant) = rules::uuid(tenant.as_str()) else { return Ok(None) };
        let sql = "SELECT seq, body, prev FROM audit_log WHERE tenant_id = ?1 AND seq > ?2 \
                   AND kind IN ('change', 'trip') AND body LIKE ?3 ESCAPE '\\' ORDER BY seq";
        let mut found = None;
        db.each(sql, &[tenant.into(), number(after), wanted.like.into()], &mut |row| {
            let Ok(body) = crate::body::read::<Object>(&row.text("body")?) else { return Ok(()) };
            let Ok(prev) = row.text("prev")?.parse::<Hash>() else { return Ok(()) };
            let Some(data) = body.get("data").and_then(Value::as_object) else { return Ok(()) };
            let is_about = about(data).is_some_and(|about| (wanted.is_it)(&about));
            if is_about && ChangeKey::proof(self.key.as_ref(), &prev, &body) == ChangeProof::Sealed {
                found = Some(LastSaid { entry: row.count("seq")?, data: data.clone() });
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// What loses everything that it grants.
trait Countable {
    /// What it is called.
    fn called(&self) -> String;

    fn void(self) -> Self;
}

impl Countable for Member {
    fn called(&self) -> String {
        format!("the member {} of tenant {}", named(&self.user), self.tenant)
    }

    fn void(self) -> Self {
        Self { role: CallerRole::Viewer, disabled_at: Some(rules::moment(Timestamp::UNIX_EPOCH)), ..self }
    }
}

impl Countable for ApiKey {
    fn called(&self) -> String {
        format!("the API key {} of tenant {}", named(&self.id), self.tenant)
    }

    fn void(self) -> Self {
        Self { revoked_at: Some(rules::moment(Timestamp::UNIX_EPOCH)), ..self }
    }
}

fn of_session(session: &ConsoleSession) -> String {
    format!("the console session {} of tenant {}", named(&session.id), session.tenant)
}

pub(super) fn named(name: &str) -> String {
    format!("`{}`", name.escape_debug())
}

fn line(called: &str, doubt: RowDoubt) -> String {
    match doubt {
        RowDoubt::Other => format!("{called} grants nothing: the key here differs, or it was changed: {}", doubt.why()),
        RowDoubt::Unsealed | RowDoubt::Older => {
            format!("{called} was changed by something other than Pintle, and grants nothing: {}", doubt.why())
        }
    }
}

/// What `LIKE` finds an entry by whose member `name` is `text`.
fn containing(name: &str, text: &str) -> String {
    let part = format!("\"{name}\":{}", canonical(&text.into()));
    let escaped = part.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}

/// Which entries are looked for.
struct Wanted<'a> {
    /// What `LIKE` finds them by, and perhaps others.
    like: &'a str,
    is_it: &'a dyn Fn(&About<'_>) -> bool,
}

/// Whom an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About<'a> {
    /// A key, by its id.
    Key(&'a str),
    /// A member, by their user, and whether they were taken out.
    Member(&'a str, bool),
}

impl About<'_> {
    fn is_gone(&self) -> bool {
        matches!(self, Self::Member(_, true))
    }
}

fn about(data: &Object) -> Option<About<'_>> {
    let text = |name: &str| data.get(name).and_then(Value::as_str);
    let action = IdentityAction::named(text("action")?)?;
    match action {
        IdentityAction::KeyCreated | IdentityAction::KeyRevoked | IdentityAction::KeyAccepted => {
            text("key_id").map(About::Key)
        }
        IdentityAction::MemberAdded
        | IdentityAction::MemberChanged
        | IdentityAction::MemberRemoved
        | IdentityAction::MemberAccepted => {
            text("subject").map(|user| About::Member(user, action == IdentityAction::MemberRemoved))
        }
        IdentityAction::TenantCreated
        | IdentityAction::TenantDisabled
        | IdentityAction::TenantEnabled
        | IdentityAction::TenantAccepted => None,
    }
}

/// Seals the rows that a change, of which the row `entry` of the chain tells, left other than they were.
pub(crate) fn seal(db: &dyn Db, key: &ChangeKey, touched: &Touched, entry: u64) -> Result<(), Failure> {
    match touched {
        Touched::Nothing => Ok(()),
        Touched::Member(tenant, user) => match members::one(db, tenant, user)? {
            Some(row) => seal_member(db, key, &row, entry),
            None => Ok(()),
        },
        Touched::Key(tenant, id) => match keys::one(db, tenant, id)? {
            Some(row) => seal_key(db, key, &row, entry),
            None => Ok(()),
        },
        Touched::KeysOf(tenant, owner) => {
            let rows = keys::all(db, tenant)?.into_iter().filter(|row| row.it.owner == *owner);
            rows.into_iter().try_for_each(|row| seal_key(db, key, &row, entry))
        }
    }
}

pub(super) fn seal_member(db: &dyn Db, key: &ChangeKey, row: &SealedRow<Member>, entry: u64) -> Result<(), Failure> {
    let sql = "UPDATE members SET seal = ?3 WHERE tenant_id = ?1 AND user_id = ?2";
    let cells = [row.it.tenant.as_str().into(), (&row.it.user).into(), key.seal_row(entry, &row.says).into()];
    db.run(sql, &cells).map(drop)
}

pub(super) fn seal_key(db: &dyn Db, key: &ChangeKey, row: &SealedRow<ApiKey>, entry: u64) -> Result<(), Failure> {
    let sql = "UPDATE api_keys SET seal = ?3 WHERE tenant_id = ?1 AND id = ?2";
    let cells = [row.it.tenant.as_str().into(), (&row.it.id).into(), key.seal_row(entry, &row.says).into()];
    db.run(sql, &cells).map(drop)
}

/// A row that grants nothing, or all of them that another key sealed.
pub(crate) struct Doubted {
    pub(crate) text: String,
    /// What a person does about it.
    pub(crate) remedy: String,
}

/// The rows that grant nothing.
pub(crate) fn doubts(db: &dyn Db, keys: &StoreKeys) -> Result<Vec<Doubted>, Failure> {
    let seals = RowSeals::of(keys);
    let slugs = slugs(db)?;
    let ((members, odd), (keys, more)) = (members::every(db)?, keys::every(db)?);
    let (sessions, most) = console::every(db)?;
    let unreadable = |text| Doubted { text, remedy: "look at it with a tool for databases".into() };
    let mut found: Vec<Doubted> = [odd, more, most].concat().into_iter().map(unreadable).collect();
    let (mut rows, mut holds) = (Vec::new(), false);
    for row in members {
        let doubt = seals.member_doubt(db, &row)?;
        holds |= doubt.is_none() && row.seal.is_some();
        let slug = slug(&slugs, &row.it.tenant);
        let remedy =
            format!("remove it with `pintle members remove {}{}`", shell_word(&row.it.user), tenant_flag(slug));
        rows.extend(doubt.map(|doubt| (doubt, format!("the member {} of tenant {slug}", named(&row.it.user)), remedy)));
    }
    for row in keys {
        let doubt = seals.key_doubt(db, &row)?;
        holds |= doubt.is_none() && row.seal.is_some();
        let slug = slug(&slugs, &row.it.tenant);
        let remedy = format!("revoke it with `pintle keys revoke {}{}`", shell_word(&row.it.id), tenant_flag(slug));
        rows.extend(doubt.map(|doubt| (doubt, format!("the API key {} of tenant {slug}", named(&row.it.id)), remedy)));
    }
    for row in sessions {
        let doubt = seals.proven(&row).err();
        let called = format!("the console session {} of tenant {}", named(&row.it.id), slug(&slugs, &row.it.tenant));
        rows.extend(doubt.map(|doubt| (doubt, called, "whoever had it signs in again".to_owned())));
    }
    let others = rows.iter().filter(|(doubt, ..)| *doubt == RowDoubt::Other).count();
    // Where not one row holds, it is the key that is another one.
    if others > 0 && !holds {
        let called: Vec<&str> = rows.iter().filter(|row| row.0 == RowDoubt::Other).map(|row| row.1.as_str()).collect();
        found.push(all_of_another_key(&called));
        rows.retain(|(doubt, ..)| *doubt != RowDoubt::Other);
    }
    found.extend(rows.into_iter().map(|(doubt, called, remedy)| Doubted {
        text: line(&called, doubt),
        remedy: format!("{remedy}, or take the store as it is with `pintle store accept`"),
    }));
    Ok(found)
}

/// The one line about rows of which not one was sealed with a key that is here.
fn all_of_another_key(called: &[&str]) -> Doubted {
    let more = match called.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names = called.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    Doubted {
        text: format!("the key here differs from the one that sealed {names}{more}, so they grant nothing here"),
        remedy: format!(
            "set `{}`, or put the file with the key back, as it is on the hosts that made them; only where no such key is \
             left, take the store as it is with `pintle store accept`",
            ENV_KEYS[0]
        ),
    }
}

/// The names of tenants, by their ids.
pub(super) type Slugs = BTreeMap<TenantId, String>;

pub(super) fn slugs(db: &dyn Db) -> Result<Slugs, Failure> {
    Ok(tenants::all(db)?.into_iter().map(|tenant| (tenant.id, tenant.slug)).collect())
}

pub(super) fn slug<'a>(slugs: &'a Slugs, tenant: &'a TenantId) -> &'a str {
    slugs.get(tenant).map_or(tenant.as_str(), String::as_str)
}

/// What a command needs to act in a tenant: nothing in the one that it acts in by itself.
fn tenant_flag(slug: &str) -> String {
    if slug == DEFAULT_SLUG { String::new() } else { format!(" --tenant {slug}") }
}
