//! How agents are started so that no hook guards them: an agent that starts one could do everything by it.

use std::collections::BTreeSet;

use pintle_domain::shell::{ShellCommand, ShellFacts};

use crate::program_name::{STARTERS, UNKNOWN, copies, may_be, pieces};
use crate::runners::starts_others;
use crate::set_variables::{loaded_in, sets};

/// What of one agent starts it without its hooks.
#[derive(Debug)]
pub(crate) struct UnguardedStart {
    /// Its programs and packages.
    pub(crate) programs: &'static [&'static str],
    /// Options that leave hooks out, whatever their value is.
    pub(crate) options: &'static [&'static str],
    /// How words begin that set what turns hooks off, in small letters.
    pub(crate) settings: &'static [&'static str],
    /// Words that turn hooks off where they follow one another.
    pub(crate) words: &'static [&'static [&'static str]],
    /// Its commands that change its settings whatever follows them, beside those of `GROUPS`.
    pub(crate) changes: &'static [&'static str],
    /// Variables of the environment that move its settings elsewhere or leave hooks out, beside those of `OF_ALL`.
    pub(crate) variables: &'static [&'static str],
}

/// Options of terminals behind which names of their own stand.
const NAMING: [&str; 7] = ["-s", "-S", "-t", "-T", "-n", "--title", "--name"];

/// What they are told where they only install, and start nothing.
const INSTALLS: [&str; 8] = ["install", "i", "add", "ci", "update", "upgrade", "uninstall", "remove"];

