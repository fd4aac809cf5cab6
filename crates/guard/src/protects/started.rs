//! Files that a shell, a service manager or another program reads as it begins: no agent puts into one what takes the guard
//! away later.

use pintle_domain::json::Object;
use pintle_domain::shell::ShellFacts;

use super::Look;
use crate::hosts::UNGUARDED;
use crate::in_code;
use crate::own_commands;
use crate::path_pattern::is_meant;
use crate::set_variables;
use crate::tools::all_strings;
use crate::unguarded::UnguardedStart;

/// Such files of shells, terminals and services, as patterns of paths.
const START_FILES: &[&str] = &[
    "~/.bash_aliases",
    "~/.bash_login",
    "~/.bash_logout",
    "~/.bash_profile",
    "~/.bashrc",
    "~/.config/autostart/**",
    "~/.config/environment.d/**",
    "~/.config/fish/**",
    "~/.config/systemd/**",
    "~/.config/tmux/**",
    "~/.config/zsh/**",
    "~/.cshrc",
    "~/.envrc",
    "~/.kshrc",
    "~/.local/share/systemd/**",
    "~/.login",
    "~/.logout",
    "~/.npmrc",
    "~/.pam_environment",
    "~/.profile",
    "~/.screenrc",
    "~/.ssh/rc",
    "~/.tcshrc",
    "~/.tmux.conf",
    "~/.xinitrc",
    "~/.xprofile",
    "~/.xsession",
    "~/.zlogin",
    "~/.zlogout",
    "~/.zprofile",
    "~/.zshenv",
    "~/.zshrc",
    "~/library/launchagents/**",
    "/etc/bash.bashrc",
    "/etc/cron.d/**",
    "/etc/cron.daily/**",
    "/etc/cron.hourly/**",
    "/etc/cron.monthly/**",
    "/etc/cron.weekly/**",
    "/etc/crontab",
    "/etc/environment",
    "/etc/init.d/**",
    "/etc/profile",
    "/etc/profile.d/**",
    "/etc/rc.local",
    "/etc/systemd/**",
    "/etc/xdg/autostart/**",
    "/etc/zsh/**",
    "/var/spool/cron/**",
];

/// What the loader loads into every program.
const LOADED: &[&str] = &["/etc/ld.so.preload"];

/// Files in which other programs are told what they run.
const PROGRAM_FILES: &[&str] = &[
    "~/.config/git/**",
    "~/.config/nvim/**",
    "~/.emacs",
    "~/.emacs.d/**",
    "~/.gitconfig",
    "~/.ssh/config",
    "~/.vim/**",
    "~/.vimrc",
    "**/.git/config",
    "**/.git/hooks/**",
    "**/.husky/**",
];

impl Look<'_> {
    /// Why a tool must not write `arguments` into one of `paths`.
    pub(super) fn kept_for_later<P: AsRef<str>>(&self, paths: &[P], arguments: &Object) -> Option<String> {
        let mut texts = arguments.iter().flat_map(|(_, member)| all_strings(member));
        if let Some(path) = self.one_of(LOADED, paths) {
            return Some(loaded(path));
        }
        if let Some(path) = self.one_of(START_FILES, paths) {
            let said = |text: &str| own_commands::said_in(text).or_else(|| set_variables::kept_in(text));
            return Some(read_at_start(path, &texts.find_map(said)?));
        }
        if let Some(path) = self.one_of(PROGRAM_FILES, paths) {
            return Some(read_at_start(path, &texts.find_map(in_code::told_in)?));
        }
        replaced(paths, &texts.collect::<Vec<&str>>())
    }

    /// Why `text`, of which `facts` tell, must not run: it writes such a file.
    pub(super) fn written_for_later(&self, text: &str, facts: &ShellFacts) -> Option<String> {
        if let Some(path) = self.one_of(LOADED, &facts.writes) {
            return Some(loaded(path));
        }
        if let Some(path) = self.one_of(START_FILES, &facts.writes) {
            // Quotes within a word are gone in those of a command.
            let mut words = facts.commands.iter().map(|command| command.argv.join(" "));
            let by_word = || words.find_map(|words| own_commands::said_in(&words));
            let said = own_commands::said_in(text).or_else(by_word).or_else(|| set_variables::kept_in(text));
            return Some(read_at_start(path, &said?));
        }
        if let Some(path) = self.one_of(PROGRAM_FILES, &facts.writes) {
            return Some(read_at_start(path, &in_code::in_part(text, facts)?));
        }
        replaced(&facts.writes, &[text])
    }

    /// The first of `paths` that is one of `files`.
    fn one_of<'p, P: AsRef<str>>(&self, files: &[&str], paths: &'p [P]) -> Option<&'p str> {
        let is_one = |path: &&str| {
            let names = self.names(path);
            files.iter().any(|pattern| is_meant(pattern, self.files.home, &names))
        };
        paths.iter().map(P::as_ref).find(is_one)
    }
}

/// Why one of `texts` must not be put into one of `paths`, which is called as an agent is.
fn replaced<P: AsRef<str>>(paths: &[P], texts: &[&str]) -> Option<String> {
    // Each text is read once for each agent, however many paths there are.
    let is_named = |agent: &&UnguardedStart| paths.iter().any(|path| agent.is_called_as(path.as_ref()));
    UNGUARDED.iter().filter(is_named).find_map(|agent| texts.iter().find_map(|text| agent.put_by(text)))
}

fn loaded(path: &str) -> String {
    format!("what `{path}` names is loaded into every program, and so into agents and what guards them")
}

/// What is said of a text that is refused because of `why`, for the file `path`.
fn read_at_start(path: &str, why: &str) -> String {
    format!("`{path}` is read whenever a shell, a session, a service or another program begins: {why}")
}
