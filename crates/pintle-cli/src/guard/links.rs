//! Where the paths of a call lead to: a link to what is protected may have any name.

use std::cell::Cell;
use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};

use guard::protects::MAX_PATH_BYTES;
use guard::{GuardedFiles, HOSTS, HostEvent, HostWhat, OnDisk, path_named, protects_behind};

use super::folders::InForce;
use super::found_files::{FileQuestion, MAX_LOOKED, any_found, is_nothing};
use super::own_process::own_process;

/// How many entries of a folder are looked at for settings; one with more may have them.
const MAX_ENTRIES: usize = 10_000;

/// How many links are followed one after another. Source: path_resolution(7).
const MAX_LINKS: u8 = 40;

/// The working directory of whoever asks: that of the agent, not of this process.
const OWN_FOLDERS: [&str; 2] = ["/proc/self/cwd", "/proc/thread-self/cwd"];

/// Where paths begin.
struct Begin<'a> {
    cwd: &'a str,
    home: &'a str,
    real_home: PathBuf,
    /// The settings of agents that lie elsewhere than their names say: where they lie, and the name.
    linked: Vec<(PathBuf, PathBuf)>,
    /// How many entries of folders may still be looked at for patterns.
    left: Cell<usize>,
}

/// What is kept from agents on this machine, and for whom.
#[derive(Clone, Debug)]
pub(super) struct KeptFiles {
    /// The home folder of the person.
    pub(super) home: String,
    /// Our own files that are in use.
    pub(super) used: Vec<String>,
    /// The folders of agents that are elsewhere than the table says.
    pub(super) moved: Vec<String>,
    /// Whether a person lets agents change their own settings.
    pub(super) self_edit: bool,
}

/// What is to be said of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// Nothing.
    Free,
    /// Why it must not run, whatever rules say.
    Held(String),
    /// Why it must not run but for a person who lets agents change their own settings.
    Lifted(String),
}

impl KeptFiles {
    /// What is kept from the clients of a door, for the person whose home folder is `home`.
    pub(super) fn of_door(home: &str, in_force: &InForce) -> Self {
        Self { home: home.to_owned(), used: in_force.own.clone(), moved: Vec::new(), self_edit: false }
    }

    /// Why the call of `event` must not run, whatever rules say.
    pub(super) async fn held(self, event: &HostEvent) -> Option<String> {
        match self.look_at(event).await {
            Looked::Held(reason) | Looked::Lifted(reason) => Some(reason),
            Looked::Free => None,
        }
    }

    /// What is to be said of the call of `event`, by the names of all paths that it touches, and by what they lead to. Takes
    /// no time of whoever else runs: the file system may be slow.
    pub(super) async fn look_at(self, event: &HostEvent) -> Looked {
        let is_of_call =
            matches!(event.what, HostWhat::Tool(_) | HostWhat::Permission { .. } | HostWhat::ConfigChange { .. });
        if !is_of_call {
            return Looked::Free;
        }
        let event = event.clone();
        match tokio::task::spawn_blocking(move || self.look(&event)).await {
            Ok(looked) => looked,
            Err(error) => Looked::Held(format!("what it touches cannot be looked at: {error}")),
        }
    }

    fn look(&self, event: &HostEvent) -> Looked {
        let begin = Begin::of(&event.cwd, &self.home);
        let disk = OnDisk {
            leads: &|path| begin.leads_to(path),
            holds: &|folder, pattern| begin.holds(folder, pattern),
            finds: &|pattern, matters| begin.finds(pattern, matters),
        };
        let real_of = |path: &String| real(Path::new(path), MAX_LINKS).to_string_lossy().into_owned();
        let used: Vec<String> = self.used.iter().cloned().chain(self.used.iter().map(real_of)).collect();
        let moved: Vec<String> = self.moved.iter().cloned().chain(self.moved.iter().map(real_of)).collect();
        let own = [used.as_slice(), &moved].concat();
        let files = GuardedFiles { home: &self.home, own: &own, lifted: false };
        let Some(reason) = protects_behind(event, &files, disk) else { return Looked::Free };
        if !self.self_edit {
            return Looked::Held(reason);
        }
        let lifted = GuardedFiles { own: &used, lifted: true, ..files };
        protects_behind(event, &lifted, disk).map_or(Looked::Lifted(reason), Looked::Held)
    }
}

