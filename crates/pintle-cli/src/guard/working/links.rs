//! Where the paths of a call lead to: a link to what is protected may have any name.

use std::path::{Path, PathBuf};

use domain::json::Value;
use guard::protects::MAX_PATH_BYTES;
use guard::tools::Holds;
use guard::{HostEvent, HostWhat};

/// How many links are followed one after another. Source: path_resolution(7).
const MAX_LINKS: u8 = 40;

/// How many paths of one call are looked at: each takes some microseconds.
const MAX_PATHS: usize = 4096;

/// The working directory of whoever asks: that of the agent, not of this process.
const OWN_FOLDERS: [&str; 2] = ["/proc/self/cwd", "/proc/thread-self/cwd"];

/// Where paths begin.
struct Begin<'a> {
    cwd: &'a str,
    home: &'a str,
    real_home: PathBuf,
}

/// `event` with the paths of its call as they lead on, for the person whose home folder is `home`; none if it has none, or
/// they lead nowhere else.
pub(super) fn followed(event: &HostEvent, home: &str) -> Option<HostEvent> {
    let (HostWhat::Tool(tool) | HostWhat::Permission { tool }) = &event.what else { return None };
    let row = guard::host(event.host).and_then(|host| host.tool(&tool.native));
    let is_path = |member: &str, text: &str| match row {
        Some(row) => row.holds.iter().any(|holds| matches!(holds, Holds::Path(name) if *name == member)),
        None => !text.contains(char::is_whitespace),
    };
    let begin = Begin { cwd: &event.cwd, home, real_home: real(Path::new(home), MAX_LINKS) };
    let (mut changed, mut left) = (tool.clone(), MAX_PATHS);
    let mut follow = |member: &str, place: &mut Value| {
        let Some(text) = place.as_str().filter(|text| left > 0 && is_path(member, text)) else { return };
        left -= 1;
        if let Some(real) = begin.leads_to(text) {
            *place = Value::from(real);
        }
    };
    for (member, value) in changed.arguments.iter_mut() {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| follow(member, item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                follow(member, value);
            }
        }
    }
    (changed.arguments != tool.arguments).then(|| HostEvent { what: HostWhat::Tool(changed), ..event.clone() })
}

/// Where `path` of the guard's own leads to, as text.
pub(super) fn real_of(path: &str) -> String {
    real(Path::new(path), MAX_LINKS).to_string_lossy().into_owned()
}

impl Begin<'_> {
    /// Where `text` leads to, absolute, if that is elsewhere; what lies in the home folder is told by the name that this
    /// has.
    fn leads_to(&self, text: &str) -> Option<String> {
        let path = text.strip_prefix("file://").unwrap_or(text);
        if path.len() > MAX_PATH_BYTES {
            return None;
        }
        let asked = match path.strip_prefix("~/") {
            Some(rest) => Path::new(self.home).join(rest),
            None => Path::new(self.cwd).join(path),
        };
        let own = OWN_FOLDERS.iter().find_map(|folder| asked.strip_prefix(folder).ok());
        let found = match own {
            Some(rest) => real(&Path::new(self.cwd).join(rest), MAX_LINKS),
            None => real(&asked, MAX_LINKS),
        };
        if found == asked {
            return None;
        }
        let told = match found.strip_prefix(&self.real_home) {
            Ok(rest) => Path::new(self.home).join(rest),
            Err(_) => found,
        };
        Some(told.to_string_lossy().into_owned())
    }
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
        let begin = Begin { cwd: &cwd, home: &home, real_home: real(Path::new(&home), MAX_LINKS) };
        let settings = text("person/.claude/settings.json");
        let ways = ["lnk/settings.json", "s.json", "/proc/self/cwd/s.json", "~/.claude/settings.json"];
        for path in ways {
            assert_eq!(begin.leads_to(path).as_deref(), Some(settings.as_str()), "{path}");
        }
        assert!(
            begin.leads_to("lnk/x/../settings.json").is_some_and(|found| found.starts_with(&text("person/.claude")))
        );
        assert_eq!(begin.leads_to("new/a.rs"), None);
        symlink("loop", root.join("work/loop")).unwrap();
        assert_eq!(begin.leads_to("loop/x"), None);
    }
}
