//! Which part of a chain is read: the newest entries, or those of a time.

use std::collections::VecDeque;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use pintle_domain::audit::{AuditCheckpoint, AuditEntry};
use pintle_domain::id::TenantId;
use pintle_domain::store::{AuditStore, StoreError};

use super::PAGE;

/// Bytes of bodies after which pages become smaller: some are tool calls of many megabytes.
const PAGE_BYTES: usize = 8 << 20;

/// Entries of the first page, before it is known how large they are.
const FIRST_PAGE: usize = 16;

/// Reads a chain from one entry on, a page at a time; no page is much larger than [`PAGE_BYTES`] if those before it
/// tell anything.
pub(super) struct Pages<'a> {
    store: &'a dyn AuditStore,
    tenant: &'a TenantId,
    from: u64,
    limit: usize,
}

impl<'a> Pages<'a> {
    pub(super) fn new(store: &'a dyn AuditStore, tenant: &'a TenantId, from: u64) -> Self {
        Self { store, tenant, from, limit: FIRST_PAGE }
    }

    /// The next page; empty at the end of the chain.
    pub(super) fn next(&mut self) -> Result<Vec<AuditEntry>, StoreError> {
        let page = self.store.audit_entries(self.tenant, self.from, self.limit)?;
        if let Some(last) = page.last() {
            self.from = last.seq.saturating_add(1);
            let each = (page.iter().map(|entry| entry.body.len()).sum::<usize>() / page.len()).max(1);
            self.limit = (PAGE_BYTES / each).clamp(1, PAGE).min(self.limit * 2);
        }
        Ok(page)
    }
}

/// Reads the signatures of a chain in their order, a page at a time, up to the one that was the last when this began: of
/// a chain that grows there are then entries for every one of them.
pub(super) struct Points<'a> {
    store: &'a dyn AuditStore,
    tenant: &'a TenantId,
    from: u64,
    end: u64,
    page: VecDeque<AuditCheckpoint>,
}

impl<'a> Points<'a> {
    pub(super) fn new(store: &'a dyn AuditStore, tenant: &'a TenantId) -> Result<Self, StoreError> {
        let end = store.last_checkpoint(tenant)?.map_or(0, |last| last.seq);
        Ok(Self { store, tenant, from: 0, end, page: VecDeque::new() })
    }

    /// The same signatures without those of entries before `from` and after `last`.
    pub(super) fn between(&self, from: u64, last: u64) -> Self {
        Self { from, end: self.end.min(last), page: VecDeque::new(), ..*self }
    }

    /// The next signature, unless it is that of an entry after `seq`.
    pub(super) fn up_to(&mut self, seq: u64) -> Result<Option<AuditCheckpoint>, StoreError> {
        if self.page.is_empty() && self.from <= self.end {
            self.page = self.store.checkpoints(self.tenant, self.from, PAGE)?.into();
            // After an empty page there is nothing.
            self.from = self.page.back().map_or(u64::MAX, |last| last.seq.saturating_add(1));
        }
        Ok(self.page.pop_front_if(|point| point.seq <= seq.min(self.end)))
    }
}

/// The number of the newest entry; 0 if there is none. Entries can be missing, so what is asked for each time is the
/// first one from some place on.
pub(super) fn head(store: &dyn AuditStore, tenant: &TenantId) -> Result<u64, StoreError> {
    let first = |from: u64| Ok::<_, StoreError>(store.audit_entries(tenant, from, 1)?.first().map(|entry| entry.seq));
    let Some(mut there) = first(1)? else { return Ok(0) };
    let mut step: u64 = 1;
    let mut beyond = loop {
        let from = there.saturating_add(step);
        match first(from)? {
            Some(seq) => there = seq,
            None => break from,
        }
        step = step.saturating_mul(2);
    };
    while beyond - there > 1 {
        let middle = there + (beyond - there) / 2;
        match first(middle)? {
            Some(seq) => there = seq,
            None => beyond = middle,
        }
    }
    Ok(there)
}

/// A stretch of a chain that can be proven by itself: it begins after a signature, and ends with one if there is any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// The signature that stands in for everything before it.
    pub(super) anchor: Option<AuditCheckpoint>,
    /// The last entry; none to the end of the chain.
    pub(super) last: Option<u64>,
}

