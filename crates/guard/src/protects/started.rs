//! Files that a shell or a service manager reads as it begins: no agent puts into one what takes the guard away later.

use domain::json::Object;

use super::Look;
use crate::own_commands;
use crate::path_pattern::is_meant;
use crate::tools::all_strings;

/// Such files, as patterns of paths.
const START_FILES: [&str; 25] = [
    "~/.bash_aliases",
    "~/.bash_login",
    "~/.bash_profile",
    "~/.bashrc",
    "~/.config/autostart/**",
    "~/.config/environment.d/**",
    "~/.config/fish/**",
    "~/.config/systemd/**",
    "~/.cshrc",
    "~/.envrc",
    "~/.kshrc",
    "~/.local/share/systemd/**",
    "~/.pam_environment",
    "~/.profile",
    "~/.tcshrc",
    "~/.xprofile",
    "~/.zlogin",
    "~/.zprofile",
    "~/.zshenv",
    "~/.zshrc",
    "/etc/bash.bashrc",
    "/etc/environment",
    "/etc/profile",
    "/etc/profile.d/**",
    "/etc/systemd/**",
];

impl Look<'_> {
    /// Why a tool must not write `arguments` into one of `paths`.
    pub(super) fn kept_for_later<P: AsRef<str>>(&self, paths: &[P], arguments: &Object) -> Option<String> {
        let path: &str = self.start_file(paths)?.as_ref();
        let why = arguments.iter().flat_map(|(_, member)| all_strings(member)).find_map(own_commands::said_in)?;
        Some(read_at_start(path, &why))
    }

    /// Why `text` must not run, which writes `paths`.
    pub(super) fn written_for_later(&self, paths: &[String], text: &str) -> Option<String> {
        let path = self.start_file(paths)?;
        Some(read_at_start(path, &own_commands::said_in(text)?))
    }

    /// The first of `paths` that is such a file.
    fn start_file<'p, P: AsRef<str>>(&self, paths: &'p [P]) -> Option<&'p P> {
        paths.iter().find(|path| {
            let names = self.names(path.as_ref());
            START_FILES.iter().any(|pattern| is_meant(pattern, self.files.home, &names))
        })
    }
}

/// What is said of a text that is refused because of `why`, for the file `path`.
fn read_at_start(path: &str, why: &str) -> String {
    format!("`{path}` is read whenever a shell, a session or a service begins: {why}")
}