/// The variable by which every agent finds the settings of its person, and those by which other code is loaded into it.
const OF_ALL: [&str; 5] = ["HOME", "LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "BASH_ENV"];

/// Programs that say where another one lies.
const ASKING: [&str; 7] = ["command", "readlink", "realpath", "type", "whence", "where", "which"];

/// Functions that set a variable which they are told by its name.
const FUNCTIONS: [&str; 2] = ["putenv", "setenv"];

/// How far behind an agent what leaves its hooks out stands in code, in words.
const NEAR: usize = 16;

/// How the names of variables begin that people set for many programs.
const OF_MANY: &str = "XDG_";

/// Programs that start another one as somebody else, without its variables or among other files: its settings may be others.
const ELSEWHERE: [&str; 19] = [
    "chpst",
    "chroot",
    "doas",
    "docker",
    "gosu",
    "incus",
    "lxc",
    "machinectl",
    "nerdctl",
    "nsenter",
    "pkexec",
    "podman",
    "runuser",
    "setpriv",
    "setuidgid",
    "su",
    "su-exec",
    "sudo",
    "unshare",
];

/// Those of which nobody reads here where the other program begins.
const ENCLOSING: [&str; 8] =
    ["bwrap", "capsh", "fakechroot", "firejail", "minijail0", "nsjail", "proot", "systemd-nspawn"];

/// Programs that set a variable which they are told by its name, or take it away.
const SETTERS: [&str; 7] = ["bwrap", "env", "mapfile", "printf", "read", "readarray", "unset"];

/// What the command lines of agents call their own settings.
const GROUPS: [&str; 10] =
    ["config", "extension", "extensions", "features", "hooks", "mcp", "plugin", "plugins", "settings", "skills"];

/// What is done to them there.
const CHANGES: [&str; 18] = [
    "add",
    "add-from-claude-desktop",
    "add-json",
    "disable",
    "disable-all",
    "enable",
    "enable-all",
    "i",
    "import",
    "install",
    "link",
    "migrate",
    "remove",
    "rm",
    "set",
    "uninstall",
    "unset",
    "update",
];

impl UnguardedStart {
    /// Why `text`, of which `facts` tell, must not run: it starts this agent without its hooks, turns them off, or changes
    /// its settings, which a person may have allowed (`lifted`). Each of `links` is a name and the program that it leads to.
    pub(crate) fn found_in(
        &self,
        text: &str,
        facts: &ShellFacts,
        lifted: bool,
        links: &[(String, String)],
    ) -> Option<String> {
        let program = self.programs.first()?;
        let is_it = |word: &str| self.is_program(word) || self.is_of_package(word);
        let mut copies = copies(facts, is_it);
        copies.extend(links.iter().filter(|(_, target)| is_it(target)).map(|(name, _)| name.as_str()));
        let mut wrappers = facts.commands.iter().enumerate();
        if let Some((_, wrapper)) = wrappers.find(|(at, it)| self.is_moved_by(it, &facts.commands[at + 1..], &copies)) {
            let by = &wrapper.name;
            return Some(format!(
                "`{by}` would start `{program}` where its guard may not be, as somebody else or elsewhere"
            ));
        }
        let told = facts.commands.iter().filter_map(|command| {
            let words = self.told(command, &copies)?;
            Some([words, behind_mark(command, words)])
        });
        let told: Vec<&[String]> = told.flatten().collect();
        if let Some(switch) = self.told_to_unknown(text, facts) {
            return Some(self.without(&switch));
        }
        if told.is_empty() {
            return self.copied_in(facts);
        }
        let is_set = |name: &str| sets(text, name) || facts.commands.iter().any(|command| is_setter(command, name));
        let mut variables = self.variables.iter().copied().chain(OF_ALL);
        let by_word = told.iter().find_map(|words| self.switch_in(words));
        let by_variable = || variables.find(|name| is_set(name)).or_else(|| loaded_in(text)).map(str::to_owned);
        if let Some(switch) = by_word.or_else(by_variable) {
            return Some(self.without(&switch));
        }
        let change = told.iter().filter(|_| !lifted).find_map(|words| self.change_in(words));
        let changed = change.map(|change| {
            format!("`{program} {change}` would change the settings of that agent: only a person may do that")
        });
        changed.or_else(|| self.copied_in(facts))
    }

    /// What this agent is told by one of the commands of `facts`, which starts it or may do so.
    pub(crate) fn started_in<'f>(&self, facts: &'f ShellFacts) -> Option<&'f [String]> {
        let behind_unknown = |command: &'f ShellCommand| {
            let words = command.argv.get(1..).filter(|_| command.name.contains(UNKNOWN) || command.name == "env")?;
            let at = words.iter().position(|word| !word.contains('=') && self.is_program(word))?;
            words.get(at + 1..)
        };
        let mut commands = facts.commands.iter();
        commands.find_map(|command| self.told(command, &BTreeSet::new()).or_else(|| behind_unknown(command)))
    }

    /// Why words that stand in a file must not be told to this agent: one of them leaves its hooks out.
    pub(crate) fn told_by(&self, words: &[String]) -> Option<String> {
        self.switch_in(words).map(|switch| self.without(&switch))
    }

    /// What is said where nobody knows the words that this agent would be told.
    pub(crate) fn told_unknown(&self) -> String {
        let program = self.programs.first().copied().unwrap_or_default();
        format!(
            "which options `{program}` would get cannot be known: in quotes, what another command prints is one word"
        )
    }

    /// Why this agent must not be started with the variables that `text` sets: one of them moves its settings elsewhere.
    pub(crate) fn set_by(&self, text: &str) -> Option<String> {
        let mut variables = self.variables.iter().copied().chain(OF_ALL);
        variables.find(|name| sets(text, name)).or_else(|| loaded_in(text)).map(|name| self.without(name))
    }

    /// Whether the file `path` would be started where this agent is meant.
    pub(crate) fn is_called_as(&self, path: &str) -> bool {
        let mut names = path.rsplit('/');
        names.next().is_some_and(|name| self.is_program(name))
            && names.next().is_some_and(|folder| matches!(folder, "bin" | "sbin" | ".bin"))
    }

    /// Why `text` must not be put into a file that is called as this agent is: it would start it without its hooks.
    pub(crate) fn put_by(&self, text: &str) -> Option<String> {
        let words: Vec<String> = pieces(text).map(str::to_owned).collect();
        let mut parts = words.split(|word| word == "--");
        parts.find_map(|part| self.told_by(part)).or_else(|| self.set_by(text))
    }

    /// What leaves hooks out among the words of a program that is not known, in a text that names this agent.
    fn told_to_unknown(&self, text: &str, facts: &ShellFacts) -> Option<String> {
        let mut unknown = facts.commands.iter().filter(|command| command.name.contains(UNKNOWN));
        let switch = unknown.find_map(|command| self.switch_in(command.argv.get(1..).unwrap_or_default()))?;
        pieces(text).any(|piece| self.is_program(piece)).then_some(switch)
    }

    /// Why a text must not copy the program of this agent under another name: nobody would know it by that later.
    fn copied_in(&self, facts: &ShellFacts) -> Option<String> {
        let says = |command: &ShellCommand| command.argv.iter().skip(1).any(|word| self.is_program(word));
        let is_asked = || facts.commands.iter().any(|command| ASKING.contains(&command.name.as_str()) && says(command));
        let is_source = |word: &str| match (self.is_program(word), word.rsplit('/').nth(1)) {
            (true, Some(folder)) => folder.ends_with("bin"),
            // Where it lies is what another command says.
            (true, None) => is_asked(),
            (false, _) => word.contains("$(") && is_asked(),
        };
        let is_other = |word: &str| {
            let name = word.rsplit('/').next().unwrap_or(word);
            !matches!(name, "" | "." | "..") && !self.is_program(name)
        };
        let copies = |command: &&ShellCommand| {
            let words: Vec<&str> =
                command.argv.iter().skip(1).map(String::as_str).filter(|word| !word.starts_with('-')).collect();
            let any_source = |words: &[&str]| words.iter().any(|word| is_source(word));
            match command.name.as_str() {
                "cp" | "install" | "rsync" => {
                    words.split_last().is_some_and(|(target, sources)| is_other(target) && any_source(sources))
                }
                "dd" => words.iter().any(|word| word.strip_prefix("if=").is_some_and(is_source)),
                "cat" => facts.writes.iter().any(|path| is_other(path)) && any_source(&words),
                _ => false,
            }
        };
        let command = facts.commands.iter().find(copies)?;
        let program = self.programs.first()?;
        Some(format!("`{}` would give `{program}` another name, by which nobody would know it later", command.name))
    }

    /// Why `text` must not be kept to be run later: it says how this agent is started without its hooks.
    pub(crate) fn said_in(&self, text: &str) -> Option<String> {
        let mut own = self.variables.iter().filter(|name| !name.starts_with(OF_MANY));
        let switch = self.in_line(text).or_else(|| own.find(|name| sets(text, name)).map(|name| (*name).to_owned()))?;
        Some(self.without(&switch))
    }

    /// Why `text`, which is known in part, must not run: it says how this agent is started without its hooks.
    pub(crate) fn told_in(&self, text: &str) -> Option<String> {
        self.in_line(text).map(|switch| self.without(&switch))
    }

    /// The same of code in another language, in which words stand on any lines.
    pub(crate) fn coded_in(&self, code: &str) -> Option<String> {
        let words: Vec<String> = pieces(code).map(str::to_owned).collect();
        let starts: Vec<usize> = (0..words.len()).filter(|at| self.is_program(&words[*at])).collect();
        let by_word = starts.iter().find_map(|at| self.switch_in(&words[at + 1..words.len().min(at + 1 + NEAR)]));
        // Code sets a variable in ways of its own.
        let is_said = |name: &str| words.iter().any(|word| word.trim_end_matches('=').rsplit('.').next() == Some(name));
        let mut own = self.variables.iter().filter(|name| !starts.is_empty() && !name.starts_with(OF_MANY));
        let of_all = || OF_ALL.into_iter().find(|name| !starts.is_empty() && is_put(&words, name));
        let by_variable = || own.find(|name| is_said(name)).copied().or_else(of_all).map(str::to_owned);
        let switch = by_word.or_else(by_variable)?;
        Some(self.without(&switch))
    }

    /// What leaves hooks out in one of the lines of `text` that name this agent.
    fn in_line(&self, text: &str) -> Option<String> {
        text.split(['\n', ';', '&', '|']).find_map(|line| {
            let at = pieces(line).position(|word| self.is_program(word))?;
            let behind: Vec<String> = pieces(line).skip(at + 1).map(str::to_owned).collect();
            let mut variables = self.variables.iter().copied().chain(OF_ALL);
            let by_word = self.switch_in(&behind);
            by_word.or_else(|| variables.find(|name| sets(line, name)).map(str::to_owned))
        })
    }

    /// What is said of `switch`, which leaves hooks out.
    fn without(&self, switch: &str) -> String {
        let program = self.programs.first().copied().unwrap_or_default();
        format!("`{switch}` would start `{program}` without its guard, or turn that off")
    }

    /// Whether the file `word` is this agent.
    pub(crate) fn is_program(&self, word: &str) -> bool {
        let file = word.rsplit(['/', '=']).next().unwrap_or_default();
        self.programs.iter().any(|own| may_be(file, own))
    }

    /// Whether `word` names a file of this agent's package.
    fn is_of_package(&self, word: &str) -> bool {
        self.programs.iter().any(|own| own.starts_with('@') && word.contains(own))
    }

    /// Whether `wrapper` starts this agent, which has the names of `copies`, too, as somebody else or among other files; the
    /// commands `behind` it follow.
    fn is_moved_by(&self, wrapper: &ShellCommand, behind: &[ShellCommand], copies: &BTreeSet<&str>) -> bool {
        let words = wrapper.argv.get(1..).unwrap_or_default();
        let name = wrapper.name.as_str();
        if ENCLOSING.contains(&name) {
            return words.iter().flat_map(|word| pieces(word)).any(|piece| self.is_program(piece));
        }
        let empties = |word: &String| word == "-" || word == "-i" || word.starts_with("--ignore-e");
        let is_moving = ELSEWHERE.contains(&name) || (name == "env" && words.iter().any(empties));
        let is_started = |command: &ShellCommand| {
            let verb = || command.argv.iter().skip(1).find(|word| !word.starts_with('-'));
            let installs = || verb().is_some_and(|word| INSTALLS.contains(&word.as_str()));
            self.told(command, copies).is_some() && !(starts_others(command) && installs())
        };
        is_moving && behind.iter().take_while(|command| command.depth > wrapper.depth).any(is_started)
    }

    /// The words that `command` tells this agent, which has the names of `copies`, too; none where it does not start it.
    fn told<'c>(&self, command: &'c ShellCommand, copies: &BTreeSet<&str>) -> Option<&'c [String]> {
        let is_it = |word: &String| {
            let file = word.rsplit('/').next().unwrap_or_default();
            let name = file.split('@').next().unwrap_or_default();
            self.is_of_package(word) || copies.contains(file) || self.programs.contains(&name)
        };
        if self.is_program(&command.name) || copies.contains(command.name.as_str()) {
            return command.argv.get(1..);
        }
        let (name, argv) = (command.name.as_str(), command.argv.as_slice());
        let is_starter = STARTERS.contains(&name);
        let is_named = |at: usize| is_starter && at > 0 && NAMING.contains(&argv[at - 1].as_str());
        let mut places = (0..argv.len()).filter(|at| is_it(&argv[*at]) && !is_named(*at));
        let at = if is_starter || starts_others(command) { places.next() } else { None };
        argv.get(at? + 1..)
    }

    /// What among `words` leaves hooks out.
    fn switch_in(&self, words: &[String]) -> Option<String> {
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        let words = &words[..end];
        let is_option = |word: &String| {
            let name = word.split('=').next().unwrap_or_default();
            self.options.iter().any(|option| word == option || name == *option)
        };
        let single = words.iter().find(|word| is_option(word) || self.is_setting(word));
        let row = || self.words.iter().find(|row| words.windows(row.len()).any(|window| window == **row));
        single.cloned().or_else(|| row().map(|row| row.join(" ")))
    }

    /// The command among `words` that changes settings: `mcp add`, `plugin marketplace add`.
    fn change_in(&self, words: &[String]) -> Option<String> {
        let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
        let words = &words[..end];
        // What stands before it are options, and what may be their values.
        let is_first = |at: usize| {
            let is_option = |at: usize| words[at].starts_with('-');
            !is_option(at) && (0..at).all(|before| is_option(before) || (before > 0 && is_option(before - 1)))
        };
        let mut firsts = (0..words.len()).filter(|at| is_first(*at));
        firsts.find_map(|at| {
            let (first, rest) = (words[at].as_str(), &words[at + 1..]);
            if self.changes.contains(&first) {
                return Some(first.to_owned());
            }
            let change = rest.iter().find(|word| CHANGES.contains(&word.as_str()))?;
            GROUPS.contains(&first).then(|| format!("{first} {change}"))
        })
    }

    /// Whether `word` sets what turns hooks off, alone or behind its option in one word.
    fn is_setting(&self, word: &str) -> bool {
        let plain = word.chars().filter(|letter| !letter.is_whitespace() && !matches!(letter, '"' | '\''));
        let plain: String = plain.flat_map(char::to_lowercase).collect();
        let said = plain.strip_prefix("--config=").or_else(|| plain.strip_prefix("-c")).unwrap_or(&plain);
        self.settings.iter().any(|setting| said.trim_start_matches('=').starts_with(setting))
    }
}

