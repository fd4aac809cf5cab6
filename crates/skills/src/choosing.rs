//! Which skills are meant: where one of a name is, and what a glob stands for.

use std::path::{Path, PathBuf};

use super::SkillSelection;
use super::folder::{BODY, HOOKS, folders};

/// Where the folder of a skill is.
pub(super) struct SkillPlace {
    /// Its folder.
    pub(super) path: PathBuf,
    /// Whether it lies in the first folder, of which somebody may have accepted a part.
    pub(super) first: bool,
}

impl SkillSelection<'_> {
    /// The folders of skills, in the order in which they are looked into.
    pub(super) fn dirs(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.dir).chain(self.more.iter().map(PathBuf::as_path))
    }

    /// Where the skill called `name` is: in the first folder that has it, or where it would have to be.
    pub(super) fn place(&self, name: &str) -> SkillPlace {
        let own = self.dir.join(name);
        let further = || self.more.iter().map(|dir| dir.join(name)).find(|path| path.is_dir());
        match if own.is_dir() { None } else { further() } {
            Some(path) => SkillPlace { path, first: false },
            None => SkillPlace { path: own, first: true },
        }
    }

    /// The names that are enabled, each with whether it was written as such: a glob stands for every skill whose name it
    /// fits and that is not named before it. Of a folder of which only a part was accepted it stands for that part.
    pub(super) fn names(&self) -> Vec<(String, bool)> {
        let mut names: Vec<(String, bool)> = Vec::new();
        for written in self.enabled {
            if !is_glob(written) {
                let by_glob = names.iter().any(|(name, named)| name == written && !named);
                if !by_glob {
                    names.push((written.clone(), true));
                }
                continue;
            }
            let fitting = match self.seals {
                Some(seals) => seals.keys().filter(|name| fits(written, name)).cloned().collect(),
                None => fitting(written, self.dirs()),
            };
            if fitting.is_empty() {
                names.push((written.clone(), true));
            }
            let known: Vec<String> = names.iter().map(|(name, _)| name.clone()).collect();
            names.extend(fitting.into_iter().filter(|name| !known.contains(name)).map(|name| (name, false)));
        }
        names
    }
}

/// The names of skills in `dirs` that `glob` fits, sorted.
pub fn fitting<'a>(glob: &str, dirs: impl Iterator<Item = &'a Path>) -> Vec<String> {
    let skills = |dir: &Path| folders(dir).into_iter().filter(|name| is_skill(&dir.join(name))).collect::<Vec<_>>();
    let mut names: Vec<String> = dirs.flat_map(skills).filter(|name| fits(glob, name)).collect();
    names.sort();
    names.dedup();
    names
}

/// Whether `name` stands for several skills.
pub fn is_glob(name: &str) -> bool {
    name.contains(['*', '?'])
}

/// Whether the folder at `path` holds a skill: a `SKILL.md`, whatever the case of its letters, or what is called `hooks`.
pub fn is_skill(path: &Path) -> bool {
    let is_part = |name: &str| name.eq_ignore_ascii_case(BODY) || name == HOOKS;
    let named = |entry: std::fs::DirEntry| entry.file_name().to_str().is_some_and(is_part);
    std::fs::read_dir(path).is_ok_and(|entries| entries.flatten().any(named))
}

/// Whether `name` is as `glob` says: `*` stands for any text, `?` for one character. Hidden folders are no skills.
fn fits(glob: &str, name: &str) -> bool {
    let (glob, text): (Vec<char>, Vec<char>) = (glob.chars().collect(), name.chars().collect());
    // Where the last `*` stood, and how much it has taken so far.
    let (mut at, mut seen, mut star) = (0, 0, None);
    while seen < text.len() {
        if glob.get(at) == Some(&'*') {
            star = Some((at, seen));
            at += 1;
        } else if glob.get(at).is_some_and(|sign| *sign == '?' || *sign == text[seen]) {
            (at, seen) = (at + 1, seen + 1);
        } else if let Some((from, taken)) = star {
            star = Some((from, taken + 1));
            (at, seen) = (from + 1, taken + 1);
        } else {
            return false;
        }
    }
    glob[at..].iter().all(|sign| *sign == '*') && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_fit_names() {
        let all = ["pdf", "pdf-forms", "docx", ".git"];
        let fitting = |glob: &str| all.into_iter().filter(|name| fits(glob, name)).collect::<Vec<_>>();
        assert_eq!(fitting("*"), ["pdf", "pdf-forms", "docx"]);
        assert_eq!(fitting("pdf*"), ["pdf", "pdf-forms"]);
        assert_eq!(fitting("*-*s"), ["pdf-forms"]);
        assert_eq!(fitting("?d?"), ["pdf"]);
        assert_eq!(fitting("x*"), Vec::<&str>::new());
        assert!(is_glob("a*") && is_glob("?") && !is_glob("pdf"));
    }
}
