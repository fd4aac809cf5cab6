//! What somebody accepted of a skill that merely lay in a folder: each of its files by content.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use sha2::{Digest as _, Sha256};

use crate::json::{Object, Value};

/// The files of a skill as they were accepted. Nothing else of its folder is ever read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillSeal(BTreeMap<String, String>);

impl SkillSeal {
    /// Adds the file at `path`, relative to the folder of the skill, with what it holds.
    pub fn add(&mut self, path: &Path, content: &[u8]) {
        self.0.insert(plain(path), digest(content));
    }

    /// Whether `content` is what was accepted of the file at `path`.
    pub fn covers(&self, path: &Path, content: &[u8]) -> bool {
        self.0.get(&plain(path)).is_some_and(|accepted| *accepted == digest(content))
    }

    /// Whether there was a file at `path`.
    pub fn names(&self, path: &Path) -> bool {
        self.0.contains_key(&plain(path))
    }

    /// The files with the SHA-256 of what each holds, in hexadecimal.
    pub fn to_json(&self) -> Value {
        let files = self.0.iter().map(|(path, digest)| (path.clone(), Value::from(digest.as_str())));
        Value::Object(files.collect::<Object>())
    }
}

fn digest(content: &[u8]) -> String {
    format!("{:x}", Sha256::digest(content))
}

/// `path` without steps that go nowhere. One that goes up stays as it is, and no file is called so.
fn plain(path: &Path) -> String {
    let steps = path.components().filter(|step| *step != Component::CurDir);
    steps.map(|step| step.as_os_str().to_string_lossy().into_owned()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_accepted_is_covered() {
        let mut seal = SkillSeal::default();
        seal.add(Path::new("hooks/a.md"), b"text");
        let check = |path: &str, content: &str| seal.covers(Path::new(path), content.as_bytes());
        assert!(check("hooks/a.md", "text") && check("./hooks/./a.md", "text") && check("hooks//a.md", "text"));
        assert!(!check("hooks/a.md", "text "), "another content");
        assert!(!check("hooks/b.md", "text"), "another file");
        assert!(!check("x/../hooks/a.md", "text"), "a way around");
        assert!(!SkillSeal::default().covers(Path::new("hooks/a.md"), b"text"));
    }
}
