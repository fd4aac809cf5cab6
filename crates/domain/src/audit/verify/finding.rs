//! What can be wrong with a chain.

use std::fmt;

/// One thing that is wrong. All numbers are those of rows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuditFinding {
    /// A member of a row is not what was written.
    Altered {
        /// Which row.
        seq: u64,
        /// Which member.
        member: AlteredPart,
    },
    /// The row carries another number than the one that was hashed.
    Renumbered {
        /// Its number by what was hashed.
        seq: u64,
        /// The number that it carries.
        shown: u64,
    },
    /// Its hash fits, but its body is none of a row.
    Malformed {
        /// Which row.
        seq: u64,
        /// The reason why the body is wrong.
        why: String,
    },
    /// The row names another hash than that of the row before it, and fits to what it names.
    Unlinked {
        /// Which row.
        seq: u64,
    },
    /// Rows are missing, with others before and after them.
    Dropped {
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
    },
    /// The beginning is missing, and no signed checkpoint stands in for it.
    NoAnchor {
        /// The first row that is there.
        first: u64,
    },
    /// The row stands in the wrong place.
    OutOfOrder {
        /// Which row.
        seq: u64,
        /// The row after which it stands; none if it is the first one.
        after: Option<u64>,
    },
    /// There is another row of this number.
    Again {
        /// Which row.
        seq: u64,
        /// The row after which one of the two stands; none if it is the first one.
        after: Option<u64>,
    },
    /// A checkpoint's hash is not that of its row.
    Mismatch {
        /// The row that it names.
        seq: u64,
    },
    /// A checkpoint was signed for a row after the last one that is there.
    CutOff {
        /// The last row that is there; 0 if there is none.
        last: u64,
        /// The last row for which something was signed.
        signed: u64,
    },
    /// A checkpoint whose signature is not that of its key.
    BadSignature {
        /// The row that it names.
        seq: u64,
        /// The key that it names.
        kid: String,
    },
    /// A checkpoint of a key that is not at hand.
    UnknownKey {
        /// The row that it names.
        seq: u64,
        /// The key that it names.
        kid: String,
    },
    /// A checkpoint that cannot be compared, since it stands too far from its row.
    Misplaced {
        /// The row that it names.
        seq: u64,
        /// The row after which it stands; none if it is before all.
        after: Option<u64>,
    },
}

/// The part of a row that was altered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlteredPart {
    /// When.
    At,
    /// The kind of thing that the row is about.
    Kind,
    /// The tenant that owns the chain.
    TenantId,
    /// The hash of the row before it.
    Prev,
    /// The body of the row.
    Body,
    /// Its own hash.
    Hash,
    /// One of these two; nothing after it tells which.
    BodyOrHash,
    /// One of these two; nothing before it tells which.
    BodyOrPrev,
    /// More than one of `prev`, `body` and `hash`.
    Several,
}

impl fmt::Display for AlteredPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::At => "`at`",
            Self::Kind => "`kind`",
            Self::TenantId => "`tenant_id`",
            Self::Prev => "`prev`",
            Self::Body => "`body`",
            Self::Hash => "`hash`",
            Self::BodyOrHash => "`body` or `hash`",
            Self::BodyOrPrev => "`body` or `prev`",
            Self::Several => "more than one of `prev`, `body` and `hash`",
        })
    }
}

impl AuditFinding {
    /// The row that it is about, by which findings are sorted.
    pub fn seq(&self) -> u64 {
        match self {
            Self::Altered { seq, .. }
            | Self::Renumbered { seq, .. }
            | Self::Malformed { seq, .. }
            | Self::Unlinked { seq }
            | Self::Dropped { from: seq, to: _ }
            | Self::OutOfOrder { seq, .. }
            | Self::Again { seq, .. }
            | Self::Mismatch { seq }
            | Self::CutOff { last: seq, signed: _ }
            | Self::BadSignature { seq, .. }
            | Self::UnknownKey { seq, .. }
            | Self::Misplaced { seq, .. } => *seq,
            Self::NoAnchor { first: _ } => 0,
        }
    }
}

impl fmt::Display for AuditFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Altered { seq, member } => write!(f, "row {seq}: {member} was altered"),
            Self::Renumbered { seq, shown } => write!(f, "row {seq}: `seq` was altered; it is shown as row {shown}"),
            Self::Malformed { seq, why } => write!(f, "row {seq}: `body` is invalid: {why}"),
            Self::Unlinked { seq } if *seq <= 1 => {
                write!(f, "row {seq}: `prev` is not 64 zeros; the chain was restarted from somewhere else")
            }
            Self::Unlinked { seq } => {
                write!(f, "row {seq}: it does not follow row {}; one of the two was rewritten", seq - 1)
            }
            Self::Dropped { from, to } if from == to => write!(f, "row {from} is missing"),
            Self::Dropped { from, to } => write!(f, "rows {from} to {to} are missing"),
            Self::NoAnchor { first } => {
                write!(
                    f,
                    "the chain begins with row {first}, and no signed checkpoint stands in for the rows before it"
                )
            }
            Self::OutOfOrder { seq, after } => write!(f, "row {seq} is out of order: it stands {}", Stands(*after)),
            Self::Again { seq, after } => write!(f, "row {seq} is there twice: another one stands {}", Stands(*after)),
            Self::Mismatch { seq } => {
                write!(f, "the checkpoint of row {seq} has another hash: that row or one before it was rewritten")
            }
            Self::CutOff { last, signed } if last + 1 == *signed => {
                write!(f, "row {signed} is missing: there is a signed checkpoint of it")
            }
            Self::CutOff { last, signed } => {
                write!(f, "rows {} to {signed} are missing: there is a signed checkpoint of row {signed}", last + 1)
            }
            Self::BadSignature { seq, kid } => {
                write!(f, "the checkpoint of row {seq} was altered: it is not signed by key `{}`", kid.escape_debug())
            }
            Self::UnknownKey { seq, kid } => {
                let kid = kid.escape_debug();
                write!(f, "the checkpoint of row {seq} is signed by key `{kid}`, whose public key was not given")
            }
            Self::Misplaced { seq, after } => {
                write!(f, "the checkpoint of row {seq} stands {}; it has to stand after its row", Stands(*after))
            }
        }
    }
}

/// Where something stands.
struct Stands(Option<u64>);

impl fmt::Display for Stands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(seq) => write!(f, "after row {seq}"),
            None => write!(f, "before all others"),
        }
    }
}
