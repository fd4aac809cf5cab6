//! Clients that are no hosts of hooks: they come in through their model or their tools, and who they are is guessed of how
//! they call themselves. Nothing depends on the guess but names of tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_domain::checkpoint::AgentInfo;
use pintle_domain::id::HookName;
use pintle_domain::json::Object;
use pintle_domain::shell::{LastRead, ShellCommand, ShellFacts, ShellKind, ShellText};
use pintle_domain::tool::{CallPlace, ToolCall};

use crate::event::{HostCall, HostEvent, HostWhat};
use crate::filled::takes_patch;
use crate::host::GuardHost;
use crate::hosts::{HOSTS, host};
use crate::path_pattern::path_named;
use crate::protects::{GuardedFiles, protects};
use crate::shell_tools::{COMMAND, EXEC, TYPED, folder_in, is_like_shell, is_named};
use crate::tools::{Holds, ToolClass, ToolRow, patched_in_text, paths_in, shell_texts, strings};
use crate::wire::mcp_name;

/// How clients call themselves, and which host that is. Source: what they were seen to send.
const AGENTS: [(&str, &str); 9] = [
    ("claude-cli", "claude"),
    ("codex", "codex"),
    ("geminicli", "gemini"),
    ("qwencode", "qwen"),
    ("copilot", "copilot"),
    ("kimi", "kimi"),
    ("cline", "cline"),
    ("opencode", "opencode"),
    ("pi/", "pi"),
];

/// Stands for the folder of a client that works nobody knows where: nothing is found in it, and what leads out of it is
/// seen to.
const NOWHERE: &str = "/the/folder/of/the/client";

/// What a call of the tool `row` with `arguments` would do in a folder of a workspace: by its shell texts, or by the files
/// that it writes.
pub fn facts_of_call(row: &ToolRow, arguments: &Object, around: (&Path, &Path)) -> Arc<ShellFacts> {
    match row.class {
        ToolClass::FileWrite => facts_of_files(&paths_in(row.holds, arguments), around),
        ToolClass::Shell
        | ToolClass::FileRead
        | ToolClass::Web
        | ToolClass::Mcp
        | ToolClass::Subagent
        | ToolClass::Other => facts_of(&shell_texts(row, arguments), around),
    }
}

/// What writing `files` does; nothing is known where there are none.
fn facts_of_files(files: &[&str], (cwd, workspace): (&Path, &Path)) -> Arc<ShellFacts> {
    let files: Vec<&str> = files.iter().map(|file| path_named(file)).collect();
    match files.as_slice() {
        [] => Arc::default(),
        files => Arc::new(pintle_shell::written(files, cwd, workspace)),
    }
}

/// What shell texts of one call would do, in a folder of a workspace.
fn facts_of(texts: &[&str], (cwd, workspace): (&Path, &Path)) -> Arc<ShellFacts> {
    if texts.is_empty() {
        return Arc::default();
    }
    // Several run one after another, each in a shell of its own.
    let text = texts.join("\n");
    let mut facts = pintle_shell::facts(ShellText { text: &text, cwd, workspace, shell: ShellKind::Unknown });
    // A patch that is handed to the agent's own program for patches names its files itself.
    let takers: Vec<&ShellCommand> = facts.commands.iter().filter(|command| takes_patch(command)).collect();
    let told: Vec<ShellFacts> = takers.iter().map(|command| patched_facts(&text, command, (cwd, workspace))).collect();
    for patched in told {
        facts.writes.extend(patched.writes);
        facts.outside.extend(patched.outside);
        if patched.unknown && !facts.unknown {
            (facts.unknown, facts.unknown_why) = (true, patched.unknown_why);
        }
    }
    Arc::new(facts)
}

/// What the patch in `text` does that `command` takes.
fn patched_facts(text: &str, command: &ShellCommand, (cwd, workspace): (&Path, &Path)) -> ShellFacts {
    let folder = if command.cwd.is_empty() { cwd } else { Path::new(&command.cwd) };
    pintle_shell::written(&patched_in_text(text), folder, workspace)
}

/// Of what a call does those `facts` that hold wherever its folder is: a whole path may lie inside of it, unless nobody
/// works there. What would be deleted stays outside.
fn from_afar(facts: Arc<ShellFacts>) -> Arc<ShellFacts> {
    let mut facts = Arc::unwrap_or_clone(facts);
    let ShellFacts { deletes, outside, .. } = &mut facts;
    outside.retain(|path| deletes.contains(path) || is_nobodys_folder(path));
    Arc::new(facts)
}

