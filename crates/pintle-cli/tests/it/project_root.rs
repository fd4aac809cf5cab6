//! `exec` in a workspace whose root holds the configuration, as most projects have it.

use pintle_domain::json::json;

use super::env::TestEnv;
use super::run::DONE;

#[test]
fn commands_work_at_the_top_level_and_the_configuration_is_out_of_reach() {
    let env = TestEnv::new();
    let command = "touch new && mkdir made && rm old && mv made kept && echo worked; \
                   echo evil >>pintle.toml; mv pintle.toml other; rm -f pintle.toml; mv kept pintle.toml; \
                   cat pintle.toml | head -1; exit 3";
    let call = json!({"tool_calls": [{"name": "exec", "arguments": {"command": command}}]});
    env.write("here/replies.json", &format!("{{\"replies\": [{call}, {DONE}]}}"));
    env.write("here/old", "old");
    let text = "[providers.scripted]\nkind = 'scripted'\nscript = 'replies.json'\n\
                [agents.main]\nmodel = 'scripted/test'\ntools = ['exec']\n";
    let config = env.found_config(text);
    let seen = env.pintle(&["-c", config.to_str().unwrap(), "run", "--quiet", "--session", "s", "go"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let result = {
        let shown = env.raw(&["-c", config.to_str().unwrap(), "sessions", "show", "s", "--json"]);
        let shown: pintle_domain::json::Value = serde_json::from_str(&shown).unwrap();
        let messages = shown["messages"].as_array().unwrap().clone();
        let tool = messages.iter().find(|message| message["role"] == "tool").unwrap();
        tool["content"].as_str().unwrap().to_owned()
    };
    assert!(result.contains("worked\n") && result.contains("[providers.scripted]\n"), "{result}");
    assert!(result.contains("commands cannot change them: pintle.toml, replies.json."), "{result}");
    let left = |name: &str| env.path("here").join(name).exists();
    assert_eq!([left("new"), left("kept"), left("old"), left("other")], [true, true, false, false], "{result}");
    assert_eq!(std::fs::read_to_string(config).unwrap(), text);
}
