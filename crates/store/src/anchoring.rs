//! A store compared with its anchor: when its rules are read, before they change, and when somebody takes it as it is.

use pintle_domain::anchor::{
    Anchor, AnchorStanding, AnchoredChain, ChainSeen, Comparison, DoubtKind, RuleDoubt, StoreSeen, compare,
};
use pintle_domain::audit::{AuditKind, ChangeKey};
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::canonical;
use pintle_domain::store::{Actor, IdentityChange, StoreAcceptance, StoreError, StoredRules, Tenant};

use crate::anchor_file::AnchorFile;
use crate::database::Database;
use crate::db::Failure;
use crate::evidence::{self, Note};
use crate::rows::hooks::Changer;
use crate::rows::identity::{acceptance, sealed_anew};
use crate::rows::{anchor, audit, hooks, strangers};

/// Everything that puts rules in force, compared with the anchor, which then knows it. Where tables are not as Pintle
/// made them, nothing is relied on.
pub(crate) fn rules<D: Database>(database: &D) -> Result<StoredRules, StoreError> {
    let mut rules = anchored(database)?;
    if let Some(why) = database.read_at_once(|db| strangers::found(db))? {
        rules.shut = Some(format!("in {}: {why}", database.shown()));
    }
    Ok(rules)
}

/// How often the store is read again because another process, or the writer, had something written into the anchor
/// meanwhile. It takes milliseconds and happens at each signature, which are seconds apart.
const TRIES: u32 = 16;

fn anchored<D: Database>(database: &D) -> Result<StoredRules, StoreError> {
    let Some(file) = &database.sealing().anchor else { return database.read_at_once(hooks::rules) };
    let mut tried = 0;
    loop {
        tried += 1;
        let (rules, is_written) = read_with_anchor(database, file)?;
        if is_written {
            return Ok(rules);
        }
        if tried == TRIES {
            tracing::warn!("store.anchor_not_written: others changed it {TRIES} times while the rules were read");
            return Ok(rules);
        }
    }
}

/// The rules as they are now, and whether the anchor knows what it is to know. The anchor is read first, and written last
/// only if nobody else has written it: whoever reads a store later than its anchor never finds less than that knows.
fn read_with_anchor<D: Database>(database: &D, file: &AnchorFile) -> Result<(StoredRules, bool), StoreError> {
    let anchor = match file.read() {
        Ok(anchor) => anchor,
        Err(why) => {
            let mut rules = database.read_at_once(hooks::rules)?;
            rules.shut = Some(format!("{why}; every gate stays shut until `pintle store accept`"));
            file.stands(false);
            return Ok((rules, true));
        }
    };
    let (mut rules, Comparison { standing, doubts, next, replaced, .. }) = compared(database, anchor.as_ref())?;
    if let Some(why) = replaced {
        let shown = file.shown();
        tracing::warn!("store.replaced: the store at {shown} is not the one that was here: {why}; no guard is lost");
    }
    rules.doubts = doubts;
    rules.shut = file.shut(anchor.as_ref(), &standing);
    file.stands(rules.shut.is_none());
    let next = next.map(|next| Anchor { are_rows_sealed: has_row_seals(database, next.are_rows_sealed), ..next });
    let Some(next) = next.filter(|next| anchor.as_ref() != Some(next)) else { return Ok((rules, true)) };
    // It must not know more than a loss of power leaves.
    match database.settle().and_then(|()| file.replace(anchor.as_ref(), &next)) {
        Ok(true) if anchor.is_none() => {
            let guards = next.guards().count();
            tracing::info!("store.anchored: {} is known from now on, with {guards} guards", file.shown());
        }
        Ok(true) => {}
        Ok(false) => return Ok((rules, false)),
        // Where the home cannot be written there is nothing to keep others from.
        Err(why) => tracing::warn!("store.anchor_not_written: {why}"),
    }
    Ok((rules, true))
}

