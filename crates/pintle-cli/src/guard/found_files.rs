//! What a path with signs of a shell stands for on this machine.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::FileType;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use pintle_guard::pattern_means;

/// How many entries of folders are looked at for the patterns of one call. The folders of a large project have as many, and it
/// takes about a second.
pub(super) const MAX_LOOKED: usize = 400_000;

/// How many of them are asked about: each is followed to where it leads, which takes some microseconds.
const MAX_ASKED: usize = 20_000;

/// How deep folders lie in each other at most; people's do not, and the stack holds as many.
const MAX_DEEP: usize = 200;

/// Folders that a search passes by: what is in them decides over no agent, and they hold more than all others.
const PASSED_BY: [&str; 2] = [".git", "node_modules"];

/// What is asked about what is found: whether a path may matter, by itself or because it leads through a link; and whether it
/// does. And how many entries may still be looked at.
pub(super) struct FileQuestion<'a> {
    pub(super) may_matter: &'a dyn Fn(&Path) -> bool,
    pub(super) matters: &'a dyn Fn(&str) -> bool,
    pub(super) left: &'a Cell<usize>,
}

/// Whether something that the whole path `pattern` stands for matters; none where there is more than is looked at, or what
/// cannot be looked at.
pub(super) fn any_found(pattern: &Path, asked: &FileQuestion<'_>) -> Option<bool> {
    let names: Vec<&str> = pattern.to_str()?.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    let first = names.iter().position(|name| is_pattern(name))?;
    let (above, below) = names.split_at(first);
    // A way up leads elsewhere, and some shells take `.*` for one.
    if below.iter().any(|name| *name == ".." || (name.starts_with('.') && pattern_means(name, ".."))) {
        return None;
    }
    let begin = Path::new("/").join(above.join("/"));
    let is_linked = match begin.canonicalize() {
        Ok(real) => real != begin,
        Err(error) => return is_nothing(&error).then_some(false),
    };
    let all = (below[0].len() > 1 && is_all(below[0])).then_some((begin.as_path(), below.len()));
    let mut search = FileSearch { asked, all, told: 0, deep: 0, followed: BTreeSet::new() };
    search.below(&begin, below, is_linked)
}

/// Whether `error` says that nothing is there.
pub(super) fn is_nothing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Whether `name` stands for others.
fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// Whether `name` has no letter but stars: more than one stand for any folders.
fn is_all(name: &str) -> bool {
    name.bytes().all(|letter| letter == b'*')
}

/// A search while it goes on.
struct FileSearch<'a> {
    asked: &'a FileQuestion<'a>,
    /// The folder of which all is looked at, with how many names of the pattern are left there.
    all: Option<(&'a Path, usize)>,
    told: usize,
    deep: usize,
    /// The folders that links led to, each with how many names of the pattern were left.
    followed: BTreeSet<(PathBuf, usize)>,
}

