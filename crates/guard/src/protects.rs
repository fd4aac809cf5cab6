//! The first rule of a guard: what the guarded agent must not touch, since it could take the guard away with it.

mod agent_words;
mod by_name;
mod carried;
mod changed_below;
mod foreign;
mod list_files;
mod patches;
mod patterned;
mod plain_text;
mod reached;
mod roundabout;
mod served;
mod second_names;
mod settled;
mod started;
mod streamed;
mod told_in_files;
mod told_text;

use std::cell::Cell;
use std::path::Path;

use pintle_domain::shell::{ShellCommand, ShellFacts, ShellKind, ShellText};

use crate::event::{HostCall, HostEvent, HostWhat};
use crate::expanded::expanded;
use crate::filled::{brought, is_harmless, named, patched_by};
use crate::foreign_texts;
use crate::hosts::{HOSTS, host};
use crate::in_code;
use crate::made_names::urls_of_files;
use crate::own_commands;
use crate::path_pattern::{below, holds, is_meant, is_plain, literal, mark, names, path_meant, visible};
use crate::tools::{self, ToolClass};
use crate::typed::left_open;

use plain_text::PlainText;
use told_text::ToldText;

/// Pintle's own folders, as patterns of paths.
const OWN: [&str; 12] = [
    "~/.config/pintle/**",
    "~/.config/systemd/user/pintle-guard*/**",
    "~/.config/systemd/user/sockets.target.wants/pintle-guard*",
    "~/.config/systemd/user.control/pintle-guard*/**",
    "~/.local/share/systemd/user/pintle-guard*/**",
    "~/.local/share/pintle/**",
    "~/.local/state/pintle/**",
    "/etc/pintle/**",
    "/etc/systemd/user/pintle-guard*/**",
    "/run/pintle/**",
    "/run/user/*/pintle/**",
    "**/.pintle/**",
];

/// Those of them that are configuration, which a person may let an agent work on.
const LIFTED: [&str; 2] = ["~/.config/pintle/**", "**/.pintle/**"];

/// Where a socket and its key lie, which speak for the client.
const SECRET: [&str; 2] = ["/run/pintle/**", "/run/user/*/pintle/**"];

/// The longest path. Source: `PATH_MAX` of Linux.
pub const MAX_PATH_BYTES: usize = 4096;

/// How many paths of one call are looked at; a call with more is refused. Each takes some microseconds where it is looked up
/// what it leads to, and calls of people have a few.
const MAX_PATHS: usize = 16_384;

/// What a path usually has at most; a longer one counts as several.
const USUAL_BYTES: usize = 64;

/// How much of a list of paths is read. A longer one has more paths than are looked at.
pub const MAX_LIST_BYTES: usize = 2 * MAX_PATHS * USUAL_BYTES;

/// How a pattern of an agent begins that means files of its own work.
const OF_WORK: char = '!';

/// Programs that change who may do what with a file.
const ACCESS: [&str; 5] = ["chmod", "chown", "chgrp", "chattr", "setfacl"];

/// Where things are on this machine.
#[derive(Clone, Copy, Debug)]
pub struct GuardedFiles<'a> {
    /// The home folder of the person, absolute.
    pub home: &'a str,
    /// Further files and folders of Pintle that are in use, absolute: its configuration, its store, its socket.
    pub own: &'a [String],
    /// Whether a person lets agents change their settings and Pintle's configuration for a while. What is in use stays
    /// protected, and what answers for a person.
    pub lifted: bool,
}

/// Whether a pattern stands for a file of which the second says that it matters; nothing where that cannot be said.
pub type FindsFiles<'a> = &'a dyn Fn(&str, &dyn Fn(&str) -> bool) -> Option<bool>;

/// What lies at a path, behind all links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// A file or a folder.
    Lasting,
    /// A pipe, a socket or a device: what is read there was nowhere before.
    Stream,
    /// Nothing.
    Nothing,
    /// Nobody can say.
    Unknown,
}