impl<'a> Begin<'a> {
    fn of(cwd: &'a str, home: &'a str) -> Self {
        let linked = settings(Path::new(cwd), Path::new(home)).filter_map(|named| {
            // What is not there leads nowhere.
            named.symlink_metadata().ok()?;
            let lies = real(&named, MAX_LINKS);
            (lies != named).then_some((lies, named))
        });
        let real_home = real(Path::new(home), MAX_LINKS);
        Self { cwd, home, real_home, linked: linked.collect(), left: Cell::new(MAX_LOOKED) }
    }

    /// `path` as it is meant here, absolute.
    fn whole(&self, path: &str) -> PathBuf {
        match path.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                Path::new(self.home).join(rest.trim_start_matches('/'))
            }
            Some(_) | None => Path::new(self.cwd).join(path),
        }
    }

    /// Whether `folder` has something that `pattern` means, a path below it. A folder that cannot be read may have it.
    fn holds(&self, folder: &str, pattern: &str) -> bool {
        folder.len() <= MAX_PATH_BYTES && has_below(&self.whole(folder), pattern)
    }

    /// Whether something that `pattern` stands for now matters; none where that cannot be said.
    fn finds(&self, pattern: &str, matters: &dyn Fn(&str) -> bool) -> Option<bool> {
        // Settings have a hidden name or are the system's, and whoever takes a folder above the home takes that along.
        let may_matter = |path: &Path| {
            path.to_string_lossy().contains("/.")
                || ["/etc", "/run"].iter().any(|folder| path.starts_with(folder))
                || Path::new(self.home).starts_with(path)
                || self.linked.iter().any(|(lies, _)| path.starts_with(lies) || lies.starts_with(path))
        };
        let asked = FileQuestion { may_matter: &may_matter, matters, left: &self.left };
        (pattern.len() <= MAX_PATH_BYTES).then(|| any_found(&self.whole(pattern), &asked)).flatten()
    }

    /// Where `text` leads to, absolute, if that is elsewhere, and by which names of settings that is known besides; what
    /// lies in the home folder is told by the name that this has.
    fn leads_to(&self, text: &str) -> Vec<String> {
        let path = path_named(text);
        if path.len() > MAX_PATH_BYTES {
            return Vec::new();
        }
        let asked = self.whole(path);
        let own = OWN_FOLDERS.iter().find_map(|folder| asked.strip_prefix(folder).ok());
        let found = match own {
            Some(rest) => real(&Path::new(self.cwd).join(rest), MAX_LINKS),
            None => real(&asked, MAX_LINKS),
        };
        let known = |(lies, named): &(PathBuf, PathBuf)| Some(named.join(found.strip_prefix(lies).ok()?));
        let mut told: Vec<PathBuf> = self.linked.iter().filter_map(known).collect();
        if found != asked {
            let rest = found.strip_prefix(&self.real_home).map(|rest| Path::new(self.home).join(rest));
            told.push(rest.unwrap_or(found));
        }
        told.extend(own_process(&asked));
        told.iter().map(|path| path.to_string_lossy().into_owned()).collect()
    }
}

/// The files and folders of agents' settings whose names are known, in the home folder and in the project `cwd`: each may
/// be a link itself, as those are who keep their settings in a repository.
fn settings(cwd: &Path, home: &Path) -> impl Iterator<Item = PathBuf> {
    let hosts = HOSTS.iter().map(|host| &host.config);
    let names = hosts.flat_map(|config| {
        let folders = config.protects.iter().filter_map(|pattern| {
            let below = pattern.strip_prefix("~/").or_else(|| pattern.strip_prefix("**/"))?;
            let whole = below.split('*').next().unwrap_or(below);
            // Of a name that is known in part, the folder is meant: `.claude/settings*.json`.
            Some(whole.rsplit_once('/').map_or(whole, |(folder, _)| folder))
        });
        let files = config.switches.all.iter().filter_map(|switch| {
            switch.path.strip_prefix("~/").or_else(|| switch.path.strip_prefix("./")).filter(|path| !path.contains('*'))
        });
        folders.chain(files)
    });
    names.flat_map(move |name| [home.join(name), cwd.join(name)])
}

/// Whether something lies in `folder` that `pattern` means: `.x/settings*.json`, or `.x/**`, which is `.x` itself, too. What
/// cannot be looked at, or is more than is looked at, may have it.
fn has_below(folder: &Path, pattern: &str) -> bool {
    let (name, rest) = pattern.split_once('/').map_or((pattern, None), |(name, rest)| (name, Some(rest)));
    let goes_on = |path: &Path| rest.is_none_or(|rest| has_below(path, rest));
    if name == "**" {
        return may_be(folder);
    }
    let Some((begin, end)) = name.split_once('*') else {
        let path = folder.join(name);
        return may_be(&path) && goes_on(&path);
    };
    let mut entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) => return !is_nothing(&error),
    };
    let fits = |name: &str| name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end);
    let has = |entry: io::Result<DirEntry>| match entry {
        Ok(entry) => entry.file_name().to_str().is_some_and(fits) && goes_on(&entry.path()),
        Err(_) => true,
    };
    entries.by_ref().take(MAX_ENTRIES).any(has) || entries.next().is_some()
}