/// Whether `command` sets the variable `name`, or takes it away, where it is told that by its name.
fn is_setter(command: &ShellCommand, name: &str) -> bool {
    let is_named = |word: &String| {
        let value = ["-u", "-v", "--unset="].iter().find_map(|option| word.strip_prefix(option));
        word == name || value == Some(name)
    };
    SETTERS.contains(&command.name.as_str()) && command.argv.iter().skip(1).any(is_named)
}

/// What of the `words` of `command`, where that is a runner, stands behind the `--` with which it tells its own options from
/// those of the other program.
fn behind_mark<'w>(command: &ShellCommand, words: &'w [String]) -> &'w [String] {
    let at = words.iter().position(|word| word == "--").filter(|_| starts_others(command));
    at.and_then(|at| words.get(at + 1..)).unwrap_or_default()
}

/// Whether code, of which these are the `words`, gives the variable `name` another value.
fn is_put(words: &[String], name: &str) -> bool {
    let last = |word: &str| word.split(['=', ':']).next().and_then(|head| head.rsplit('.').next()) == Some(name);
    let is_sign = |text: &str| text.starts_with(':') || (text.starts_with('=') && !text.starts_with("=="));
    let is_set = |at: usize| {
        let word = words[at].as_str();
        let rest = &word[word.find(['=', ':']).unwrap_or(word.len())..];
        let before = at.checked_sub(1).map(|at| words[at].as_str()).unwrap_or_default();
        let by_function = FUNCTIONS.iter().any(|function| before.ends_with(function));
        let by_next = || words.get(at + 1).is_some_and(|next| is_sign(next));
        let by_sign = if rest.is_empty() { !before.ends_with('$') && by_next() } else { is_sign(rest) };
        // It may hand on the value that the variable has.
        let again = (at + 1..words.len().min(at + 4)).find(|next| last(&words[*next]));
        let is_same =
            again.is_some_and(|next| !words.get(next + 1).is_some_and(|word| word.starts_with(['+', '/', '.'])));
        by_function || (by_sign && !is_same)
    };
    (0..words.len()).any(|at| last(&words[at]) && is_set(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_gives_a_variable_another_value_in_its_own_ways() {
        for (code, is_it) in [
            ("os.environ['HOME']='/x'; os.system('claude')", true),
            ("os.environ[\"HOME\"] = '/x'", true),
            ("os.putenv('HOME', '/x')", true),
            ("subprocess.run(['claude'], env={'HOME': '/x'})", true),
            ("subprocess.run(['claude'], env=dict(os.environ, HOME='/x'))", true),
            ("process.env.HOME='/x'; spawn('claude')", true),
            ("spawn('claude', [], {env: {HOME: '/x'}})", true),
            ("$ENV{HOME} = '/x'; system('claude')", true),
            ("ENV['HOME'] = ENV['HOME'] + '/x'", true),
            ("os.system('HOME=/x claude')", true),
            ("run(['claude'], cwd=os.environ['HOME'])", false),
            ("spawn('claude', [], {env: {HOME: process.env.HOME}})", false),
            ("env={'HOME': os.environ['HOME'], 'A': '1'}", false),
            ("if os.environ['HOME'] == '/x': run('claude')", false),
            ("echo ${HOME}:/x", false),
            ("MY_HOME='/x'", false),
        ] {
            let words: Vec<String> = pieces(code).map(str::to_owned).collect();
            assert_eq!(is_put(&words, "HOME"), is_it, "{code}: {words:?}");
        }
    }
}