/// What is looked up in the file system.
#[derive(Clone, Copy)]
pub struct OnDisk<'a> {
    /// Where a path leads to, as far as that is elsewhere: links have any names, and what they lead to has more than one.
    pub leads: &'a dyn Fn(&str) -> Vec<String>,
    /// Whether a folder has something that a pattern of paths below it means: `.x/settings*.json`, `.x/**`.
    pub holds: &'a dyn Fn(&str, &str) -> bool,
    /// Whether one of the files and folders that a path with signs of a shell stands for now is what the second one says;
    /// none where nobody can say.
    pub finds: FindsFiles<'a>,
    /// What a file says, or the first [`MAX_LIST_BYTES`] of it; none where no file of texts is there.
    pub says: &'a dyn Fn(&str) -> Option<String>,
    /// What lies at a path.
    pub kind: &'a dyn Fn(&str) -> PathKind,
}

/// Why the call that `event` is about must not run, whatever rules say, by the names of its paths alone; none if nothing is
/// to be said against it.
pub fn protects(event: &HostEvent, files: &GuardedFiles<'_>) -> Option<String> {
    let nothing = OnDisk {
        leads: &|_| Vec::new(),
        holds: &|_, _| false,
        finds: &|_, _| None,
        says: &|_| None,
        kind: &|_| PathKind::Unknown,
    };
    protects_behind(event, files, nothing)
}

/// The same, where every path counts as what it leads to, too, and folders as what lies in them.
pub fn protects_behind(event: &HostEvent, files: &GuardedFiles<'_>, disk: OnDisk<'_>) -> Option<String> {
    match &event.what {
        HostWhat::Tool(tool) | HostWhat::Permission { tool } => of_call((event, tool), files, disk),
        HostWhat::ConfigChange { path, source } => {
            let path = path.as_deref().unwrap_or(source);
            Some(format!("the settings in `{path}` changed; they count once the agent is restarted"))
        }
        HostWhat::SessionStart
        | HostWhat::SessionEnd
        | HostWhat::Prompt { .. }
        | HostWhat::PromptSent { .. }
        | HostWhat::ToolDone { .. }
        | HostWhat::SubagentStart
        | HostWhat::SubagentStop { .. }
        | HostWhat::Stop { .. }
        | HostWhat::BeforeModel { .. }
        | HostWhat::AfterModel { .. }
        | HostWhat::Other => None,
    }
}

fn of_call((event, tool): (&HostEvent, &HostCall), files: &GuardedFiles<'_>, disk: OnDisk<'_>) -> Option<String> {
    let row = host(event.host)?.tool(&tool.native);
    if let Some(row) = row.filter(|row| row.class == ToolClass::Shell)
        && !tools::has_command(row, &tool.arguments)
    {
        return Some(format!("a call of `{}` without a command that can be read cannot be judged", tool.native));
    }
    let look = Look { files, cwd: &event.cwd, disk, left: Cell::new(MAX_PATHS) };
    let Some(row) = row else {
        let named = crate::foreign_arguments::paths(&tool.arguments, MAX_PATH_BYTES);
        let by_text = || look.kept_for_later(&named, &tool.arguments);
        return look.unknown_tool(&tool.native, &tool.arguments).or_else(by_text).or_else(|| look.too_many());
    };
    let writes = match tool.class {
        ToolClass::FileWrite | ToolClass::Mcp | ToolClass::Other => true,
        ToolClass::Shell | ToolClass::FileRead | ToolClass::Web | ToolClass::Subagent => false,
    };
    let (mut paths, texts) = (tools::paths_in(row.holds, &tool.arguments), tools::texts_in(row.holds, &tool.arguments));
    let searches = tool.canonical == "search_text";
    if searches && paths.is_empty() {
        paths.push(".");
    }
    let for_later = if writes { look.kept_for_later(&paths, &tool.arguments) } else { None };
    let by_path = paths.into_iter().find_map(|path| {
        let searched = || if searches { look.searched_for(path, &tool.arguments) } else { None };
        let named = if writes { look.named_to_write(path) } else { look.read(path).or_else(searched) };
        named.or_else(|| look.names_process(path))
    });
    let asked = || tool.arguments.iter().flat_map(|(_, member)| tools::all_strings(member)).flat_map(urls_of_files);
    let by_url = if tool.class == ToolClass::Web { asked().find_map(|path| look.read(&path)) } else { None };
    let by_path = by_path.or(for_later).or(by_url);
    let joined = foreign_texts::joined(row.holds, &tool.arguments);
    let mut texts = texts.into_iter().chain(joined.iter().map(String::as_str));
    by_path.or_else(|| texts.find_map(|text| look.shell(event.host, text))).or_else(|| look.too_many())
}

