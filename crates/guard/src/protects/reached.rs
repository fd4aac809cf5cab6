//! What answers for a person or remembers what was done is not read: the keys, the lock, the store, and no folder that holds
//! them by a program that takes what is in it.

use std::collections::BTreeSet;

use pintle_domain::json::{Object, Value};
use pintle_domain::shell::{ShellCommand, ShellFacts};

use super::{Look, path_at};
use crate::braces;
use crate::path_pattern::{below, folder_of, is_loose, is_meant, may_mean, pattern_means, visible};
use crate::program_name::SEARCHES;
use crate::taken::{read_by, searches_below};
use crate::tools::strings;

/// Where Pintle keeps what it has, unless a person says otherwise.
const HOME: &str = "~/.local/share/pintle";

/// What of that is not read.
const FILES: [&str; 9] = [
    "guard/guard.sock",
    "guard/key",
    "guard/lock",
    "guard/sessions.json",
    "audit-signing.key",
    "encryption.key",
    "pintle.db",
    "pintle.db-wal",
    "pintle.db-shm",
];

/// Those of them that no other program is likely to have.
const OWN_FILES: [&str; 5] = ["audit-signing.key", "encryption.key", "pintle.db", "pintle.db-wal", "pintle.db-shm"];

/// The members in which a tool is told into which files it searches.
const GLOBS: [&str; 8] =
    ["glob", "globs", "include", "includes", "include_pattern", "includePattern", "file_pattern", "filePattern"];

/// The member in which a tool is told the kind of files that it searches, and the kinds of those that are not read.
const KIND: &str = "type";
const KINDS_OF_SECRETS: [&str; 2] = ["all", "json"];

/// Programs that tell no more of a folder than names, and those around another one, which is looked at by itself.
pub(super) const LOOKS: [&str; 47] = [
    "ls",
    "exa",
    "eza",
    "lsd",
    "tree",
    "du",
    "df",
    "stat",
    "file",
    "find",
    "fd",
    "fdfind",
    "test",
    "[",
    "[[",
    "cd",
    "pushd",
    "popd",
    "echo",
    "printf",
    "pwd",
    "realpath",
    "readlink",
    "basename",
    "dirname",
    "which",
    "mkdir",
    "touch",
    "export",
    "env",
    "sudo",
    "doas",
    "time",
    "timeout",
    "nohup",
    "nice",
    "ionice",
    "command",
    "builtin",
    "exec",
    "setsid",
    "stdbuf",
    "watch",
    "xargs",
    "flock",
    "pintle",
    "pintle-hook",
];

/// Programs that take along all that a folder holds, or what a search found in it.
const TAKES: [&str; 25] = [
    "diff",
    "cp",
    "rsync",
    "scp",
    "ditto",
    "install",
    "tar",
    "bsdtar",
    "gtar",
    "zip",
    "7z",
    "7za",
    "7zr",
    "7zz",
    "pax",
    "cpio",
    "rclone",
    "mksquashfs",
    "genisoimage",
    "cat",
    "head",
    "tail",
    "base64",
    "xxd",
    "od",
];

/// How many folders above Pintle's home are held against a program that takes along what is in them.
const LEVELS: usize = 3;

