//! Patterns of a shell text: what may be guarded by its name is settled by what lies on the disk.

use std::cell::RefCell;
use std::collections::BTreeSet;

use pintle_domain::shell::{ShellCommand, ShellFacts};

use super::told_text::ToldText;
use super::{Look, MAX_PATHS, of_settings, path_at};
use crate::braces;
use crate::expanded::{expanded, leaves_patterns, takes_names};
use crate::path_pattern::{is_plain, may_mean, visible};
use crate::taken::carried;

/// Programs that take what a search finds.
const TAKES_FOUND: [&str; 7] = ["gxargs", "mapfile", "parallel", "read", "readarray", "rush", "xargs"];

/// What has `find` do something with what it finds.
const DOES: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];

/// Tests of `find` that leave nearly everything in.
const WIDE: [&str; 17] = [
    "-a",
    "-and",
    "-daystart",
    "-depth",
    "-follow",
    "-ignore_readdir_race",
    "-maxdepth",
    "-mindepth",
    "-mount",
    "-noleaf",
    "-o",
    "-or",
    "-print",
    "-print0",
    "-true",
    "-type",
    "-xdev",
];

/// Whether `command` is a search for all that lies below a folder, and it or another one of those that `facts` tell of does
/// something with what it finds.
fn finds_all(command: &ShellCommand, facts: &ShellFacts) -> bool {
    let words = behind_links(command);
    let end = words.iter().position(|word| DOES.contains(&word.as_str())).unwrap_or(words.len());
    let mut tests = words[..end].iter().filter(|word| word.starts_with('-') || *word == "!");
    let is_wide = command.name == "find" && tests.all(|test| WIDE.contains(&test.as_str()));
    let is_taken = || facts.commands.iter().any(|command| TAKES_FOUND.contains(&command.name.as_str()));
    is_wide && (end < words.len() || is_taken())
}

/// The words of `find` behind those that say which links it follows.
fn behind_links(find: &ShellCommand) -> &[String] {
    let words = find.argv.get(1..).unwrap_or_default();
    let begin = words.iter().position(|word| !matches!(word.as_str(), "-H" | "-L" | "-P")).unwrap_or(words.len());
    &words[begin..]
}

/// Whether `found` lies in a hidden folder below the one in which the search `path` begins, or is hidden itself.
fn is_hidden_below(found: &str, path: &str) -> bool {
    let below = path.split_once("/**/").and_then(|(begin, _)| found.strip_prefix(begin));
    below.is_some_and(|below| below.contains("/."))
}

fn stands_for(path: &str, found: &str) -> String {
    format!("`{path}` stands for `{found}`, which guards this agent or decides over it: only a person may change it")
}

/// Where what a path stands for is another thing to each process.
const OF_PROCESSES: [&str; 2] = ["/proc/", "/dev/"];

/// Whether all of `path` is written: no sign of a shell stands in it.
fn is_known(path: &str) -> bool {
    let is_whole = path.starts_with('/') || path.starts_with("~/");
    let is_fixed = !OF_PROCESSES.iter().any(|folder| path.starts_with(folder));
    is_whole && is_fixed && !path.contains(['$', '`', '{', '…', '(', '|', '\\', '*', '?', '['])
}

/// Whether `path` is a pattern of which all is known but the names that it stands for.
fn is_settled_by_disk(path: &str) -> bool {
    let is_whole = path.starts_with('/') || path.starts_with("~/");
    is_whole && is_plain(path) && !OF_PROCESSES.iter().any(|folder| path.starts_with(folder))
}

