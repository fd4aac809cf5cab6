//! `pintle audit tail`: the newest entries, a line each.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use clap::Args;
use jiff::Timestamp;
use pintle_domain::approval::{APPROVAL_REFUSED, APPROVAL_USED};
use pintle_domain::audit::{AuditEntry, AuditKind};
use pintle_domain::execution::DETAIL_READ;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::Value;
use pintle_domain::store::{AuditStore, IdentityAction, NO_HOOK, STORE_ACCEPTED, StoredCall};
use pintle_rules::record::is_own_reason;
use pintle_store::Store;

use super::range::{Pages, head};
use super::{ChainOf, chains, failed, is_read, put};
use crate::clean::clean;
use crate::cli::{Global, note_home};
use crate::error::CliError;
use crate::table::{fold, out_columns};
use crate::text::clip;
use pintle_host::host::{load, open_store};

/// How many entries are shown where nothing else is said: a screen.
const SHOWN: usize = 20;

/// Most entries that are shown at once: they are in memory, and nobody reads more; `audit export` has all.
const MAX_SHOWN: u64 = 10_000;

/// How often it is looked for new entries: soon enough for somebody who watches.
const LOOK_EVERY: Duration = Duration::from_millis(500);

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();

/// Flags of `audit tail`.
#[derive(Debug, Args)]
pub struct TailArgs {
    /// How many entries
    #[arg(short = 'n', long = "lines", value_name = "N", default_value_t = SHOWN as u64, value_parser = clap::value_parser!(u64).range(0..=MAX_SHOWN))]
    lines: u64,
    /// Go on with what comes, until interrupted
    #[arg(short, long)]
    follow: bool,
    /// Only those of this tenant
    #[arg(long, value_name = "SLUG")]
    tenant: Option<String>,
    /// Print each entry as JSON, a line each
    #[arg(long)]
    json: bool,
}

pub(super) fn run(global: &Global, args: &TailArgs) -> Result<u8, CliError> {
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    note_home(global, (&env, &loaded.config));
    let store = open_store(&loaded.config)?;
    let mut tail = Tail { store: &*store, args, next: BTreeMap::new() };
    let mut out = anstream::stdout();
    if !tail.newest(&mut out)? || !args.follow {
        return Ok(0);
    }
    loop {
        // Nothing else is done here, and an interrupt ends it.
        std::thread::sleep(LOOK_EVERY);
        if !tail.more(&mut out)? {
            return Ok(0);
        }
    }
}

struct Tail<'a> {
    store: &'a dyn Store,
    args: &'a TailArgs,
    /// The entry that comes next in each chain that was seen.
    next: BTreeMap<TenantId, u64>,
}

