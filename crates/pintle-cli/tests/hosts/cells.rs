//! Cells of the table of decisions, with each real agent: questions for a person, sub-agents, MCP servers, reasons of any
//! length, and a daemon that is killed, is another user's, or is of another version.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use pintle_domain::json::{Value, json};
use pintle_guard::coverage::GuardLevel;
use pintle_guard::tools::ToolClass;
use pintle_guard::trial::TrialCall;

use crate::model::{CHILD, Model};
use crate::world::{World, shell};

/// How long something is waited for that comes soon.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs its arguments on a terminal of its own, as a person does.
const ON_TERMINAL: &str = "import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
while True:
    try:
        if not os.read(terminal, 65536):
            break
    except OSError:
        break
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))";

/// Whether the model of the agent reads what a refusal says; of Cline the task ends.
fn reads(id: &str) -> bool {
    id != "cline"
}

/// The file in the home that a person leaves who was asked.
const ASKED: &str = "asked";

/// A person who answers the first question with `answer`, as soon as there is one. Nothing has run before that.
pub(crate) fn person(world: &World, answer: &'static str) -> impl FnOnce() + Send + 'static {
    let around = world.surroundings();
    let first = |text: &str| Some(pintle_domain::json::parse(text).ok()?.get(0)?.get("id")?.as_str()?.to_owned());
    move || {
        thread::spawn(move || {
            let began = Instant::now();
            while began.elapsed() < PATIENCE {
                let output = around.command(&around.program).args(["approvals", "list", "--json"]).output().unwrap();
                if let Some(id) = String::from_utf8(output.stdout).ok().and_then(|text| first(&text)) {
                    assert!(!around.repo.join("ran").exists(), "it runs before anybody said so");
                    std::fs::write(around.home.join(ASKED), &id).unwrap();
                    let mut terminal = around.command("python3");
                    terminal.args(["-c", ON_TERMINAL]).arg(&around.program).args(["approvals", answer, &id]);
                    assert!(terminal.status().unwrap().success());
                    return;
                }
                thread::sleep(Duration::from_millis(100));
            }
        });
    }
}

const ASKS: &str = "[agents.main]\nask = ['exec']\n";

fn approved(id: &str) {
    let world = World::guarded(id, ASKS);
    let model = Model::start_after(vec![shell(id, "touch ran")], Box::new(person(&world, "approve")));
    let output = world.agent(id, &model, "do it");
    assert!(world.ran("ran"), "{output:?} {:?}", model.results());
    assert!(world.path("home").join(ASKED).exists(), "nobody was asked: {output:?}");
}

fn refused_by_a_person(id: &str) {
    let world = World::guarded(id, ASKS);
    let model = Model::start_after(vec![shell(id, "touch ran")], Box::new(person(&world, "refuse")));
    let output = world.agent(id, &model, "do it");
    assert!(!world.ran("ran"), "{output:?} {:?}", model.results());
    assert!(world.path("home").join(ASKED).exists(), "nobody was asked: {output:?}");
    assert_eq!(!model.results().is_empty(), reads(id), "{output:?}");
}

/// A hook in plain sh that refuses calls which name something forbidden.
fn refusing(reason: &str) -> String {
    format!(
        r#"while IFS= read -r line; do
  id=${{line#*'"id":'}}; id=${{id%%,*}}
  case $line in
    *'"method":"hook.before_tool"'*forbidden*) r='{{"action":"deny_tool","reason":"{reason}"}}' ;;
    *) r='{{}}' ;;
  esac
  printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$r"
done
"#
    )
}

/// Has the guard ask the hook `command` before each call.
fn configure(world: &World, command: &[&str]) {
    let command: Vec<Value> = command.iter().map(|word| Value::from(*word)).collect();
    let config = format!(
        "[hooks.processes.test]\nenabled = true\ncommand = {}\nintercept = ['before_tool']\n",
        Value::from(command)
    );
    world.write("home/.config/pintle/pintle.toml", &config);
}

/// The call with which the model of the agent starts a sub-agent, where it has some.
fn delegate(id: &str) -> Option<TrialCall> {
    let prompt = format!("{CHILD}: do it");
    let (tool, arguments) = match id {
        "claude" => ("Agent", json!({"description": "child", "prompt": prompt, "subagent_type": "general-purpose"})),
        "codex" => {
            let call = TrialCall::of("spawn_agent", json!({"message": prompt}));
            return Some(TrialCall { namespace: Some("multi_agent_v1"), ..call });
        }
        "gemini" => ("invoke_agent", json!({"agent_name": "generalist", "prompt": prompt})),
        "qwen" => ("agent", json!({"description": "child", "prompt": prompt, "subagent_type": "general-purpose"})),
        "copilot" => {
            let kind = "general-purpose";
            (
                "task",
                json!({"name": "child", "description": "child", "prompt": prompt, "agent_type": kind, "mode": "sync"}),
            )
        }
        "cline" => ("spawn_agent", json!({"systemPrompt": "you are a child", "task": prompt})),
        "kimi" => ("Agent", json!({"description": "child", "prompt": prompt, "subagent_type": "coder"})),
        "opencode" => ("task", json!({"description": "child", "prompt": prompt, "subagent_type": "general"})),
        _ => return None,
    };
    Some(TrialCall::of(tool, arguments))
}

/// The agent has no tools of the class, and its row says so: then there is nothing to hold.
fn there_is_none(id: &str, class: ToolClass) {
    let rows = pintle_guard::host(id).unwrap().coverage;
    assert_eq!(rows.iter().find(|row| row.class == class).unwrap().level, GuardLevel::Absent, "{id}");
}

/// How servers are named to Cline in a run without a person is not known: only its other calls were tried.
fn was_not_tried(id: &str) {
    if id != "cline" {
        there_is_none(id, ToolClass::Mcp);
    }
}

/// A call of a sub-agent is refused like any other, and one that is allowed runs.
fn calls_of_a_sub_agent(id: &str) {
    let Some(begin) = delegate(id) else { return there_is_none(id, ToolClass::Subagent) };
    for (command, runs) in [("touch allowed", true), ("touch forbidden", false)] {
        let world = World::new("");
        configure(&world, &["sh", "-c", &refusing("not in this repository")]);
        world.pintle(&["guard", "install", "--host", id, "--yes"]);
        // Where the one who sent it does not wait, the time that it needs is spent otherwise.
        let plan = vec![shell(id, "true"), begin.clone(), shell(id, "sleep 5")];
        let model = Model::start_with_child(plan, shell(id, command));
        let output = world.agent_started_with(id, &model, &[]);
        assert_eq!(
            world.ran(command.trim_start_matches("touch ")),
            runs,
            "{command}: {output:?} {:?}",
            model.results()
        );
        // What it wrote down, whoever did, was asked about, and is no session that nobody heard of.
        let output = world.seen(&["guard", "reconcile", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        if !runs {
            let why = world.pintle(&["why", "--denied"]);
            assert!(why.contains("touch forbidden"), "{why}");
        }
    }
}

/// An MCP server with one tool that touches the file `forbidden`.
const SERVER: &str = r#"import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    r = {}
    if m["method"] == "initialize":
        r = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "box", "version": "1"}}
    elif m["method"] == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        r = {"tools": [{"name": "touch", "description": "touches a file", "inputSchema": schema}]}
    elif m["method"] == "tools/call":
        open(sys.argv[1] + "/" + m["params"]["arguments"]["text"], "w")
        r = {"content": [{"type": "text", "text": "touched"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"#;

/// Where the agent is told of an MCP server: a file, whether it is there already, and the name of its tool.
fn with_server(id: &str, world: &World) -> Option<&'static str> {
    let server = world.write("server.py", SERVER);
    let (server, folder) = (server.to_str().unwrap().to_owned(), world.path("repo").to_str().unwrap().to_owned());
    let entry = json!({"command": "python3", "args": [server, folder]});
    let all = json!({"mcpServers": {"box": entry}});
    let mut trusted = all.clone();
    trusted["mcpServers"]["box"]["trust"] = Value::Bool(true);
    match id {
        "claude" => {
            world.write("home/.claude.json", &all.to_string());
            Some("mcp__box__touch")
        }
        "codex" => {
            let table = format!("[mcp_servers.box]\ncommand = \"python3\"\nargs = {}\n", json!([server, folder]));
            world.write("home/.codex/config.toml", &table);
            Some("touch")
        }
        "gemini" => {
            world.write("home/.gemini/settings.json", &trusted.to_string());
            Some("mcp_box_touch")
        }
        "qwen" => {
            world.write("home/.qwen/settings.json", &trusted.to_string());
            Some("mcp__box__touch")
        }
        "copilot" => {
            let mut local = all;
            local["mcpServers"]["box"]["type"] = Value::from("local");
            local["mcpServers"]["box"]["tools"] = json!(["*"]);
            world.write("home/.copilot/mcp-config.json", &local.to_string());
            Some("box-touch")
        }
        "kimi" => {
            world.write("home/.kimi-code/mcp.json", &all.to_string());
            Some("mcp__box__touch")
        }
        "opencode" => {
            let server = json!({"type": "local", "command": ["python3", server, folder], "enabled": true});
            world.write("home/.config/opencode/opencode.json", &json!({"mcp": {"box": server}}).to_string());
            Some("box_touch")
        }
        _ => None,
    }
}

/// A call of an MCP server's tool is refused like any other, and one that is allowed runs.
fn calls_of_a_server(id: &str) {
    for (file, runs) in [("allowed", true), ("forbidden", false)] {
        let world = World::new("");
        configure(&world, &["sh", "-c", &refusing("not in this repository")]);
        let Some(tool) = with_server(id, &world) else { return was_not_tried(id) };
        let output = world.seen(&["guard", "install", "--host", id, "--yes"]);
        assert!(output.status.success(), "{output:?}");
        let mut call = TrialCall::of(tool, json!({"text": file}));
        call.namespace = (id == "codex").then_some("mcp__box");
        // Servers start beside the first calls.
        let model = Model::start(vec![shell(id, "sleep 2"), call]);
        let output = world.agent(id, &model, "do it");
        assert_eq!(world.ran(file), runs, "{file}: {output:?} {:?}", model.results());
        if !runs {
            let why = world.pintle(&["why", "--denied"]);
            assert!(why.contains("not in this repository"), "{why}");
        }
    }
}

/// A reason of 100 kB refuses, and the model reads the beginning of it.
fn long_reason(id: &str) {
    let world = World::new("");
    // In a file: a text of such a length is no word of a command line.
    let reason = world.write("reason", &format!("it is forbidden {}", "x".repeat(100_000)));
    let script = world.write("hook.sh", &refusing(&format!("'$(cat '{}')'", reason.display())));
    configure(&world, &["sh", script.to_str().unwrap()]);
    world.pintle(&["guard", "install", "--host", id, "--yes"]);
    let model = Model::start(vec![shell(id, "touch forbidden")]);
    let output = world.agent(id, &model, "do it");
    assert!(!world.ran("forbidden"), "{output:?} {:?}", model.results());
    assert_eq!(!model.results().is_empty(), reads(id), "{output:?}");
    assert!(model.results().iter().all(|text| text.contains("it is forbidden xxx")), "{:?}", model.results());
}

/// What ends the daemon and the way to another one, as a text for `sh`.
fn ending(world: &World) -> String {
    let folder = world.guard_folder();
    format!("rm -f '{0}/start'; kill -9 \"$(cat '{0}/pid')\"", folder.display())
}

/// A rule kills the daemon that asks it: nobody is left to answer the question that is under way.
fn killed_during(id: &str) {
    let world = World::new("");
    let script = format!(
        r#"while IFS= read -r line; do
  id=${{line#*'"id":'}}; id=${{id%%,*}}
  case $line in *'"method":"hook.before_tool"'*) {} ;; esac
  printf '{{"jsonrpc":"2.0","id":%s,"result":{{}}}}\n' "$id"
done"#,
        ending(&world)
    );
    configure(&world, &["sh", "-c", &script]);
    world.pintle(&["guard", "install", "--host", id, "--yes"]);
    let model = Model::start(vec![shell(id, "touch ran")]);
    let output = world.agent(id, &model, "do it");
    assert!(model.was_asked() && !world.ran("ran"), "{output:?} {:?}", model.results());
    nobody_answered(&model);
}

/// The daemon is killed once it has let a call run, by what that call runs: what was allowed runs to its end, and what
/// comes behind it is refused.
fn killed_after(id: &str) {
    let world = World::guarded(id, "");
    let script = world.write("end.sh", &format!("{}\ntouch ran\n", ending(&world)));
    let first = format!("sh {}", script.display());
    let model = Model::start(vec![shell(id, &first), shell(id, "touch late")]);
    let output = world.agent(id, &model, "do it");
    assert!(world.ran("ran") && !world.ran("late"), "{output:?} {:?}", model.results());
}

/// What a model reads was said by the client, or by what stands in for it; some agents end their turn then, and it reads
/// nothing.
fn nobody_answered(model: &Model) {
    assert!(model.results().iter().all(|text| text.contains("guard did not answer")), "{:?}", model.results());
}

/// Somebody else listens at the socket, and says what a daemon of another version might.
fn another_version(id: &str) {
    let world = World::guarded(id, "");
    let listen = |socket: &Path| {
        let listener = UnixListener::bind(socket).unwrap();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut length = [0; 4];
                if stream.read_exact(&mut length).is_err() {
                    continue;
                }
                let mut asked = vec![0; u32::from_be_bytes(length).try_into().unwrap()];
                stream.read_exact(&mut asked).ok();
                let answer = b"PNTL\x00\x63\x01\x00\x00\x00\x00\x02{}";
                let length = u32::try_from(answer.len()).unwrap().to_be_bytes();
                stream.write_all(&[&length[..], answer].concat()).ok();
            }
        });
    };
    let model = Model::start_after(vec![shell(id, "touch ran")], Box::new(world.replace_guard(listen)));
    let output = world.agent(id, &model, "do it");
    assert!(model.was_asked() && !world.ran("ran"), "{output:?} {:?}", model.results());
    nobody_answered(&model);
}

/// Listens at a socket as another user, who takes every question and answers none.
const NOBODY: &str = "import os, socket, sys
s = socket.socket(socket.AF_UNIX)
os.setuid(65534)
s.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
s.listen()
print('listens', flush=True)
os.close(1)
s.settimeout(60)
while True:
    c, _ = s.accept()
    c.close()";

/// The socket is another user's. Only root can be somebody else: others have the test of the check alone.
fn another_users_socket(id: &str) {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let world = World::guarded(id, "");
    let (around, top) = (world.surroundings(), world.path(""));
    let listen = move |socket: &Path| {
        for folder in socket.ancestors().skip(1).take_while(|folder| folder.starts_with(&top)) {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        let mut python = around.command("python3");
        let mut child = python.args(["-c", NOBODY]).arg(socket).stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0; 7]).unwrap();
        // It ends by itself when nobody asks any more.
        thread::spawn(move || child.wait());
    };
    let model = Model::start_after(vec![shell(id, "touch ran")], Box::new(world.replace_guard(listen)));
    let output = world.agent(id, &model, "do it");
    assert!(model.was_asked() && !world.ran("ran"), "{output:?} {:?}", model.results());
    nobody_answered(&model);
}

