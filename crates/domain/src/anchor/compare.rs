//! The rule that says what became of a store.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::chain::ChainSeen;
use super::known::{Anchor, AnchoredChain, AnchoredRule};
use super::seen::{DoubtKind, RuleDoubt, RuleEntry, RuleLeft, StoreSeen};
use crate::audit::ChangeProof;
use crate::id::{HookId, TenantId};

/// How a store stands to what was known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnchorStanding {
    /// Nothing was known that could be lost: it is taken as it is.
    Fresh,
    /// Nothing happened.
    Same,
    /// It went on.
    Ahead,
    /// It is an older copy, or went on from one: what is missing, in words.
    Older(String),
    /// The end of a chain is another one, and nothing follows it, in words.
    Rewritten(String),
    /// A tenant is called otherwise than before, in words: rules that mean it by its name would act for another one.
    Renamed(String),
    /// It is another store, with rules of its own: these guards are not in it.
    Foreign {
        /// How many guards are lost.
        guards: usize,
    },
    /// It is a new store, or an emptied one.
    Lost {
        /// How many guards are lost.
        guards: usize,
    },
}

impl AnchorStanding {
    /// Whether the store is the one that was known, and not older: then only single rules can be in doubt.
    pub fn is_good(&self) -> bool {
        match self {
            Self::Fresh | Self::Same | Self::Ahead => true,
            Self::Older(_) | Self::Rewritten(_) | Self::Renamed(_) | Self::Foreign { .. } | Self::Lost { .. } => false,
        }
    }
}

/// What [`compare`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// How the whole store stands.
    pub standing: AnchorStanding,
    /// The rules that are not as they were left; none where the whole store is in doubt.
    pub doubts: Vec<RuleDoubt>,
    /// The chains whose signatures are gone, in words; none where the whole store is in doubt.
    pub unsigned: Vec<String>,
    /// What shows that another store is taken in the place of the one that was known, since no guard is lost with that.
    pub replaced: Option<String>,
    /// What is known from now on; nothing new where the whole store is in doubt.
    pub next: Option<Anchor>,
}

/// Compares what was known of a store with what is found there.
pub fn compare(anchor: Option<&Anchor>, seen: &StoreSeen) -> Comparison {
    let standing = standing(anchor, seen);
    if !standing.is_good() {
        return Comparison {
            standing,
            doubts: seen.unreadable.clone(),
            unsigned: Vec::new(),
            replaced: None,
            next: None,
        };
    }
    let known = anchor.filter(|_| standing != AnchorStanding::Fresh);
    let replaced = anchor.filter(|_| known.is_none()).and_then(|anchor| older(anchor, seen));
    let Left { rules, doubts, unproven } = rules(known, seen);
    let is_sealed = known.is_some_and(|known| known.is_sealed);
    let chain = |(tenant, chain): (&TenantId, &ChainSeen)| {
        let before = known.and_then(|known| known.chains.get(tenant));
        let cut = before.map_or(chain.cut, |before| before.cut);
        // What says that it is signed beyond its end says nothing.
        let signed = before.and_then(|before| before.signed).max(Some(chain.signed.min(chain.head.seq)));
        let (seq, hash) = (chain.head.seq, chain.head.hash.to_hex());
        // What was written before there were seals was taken as it was; what comes now has one.
        let unsealed_to = if is_sealed { before.map_or(0, |before| before.unsealed_to) } else { seq };
        let unproven = unproven.get(tenant).cloned().unwrap_or_default();
        (tenant.clone(), AnchoredChain { seq, hash, read_to: seq, cut, signed, unsealed_to, unproven })
    };
    let gone = |(tenant, chain): (&TenantId, &ChainSeen)| known?.unsigned(tenant, chain.signed);
    let unsigned = seen.chains.iter().filter_map(gone).collect();
    let next = Anchor {
        store_id: seen.store_id.clone(),
        epoch: seen.epoch,
        chains: seen.chains.iter().map(chain).collect(),
        rules,
        tenants: seen.tenants.clone(),
        is_sealed: is_sealed || seen.is_keyed,
        // Also in a new store nothing comes in without.
        are_rows_sealed: anchor.is_some_and(|anchor| anchor.are_rows_sealed),
    };
    Comparison { standing, doubts, unsigned, replaced, next: Some(next) }
}

