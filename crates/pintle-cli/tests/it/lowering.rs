//! What a configuration says of models that bind their thoughts, down to the requests and the records.

use pintle_domain::json::json;

use crate::rules_in_turns::stage::{Model, calls, says, whole_turn};

const SKILL: &str = r#"{"hooks": [{"name": "each", "file": "each.md", "timing": "before_each_agent", "role": "system", "persistent": false}]}"#;

/// How often the second call of a turn is told of a text that went in once for each call, and what is kept of it.
fn second_call(agent: &str, capabilities: &str) -> (usize, String) {
    let lists = calls(&[("c1", "list_dir", json!({"path": "."}))]);
    let model = Model::giving(vec![lists, says("done")]);
    let env = model.env(
        &format!("skills = ['brief']\n{agent}\n[providers.here.capabilities]\nmid_system = 'none'\n{capabilities}\n"),
        "",
    );
    env.write("config/pintle/skills/brief/hooks/hooks.json", SKILL);
    env.write("config/pintle/skills/brief/hooks/each.md", "be brief");
    assert_eq!(whole_turn(&env, "go"), "done\n");
    let kept = env.raw(&["why", "--last", "--json"]);
    assert!(kept.contains("#1 as system, 8 bytes") && kept.contains("\"snapshot "), "{kept}");
    let at = kept.find("#1 taken out").expect("it is kept that it was taken out");
    let said = kept[at..].split('"').next().unwrap_or_default().to_owned();
    (model.asked(1).join("\n").matches("be brief").count(), said)
}

#[test]
fn a_text_that_left_is_sent_again_only_where_the_configuration_says_so() {
    let gone = || (1, "#1 taken out, seen by call 1".to_owned());
    let still = |fate: &str| (2, format!("#1 taken out, seen by call 1; {fate} on the wire"));
    assert_eq!(second_call("", ""), gone());
    assert_eq!(second_call("", "prefix_bound_reasoning = true"), still("frozen"));
    let marked = "prefix_bound_reasoning = true\nuser_after_tool = true\nturn_scoped = 'fades'";
    assert_eq!(second_call("lowering = { removal = 'freeze' }", marked).1, still("expired").1);
    assert_eq!(second_call("lowering = { removal = 'strip_reasoning' }", marked), gone());
}
