//! What the redactor takes out is nowhere afterwards; without it the same places have it.

use std::path::Path;

use jiff::Timestamp;
use pintle_domain::id::{TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Value, json};
use pintle_domain::session::JournalEntry;
use pintle_domain::store::SessionKey;
use pintle_domain::tool::{Digest, ToolCall};
use pintle_domain::turn::Fact;
use pintle_rules::builtin::builtins;

use crate::env::TestEnv;
use crate::rules_in_turns::stage::{Model, command, runs, says, script};

const MAIL: &str = "carol@example.org";
const PHONE: &str = "15551234567";

/// Writes down all that it is told and asked, and has no opinion.
const SEES: &str = r#"while IFS= read -r line; do
  printf '%s\n' "$line" >>observed
  id=${line#*'"id":'}; id=${id%%,*}
  case $line in
    *'"method":"hook.approve_tool"'*) r='{"approved":true}' ;;
    *'"id":'*) r='{}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done
"#;

/// A process hook at the stages `intercept`, which is told of everything.
fn observer(intercept: &str) -> String {
    format!(
        "[hooks.processes.sees]\nenabled = true\ncommand = ['sh', 'sees.sh']\nintercept = {intercept}\n\
         observe = ['all']\npair = false\n"
    )
}

/// What commands do in the tests below: keep their payload, and a copy of the whole state as it is then.
const COPIES: &str = "cat >>payloads; cp -r ../data/pintle ../copies/$$ || :";

/// Rules that look at everything, behind the redactor.
fn onlookers() -> String {
    let events = ["session_start", "user_prompt_submit", "pre_tool_use", "post_tool_use", "stop"];
    let mut rules: String = events.map(|event| command(&format!("sees-{event}"), event, "", COPIES)).concat();
    let refuse =
        |what: &str| format!("if ({what}.includes('stop')) return {{ decision: 'block', reason: `no: ${{{what}}}` }};");
    let stamp = "return { decision: 'allow', updatedInput: { rawInput: `${event.rawInput} (seen)` } };";
    let more = "priority = 10\nmay_rewrite = true";
    rules += &script("stamps", "user_prompt_submit", more, &format!("{} {stamp}", refuse("event.rawInput")));
    let stamp =
        "return { decision: 'allow', updatedInput: { toolInput: { command: `${event.toolInput.command} # seen` } } };";
    rules + &script("stamps-calls", "pre_tool_use", more, &format!("{} {stamp}", refuse("event.toolInput.command")))
}

/// Surroundings with onlookers everywhere, with or without the redactor.
fn stage(model: &Model, intercept: &str, redacts: bool) -> TestEnv {
    let env = model.env(&format!("tools = ['exec']\n{}", observer(intercept)), &onlookers());
    env.write("config/pintle/sees.sh", SEES);
    std::fs::create_dir(env.path("copies")).unwrap();
    if redacts {
        let redactor = builtins().into_iter().find(|builtin| builtin.id == "pii-redactor").expect("it is shipped");
        for row in redactor.rows(Timestamp::now()) {
            let seen = env.on_terminal("", &["hooks", "enable", row.id.as_str()]);
            assert_eq!(seen.code, Some(0), "{seen}");
        }
    }
    env
}

/// The bytes of every file below `folder`, as text.
fn bytes(folder: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        all += &match path.is_dir() {
            true => bytes(&path),
            false => String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned(),
        };
    }
    all
}

fn text(env: &TestEnv, file: &str) -> String {
    std::fs::read_to_string(env.path(file)).unwrap_or_default()
}

/// Everything that can be asked for after a turn of the session `s`.
fn asked_for(env: &TestEnv) -> Vec<(&'static str, String)> {
    vec![
        ("sessions show", env.pintle(&["sessions", "show", "s"]).out),
        ("sessions show --json", env.pintle(&["sessions", "show", "s", "--json"]).out),
        ("why", env.pintle(&["why", "-vv"]).out),
        ("why --json", env.pintle(&["why", "-vv", "--json"]).out),
        ("hooks history --json", env.pintle(&["hooks", "history", "--json"]).out),
        ("audit export", env.pintle(&["audit", "export"]).out),
        ("a process hook", text(env, "config/pintle/observed")),
        ("payloads of rules", text(env, "here/payloads")),
    ]
}

/// Where a prompt can end up, and what stands there after two turns with it.
fn after_prompts(redacts: bool) -> Vec<(&'static str, String)> {
    let model = Model::giving(vec![says("Noted."), says("Noted again.")]);
    let env = stage(&model, "['before_llm', 'after_llm']", redacts);
    let prompt = format!("write to {MAIL} or call {PHONE}");
    let first = env.pintle(&["run", "--json", "--session", "s", &prompt]);
    let second = env.pintle(&["run", "-v", "-v", "--session", "s", &prompt]);
    assert_eq!((first.code, second.code), (Some(0), Some(0)), "{first} {second}");
    let third = env.pintle(&["run", "-v", "-v", "--session", "s", &format!("stop. {prompt}")]);
    assert_eq!(third.code, Some(4), "{third}");
    assert_eq!(model.requests().len(), 2);
    let mut sinks = asked_for(&env);
    sinks.extend([
        ("the model's requests", json!(model.requests()).to_string()),
        ("events", first.out),
        ("logs", second.err),
        ("what the user reads of a block", third.err),
        ("titles", env.pintle(&["sessions", "list"]).out),
        ("files of the state", bytes(&env.path("data/pintle"))),
        ("files of the state while it worked", bytes(&env.path("copies"))),
    ]);
    assert!(std::fs::read_dir(env.path("copies")).unwrap().count() >= 5, "each onlooker made its copy");
    sinks
}

