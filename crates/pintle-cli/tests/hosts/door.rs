//! Real agents whose model is asked through the model door: no hook of theirs is installed, and what the door refuses,
//! changes or holds for a person, it does by itself.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::cells::person;
use crate::model::Model;
use crate::world::{World, shell};

/// How long the door has to open.
const PATIENCE: Duration = Duration::from_secs(60);

/// Calls of the shell, by what they name: `forbidden` is refused, `mine` becomes `other`, and a person is asked of `held`.
const RULES: &str = r#"
[[hook]]
name = "by-name"
event = "pre_tool_use"
handler_type = "script"
scope = "tenant"
may_rewrite = true

[hook.config]
source = """
function handle(event) {
  const said = JSON.stringify(event.toolInput);
  if (/forbidden/.test(said)) return { decision: 'block', reason: 'not in this repository' };
  if (/touch held/.test(said)) return { decision: 'ask', reason: 'a person has to see it' };
  if (/touch mine/.test(said)) {
    return { decision: 'allow', updatedInput: { toolInput: JSON.parse(said.replace('touch mine', 'touch other')) } };
  }
  return { decision: 'allow' };
}
"""
"#;

/// The daemon with its model door, ended when this is dropped.
struct Door {
    daemon: Child,
    address: String,
}

impl Door {
    fn open(world: &World) -> Self {
        let mut command = world.command(env!("CARGO_BIN_EXE_pintle"));
        command.args(["guard", "serve", "--http", "127.0.0.1:0"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut daemon = command.spawn().unwrap();
        let lines = BufReader::new(daemon.stderr.take().unwrap()).lines();
        let (listens, heard) = mpsc::channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                println!("door: {line}");
                if let Some((_, address)) = line.split_once("model door at ") {
                    listens.send(address.to_owned()).ok();
                }
            }
        });
        let address = heard.recv_timeout(PATIENCE).expect("the door opens");
        Self { daemon, address }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.daemon.kill().ok();
        self.daemon.wait().ok();
    }
}

/// The vendor of an agent, as doors are called.
fn vendor(id: &str) -> &'static str {
    match id {
        "claude" => "anthropic",
        "gemini" => "gemini",
        _ => "openai",
    }
}

fn through_the_door(id: &str) {
    let commands = ["touch allowed", "touch forbidden", "touch mine", "touch held"];
    let world = World::new("");
    let plan = commands.map(|command| shell(id, command)).to_vec();
    let model = Model::start_after(plan, Box::new(person(&world, "approve")));
    let base = if vendor(id) == "openai" { format!("{}/v1", model.url) } else { model.url.clone() };
    // Codex offers a search of the vendor's with each request.
    let hosted = if id == "codex" { "hosted = [\"web_search\"]\n" } else { "" };
    let config =
        format!("[doors.model.{}]\nbase_url = \"{base}\"\n{hosted}[agent_hooks]\ndir = \"hooks.d\"\n", vendor(id));
    world.write("home/.config/pintle/pintle.toml", &config);
    world.write("home/.config/pintle/hooks.d/rules.toml", RULES);
    let door = Door::open(&world);
    let output = world.agent_at(id, &format!("{}/{}", door.address, vendor(id)), "do it");
    let ran = ["allowed", "forbidden", "mine", "other", "held"].map(|mark| world.ran(mark));
    assert_eq!(ran, [true, false, false, true, true], "{output:?} {:?}", model.results());
    // The model reads of the call that was refused, and goes on.
    let results = model.results();
    assert!(results.iter().any(|text| text.contains("not in this repository")), "{results:?}");
    let why = world.pintle(&["why", "--denied"]);
    assert!(why.contains("touch forbidden") && why.contains("not in this repository"), "{why}");
}

#[test]
fn claude_asks_its_model_through_the_door() {
    through_the_door("claude");
}

#[test]
fn codex_asks_its_model_through_the_door() {
    through_the_door("codex");
}

#[test]
fn gemini_asks_its_model_through_the_door() {
    through_the_door("gemini");
}

#[test]
fn qwen_asks_its_model_through_the_door() {
    through_the_door("qwen");
}