/// Looks at one call.
struct Look<'a> {
    files: &'a GuardedFiles<'a>,
    cwd: &'a str,
    disk: OnDisk<'a>,
    /// How many paths may still be looked at.
    left: Cell<usize>,
}

impl Look<'_> {
    fn patterns(&self) -> impl Iterator<Item = &'static str> {
        let lifted = self.files.lifted;
        let hosts = HOSTS.iter().filter(move |_| !lifted).flat_map(|host| host.config.protects.iter().copied());
        let hosts = hosts.filter(|pattern| !pattern.starts_with(OF_WORK));
        hosts.chain(OWN.into_iter().filter(move |pattern| !lifted || !LIFTED.contains(pattern)))
    }

    fn names(&self, path: &str) -> Vec<String> {
        names(path, self.files.home, self.cwd)
    }

    /// The names of `path`, and of what it leads to; none where the call is refused for its many paths.
    fn all_names(&self, path: &str) -> Vec<Vec<String>> {
        let left = self.left.get().saturating_sub(1 + path.len().min(MAX_PATH_BYTES) / USUAL_BYTES);
        self.left.set(left);
        if left == 0 {
            return Vec::new();
        }
        let behind = (self.disk.leads)(&path_meant(path));
        std::iter::once(self.names(path)).chain(behind.iter().map(|behind| self.names(behind))).collect()
    }

    /// Why a call is refused that has more paths than are looked at.
    fn too_many(&self) -> Option<String> {
        (self.left.get() == 0).then(|| format!("it names more paths than the {MAX_PATHS} that are looked at"))
    }

    /// Whether `names` is guarded, as `fits` compares it with a pattern. In a folder of an agent's own work only what is
    /// guarded in any folder is: a copy of a project has settings of its own.
    fn is_guarded(&self, names: &[String], fits: fn(&str, &str, &[String]) -> bool) -> bool {
        let home = self.files.home;
        match self.of_work(names) {
            Some(rest) => self.of_any_folder().any(|pattern| fits(pattern, home, rest)),
            None => self.patterns().any(|pattern| fits(pattern, home, names)),
        }
    }

    /// The patterns of what is guarded in any folder.
    fn of_any_folder(&self) -> impl Iterator<Item = &'static str> {
        self.patterns().filter(|pattern| pattern.starts_with("**"))
    }

    /// What of `names` lies in a folder of an agent's own work, such as its plans; none where they lie elsewhere.
    fn of_work<'n>(&self, names: &'n [String]) -> Option<&'n [String]> {
        let mut of_work =
            HOSTS.iter().flat_map(|host| host.config.protects).filter_map(|pattern| pattern.strip_prefix(OF_WORK));
        of_work.find_map(|pattern| below(pattern, self.files.home, names))
    }

    /// Why a tool of files must not write `path`, which it takes as it is: no letter of it makes it a pattern.
    fn named_to_write(&self, path: &str) -> Option<String> {
        let plain = |names: &Vec<String>| names.iter().map(|name| literal(name)).collect::<Vec<String>>();
        let all: Vec<Vec<String>> = self.all_names(path).iter().map(plain).collect();
        self.to_write(path, &all)
    }

    fn written(&self, path: &str) -> Option<String> {
        self.to_write(path, &self.all_names(path))
    }

    /// Why `path`, which has all these names, must not be written.
    fn to_write(&self, path: &str, all: &[Vec<String>]) -> Option<String> {
        let is_guarded = all.iter().any(|names| {
            let own = self.files.own.iter().any(|own| names.starts_with(&self.names(own)));
            own || self.is_guarded(names, is_meant)
        });
        is_guarded.then(|| {
            // Some programs are told more than a path in one word.
            let is_it = |part: &&str| part.starts_with(['/', '~']) && self.is_guarded(&self.names(part), is_meant);
            let part = path.split(' ').rfind(is_it).unwrap_or(path);
            format!("`{part}` belongs to the guard of this agent or decides over it: only a person may change it")
        })
    }

    /// Whether what has `names` is guarded, or holds what is.
    fn is_held(&self, names: &[String]) -> bool {
        self.holds_own(names) || self.is_guarded(names, holds)
    }

    fn deleted(&self, path: &str) -> Option<String> {
        let may_hold = |names: &[String]| is_plain(path) && self.may_hold_own(names);
        let is_guarded = self.all_names(path).iter().any(|names| may_hold(names) || self.is_held(names));
        is_guarded.then(|| {
            format!("`{path}` holds what guards this agent or decides over it: only a person may take it away")
        })
    }

    /// Whether a file of ours that is in use lies in `names`, or `names` in one.
    fn holds_own(&self, names: &[String]) -> bool {
        let mut own = self.files.own.iter().map(|own| self.names(own));
        own.any(|own| own.starts_with(names) || names.starts_with(&own))
    }

    fn read(&self, path: &str) -> Option<String> {
        let all = self.all_names(path);
        let means = |pattern: &str| all.iter().any(|names| is_meant(pattern, self.files.home, names));
        let is_secret = SECRET.iter().any(|pattern| means(pattern)) || all.iter().any(|names| self.is_secret(names));
        is_secret.then(|| format!("`{path}` is how the guard of this agent is spoken to, or what it remembers"))
    }

    fn shell(&self, host: &str, text: &str) -> Option<String> {
        let cwd = Path::new(self.cwd);
        let facts = pintle_shell::facts(ShellText { text, cwd, workspace: cwd, shell: ShellKind::Unknown });
        // Of what is too long, nothing was read: to look at it in any other way takes seconds.
        if facts.is_cut && facts.commands.is_empty() {
            return Some(unread(&facts));
        }
        let told = ToldText::of(text, &facts);
        let paths = |paths: &[String], look: fn(&Self, &str) -> Option<String>| {
            paths.iter().find_map(|path| self.touched(path, &told, look))
        };
        paths(&facts.writes, Self::written)
            .or_else(|| if self.takes_empty(&told) { None } else { paths(&facts.deletes, Self::deleted) })
            .or_else(|| self.found_below(&told))
            .or_else(|| self.changed_below(&facts))
            .or_else(|| facts.reads.iter().find_map(|path| self.read(&expanded(path, &facts))))
            .or_else(|| self.filled(&facts))
            .or_else(|| facts.commands.iter().find_map(|command| self.access(command, &told)))
            .or_else(|| facts.commands.iter().find_map(|command| self.named_twice(command)))
            .or_else(|| facts.commands.iter().find_map(|command| self.brings(text, command)))
            .or_else(|| self.names_in_parts(text, &facts))
            .or_else(|| self.listed_in_files(text, &facts))
            .or_else(|| self.told_in_files(text, &facts))
            .or_else(|| self.carries(text, &facts))
            .or_else(|| self.patched(text, &facts))
            .or_else(|| self.reaches(&facts))
            .or_else(|| facts.commands.iter().find_map(|command| self.serves(command)))
            .or_else(|| self.goes_round(text, &facts))
            .or_else(|| self.streamed(text, &facts))
            .or_else(|| own_commands::refused(text, &facts))
            .or_else(|| in_code::refused(text, &facts))
            .or_else(|| self.written_for_later(text, &facts))
            .or_else(|| self.starts_unguarded(text, &facts))
            .or_else(|| facts.unknown.then(|| self.unreadable(text).or_else(|| self.patterned(text))).flatten())
            .or_else(|| facts.is_cut.then(|| unread(&facts)))
            .or_else(|| (host == "codex").then(|| left_open(text, &facts)).flatten())
    }

    /// Whether every path leads through `names`, or all work is done there.
    fn is_above(&self, names: &[String]) -> bool {
        names == self.names(".") || self.names("~").starts_with(names)
    }

    /// The names of `path` where `command` runs.
    fn names_at(&self, path: &str, command: &ShellCommand) -> Vec<String> {
        let cwd = if command.cwd.is_empty() { self.cwd } else { command.cwd.as_str() };
        names(path, self.files.home, cwd)
    }

    /// Whether `names` is a folder of any project in which something may lie that is guarded. No pattern of the shell
    /// stands for it that does not begin with its dot.
    fn is_of_settings(&self, names: &[String]) -> bool {
        let names = self.of_work(names).unwrap_or(names);
        let is_hidden = names.last().is_some_and(|name| name.starts_with('.'));
        is_hidden && self.of_any_folder().any(|pattern| holds(pattern, self.files.home, names))
    }

    /// The same of `path` and what it leads to.
    fn is_folder_of_settings(&self, path: &str) -> bool {
        self.all_names(path).iter().any(|names| self.is_of_settings(names))
    }

    /// Whether something other than a file whose name is known is put into a folder of settings, or in its place.
    fn filled(&self, facts: &ShellFacts) -> Option<String> {
        let path = facts.writes.iter().find(|path| {
            let names = self.names(path);
            let is_at = |command: &ShellCommand, path: &str| self.names_at(path, command) == names;
            let is_about = |command: &&ShellCommand| {
                is_at(command, ".") || named(command).any(|path| !path.is_empty() && is_at(command, path))
            };
            let mut about = facts.commands.iter().filter(is_about).peekable();
            self.is_folder_of_settings(path)
                && (about.peek().is_none() || !about.all(|command| is_harmless(command, facts)))
                && !self.comes_without_settings(facts, &names)
        })?;
        Some(of_settings(path))
    }

    /// Whether all that a text, of which `facts` tell, puts at `names` is a copy of a folder without settings. What it does
    /// besides may put some into that.
    fn comes_without_settings(&self, facts: &ShellFacts, names: &[String]) -> bool {
        let (harmless, others): (Vec<&ShellCommand>, Vec<&ShellCommand>) =
            facts.commands.iter().partition(|command| is_harmless(command, facts) && command.name != "cp");
        let is_at = |command: &&ShellCommand| named(command).any(|path| self.names_at(path, command) == names);
        !facts.unknown
            && !harmless.iter().any(is_at)
            && matches!(others.as_slice(), [command] if self.copies_no_settings(command, names))
    }

    /// Whoever may not be executed or read any more, or not begin, guards nothing.
    fn access(&self, command: &ShellCommand, told: &ToldText<'_>) -> Option<String> {
        let name = command.name.as_str();
        let operands = command.argv.iter().skip(1).filter(|word| !word.starts_with('-'));
        let is_changed = ACCESS.contains(&name);
        operands.skip(usize::from(is_changed && says_first(command))).find_map(|word| match name {
            "flock" => self.read(&path_at(word, command)),
            _ if is_changed && !self.may_be_any(word, command) => {
                self.touched(&path_at(word, command), told, Self::deleted)
            }
            _ => None,
        })
    }

    /// Whether `word` of `command` is a path or a name of which nobody knows anything that leads to settings. The text is
    /// looked at as a whole where that is so.
    fn may_be_any(&self, word: &str, command: &ShellCommand) -> bool {
        let Some(at) = word.find(['$', '`', '…']) else { return false };
        let known = &word[..at];
        let leads = known.starts_with(['/', '~']) || known.contains("..") || word.contains(['*', '?', '[']);
        let is_hidden = known.split('/').any(|name| name.starts_with('.') && name != ".");
        let plain = word.to_lowercase();
        let first = |pattern: &'static str| mark(pattern).split('/').next().filter(|name| !name.is_empty());
        let is_named = || self.patterns().filter_map(first).any(|name| plain.contains(name));
        let folder: Vec<String> = self.names_at(".", command).iter().map(|name| visible(name)).collect();
        let is_here = command.cwd.is_empty() || !self.is_guarded(&folder, holds);
        !leads && !is_hidden && !is_named() && is_here
    }

    /// Whether `command` of `text` brings files along, or takes them away, among which is something that is guarded.
    fn brings(&self, text: &str, command: &ShellCommand) -> Option<String> {
        let is_any = |word: &str| command.name == "git" && self.may_be_any(word, command);
        let mut words = brought(command).into_iter().filter(|word| !is_any(word.as_str()));
        let along = words.find_map(|path| self.deleted(&path_at(&path, command)));
        let patched = || patched_by(text, command).iter().find_map(|path| self.written(&path_at(path, command)));
        along.or_else(patched)
    }

    /// A text that cannot be known in all parts may not even name what is guarded.
    fn unreadable(&self, text: &str) -> Option<String> {
        let plain = PlainText::of(text);
        // A way up leads out of a copy of a project again.
        let is_copy = |rest: &str| !plain.text.contains("..") && is_copy_of_project(rest);
        let mut patterns = self.patterns();
        let named = patterns.find(|pattern| plain.named(pattern).any(|rest| !is_copy(rest))).map(mark)?;
        Some(format!(
            "it names `{named}`, which guards this agent or decides over it, and what it would do there cannot be known"
        ))
    }
}

