//! A store compared with its anchor: when its rules are read, before they change, and when somebody takes it as it is.

use std::sync::atomic::Ordering;

use domain::anchor::{Anchor, AnchorStanding, Comparison, DoubtKind, RuleDoubt, compare};
use domain::id::HookId;
use domain::store::{Actor, StoreError, StoredRules};

use crate::database::Database;
use crate::rows::hooks::Changer;
use crate::rows::identity::seals::{self, Sweep};
use crate::rows::{anchor, hooks, strangers};

/// Everything that puts rules in force, compared with the anchor, which then knows it. Where tables are not as Pintle
/// made them, nothing is relied on.
pub(crate) fn rules<D: Database>(database: &D) -> Result<StoredRules, StoreError> {
    let mut rules = anchored(database)?;
    if let Some(why) = database.read_at_once(|db| strangers::found(db))? {
        rules.shut = Some(format!("in {}: {why}", database.shown()));
    }
    Ok(rules)
}

fn anchored<D: Database>(database: &D) -> Result<StoredRules, StoreError> {
    let Some(file) = &database.sealing().anchor else { return database.read_at_once(hooks::rules) };
    // Where the home cannot be written there is nothing to keep others from.
    let lock = file.lock().map_err(|why| tracing::warn!("store.anchor_not_written: {why}"));
    let anchor = match file.read() {
        Ok(anchor) => anchor,
        Err(why) => {
            let mut rules = database.read_at_once(hooks::rules)?;
            rules.shut = Some(format!("{why}; every gate stays shut until `pintle store accept`"));
            file.stands(false);
            return Ok(rules);
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
    if let Some(next) = next.filter(|next| lock.is_ok() && anchor.as_ref() != Some(next)) {
        if anchor.is_none() {
            tracing::info!(
                "store.anchored: {} is known from now on, with {} guards",
                file.shown(),
                next.guards().count()
            );
        }
        // It must not know more than a loss of power leaves.
        let written = database.settle().and_then(|()| file.write(&next).map_err(|error| file.unwritten(&error)));
        if let Err(why) = written {
            tracing::warn!("store.anchor_not_written: {why}");
        }
    }
    Ok(rules)
}

/// Seals the rows of those who may ask once, where a host that seals opens a store for the first time, and what an older
/// key that is given sealed with the one of now. What the home has a key of its own for stays under that one: a single
/// command with a key in a variable must not take away what all others know. `are_sealed` says that it was done here; so
/// does what is returned.
fn has_row_seals<D: Database>(database: &D, are_sealed: bool) -> bool {
    let keys = database.sealing();
    // Whoever only tells what hosts sealed writes nothing.
    let seals = keys.keyring.is_some() || keys.signing.is_some();
    let (Some(file), Some(key)) = (&keys.anchor, keys.change_key().filter(|_| seals)) else { return are_sealed };
    if file.has_swept.swap(true, Ordering::Relaxed) && are_sealed {
        return true;
    }
    let swept = if are_sealed {
        match keys.keyring.as_ref().and_then(|keyring| keyring.given_change_key()) {
            Some(given) => database.write(|db| seals::sweep(db, &given, Sweep::Older)),
            None => Ok(()),
        }
    } else {
        let own = keys.keyring.as_ref().and_then(|keyring| keyring.kept_change_key()).unwrap_or(&key);
        database.write(|db| seals::sweep(db, own, Sweep::First))
    };
    match swept {
        Ok(()) => true,
        Err(why) => {
            tracing::warn!("store.rows_not_sealed: members and keys of {} could not be sealed: {why}", file.shown());
            file.has_swept.store(false, Ordering::Relaxed);
            are_sealed
        }
    }
}

fn compared<D: Database>(database: &D, known: Option<&Anchor>) -> Result<(StoredRules, Comparison), StoreError> {
    let key = database.sealing().change_key();
    let (rules, seen) = database.read_at_once(|db| {
        let rules = hooks::rules(db)?;
        let seen = anchor::seen(db, (known, key.as_ref()), &rules)?;
        Ok((rules, seen))
    })?;
    let comparison = compare(known, &seen);
    Ok((rules, comparison))
}

/// Refuses to change rules of a store that is not what it was, and rules that are not: a change would take for granted
/// what nobody accepted. Rules of files and shipped ones may be written over, since their rows are not what counts.
pub(crate) fn may_change<D: Database>(database: &D, hooks: &[&HookId]) -> Result<(), StoreError> {
    let Some(file) = &database.sealing().anchor else { return Ok(()) };
    let _lock = file.lock();
    let anchor = file.read()?;
    let (_, Comparison { standing, doubts, .. }) = compared(database, anchor.as_ref())?;
    if let Some(why) = file.shut(anchor.as_ref(), &standing) {
        return Err(StoreError::Conflict(why));
    }
    match doubts.iter().find(|doubt| hooks.contains(&&doubt.hook)) {
        Some(doubt) => Err(StoreError::Conflict(format!("{}; {}", doubt.text(), doubt.remedy()))),
        None => Ok(()),
    }
}

/// Takes the store as it is found, rules that somebody else changed among it. Says what was taken.
pub(crate) fn accept<D: Database>(database: &D, by: &Actor) -> Result<Vec<String>, StoreError> {
    let Some(file) = &database.sealing().anchor else { return Ok(Vec::new()) };
    let _lock = file.lock()?;
    let anchor = file.read().unwrap_or_default();
    let (_, found) = compared(database, anchor.as_ref())?;
    let mut taken = Vec::new();
    let known: Option<Anchor> = match &found.standing {
        AnchorStanding::Lost { .. } | AnchorStanding::Foreign { .. } => {
            return Err(StoreError::Conflict(file.shut(anchor.as_ref(), &found.standing).unwrap_or_default()));
        }
        AnchorStanding::Older(why) => {
            taken.push(format!("an older copy of the store: {why}"));
            None
        }
        AnchorStanding::Rewritten(why) => {
            taken.push(format!("an audit chain whose end was rewritten: {why}"));
            None
        }
        AnchorStanding::Renamed(why) => {
            taken.push(format!("names of tenants: {why}"));
            anchor.map(|anchor| Anchor { tenants: Default::default(), ..anchor })
        }
        AnchorStanding::Fresh | AnchorStanding::Same | AnchorStanding::Ahead => anchor,
    };
    let (rules, Comparison { doubts, unsigned, .. }) = compared(database, known.as_ref())?;
    let unreadable = |doubt: &&RuleDoubt| matches!(doubt.why, DoubtKind::Unreadable(_));
    if let Some(odd) = doubts.iter().find(unreadable) {
        return Err(StoreError::Conflict(format!("{}; {}", odd.text(), odd.remedy())));
    }
    if !doubts.is_empty() {
        let key = database.sealing().change_key();
        database.write(|db| hooks::accept(db, &rules, &doubts, &Changer { by, key: key.as_ref() }))?;
    }
    taken.extend(doubts.iter().map(RuleDoubt::text).chain(unsigned));
    let keys = database.sealing();
    let key = keys.change_key();
    if let Some(key) = &key {
        taken.extend(database.write(|db| {
            let doubts = seals::doubts(db, keys)?;
            let texts: Vec<String> = doubts.into_iter().map(|doubt| doubt.text).collect();
            seals::sweep(db, key, Sweep::All).map(|()| texts)
        })?);
    }
    let are_rows_sealed = key.is_some();
    let known = known.map(Anchor::without_signatures);
    let (_, Comparison { next, .. }) = compared(database, known.as_ref())?;
    if let Some(next) = next.map(|next| Anchor { are_rows_sealed, ..next }) {
        database.settle()?;
        file.write(&next).map_err(|error| file.unwritten(&error))?;
        file.stands(true);
    }
    Ok(taken)
}
