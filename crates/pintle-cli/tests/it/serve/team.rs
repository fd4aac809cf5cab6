//! One set of rules for a team: a gateway, and machines under guard, with the built daemon and the built hook.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::people::{People, operator};
use super::server::{Client, Server, WITH_TOKEN};
use crate::env::TestEnv;
use crate::guard_door::door::{Door, refusal, wait_for};
use crate::run::{DONE, scripted};

mod between;

use between::{Answers, Between};

/// How soon what changed at the gateway counts on its machines. Source: what is promised.
const SOON: Duration = Duration::from_secs(5);

/// A gateway with what stands before it, and the key of its machines.
struct Team {
    server: Server,
    between: Between,
    key: String,
}

impl Team {
    fn start() -> Self {
        let server = Server::start(scripted(DONE, WITH_TOKEN));
        let key = People::key(&server, "laptops", &["operator.guard"]);
        let between = Between::open(&server.address);
        Self { server, between, key }
    }

    fn admin(&self) -> Client {
        self.server.admin("anna")
    }

    /// A machine under guard whose rules come from the gateway.
    fn machine(&self) -> Door {
        Door::open(self.configured(&self.key, ""))
    }

    fn configured(&self, key: &str, more: &str) -> TestEnv {
        let env = TestEnv::new();
        let file = env.write("config/pintle/team.key", &format!("{key}\n"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let address = &self.between.address;
        env.user_config(&format!("{more}[guard.rules_from]\nurl = 'http://{address}'\nkey_file = 'team.key'\n"));
        env
    }
}

/// A rule that refuses shell texts with `word` in them, for `reason`.
fn refuses(name: &str, word: &str, reason: &str) -> Value {
    let source = format!(
        "function handle(event) {{ const text = String(event.toolInput.command); \
         return text.includes('{word}') ? {{ decision: 'block', reason: '{reason}' }} : {{ decision: 'allow' }}; }}"
    );
    json!({
        "event": "pre_tool_use", "handler_type": "script", "scope": "tenant", "name": name, "matcher": "^exec$",
        "breaker": "off", "config": { "source": source },
    })
}

/// The reason why a machine refuses `command`; nothing where it lets it pass.
fn refused(machine: &Door, id: &str, command: &str) -> Option<String> {
    let told = machine.told(&machine.shell(id, command));
    (told != json!({})).then(|| refusal(&told).to_owned())
}

/// Waits until a machine refuses `command` for a reason with `wanted` in it, or lets it pass.
fn until(machine: &Door, command: &str, wanted: Option<&str>) -> Duration {
    let (began, mut last) = (Instant::now(), None);
    wait_for(|| {
        let said = refused(machine, "toolu_look", command);
        let is_it = match (&said, wanted) {
            (None, None) => true,
            (Some(said), Some(wanted)) => said.contains(wanted),
            (None, Some(_)) | (Some(_), None) => false,
        };
        if last.as_ref() != Some(&said) {
            println!("`{command}` is refused for {said:?}; expected {wanted:?}");
            last = Some(said);
        }
        is_it.then(|| began.elapsed())
    })
}

fn status(machine: &Door) -> (Option<i32>, Value) {
    let seen = machine.env.command(crate::env::PINTLE).args(["guard", "status", "--json"]).output().unwrap();
    let all: Value = serde_json::from_slice(&seen.stdout).unwrap_or_else(|error| panic!("{error}: {seen:?}"));
    (seen.status.code(), all["team"].clone())
}

#[test]
fn what_changes_at_the_gateway_counts_on_every_machine_within_five_seconds() {
    let team = Team::start();
    let mut admin = team.admin();
    let machines = [team.machine(), team.machine()];
    for machine in &machines {
        assert_eq!(refused(machine, "toolu_1", "git push --force"), None);
    }
    let all = |what: &str, began: Instant, wanted: Option<&str>| {
        for (at, machine) in machines.iter().enumerate() {
            until(machine, "git push --force", wanted);
            let took = began.elapsed();
            println!("{what} counts on machine {at} after {} ms", took.as_millis());
            assert!(took < SOON, "{what}: {took:?}");
        }
    };
    let made = admin.done("hooks.create", refuses("no-force", "--force", "people do that"));
    all("a new rule", Instant::now(), Some("people do that"));
    let id = made["hookId"].clone();
    let mut changed = refuses("no-force", "--force", "nobody does that");
    changed.as_object_mut().unwrap().retain(|name, _| name == "config");
    admin.done("hooks.update", json!({ "hookId": id, "updates": changed }));
    all("a changed rule", Instant::now(), Some("nobody does that"));
    admin.done("hooks.toggle", json!({ "hookId": id, "enabled": false }));
    all("a rule that is switched off", Instant::now(), None);
    admin.done("hooks.toggle", json!({ "hookId": id, "enabled": true }));
    all("a rule that is switched on", Instant::now(), Some("nobody does that"));
    let machine = &machines[0];
    assert_eq!(refused(machine, "toolu_2", "git push"), None, "what no rule refuses runs");
    let (code, team) = status(machine);
    assert_eq!(
        (code, &team["state"], &team["rules"], &team["tenant"]),
        (Some(0), &json!("in_force"), &json!(1), &json!("default"))
    );
    assert!(team["age_s"].as_i64().is_some_and(|age| age <= 30) && team["away"].is_null(), "{team}");
    let shown = machine.env.pintle(&["guard", "status"]);
    assert!(shown.out.contains("1 rule of default") && shown.out.contains("confirmed"), "{shown}");
    let why = machine.env.pintle(&["why", "--denied"]);
    assert!(why.out.contains("no-force") && why.out.contains("git push --force"), "{why}");
    admin.done("hooks.delete", json!({ "hookId": id }));
    all("a rule that is gone", Instant::now(), None);
}

#[test]
fn a_machine_cannot_weaken_what_comes_from_its_team_and_may_add_to_it() {
    let team = Team::start();
    team.admin().done("hooks.create", refuses("no-force", "--force", "people do that"));
    let machine = team.machine();
    until(&machine, "git push --force", Some("people do that"));
    let list = machine.env.pintle(&["hooks", "list"]);
    assert!(list.out.contains("no-force") && list.out.contains("team:http://"), "{list}");
    for args in [["hooks", "disable", "no-force"], ["hooks", "remove", "no-force"]] {
        let seen = machine.env.on_terminal("y\n", &args);
        assert!(seen.code != Some(0) && seen.out.contains("a rule of the team"), "{args:?}: {seen}");
    }
    assert!(refused(&machine, "toolu_1", "git push --force").is_some());
    // Nor does a configuration that does not load any more.
    machine.env.user_config("[guard\n");
    assert!(refused(&machine, "toolu_2", "git push --force").is_some());
    let address = &team.between.address;
    machine.env.user_config(&format!("[guard.rules_from]\nurl = 'http://{address}'\nkey_file = 'team.key'\n"));
    let own = machine.env.write(
        "own.toml",
        "[[hook]]\nname = 'own'\nevent = 'pre_tool_use'\nhandler_type = 'command'\nscope = 'tenant'\nbreaker = 'off'\n\
         config.command = 'echo not here >&2; exit 2'\nmatcher = '^exec$'\n",
    );
    operator(&machine.env, &["hooks", "add", own.to_str().unwrap()]);
    until(&machine, "ls", Some("not here"));
}

#[test]
fn without_the_gateway_the_last_good_rules_hold_and_say_how_old_they_are() {
    let mut team = Team::start();
    team.admin().done("hooks.create", refuses("no-force", "--force", "people do that"));
    let mut machine = team.machine();
    until(&machine, "git push --force", Some("people do that"));
    team.between.lead_to(None);
    let away = wait_for(|| Some(status(&machine).1).filter(|team| !team["away"].is_null()));
    assert_eq!(away["state"], "in_force", "{away}");
    assert!(away["away"]["why"].as_str().is_some_and(|why| why.contains("cannot be reached")), "{away}");
    let before = away["confirmed"].clone();
    assert!(refused(&machine, "toolu_1", "git push --force").is_some());
    assert_eq!(refused(&machine, "toolu_2", "git push"), None, "offline works");
    let shown = machine.env.pintle(&["guard", "status"]);
    assert!(shown.out.contains("the last good rules stay in force"), "{shown}");
    // Nor does a daemon that starts meanwhile forget them.
    machine = machine.again();
    assert!(refused(&machine, "toolu_3", "git push --force").is_some_and(|why| why.contains("people do that")));
    assert_eq!(refused(&machine, "toolu_4", "git push"), None);
    assert_eq!(status(&machine).1["confirmed"], before);
    // A machine that never had any lets nothing pass.
    let new = team.machine();
    let why = refused(&new, "toolu_1", "ls").expect("nothing passes");
    assert!(why.contains("no rules of the team have come from http://"), "{why}");
    let (code, standing) = status(&new);
    assert_eq!((code, &standing["state"]), (Some(5), &json!("shut")), "{standing}");
    team.server = team.server.again();
    team.between.lead_to(Some(&team.server.address));
    let began = Instant::now();
    team.admin().done("hooks.create", refuses("no-lists", "ls", "no lists"));
    for (name, machine) in [("the one that waited", &machine), ("the one without rules", &new)] {
        until(machine, "ls", Some("no lists"));
        until(machine, "git push", None);
        println!("after the gateway came back its rules count on {name} after {} ms", began.elapsed().as_millis());
        assert!(began.elapsed() < 2 * SOON);
    }
}

#[test]
fn what_the_gateway_did_not_sign_shuts_until_something_good_comes() {
    let team = Team::start();
    team.admin().done("hooks.create", refuses("no-force", "--force", "people do that"));
    let machine = team.machine();
    until(&machine, "git push --force", Some("people do that"));
    for (answers, wanted) in [
        (Answers::Changed, "its signature does not hold"),
        (Answers::Cut, "it is not whole"),
        (Answers::Old, "it answers another question"),
        (Answers::Page, "it is not JSON"),
        (Answers::Long, "at most 8388608 are read"),
    ] {
        team.between.set(answers);
        let took = until(&machine, "ls", Some(wanted));
        println!("{answers:?} shuts after {} ms", took.as_millis());
        let (code, standing) = status(&machine);
        assert_eq!((code, &standing["state"]), (Some(5), &json!("shut")), "{standing}");
        team.between.set(Answers::Pass);
        let took = until(&machine, "ls", None);
        println!("after {answers:?} a good one opens after {} ms", took.as_millis());
        assert!(refused(&machine, "toolu_1", "git push --force").is_some());
    }
    for (answers, wanted) in [(Answers::Elsewhere, "it sends elsewhere (302)"), (Answers::Failed, "it answers 500")] {
        team.between.set(answers);
        let away = wait_for(|| {
            let standing = status(&machine).1;
            standing["away"]["why"].as_str().is_some_and(|why| why.contains(wanted)).then_some(standing)
        });
        assert_eq!(away["state"], "in_force", "{answers:?} is no rule at all: {away}");
        assert_eq!(refused(&machine, "toolu_2", "ls"), None);
    }
}

#[test]
fn a_machine_whose_key_does_not_count_is_not_taken_for_one_that_is_offline() {
    let team = Team::start();
    team.admin().done("hooks.create", refuses("no-force", "--force", "people do that"));
    let machine = team.machine();
    until(&machine, "git push --force", Some("people do that"));
    let file = machine.env.path("config/pintle/team.key");
    let (good, mode) = (fs::read(&file).unwrap(), |mode| fs::Permissions::from_mode(mode));
    for (key, bits, wanted) in [
        (&b"pintle_wrong"[..], 0o600, "it does not take the key (401"),
        (b"".as_slice(), 0o600, "holds no API key"),
        (&good[..], 0o644, "others may read the key"),
    ] {
        fs::write(&file, key).unwrap();
        fs::set_permissions(&file, mode(bits)).unwrap();
        // Another rule ends the question that waits with the key from before.
        team.admin().done("hooks.create", refuses(&format!("no-{}", key.len()), "never", "x"));
        let is_said = |team: &Value| team["refused"]["why"].as_str().is_some_and(|why| why.contains(wanted));
        let (code, standing) = wait_for(|| Some(status(&machine)).filter(|(_, team)| is_said(team)));
        assert_eq!((code, &standing["state"]), (Some(5), &json!("in_force")), "{standing}");
        assert!(standing["away"].is_null(), "{standing}");
        assert!(refused(&machine, "toolu_1", "git push --force").is_some());
        let shown = machine.env.pintle(&["guard", "status"]).out;
        assert!(shown.contains("refused") && shown.contains("the last good rules stay in force"), "{shown}");
        fs::write(&file, &good).unwrap();
        fs::set_permissions(&file, mode(0o600)).unwrap();
        wait_for(|| (status(&machine).0 == Some(0)).then_some(()));
    }
}

#[test]
fn what_is_kept_is_believed_no_more_once_somebody_changed_it() {
    let team = Team::start();
    team.admin().done("hooks.create", refuses("no-force", "--force", "people do that"));
    let machine = team.machine();
    until(&machine, "git push --force", Some("people do that"));
    let file = machine.env.path("data/pintle/team/rules.json");
    let good = fs::read(&file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let forged = String::from_utf8(good.clone()).unwrap().replace("'--force'", "'--farce'");
    // With the gateway there it is asked anew, and heals.
    fs::write(&file, &forged).unwrap();
    let healed = || fs::read(&file).is_ok_and(|now| now != forged.as_bytes());
    wait_for(|| healed().then_some(()));
    until(&machine, "git push --force", Some("people do that"));
    until(&machine, "ls", None);
    team.between.lead_to(None);
    let good = fs::read(&file).unwrap();
    for (bytes, wanted) in [
        (forged.as_bytes(), "its signature does not hold"),
        (&good[..good.len() / 2], "it is not whole"),
        (b"".as_slice(), "it is not whole"),
    ] {
        fs::write(&file, bytes).unwrap();
        until(&machine, "ls", Some(wanted));
        fs::write(&file, &good).unwrap();
        until(&machine, "ls", None);
    }
    fs::remove_file(&file).unwrap();
    until(&machine, "ls", Some("no rules of the team have come"));
}

#[test]
fn a_rule_that_needs_its_gateway_refuses_what_it_guards() {
    let team = Team::start();
    let machine = team.machine();
    let mut admin = team.admin();
    admin.done(
        "hooks.create",
        json!({
            "event": "pre_tool_use", "handler_type": "http", "scope": "tenant", "name": "asks-elsewhere",
            "matcher": "^exec$",
            "config": { "url": "https://rules.example/check", "headers": { "Authorization": "Bearer of-the-gateway" } },
        }),
    );
    until(&machine, "ls", Some("asks-elsewhere"));
    let kept = fs::read_to_string(machine.env.path("data/pintle/team/rules.json")).unwrap();
    assert!(kept.contains("asks-elsewhere") && !kept.contains("rules.example") && !kept.contains("aes-gcm"), "{kept}");
    let (code, standing) = status(&machine);
    assert_eq!((code, &standing["cannot_run"][0]["rule"]), (Some(0), &json!("asks-elsewhere")), "{standing}");
    let why = standing["cannot_run"][0]["why"].as_str().unwrap_or_default();
    assert!(why.contains("needs a secret that does not leave the gateway"), "{standing}");
    let list = machine.env.pintle(&["hooks", "list"]);
    assert!(list.out.contains("asks-elsewhere"), "{list}");
}

#[test]
fn only_a_key_for_guards_gets_rules_and_it_gets_nothing_else() {
    let team = Team::start();
    let other = People::key(&team.server, "reader", &["operator.read"]);
    let machine = Door::open(team.configured(&other, ""));
    let why = refused(&machine, "toolu_1", "ls").expect("nothing passes");
    assert!(why.contains("it does not take the key (401"), "{why}");
    let get = |key: &str, path: &str| {
        let request = format!("GET {path} HTTP/1.1\nHost: localhost\nConnection: close\nx-api-key: {key}\n\n");
        let answer = team.server.http(&request);
        answer.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    assert_eq!((get(&team.key, "/guard/v1/rules?nonce=a"), get(&other, "/guard/v1/rules?nonce=a")), (200, 401));
    assert_eq!((get(&team.key, "/v1/models"), get(&team.key, "/guard/v1/rules")), (401, 400));
}

#[test]
fn what_rules_of_a_team_did_arrives_once_although_answers_are_lost() {
    let team = Team::start();
    let mut admin = team.admin();
    let made = admin.done("hooks.create", refuses("no-force", "--force", "people do that"));
    let machine = team.machine();
    until(&machine, "git push --force", Some("people do that"));
    team.between.set(Answers::Lost);
    for at in 0..5 {
        let command = if at % 2 == 0 { "git push --force" } else { "git push" };
        refused(&machine, &format!("toolu_of_{at}"), command);
    }
    wait_for(|| (team.between.lost() >= 2).then_some(()));
    let told = |admin: &mut Client| {
        let history = admin.done("hooks.history", json!({ "limit": 200 }));
        let rows = history["executions"].as_array().unwrap().clone();
        let mut own: Vec<Value> = rows
            .into_iter()
            .filter(|row| row["tool_call_id"].as_str().is_some_and(|id| id.starts_with("toolu_of_")))
            .collect();
        own.sort_by_key(|row| row["tool_call_id"].to_string());
        own
    };
    team.between.set(Answers::Pass);
    wait_for(|| status(&machine).1["records"]["told"].as_u64().filter(|told| *told >= 5));
    let rows = told(&mut admin);
    let calls: Vec<_> =
        rows.iter().map(|row| (row["tool_call_id"].as_str().unwrap(), row["decision"].as_str().unwrap())).collect();
    let expected = [
        ("toolu_of_0", "block"),
        ("toolu_of_1", "allow"),
        ("toolu_of_2", "block"),
        ("toolu_of_3", "allow"),
        ("toolu_of_4", "block"),
    ];
    assert_eq!(calls, expected, "{} answers were lost", team.between.lost());
    println!("{} answers were lost, and each record arrived once", team.between.lost());
    for row in &rows {
        assert_eq!((&row["hook_id"], &row["hook_name"]), (&made["hookId"], &json!("no-force")), "{row}");
        assert!(
            row["session_key"].as_str().is_some_and(|key| key.starts_with("guard:") && key.ends_with("/claude:s")),
            "{row}"
        );
        assert!(row["metadata"]["machine_id"].is_string(), "{row}");
        assert!(!row.to_string().contains("git push"), "of content a record holds nothing: {row}");
    }
    // They stand in the audit chain of the gateway, which is whole.
    let verified = operator(&team.server.env, &["audit", "verify"]);
    println!("{verified}");
    // What happens while the gateway is away is told when it is back.
    team.between.lead_to(None);
    refused(&machine, "toolu_of_5", "git push --force");
    team.between.lead_to(Some(&team.server.address));
    wait_for(|| (told(&mut admin).len() == 6).then_some(()));
}