fn standing(anchor: Option<&Anchor>, seen: &StoreSeen) -> AnchorStanding {
    let Some(anchor) = anchor else { return AnchorStanding::Fresh };
    if anchor.store_id != seen.store_id {
        let is_there = |rule: &AnchoredRule| seen.rules.values().any(|own| own.digest == rule.digest);
        let guards = anchor.guards().filter(|rule| !is_there(rule)).count();
        // A store with every guard of the one that was known is that one, whatever it calls itself.
        let is_it = anchor.guards().next().is_some();
        return match (guards, seen.rules.is_empty() && seen.unreadable.is_empty()) {
            (0, _) => match older(anchor, seen) {
                Some(why) if is_it => older_or_rewritten(anchor, seen, why),
                Some(_) => AnchorStanding::Fresh,
                // With its chains it is that one as well: rules that came by other means are told from those of before.
                None if anchor.is_of_something() => AnchorStanding::Ahead,
                None => AnchorStanding::Fresh,
            },
            (guards, true) => AnchorStanding::Lost { guards },
            (guards, false) => AnchorStanding::Foreign { guards },
        };
    }
    if let Some(why) = older(anchor, seen) {
        return older_or_rewritten(anchor, seen, why);
    }
    if let Some(why) = renamed(anchor, seen) {
        return AnchorStanding::Renamed(why);
    }
    let ended = |tenant| seen.chains.get(tenant).map_or(0, |now| now.head.seq);
    let mut is_same = seen.epoch == anchor.epoch;
    is_same &= anchor.chains.iter().all(|(tenant, before)| ended(tenant) == before.seq);
    is_same &= seen.chains.keys().all(|tenant| anchor.chains.contains_key(tenant));
    if is_same { AnchorStanding::Same } else { AnchorStanding::Ahead }
}

/// What shows that a store is not as far as it was.
fn older(anchor: &Anchor, seen: &StoreSeen) -> Option<String> {
    if seen.epoch < anchor.epoch {
        let (has, had) = (seen.epoch, anchor.epoch);
        return Some(format!("it has seen {has} changes of rules, and there were {had}"));
    }
    anchor.chains.keys().find_map(|tenant| anchor.differs(tenant, seen.chains.get(tenant)))
}

/// A store that is not as far as it was, for the reason `why`; or one where only the last row of a chain is another one:
/// no copy of before has as many rows.
fn older_or_rewritten(anchor: &Anchor, seen: &StoreSeen, why: String) -> AnchorStanding {
    let ends = || {
        anchor.chains.iter().filter_map(|(tenant, before)| {
            let now = seen.chains.get(tenant)?;
            let is_other = now.anchored.is_some_and(|hash| hash.to_hex() != before.hash);
            Some((now.head.seq.cmp(&before.seq), is_other))
        })
    };
    let are_there = ends().count() == anchor.chains.len();
    let is_as_far = are_there && seen.epoch >= anchor.epoch && ends().all(|(end, _)| end.is_ge());
    let is_rewritten = ends().any(|end| end == (Ordering::Equal, true));
    if is_as_far && is_rewritten { AnchorStanding::Rewritten(why) } else { AnchorStanding::Older(why) }
}

/// The first tenant that has another name, or whose name another one has.
fn renamed(anchor: &Anchor, seen: &StoreSeen) -> Option<String> {
    let is_taken = |id: &TenantId, name: &String| seen.tenants.iter().any(|(other, own)| own == name && other != id);
    let of = |(id, name): (&TenantId, &String)| {
        let before = name.escape_debug();
        match seen.tenants.get(id) {
            Some(now) if now != name => Some(format!("tenant {id} was `{before}` and is `{}`", now.escape_debug())),
            Some(_) => None,
            // Whoever is gone has no rules, and that is told of each of them.
            None => is_taken(id, name).then(|| format!("`{before}` was tenant {id} and is another one")),
        }
    };
    anchor.tenants.iter().find_map(of)
}

