//! Tools that nobody knows: any of their texts may be a path that they write, take away or read.

use pintle_domain::json::Object;
use pintle_domain::shell::ShellCommand;

use super::{Look, MAX_PATH_BYTES};
use crate::braces;
use crate::filled::patched_by;
use crate::foreign_arguments;
use crate::foreign_texts;
use crate::hosts::HOSTS;
use crate::no_paths;
use crate::path_pattern::{holds, is_loose, literal, mark};
use crate::program_name::pieces;

/// How many paths are put together of folders with settings and names that may be in them; a call with more is refused.
const MAX_PARTS: usize = 4096;

/// How many names of one path are looked at that may be any; where there are more, each of them counts.
const MAX_LOOSE: usize = 32;

impl Look<'_> {
    /// A tool that nobody knows may do anything with any of its texts: write a file of that name, look for a name in a
    /// folder, or run it.
    pub(super) fn unknown_tool(&self, native: &str, arguments: &Object) -> Option<String> {
        if no_paths::is_of_graph(native) {
            return foreign_arguments::run(arguments).iter().find_map(|text| self.shell("", text));
        }
        let switches = HOSTS.iter().flat_map(|host| host.config.switches.all).map(|switch| switch.names);
        let switches: Vec<&str> =
            switches.filter_map(|names| if let [name] = names { Some(*name) } else { None }).collect();
        if !self.files.lifted
            && let Some(name) = foreign_texts::set_in(arguments, &switches)
        {
            return Some(format!("`{name}` decides over the hooks of agents: only a person may set it"));
        }
        let typed = foreign_texts::typed(native, arguments);
        if let Some(reason) = typed.into_iter().find_map(|text| self.shell("", text)) {
            return Some(reason);
        }
        let paths = foreign_arguments::paths(arguments, MAX_PATH_BYTES);
        if let Some(reason) = self.told_in_texts(native, arguments).or_else(|| self.sought(native, &paths, arguments)) {
            return Some(reason);
        }
        if foreign_arguments::reads_only(native, arguments) {
            return self.read_by_unknown(&paths);
        }
        let folders: Vec<&String> = paths.iter().filter(|path| self.is_folder_of_settings(&self.meant(path))).collect();
        // What is settings in the home folder alone may be told as a name below it.
        let home = self.names("~");
        let homes: Vec<&String> = paths.iter().filter(|path| self.names(path) == home).collect();
        let hidden: Vec<&String> = paths.iter().filter(|path| path.starts_with('.')).collect();
        if folders.len() * paths.len() + homes.len() * hidden.len() > MAX_PARTS {
            return Some(many_parts(folders.first().or(homes.first()).map_or(native, |folder| folder.as_str())));
        }
        let parts = folders.iter().flat_map(|folder| paths.iter().map(move |name| format!("{folder}/{name}")));
        let of_home = homes.iter().flat_map(|folder| hidden.iter().map(move |name| format!("{folder}/{name}")));
        let mut parts = parts.chain(of_home);
        let takes = foreign_arguments::takes_folders(native, arguments);
        let taken = paths.iter().filter(|path| takes && foreign_arguments::is_written_as_path(path));
        let taken = taken.filter(|path| !self.is_no_place(path, native, arguments));
        paths
            .iter()
            .find_map(|path| self.written(&self.meant(path)))
            .or_else(|| parts.find_map(|path| self.written(&self.meant(&path))))
            .or_else(|| taken.into_iter().find_map(|path| self.deleted(&self.meant(path))))
            .or_else(|| paths.iter().filter(|path| braces::has_list(path)).find_map(|path| self.kept(path)))
            .or_else(|| foreign_arguments::run(arguments).iter().find_map(|text| self.shell("", text)))
    }

    /// Why a tool must not take a patch among `arguments`, or a text for a database.
    fn told_in_texts(&self, native: &str, arguments: &Object) -> Option<String> {
        let patch = ShellCommand { name: "patch".to_owned(), ..ShellCommand::default() };
        let patches = foreign_texts::patches(native, arguments);
        let mut patched = patches.iter().flat_map(|text| patched_by(text, &patch));
        let statements = foreign_texts::statements(arguments);
        let said = statements.iter().flat_map(|text| pieces(text)).filter_map(|piece| piece.split('?').next());
        let mut said = said.filter(|piece| piece.contains('/') && piece.len() <= MAX_PATH_BYTES).take(MAX_PARTS);
        patched.find_map(|path| self.written(&path)).or_else(|| said.find_map(|path| self.read(path)))
    }

    /// Why a tool that looks for texts must not look below one of `paths`.
    fn sought(&self, native: &str, paths: &[String], arguments: &Object) -> Option<String> {
        let is_place = |path: &&String| foreign_arguments::is_written_as_path(path);
        let mut places = paths.iter().filter(|_| foreign_texts::searches(native)).filter(is_place);
        places.find_map(|path| self.searched_for(path, arguments))
    }

    /// Why a tool must not read one of `paths`, or a name among them in a folder among them.
    fn read_by_unknown(&self, paths: &[String]) -> Option<String> {
        let folders: Vec<&String> = paths.iter().filter(|path| self.leads_to_secrets(path)).collect();
        if let Some(folder) = folders.first().filter(|_| folders.len() * paths.len() > MAX_PARTS) {
            return Some(many_parts(folder));
        }
        let parts = folders.iter().flat_map(|folder| paths.iter().map(move |name| format!("{folder}/{name}")));
        let mut all = paths.iter().cloned().chain(parts);
        all.find_map(|path| self.read(&path).or_else(|| self.searched(&path)).or_else(|| self.names_process(&path)))
    }

    /// Whether `path`, which a tool is given that nobody knows, is no place: a word such as `/`, `~` or `.` where something
    /// is said, or `/` for a tool that takes nothing away.
    fn is_no_place(&self, path: &str, native: &str, arguments: &Object) -> bool {
        let names = self.names(&self.meant(path));
        let is_written = || {
            let is_moved = foreign_arguments::takes_away(native, arguments);
            names.is_empty() && !is_moved && !foreign_arguments::has_files_as_members(arguments)
        };
        let is_placed = || foreign_arguments::placed(arguments, MAX_PATH_BYTES).iter().any(|placed| placed == path);
        self.is_above(&names) && (is_written() || !is_placed())
    }

    /// Why `path` is refused, whose braces stand for more paths than are looked at.
    fn kept(&self, path: &str) -> Option<String> {
        let first = |pattern: &'static str| {
            let mark = mark(pattern);
            if mark.starts_with('/') { mark } else { mark.split('/').next().unwrap_or(mark) }
        };
        let path = path.to_lowercase();
        let named = self.patterns().map(first).find(|name| path.contains(*name))?;
        Some(format!("it names `{named}` among more paths than are looked at"))
    }

    /// `path` as a tool takes it that nobody knows: a name that may be any counts only in a folder which leads to something
    /// that is guarded.
    fn meant(&self, path: &str) -> String {
        let (mut meant, mut seen) = (String::new(), 0);
        for (at, name) in path.split('/').enumerate() {
            if at > 0 {
                meant.push('/');
            }
            let is_any = seen < MAX_LOOSE && is_loose(name);
            seen += usize::from(is_any);
            if is_any && !self.leads_on(&meant) {
                meant.push_str(&literal(name));
            } else {
                meant.push_str(name);
            }
        }
        meant
    }

    /// Whether something that is guarded lies below `folder`, and `folder` below what every path leads through.
    fn leads_on(&self, folder: &str) -> bool {
        let names = self.names(folder);
        !self.is_above(&names) && self.is_guarded(&names, holds)
    }
}

/// Why a call is refused that names `folder` and so many names that not all of them are looked for in it.
fn many_parts(folder: &str) -> String {
    format!(
        "it names `{folder}`, a folder in which settings of agents or the guard's own files may lie, and with it more than \
         the {MAX_PARTS} paths that are looked at"
    )
}
