//! Chains that somebody laid hands on: what was done has to be named, and where.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

use super::*;
use crate::audit::{AuditKind, ChainHead, Hash, append, read_line};
use crate::json::json;

/// A signature that anybody can check and nobody else than these tests would take for one.
fn sign(message: &[u8]) -> String {
    Hash::of(&Hash::ZERO, std::str::from_utf8(message).unwrap()).to_string()
}

fn check(kid: &str, message: &[u8], signature: &str) -> Proof {
    match kid {
        "known" if sign(message) == signature => Proof::Good,
        "known" => Proof::Bad,
        _ => Proof::UnknownKey,
    }
}

fn time(seq: u64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_800_000_000 + i64::try_from(seq % 1000).unwrap()).unwrap()
}

fn row(head: &ChainHead, text: &str) -> AuditEntry {
    let data = json!({"text": text}).as_object().unwrap().clone();
    append(head, &"default".into(), time(head.seq), AuditKind::Record, data).unwrap().0
}

fn point(entry: &AuditEntry, kid: &str) -> AuditCheckpoint {
    let head = ChainHead { seq: entry.seq, hash: entry.hash };
    AuditCheckpoint::signed(&entry.tenant_id, &head, time(entry.seq), kid, sign)
}

/// Rows `1..=rows`, with a checkpoint after each row of `points`; rows up to `cut` are left out.
fn chain(rows: u64, points: &[u64], cut: u64) -> Vec<AuditLine> {
    let (mut head, mut lines) = (ChainHead::GENESIS, Vec::new());
    for seq in 1..=rows {
        let entry = row(&head, &format!("row {seq}"));
        head = ChainHead { seq, hash: entry.hash };
        let signed = points.contains(&seq).then(|| AuditLine::Checkpoint(point(&entry, "known")));
        lines.extend((seq > cut).then_some(AuditLine::Entry(entry)));
        lines.extend(signed.filter(|_| seq >= cut));
    }
    lines
}

fn verify(lines: &[AuditLine]) -> VerifyReport {
    let mut verifier = Verifier::new(&check);
    lines.iter().cloned().for_each(|line| verifier.line(Ok(line)));
    verifier.finish()
}

fn only(lines: &[AuditLine]) -> TenantReport {
    let mut report = verify(lines);
    assert_eq!(report.tenants.len(), 1, "{report}");
    let tenant = report.tenants.remove(0);
    assert_eq!(tenant.proven_rows + tenant.unproven_rows, tenant.rows);
    tenant
}

fn findings(lines: &[AuditLine]) -> Vec<AuditFinding> {
    only(lines).findings
}

fn entry_mut(lines: &mut [AuditLine], seq: u64) -> &mut AuditEntry {
    let entries = lines.iter_mut().filter_map(|line| match line {
        AuditLine::Entry(entry) => Some(entry),
        AuditLine::Checkpoint(_) => None,
    });
    entries.into_iter().find(|entry| entry.seq == seq).unwrap()
}

fn position(lines: &[AuditLine], seq: u64) -> usize {
    lines.iter().position(|line| matches!(line, AuditLine::Entry(entry) if entry.seq == seq)).unwrap()
}

#[test]
fn an_untouched_chain_is_intact_and_its_tail_unproven() {
    let lines = chain(7, &[3, 5], 0);
    let report = verify(&lines);
    assert!(report.is_intact());
    assert_eq!(
        report.to_string(),
        "tenant default: 7 rows (1 to 7), 2 checkpoints, intact\n  proven up to row 5: 5 rows\n  \
         not proven: 2 rows (6 to 7)\n"
    );
    // Rows after the last checkpoint can be cut unseen; the report says how far it goes.
    assert_eq!(only(&lines[..7]).proven_to, Some(5));
    assert_eq!(findings(&lines[..7]), []);
}