/// Why a text that was not read to its end may not run: behind the end may stand anything.
fn unread(facts: &ShellFacts) -> String {
    format!(
        "nobody can tell whether it would take the guard of this agent away: {}; shorter or simpler texts pass",
        facts.unknown_why
    )
}

/// Whether `rest`, which follows the name of an agent's folder, leads on into a copy of a project that agents work in:
/// `.claude/worktrees/NAME`, or one of a folder beside it.
fn is_copy_of_project(rest: &str) -> bool {
    let below = rest.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'));
    let copy = below.strip_prefix("/worktrees/");
    copy.is_some_and(|copy| copy.starts_with(|letter: char| letter.is_ascii_alphanumeric()))
}

/// Whether the first operand of `command`, which changes who may do what with files, says that and is no file.
fn says_first(command: &ShellCommand) -> bool {
    let words = command.argv.get(1..).unwrap_or_default();
    let is_mode = |word: &String| {
        word.starts_with('-')
            && !word.starts_with("--")
            && word.contains(|letter: char| "rwxXstugo01234567".contains(letter))
    };
    let is_said = match command.name.as_str() {
        "chmod" => words.iter().any(is_mode),
        "chown" | "chgrp" => false,
        _ => true,
    };
    !is_said && !words.iter().any(|word| word.starts_with("--ref"))
}

/// What `word` is called from where `command` runs.
fn path_at(word: &str, command: &ShellCommand) -> String {
    let word = path_meant(word);
    let is_whole = command.cwd.is_empty() || word.starts_with(['/', '~']);
    if is_whole { word.into_owned() } else { format!("{}/{word}", command.cwd) }
}

fn of_settings(path: &str) -> String {
    format!("`{path}` is a folder with settings of agents, and what would lie there afterwards cannot be known")
}
