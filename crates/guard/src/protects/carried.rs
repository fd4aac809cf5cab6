//! What comes along with a folder, an archive or an index that is taken as a whole.

use pintle_domain::shell::{ShellCommand, ShellFacts};

use super::told_text::makes_nothing;
use super::{Look, of_settings, path_at};
use crate::filled::{copies_files, is_harmless, named};
use crate::made_names::values;
use crate::path_pattern::{holds, mark};
use crate::program_name::UNKNOWN;
use crate::taken::{Carried, carried, is_tar};
use crate::unpacked::{unpacked, unpacked_alone};

/// How a shell is told that patterns stand for hidden names, too.
const HIDDEN_TOO: [&str; 3] = ["dotglob", "globdots", "glob_dots"];

/// How a text tells git the folder that it works in.
const WORK_TREE: &str = "GIT_WORK_TREE=";

/// How many words of a text cost as much as one path, where they are compared with a folder.
const WORDS: usize = 8;

/// What one folder that is looked into costs of the paths that are looked at.
const COST: usize = 32;

impl Look<'_> {
    /// Why `text`, of which `facts` tell, must not run: it brings settings along or puts what nobody knows where settings lie.
    pub(super) fn carries(&self, text: &str, facts: &ShellFacts) -> Option<String> {
        let commands = &facts.commands;
        commands
            .iter()
            .find_map(|command| {
                self.unpacks(command).or_else(|| self.renames(text, command)).or_else(|| hides(command))
            })
            .or_else(|| self.works_elsewhere(text, commands))
            .or_else(|| self.brings_settings(text, facts))
    }

    /// Why git must not work in a folder with settings of the person, as a variable in `text` tells it to.
    fn works_elsewhere(&self, text: &str, commands: &[ShellCommand]) -> Option<String> {
        let is_end = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | ';' | '&' | '|' | ')');
        let values = text.split(WORK_TREE).skip(1).filter(|_| commands.iter().any(|command| command.name == "git"));
        let mut folders = values.map(|value| {
            let value = value.trim_start_matches(['"', '\'']).split(is_end).next().unwrap_or_default();
            let home = value.strip_prefix("$HOME").or_else(|| value.strip_prefix("${HOME}"));
            home.map_or_else(|| value.to_owned(), |rest| format!("~{rest}"))
        });
        folders.find_map(|folder| self.holds_guarded(&folder).then(|| of_settings(&folder)))
    }

    /// Whether something that is guarded lies in `folder`, or is it.
    pub(super) fn holds_guarded(&self, folder: &str) -> bool {
        self.all_names(folder).iter().any(|names| self.is_guarded(names, holds))
    }

    /// Why `command` must not put all that an archive or a patch holds into a folder with settings of the person.
    fn unpacks(&self, command: &ShellCommand) -> Option<String> {
        let folder = unpacked(command).map(|folder| path_at(&folder, command));
        if let Some(folder) = folder.filter(|folder| self.holds_guarded(folder)) {
            return Some(of_settings(&folder));
        }
        let mut members = unpacked_alone(command).into_iter().map(|member| path_at(&member, command));
        members.find(|member| self.may_be_unpacked_over(member)).map(|member| of_settings(&member))
    }

    /// Whether what an archive calls `member` may come to lie where settings of the person do: a folder is taken with all that
    /// is in it, and a pattern of an archive stands for folders, too.
    fn may_be_unpacked_over(&self, member: &str) -> bool {
        let Some(at) = member.find(['*', '?', '[']) else { return self.holds_guarded(member) };
        let (folder, begin) = member[..at].rsplit_once('/').unwrap_or((".", &member[..at]));
        let folder = if folder.is_empty() { "/" } else { folder };
        self.holds_guarded(folder) && self.holds_guarded(&format!("{folder}/{begin}*"))
    }

    /// Why `command` must not call files as settings of agents are called.
    fn renames(&self, text: &str, command: &ShellCommand) -> Option<String> {
        let has = |begins: &[&str]| command.argv.iter().any(|word| begins.iter().any(|begin| word.starts_with(begin)));
        let told = match command.name.as_str() {
            "tar" | "bsdtar" | "gtar" | "pax" if has(&["--tra", "--xf", "-s"]) => command.argv.join(" "),
            "7z" | "7za" | "7zr" | "7zz" if has(&["rn"]) => command.argv.join(" "),
            "git" if has(&["--cacheinfo", "--index-info", "mktree", "fast-import"]) => text.to_owned(),
            _ => return None,
        };
        let told = told.replace("\\n", " ").replace("\\t", " ");
        let plain: String = told.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
        let plain = plain.to_lowercase();
        let place = self.of_any_folder().map(mark).find(|mark| is_place(&plain, mark))?;
        Some(of_settings(place))
    }

    /// Why `commands` must not take the contents of a folder, among which settings are that would count here.
    fn brings_settings(&self, text: &str, facts: &ShellFacts) -> Option<String> {
        let commands = facts.commands.as_slice();
        let hidden = HIDDEN_TOO.iter().any(|option| text.contains(option));
        let all = carried(commands, hidden);
        if all.is_empty() {
            return None;
        }
        let own = [(self.cwd, false), (self.files.home, true)];
        let roots: Vec<(String, bool)> = own
            .iter()
            .flat_map(|(root, is_home)| {
                let root: &str = root;
                let behind = (self.disk.leads)(root);
                std::iter::once(root.to_owned()).chain(behind).map(move |root| (root, *is_home))
            })
            .collect();
        all.iter()
            .find_map(|one| self.brings_unknown(one, facts, &roots).or_else(|| self.brings_into(one, commands, &roots)))
            .or_else(|| all.iter().find_map(|one| self.unpacked_as_settings(one, commands)))
    }

    /// Why what one program packs must not come out of another one as settings.
    fn unpacked_as_settings(&self, one: &Carried, commands: &[ShellCommand]) -> Option<String> {
        let (packing, unpacking) = one.by;
        if packing == unpacking {
            return None;
        }
        let (from, to) = (path_at(&one.from, &commands[packing]), path_at(&one.to, &commands[unpacking]));
        let is_settings = self.is_folder_of_settings(&to) && !self.holds_no_settings(&from);
        (is_settings || self.written(&to).is_some()).then(|| of_settings(&to))
    }

    /// Why a folder of which nobody knows what is in it must not come to where settings lie for `roots`: its name is not
    /// known, or the text makes it.
    fn brings_unknown(&self, one: &Carried, facts: &ShellFacts, roots: &[(String, bool)]) -> Option<String> {
        let (taking, putting) = (&facts.commands[one.by.0], &facts.commands[one.by.1]);
        let is_of_files = match taking.name.as_str() {
            "cp" => copies_files(taking),
            "install" => true,
            _ => false,
        };
        if is_of_files {
            return None;
        }
        let (folder, is_any) = match one.to.rsplit_once('/') {
            Some((folder, name)) if name.contains(UNKNOWN) => (folder, true),
            _ => (one.to.as_str(), false),
        };
        let targets = self.all_names(&path_at(folder, putting));
        let is_above = roots.iter().any(|(root, _)| {
            let names = self.names(root);
            targets.iter().any(|target| names.starts_with(target))
        });
        if !is_above {
            return None;
        }
        let from = path_at(&one.from, taking);
        let is_somewhere = taking.cwd.is_empty() && !one.from.starts_with(['/', '~']);
        let is_unknown = is_any || is_somewhere || from.contains(UNKNOWN) || from.contains(['*', '?', '[']);
        (is_unknown || self.is_made(&from, one, facts)).then(|| {
            format!(
                "what `{from}` holds when it is copied cannot be known, and settings that come along would decide over this agent"
            )
        })
    }

    /// Whether the text makes the folder `from`, or what is in it.
    fn is_made(&self, from: &str, one: &Carried, facts: &ShellFacts) -> bool {
        let words: usize = facts.commands.iter().map(|command| command.argv.len()).sum();
        let left = self.left.get().saturating_sub(words / WORDS);
        self.left.set(left);
        if left == 0 {
            return true;
        }
        let from = self.names(from);
        let meets = |path: &str, command: &ShellCommand| {
            let names = self.names_at(path, command);
            names.starts_with(&from) || from.starts_with(&names)
        };
        // A folder above, named as itself, brings nothing into one below.
        let is_named =
            |path: &str, command: &ShellCommand| meets(path, command) && !self.is_above(&self.names_at(path, command));
        facts.commands.iter().enumerate().any(|(at, command)| {
            let is_other = at != one.by.0 && at != one.by.1;
            let is_silent = makes_nothing(&command.name) || is_harmless(command, facts);
            let is_unpacked = || unpacked(command).is_some_and(|folder| meets(&folder, command));
            is_other && !is_silent && (named(command).any(|path| is_named(path, command)) || is_unpacked())
        })
    }

    /// The same of one folder, and of what lies in it for `roots`: the project, and the home folder.
    fn brings_into(&self, one: &Carried, commands: &[ShellCommand], roots: &[(String, bool)]) -> Option<String> {
        let (from, to) = (path_at(&one.from, &commands[one.by.0]), path_at(&one.to, &commands[one.by.1]));
        let targets = self.all_names(&to);
        roots.iter().find_map(|(root, is_home)| {
            let names = self.names(root);
            let above = targets.iter().find(|target| names.starts_with(target))?;
            let left = self.left.get();
            self.left.set(left.saturating_sub(COST));
            if left == 0 {
                return None;
            }
            let below: Vec<&str> =
                root.split('/').filter(|name| !matches!(*name, "" | ".")).skip(above.len()).collect();
            let from = format!("{from}/{}", below.join("/"));
            let found = self.patterns().find_map(|pattern| {
                let of_home = || pattern.strip_prefix("~/").filter(|_| *is_home);
                let below = pattern.strip_prefix("**/").or_else(of_home)?;
                (self.disk.holds)(&from, below).then_some(below)
            })?;
            Some(format!(
                "`{from}` holds or may hold `{found}`, which would decide over this agent: only a person may bring it along"
            ))
        })
    }
}