/// Whether `path` leads out of [`NOWHERE`] or lies where nobody has a folder to work in: one of the system, or a hidden one
/// of a home folder. The guard `starter-outside` has the same list.
fn is_nobodys_folder(path: &str) -> bool {
    let Some(rooted) = path.strip_prefix('/') else { return true };
    // On macOS letters have no case, and some of these folders lie below `/private`.
    let rooted = rooted.to_ascii_lowercase();
    let mut parts = rooted.strip_prefix("private/").unwrap_or(&rooted).split('/');
    let (first, second, third) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let is_hidden = |name: Option<&str>| name.is_some_and(|name| name.len() > 1 && name.starts_with('.'));
    match first {
        "" | "the" | "private" | "etc" | "bin" | "sbin" | "boot" | "dev" | "proc" | "sys" | "run" | "system"
        | "library" | "applications" => true,
        "usr" => match (second, third) {
            (Some("src"), Some(_)) => false,
            (Some("local"), Some("src")) => parts.next().is_none(),
            (Some(_) | None, Some(_) | None) => true,
        },
        "var" => match second {
            Some("lib" | "spool" | "cache" | "log" | "run" | "mail" | "lock" | "backups" | "db" | "root") => true,
            Some("home") => is_hidden(parts.next()),
            Some(_) | None => false,
        },
        "root" => is_hidden(second),
        "home" => is_hidden(third),
        "users" => {
            let is_cloud = matches!(parts.next(), Some("mobile documents" | "cloudstorage")) && parts.next().is_some();
            is_hidden(third) || (third == Some("library") && !is_cloud)
        }
        name => {
            name.strip_prefix("lib").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
        }
    }
}

/// Why `call` of `client` in `folder` must not run, whatever hooks say: it is about what guards.
pub fn client_protects(
    client: Option<&'static GuardHost>,
    call: &ToolCall,
    (folder, home, own): (&Path, &str, &[String]),
) -> Option<String> {
    protects(&client_event(client, call, folder), &GuardedFiles { home, own, lifted: false })
}

/// `call` of `client` in `folder`, as its hooks would tell it if it had any.
pub fn client_event(client: Option<&'static GuardHost>, call: &ToolCall, folder: &Path) -> HostEvent {
    let (host, row) = tool_of(client, &call.raw_tool, &call.arguments);
    let is_shell = row.is_some_and(|row| row.class == ToolClass::Shell);
    let folder = if is_shell { works_in(&call.arguments, folder) } else { folder.to_owned() };
    HostEvent {
        host: host.id,
        event: String::new(),
        session: String::new(),
        turn: None,
        call: None,
        subagent: None,
        cwd: folder.display().to_string(),
        transcript: None,
        attended: None,
        what: HostWhat::Tool(HostCall {
            native: row.map_or_else(|| call.raw_tool.clone(), |row| row.native.to_owned()),
            canonical: call.tool.clone(),
            class: row.map_or(ToolClass::Other, |row| row.class),
            arguments: call.arguments.clone(),
        }),
        host_raw: Object::new(),
    }
}

/// The host that calls itself `user_agent`, as far as that can be guessed.
pub fn client_of(user_agent: &str) -> Option<&'static GuardHost> {
    let said = user_agent.to_lowercase();
    let (_, id) = AGENTS.iter().find(|(mark, _)| said.starts_with(mark))?;
    host(id)
}

/// The host and the row of a tool: of the client that is guessed, else of the first host that has a tool of this name.
/// One that nobody has, with a command in its arguments, is taken for a shell.
fn tool_of(
    client: Option<&'static GuardHost>,
    native: &str,
    arguments: &Object,
) -> (&'static GuardHost, Option<&'static ToolRow>) {
    let hosts = client.into_iter().chain(HOSTS.iter().copied());
    if let Some(found) = hosts.into_iter().find_map(|host| Some((host, host.tool(native)?))) {
        return (found.0, Some(found.1));
    }
    // What also names a file, as editors do whose commands are words of their own, is looked at as a whole, and so is what
    // belongs to a server.
    let names_none = mcp_name(native).is_none() && !arguments.iter().any(|(member, _)| names_file(member));
    let is_whole = is_like_shell(native) || names_none;
    let has_command = is_whole && arguments.get(COMMAND).is_some_and(|text| text.is_string() || is_like_shell(native));
    let shell = HOSTS.iter().copied().find_map(|host| {
        let row = host.tools.iter().find(|row| row.class == ToolClass::Shell && takes_command(row))?;
        Some((host, row))
    });
    match (has_command, shell) {
        (true, Some((host, row))) => (host, Some(row)),
        (true | false, _) => (client.unwrap_or(HOSTS[0]), None),
    }
}