impl Look<'_> {
    /// Whether `names` is one of the files that are not read, in a home of Pintle that is in use.
    pub(super) fn is_secret(&self, names: &[String]) -> bool {
        let is_home = |folder: &[String]| {
            is_meant(HOME, self.files.home, folder) || self.files.own.iter().any(|own| self.names(own) == folder)
        };
        FILES.iter().any(|file| folder_of(file, names).is_some_and(is_home))
    }

    /// Why a tool must not search below `path`.
    pub(super) fn searched(&self, path: &str) -> Option<String> {
        let homes = self.homes();
        self.all_names(path).iter().any(|names| self.is_inside(names, &homes)).then(|| kept(path))
    }

    /// Why a tool must not search for texts below `path`, in the files that `arguments` say.
    pub(super) fn searched_for(&self, path: &str, arguments: &Object) -> Option<String> {
        let homes = self.homes();
        let told: Vec<&str> = GLOBS.iter().filter_map(|member| arguments.get(member)).flat_map(strings).collect();
        let (without, globs): (Vec<&str>, Vec<&str>) = told.into_iter().partition(|glob| glob.starts_with('!'));
        let of_kind = arguments.get(KIND).and_then(Value::as_str).is_some_and(|kind| !KINDS_OF_SECRETS.contains(&kind));
        let is_whole = !of_kind && self.names_left(path, &without, &homes);
        let is_all = globs.is_empty();
        let mut globs = globs.into_iter().flat_map(braces::listed);
        let finds = |glob: String| {
            // So many forms that they are not told apart: it may be any of them.
            if glob.contains('{') {
                return self.leads_to_secrets(path);
            }
            let names = self.names(&format!("{path}/**/{glob}"));
            let may =
                |file: &&str| homes.iter().any(|home| may_mean(&format!("{home}/{file}"), self.files.home, &names));
            (is_whole || names.last().is_some_and(|name| !is_loose(name))) && FILES.iter().any(may)
        };
        let is_above = || self.all_names(path).iter().any(|names| self.is_searched_above(names, &homes));
        let mut is_found = || is_above() || (is_whole && is_all) || globs.any(finds);
        let narrower = || format!("{}: name a narrower folder, or a glob that leaves it out", kept(path));
        self.searched(path).or_else(|| is_found().then(narrower))
    }

    /// Whether a home of Pintle lies below `path`, and none of the globs `without` leaves it out.
    fn names_left(&self, path: &str, without: &[&str], homes: &[String]) -> bool {
        let is_left_out = |names: &[String]| {
            let firsts = without.iter().filter_map(|glob| {
                let glob = glob.trim_start_matches(['!', '/']);
                glob.strip_prefix("**/").unwrap_or(glob).split('/').next()
            });
            let mut firsts = firsts.filter(|first| !first.is_empty());
            firsts.any(|first| names.iter().any(|name| pattern_means(first, name)))
        };
        self.all_names(path).iter().any(|above| {
            let homes = homes.iter().map(|home| self.names(home));
            let mut below = homes.filter(|home| home.len() > above.len() && home.starts_with(above));
            below.any(|home| !is_left_out(&home[above.len()..]))
        })
    }

    /// Whether `names` is a folder above a home of Pintle, and none in which all work is done.
    fn is_searched_above(&self, names: &[String], homes: &[String]) -> bool {
        let is_of_work = self.is_above(names) || self.names(".").starts_with(names);
        !is_of_work && self.is_above_home(names, homes)
    }

    /// Whether a home of Pintle lies in `path`, or `path` in one.
    pub(super) fn leads_to_secrets(&self, path: &str) -> bool {
        let homes = self.homes();
        let is_at = |names: &Vec<String>| homes.iter().any(|home| self.names(home).starts_with(names));
        self.all_names(path).iter().any(|names| is_at(names) || self.is_inside(names, &homes))
    }

    /// Why `commands` must not run, one of which reads what it must not.
    pub(super) fn reaches(&self, facts: &ShellFacts) -> Option<String> {
        let commands = facts.commands.as_slice();
        let homes = self.homes();
        if let Some(folder) = self.searched_below(facts, &homes) {
            return Some(kept(folder));
        }
        let is_sought = commands.iter().any(|command| self.seeks(command, &homes));
        // What a search finds, another program may read from a list.
        let is_listed = commands.iter().any(|command| {
            let has = |begin: &str| command.argv.iter().any(|word| word.starts_with(begin));
            match command.name.as_str() {
                "cpio" | "pax" => true,
                "tar" | "bsdtar" | "gtar" => has("-T") || has("--files-from"),
                "rsync" => has("--files-from"),
                "zip" => has("-@"),
                _ => false,
            }
        });
        commands.iter().find_map(|command| {
            let name = command.name.as_str();
            let is_list = is_listed && matches!(name, "find" | "fd" | "ls");
            if LOOKS.contains(&name) && !is_list {
                return None;
            }
            let is_compared = name == "git" && command.argv.iter().any(|word| word == "--no-index");
            let takes = is_list || is_compared || TAKES.contains(&name);
            let reaches = |word: &String| {
                let path = path_at(word, command);
                self.all_names(&path).into_iter().any(|names| {
                    let names = without_hidden(names);
                    self.is_inside(&names, &homes)
                        || self.is_secret(&names)
                        || is_named_secret(&names, is_sought)
                        || (takes && self.is_above_home(&names, &homes))
                        || self.is_found(&names, SEARCHES.contains(&name), &homes)
                })
            };
            read_by(command).iter().find(|word| reaches(word)).map(|word| kept(word))
        })
    }

    /// The folder above a home of Pintle in which a search looks that `facts` tell of.
    fn searched_below<'f>(&self, facts: &'f ShellFacts, homes: &[String]) -> Option<&'f str> {
        let searches: Vec<&ShellCommand> = facts.commands.iter().filter(|command| searches_below(command)).collect();
        let words = searches.iter().flat_map(|command| command.argv.iter().skip(1).map(move |word| (word, command)));
        let named: BTreeSet<Vec<String>> = words.map(|(word, command)| self.names_at(word, command)).collect();
        let is_told = |path: &&String| named.contains(&self.names(path));
        let told = facts.reads.iter().filter(is_told);
        let mut folders =
            searches.iter().copied().map(|command| &command.cwd).filter(|folder| !folder.is_empty()).chain(told);
        let is_above =
            |folder: &&String| self.all_names(folder).iter().any(|names| self.is_searched_above(names, homes));
        folders.find(is_above).map(String::as_str)
    }

    /// Whether `command` looks for something above a home of Pintle, or in one.
    fn seeks(&self, command: &ShellCommand, homes: &[String]) -> bool {
        let is_there = |word: &String| {
            let names = self.names_at(word, command);
            word.contains("pintle") || self.is_above_home(&names, homes) || self.is_inside(&names, homes)
        };
        LOOKS.contains(&command.name.as_str()) && command.argv.iter().skip(1).any(is_there)
    }

    /// Pintle's homes, as patterns of paths.
    fn homes(&self) -> Vec<String> {
        let own = self.files.own.iter().filter(|own| (self.disk.holds)(own, "guard/key"));
        let own = own.map(|own| format!("/{}", self.names(own).join("/")));
        std::iter::once(HOME.to_owned()).chain(own).collect()
    }

    /// Whether `names` is a home of Pintle or the guard's folder in it.
    fn is_inside(&self, names: &[String], homes: &[String]) -> bool {
        let above = folder_of("guard", names);
        let is_home = |names: &[String]| homes.iter().any(|home| is_meant(home, self.files.home, names));
        is_plain(names) && (is_home(names) || above.is_some_and(is_home))
    }

    /// Whether `names` is a folder somewhat above a home of Pintle.
    fn is_above_home(&self, names: &[String], homes: &[String]) -> bool {
        is_plain(names)
            && homes.iter().any(|home| {
                let home = self.names(home);
                let mut levels = (1..=LEVELS).filter_map(|level| home.get(..home.len().checked_sub(level)?));
                levels.any(|above| is_meant(&format!("/{}", above.join("/")), self.files.home, names))
            })
    }

    /// Whether a search found `names`, among which is what is not read. One more search looks for texts in them, mostly.
    fn is_found(&self, names: &[String], is_search: bool, homes: &[String]) -> bool {
        let Some(at) = names.iter().position(|name| name == "**") else { return false };
        homes.iter().any(|home| {
            let begins = || below(&format!("{home}/**"), self.files.home, &names[..at]).is_some();
            let may = || FILES.iter().any(|file| may_mean(&format!("{home}/{file}"), self.files.home, names));
            (!is_search || begins()) && may()
        })
    }
}