/// Why `command` must not give what it packs or unpacks hidden names: settings of agents may be among them.
fn hides(command: &ShellCommand) -> Option<String> {
    if !is_tar(command) && command.name != "pax" {
        return None;
    }
    let words = command.argv.get(1..).unwrap_or_default();
    let told = [values(words, None, "transform"), values(words, None, "xform"), values(words, Some('s'), "")].concat();
    let change = told.iter().flat_map(|told| told.split(';')).find(|change| may_hide(change))?;
    Some(format!("`{change}` may give what `{}` takes a hidden name, under which settings of agents lie", command.name))
}

/// Whether `change`, which puts a text in the place of another one in names, may make one begin with a dot.
fn may_hide(change: &str) -> bool {
    let parts = || {
        // `pax` and the `tar` of BSD are told it without a letter.
        let rest = change.strip_prefix('s').unwrap_or(change);
        let sign = rest.chars().next().filter(char::is_ascii_punctuation)?;
        let (from, rest) = rest[sign.len_utf8()..].split_once(sign)?;
        Some((from, rest.split(sign).next()?))
    };
    let Some((from, to)) = parts() else { return false };
    let to_hidden = to.strip_prefix("./").unwrap_or(to).starts_with('.') && !to.starts_with("..");
    let below = to.contains("/.") && !to.contains("/./");
    // What is left of a name may begin with a dot, unless a folder or an end goes.
    let is_cut = to.is_empty() && !from.ends_with(['/', '$']);
    let is_part = to.starts_with('\\') && !from.contains("/\\(") && !from.contains("/(");
    to_hidden || below || is_cut || is_part
}

/// Whether `text` names the place of settings `mark`, such as `.x/settings`, or its folder alone.
pub(super) fn is_place(text: &str, mark: &str) -> bool {
    let (folder, name) = mark.split_once('/').unwrap_or((mark, ""));
    let goes_on = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    text.match_indices(folder).any(|(at, _)| {
        let rest = &text[at + folder.len()..];
        match rest.strip_prefix('/') {
            Some(below) => below.starts_with(name) || !below.starts_with(goes_on),
            None => !rest.starts_with(goes_on),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_names_may_hide_them() {
        for (change, hides) in [
            ("s,^x,.,", true),
            ("s/^x/.x/g", true),
            ("s,^,a/.b/,", true),
            ("s,^x,,", true),
            ("s,x\\(.*\\),\\1,", true),
            (",^x,.,", true),
            ("s,^,x-1.0/,", false),
            ("s,^[^/]*/,,", false),
            ("s|^\\./|x/|", false),
            ("s/\\.txt$//", false),
            ("f", false),
        ] {
            assert_eq!(may_hide(change), hides, "{change}");
        }
    }
}