/// Whether an argument `member` is likely to name the file that a tool writes. The starter guards have the same list.
fn names_file(member: &str) -> bool {
    let plain: String = member.chars().filter(|letter| *letter != '_').collect();
    matches!(
        plain.to_lowercase().as_str(),
        "path" | "filepath" | "absolutepath" | "notebookpath" | "target" | "targetfile" | "file" | "filename"
    )
}

/// Where a text of the shell runs that a client in `folder` calls for with `arguments`.
fn works_in(arguments: &Object, folder: &Path) -> PathBuf {
    folder_in(arguments).map_or_else(|| folder.to_owned(), |said| folder.join(said))
}

fn takes_command(row: &ToolRow) -> bool {
    row.holds == [Holds::Shell(COMMAND)]
}

/// What hooks may know of calls of a client: its tools, as far as it is known, and the folder that it works in.
pub struct ClientKnowledge {
    client: Option<&'static GuardHost>,
    /// Where it works; nothing where nobody knows.
    folder: Option<PathBuf>,
    agent_uuid: String,
    /// What was read of its calls last.
    read: LastRead,
}

impl ClientKnowledge {
    /// What is known of `client`, if anybody knows it, which works in `folder`, if anybody knows that.
    pub fn new(client: Option<&'static GuardHost>, folder: Option<PathBuf>, agent_uuid: String) -> Self {
        Self { client, folder, agent_uuid, read: LastRead::default() }
    }

    /// The rows of tools that rules know as `name`.
    fn rows<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'static ToolRow> + 'a {
        let hosts = self.client.into_iter().chain(HOSTS.iter().copied());
        hosts.flat_map(|host| host.tools.iter()).filter(move |row| row.canonical == name)
    }

    /// What a call of the tool that rules know as `name` would do in `folder`.
    fn facts(&self, name: &str, arguments: &Object, folder: &Path) -> Arc<ShellFacts> {
        // Which of the names its tool reads is not known for sure: each may be the one.
        let mut writing = self.rows(name).filter(|row| row.class == ToolClass::FileWrite).peekable();
        let is_writing = writing.peek().is_some();
        let holds: Vec<Holds> = writing.flat_map(|row| row.holds.iter().copied()).collect();
        let mut files = paths_in(&holds, arguments);
        // One that no host has may be it, too.
        let named = arguments.iter().filter(|(member, _)| is_writing && names_file(member));
        files.extend(named.flat_map(|(_, value)| strings(value)));
        if !files.is_empty() {
            return facts_of_files(&files, (folder, folder));
        }
        // What is typed into an open shell has come as a command: any other `input` is a script of another language.
        let mut shells = self.rows(name).filter(|row| !row.holds.contains(&Holds::Shell(TYPED)));
        let known = shells.find_map(|row| Some(shell_texts(row, arguments)).filter(|texts| !texts.is_empty()));
        let texts = known.or_else(|| Some(vec![arguments.get(COMMAND)?.as_str()?])).unwrap_or_default();
        facts_of(&texts, (&works_in(arguments, folder), folder))
    }
}

impl AgentInfo for ClientKnowledge {
    fn tool(&self, name: &str) -> Option<String> {
        let hosts = self.client.into_iter().chain(HOSTS.iter().copied());
        if let Some(row) = hosts.into_iter().find_map(|host| host.tool(name)) {
            return Some(row.canonical.to_owned());
        }
        if is_named(name) {
            return Some(EXEC.to_owned());
        }
        Some(mcp_name(name).unwrap_or_else(|| name.to_owned()))
    }

    fn model(&self, _model: &str) -> bool {
        true
    }

    fn owner(&self, _name: &str) -> Option<HookName> {
        None
    }

    fn agent_uuid(&self) -> &str {
        &self.agent_uuid
    }

    fn shell(&self, name: &str, arguments: &Object) -> Arc<ShellFacts> {
        let read = || match &self.folder {
            Some(folder) => self.facts(name, arguments, folder),
            None => from_afar(self.facts(name, arguments, Path::new(NOWHERE))),
        };
        self.read.facts(name, arguments, read)
    }

