//! What a call and a listing cost where much is kept.

use std::time::{Duration, Instant};

use anyhow::ensure;
use pintle_domain::id::TenantId;
use pintle_domain::store::SessionQuery;

use crate::audit::audit;
use crate::filled::Filled;
use crate::report::{Report, shown};
use crate::size;
use crate::stage::{Load, Stage};

/// Decisions that are kept, each with its entry of the audit chain.
const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];
const FEW: [usize; 3] = [10, 20, 40];
/// Sessions that are kept.
const SESSIONS: usize = 100_000;
const FEW_SESSIONS: usize = 10;
/// Sessions of one page of a listing.
const PAGE: usize = 20;
/// Calls of one round.
const CALLS: usize = 200;
/// A call takes at most so many times as long as where nothing is kept.
const MOST_TIMES: f64 = 1.3;
/// A person waits for a listing.
const MOST_WAIT: Duration = Duration::from_millis(20);
/// Listings of one round.
const LISTINGS: usize = 1;

pub(crate) fn sizes(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    let (clears, lists, audits) =
        (report.wants("scale-records"), report.wants("scale-sessions"), report.wants("scale-audit"));
    if !(clears || lists || audits) {
        return Ok(());
    }
    let mut filled = Filled::empty()?;
    for (many, few) in SIZES.into_iter().zip(FEW) {
        let kept = size(many, few);
        if clears {
            filled.grow(kept)?;
            clearing(stage, report, (&filled, &format!("{kept} decisions kept")))?;
        }
    }
    if audits {
        filled.grow(size(SIZES[2], FEW[2]))?;
        audit(report, &filled)?;
    }
    if clears || lists {
        filled.open_sessions(size(SESSIONS, FEW_SESSIONS))?;
    }
    if clears {
        let what = format!("{} decisions and {} sessions kept", filled.calls, filled.sessions);
        clearing(stage, report, (&filled, &what))?;
    }
    if lists {
        listing(report, &filled)?;
    }
    Ok(())
}

/// The calls of one turn, one after another, in a store that is full and in one that is empty.
fn clearing(stage: &Stage, report: &mut Report, (filled, what): (&Filled, &str)) -> anyhow::Result<()> {
    let load = |calls| Load { turns: 1, calls };
    let mut full = |calls| Ok(stage.work_well(&filled.store, load(calls))?.took);
    let mut empty = |calls| {
        let fresh = Filled::empty()?;
        // The other one has made its statements, too.
        stage.work_well(&fresh.store, load(1))?;
        Ok(stage.work_well(&fresh.store, load(calls))?.took)
    };
    let [full, empty] = report.medians(CALLS, [&mut full, &mut empty])?;
    let ratio = full.div_duration_f64(empty);
    let cells = [shown(full), shown(empty), format!("{ratio:.2}"), format!("<= {MOST_TIMES}")];
    report.row(&format!("{what}: clearing of a call, commit"), cells, Some(ratio <= MOST_TIMES));
    Ok(())
}

fn listing(report: &mut Report, filled: &Filled) -> anyhow::Result<()> {
    let (tenant, number) = (TenantId::default_tenant(), filled.sessions);
    let mut whole = |times: usize| {
        let start = Instant::now();
        for _ in 0..times {
            let rows = filled.store.sessions(&tenant)?;
            ensure!(rows.len() == number, "{} of {number} sessions are listed", rows.len());
        }
        Ok(start.elapsed())
    };
    let query = SessionQuery { after: None, children: false, limit: PAGE };
    let mut page = |times: usize| {
        let start = Instant::now();
        for _ in 0..times {
            let rows = filled.store.session_page(&tenant, &query)?;
            ensure!(rows.len() == PAGE.min(number), "{} sessions are listed", rows.len());
        }
        Ok(start.elapsed())
    };
    let [whole, page] = report.medians(LISTINGS, [&mut whole, &mut page])?;
    report.limited(&format!("{number} sessions: list the newest {PAGE}"), page, MOST_WAIT, shown);
    report.noted(&format!("{number} sessions: list all"), shown(whole));
    Ok(())
}
