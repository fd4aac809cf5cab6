//! Hooks that were taken over from the settings of coding agents: one file for each file of settings, in the home folder.
//! `pintle guard install --adopt` writes them, `uninstall` takes them away; they count wherever this home does.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use pintle_dialects::claude::condition::PermissionRule;
use pintle_dialects::claude::config::ListContext;
use pintle_dialects::claude::{ClaudeEvent, CommandEntry};
use pintle_dialects::command::depends_on_folder;
use pintle_domain::hook::Hook;
use pintle_domain::id::HookName;
use pintle_domain::json::{Object, Value, from_value, json};
use pintle_domain::matcher::Matcher;
use uuid::Uuid;

use super::commands::REPLACEABLE;
use super::resolve::commands_before;
use super::trust::{FileHashes, SpawnSeal, TrustEntry, adopted_entry, covers_by};
use super::{Config, Diagnostic, Env, HookKind, LoadedHook, Location};

/// The folder of these files, in the home folder.
const FOLDER: &str = "guard/adopted";

/// How the origin of an adopted hook ends.
pub const ADOPTED: &str = "(adopted)";

/// How much of its digest is in the name of an adopted hook: two of one event share so much once in ten thousand homes with
/// hundreds of hooks each.
const DIGEST_CHARS: usize = 8;

/// The form of these files.
const VERSION: u64 = 1;

/// What was taken over from one file.
#[derive(Clone, Debug, PartialEq)]
pub struct AdoptedHooks {
    /// The agent, by its id.
    pub host: String,
    /// The file of its settings.
    pub file: PathBuf,
    /// The folder in which they count; everywhere where there is none.
    pub folder: Option<PathBuf>,
    /// The lists of events, as they stood there.
    pub taken: Object,
    /// The same lists in the form in which they run.
    pub hooks: Object,
}

/// The files with adopted hooks of `home`, in order.
pub fn files(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.join(FOLDER)).into_iter().flatten().flatten();
    let json = |path: &PathBuf| path.extension() == Some(OsStr::new("json"));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(json).collect();
    files.sort();
    files
}

/// The folder of these files: what appears there counts.
pub fn folder(home: &Path) -> PathBuf {
    home.join(FOLDER)
}

/// Where it is kept what was taken over from `file` of `host`.
fn place(home: &Path, host: &str, file: &Path) -> PathBuf {
    let name = Uuid::new_v5(&Uuid::NAMESPACE_URL, file.as_os_str().as_encoded_bytes());
    home.join(FOLDER).join(format!("{host}-{name}.json"))
}