/// Where e-mail addresses are cut out of reasons anyway, whoever wrote them.
const CLEANED: [&str; 2] = ["hooks history --json", "audit export"];

/// None of the sinks `with` the redactor has a secret, and each of those `without` it has both.
fn check(with: &[(&str, String)], without: &[(&str, String)]) {
    let mut wrong = Vec::new();
    for ((sink, clean), (_, control)) in with.iter().zip(without) {
        for secret in [MAIL, PHONE] {
            if let Some(at) = clean.find(secret) {
                let around: String =
                    clean[..at].chars().rev().take(200).collect::<Vec<_>>().into_iter().rev().collect();
                wrong.push(format!("{secret} is in {sink}: {around}"));
            }
            let expected = secret == PHONE || !CLEANED.contains(sink);
            if control.contains(secret) != expected {
                wrong.push(format!("without the redactor: {secret} in {sink} is {}", !expected));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_prompt_that_was_redacted_is_nowhere() {
    check(&after_prompts(true), &after_prompts(false));
}

/// The command that the model writes; it leaves what it was called with.
fn wanted() -> String {
    format!("echo {MAIL} {PHONE} >>ran; cat ran")
}

/// What is left of it.
const PERMITTED: &str = "echo [REDACTED_EMAIL] [REDACTED_PHONE] >>ran; cat ran # seen";

/// Where an argument can end up, and what stands there after a turn with a call of it.
fn after_call(redacts: bool) -> (TestEnv, Vec<(&'static str, String)>) {
    let stopped = format!("{} # stop", wanted());
    let replies =
        vec![runs("c1", &wanted()), says("Sent."), runs("c2", &wanted()), runs("c3", &stopped), says("Well.")];
    let model = Model::giving(replies);
    let env = stage(&model, "['approve_tool', 'after_tool']", redacts);
    let first = env.pintle(&["run", "--json", "--session", "s", "send it"]);
    let second = env.pintle(&["run", "-v", "-v", "--session", "s", "again"]);
    assert_eq!((first.code, second.code), (Some(0), Some(0)), "{first} {second}");
    let requests = model.requests();
    assert_eq!(requests.len(), 5);
    let mut sinks = asked_for(&env);
    sinks.extend([
        ("what ran", text(&env, "here/ran")),
        ("the assistant's message in the next request", requests[1]["messages"][1].to_string()),
        ("the tool's message in the next request", requests[1]["messages"][2].to_string()),
        ("the requests of the next turn", json!(requests[2..4]).to_string()),
        ("what a blocked call leaves", json!(requests[4]["messages"].as_array().unwrap().last()).to_string()),
        ("events", first.out),
        ("logs", second.err),
        ("files of the state", bytes(&env.path("data/pintle"))),
    ]);
    (env, sinks)
}

#[test]
fn an_argument_that_was_redacted_is_nowhere_behind_the_gate() {
    let ((env, with), (_, without)) = (after_call(true), after_call(false));
    check(&with, &without);
    assert_eq!(text(&env, "here/ran"), "[REDACTED_EMAIL] [REDACTED_PHONE]\n".repeat(2));
    let key = SessionKey { tenant: TenantId::default_tenant(), session: "s".into() };
    let store =
        pintle_store::open("sqlite://pintle.db", &env.path("data/pintle"), pintle_store::Durability::Commit).unwrap();
    let journal = store.journal(&key).unwrap();
    check_permits(&journal);
    let kept = json!(journal).to_string();
    assert!(kept.contains("[REDACTED_EMAIL]") && !(kept.contains(MAIL) || kept.contains(PHONE)), "{kept}");
}

/// The permits that were used are for the calls as they were left.
fn check_permits(journal: &[JournalEntry]) {
    let (mut turn, mut used) = (TurnId::from(""), Vec::new());
    for entry in journal {
        match entry {
            JournalEntry::Turn(Fact::Begun { turn_id, .. }) => turn = turn_id.clone(),
            JournalEntry::Turn(Fact::Used { digest, .. }) => used.push((turn.clone(), digest.clone())),
            JournalEntry::Turn(_)
            | JournalEntry::Opened { .. }
            | JournalEntry::Closed { .. }
            | JournalEntry::Kept(_) => {}
        }
    }
    let permitted = |(id, (turn, _)): (&str, &(TurnId, String))| {
        let who = Identity::top("main", "s", turn.clone());
        let Value::Object(arguments) = json!({ "command": PERMITTED }) else { unreachable!("it is an object") };
        let call = ToolCall { id: id.into(), tool: "exec".into(), raw_tool: "exec".into(), arguments };
        (turn.clone(), Digest::of(&who, &call).to_string())
    };
    let expected: Vec<_> = ["c1", "c2"].into_iter().zip(&used).map(permitted).collect();
    assert_eq!((used.len(), used), (2, expected));
}