    fn place(&self, _name: &str) -> CallPlace {
        self.folder.as_ref().map_or_else(CallPlace::default, |folder| CallPlace::in_folder(folder.display()))
    }
}

#[cfg(test)]
mod tests {
    use pintle_domain::json::{Value, json};

    use super::*;

    #[test]
    fn tools_are_known_by_the_names_that_rules_have() {
        let known = |agent: &str| ClientKnowledge::new(client_of(agent), Some("/w".into()), String::new());
        for (agent, native, canonical) in [
            ("claude-cli/2.1.330 (external, cli)", "Bash", "exec"),
            ("python-requests/2", "Bash", "exec"),
            ("", "mcp__box__touch", "mcp_box_touch"),
            ("", "lookup_order", "lookup_order"),
            ("codex_cli_rs/0.169", "exec_command", "exec"),
            ("", "shell", "exec"),
        ] {
            assert_eq!(known(agent).tool(native).as_deref(), Some(canonical), "{agent} {native}");
        }
        let facts = |name: &str, arguments: Value| known("").shell(name, arguments.as_object().unwrap());
        assert_eq!(facts("exec", json!({"command": "git push"})).commands.len(), 1);
        assert_eq!(facts("run_it", json!({"command": "git push"})).commands.len(), 1);
        assert_eq!(*facts("lookup_order", json!({"order": "1"})), ShellFacts::default());
    }

    #[test]
    fn what_a_tool_writes_is_known_whatever_its_agent_calls_the_file() {
        let arguments = |holds: &Holds, file: &str| {
            let (member, value) = match holds {
                Holds::Path(member) => (member, file.to_owned()),
                Holds::Patch(member) => (member, format!("*** Begin Patch\n*** Update File: {file}\n*** End Patch")),
                Holds::Shell(member) => panic!("{member} is no file"),
            };
            Object::from_iter([((*member).to_owned(), Value::from(value))])
        };
        let around = (Path::new("/code/app/src"), Path::new("/code/app"));
        let mut seen = 0;
        let rows = HOSTS.iter().copied().flat_map(|host| host.tools.iter().map(move |row| (host, row)));
        for (host, row) in rows.filter(|(_, row)| row.class == ToolClass::FileWrite) {
            for holds in row.holds {
                let written = |file: &str| {
                    let facts = facts_of_call(row, &arguments(holds, file), around);
                    assert!(facts.commands.is_empty() && !facts.unknown, "{} {}", host.id, row.native);
                    (facts.writes.clone(), facts.outside.clone())
                };
                let path = |path: &str| vec![path.to_owned()];
                assert_eq!(written("/etc/passwd"), (path("/etc/passwd"), path("/etc/passwd")));
                for url in ["file:///etc/passwd", "File://localhost/etc/passwd", "file:/etc/passwd"] {
                    assert_eq!(written(url), (path("/etc/passwd"), path("/etc/passwd")), "{url}");
                }
                assert_eq!(written("~/.bashrc"), (path("~/.bashrc"), path("~/.bashrc")));
                assert_eq!(written("../../x"), (path("/code/x"), path("/code/x")));
                assert_eq!(written("/code/app/x"), (path("/code/app/x"), vec![]));
                assert_eq!(written("../.git/hooks/pre-commit"), (path("/code/app/.git/hooks/pre-commit"), vec![]));
                assert_eq!(written("/dev/null"), (vec![], vec![]));
                let client = ClientKnowledge::new(None, Some("/code/app".into()), String::new());
                let facts = client.shell(row.canonical, &arguments(holds, "/etc/passwd"));
                assert_eq!(facts.outside, ["/etc/passwd"], "{} {}", host.id, row.native);
                seen += 1;
            }
        }
        assert!(seen > HOSTS.len(), "{seen}");
    }

    #[test]
    fn a_patch_within_a_text_writes_the_files_that_it_names() {
        let client = ClientKnowledge::new(None, Some("/code/app".into()), String::new());
        let text =
            "cd src && apply_patch <<'E'\n*** Begin Patch\n*** Add File: /etc/x\n+y\n*** Add File: a\n*** End Patch\nE";
        let facts = client.shell("exec", json!({"command": text}).as_object().unwrap());
        assert!(facts.writes.contains(&"/etc/x".to_owned()) && facts.writes.contains(&"/code/app/src/a".to_owned()));
        assert!(facts.outside.contains(&"/etc/x".to_owned()));
        let free = json!({"input": "*** Begin Patch\n*** Add File: /etc/x\n*** End Patch"});
        assert_eq!(client.shell("edit_file", free.as_object().unwrap()).outside, ["/etc/x"]);
    }