/// Seals the rows of those who may ask once, where a host that seals opens a store for the first time. What has a seal
/// stays as it is, also under an older key: a single command with another key, or the first of several nodes that get a
/// new one, must not take away what all others know. `are_sealed` says that it was done here; so does what is returned.
fn has_row_seals<D: Database>(database: &D, are_sealed: bool) -> bool {
    let keys = database.sealing();
    // Whoever only tells what hosts sealed writes nothing.
    let seals = keys.keyring.is_some() || keys.signing.is_some();
    let Some(file) = keys.anchor.as_ref().filter(|_| seals && !are_sealed) else { return are_sealed };
    let own = keys.keyring.iter().flat_map(|keyring| keyring.change_keys());
    let own: Vec<&ChangeKey> = own.chain(keys.signing.iter().map(|signing| signing.change_key())).collect();
    if own.is_empty() {
        return are_sealed;
    }
    match database.write(|db| sealed_anew::first(db, &own)) {
        Ok(()) => true,
        Err(why) => {
            tracing::warn!("store.rows_not_sealed: members and keys of {} could not be sealed: {why}", file.shown());
            are_sealed
        }
    }
}

fn compared<D: Database>(database: &D, known: Option<&Anchor>) -> Result<(StoredRules, Comparison), StoreError> {
    let (rules, seen) = looked(database, known)?;
    let comparison = compare(known, &seen);
    Ok((rules, comparison))
}

fn looked<D: Database>(database: &D, known: Option<&Anchor>) -> Result<(StoredRules, StoreSeen), StoreError> {
    let key = database.sealing().change_key();
    database.read_at_once(|db| {
        let rules = hooks::rules(db)?;
        let seen = anchor::seen(db, (known, key.as_ref()), &rules)?;
        Ok((rules, seen))
    })
}

/// Refuses to change rules of a store that is not what it was, and rules that are not: a change would take for granted
/// what nobody accepted. Rules of files and shipped ones may be written over, since their rows are not what counts.
pub(crate) fn may_change<D: Database>(database: &D, hooks: &[&HookId]) -> Result<(), StoreError> {
    let Some(file) = &database.sealing().anchor else { return Ok(()) };
    let anchor = file.read()?;
    let (rules, Comparison { standing, doubts, .. }) = compared(database, anchor.as_ref())?;
    if let Some(why) = file.shut(anchor.as_ref(), &standing) {
        return Err(StoreError::Conflict(why));
    }
    match doubts.iter().find(|doubt| hooks.contains(&&doubt.hook)) {
        Some(doubt) => Err(StoreError::Conflict(format!("{}; {}", doubt.text(), doubt.remedy(rules.is_of_server)))),
        None => Ok(()),
    }
}

/// Takes the store as it is found, and all in it that somebody else changed. Says what was taken, and so does the audit
/// chain, in the transaction in which it is taken.
pub(crate) fn accept<D: Database>(database: &D, by: &Actor) -> Result<Vec<String>, StoreError> {
    let Some(file) = &database.sealing().anchor else { return Ok(Vec::new()) };
    let anchor = file.read().unwrap_or_default();
    let (stored, seen) = looked(database, anchor.as_ref())?;
    let standing = compare(anchor.as_ref(), &seen).standing;
    if matches!(standing, AnchorStanding::Lost { .. } | AnchorStanding::Foreign { .. }) {
        return Err(StoreError::Conflict(file.shut(anchor.as_ref(), &standing).unwrap_or_default()));
    }
    let whole = anchor.as_ref().map(|anchor| of_store(anchor, (&standing, &seen))).unwrap_or_default();
    let mut names: Vec<(&Tenant, String)> = Vec::new();
    let known = match &standing {
        AnchorStanding::Older(_)
        | AnchorStanding::Rewritten(_)
        | AnchorStanding::Lost { .. }
        | AnchorStanding::Foreign { .. } => None,
        AnchorStanding::Renamed(_) => {
            names = anchor.as_ref().map(|anchor| renamed(anchor, &stored.tenants)).unwrap_or_default();
            anchor.clone().map(|anchor| Anchor { tenants: Default::default(), ..anchor })
        }
        AnchorStanding::Fresh | AnchorStanding::Same | AnchorStanding::Ahead => anchor.clone(),
    };
    let (rules, seen) = looked(database, known.as_ref())?;
    let Comparison { doubts, unsigned, .. } = compare(known.as_ref(), &seen);
    let unreadable = |doubt: &&RuleDoubt| matches!(doubt.why, DoubtKind::Unreadable(_));
    if let Some(odd) = doubts.iter().find(unreadable) {
        return Err(StoreError::Conflict(format!("{}; {}", odd.text(), odd.remedy(rules.is_of_server))));
    }
    let missed = known.as_ref().map(|known| without_signatures(known, &seen)).unwrap_or_default();
    let missed: Vec<StoreAcceptance> = missed.into_iter().filter(|told| unsigned.contains(&told.why)).collect();
    let keys = database.sealing();
    let key = keys.change_key();
    let rows = database.write(|db| {
        let rows = if key.is_some() { acceptance::found(db, keys)? } else { Vec::new() };
        if !doubts.is_empty() {
            hooks::accept(db, &rules, &doubts, &Changer { by, key: key.as_ref() })?;
        }
        let mut notes: Vec<Note> = Vec::new();
        for told in whole.iter().chain(&missed) {
            let data = canonical(&told.data(by).into());
            let note = evidence::note(&acceptance::chain_of(&told.tenant), by.at, AuditKind::Change, &data);
            notes.push(note.map_err(Failure::Said)?);
        }
        for (tenant, why) in &names {
            notes.push(acceptance::note(&IdentityChange::TenantAccepted(tenant), why, by)?);
        }
        notes.extend(acceptance::notes(&rows, by)?);
        if !notes.is_empty() {
            audit::append_sealed(db, &notes.iter().collect::<Vec<_>>(), key.as_ref())?;
        }
        key.as_ref().map_or_else(|| Ok(Vec::new()), |key| acceptance::seal(db, key, &rows))
    })?;
    let are_rows_sealed = key.is_some();
    let known = known.map(Anchor::without_signatures);
    let (_, Comparison { next, .. }) = compared(database, known.as_ref())?;
    if let Some(next) = next.map(|next| Anchor { are_rows_sealed, ..next }) {
        database.settle()?;
        file.overwrite(&next)?;
        file.stands(true);
    }
    let whole = whole.iter().map(StoreAcceptance::text).chain(names.into_iter().map(|(_, why)| why));
    let rest = doubts.iter().map(RuleDoubt::text).chain(missed.iter().map(StoreAcceptance::text));
    Ok(whole.chain(rest).chain(rows).collect())
}

