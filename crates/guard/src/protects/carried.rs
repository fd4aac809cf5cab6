//! What comes along with a folder, an archive or an index that is taken as a whole.

use domain::shell::ShellCommand;

use super::{Look, of_settings, path_at};
use crate::path_pattern::{holds, mark};
use crate::taken::{Carried, carried, unpacked};

/// How a shell is told that patterns stand for hidden names, too.
const HIDDEN_TOO: [&str; 3] = ["dotglob", "globdots", "glob_dots"];

/// What one folder that is looked into costs of the paths that are looked at.
const COST: usize = 32;

impl Look<'_> {
    /// Why `commands` of `text` must not run, which bring settings along or put what nobody knows where settings lie.
    pub(super) fn carries(&self, text: &str, commands: &[ShellCommand]) -> Option<String> {
        commands
            .iter()
            .find_map(|command| self.unpacks(command).or_else(|| self.renames(text, command)))
            .or_else(|| self.brings_settings(text, commands))
    }

    /// Why `command` must not put all that an archive or a patch holds into a folder with settings of the person.
    fn unpacks(&self, command: &ShellCommand) -> Option<String> {
        let folder = path_at(&unpacked(command)?, command);
        let is_guarded = self.all_names(&folder).iter().any(|names| self.is_guarded(names, holds));
        is_guarded.then(|| of_settings(&folder))
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
    fn brings_settings(&self, text: &str, commands: &[ShellCommand]) -> Option<String> {
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
        all.iter().find_map(|one| self.brings_into(one, commands, &roots))
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

/// Whether `text` names the place of settings `mark`, such as `.x/settings`, or its folder alone.
fn is_place(text: &str, mark: &str) -> bool {
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