#[test]
fn a_cut_beginning_needs_its_checkpoint() {
    let anchored = chain(7, &[3, 5], 3);
    let report = only(&anchored);
    assert_eq!((report.anchor, report.proven_to, report.proven_rows, report.findings.len()), (Some(3), Some(5), 2, 0));
    assert_eq!(findings(&anchored[1..]), [AuditFinding::NoAnchor { first: 4 }]);
    // An anchor that is not signed by a known key is none.
    let mut forged = anchored.clone();
    let (first, _) =
        append(&ChainHead::GENESIS, &"default".into(), time(0), AuditKind::Trip, Default::default()).unwrap();
    forged[0] = AuditLine::Checkpoint(point(&first, "stranger"));
    assert_eq!(
        findings(&forged),
        [AuditFinding::NoAnchor { first: 4 }, AuditFinding::UnknownKey { seq: 1, kid: "stranger".into() }]
    );
    // One that leads to other rows shows what is missing, or that it is of another chain.
    assert_eq!(findings(&[&anchored[..1], &anchored[2..]].concat()), [AuditFinding::Dropped { from: 4, to: 4 }]);
    // Retention may leave nothing else.
    let bare = only(&anchored[..1]);
    assert_eq!((bare.anchor, bare.proven_to, bare.rows, bare.findings), (Some(3), Some(3), 0, vec![]));
}

#[test]
fn rows_before_a_signed_checkpoint_cannot_be_cut() {
    let lines = chain(7, &[3, 5], 0);
    let kept: Vec<AuditLine> =
        lines.iter().filter(|l| !matches!(l, AuditLine::Entry(e) if e.seq > 4)).cloned().collect();
    assert_eq!(findings(&kept), [AuditFinding::CutOff { last: 4, signed: 5 }]);
}

#[test]
fn a_row_written_anew_shows_at_its_checkpoint_or_at_the_next_row() {
    let mut lines = chain(7, &[3, 5], 0);
    let before = ChainHead { seq: 3, hash: entry_mut(&mut lines, 3).hash };
    *entry_mut(&mut lines, 4) = row(&before, "forged");
    let report = only(&lines);
    assert_eq!(report.findings, [AuditFinding::Unlinked { seq: 5 }]);
    // What the next signature proves goes back to the break and no further.
    assert_eq!((report.proven_rows, report.unproven), (4, vec![4..=4, 6..=7]));

    // With all rows after it, up to the checkpoint.
    let mut head = before;
    for seq in 4..=7 {
        *entry_mut(&mut lines, seq) = row(&head, "forged");
        head = ChainHead { seq, hash: entry_mut(&mut lines, seq).hash };
    }
    let report = only(&lines);
    assert_eq!(report.findings, [AuditFinding::Mismatch { seq: 5 }]);
    assert_eq!((report.proven_to, report.unproven), (Some(3), vec![4..=7]));
}

#[test]
fn checkpoints_are_judged_by_their_signature() {
    let lines = chain(4, &[2, 4], 0);
    let altered = |change: fn(&mut AuditCheckpoint)| {
        let mut lines = lines.clone();
        let AuditLine::Checkpoint(point) = &mut lines[2] else { panic!("the checkpoint of row 2 is the third line") };
        change(point);
        findings(&lines)
    };
    let bad = |seq| [AuditFinding::BadSignature { seq, kid: "known".into() }];
    assert_eq!(altered(|p| p.seq = 1), bad(1));
    assert_eq!(altered(|p| p.hash = Hash::ZERO), bad(2));
    assert_eq!(altered(|p| p.at = time(9)), bad(2));
    assert_eq!(altered(|p| p.signature.push('0')), bad(2));
    assert_eq!(altered(|p| p.kid = "stranger".into()), [AuditFinding::UnknownKey { seq: 2, kid: "stranger".into() }]);
    // Of another tenant's chain it says nothing.
    let mut foreign = lines.clone();
    let AuditLine::Checkpoint(moved) = &mut foreign[2] else { panic!("the checkpoint of row 2 is the third line") };
    moved.tenant_id = "other".into();
    let report = verify(&foreign);
    assert_eq!(report.tenants[0].findings, []);
    assert_eq!(report.tenants[1].findings, bad(2));
}

