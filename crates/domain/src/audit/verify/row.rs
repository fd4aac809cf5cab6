//! One row by itself: does its hash fit, and does its body say what its columns say?

use super::finding::{AlteredPart, AuditFinding};
use crate::audit::line::MAX_WORD_BYTES;
use crate::audit::{AuditEntry, Hash, MAX_SEQ};
use crate::id::TenantId;
use crate::json::{self, Object, Value};

/// The names of a body's members, in their order.
const MEMBERS: [&str; 5] = ["at", "data", "kind", "seq", "tenant_id"];

/// A row, and the chain that it belongs to by what was hashed.
pub(super) struct ExaminedRow {
    pub(super) tenant: TenantId,
    pub(super) row: Row,
}

/// The part of a row that the chain needs to know.
#[derive(Debug)]
pub(super) struct Row {
    /// Its number by what was hashed, if its hash fits; else the one that it carries.
    pub(super) seq: u64,
    pub(super) prev: Hash,
    /// The hash that it carries.
    pub(super) hash: Hash,
    /// The hash that it should carry, by its own `prev` and body.
    pub(super) made: Hash,
    /// The body that was hashed; not kept for a row that is set aside.
    pub(super) body: Option<String>,
    /// The findings on the row's columns or its body, if the body is what was hashed.
    pub(super) inside: Vec<AuditFinding>,
}

/// The relation of a row to the hash of the row before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It follows.
    Whole,
    /// It was hashed as following, and names another `prev` now.
    Prev,
    /// It names the right `prev`, and its hash does not fit to its body.
    Doubtful,
    /// It fits in itself and names another `prev`.
    Unlinked,
    /// Nothing fits.
    Broken,
}

impl Row {
    /// The relation of the row to `expected`, the hash of the row before it.
    pub(super) fn fit(&self, expected: &Hash) -> Fit {
        let hashed_so = |body: &String| Hash::of(expected, body) == self.hash;
        match (self.is_whole(), self.prev == *expected) {
            (true, true) => Fit::Whole,
            (true, false) => Fit::Unlinked,
            (false, true) => Fit::Doubtful,
            (false, false) if self.body.as_ref().is_some_and(hashed_so) => Fit::Prev,
            (false, false) => Fit::Broken,
        }
    }

    /// Whether its hash fits to its own `prev` and body.
    pub(super) fn is_whole(&self) -> bool {
        self.made == self.hash
    }
}

/// Looks at `entry` by itself.
pub(super) fn examine(entry: AuditEntry) -> ExaminedRow {
    let made = Hash::of(&entry.prev, &entry.body);
    let whole = made == entry.hash;
    let (mut tenant, mut seq) = (entry.tenant_id.clone(), entry.seq);
    let told = told(&entry.body);
    // A body that was not hashed tells nothing about where it belongs.
    if let (true, Ok(told)) = (whole, &told) {
        tenant = TenantId::new(told.tenant_id.as_str());
        seq = told.seq;
    }
    let inside = match told {
        Ok(told) => told.against(&entry, seq),
        Err(why) => vec![AuditFinding::Malformed { seq, why }],
    };
    let AuditEntry { prev, hash, body, .. } = entry;
    ExaminedRow { tenant, row: Row { seq, prev, hash, made, body: Some(body), inside } }
}

/// The claims that a body makes about its row.
struct ClaimedRow {
    at: String,
    kind: String,
    seq: u64,
    tenant_id: String,
}

impl ClaimedRow {
    /// Where the columns of `entry`, which is row `seq`, say something else.
    fn against(&self, entry: &AuditEntry, seq: u64) -> Vec<AuditFinding> {
        let altered = |member| AuditFinding::Altered { seq, member };
        let mut found = Vec::new();
        if self.at != entry.at.to_string() {
            found.push(altered(AlteredPart::At));
        }
        if self.kind != entry.kind.word() {
            found.push(altered(AlteredPart::Kind));
        }
        if self.seq != entry.seq {
            found.push(AuditFinding::Renumbered { seq: self.seq, shown: entry.seq });
        }
        if self.tenant_id != entry.tenant_id.as_str() {
            found.push(altered(AlteredPart::TenantId));
        }
        found
    }
}

/// Reads a body as [`append`](crate::audit::append) writes it.
fn told(body: &str) -> Result<ClaimedRow, String> {
    told_at_a_glance(body).map_or_else(|| told_by_parsing(body), Ok)
}

/// The claims of a body that has nothing out of the ordinary: a chain is long, and parsing takes most of its check.
fn told_at_a_glance(body: &str) -> Option<ClaimedRow> {
    let members = json::canonical_members(body)?;
    let [("at", at), ("data", data), ("kind", kind), ("seq", seq), ("tenant_id", tenant_id)] = members[..] else {
        return None;
    };
    let short = |quoted: &str| {
        let text = quoted.strip_prefix('"')?.strip_suffix('"')?;
        (text.len() <= MAX_WORD_BYTES && !text.contains('\\')).then(|| text.to_owned())
    };
    let seq = seq.parse().ok().filter(|seq| (1..=MAX_SEQ).contains(seq) && data.starts_with('{'))?;
    Some(ClaimedRow { at: short(at)?, kind: short(kind)?, seq, tenant_id: short(tenant_id)? })
}

fn told_by_parsing(body: &str) -> Result<ClaimedRow, String> {
    let value = json::parse(body)?;
    if json::canonical(&value) != body {
        return Err("it is not in the canonical form".into());
    }
    let Value::Object(members) = value else { return Err("it is not an object".into()) };
    if !members.keys().eq(MEMBERS) {
        return Err(format!("its members are not exactly {}", MEMBERS.join(", ")));
    }
    let seq = members.get("seq").and_then(Value::as_u64).filter(|seq| (1..=MAX_SEQ).contains(seq));
    let seq = seq.ok_or("its `seq` is not a number of a row")?;
    if !members.get("data").is_some_and(Value::is_object) {
        return Err("its `data` is not an object".into());
    }
    Ok(ClaimedRow {
        at: text(&members, "at")?,
        kind: text(&members, "kind")?,
        seq,
        tenant_id: text(&members, "tenant_id")?,
    })
}

fn text(members: &Object, name: &str) -> Result<String, String> {
    let found = members.get(name).and_then(Value::as_str).filter(|text| text.len() <= MAX_WORD_BYTES);
    found.map(str::to_owned).ok_or_else(|| format!("its `{name}` is not a short text"))
}