/// What was taken over from `file` of `host`, if anything was.
///
/// # Errors
/// It cannot be read.
pub fn of_file(home: &Path, host: &str, file: &Path) -> io::Result<Option<AdoptedHooks>> {
    match fs::read_to_string(place(home, host, file)) {
        Ok(text) => AdoptedHooks::read(&text).map(Some).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Everything that was taken over; what cannot be read is told with its file.
pub fn all(home: &Path) -> Vec<(PathBuf, Result<AdoptedHooks, String>)> {
    let read = |file: &PathBuf| {
        let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
        AdoptedHooks::read(&text)
    };
    files(home).into_iter().map(|file| (file.clone(), read(&file))).collect()
}

/// Keeps `adopted`, whole or not at all, with what its commands are now where they belong to a project.
///
/// # Errors
/// It cannot be written.
pub fn write(home: &Path, adopted: &AdoptedHooks) -> io::Result<()> {
    let at = place(home, &adopted.host, &adopted.file);
    fs::create_dir_all(at.parent().unwrap_or(home))?;
    let mut whole = json!({
        "version": VERSION,
        "host": adopted.host.as_str(),
        "file": adopted.file.to_string_lossy().into_owned(),
        "folder": adopted.folder.as_ref().map(|folder| folder.to_string_lossy().into_owned()),
        "hooks": adopted.hooks,
        "taken": adopted.taken,
    });
    if let Some(folder) = &adopted.folder {
        let mut hashes = FileHashes::default();
        let mut digest = |list: &Value| covers_by(&adopted_entry(list, folder), None, &mut hashes).digest;
        let digests: Object = adopted.hooks.iter().map(|(name, list)| (name.clone(), digest(list).into())).collect();
        whole["digests"] = Value::Object(digests);
    }
    let beside = at.with_extension("new");
    let mut made = File::options().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    made.write_all(format!("{whole}\n").as_bytes())?;
    made.sync_all()?;
    fs::rename(beside, at)
}

/// Forgets what was taken over from `file` of `host`.
///
/// # Errors
/// It cannot be removed.
pub fn forget(home: &Path, host: &str, file: &Path) -> io::Result<()> {
    match fs::remove_file(place(home, host, file)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

impl AdoptedHooks {
    fn read(text: &str) -> Result<Self, String> {
        Ok(Kept::read(text)?.adopted)
    }

    /// How many commands were taken over.
    pub fn count(&self) -> usize {
        let groups = self.hooks.values().filter_map(Value::as_array).flatten();
        groups.filter_map(|group| group.get("hooks")?.as_array()).map(Vec::len).sum()
    }

    /// Whether they count where the work is done in `cwd`.
    fn counts_in(&self, cwd: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        self.folder.as_ref().is_none_or(|folder| real(cwd).starts_with(real(folder)))
    }
}

/// One file, read.
struct Kept {
    adopted: AdoptedHooks,
    /// What the commands of each event were when they were taken over.
    digests: Object,
}

impl Kept {
    fn read(text: &str) -> Result<Self, String> {
        let whole = pintle_domain::json::parse(text)?;
        if whole.get("version").and_then(Value::as_u64) != Some(VERSION) {
            return Err("it is of a version that is not known here".to_owned());
        }
        let said = |name: &str| whole.get(name).and_then(Value::as_str);
        let lists = |name: &str| match whole.get(name) {
            Some(Value::Object(lists)) => Ok(lists.clone()),
            None | Some(_) => Err(format!("`{name}` is missing")),
        };
        let adopted = AdoptedHooks {
            host: said("host").ok_or("`host` is missing")?.to_owned(),
            file: said("file").ok_or("`file` is missing")?.into(),
            folder: said("folder").map(PathBuf::from),
            taken: lists("taken")?,
            hooks: lists("hooks")?,
        };
        let digests = if adopted.folder.is_some() { lists("digests")? } else { Object::new() };
        Ok(Self { adopted, digests })
    }
}

/// Adds the adopted hooks of the home of `config` that count in the surroundings, behind those that it has. One that
/// cannot be read leaves a stub that stays shut, and a line.
pub(super) fn add(config: &mut Config, env: &Env) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for file in files(&config.home) {
        let read = fs::read_to_string(&file).map_err(|error| error.to_string());
        match read.and_then(|text| Kept::read(&text)) {
            Ok(kept) if kept.adopted.counts_in(&env.cwd) => {
                for (name, list) in &kept.adopted.hooks {
                    let of_list = AdoptedList { kept: &kept, file: &file };
                    found.extend(of_list.add(config, (name, list)));
                }
            }
            Ok(_) => {}
            Err(why) => found.push(shut(config, &file, &why)),
        }
    }
    found
}

/// The stub of a file that cannot be read: every call is shut, and the line that says why.
fn shut(config: &mut Config, file: &Path, why: &str) -> Diagnostic {
    let message = format!("what was adopted cannot be read: {why}; `pintle guard uninstall` puts the hooks back");
    let event = ClaudeEvent::PreToolUse;
    let origin = file.display().to_string();
    let around =
        ListContext { event, origin: &origin, before: commands_before(config, event), inherit_env: &[], files: None };
    config.hooks.push(nobody(around.broken(&message)));
    diagnostic(file, message)
}

fn nobody(hook: Hook) -> LoadedHook {
    LoadedHook { hook, kind: HookKind::Nothing, seal: None, content: None }
}

fn diagnostic(file: &Path, message: String) -> Diagnostic {
    let place = Location { file: file.to_owned(), line: 1, column: 1 };
    Diagnostic { place, path: String::new(), message, nearest: None, guard: true }
}

/// What is said of commands that were taken over from `file` and look for files wherever the agent works.
fn replaceable(file: &Path, (event, commands): (&str, &[String])) -> String {
    format!(
        "{REPLACEABLE}: at `{event}` of {} files are looked up in the folder that the agent works in: {}; name them there \
         by absolute paths, or with `~/`, and take the hooks over again",
        file.display(),
        commands.join(", ")
    )
}

/// A command as it stood in the settings of its agent.
pub(crate) fn shown(argv: &[String]) -> String {
    match argv {
        [_, option, text] if option == "-c" => text.clone(),
        words => words.join(" "),
    }
}

/// The list of one event of a file.
struct AdoptedList<'a> {
    kept: &'a Kept,
    file: &'a Path,
}

impl AdoptedList<'_> {
    fn add(&self, config: &mut Config, (name, list): (&str, &Value)) -> Option<Diagnostic> {
        let adopted = &self.kept.adopted;
        let Some(event) = ClaudeEvent::named(name) else {
            return Some(shut(config, self.file, &format!("`{name}` is no event")));
        };
        let origin = format!("{} {ADOPTED}", adopted.file.display());
        let before = commands_before(config, event);
        // Its words mean what they mean to the agent: files of the folder that this works in.
        let around = ListContext { event, origin: &origin, before, inherit_env: &[], files: None };
        let hooks = from_value(list.clone()).map_err(|error| error.to_string()).and_then(|groups: Vec<_>| {
            around
                .hooks(&groups)
                .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        });
        let hooks = match hooks {
            Ok(hooks) => hooks,
            Err(why) => {
                config.hooks.push(nobody(around.broken(&why)));
                return Some(diagnostic(self.file, format!("`{name}` that was adopted cannot be read: {why}")));
            }
        };
        let folder = adopted.folder.clone();
        let content = adopted_entry(list, folder.as_deref().unwrap_or(Path::new("/")));
        let seal = folder.is_some().then(|| self.seal(name, &content));
        let mut named = Vec::new();
        for (mut hook, entry) in hooks {
            // What belongs to a project runs there as it was taken over, or not at all.
            if seal.is_none() && depends_on_folder(&entry.argv) {
                named.push(format!("`{}`", shown(&entry.argv)));
            }
            let name = self.name((event, &hook), &entry);
            let same = config.hooks.iter().filter(|it| it.hook.name.as_str().starts_with(&name)).count();
            hook.name = HookName::new(if same == 0 { name } else { format!("{name}-{}", same + 1) });
            let kind = HookKind::Command(entry);
            config.hooks.push(LoadedHook { hook, kind, seal: seal.clone(), content: Some(content.clone()) });
        }
        (!named.is_empty()).then(|| diagnostic(self.file, replaceable(&adopted.file, (name, &named))))
    }

    /// The name of `hook`. What it is makes it, so that its records stay its own whatever else is taken over later.
    fn name(&self, (event, hook): (ClaudeEvent, &Hook), entry: &CommandEntry) -> String {
        let matcher = hook.matcher.as_ref().or(entry.about.as_ref()).map(Matcher::pattern);
        let condition = entry.condition.as_ref().map(PermissionRule::text);
        let file = self.kept.adopted.file.to_string_lossy().into_owned();
        let what = json!([file, matcher, condition, entry.argv]).to_string();
        let digest = Uuid::new_v5(&Uuid::NAMESPACE_URL, what.as_bytes()).simple().to_string();
        format!("claude.{}.{}", event.name(), &digest[..DIGEST_CHARS])
    }

    /// What is checked before every start of a command that belongs to a project, and that others may change.
    fn seal(&self, name: &str, content: &TrustEntry) -> SpawnSeal {
        let digest = self.kept.digests.get(name).and_then(Value::as_str).unwrap_or_default();
        SpawnSeal::of_adopted(content.clone(), digest.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adopted(folder: Option<&Path>) -> AdoptedHooks {
        let hooks =
            json!({"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./guard.sh"}]}]});
        let Value::Object(hooks) = hooks else { panic!("it is an object") };
        let file = PathBuf::from("/h/me/.claude/settings.json");
        AdoptedHooks { host: "claude".into(), file, folder: folder.map(Path::to_owned), taken: hooks.clone(), hooks }
    }

    fn config(home: &Path, cwd: &Path) -> (Config, Vec<Diagnostic>) {
        let env = Env { vars: [("HOME".into(), home.into())].into(), cwd: cwd.to_owned() };
        let options = crate::config::LoadOptions { home: Some(home), ..Default::default() };
        let loaded = crate::config::load(&env, &options).unwrap();
        (loaded.config, loaded.diagnostics)
    }

    #[test]
    fn what_is_kept_is_read_again_and_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let all = adopted(None);
        write(dir.path(), &all).unwrap();
        assert_eq!(of_file(dir.path(), "claude", &all.file).unwrap().as_ref(), Some(&all));
        assert_eq!((files(dir.path()).len(), all.count()), (1, 1));
        let (config, diagnostics) = config(dir.path(), dir.path());
        let names: Vec<_> = config.hooks.iter().map(|loaded| loaded.hook.name.as_str()).collect();
        let [name] = names.as_slice() else { panic!("{names:?}") };
        assert!(name.starts_with("claude.PreToolUse."), "{name}");
        // Wherever the agent works, another file may stand under that name.
        let [found] = diagnostics.as_slice() else { panic!("{diagnostics:?}") };
        assert!(found.guard && found.message.starts_with("replaceable by the agent: "), "{found}");
        assert!(
            found.message.contains("`PreToolUse` of /h/me/.claude/settings.json")
                && found.message.contains("`./guard.sh`")
        );
        assert_eq!(config.hooks[0].hook.origin, "/h/me/.claude/settings.json (adopted)");
        forget(dir.path(), "claude", &all.file).unwrap();
        forget(dir.path(), "claude", &all.file).unwrap();
        assert!(self::config(dir.path(), dir.path()).0.hooks.is_empty());
    }

    #[test]
    fn a_hook_keeps_its_name_whatever_is_adopted_besides() {
        let home = tempfile::tempdir().unwrap();
        let names = |list: Value, folder: Option<&Path>| -> Vec<String> {
            let hooks = Object::from_iter([("PreToolUse".to_owned(), list)]);
            let file = folder.unwrap_or(Path::new("/h/me")).join(".claude/settings.json");
            write(home.path(), &AdoptedHooks { hooks, file, ..adopted(folder) }).unwrap();
            let loaded = config(home.path(), folder.unwrap_or(home.path())).0;
            loaded.hooks.iter().map(|loaded| loaded.hook.name.as_str().to_owned()).collect()
        };
        let (one, two) = (json!({"command": "./one.sh"}), json!({"command": "./two.sh"}));
        let first = names(json!([{"matcher": "Bash", "hooks": [two]}]), None);
        let both = names(json!([{"hooks": [one, one]}, {"matcher": "Bash", "hooks": [two]}]), None);
        assert_eq!((first.len(), both.len()), (1, 3));
        assert_eq!((&both[2], &both[1]), (&first[0], &format!("{}-2", both[0])));
        // The same command in a project is another hook.
        let project = tempfile::tempdir().unwrap();
        let all = names(json!([{"matcher": "Bash", "hooks": [two]}]), Some(project.path()));
        assert!(all.len() == 4 && both.iter().all(|name| all.contains(name)), "{all:?}");
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{all:?}");
    }

    #[test]
    fn what_a_project_had_counts_there_and_as_it_was() {
        let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let script = project.path().join("guard.sh");
        fs::write(&script, "exit 2").unwrap();
        write(home.path(), &adopted(Some(project.path()))).unwrap();
        assert!(config(home.path(), home.path()).0.hooks.is_empty(), "elsewhere it is nobody's");
        let hooks = config(home.path(), project.path()).0.hooks;
        let seal = hooks[0].seal.as_ref().unwrap();
        assert_eq!(seal.check().map(drop), Ok(()));
        fs::write(&script, "exit 0").unwrap();
        assert!(seal.check().is_err());
    }

    #[test]
    fn a_script_that_changed_is_seen_however_the_command_comes_to_it() {
        for command in [
            "cd real && ./guard.sh",
            "R=real; $R/guard.sh",
            "${CLAUDE_PROJECT_DIR:-.}/real/guard.sh",
            "`pwd`/real/guard.sh",
            "find real -name guard.sh -exec sh {} +",
            "PATH=$PWD/real:$PATH guard.sh",
        ] {
            let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let script = project.path().join("real/guard.sh");
            fs::create_dir(project.path().join("real")).unwrap();
            fs::write(&script, "exit 2").unwrap();
            let list = json!([{"hooks": [{"type": "command", "command": command}]}]);
            let hooks = Object::from_iter([("PreToolUse".to_owned(), list)]);
            let all = AdoptedHooks { hooks, ..adopted(Some(project.path())) };
            write(home.path(), &all).unwrap();
            let hooks = config(home.path(), project.path()).0.hooks;
            let seal = hooks[0].seal.as_ref().unwrap();
            assert_eq!(seal.check().map(drop), Ok(()), "{command}");
            fs::write(project.path().join("notes.md"), "x").unwrap();
            assert_eq!(seal.check().map(drop), Ok(()), "{command}");
            fs::write(&script, "exit 0").unwrap();
            assert!(seal.check().is_err(), "{command}");
        }
    }

    #[test]
    fn what_cannot_be_read_shuts() {
        let home = tempfile::tempdir().unwrap();
        let folder = folder(home.path());
        fs::create_dir_all(&folder).unwrap();
        for text in [
            "",
            "{}",
            r#"{"version":2}"#,
            r#"{"version":1,"host":"claude","file":"/f","taken":{},"hooks":{"PreToolUse":[{"hooks":[{}]}]}}"#,
        ] {
            fs::write(folder.join("claude-x.json"), text).unwrap();
            let (config, diagnostics) = config(home.path(), home.path());
            let [loaded] = config.hooks.as_slice() else { panic!("{text}: {config:?}") };
            assert!(matches!(loaded.hook.state, pintle_domain::hook::HookState::Broken(_)), "{text}");
            assert!(diagnostics[0].message.contains("cannot be read"), "{text}: {diagnostics:?}");
        }
    }
}
