//! Patterns of a shell text: what may be guarded by its name is settled by what lies on the disk.

use domain::shell::ShellCommand;

use super::told_text::ToldText;
use super::{Look, MAX_PATHS, path_at};
use crate::braces;
use crate::expanded::{expanded, takes_names};
use crate::path_pattern::{is_plain, may_mean, visible};
use crate::taken::carried;

/// Where what a path stands for is another thing to each process.
const OF_PROCESSES: [&str; 2] = ["/proc/", "/dev/"];

/// Whether all of `path` is written: no sign of a shell stands in it.
fn is_known(path: &str) -> bool {
    let is_whole = path.starts_with('/') || path.starts_with("~/");
    let is_fixed = !OF_PROCESSES.iter().any(|folder| path.starts_with(folder));
    is_whole && is_fixed && !path.contains(['$', '`', '{', '…', '(', '|', '\\', '*', '?', '['])
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
            let reason = look(self, &expanded(path, told.facts)).or_else(|| self.own_meant((path, said), told))?;
            let is_held =
                |path: &str| self.unbounded(|look_at| look(look_at, path).is_some()) && !self.holds_no_settings(path);
            let found = match self.settled(path, told) {
                Some(pattern) => (self.disk.finds)(&pattern, &is_held),
                None if told.makes_nothing && is_known(path) => Some(!self.holds_no_settings(path)),
                None => None,
            };
            found.unwrap_or(true).then_some(reason)
        })
    }

    /// What `look` says of what is found, however much that is: whoever finds it keeps within a bound of its own.
    fn unbounded(&self, look: impl Fn(&Self) -> bool) -> bool {
        let left = self.left.replace(MAX_PATHS);
        let said = look(self);
        self.left.set(left);
        said
    }

    /// Whether `path` is a folder of a project in which settings may be, as its name says, and none are.
    fn holds_no_settings(&self, path: &str) -> bool {
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
        let is_whole = path.starts_with('/') || path.starts_with("~/");
        let is_fixed = !OF_PROCESSES.iter().any(|folder| path.starts_with(folder));
        let is_settled = told.makes_nothing && is_plain(path) && is_whole && is_fixed && !self.is_script(path, told);
        if !is_settled || self.means_own(path) || self.may_hold_own(&self.names(path)) {
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