/// The rules as they were left.
struct Left {
    rules: BTreeMap<HookId, AnchoredRule>,
    /// Those that are not so.
    doubts: Vec<RuleDoubt>,
    /// The entries that leave some of these in doubt, by their chains.
    unproven: BTreeMap<TenantId, BTreeSet<u64>>,
}

/// Whether `change` counts only with a seal: it came after seals began. Who has no key holds none for good.
fn needs_seal(known: Option<&Anchor>, change: &RuleEntry) -> bool {
    let Some(known) = known.filter(|known| known.is_sealed) else { return false };
    let (_, seq) = change.order;
    known.chains.get(&change.tenant).is_none_or(|chain| seq > chain.unsealed_to)
}

fn rules(known: Option<&Anchor>, seen: &StoreSeen) -> Left {
    let mut rules = known.map(|known| known.rules.clone()).unwrap_or_default();
    let mut unsaid: BTreeSet<&HookId> = BTreeSet::new();
    // The newest entry about each rule, where it proves nothing.
    let mut unproven: BTreeMap<&HookId, &RuleEntry> = BTreeMap::new();
    let mut changes: Vec<&RuleEntry> = seen.changes.iter().collect();
    changes.sort_by_key(|change| change.order);
    for change in changes {
        let RuleEntry { hook, left, .. } = change;
        unsaid.remove(hook);
        if change.proof != ChangeProof::Sealed && needs_seal(known, change) {
            unproven.insert(hook, change);
            continue;
        }
        unproven.remove(hook);
        match left {
            RuleLeft::As(rule) => drop(rules.insert(hook.clone(), AnchoredRule::clone(rule))),
            RuleLeft::Gone => drop(rules.remove(hook)),
            RuleLeft::Unsaid => {
                rules.remove(hook);
                unsaid.insert(hook);
            }
        }
    }
    let mut doubts = Vec::new();
    let mut entries: BTreeMap<TenantId, BTreeSet<u64>> = BTreeMap::new();
    let mut doubt = |hook: &HookId, rule: &AnchoredRule, why: DoubtKind| {
        let entry = unproven.get(hook).filter(|_| !matches!(why, DoubtKind::Unreadable(_)));
        let why = match entry.map(|entry| entry.proof) {
            Some(ChangeProof::OtherKey) => DoubtKind::OtherKey,
            Some(ChangeProof::Unsealed) => DoubtKind::Unsealed,
            Some(ChangeProof::Sealed) | None => why,
        };
        if let Some(entry) = entry {
            entries.entry(entry.tenant.clone()).or_default().insert(entry.order.1);
        }
        doubts.push(RuleDoubt { hook: hook.clone(), rule: rule.clone(), why });
    };
    for odd in &seen.unreadable {
        let rule = rules.get(&odd.hook).unwrap_or(&odd.rule);
        doubt(&odd.hook, rule, odd.why.clone());
    }
    for (hook, row) in &seen.rules {
        match rules.get(hook) {
            Some(left) if left.digest == row.digest => {}
            // Whichever of the two acts, its row is not what somebody meant.
            Some(left) => doubt(hook, &AnchoredRule { acts: left.acts || row.acts, ..left.clone() }, DoubtKind::Edited),
            // Where nothing is known, what is there counts.
            None if known.is_none() || unsaid.contains(hook) => drop(rules.insert(hook.clone(), row.clone())),
            None => doubt(hook, row, DoubtKind::Foreign),
        }
    }
    let is_there = |hook: &HookId| seen.rules.contains_key(hook) || seen.unreadable.iter().any(|odd| odd.hook == *hook);
    for (hook, left) in rules.iter().filter(|(hook, _)| !is_there(hook)) {
        doubt(hook, left, DoubtKind::Missing);
    }
    Left { rules, doubts, unproven: entries }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{ChainHead, Hash};
    use crate::checkpoint::CheckpointKind;
    use crate::rule::HookScope;

    fn rule(digest: &str) -> AnchoredRule {
        AnchoredRule {
            tenant_id: TenantId::from("t"),
            name: "r".into(),
            event: Some(CheckpointKind::PreToolUse),
            matcher: String::new(),
            scope: HookScope::Tenant,
            agent_ids: Vec::new(),
            acts: true,
            digest: digest.into(),
        }
    }

    fn off(digest: &str) -> AnchoredRule {
        AnchoredRule { acts: false, ..rule(digest) }
    }

    fn hash(text: &str) -> Hash {
        Hash::of(&Hash::ZERO, text)
    }

    /// A store of the id `s` at row 5 and epoch 2, with these rules.
    fn seen(rules: &[(&str, AnchoredRule)]) -> StoreSeen {
        let head = ChainHead { seq: 5, hash: hash("5") };
        let chain = ChainSeen { head, anchored: Some(hash("5")), cut: 0, signed: 5 };
        StoreSeen {
            store_id: "s".into(),
            epoch: 2,
            chains: [(TenantId::from("t"), chain)].into(),
            rules: rules.iter().map(|(id, rule)| (HookId::from(*id), rule.clone())).collect(),
            ..StoreSeen::default()
        }
    }

    fn anchor(rules: &[(&str, AnchoredRule)]) -> Anchor {
        compare(None, &seen(rules)).next.expect("what nobody knew is taken as it is")
    }

    fn ended(mut seen: StoreSeen, seq: u64, anchored: Option<&str>) -> StoreSeen {
        let chain = seen.chains.get_mut(&TenantId::from("t")).unwrap();
        chain.head = ChainHead { seq, hash: hash(&seq.to_string()) };
        chain.anchored = anchored.map(hash);
        seen
    }

    #[test]
    fn another_name_of_the_store_hides_no_chain_that_was_cut() {
        let one = [("a", rule("1"))];
        let known = anchor(&one);
        let named = |seen: StoreSeen| StoreSeen { store_id: "other".into(), ..seen };
        let check = |seen: &StoreSeen| compare(Some(&known), seen).standing;
        assert_eq!(check(&named(seen(&one))), AnchorStanding::Ahead, "its chain and its guards are there");
        for cut in [ended(seen(&one), 4, None), ended(seen(&one), 9, Some("x"))] {
            let standing = check(&named(cut));
            assert!(matches!(standing, AnchorStanding::Older(_)), "{standing:?}");
        }
        // A new store where nothing was guarded.
        let nothing = anchor(&[]);
        let new = StoreSeen { store_id: "other".into(), ..StoreSeen::default() };
        let found = compare(Some(&nothing), &new);
        let why = "it has seen 0 changes of rules, and there were 2";
        assert_eq!((found.standing, found.replaced), (AnchorStanding::Fresh, Some(why.into())));
        let forged = compare(Some(&nothing), &named(ended(seen(&[]), 9, Some("x"))));
        let why = "row 5 of its audit chain of t is another one";
        assert_eq!((forged.standing, forged.replaced), (AnchorStanding::Fresh, Some(why.into())));
        assert_eq!(compare(Some(&known), &named(seen(&one))).replaced, None, "all of it is there");
    }

    #[test]
    fn a_tenant_that_has_another_name_shuts_the_store() {
        let named = |names: &[(&str, &str)]| StoreSeen {
            tenants: names.iter().map(|(id, name)| (TenantId::from(*id), (*name).to_owned())).collect(),
            ..seen(&[("a", rule("1"))])
        };
        let known = compare(None, &named(&[("1", "default"), ("2", "acme")])).next.unwrap();
        let check = |names: &[(&str, &str)]| compare(Some(&known), &named(names)).standing;
        let renamed = |why: &str| AnchorStanding::Renamed(why.into());
        assert_eq!(check(&[("1", "default"), ("2", "acme"), ("3", "new")]), AnchorStanding::Same);
        assert_eq!(check(&[("1", "default")]), AnchorStanding::Same, "its rules are missed");
        assert_eq!(check(&[("1", "acme"), ("2", "default")]), renamed("tenant 1 was `default` and is `acme`"));
        assert_eq!(check(&[("2", "acme"), ("3", "default")]), renamed("`default` was tenant 1 and is another one"));
        let before = Anchor { tenants: BTreeMap::new(), ..known.clone() };
        assert_eq!(compare(Some(&before), &named(&[("1", "x")])).standing, AnchorStanding::Same, "a home of before");
    }

    #[test]
    fn a_store_stands_as_its_end_and_its_guards_say() {
        use AnchorStanding::{Ahead, Foreign, Fresh, Lost, Same};
        let one = [("a", rule("1"))];
        let check = |rules: &[(&str, AnchoredRule)], seen: &StoreSeen| compare(Some(&anchor(rules)), seen).standing;
        let older = |standing| matches!(standing, AnchorStanding::Older(_));
        let other = |rules: &[(&str, AnchoredRule)]| StoreSeen { store_id: "other".into(), ..seen(rules) };
        assert_eq!(compare(None, &seen(&one)).standing, Fresh);
        assert_eq!(check(&one, &seen(&one)), Same);
        assert_eq!(check(&one, &ended(seen(&one), 9, Some("5"))), Ahead);
        assert_eq!(check(&one, &ended(seen(&one), 9, None)), Ahead, "retention has cut the row");
        assert!(older(check(&one, &ended(seen(&one), 4, None))));
        assert!(older(check(&one, &ended(seen(&one), 9, Some("another")))), "it went on from an older copy");
        let rewritten = |standing| matches!(standing, AnchorStanding::Rewritten(_));
        assert!(rewritten(check(&one, &ended(seen(&one), 5, Some("another")))), "the newest row is another one");
        let fewer = StoreSeen { epoch: 1, ..ended(seen(&one), 5, Some("another")) };
        assert!(older(check(&one, &fewer)), "it has seen fewer changes as well");
        let emptied = |anchored_cut| {
            let mut known = anchor(&one);
            known.chains.get_mut(&TenantId::from("t")).unwrap().cut = anchored_cut;
            let mut now = seen(&one);
            now.chains.get_mut(&TenantId::from("t")).unwrap().cut = 5;
            compare(Some(&known), &now).standing
        };
        assert!(older(emptied(0)), "only a checkpoint says that there were rows");
        assert_eq!(emptied(5), Same, "retention has cut all of them");
        assert!(older(check(&one, &StoreSeen { chains: BTreeMap::new(), ..seen(&one) })));
        assert!(older(check(&one, &StoreSeen { epoch: 1, ..seen(&one) })));
        assert_eq!(check(&one, &other(&[])), Lost { guards: 1 });
        assert_eq!(check(&one, &other(&[("b", rule("2"))])), Foreign { guards: 1 });
        assert_eq!(check(&one, &other(&one)), Ahead, "its guards are all there");
        assert_eq!(check(&[("a", off("1"))], &other(&[])), Ahead, "no guard is lost, and its chain is there");
        assert_eq!(check(&[], &other(&[])), Ahead);
        let new = StoreSeen { store_id: "new".into(), ..StoreSeen::default() };
        let empty = compare(None, &StoreSeen::default()).next.unwrap();
        assert_eq!(compare(Some(&empty), &new).standing, Fresh, "nothing was there");
        let more = compare(Some(&anchor(&one)), &other(&[("a", rule("1")), ("b", rule("2"))])).doubts;
        let more: Vec<_> = more.into_iter().map(|doubt| (doubt.hook, doubt.why)).collect();
        assert_eq!(more, [(HookId::from("b"), DoubtKind::Foreign)], "another name of the store lets no rule in");
    }

    #[test]
    fn signatures_that_were_there_are_missed_until_what_is_there_counts() {
        let one = [("a", rule("1"))];
        let signed = |seq: u64, signed: u64| {
            let mut seen = ended(seen(&one), seq, Some("5"));
            seen.chains.get_mut(&TenantId::from("t")).unwrap().signed = signed;
            seen
        };
        let check = |known: &Anchor, seen: &StoreSeen| {
            let found = compare(Some(known), seen);
            (found.unsigned, found.next.unwrap().chains[&TenantId::from("t")].signed)
        };
        let known = anchor(&one);
        let gone = |now: &str| {
            vec![format!(
                "signatures of the audit chain of t were deleted by something other than Pintle: it was signed up to row \
                 5, and is {now}"
            )]
        };
        assert_eq!(check(&known, &signed(9, 5)), (vec![], Some(5)));
        assert_eq!(check(&known, &signed(9, 8)), (vec![], Some(8)), "another program signed it");
        assert_eq!(check(&known, &signed(9, 99)), (vec![], Some(9)), "there is no such row");
        assert_eq!(check(&known, &signed(9, 4)), (gone("up to row 4"), Some(5)), "it stays missed");
        assert_eq!(check(&known, &signed(9, 0)), (gone("not at all"), Some(5)));
        assert_eq!(check(&known.without_signatures(), &signed(9, 4)), (vec![], Some(4)), "as of a home of before");
    }

    fn entry(order: u64, proof: ChangeProof, left: RuleLeft) -> RuleEntry {
        RuleEntry { order: (order, order), tenant: TenantId::from("t"), proof, hook: HookId::from("a"), left }
    }

    #[test]
    fn an_entry_counts_only_with_a_seal_once_there_are_seals() {
        use ChangeProof::{OtherKey, Sealed, Unsealed};
        let written = |digest: &str| RuleLeft::As(Box::new(rule(digest)));
        let one = |digest| vec![("a", rule(digest))];
        let keyed = |now: &[(&str, AnchoredRule)]| StoreSeen { is_keyed: true, ..ended(seen(now), 9, Some("5")) };
        let known = compare(None, &StoreSeen { is_keyed: true, ..seen(&one("1")) }).next.unwrap();
        let chain = |anchor: &Anchor| anchor.chains[&TenantId::from("t")].clone();
        assert!(known.is_sealed && chain(&known).unsealed_to == 5, "what is there when seals begin needs none");
        let check = |known: &Anchor, changes: &[RuleEntry], seen: StoreSeen| {
            let found = compare(Some(known), &StoreSeen { changes: changes.to_vec(), ..seen });
            let next = found.next.unwrap();
            let digests: Vec<_> = next.rules.values().map(|rule| rule.digest.clone()).collect();
            let unproven: Vec<u64> = chain(&next).unproven.into_iter().collect();
            (found.doubts.into_iter().map(|doubt| doubt.why).collect::<Vec<_>>(), digests.join(" "), unproven)
        };
        let ok = |digest: &str| (vec![], digest.to_owned(), vec![]);
        let bad = |why, digest: &str, row| (vec![why], digest.to_owned(), vec![row]);
        let sealed = entry(6, Sealed, written("2"));
        let forged = |proof| entry(7, proof, written("3"));
        assert_eq!(check(&known, std::slice::from_ref(&sealed), keyed(&one("2"))), ok("2"));
        assert_eq!(check(&known, &[forged(Unsealed)], keyed(&one("3"))), bad(DoubtKind::Unsealed, "1", 7));
        assert_eq!(check(&known, &[forged(OtherKey)], keyed(&one("3"))), bad(DoubtKind::OtherKey, "1", 7));
        assert_eq!(check(&known, &[sealed.clone(), forged(OtherKey)], keyed(&one("3"))).2, [7]);
        let gone = entry(7, Unsealed, RuleLeft::Gone);
        assert_eq!(check(&known, &[gone], keyed(&[])), bad(DoubtKind::Unsealed, "1", 7), "deleted, with an entry");
        let unsaid = entry(7, Unsealed, RuleLeft::Unsaid);
        assert_eq!(check(&known, &[unsaid], keyed(&one("3"))), bad(DoubtKind::Unsealed, "1", 7));
        assert_eq!(check(&known, &[forged(OtherKey)], keyed(&one("1"))), ok("1"), "the row is as it was left");
        assert_eq!(check(&known, &[forged(OtherKey), entry(8, Sealed, written("3"))], keyed(&one("3"))), ok("3"));
        assert_eq!(check(&known, &[entry(5, Unsealed, written("3"))], keyed(&one("3"))), ok("3"), "of before seals");
        let elsewhere = RuleEntry { tenant: TenantId::from("u"), ..entry(1, Unsealed, written("3")) };
        assert_eq!(check(&known, &[elsewhere], keyed(&one("3"))).0, [DoubtKind::Unsealed], "in a new chain");

        let keyless = StoreSeen { is_keyed: false, ..keyed(&one("3")) };
        assert_eq!(check(&known, &[forged(Unsealed)], keyless).0, [DoubtKind::Unsealed], "who has no key takes none");
        let before = Anchor { is_sealed: false, ..known.clone() };
        assert_eq!(check(&before, &[forged(Unsealed)], keyed(&one("3"))), ok("3"), "a home of before");
        let next = compare(Some(&before), &keyed(&one("1"))).next.unwrap();
        assert!(next.is_sealed && chain(&next).unsealed_to == 9, "from now on there are seals");
        let next = compare(Some(&next), &ended(keyed(&one("1")), 12, Some("9"))).next.unwrap();
        assert_eq!(chain(&next).unsealed_to, 9, "the bound stays where it was");
    }

    #[test]
    fn a_rule_is_as_it_was_left_or_in_doubt() {
        use DoubtKind::{Edited, Foreign, Missing, Unreadable};
        let left = |order, left| entry(order, ChangeProof::Unsealed, left);
        let written = |digest: &str| RuleLeft::As(Box::new(rule(digest)));
        let check = |known: &[(&str, AnchoredRule)], changes: &[RuleEntry], now: &[(&str, AnchoredRule)]| {
            let seen = StoreSeen { changes: changes.to_vec(), ..ended(seen(now), 7, Some("5")) };
            let found = compare(Some(&anchor(known)), &seen);
            let known = found.next.unwrap().rules.into_values().map(|rule| rule.digest).collect::<Vec<_>>().join(" ");
            (found.doubts.into_iter().map(|doubt| (doubt.why, doubt.rule.acts)).collect::<Vec<_>>(), known)
        };
        let one = |digest| [("a", rule(digest))];
        assert_eq!(check(&one("1"), &[], &one("1")), (vec![], "1".into()));
        assert_eq!(check(&one("1"), &[], &one("2")), (vec![(Edited, true)], "1".into()));
        assert_eq!(check(&one("1"), &[], &[("a", off("2"))]), (vec![(Edited, true)], "1".into()));
        assert_eq!(check(&one("1"), &[], &[]), (vec![(Missing, true)], "1".into()));
        assert_eq!(check(&[], &[], &one("1")), (vec![(Foreign, true)], String::new()));
        assert_eq!(check(&one("1"), &[left(3, written("2"))], &one("2")), (vec![], "2".into()));
        assert_eq!(check(&one("1"), &[left(3, written("2"))], &one("1")).0, [(Edited, true)], "put back");
        assert_eq!(check(&one("1"), &[left(4, written("3")), left(3, written("2"))], &one("3")).0, []);
        assert_eq!(check(&one("1"), &[left(3, RuleLeft::Gone)], &[]), (vec![], String::new()));
        assert_eq!(check(&one("1"), &[left(3, RuleLeft::Gone)], &one("1")).0, [(Foreign, true)], "brought back");
        assert_eq!(check(&one("1"), &[left(3, RuleLeft::Unsaid)], &one("2")), (vec![], "2".into()));
        assert_eq!(
            check(&one("1"), &[left(3, RuleLeft::Unsaid), left(4, written("2"))], &one("3")).0,
            [(Edited, true)]
        );

        let odd = RuleDoubt { hook: HookId::from("a"), rule: off("?"), why: Unreadable("no".into()) };
        let found = compare(Some(&anchor(&one("1"))), &StoreSeen { unreadable: vec![odd], ..seen(&[]) });
        let doubts: Vec<_> = found.doubts.into_iter().map(|doubt| (doubt.why, doubt.rule.digest)).collect();
        assert_eq!(doubts, [(Unreadable("no".into()), "1".into())], "it refuses where it did before");
    }
}