impl FileSearch<'_> {
    /// Whether something in `folder` matters that `names` stand for.
    fn below(&mut self, folder: &Path, names: &[&str], is_linked: bool) -> Option<bool> {
        if self.deep >= MAX_DEEP {
            return None;
        }
        self.deep += 1;
        let found = match names.split_first() {
            None => self.matters(folder, is_linked),
            Some((name, rest)) if name.len() > 1 && is_all(name) => self.anywhere(folder, (names, rest), is_linked),
            Some((name, rest)) if is_pattern(name) => self.here(folder, (*name, rest), is_linked),
            Some((name, rest)) => {
                let path = folder.join(name);
                match path.symlink_metadata() {
                    Ok(found) => self.below(&path, rest, is_linked || found.is_symlink()),
                    Err(error) => is_nothing(&error).then_some(false),
                }
            }
        };
        self.deep -= 1;
        found
    }

    /// The same, where the first of `names` stands for any folders and `rest` follows.
    fn anywhere(&mut self, folder: &Path, (names, rest): (&[&str], &[&str]), is_linked: bool) -> Option<bool> {
        if self.below(folder, rest, is_linked)? {
            return Some(true);
        }
        // A search finds the folder in which it begins, too.
        if let Some((name, behind)) = rest.split_first()
            && folder.file_name().is_some_and(|own| pattern_means(name, &own.to_string_lossy()))
            && self.below(folder, behind, is_linked)?
        {
            return Some(true);
        }
        for (path, kind) in self.entries(folder)? {
            let is_passed = PASSED_BY.iter().any(|name| path.ends_with(name));
            let found = if kind.is_symlink() {
                (rest.is_empty() && self.matters(&path, true)?) || self.behind(&path, names)?
            } else if kind.is_dir() && !is_passed {
                self.below(&path, names, is_linked)?
            } else {
                rest.is_empty() && self.matters(&path, is_linked)?
            };
            if found {
                return Some(true);
            }
        }
        Some(false)
    }

    /// The same of what `link` leads to, where that is a folder that is not looked at by itself.
    fn behind(&mut self, link: &Path, names: &[&str]) -> Option<bool> {
        let real = match link.canonicalize() {
            Ok(real) => real,
            Err(error) => return is_nothing(&error).then_some(false),
        };
        let is_within = self.all.is_some_and(|(folder, left)| left == names.len() && real.starts_with(folder));
        // What is passed by within it is looked at only here.
        let is_passed = real.components().any(|part| PASSED_BY.iter().any(|name| part.as_os_str() == *name));
        if (is_within && !is_passed) || !real.is_dir() || !self.followed.insert((real, names.len())) {
            return Some(false);
        }
        self.below(link, names, true)
    }

    /// The same, where `name` stands for entries of the folder and `rest` follows.
    fn here(&mut self, folder: &Path, (name, rest): (&str, &[&str]), is_linked: bool) -> Option<bool> {
        for (path, kind) in self.entries(folder)? {
            let is_meant = path.file_name().is_some_and(|own| pattern_means(name, &own.to_string_lossy()));
            // Nothing lies in a file.
            let leads_on = rest.is_empty() || kind.is_dir() || kind.is_symlink();
            if is_meant && leads_on && self.below(&path, rest, is_linked || kind.is_symlink())? {
                return Some(true);
            }
        }
        Some(false)
    }

    /// What lies in `folder`, with its kind; none where that cannot be said, or is more than is looked at.
    fn entries(&mut self, folder: &Path) -> Option<Vec<(PathBuf, FileType)>> {
        let entries = match folder.read_dir() {
            Ok(entries) => entries,
            Err(error) => return is_nothing(&error).then(Vec::new),
        };
        let left = self.asked.left.get();
        let mut found = Vec::new();
        for entry in entries.take(left + 1) {
            let entry = entry.ok()?;
            found.push((entry.path(), entry.file_type().ok()?));
        }
        self.asked.left.set(left.saturating_sub(found.len()));
        (found.len() <= left).then_some(found)
    }

    /// Whether `path` matters, which may lead through a link.
    fn matters(&mut self, path: &Path, is_linked: bool) -> Option<bool> {
        if !is_linked && !(self.asked.may_matter)(path) {
            return Some(false);
        }
        self.told += 1;
        (self.told <= MAX_ASKED).then(|| (self.asked.matters)(&path.to_string_lossy()))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with some files and links in it.
    fn project() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for file in [
            "w/.x/s.json",
            "w/.x/s.md",
            "w/a/b/c.rs",
            "w/a/b/.y/s.json",
            "w/a.rs",
            "w/node_modules/p/s.json",
            "other/s.json",
        ] {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        symlink("../other", root.join("w/lnk")).unwrap();
        symlink("a", root.join("w/own")).unwrap();
        symlink("gone", root.join("w/broken")).unwrap();
        (dir, root)
    }

    #[test]
    fn what_a_pattern_stands_for_is_looked_up() {
        let (_dir, root) = project();
        for (pattern, expected) in [
            ("w/*.rs", Some("w/a.rs")),
            ("w/**/*.rs", Some("w/a.rs w/a/b/c.rs")),
            ("w/**/s.json", Some("w/.x/s.json w/a/b/.y/s.json w/lnk/s.json")),
            ("w/**/s*.json", Some("w/.x/s.json w/a/b/.y/s.json w/lnk/s.json")),
            ("w/*/*.json", Some("w/.x/s.json w/lnk/s.json")),
            ("w/[^.]*/*.json", Some("w/lnk/s.json")),
            ("w/.x/*", Some("w/.x/s.json w/.x/s.md")),
            ("w/.x/**/.x", Some("w/.x")),
            ("w/.x*/s.json", Some("w/.x/s.json")),
            ("w/.x*/new.json", Some("")),
            ("w/a/**", Some("w/a w/a/b w/a/b/.y w/a/b/.y/s.json w/a/b/c.rs")),
            ("w/none/**/*.rs", Some("")),
            ("w/*/none*/x", Some("")),
            ("w/.*", None),
            ("w/.?/s.json", None),
            ("w/*/../x", None),
        ] {
            let seen = RefCell::new(BTreeSet::new());
            let matters = |path: &str| {
                let path = Path::new(path).strip_prefix(&root).unwrap();
                seen.borrow_mut().insert(path.to_str().unwrap().to_owned());
                false
            };
            let left = Cell::new(MAX_LOOKED);
            let asked = FileQuestion { may_matter: &|_| true, matters: &matters, left: &left };
            let found = any_found(&root.join(pattern), &asked);
            let seen: Vec<String> = seen.into_inner().into_iter().collect();
            assert_eq!(found.map(|_| seen.join(" ")).as_deref(), expected, "{pattern}");
        }
    }

    #[test]
    fn only_what_may_matter_is_asked_about_and_whatever_leads_through_a_link() {
        let (_dir, root) = project();
        let check = |pattern: &str, expected: bool| {
            let left = Cell::new(MAX_LOOKED);
            let asked =
                FileQuestion { may_matter: &|path| path.ends_with(".x/s.json"), matters: &|_| true, left: &left };
            assert_eq!(any_found(&root.join(pattern), &asked), Some(expected), "{pattern}");
        };
        check("w/**/*.rs", false);
        check("w/**/*.json", true);
        check("w/.x/*.md", false);
        check("w/l*/s.json", true);
        check("w/*n/b/c.rs", true);
    }

    #[test]
    fn more_than_can_be_looked_at_is_not_settled() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let deep = root.join("a/".repeat(MAX_DEEP));
        fs::create_dir_all(deep).unwrap();
        let left = Cell::new(MAX_LOOKED);
        let asked = FileQuestion { may_matter: &|_| true, matters: &|_| false, left: &left };
        assert_eq!(any_found(&root.join("**/*.rs"), &asked), None);
        assert_eq!(any_found(&root.join("*/*.rs"), &asked), Some(false));
        symlink("loop", root.join("loop")).unwrap();
        assert_eq!(any_found(&root.join("l*/*.rs"), &asked), None);
        // All patterns of a call have one bound.
        left.set(2);
        let found = || any_found(&root.join("*.rs"), &asked);
        assert_eq!((found(), found()), (Some(false), None));
    }
}
