//! The shell that runs commands, and which one it is.

use std::path::{Path, PathBuf};

use pintle_domain::shell::ShellKind;

/// The shell that `exec` runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecShell {
    program: PathBuf,
    kind: ShellKind,
}

impl ExecShell {
    /// The shell at `program`, an absolute path. Its links are followed once, here: what they lead to says which shell
    /// it is.
    pub fn new(program: PathBuf) -> Self {
        let kind = kind(&program);
        Self { program, kind }
    }

    /// What is run.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Which shell that is.
    pub fn kind(&self) -> ShellKind {
        self.kind
    }

    /// The shell and which one it is, in words.
    pub fn told(&self) -> String {
        let program = self.program.display();
        match self.kind {
            ShellKind::Bash => format!("{program}, which is bash"),
            ShellKind::Dash => format!("{program}, which is dash"),
            ShellKind::Unknown => {
                format!("{program}; what it would do is read as bash and as dash, and the worse counts")
            }
        }
    }

    /// Its name as a model is told it.
    pub(super) fn name(&self) -> String {
        if *self == Self::default() { "sh".to_owned() } else { self.program.display().to_string() }
    }
}

impl Default for ExecShell {
    /// `/bin/sh`, whatever that is on this system.
    fn default() -> Self {
        Self::new(PathBuf::from("/bin/sh"))
    }
}

/// Which shell `program` is. A bash that is called by another name, such as `sh`, reads some texts in another way, and
/// so counts as any.
fn kind(program: &Path) -> ShellKind {
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    match program.canonicalize().ok().as_deref().and_then(name).as_deref() {
        Some("dash") => ShellKind::Dash,
        Some("bash") if name(program).as_deref() == Some("bash") => ShellKind::Bash,
        _ => ShellKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_a_link_leads_to_says_which_shell_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["dash", "bash", "busybox"] {
            fs::write(at(name), "").unwrap();
        }
        fs::create_dir(at("bin")).unwrap();
        let check = |link: &str, target: &str, expected: ShellKind| {
            let link = at("bin").join(link);
            fs::remove_file(&link).ok();
            symlink(at(target), &link).unwrap();
            let shell = ExecShell::new(link.clone());
            assert_eq!((shell.kind(), shell.program()), (expected, link.as_path()), "{target}");
        };
        check("sh", "dash", ShellKind::Dash);
        check("sh", "bash", ShellKind::Unknown);
        check("bash", "bash", ShellKind::Bash);
        check("sh", "busybox", ShellKind::Unknown);
        check("bash", "dash", ShellKind::Dash);
        check("sh", "nowhere", ShellKind::Unknown);
    }
}
