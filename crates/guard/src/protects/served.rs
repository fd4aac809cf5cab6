//! What answers for a person or decides over an agent, in a folder that a container, a server or another repository of git
//! gets at.

use pintle_domain::shell::ShellCommand;

use super::{Look, of_settings, path_at};
use crate::filled::named;
use crate::runners::is_of_packages;

/// Programs that start containers, and their words that do.
const CONTAINERS: [&str; 3] = ["docker", "nerdctl", "podman"];
const STARTS: [&str; 2] = ["create", "run"];

/// Programs and modules that serve the files of a folder.
const SERVERS: [&str; 9] = [
    "SimpleHTTPServer",
    "darkhttpd",
    "http-server",
    "http.server",
    "live-server",
    "miniserve",
    "serve",
    "twistd",
    "webfsd",
];

/// Commands of git that take files along, or away.
const GIT_CHANGES: [&str; 6] = ["add", "clean", "commit", "mv", "rm", "stash"];

/// How git is told of a folder of work that is not its own.
const WORK_TREE: &str = "--work-tree";

impl Look<'_> {
    /// Why `command` must not give others a folder.
    pub(super) fn serves(&self, command: &ShellCommand) -> Option<String> {
        self.mounted(command).or_else(|| self.served(command)).or_else(|| self.taken_by_git(command))
    }

    /// Why a container must not get a folder with what answers for a person, or change settings in one.
    fn mounted(&self, command: &ShellCommand) -> Option<String> {
        let words = command.argv.get(1..).unwrap_or_default();
        let starts = words.iter().any(|word| STARTS.contains(&word.as_str()));
        if !CONTAINERS.contains(&command.name.as_str()) || !starts {
            return None;
        }
        let mut mounts = words.iter().enumerate().flat_map(|(at, word)| {
            let next = || words.get(at + 1).map(String::as_str);
            let value = ["--volume", "--mount", "-v"].iter().find_map(|option| {
                let rest = word.strip_prefix(*option)?;
                if rest.is_empty() { next() } else { Some(rest.trim_start_matches('=')) }
            });
            value.and_then(mount)
        });
        mounts.find_map(|(folder, is_read)| {
            let path = path_at(folder, command);
            let holds = self.leads_to_secrets(&path) || (!is_read && self.holds_guarded(&path));
            holds.then(|| {
                format!("a container would get `{folder}`, which holds the guard's own files or settings of this agent")
            })
        })
    }

    /// Why a server must not show a folder with what answers for a person.
    fn served(&self, command: &ShellCommand) -> Option<String> {
        let name = command.name.as_str();
        let has = |words: &[&str]| command.argv.iter().any(|word| words.contains(&word.as_str()));
        let is_told = (name.starts_with("python") || is_of_packages(name)) && has(&SERVERS);
        if !(is_told || SERVERS.contains(&name) || name.starts_with("php") && has(&["-S"])) {
            return None;
        }
        let told = named(command).filter(|word| word.starts_with(['/', '~', '.']));
        let mut folders = std::iter::once(".").chain(told).map(|word| path_at(word, command));
        let folder = folders.find(|folder| self.leads_to_secrets(folder))?;
        Some(format!("serving `{folder}` would show the keys with which a person answers"))
    }

    /// Why git must not take along or away what lies in a folder with settings of the person, as if it worked there.
    fn taken_by_git(&self, command: &ShellCommand) -> Option<String> {
        let changes = command.argv.iter().any(|word| GIT_CHANGES.contains(&word.as_str()));
        if command.name != "git" || !changes {
            return None;
        }
        let folder = command.argv.iter().enumerate().find_map(|(at, word)| {
            let rest = word.strip_prefix(WORK_TREE)?;
            rest.strip_prefix('=').or_else(|| command.argv.get(at + 1).map(String::as_str))
        })?;
        self.holds_guarded(&path_at(folder, command)).then(|| of_settings(folder))
    }
}

/// The folder that `value` mounts, and whether it can only be read there; none where it is no folder of this machine.
fn mount(value: &str) -> Option<(&str, bool)> {
    let parts: Vec<&str> = value.split(',').collect();
    let source = parts.iter().find_map(|part| part.strip_prefix("source=").or_else(|| part.strip_prefix("src=")));
    let (folder, is_read) = if let Some(folder) = source {
        (folder, parts.iter().any(|part| matches!(*part, "readonly" | "ro")))
    } else {
        let (folder, rest) = value.split_once(':')?;
        (folder, rest.split([':', ',']).any(|option| option == "ro"))
    };
    folder.starts_with(['/', '~', '.']).then_some((folder, is_read))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_a_folder_of_this_machine() {
        for (value, expected) in [
            ("/u:/x", Some(("/u", false))),
            ("~/a:/x:ro", Some(("~/a", true))),
            ("type=bind,source=/u,target=/x", Some(("/u", false))),
            ("type=bind,src=/u,dst=/x,readonly", Some(("/u", true))),
            ("data:/x", None),
            ("/x", None),
        ] {
            assert_eq!(mount(value), expected, "{value}");
        }
    }
}