impl Look<'_> {
    /// What `look` says of `path`, which `told` tells of: of all that its braces stand for, and of a pattern what it stands
    /// for on the disk, where that can be said.
    pub(super) fn touched(
        &self,
        path: &str,
        told: &ToldText<'_>,
        look: fn(&Self, &str) -> Option<String>,
    ) -> Option<String> {
        let said = path;
        braces::of_shell(path).iter().find_map(|path| {
            let path: &str = path;
            let reason = look(self, &expanded(path, told.facts)).or_else(|| self.own_meant((path, said), told));
            let Some(reason) = reason else { return self.leads_in(&expanded(path, told.facts), look) };
            if self.leads_elsewhere(path, told, look) {
                return None;
            }
            let named = RefCell::new(None::<String>);
            let is_held = |found: &str| {
                let is_held = !(told.skips_hidden && is_hidden_below(found, path))
                    && self.unbounded(|look_at| look(look_at, found).is_some())
                    && !self.holds_no_settings(found);
                if is_held {
                    *named.borrow_mut() = Some(found.to_owned());
                }
                is_held
            };
            let found = match self.settled(path, told) {
                _ if told.names_anew(path) => self.named_anew(path, told, &is_held),
                Some(pattern) => (self.disk.finds)(&pattern, &is_held),
                None if told.makes_nothing && is_known(path) => Some(!self.holds_no_settings(path)),
                None => None,
            };
            let of_found = || named.take().filter(|name| name != path).map(|name| stands_for(path, &name));
            found.unwrap_or(true).then(|| of_found().unwrap_or(reason))
        })
    }

    /// Whether `path` has patterns which a shell expands, so that they stand for no hidden name, and `look` says nothing of all
    /// that they stand for by its name or lead to.
    fn leads_elsewhere(&self, path: &str, told: &ToldText<'_>, look: fn(&Self, &str) -> Option<String>) -> bool {
        let is_of_shell = told.makes_no_links && !path.contains("**") && leaves_patterns(&told.facts.commands);
        if !is_of_shell || !is_settled_by_disk(path) || self.is_script(path, told) || self.may_be_in_use(path) {
            return false;
        }
        let names: Vec<String> = path.split('/').map(visible).collect();
        if look(self, &names.join("/")).is_some() {
            return false;
        }
        let is_free = |at: usize| {
            let (above, below) = (names[..=at].join("/"), names[at + 1..].join("/"));
            let is_held = |found: &str| {
                let whole = if below.is_empty() { found.to_owned() } else { format!("{found}/{below}") };
                // Nothing lies below a file.
                let is_file = !below.is_empty() && self.is_own(found) && !(self.disk.holds)(found, "*");
                !is_file && self.unbounded(|look_at| look(look_at, &whole).is_some())
            };
            (self.disk.finds)(&above, &is_held).is_some_and(|is_found| !is_found)
        };
        // A link may stand for any name from the first pattern on.
        (0..names.len()).skip_while(|at| !is_plain(&names[*at])).all(is_free)
    }

    /// Why `path`, a pattern of which `look` says nothing by its name, must not be changed: a link that it may stand for leads
    /// to what is guarded. What lies behind its last pattern need not be there yet.
    fn leads_in(&self, path: &str, look: fn(&Self, &str) -> Option<String>) -> Option<String> {
        if !is_settled_by_disk(path) || path.contains("**") {
            return None;
        }
        let names: Vec<&str> = path.split('/').collect();
        let at = names.iter().rposition(|name| is_plain(name))?;
        let (above, below) = (names[..=at].join("/"), names[at + 1..].join("/"));
        let is_held = |found: &str| {
            let whole = if below.is_empty() { found.to_owned() } else { format!("{found}/{below}") };
            // What is in use under its own name is looked at by that.
            !self.holds_own(&self.names(&whole)) && self.unbounded(|look_at| look(look_at, &whole).is_some())
        };
        let is_found = (self.disk.finds)(&above, &is_held)?;
        is_found
            .then(|| format!("`{path}` leads to what guards this agent or decides over it, by a link or a second name"))
    }

    /// Whether what a search finds is held under the new name that the text gives it, which `path` stands for; none where that
    /// cannot be said.
    fn named_anew(&self, path: &str, told: &ToldText<'_>, is_held: &dyn Fn(&str) -> bool) -> Option<bool> {
        let (old, new) = told.endings()?;
        if self.may_be_in_use(path) {
            return None;
        }
        // A folder that has the new name already takes it in.
        if let Some(folders) = path.strip_suffix(&format!("/*{old}")) {
            return (self.disk.finds)(folders, &|found: &str| is_held(&format!("{found}/*{old}")));
        }
        let begin = path.strip_suffix(new)?;
        let is_named = |found: &str| {
            // What ends in capitals is not renamed so.
            found.strip_suffix(old).is_none_or(|begin| is_held(&format!("{begin}{new}")))
        };
        (self.disk.finds)(&format!("{begin}{old}"), &is_named)
    }

    /// Why a text must not change all that a search finds below a folder, which is told as that folder alone.
    pub(super) fn found_below(&self, told: &ToldText<'_>) -> Option<String> {
        let facts = told.facts;
        let words = facts.commands.iter().filter(|command| finds_all(command, facts)).flat_map(|find| {
            let begins = behind_links(find).iter().map(String::as_str).take_while(|word| !word.starts_with('-'));
            let begins: Vec<&str> = begins.collect();
            let begins = if begins.is_empty() { vec!["."] } else { begins };
            begins.into_iter().map(move |word| (word, find))
        });
        let begins: BTreeSet<Vec<String>> = words.map(|(word, find)| self.names_at(word, find)).collect();
        // What the text makes where settings lie is refused by itself.
        let found = |paths: &[String], look: fn(&Self, &str) -> Option<String>| {
            let mut folders = paths.iter().filter(|path| begins.contains(&self.names(path)));
            folders.find_map(|folder| self.all_below(folder, look))
        };
        if begins.is_empty() || self.takes_empty(told) {
            return None;
        }
        let below = || facts.writes.iter().find_map(|path| self.named_below(path, &begins, told));
        found(&facts.writes, Self::written).or_else(|| found(&facts.deletes, Self::deleted)).or_else(below)
    }

    /// What `look` says of all that lies below `folder`.
    pub(super) fn all_below(&self, folder: &str, look: fn(&Self, &str) -> Option<String>) -> Option<String> {
        let pattern = format!("{folder}/**/*");
        let is_held = |found: &str| self.unbounded(|look_at| look(look_at, found).is_some());
        let is_found = (self.disk.finds)(&pattern, &is_held).unwrap_or(true);
        is_found.then(|| look(self, &pattern)).flatten()
    }

    /// Whether all that the text of `told` takes away is empty, and nothing of it the guard's own.
    pub(super) fn takes_empty(&self, told: &ToldText<'_>) -> bool {
        let holds = |path: &String| {
            let folder = path.split("/**").next().filter(|folder| !folder.is_empty()).unwrap_or("/");
            self.holds_guarded(folder)
        };
        told.takes_empty_folders() || (told.takes_empty_files() && !told.facts.deletes.iter().any(holds))
    }

    /// Why a text must not write `path`, where it puts that together of each folder that a search finds below one of `begins`,
    /// and a name.
    fn named_below(&self, path: &str, begins: &BTreeSet<Vec<String>>, told: &ToldText<'_>) -> Option<String> {
        let names = self.names(path);
        let begin = begins.iter().find(|begin| names.len() > begin.len() && names.starts_with(begin))?;
        let parts: Vec<&str> = path.split('/').collect();
        let (folder, rest) = parts.split_at(parts.len().checked_sub(names.len() - begin.len())?);
        let (folder, rest) = (folder.join("/"), rest.join("/"));
        let end = format!("/{rest}");
        let is_put = |piece: &str| {
            piece
                .strip_suffix(&end)
                .is_some_and(|found| found.is_empty() || found.ends_with('}') || found.contains('$'))
        };
        let is_written = |path: &str| self.unbounded(|look| look.written(path).is_some());
        // Nothing lies below a file.
        let is_file = |found: &str| is_written(&format!("{found}/x")) && !(self.disk.holds)(found, "*");
        let is_held = |found: &str| is_written(&format!("{found}{end}")) && !is_file(found);
        let is_found = told.pieces().any(is_put) && (self.disk.finds)(&format!("{folder}/**"), &is_held)?;
        is_found.then(|| of_settings(path))
    }

    /// Whether `path` is a file or folder of ours that is in use.
    fn is_own(&self, path: &str) -> bool {
        let names = self.names(path);
        self.files.own.iter().any(|own| self.names(own) == names)
    }

    /// Whether `path`, a pattern, may stand for what is in use, lie in it or hold it.
    fn may_be_in_use(&self, path: &str) -> bool {
        self.means_own(path) || self.may_hold_own(&self.names(path))
    }

    /// What `look` says of what is found, however much that is: whoever finds it keeps within a bound of its own.
    pub(super) fn unbounded(&self, look: impl Fn(&Self) -> bool) -> bool {
        let left = self.left.replace(MAX_PATHS);
        let said = look(self);
        self.left.set(left);
        said
    }

    /// Whether `path` is a folder of a project in which settings may be, as its name says, and none are.
    pub(super) fn holds_no_settings(&self, path: &str) -> bool {
        let is_written = |path: &str| self.unbounded(|look| look.written(path).is_some());
        let is_of_project = self.unbounded(|look| {
            let names = look.names(path);
            let home = look.names("~");
            // What lies in the home folder itself counts for every project.
            let is_of_home = names.len() == home.len() + 1 && names.starts_with(&home);
            !is_of_home && look.is_of_settings(&names) && look.all_names(path).len() == 1 && !look.holds_own(&names)
        });
        is_of_project
            && !is_written(path)
            && (self.disk.finds)(&format!("{path}/**"), &is_written).is_some_and(|is_found| !is_found)
    }

    /// Whether `command` copies a folder of a project in which settings may be and none are, under the name that it has, so
    /// that it becomes `names`.
    pub(super) fn copies_no_settings(&self, command: &ShellCommand, names: &[String]) -> bool {
        let copied = if command.name == "cp" { carried(std::slice::from_ref(command), false) } else { Vec::new() };
        let mut at = copied.iter().filter(|one| self.names_at(&one.to, command) == names).peekable();
        at.peek().is_some()
            && at.all(|one| {
                let from = path_at(&one.from, command);
                is_known(&from) && self.names(&from).last() == names.last() && self.holds_no_settings(&from)
            })
    }

    /// Why `path`, one form of what is `said`, must not be changed where it is a pattern that stands for a file of ours that is
    /// in use, and no name that files get on their way.
    fn own_meant(&self, (path, said): (&str, &str), told: &ToldText<'_>) -> Option<String> {
        let is_said = || told.makes_nothing || self.is_word(said, told);
        let is_meant = is_plain(path) && self.means_own(&expanded(path, told.facts)) && is_said();
        is_meant.then(|| format!("`{path}` may stand for what is in use by the guard of this agent"))
    }

    /// Whether `path` stands so in the text, as a word of a command or behind a sign that writes.
    fn is_word(&self, path: &str, told: &ToldText<'_>) -> bool {
        let names = self.names(path);
        let is_it = |word: &str, command: &ShellCommand| is_plain(word) && self.names_at(word, command) == names;
        told.facts.commands.iter().any(|command| {
            command.argv.iter().skip(1).any(|word| is_it(word, command))
                || told.pieces().any(|piece| is_it(piece, command))
        })
    }

    /// The pattern that `path` is, where what it stands for on the disk is what it stands for when the text is run.
    fn settled(&self, path: &str, told: &ToldText<'_>) -> Option<String> {
        let is_found = told.makes_nothing || (told.moves_found && path.contains("/**/"));
        let is_settled = is_found && is_settled_by_disk(path) && !self.is_script(path, told);
        if !is_settled || self.may_be_in_use(path) {
            return None;
        }
        let is_of_shell = takes_names(told.facts) && !path.contains("**");
        let name = |name: &str| if is_of_shell { visible(name) } else { name.to_owned() };
        Some(path.split('/').map(name).collect::<Vec<String>>().join("/"))
    }

    /// Whether `path` may be what a script of `sed` writes: a word of it names it, and is no file that is changed.
    fn is_script(&self, path: &str, told: &ToldText<'_>) -> bool {
        let last = path.rsplit('/').next().unwrap_or(path);
        let is_file = |names: &[String]| told.facts.writes.iter().any(|written| self.names(written) == names);
        let says = |command: &ShellCommand| {
            let mut words = command.argv.iter().skip(1).filter(|word| word.contains(last));
            words.any(|word| !is_file(&self.names_at(word, command)))
        };
        told.facts.commands.iter().filter(|command| matches!(command.name.as_str(), "sed" | "gsed")).any(says)
    }

    /// Whether `path` may stand for a file of ours that is in use, or for something in a folder of ours.
    fn means_own(&self, path: &str) -> bool {
        let names = self.names(path);
        self.files.own.iter().any(|own| {
            let own_names = self.names(own);
            names.starts_with(&own_names)
                || self.may_be_own(&own_names, &names)
                || (self.leads_into(&own_names, &names) && (self.disk.holds)(own, "*"))
        })
    }

    fn may_be_own(&self, own: &[String], names: &[String]) -> bool {
        may_mean(&format!("/{}", own.join("/")), self.files.home, names)
    }

    /// Whether `names`, in which each pattern stands for one name, may lead into the folder `own`.
    fn leads_into(&self, own: &[String], names: &[String]) -> bool {
        let above =
            names.get(..own.len()).filter(|_| names.len() > own.len() && !names.iter().any(|name| name == "**"));
        above.is_some_and(|above| self.may_be_own(own, above))
    }

    /// Whether `names`, with a pattern among them, may stand for a folder in which a file of ours lies that is in use.
    pub(super) fn may_hold_own(&self, names: &[String]) -> bool {
        let mut own = self.files.own.iter().map(|own| self.names(own));
        own.any(|own| (1..=own.len()).any(|length| self.may_be_own(&own[..length], names)))
    }
}
