//! Hooks that a host runs only after somebody accepted them: asked and told over its server on standard streams.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use guard::settings::CLIENT;
use serde_json::{Map, Value, json};

/// How long the server has for an answer: it starts in half a second, on a busy machine in some.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// One of our hooks as the host knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListedHook {
    key: String,
    hash: String,
    /// Whether the host would run it.
    runs: bool,
}

/// How many of our hooks in a file the host knows, and how many of them it would not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acceptance {
    /// Those that it knows.
    pub(crate) known: usize,
    /// Those of them that it passes over.
    pub(crate) passed_over: usize,
}

/// The server of a host.
struct AppServer {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    asked: u64,
}

impl Drop for AppServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl AppServer {
    fn start(program: &Path, folder: &Path) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.arg("app-server").current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command
            .spawn()
            .map_err(|error| format!("`{} app-server` cannot be started: {error}", program.display()))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("its server has no standard streams".to_owned());
        };
        let (say, lines) = mpsc::channel();
        // It ends with the server, whose standard output it reads.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if say.send(line).is_err() {
                    return;
                }
            }
        });
        let mut server = Self { child, stdin, lines, asked: 0 };
        let client = json!({"name": "pintle", "title": "Pintle", "version": env!("CARGO_PKG_VERSION")});
        server.ask("initialize", &json!({"clientInfo": client}))?;
        server.say(&json!({"method": "initialized"}))?;
        Ok(server)
    }

    fn say(&mut self, message: &Value) -> Result<(), String> {
        writeln!(self.stdin, "{message}").map_err(|error| format!("its server does not listen: {error}"))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        self.asked += 1;
        let id = self.asked;
        self.say(&json!({"id": id, "method": method, "params": params}))?;
        loop {
            let line =
                self.lines.recv_timeout(ANSWER_TIME).map_err(|_| format!("its server does not answer `{method}`"))?;
            let Ok(mut answer) = serde_json::from_str::<Value>(&line) else { continue };
            if answer["id"] != json!(id) || answer.get("method").is_some() {
                continue;
            }
            if let Some(error) = answer.get("error") {
                return Err(format!(
                    "its server refuses `{method}`: {}",
                    error["message"].as_str().unwrap_or_default()
                ));
            }
            return Ok(answer["result"].take());
        }
    }

    /// Our hooks in `file`, as they stand in `folder`.
    fn listed(&mut self, file: &Path, folder: &Path) -> Result<Vec<ListedHook>, String> {
        let answer = self.ask("hooks/list", &json!({"cwds": [folder]}))?;
        Ok(listed(&answer, file))
    }
}

fn listed(answer: &Value, file: &Path) -> Vec<ListedHook> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let file = real(file);
    let text = |hook: &Value, name: &str| hook[name].as_str().unwrap_or_default().to_owned();
    let hooks =
        answer["data"].as_array().into_iter().flatten().flat_map(|row| row["hooks"].as_array().into_iter().flatten());
    let ours = hooks.filter(|hook| {
        text(hook, "command").contains(CLIENT) && real(&PathBuf::from(text(hook, "sourcePath"))) == file
    });
    ours.map(|hook| {
        let is_trusted =
            ["trusted", "managed"].contains(&text(hook, "trustStatus").as_str()) || hook["isManaged"] == true;
        ListedHook {
            key: text(hook, "key"),
            hash: text(hook, "currentHash"),
            runs: is_trusted && hook["enabled"] == true,
        }
    })
    .collect()
}

fn counted(hooks: &[ListedHook]) -> Acceptance {
    Acceptance { known: hooks.len(), passed_over: hooks.iter().filter(|hook| !hook.runs).count() }
}

/// Whether the host `program` accepted our hooks in `file`, for whoever works in `folder`.
///
/// # Errors
/// Why it cannot be asked.
pub(crate) fn look(program: &Path, file: &Path, folder: &Path) -> Result<Acceptance, String> {
    Ok(counted(&AppServer::start(program, folder)?.listed(file, folder)?))
}

/// Has the host `program` accept our hooks in `file`.
///
/// # Errors
/// Why it does not.
pub(crate) fn accept(program: &Path, file: &Path, folder: &Path) -> Result<Acceptance, String> {
    let mut server = AppServer::start(program, folder)?;
    let hooks = server.listed(file, folder)?;
    let states: Map<String, Value> =
        hooks.iter().map(|hook| (hook.key.clone(), json!({"trusted_hash": hook.hash}))).collect();
    let edit = json!({"keyPath": "hooks.state", "value": states, "mergeStrategy": "upsert"});
    server.ask("config/batchWrite", &json!({"edits": [edit], "reloadUserConfig": true}))?;
    Ok(counted(&server.listed(file, folder)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_hooks_of_the_file_are_counted() {
        let hook = |command: &str, source: &str, status: &str, enabled: bool| {
            json!({
                "key": format!("{source}:stop:0:0"), "command": command, "sourcePath": source, "trustStatus": status,
                "enabled": enabled, "isManaged": false, "currentHash": "sha256:1",
            })
        };
        let hooks = json!([
            hook("/b/pintle-hook --host codex", "/nowhere/hooks.json", "trusted", true),
            hook("/b/pintle-hook --host codex", "/nowhere/hooks.json", "modified", true),
            hook("/b/pintle-hook --host codex", "/nowhere/hooks.json", "trusted", false),
            hook("say done", "/nowhere/hooks.json", "untrusted", true),
            hook("/b/pintle-hook --host codex", "/elsewhere/hooks.json", "untrusted", true),
        ]);
        let found = listed(&json!({"data": [{"hooks": hooks}]}), Path::new("/nowhere/hooks.json"));
        assert_eq!(counted(&found), Acceptance { known: 3, passed_over: 2 });
        assert_eq!(counted(&listed(&json!({}), Path::new("/x"))), Acceptance { known: 0, passed_over: 0 });
    }
}
