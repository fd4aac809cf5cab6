//! Whose turns a hook is about.

use super::*;
use crate::hook::Scope;
use crate::id::AgentId;

/// Whether a gate for the turns of `scope` sees a call of the first of `agents`, which works for the others.
fn sees(scope: &[&str], agents: &[&str]) -> bool {
    let hooks = vec![hook("rule", &[AtPreToolUse]).of(scope)];
    let script = Script::default().says("rule", Verdict::<PreToolUse>::Deny("no".into()));
    let concluded = conclude(hooks, Agent::acting_for(agents), pre_tool_use(), script);
    match &concluded.records.to_vec()[..] {
        [Record { outcome: HookOutcome::Said { word: VerdictKind::Deny, .. }, .. }] => true,
        [Record { outcome: HookOutcome::NotRun(crate::record::NotRun::OutOfScope), .. }] => false,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_rule_of_an_agent_holds_for_whoever_works_for_it() {
    let check = |agents: &[&str], expected| assert_eq!(sees(&["main"], agents), expected, "{agents:?}");
    check(&["main"], true);
    check(&["helper", "main"], true);
    check(&["third", "second", "first", "main"], true);
    check(&["other"], false);
    check(&["helper", "other"], false);
    // A host that does not say who acts is covered.
    check(&[], true);
}

#[test]
fn a_rule_of_a_sub_agent_holds_neither_for_its_parent_nor_beside_it() {
    assert!(sees(&["a"], &["a", "main"]));
    assert!(sees(&["a"], &["below", "a", "main"]));
    assert!(!sees(&["a"], &["main"]));
    assert!(!sees(&["a"], &["b", "main"]));
    assert!(!sees(&["a"], &["below", "b", "main"]));
    assert!(sees(&["a", "b"], &["b", "main"]));
    assert!(!sees(&[], &["main"]), "a rule for nobody");
}

#[test]
fn who_is_out_of_scope_is_recorded_and_neither_asked_nor_broken() {
    let broken = HookState::Broken(Fault::CannotStart { cause: "bad entry".into() });
    let hooks = vec![
        hook("a", &[AtBeforeTool]).of(&["other"]).state(broken),
        hook("b", &[AtBeforeTool]).of(&["other"]).state(HookState::Disabled),
        hook("c", &[AtBeforeTool]).of(&["other"]).matching("^read$"),
        hook("d", &[AtBeforeTool]).of(&["main"]),
    ];
    let roster = Arc::new(Roster::new(hooks));
    let mut chain = Chain::new(roster.clone(), Agent::acting_for(&["main"]), before_tool());
    let asked = Script::default().play(&mut chain, &roster);
    assert_eq!(asked.len(), 1);
    let concluded = chain.conclude();
    assert_eq!(ruled(&concluded.ruling), "proceed");
    assert_eq!(
        lines(&concluded.records),
        "before_tool a not run, outofscope\nbefore_tool b not run, disabled\n\
         before_tool c not run, outofscope\nbefore_tool d continue"
    );
}

/// Every agent of a tree with two children each, as `[itself, its parent, … the root]`; names tell the way.
fn tree(depth: usize) -> Vec<Vec<String>> {
    let mut all = vec![vec!["r".to_owned()]];
    let mut level = all.clone();
    for _ in 0..depth {
        let child = |line: &Vec<String>, way: char| [vec![format!("{}{way}", line[0])], line.clone()].concat();
        level = level.iter().flat_map(|line| [child(line, 'a'), child(line, 'b')]).collect();
        all.extend(level.clone());
    }
    all
}

#[test]
fn in_every_tree_to_depth_three_a_scope_is_what_is_below_it() {
    let tree = tree(3);
    assert_eq!(tree.len(), 15);
    // Every set of up to two agents, at every agent.
    for (first, second) in tree.iter().flat_map(|a| tree.iter().map(move |b| (&a[0], &b[0]))) {
        let scope = Scope::Agents([first, second].map(|name| AgentId::from(name.as_str())).into());
        for line in &tree {
            let agents: Vec<AgentId> = line.iter().map(|name| AgentId::from(name.as_str())).collect();
            let below = line[0].starts_with(first.as_str()) || line[0].starts_with(second.as_str());
            assert_eq!(scope.covers(&agents), below, "{first} {second} at {line:?}");
        }
    }
}