impl Tail<'_> {
    /// Shows the newest entries of all chains. Says whether somebody reads.
    fn newest(&mut self, out: &mut dyn Write) -> Result<bool, CliError> {
        let chains = chains(self.store, self.args.tenant.as_deref())?;
        let mut found = Vec::new();
        for (i, chain) in chains.iter().enumerate() {
            let newest = newest(self.store, &chain.tenant, self.args.lines).map_err(failed)?;
            let end = match newest.last() {
                Some(last) => last.seq,
                None => head(self.store, &chain.tenant).map_err(failed)?,
            };
            self.next.insert(chain.tenant.clone(), end.saturating_add(1));
            found.push((i, newest));
        }
        let found = merged(found);
        let count = usize::try_from(self.args.lines).unwrap_or(usize::MAX);
        let from = found.len().saturating_sub(count);
        self.show(out, &chains, &found[from..])
    }

    /// Shows what came since.
    fn more(&mut self, out: &mut dyn Write) -> Result<bool, CliError> {
        let chains = chains(self.store, self.args.tenant.as_deref())?;
        for (i, chain) in chains.iter().enumerate() {
            let from = self.next.get(&chain.tenant).copied().unwrap_or(1);
            let mut pages = Pages::new(self.store, &chain.tenant, from);
            loop {
                let page: Vec<(usize, AuditEntry)> =
                    pages.next().map_err(failed)?.into_iter().map(|entry| (i, entry)).collect();
                let Some((_, last)) = page.last() else { break };
                self.next.insert(chain.tenant.clone(), last.seq.saturating_add(1));
                if !self.show(out, &chains, &page)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn show(&self, out: &mut dyn Write, chains: &[ChainOf], found: &[(usize, AuditEntry)]) -> Result<bool, CliError> {
        let names = if self.args.json || found.is_empty() { BTreeMap::new() } else { self.names()? };
        let several = found.iter().any(|(i, _)| found.first().is_some_and(|(first, _)| first != i));
        for (i, entry) in found {
            let tenant = Some(chains[*i].slug.as_str()).filter(|_| several);
            let text =
                if self.args.json { entry.body.clone() } else { fold(&line(entry, tenant, &names), out_columns(), 4) };
            if !put(out, &text)? {
                return Ok(false);
            }
        }
        is_read(out.flush())
    }

    /// What people call the hooks that there are.
    fn names(&self) -> Result<BTreeMap<HookId, String>, CliError> {
        let rules = self.store.rules().map_err(failed)?;
        Ok(rules.hooks.into_iter().map(|hook| (hook.id.clone(), hook.label().to_owned())).collect())
    }
}

/// The newest `count` entries of a chain, oldest first.
fn newest(
    store: &dyn AuditStore,
    tenant: &TenantId,
    count: u64,
) -> Result<Vec<AuditEntry>, pintle_domain::store::StoreError> {
    let end = head(store, tenant)?;
    let mut pages = Pages::new(store, tenant, (end + 1).saturating_sub(count).max(1));
    let mut found = Vec::new();
    if count == 0 {
        return Ok(found);
    }
    loop {
        let page = pages.next()?;
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    Ok(found)
}

/// The entries of several chains in the order of their times; those of one chain keep theirs, whatever its clock said: an
/// entry counts as no earlier than those before it.
fn merged(chains: Vec<(usize, Vec<AuditEntry>)>) -> Vec<(usize, AuditEntry)> {
    let mut all = Vec::new();
    for (chain, entries) in chains {
        let mut latest = Timestamp::MIN;
        for entry in entries {
            latest = latest.max(entry.at);
            all.push((latest, (chain, entry)));
        }
    }
    all.sort_by_key(|(latest, _)| *latest);
    all.into_iter().map(|(_, entry)| entry).collect()
}

/// One entry for people: when, what, where, how it was decided, by whom, its number.
fn line(entry: &AuditEntry, tenant: Option<&str>, names: &BTreeMap<HookId, String>) -> String {
    let body: Value = serde_json::from_str(&entry.body).unwrap_or_default();
    let data = &body["data"];
    let text = |name: &str| data[name].as_str().unwrap_or_default();
    let hook = |id: &str| names.get(&HookId::from(id)).map_or_else(|| id.to_owned(), Clone::clone);
    let (place, word, by, why) = match entry.kind {
        AuditKind::Record => {
            let why = if text("error").is_empty() { text("reason") } else { text("error") };
            (format!("{} {}", text("event"), text("tool_name")), text("decision"), text("hook_name").to_owned(), why)
        }
        AuditKind::Decision => {
            let call: Option<StoredCall> = pintle_domain::json::from_value(data["call"].clone()).ok();
            let call = call.map(|call| format!(" {}", clip(&call.shown()))).unwrap_or_default();
            (format!("{} {}{call}", text("checkpoint"), text("tool")), text("ruling"), String::new(), text("text"))
        }
        AuditKind::Change if text("action") == DETAIL_READ => {
            let place = format!("{} execution {}", text("hook_name"), text("execution_id"));
            (place, DETAIL_READ, format!("by {}", text("actor")), "")
        }
        AuditKind::Change if text("action") == APPROVAL_USED => {
            let place = format!("{} approval {}", text("tool"), text("approval_id"));
            (place, APPROVAL_USED, format!("given by {}", text("actor")), "")
        }
        AuditKind::Change if text("action") == APPROVAL_REFUSED => {
            let place = format!("{} approval {}", text("tool"), text("approval_id"));
            (place, APPROVAL_REFUSED, format!("by {}", text("actor")), "")
        }
        AuditKind::Change if let Some(action) = IdentityAction::named(text("action")) => {
            let place = [text("subject"), text("role"), text("prefix")].join(" ");
            let by = format!("by {}", text("actor"));
            let says_enabled = matches!(action, IdentityAction::MemberChanged | IdentityAction::MemberAccepted);
            let state = match (data["enabled"].as_bool(), data["revoked"].as_bool()) {
                (Some(false), _) => "disabled",
                (Some(true), _) if says_enabled => "enabled",
                (_, Some(true)) => "revoked",
                (_, Some(false)) => "live",
                (Some(true) | None, None) => "",
            };
            let (by, why) = match (state, text("reason")) {
                ("", reason) => (by, reason),
                (state, "") => (by, state),
                (state, reason) => (format!("{by}  {state}"), reason),
            };
            (place, text("action"), by, why)
        }
        AuditKind::Change if text("action") == STORE_ACCEPTED => {
            ("store".to_owned(), STORE_ACCEPTED, format!("by {}", text("actor")), text("reason"))
        }
        AuditKind::Change if text("hook_id") == NO_HOOK => {
            ("budget".to_owned(), text("action"), format!("by {}", text("actor")), because(&data["diff"]))
        }
        AuditKind::Change | AuditKind::Trip => {
            (hook(text("hook_id")), text("action"), format!("by {}", text("actor")), because(&data["diff"]))
        }
    };
    let style = match word {
        "allow" | "continue" | "modify" | "respond" => GOOD,
        "block" | "deny" | "abort_turn" | "hard_abort" | "error" | "timeout" | "tripped" => BAD,
        _ => NOTE,
    };
    let tenant = tenant.map(|slug| format!("  {}", clean(slug))).unwrap_or_default();
    let line = format!(
        "{DIM}{}{DIM:#}  {:<8}  {BOLD}{}{BOLD:#}  {style}{}{style:#}  {}  {}",
        entry.at.strftime("%F %T UTC"),
        entry.kind.word(),
        clean(place.trim_end()),
        clean(word),
        clean(&by),
        clean(&clip(why)),
    );
    format!("{}  {DIM}#{}{tenant}{DIM:#}", line.trim_end(), entry.seq)
}

/// Why somebody changed it, where the JSON Patch of a change says so.
fn because(diff: &Value) -> &str {
    let operations = diff.as_array().into_iter().flatten();
    let reasons = operations.filter(|it| ["/disabled_reason", "/reason"].iter().any(|path| it["path"] == *path));
    reasons.filter_map(|it| it["value"].as_str()).find(|reason| !is_own_reason(reason)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use pintle_domain::audit::{ChainHead, append};
    use pintle_domain::json::json;

    use super::super::range::tests::{at, fake};
    use super::*;

    #[test]
    fn the_newest_are_the_last_ones() {
        let tenant = TenantId::default_tenant();
        let seqs = |rows: u64, count: u64| -> Vec<u64> {
            newest(&fake(rows, &[]), &tenant, count).unwrap().iter().map(|entry| entry.seq).collect()
        };
        assert_eq!(seqs(100, 3), [98, 99, 100]);
        assert_eq!(seqs(2, 20), [1, 2]);
        assert_eq!((seqs(0, 20), seqs(9, 0)), (vec![], vec![]));
    }

    #[test]
    fn a_clock_that_was_put_back_changes_no_order_of_a_chain() {
        let (mut one, mut other) = (fake(4, &[]).entries, fake(2, &[]).entries);
        one[2].at = at(1);
        other[1].at = at(3);
        let seqs: Vec<(usize, u64)> =
            merged(vec![(0, one), (1, other)]).iter().map(|(chain, entry)| (*chain, entry.seq)).collect();
        assert_eq!(seqs, [(0, 1), (1, 1), (0, 2), (0, 3), (1, 2), (0, 4)]);
    }

    #[test]
    fn a_line_says_what_happened() {
        let check = |kind: AuditKind, data: Value| {
            let data = data.as_object().unwrap().clone();
            let (entry, _) = append(&ChainHead::GENESIS, &TenantId::default_tenant(), at(0), kind, data).unwrap();
            let names = BTreeMap::from([(HookId::from("h1"), "no-rm".to_owned())]);
            anstream::adapter::strip_str(&line(&entry, None, &names)).to_string()
        };
        let record = json!({"event": "pre_tool_use", "tool_name": "exec", "decision": "block", "hook_name": "no-rm", "reason": "\u{1b}[2Jnever"});
        insta::assert_snapshot!(check(AuditKind::Record, record), @r"2027-01-15 08:00:00 UTC  record    pre_tool_use exec  block  no-rm  \u{1b}[2Jnever  #1");
        let decision = json!({"checkpoint": "before_tool", "tool": "exec", "ruling": "continue", "permit": "04d9"});
        let refused = json!({"checkpoint": "pre_tool_use", "tool": "exec", "ruling": "deny", "text": "no",
            "call": {"arguments": {"command": "git push --force"}}});
        insta::assert_snapshot!(check(AuditKind::Decision, refused), @"2027-01-15 08:00:00 UTC  decision  pre_tool_use exec git push --force  deny    no  #1");
        insta::assert_snapshot!(check(AuditKind::Decision, decision), @"2027-01-15 08:00:00 UTC  decision  before_tool exec  continue  #1");
        let no = json!({"action": "approval_refused", "tool": "exec", "approval_id": "01a2", "actor": "anna"});
        insta::assert_snapshot!(check(AuditKind::Change, no), @"2027-01-15 08:00:00 UTC  change    exec approval 01a2  approval_refused  by anna  #1");
        let member = json!({"action": "member_changed", "subject": "ben", "role": "viewer", "actor": "anna"});
        let shut =
            json!({"action": "member_changed", "subject": "ben", "role": "viewer", "enabled": false, "actor": "anna"});
        assert!(check(AuditKind::Change, shut).contains("member_changed  by anna  disabled"));
        let shut =
            json!({"action": "member_changed", "subject": "ben", "enabled": false, "actor": "anna", "reason": "left"});
        assert!(check(AuditKind::Change, shut).contains("member_changed  by anna  disabled  left"));
        let taken = json!({"action": "key_revoked", "subject": "ben", "prefix": "pintle_a", "actor": "anna", "reason": "stolen"});
        assert!(check(AuditKind::Change, taken).contains("key_revoked  by anna  stolen"));
        let open =
            json!({"action": "member_changed", "subject": "ben", "role": "viewer", "enabled": true, "actor": "anna"});
        assert!(check(AuditKind::Change, open).contains("member_changed  by anna  enabled"));
        let role = json!({"action": "member_accepted", "subject": "eve", "role": "admin", "enabled": true, "actor": "cli", "reason": "it had no seal"});
        assert!(check(AuditKind::Change, role).contains("eve admin  member_accepted  by cli  enabled  it had no seal"));
        let back =
            json!({"action": "key_accepted", "subject": "eve", "prefix": "pintle_a", "revoked": false, "actor": "cli"});
        assert!(check(AuditKind::Change, back).contains("key_accepted  by cli  live"));
        let older = json!({"action": "store_accepted", "actor": "cli", "reason": "an older copy of the store"});
        assert!(check(AuditKind::Change, older).contains("store  store_accepted  by cli  an older copy of the store"));
        let set = json!({"action": "updated", "hook_id": NO_HOOK, "actor": "anna", "diff": [{"path": "/reason", "value": "a quiet month"}]});
        assert!(check(AuditKind::Change, set).contains("budget  updated  by anna  a quiet month"));
        insta::assert_snapshot!(check(AuditKind::Change, member), @"2027-01-15 08:00:00 UTC  change    ben viewer  member_changed  by anna  #1");
        let trip = json!({"hook_id": "h1", "action": "tripped", "actor": "system:breaker"});
        insta::assert_snapshot!(check(AuditKind::Trip, trip), @"2027-01-15 08:00:00 UTC  trip      no-rm  tripped  by system:breaker  #1");
    }
}