#[test]
fn checkpoints_may_all_stand_first_and_none_behind_its_row() {
    let mut lines = chain(6, &[2, 4], 0);
    lines.sort_by_key(|line| matches!(line, AuditLine::Entry(_)));
    let report = only(&lines);
    assert_eq!((report.findings, report.anchor, report.proven_rows), (vec![], None, 4));
    lines.rotate_left(2);
    let found = findings(&lines);
    assert_eq!(found, [2, 4].map(|seq| AuditFinding::Misplaced { seq, after: Some(6) }));
}

#[test]
fn tenants_have_chains_of_their_own() {
    let ours = chain(5, &[5], 0);
    let mut head = ChainHead::GENESIS;
    let mut mixed = Vec::new();
    for line in ours {
        let theirs = append(&head, &"other".into(), time(1), AuditKind::Trip, Default::default()).unwrap();
        head = theirs.1;
        mixed.extend([line, AuditLine::Entry(theirs.0)]);
    }
    let report = verify(&mixed);
    assert!(report.is_intact(), "{report}");
    assert_eq!(report.tenants.iter().map(|t| (t.rows, t.proven_to)).collect::<Vec<_>>(), [(5, Some(5)), (6, None)]);
}

#[test]
fn lines_that_cannot_be_read_are_named() {
    let mut verifier = Verifier::new(&check);
    verifier.line(read_line(3, b"oops"));
    let report = verifier.finish();
    assert!(!report.is_intact());
    assert_eq!(report.to_string(), "line 3: it is not a JSON object\n");
}

#[test]
fn a_body_that_no_writer_makes_is_named_though_its_hash_fits() {
    let good = row(&ChainHead::GENESIS, "x");
    for (body, why) in [
        ("{}", "its members are not exactly at, data, kind, seq, tenant_id"),
        ("[", "EOF"),
        ("[]", "it is not an object"),
        (&good.body.replace(":1,", ": 1,"), "it is not in the canonical form"),
        (&good.body.replace(":1,", ":\"1\","), "its `seq` is not a number of a row"),
        (&good.body.replace("{\"text\":\"x\"}", "1"), "its `data` is not an object"),
        (&good.body.replace("\"record\"", "7"), "its `kind` is not a short text"),
    ] {
        let hash = Hash::of(&Hash::ZERO, body);
        let found = findings(&[AuditLine::Entry(AuditEntry { body: body.into(), hash, ..good.clone() })]);
        let [AuditFinding::Malformed { seq: 1, why: said }] = &found[..] else { panic!("{body}: {found:?}") };
        assert!(said.starts_with(why), "{body}: {said}");
    }
}

#[test]
fn a_file_turned_round_takes_little_memory_and_every_row_is_named() {
    let mut lines = chain(5000, &[], 0);
    lines.reverse();
    let report = only(&lines);
    assert_eq!((report.rows, report.findings.len()), (5000, 1000));
    assert!(report.more_findings >= 3000, "{}", report.more_findings);
    let shown: BTreeSet<u64> = report.findings.iter().map(AuditFinding::seq).collect();
    assert_eq!(shown.len(), 1000);
}

/// How many rows, after which of them checkpoints, and how many rows retention cut.
fn chains() -> impl Strategy<Value = (u64, Vec<u64>, u64)> {
    (4_u64..24, prop::collection::btree_set(1_u64..24, 0..5), any::<bool>()).prop_map(|(rows, points, cut)| {
        let points: Vec<u64> = points.into_iter().filter(|seq| *seq <= rows).collect();
        let cut = points.first().copied().filter(|first| cut && first + 3 < rows).unwrap_or(0);
        (rows, points, cut)
    })
}

/// One of the rows that are there.
fn pick(rows: u64, cut: u64, which: Index) -> u64 {
    cut + 1 + which.index(usize::try_from(rows - cut).unwrap()) as u64
}

#[derive(Clone, Copy, Debug)]
enum Edit {
    Drop(Index),
    Swap(Index, Index),
    Copy(Index, Index),
}