/// Whether something may be at `path`.
fn may_be(path: &Path) -> bool {
    path.symlink_metadata().err().is_none_or(|error| !is_nothing(&error))
}

/// Where `path` leads to, as far as anything of it is there. What a link leads to need not be: whoever writes there makes
/// it.
fn real(path: &Path, links: u8) -> PathBuf {
    for above in path.ancestors() {
        let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
        if let Ok(found) = above.canonicalize() {
            return found.join(rest);
        }
        if links > 0
            && let Ok(target) = above.read_link()
        {
            let folder = above.parent().unwrap_or(Path::new("/"));
            return real(&folder.join(target).join(rest), links - 1);
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_wherever_they_end() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["home/.claude", "work"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        symlink(root.join("home/.claude"), root.join("work/lnk")).unwrap();
        symlink("../home/.claude/settings.json", root.join("work/s.json")).unwrap();
        symlink(root.join("home"), root.join("person")).unwrap();
        let text = |name: &str| root.join(name).to_str().unwrap().to_owned();
        let (cwd, home) = (text("work"), text("person"));
        let begin = Begin::of(&cwd, &home);
        let settings = text("person/.claude/settings.json");
        let ways = ["lnk/settings.json", "s.json", "/proc/self/cwd/s.json", "~/.claude/settings.json"];
        let urls = ["FILE://", "file://localhost", "file:"].map(|scheme| format!("{scheme}{}", text("work/s.json")));
        for path in ways.into_iter().chain(urls.iter().map(String::as_str)) {
            assert!(begin.leads_to(path).contains(&settings), "{path}");
        }
        let found = begin.leads_to("lnk/x/../settings.json");
        assert!(found.iter().any(|found| found.starts_with(&text("person/.claude"))), "{found:?}");
        assert_eq!(begin.leads_to("new/a.rs"), [""; 0]);
        symlink("loop", root.join("work/loop")).unwrap();
        assert_eq!(begin.leads_to("loop/x"), [""; 0]);
    }

    #[test]
    fn settings_that_are_links_are_kept_where_they_lie() {
        use domain::json::json;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["home", "work/.codex", "work/common", "dots/claude/hooks", "dots/pi", "moved"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        symlink(root.join("dots/claude"), root.join("home/.claude")).unwrap();
        symlink(root.join("dots/pi"), root.join("home/.pi")).unwrap();
        symlink("common", root.join("work/.gemini")).unwrap();
        symlink("../common/codex.toml", root.join("work/.codex/config.toml")).unwrap();
        symlink(root.join("moved"), root.join("lnk")).unwrap();
        let text = |name: &str| root.join(name).to_str().unwrap().to_owned();
        let kept = KeptFiles { home: text("home"), used: Vec::new(), moved: vec![text("lnk")], self_edit: false };
        let cwd = text("work");
        let looked = |tool: &str, arguments: domain::json::Value| kept.look(&event("claude", tool, (arguments, &cwd)));
        let write = |path: &str| looked("Write", json!({"file_path": path, "content": ""}));
        for path in [
            text("dots/claude/settings.json"),
            text("dots/claude/hooks/x.sh"),
            text("dots/pi/agent/x"),
            text("moved/x"),
            "../dots/claude/settings.json".to_owned(),
            "common/settings.json".to_owned(),
            "common/codex.toml".to_owned(),
        ] {
            assert!(matches!(write(&path), Looked::Held(_)), "{path}");
        }
        let shell = looked("Bash", json!({"command": "cd common && echo {} > settings.json"}));
        assert!(matches!(shell, Looked::Held(_)), "{shell:?}");
        for path in [text("dots/vim"), text("dots/x/settings.json"), "common/x.md".to_owned(), "x.toml".to_owned()] {
            assert_eq!(write(&path), Looked::Free, "{path}");
        }
    }

    /// A folder of work, the home folder of its person and links from the one into the other, each with its name.
    fn linked() -> (tempfile::TempDir, KeptFiles, String) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["home/.claude", "home/.codex", "work/sub", "store"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        symlink(root.join("home/.claude"), root.join("work/lnk")).unwrap();
        symlink("lnk", root.join("work/a b")).unwrap();
        symlink("../a b/settings.json", root.join("work/sub/s.json")).unwrap();
        symlink(root.join("home/.codex/new.toml"), root.join("work/c.toml")).unwrap();
        symlink(root.join("store"), root.join("work/kept")).unwrap();
        let text = |name: &str| root.join(name).to_str().unwrap().to_owned();
        let kept =
            KeptFiles { home: text("home"), used: vec![text("store/x.db")], moved: Vec::new(), self_edit: false };
        (dir, kept, text("work"))
    }

    fn event(host: &'static str, tool: &str, (arguments, cwd): (domain::json::Value, &str)) -> HostEvent {
        let domain::json::Value::Object(arguments) = arguments else { panic!("{arguments}") };
        let call =
            domain::tool::ToolCall { id: "1".into(), tool: tool.to_owned(), raw_tool: tool.to_owned(), arguments };
        guard::clients::client_event(guard::host(host), &call, Path::new(cwd))
    }

    #[test]
    fn every_path_of_a_call_is_followed() {
        use domain::json::json;
        let (_dir, kept, cwd) = linked();
        let patch = "*** Begin Patch\n*** Update File: a b/settings.json\n+x\n*** End Patch\n";
        let held = [
            ("claude", "Write", json!({"file_path": "a b/settings.json", "content": ""})),
            ("claude", "Write", json!({"file_path": "sub/s.json", "content": ""})),
            ("claude", "Write", json!({"file_path": "c.toml", "content": ""})),
            ("claude", "Write", json!({"file_path": "kept/x.db", "content": ""})),
            ("claude", "Bash", json!({"command": "echo {} > 'a b/settings.json'"})),
            ("claude", "Bash", json!({"command": "cd sub && tee s.json < /tmp/x"})),
            ("claude", "Bash", json!({"command": "cp x ../stor?/x.db"})),
            ("claude", "Bash", json!({"command": "rm -rf ../sto*"})),
            ("claude", "Bash", json!({"command": "cp foo/settings.json lnk"})),
            ("claude", "Bash", json!({"command": "cp -r foo/. lnk"})),
            ("claude", "Bash", json!({"command": "rm -rf lnk/"})),
            ("claude", "Bash", json!({"command": "chmod 000 'a b/settings.json'"})),
            ("codex", "apply_patch", json!({"command": patch})),
            ("claude", "mcp__fs__put", json!({"to": {"deep": ["x", {"dest": "sub/s.json"}]}})),
            ("claude", "mcp__fs__put", json!({"path": "a b/settings.json"})),
            ("claude", "mcp__fs__run", json!({"script": "echo {} > sub/s.json"})),
        ];
        for (host, tool, arguments) in held {
            let looked = kept.look(&event(host, tool, (arguments.clone(), &cwd)));
            assert!(matches!(looked, Looked::Held(_)), "{tool} {arguments}: {looked:?}");
        }
        for (tool, arguments) in [
            ("Write", json!({"file_path": "sub/t.json", "content": "see sub/s.json"})),
            ("Bash", json!({"command": "cat sub/s.json > sub/copy && ls lnk"})),
            ("mcp__fs__put", json!({"path": "sub/t.json", "content": "a b/settings.json of mine"})),
        ] {
            assert_eq!(
                kept.look(&event("claude", tool, (arguments.clone(), &cwd))),
                Looked::Free,
                "{tool} {arguments}"
            );
        }
    }

    #[test]
    fn a_pattern_is_settled_by_what_lies_there() {
        let (_dir, kept, cwd) = linked();
        let looked =
            |command: &str| kept.look(&event("claude", "Bash", (domain::json::json!({"command": command}), &cwd)));
        for command in ["find . -name '*.pyc' -delete", "prettier --write '**/*.{md,ts}'", "rm -rf */node_modules"] {
            assert_eq!(looked(command), Looked::Free, "{command}");
        }
        for command in ["find . -name '*.json' -delete", "sed -i s/a/b/ **/*.toml", "touch **/*.json"] {
            assert!(matches!(looked(command), Looked::Held(_)), "{command}");
        }
    }

    #[test]
    fn a_folder_with_settings_does_not_come_into_their_place() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in
            ["home/work/src", "home/work/a/.claude", "home/work/b/.github/workflows", "home/work/c/work/.codex"]
        {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(root.join("home/work/a/.claude/settings.local.json"), "{}").unwrap();
        let text = |name: &str| root.join(name).to_str().unwrap().to_owned();
        let kept = KeptFiles { home: text("home"), used: Vec::new(), moved: Vec::new(), self_edit: false };
        let cwd = text("home/work");
        let looked =
            |command: &str| kept.look(&event("claude", "Bash", (domain::json::json!({"command": command}), &cwd)));
        for command in [
            "cp -r a/. .",
            "cp -rT a .",
            "cp -al a/. .",
            "cp -r a/. ..",
            "cp -r c/. ..",
            "rsync -a a/ .",
            "(cd a && tar c .) | tar x",
            "tar c -C a . | tar x",
            "mv a/.[!.]* .",
            "shopt -s dotglob; mv a/* .",
            "find a -mindepth 1 -maxdepth 1 -exec cp -r {} . \\;",
            "cd a && find . | cpio -pdm ..",
            "cp -r a/.claude src/",
            "rm -rf a/.claude",
            "mv src s2 && cp -r s2/. .",
            "cp -r $x/. .",
        ] {
            assert!(matches!(looked(command), Looked::Held(_)), "{command}");
        }
        for command in [
            "cp -r b/. .",
            "cp -r a src/",
            "cp -r a/. /tmp/x",
            "cp -r src/. .",
            "rsync -a a ../other/",
            "mv a/* .",
            "(cd b && tar c .) | tar x",
            "find a -name '*.md' -exec cp {} . \\;",
            "cp -r b/.github src/",
            "rm -rf b/.github",
        ] {
            assert_eq!(looked(command), Looked::Free, "{command}");
        }
    }

    #[test]
    fn what_is_not_looked_at_as_a_whole_may_hold_settings() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/.claude");
        std::fs::create_dir_all(&folder).unwrap();
        let holds = |pattern: &str| has_below(&dir.path().join("a"), pattern);
        assert!(!holds(".claude/settings*.json") && !holds(".codex/**") && holds(".claude/**"));
        for number in 0..MAX_ENTRIES {
            std::fs::File::create(folder.join(number.to_string())).unwrap();
        }
        assert!(!holds(".claude/settings*.json"));
        std::fs::File::create(folder.join("one more")).unwrap();
        assert!(holds(".claude/settings*.json"));
        // A link that leads to itself is there, and nobody can look behind it.
        symlink("loop", dir.path().join("a/loop")).unwrap();
        assert!(holds("loop/x") && holds("loop/x*"));
    }

    #[test]
    fn a_home_that_is_elsewhere_is_not_read_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["home", "work", "srv/pintle/guard"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(root.join("srv/pintle/guard/key"), "").unwrap();
        let text = |name: &str| root.join(name).to_str().unwrap().to_owned();
        let kept =
            KeptFiles { home: text("home"), used: vec![text("srv/pintle")], moved: Vec::new(), self_edit: false };
        let cwd = text("work");
        let looked =
            |command: &str| kept.look(&event("claude", "Bash", (domain::json::json!({"command": command}), &cwd)));
        for command in ["grep -r x ../srv/pintle", "tar c ../srv | base64", "find ../srv -name 'k*' -exec cat {} +"] {
            assert!(matches!(looked(command), Looked::Held(_)), "{command}");
        }
        for command in ["ls ../srv/pintle", "grep -r x ../srv/other", "tar c . | base64"] {
            assert_eq!(looked(command), Looked::Free, "{command}");
        }
    }

    #[test]
    fn more_paths_than_can_be_looked_at_are_refused() {
        use domain::json::{Value, json};
        let (_dir, kept, cwd) = linked();
        let list = |count: usize| Value::Array((0..count).map(|at| Value::from(format!("x{at}"))).collect());
        let many = |paths: Value, dir: &str| {
            let arguments = json!({"dir": dir, "ids": paths});
            kept.look(&event("claude", "mcp__fs__put", (arguments, &cwd)))
        };
        assert_eq!(many(list(1000), "src"), Looked::Free);
        assert!(matches!(many(list(20_000), "src"), Looked::Held(why) if why.contains("more paths")));
        assert!(matches!(many(list(5000), "lnk"), Looked::Held(why) if why.contains("than the 4096")));
    }

    #[test]
    fn what_a_person_lifts_is_said() {
        let (_dir, kept, cwd) = linked();
        let lifting = KeptFiles { self_edit: true, ..kept };
        let write = |path: &str| {
            lifting.look(&event("claude", "Write", (domain::json::json!({"file_path": path, "content": ""}), &cwd)))
        };
        assert!(matches!(write("lnk/settings.json"), Looked::Lifted(_)));
        assert!(matches!(write("kept/x.db"), Looked::Held(_)));
    }
}