/// The shortest stretch with everything between `since` and `until`. Times of entries need not rise with their numbers:
/// a clock may have been put back.
pub(super) fn stretch(
    mut points: Points<'_>,
    entries: Pages<'_>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
) -> Result<Stretch, StoreError> {
    let mut stretch = Stretch { anchor: None, last: None };
    if since.is_none() && until.is_none() {
        return Ok(stretch);
    }
    let Span { first, last } = span(entries, since, until)?;
    while let Some(point) = points.up_to(u64::MAX)? {
        if since.is_some() && point.seq < first {
            stretch.anchor = Some(point);
        } else if until.is_none() {
            break;
        } else if point.seq >= last {
            stretch.last = Some(point.seq);
            break;
        }
    }
    Ok(stretch)
}

/// The numbers of the first and the last entry that are asked for.
struct Span {
    /// After every entry if there is none.
    first: u64,
    last: u64,
}

/// The first entry that is not before `since`, and the last one before `until`.
fn span(mut entries: Pages<'_>, since: Option<Timestamp>, until: Option<Timestamp>) -> Result<Span, StoreError> {
    let (mut first, mut last) = (None, 0);
    loop {
        let page = entries.next()?;
        for entry in &page {
            if since.is_none_or(|since| entry.at >= since) {
                first.get_or_insert(entry.seq);
            }
            if until.is_some_and(|until| entry.at < until) {
                last = entry.seq;
            }
        }
        // To the end of the chain, what follows the first one is asked for whatever its time.
        if page.is_empty() || (until.is_none() && first.is_some()) {
            return Ok(Span { first: first.unwrap_or(u64::MAX), last });
        }
    }
}