fn edits() -> impl Strategy<Value = Edit> {
    prop_oneof![
        any::<Index>().prop_map(Edit::Drop),
        any::<(Index, Index)>().prop_map(|(a, b)| Edit::Swap(a, b)),
        any::<(Index, Index)>().prop_map(|(a, b)| Edit::Copy(a, b)),
    ]
}

fn cases(cases: u32) -> ProptestConfig {
    let (rng_seed, failure_persistence) = (RngSeed::Fixed(0), None);
    ProptestConfig { cases, rng_seed, failure_persistence, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn an_altered_member_is_named((rows, points, cut) in chains(), which: Index, member in 0_usize..7) {
        let mut lines = chain(rows, &points, cut);
        let seq = pick(rows, cut, which);
        let entry = entry_mut(&mut lines, seq);
        let told = seq < rows || points.contains(&seq);
        let altered = |member| AuditFinding::Altered { seq, member };
        let expected = match member {
            0 => { entry.at = time(999); altered(AlteredPart::At) }
            1 => { entry.kind = AuditKind::Trip; altered(AlteredPart::Kind) }
            2 => { entry.tenant_id = "other".into(); altered(AlteredPart::TenantId) }
            3 => { entry.seq += 100; AuditFinding::Renumbered { seq, shown: seq + 100 } }
            4 => { entry.prev = Hash::of(&entry.prev, ""); altered(AlteredPart::Prev) }
            5 => {
                entry.body = entry.body.replace("row", "raw");
                altered(if told { AlteredPart::Body } else { AlteredPart::BodyOrHash })
            }
            _ => {
                entry.hash = Hash::of(&entry.hash, "");
                altered(if told { AlteredPart::Hash } else { AlteredPart::BodyOrHash })
            }
        };
        let report = only(&lines);
        prop_assert_eq!(report.findings, [expected]);
        // Whatever was altered but the body itself is proven by the signatures over what was hashed.
        let before = points.iter().copied().filter(|point| *point > cut).max().unwrap_or(cut) - cut;
        if member != 5 {
            prop_assert_eq!(report.proven_rows, before);
        } else {
            prop_assert!(report.unproven.iter().any(|run| run.contains(&seq)));
        }
    }

    #[test]
    fn dropped_rows_are_named((rows, points, cut) in chains(), a: Index, b: Index) {
        let (a, b) = (pick(rows, cut, a), pick(rows, cut, b));
        let (from, to) = (a.min(b), a.max(b));
        let mut lines = chain(rows, &points, cut);
        lines.retain(|line| !matches!(line, AuditLine::Entry(e) if (from..=to).contains(&e.seq)));
        let signed = points.iter().copied().filter(|point| (from..=to).contains(point)).max();
        // A whole beginning up to a checkpoint is what retention cuts too.
        let anchor = signed.filter(|_| from == cut + 1);
        let start = anchor.map_or(from, |anchor| anchor + 1);
        let expected = match signed {
            _ if lines.is_empty() => return Ok(()),
            _ if to == rows && from == cut + 1 => vec![],
            Some(signed) if to == rows => vec![AuditFinding::CutOff { last: from - 1, signed }],
            None if to == rows => vec![],
            _ if start == 1 => vec![AuditFinding::NoAnchor { first: to + 1 }],
            _ if start > to => vec![],
            _ => vec![AuditFinding::Dropped { from: start, to }],
        };
        prop_assert_eq!(findings(&lines), expected);
    }

    #[test]
    fn swapped_rows_are_named((rows, points, cut) in chains(), a: Index, b: Index) {
        let (a, b) = (pick(rows, cut, a), pick(rows, cut, b));
        if a == b {
            return Ok(());
        }
        let mut lines = chain(rows, &points, cut);
        let (at, other) = (position(&lines, a), position(&lines, b));
        lines.swap(at, other);
        let found = findings(&lines);
        prop_assert!(!found.is_empty());
        for finding in found {
            let inside = matches!(&finding, AuditFinding::OutOfOrder { seq, .. } if (a.min(b)..=a.max(b)).contains(seq));
            prop_assert!(inside, "{finding}");
        }
    }

    #[test]
    fn a_row_that_is_there_twice_is_named((rows, points, cut) in chains(), which: Index, place: Index) {
        let seq = pick(rows, cut, which);
        let mut lines = chain(rows, &points, cut);
        let copy = lines[position(&lines, seq)].clone();
        // Before the anchor nothing can stand, or it would be none.
        let first = usize::from(cut > 0);
        lines.insert(first + place.index(lines.len() + 1 - first), copy);
        let mut found = findings(&lines);
        // It may stand between a row and its checkpoint, which is then too late.
        found.retain(|finding| !matches!(finding, AuditFinding::Misplaced { seq: late, .. } if late + 1 == seq));
        let named = matches!(&found[..], [AuditFinding::Again { seq: named, .. }] if *named == seq);
        prop_assert!(named, "{found:?}");
    }

    #[test]
    fn nothing_but_a_cut_tail_passes((rows, points, cut) in chains(), edits in prop::collection::vec(edits(), 1..5)) {
        let whole = chain(rows, &points, cut);
        let mut lines = whole.clone();
        for edit in edits {
            let len = lines.len();
            match edit {
                _ if len == 0 => {}
                Edit::Drop(at) => drop(lines.remove(at.index(len))),
                Edit::Swap(a, b) => lines.swap(a.index(len), b.index(len)),
                Edit::Copy(from, to) => lines.insert(to.index(len + 1), lines[from.index(len)].clone()),
            }
        }
        let entries = |lines: &[AuditLine]| -> Vec<AuditLine> {
            lines.iter().filter(|line| matches!(line, AuditLine::Entry(_))).cloned().collect()
        };
        let report = verify(&lines);
        let Some(tenant) = report.tenants.first() else { return Ok(()) };
        prop_assert_eq!(tenant.proven_rows + tenant.unproven_rows, tenant.rows);
        if report.is_intact() {
            // What is left is a run of the true rows, which begins at the beginning or after a checkpoint.
            let (all, left) = (entries(&whole), entries(&lines));
            let start = tenant.anchor.map_or(0, |anchor| usize::try_from(anchor.max(cut) - cut).unwrap());
            let run = all.get(start..start + left.len());
            prop_assert!(left.is_empty() || run == Some(&left[..]), "{}", report);
        }
    }

    #[test]
    fn a_changed_byte_is_found((rows, points, cut) in chains(), at: Index, bit in 0_u8..8) {
        let whole = chain(rows, &points, cut);
        let mut file: Vec<Vec<u8>> = whole.iter().map(|line| line.to_string().into_bytes()).collect();
        let at = at.index(file.iter().map(Vec::len).sum());
        *file.iter_mut().flatten().nth(at).unwrap() ^= 1 << bit;
        let mut verifier = Verifier::new(&check);
        let lines: Vec<_> = (1..).zip(&file).map(|(number, line)| read_line(number, line)).collect();
        let same = lines.iter().eq(&whole.iter().cloned().map(Ok).collect::<Vec<_>>());
        lines.into_iter().for_each(|line| verifier.line(line));
        prop_assert_eq!(verifier.finish().is_intact(), same);
    }

    #[test]
    fn hostile_rows_do_no_harm(
        rows in prop::collection::vec((prop_oneof![0_u64..6, Just(u64::MAX), Just(u64::MAX - 1)], 0_u8..4, any::<bool>()), 0..40),
    ) {
        let hash = |n: u8| Hash::of(&Hash::ZERO, &n.to_string());
        let mut verifier = Verifier::new(&check);
        for (seq, n, is_row) in &rows {
            let head = ChainHead { seq: (*seq).min(9), hash: hash(*n) };
            let mut entry = row(&head, "x");
            entry.seq = *seq;
            if *n == 0 {
                entry.hash = hash(1);
            }
            if *is_row { verifier.entry(entry) } else { verifier.checkpoint(&point(&entry, "known")) }
        }
        let report = verifier.finish();
        for tenant in &report.tenants {
            prop_assert_eq!(tenant.proven_rows + tenant.unproven_rows, tenant.rows);
        }
        prop_assert!(!report.to_string().is_empty() || rows.is_empty());
    }
}