/// Whether `names` ends as one of the files that are not read does, in a folder that is not known: in any such one, or only
/// where the text seeks it.
fn is_named_secret(names: &[String], is_sought: bool) -> bool {
    let files: &[&str] = if is_sought { &FILES } else { &OWN_FILES };
    let last = |file: &str| file.rsplit('/').next().unwrap_or(file).to_owned();
    let Some(name) = names.last().filter(|name| !is_loose(name)) else { return false };
    let folders = &names[..names.len() - 1];
    let is_unknown = folders.iter().any(|folder| folder.contains(['$', '`', '…']));
    is_unknown && files.iter().any(|file| folder_of(&last(file), std::slice::from_ref(name)).is_some())
}

/// Whether all of `names` is known, but for patterns of the shell.
fn is_plain(names: &[String]) -> bool {
    names.iter().all(|name| name != "**" && !name.contains(['$', '`', '{']))
}

/// `names`, the last of which stands for no hidden name if it is a pattern of the shell that does not say so.
fn without_hidden(mut names: Vec<String>) -> Vec<String> {
    if is_plain(&names)
        && let Some(last) = names.last_mut()
    {
        *last = visible(last);
    }
    names
}

fn kept(path: &str) -> String {
    format!("`{path}` holds what answers for a person, or what the guard of this agent remembers")
}