/// What is taken with a store that is not as far as it was, in each chain that shows it; in the one of the first tenant
/// where none does.
fn of_store(known: &Anchor, (standing, seen): (&AnchorStanding, &StoreSeen)) -> Vec<StoreAcceptance> {
    let (what, why) = match standing {
        AnchorStanding::Older(why) => ("an older copy of the store", why),
        AnchorStanding::Rewritten(why) => ("an audit chain whose end was rewritten", why),
        AnchorStanding::Fresh
        | AnchorStanding::Same
        | AnchorStanding::Ahead
        | AnchorStanding::Renamed(_)
        | AnchorStanding::Foreign { .. }
        | AnchorStanding::Lost { .. } => return Vec::new(),
    };
    let of_chain = |(tenant, before): (&TenantId, &AnchoredChain)| {
        let now = seen.chains.get(tenant);
        let why = format!("{what}: {}", known.differs(tenant, now)?);
        let end = now.map_or(0, |now| now.head.seq);
        let missing = (end < before.seq).then_some((end + 1, before.seq));
        Some(StoreAcceptance { tenant: tenant.clone(), why, missing })
    };
    let told: Vec<StoreAcceptance> = known.chains.iter().filter_map(of_chain).collect();
    if told.is_empty() {
        let tenant = TenantId::default_tenant();
        return vec![StoreAcceptance { tenant, why: format!("{what}: {why}"), missing: None }];
    }
    told
}

/// The chains of which signatures are gone.
fn without_signatures(known: &Anchor, seen: &StoreSeen) -> Vec<StoreAcceptance> {
    let gone = |(tenant, chain): (&TenantId, &ChainSeen)| {
        let why = known.unsigned(tenant, chain.signed)?;
        Some(StoreAcceptance { tenant: tenant.clone(), why, missing: None })
    };
    seen.chains.iter().filter_map(gone).collect()
}

/// The tenants that have another name than before, or the one of another tenant, in words.
fn renamed<'a>(known: &Anchor, tenants: &'a [Tenant]) -> Vec<(&'a Tenant, String)> {
    let of = |tenant: &'a Tenant| {
        let now = tenant.slug.escape_debug();
        let had = |(id, name): (&TenantId, &String)| (*name == tenant.slug && *id != tenant.id).then(|| id.clone());
        let why = match known.tenants.get(&tenant.id) {
            Some(before) if *before == tenant.slug => return None,
            Some(before) => format!("tenant {} was `{}` and is `{now}`", tenant.id, before.escape_debug()),
            None => format!("`{now}` was tenant {} and is {}", known.tenants.iter().find_map(had)?, tenant.id),
        };
        Some((tenant, format!("names of tenants: {why}")))
    };
    tenants.iter().filter_map(of).collect()
}