/// The tests of one agent.
macro_rules! cells {
    ($($agent:ident),* $(,)?) => {$(
        mod $agent {
            use super::*;

            const ID: &str = stringify!($agent);

            #[test]
            fn a_call_that_a_person_approves_runs() {
                approved(ID);
            }

            #[test]
            fn a_call_that_a_person_refuses_does_not_run() {
                refused_by_a_person(ID);
            }

            #[test]
            fn calls_of_a_sub_agent_are_held() {
                calls_of_a_sub_agent(ID);
            }

            #[test]
            fn calls_of_an_mcp_server_are_held() {
                calls_of_a_server(ID);
            }

            #[test]
            fn a_reason_of_100_kilobytes_refuses() {
                long_reason(ID);
            }

            #[test]
            fn a_daemon_that_is_killed_during_the_question_leaves_a_refusal() {
                killed_during(ID);
            }

            #[test]
            fn a_daemon_that_is_killed_after_its_answer_leaves_refusals() {
                killed_after(ID);
            }

            #[test]
            fn a_daemon_of_another_version_lets_nothing_run() {
                another_version(ID);
            }

            #[test]
            fn a_socket_of_another_user_lets_nothing_run() {
                another_users_socket(ID);
            }
        }
    )*};
}

cells! { claude, codex, gemini, qwen, copilot, kimi, cline, opencode, pi }