    #[test]
    fn a_text_runs_where_its_call_says() {
        let client = ClientKnowledge::new(None, Some("/code/app".into()), String::new());
        let text = json!({"command": "echo x > y", "workdir": "/etc"});
        assert_eq!(client.shell("exec", text.as_object().unwrap()).outside, ["/etc/y"]);
    }

    #[test]
    fn no_argument_hides_the_file_that_another_one_names() {
        let client = ClientKnowledge::new(None, Some("/code/app".into()), String::new());
        for (arguments, outside) in [
            (json!({"file_path": "a.md", "filename": "/etc/x"}), &["/etc/x"][..]),
            (json!({"file_path": "a.md", "fileName": ["b", "../x"]}), &["/code/x"]),
            (json!({"path": "a.md", "Target_File": "~/x"}), &["~/x"]),
            (json!({"command": "ls", "file": "/etc/x"}), &["/etc/x"]),
            (json!({"file_path": "a.md", "content": "/etc/x", "title": "/etc/y"}), &[]),
        ] {
            let facts = client.shell("write_file", arguments.as_object().unwrap());
            assert_eq!(facts.outside, outside, "{arguments}");
        }
    }

    #[test]
    fn where_nobody_knows_the_folder_what_lies_elsewhere_for_sure_is_outside() {
        let known = ClientKnowledge::new(None, None, String::new());
        assert!(known.place("exec").is_anywhere());
        let outside = |name: &str, arguments: Value| known.shell(name, arguments.as_object().unwrap()).outside.clone();
        for (file, is_outside) in [
            ("src/main.rs", false),
            ("./notes.txt", false),
            ("a/../b", false),
            ("/code/app/src/main.rs", false),
            (concat!("/", "Users", "/ann/app/notes.txt"), false),
            ("/usr/local/src/app/x", false),
            ("/usr/src/app/x", false),
            ("/lib-of-ann/x", false),
            ("/lib64/x", true),
            ("../x", true),
            ("../../../x", true),
            ("~/app/x", true),
            ("/etc/passwd", true),
            ("../../../../../etc/passwd", true),
            ("/usr/local/bin/x", true),
            ("/var/spool/cron/x", true),
            (concat!("/", "Users", "/ann/.ssh/config"), true),
            // The same folders in other words.
            ("//etc/passwd", true),
            ("/ETC/passwd", true),
            ("/private/etc/passwd", true),
            ("/private/tmp/x", false),
            ("/proc/self/root/code/app/x", false),
            ("/proc/self/root/etc/x", true),
            ("/usrdata/app/x", false),
            ("/var/backups/x", true),
            ("/var/www/app/x", false),
            ("/var/home/ann/.ssh/config", true),
            ("/var/home/ann/app/x", false),
            (concat!("/", "Users", "/ann/Library/LaunchAgents/x.plist"), true),
            (concat!("/", "Users", "/ann/Library/CloudStorage/app/x"), false),
        ] {
            let write = json!({ "file_path": file, "content": "x" });
            assert_eq!(!outside("write_file", write).is_empty(), is_outside, "{file}");
            let text = format!("echo x > {file}");
            assert_eq!(!outside("exec", json!({ "command": text })).is_empty(), is_outside, "{text}");
        }
        assert_eq!(
            outside("exec", json!({"command": "rm -rf /code/app"})),
            ["/code/app"],
            "deleting is not given back"
        );
        assert_eq!(outside("exec", json!({"command": "rm -rf build"})), [""; 0]);
    }

    #[test]
    fn a_tool_that_nobody_knows_is_a_shell_if_it_has_a_command() {
        let class = |native: &str, arguments: Value| {
            tool_of(None, native, arguments.as_object().unwrap()).1.map(|row| row.class)
        };
        assert_eq!(class("run_it", json!({"command": "x"})), Some(ToolClass::Shell));
        assert_eq!(class("run_it", json!({"order": "x"})), None);
        assert_eq!(class("edit_it", json!({"command": "create", "path": "x"})), None);
        assert_eq!(class("shell", json!({"command": ["ls", 7]})), Some(ToolClass::Shell));
        assert_eq!(class("Write", json!({"file_path": "x"})), Some(ToolClass::FileWrite));
    }
}