/// A moment on the command line: RFC 3339, or a day, which begins at midnight UTC.
///
/// # Errors
/// It is neither.
pub(super) fn time(text: &str) -> Result<Timestamp, String> {
    let midnight = |day: Date| day.to_zoned(TimeZone::UTC).ok().map(|day| day.timestamp());
    let parsed = text.parse::<Timestamp>().ok().or_else(|| text.parse::<Date>().ok().and_then(midnight));
    parsed.ok_or_else(|| "expected a time such as 2026-11-22T08:00:00Z, or a day such as 2026-11-22".to_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use pintle_domain::audit::{AuditKind, ChainHead, Hash, append};
    use pintle_domain::json::Object;

    use super::*;

    /// A chain with an entry each second, and a checkpoint after some of them.
    pub(in super::super) struct Fake {
        pub(in super::super) entries: Vec<AuditEntry>,
        pub(in super::super) points: Vec<AuditCheckpoint>,
        /// The most that was asked for at once.
        pub(in super::super) most: AtomicUsize,
    }

    impl AuditStore for Fake {
        fn audit_entries(&self, _: &TenantId, from_seq: u64, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
            self.most.fetch_max(limit, Ordering::Relaxed);
            Ok(self.entries.iter().filter(|entry| entry.seq >= from_seq).take(limit).cloned().collect())
        }

        fn checkpoints(&self, _: &TenantId, from_seq: u64, limit: usize) -> Result<Vec<AuditCheckpoint>, StoreError> {
            self.most.fetch_max(limit, Ordering::Relaxed);
            Ok(self.points.iter().filter(|point| point.seq >= from_seq).take(limit).cloned().collect())
        }

        fn last_checkpoint(&self, _: &TenantId) -> Result<Option<AuditCheckpoint>, StoreError> {
            Ok(self.points.last().cloned())
        }

        fn audited(&self) -> Result<Vec<TenantId>, StoreError> {
            Ok(vec![TenantId::default_tenant()])
        }

        fn forget_audit(&self, _: &TenantId, _: Timestamp, _: usize) -> Result<usize, StoreError> {
            Ok(0)
        }
    }

    pub(in super::super) fn at(second: u64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + i64::try_from(second).unwrap()).unwrap()
    }

    pub(in super::super) fn fake(rows: u64, signed: &[u64]) -> Fake {
        let tenant = TenantId::default_tenant();
        let mut end = ChainHead::GENESIS;
        let mut fake = Fake { entries: Vec::new(), points: Vec::new(), most: AtomicUsize::new(0) };
        for seq in 1..=rows {
            let (entry, link) = append(&end, &tenant, at(seq), AuditKind::Record, Object::new()).unwrap();
            end = link;
            fake.entries.push(entry);
            if signed.contains(&seq) {
                fake.points.push(AuditCheckpoint::signed(&tenant, &end, at(seq), "00000000", |_| "none".to_owned()));
            }
        }
        fake
    }

    #[test]
    fn the_newest_entry_is_found_whatever_is_missing() {
        let tenant = TenantId::default_tenant();
        for rows in [0, 1, 2, 3, 7, 64, 100] {
            assert_eq!(head(&fake(rows, &[]), &tenant), Ok(rows));
        }
        let mut holes = fake(200, &[]);
        holes.entries.retain(|entry| !(5..190).contains(&entry.seq) && entry.seq != 200);
        assert_eq!(head(&holes, &tenant), Ok(199));
    }

    #[test]
    fn pages_give_every_entry_once_and_shrink_with_large_ones() {
        let tenant = TenantId::default_tenant();
        let mut fake = fake(100, &[]);
        let mut pages = Pages::new(&fake, &tenant, 3);
        let mut seen = Vec::new();
        let mut sizes = Vec::new();
        loop {
            let page = pages.next().unwrap();
            if page.is_empty() {
                break;
            }
            sizes.push(page.len());
            seen.extend(page.iter().map(|entry| entry.seq));
        }
        assert_eq!(seen, (3..=100).collect::<Vec<_>>());
        assert_eq!(sizes, [16, 32, 50]);
        fake.entries.iter_mut().for_each(|entry| entry.body = "x".repeat(PAGE_BYTES / 2));
        let mut pages = Pages::new(&fake, &tenant, 1);
        assert_eq!([pages.next().unwrap().len(), pages.next().unwrap().len()], [16, 2]);
    }

    #[test]
    fn a_stretch_goes_from_signature_to_signature() {
        let (store, tenant) = (fake(30, &[10, 20]), TenantId::default_tenant());
        let check = |since: Option<u64>, until: Option<u64>| {
            let points = Points::new(&store, &tenant).unwrap();
            let stretch = stretch(points, Pages::new(&store, &tenant, 1), since.map(at), until.map(at)).unwrap();
            (stretch.anchor.map(|point| point.seq), stretch.last)
        };
        assert_eq!(check(None, None), (None, None));
        assert_eq!(check(Some(5), Some(8)), (None, Some(10)));
        assert_eq!(check(Some(10), None), (None, None), "an entry of that very moment is wanted");
        assert_eq!(check(Some(15), Some(20)), (Some(10), Some(20)));
        assert_eq!(check(Some(25), Some(26)), (Some(20), None));
        assert_ne!(store.points[0].hash, Hash::ZERO);
    }

    #[test]
    fn a_clock_that_was_put_back_keeps_no_entry_out() {
        let (mut store, tenant) = (fake(30, &[10, 20]), TenantId::default_tenant());
        // From the eleventh entry on it is an hour earlier than it was.
        for entry in &mut store.entries[..10] {
            entry.at = at(3600 + entry.seq);
        }
        store.points[0].at = at(12);
        let check = |since: Option<u64>, until: Option<u64>| {
            let points = Points::new(&store, &tenant).unwrap();
            let stretch = stretch(points, Pages::new(&store, &tenant, 1), since.map(at), until.map(at)).unwrap();
            (stretch.anchor.map(|point| point.seq), stretch.last)
        };
        assert_eq!(check(Some(3605), None), (None, None), "the fifth entry and what follows it");
        assert_eq!(check(None, Some(13)), (None, Some(20)), "the twelfth entry and what is before it");
        assert_eq!(check(Some(5000), None), (Some(20), None));
    }

    #[test]
    fn a_day_begins_at_midnight() {
        assert_eq!(time("2026-11-22").map(|at| at.to_string()), Ok("2026-11-22T00:00:00Z".to_owned()));
        assert_eq!(time("2026-11-22T08:00:00+01:00").map(|at| at.to_string()), Ok("2026-11-22T07:00:00Z".to_owned()));
        assert!(time("yesterday").is_err());
    }
}
