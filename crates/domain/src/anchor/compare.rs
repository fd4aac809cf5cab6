//! The rule that says what became of a store.

use std::collections::{BTreeMap, BTreeSet};

use super::known::{Anchor, AnchoredChain, AnchoredRule};
use super::seen::{ChainSeen, DoubtKind, RuleDoubt, RuleEntry, RuleLeft, StoreSeen};
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
            Self::Older(_) | Self::Renamed(_) | Self::Foreign { .. } | Self::Lost { .. } => false,
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
    /// What is known from now on; nothing new where the whole store is in doubt.
    pub next: Option<Anchor>,
}

/// Compares what was known of a store with what is found there.
pub fn compare(anchor: Option<&Anchor>, seen: &StoreSeen) -> Comparison {
    let standing = standing(anchor, seen);
    if !standing.is_good() {
        return Comparison { standing, doubts: seen.unreadable.clone(), next: None };
    }
    let known = anchor.filter(|_| standing != AnchorStanding::Fresh);
    let (rules, doubts) = rules(known, seen);
    let chain = |(tenant, chain): (&TenantId, &ChainSeen)| {
        let cut = known.and_then(|known| known.chains.get(tenant)).map_or(chain.cut, |before| before.cut);
        let (seq, hash) = (chain.head.seq, chain.head.hash.to_hex());
        (tenant.clone(), AnchoredChain { seq, hash, read_to: seq, cut })
    };
    let next = Anchor {
        store_id: seen.store_id.clone(),
        epoch: seen.epoch,
        chains: seen.chains.iter().map(chain).collect(),
        rules,
        tenants: seen.tenants.clone(),
    };
    Comparison { standing, doubts, next: Some(next) }
}

fn standing(anchor: Option<&Anchor>, seen: &StoreSeen) -> AnchorStanding {
    let Some(anchor) = anchor else { return AnchorStanding::Fresh };
    if anchor.store_id != seen.store_id {
        let is_there = |rule: &AnchoredRule| seen.rules.values().any(|own| own.digest == rule.digest);
        let guards = anchor.guards().filter(|rule| !is_there(rule)).count();
        // A store with every guard of the one that was known is that one, whatever it calls itself.
        let is_it = anchor.guards().next().is_some();
        return match (guards, seen.rules.is_empty() && seen.unreadable.is_empty()) {
            (0, _) => older(anchor, seen).filter(|_| is_it).map_or(AnchorStanding::Fresh, AnchorStanding::Older),
            (guards, true) => AnchorStanding::Lost { guards },
            (guards, false) => AnchorStanding::Foreign { guards },
        };
    }
    if let Some(why) = older(anchor, seen) {
        return AnchorStanding::Older(why);
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
    for (tenant, before) in &anchor.chains {
        let now = seen.chains.get(tenant);
        let end = now.map_or(0, |now| now.head.seq);
        if end < before.seq {
            let had = before.seq;
            return Some(format!("its audit chain of {tenant} ends at row {end}, and there were {had}"));
        }
        if now.and_then(|now| now.anchored).is_some_and(|hash| hash.to_hex() != before.hash) {
            return Some(format!("row {} of its audit chain of {tenant} is another one", before.seq));
        }
        // Rows that went in their time are known to have gone: whoever cuts a chain says up to where.
        if now.is_some_and(|now| now.is_empty() && now.cut > before.cut) {
            return Some(format!("its audit chain of {tenant} is empty, and nobody has cut it so far"));
        }
    }
    None
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

type Rules = BTreeMap<HookId, AnchoredRule>;

/// The rules as they were left, and those that are not so.
fn rules(known: Option<&Anchor>, seen: &StoreSeen) -> (Rules, Vec<RuleDoubt>) {
    let mut rules = known.map(|known| known.rules.clone()).unwrap_or_default();
    let mut unproven: BTreeSet<&HookId> = BTreeSet::new();
    let mut changes: Vec<&RuleEntry> = seen.changes.iter().collect();
    changes.sort_by_key(|change| change.order);
    for RuleEntry { hook, left, .. } in changes {
        unproven.remove(hook);
        match left {
            RuleLeft::As(rule) => drop(rules.insert(hook.clone(), AnchoredRule::clone(rule))),
            RuleLeft::Gone => drop(rules.remove(hook)),
            RuleLeft::Unsaid => {
                rules.remove(hook);
                unproven.insert(hook);
            }
        }
    }
    let mut doubts = Vec::new();
    let mut doubt = |hook: &HookId, rule: &AnchoredRule, why: DoubtKind| {
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
            None if known.is_none() || unproven.contains(hook) => drop(rules.insert(hook.clone(), row.clone())),
            None => doubt(hook, row, DoubtKind::Foreign),
        }
    }
    let is_there = |hook: &HookId| seen.rules.contains_key(hook) || seen.unreadable.iter().any(|odd| odd.hook == *hook);
    for (hook, left) in rules.iter().filter(|(hook, _)| !is_there(hook)) {
        doubt(hook, left, DoubtKind::Missing);
    }
    (rules, doubts)
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
        let chain = ChainSeen { head, anchored: Some(hash("5")), cut: 0 };
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
        assert_eq!(check(&named(seen(&one))), AnchorStanding::Fresh);
        for cut in [ended(seen(&one), 4, None), ended(seen(&one), 9, Some("x"))] {
            let standing = check(&named(cut));
            assert!(matches!(standing, AnchorStanding::Older(_)), "{standing:?}");
        }
        // A new store where nothing was guarded.
        let nothing = anchor(&[]);
        let new = StoreSeen { store_id: "other".into(), ..StoreSeen::default() };
        assert_eq!(compare(Some(&nothing), &new).standing, AnchorStanding::Fresh);
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
        assert_eq!(check(&one, &other(&one)), Fresh, "its guards are all there");
        assert_eq!(check(&[("a", off("1"))], &other(&[])), Fresh, "no guard is lost");
        assert_eq!(check(&[], &other(&[])), Fresh);
    }

    #[test]
    fn a_rule_is_as_it_was_left_or_in_doubt() {
        use DoubtKind::{Edited, Foreign, Missing, Unreadable};
        let left = |order, left| RuleEntry { order: (order, order), hook: HookId::from("a"), left };
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
