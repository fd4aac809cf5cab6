//! Files as far as the text itself tells of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::bounds;
use crate::paths;
use crate::read::{List, Reading};
use crate::state::{Field, Output, State};

/// What a file that the text makes holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// One of these texts, by which branch was taken.
    OneOf(Vec<String>),
    /// Names of files, one a line, that these patterns stand for.
    Names(Vec<Field>),
    Unknown,
}

/// What is known of files because the text itself makes them.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    /// Those that it writes, and what they hold.
    made: BTreeMap<String, Content>,
    /// Links, and where they lead.
    links: BTreeMap<String, String>,
    /// Folders into which it unpacks what it fetched.
    unpacked: BTreeSet<String>,
    /// Archives of all that a folder holds, and that folder.
    packed: BTreeMap<String, String>,
}

impl Files {
    /// Adds what another reading of the same text made.
    pub(super) fn add(&mut self, other: Files) {
        for (path, content) in other.made {
            match self.made.get(&path) {
                Some(same) if *same == content => {}
                before => {
                    let joined = before.cloned().map_or(content.clone(), |before| before.or(content));
                    self.made.insert(path, joined);
                }
            }
        }
        self.links.extend(other.links);
        self.unpacked.extend(other.unpacked);
        self.packed.extend(other.packed);
    }
}

impl Files {
    /// What `path` may hold, if the text made it.
    fn held(&self, path: &str) -> Vec<Content> {
        if crate::number::is_hidden(path) && !self.made.is_empty() {
            return vec![Content::Unknown];
        }
        let pattern = paths::is_pattern(path);
        let fits =
            |made: &str| (pattern && paths::fits(path, made)) || (paths::is_pattern(made) && paths::fits(made, path));
        let exact = self.made.get(path).cloned();
        let alike = self.made.iter().filter(|(made, _)| fits(made)).map(|(_, content)| content.clone());
        let held: Vec<Content> = exact.into_iter().chain(alike).collect();
        let fetched = held.is_empty() && self.unpacked.iter().any(|folder| paths::is_inside(path, folder));
        if fetched { vec![Content::Unknown] } else { held }
    }
}

impl Content {
    /// This or `other`, by which branch was taken.
    fn or(self, other: Content) -> Content {
        match (self, other) {
            (Content::OneOf(mut texts), Content::OneOf(more)) => {
                texts.extend(more);
                texts.dedup();
                if texts.len() > bounds::FILE_TEXTS { Content::Unknown } else { Content::OneOf(texts) }
            }
            (Content::Names(mut files), Content::Names(more)) => {
                files.extend(more.into_iter().filter(|file| !files.contains(file)).collect::<Vec<_>>());
                if files.len() > bounds::WORDS { Content::Unknown } else { Content::Names(files) }
            }
            (Content::OneOf(_) | Content::Names(_) | Content::Unknown, _) => Content::Unknown,
        }
    }
}

impl Reading<'_> {
    /// Notes that `field` is read. What is not known may be read: reading harms nothing that could be named.
    pub(crate) fn reads(&mut self, field: &Field, state: &State) {
        let guessed = super::shown::guessed(field);
        // Of a name that the text computes, what it says is told.
        let Some(text) = guessed.as_deref() else { return };
        for path in state.place.cwd.resolve(text) {
            if !paths::is_harmless_device(&path, false) {
                self.note(List::Reads, &path);
            }
        }
    }

    /// Notes that `field` is written by `who`; an unknown target is unknown.
    pub(crate) fn writes(&mut self, field: &Field, who: &str, state: &State) {
        for path in self.target(field, who, state) {
            self.note(List::Writes, &path);
            self.made(&path, Content::Unknown);
        }
    }

    /// Notes that `field` is deleted by `who`; an unknown target is unknown.
    pub(crate) fn deletes(&mut self, field: &Field, who: &str, state: &State) {
        for path in self.target(field, who, state) {
            self.note(List::Deletes, &path);
        }
    }

    /// The paths that `who` may change, one for each folder it may stand in, as far as they matter.
    pub(crate) fn target(&mut self, field: &Field, who: &str, state: &State) -> Vec<String> {
        if !field.is_known() {
            self.unknown(format!("`{}`, which `{who}` would change, cannot be known", field.text));
            return Vec::new();
        }
        if field.text.is_empty() {
            return Vec::new();
        }
        let mut paths = state.place.cwd.resolve(&field.text);
        if paths.is_empty() {
            self.unknown(format!("where `{}` lies, which `{who}` would change, cannot be known", field.text));
        }
        paths.retain(|path| !paths::is_harmless_device(path, true));
        paths
    }

    /// Whether `field` names something in the workspace, wherever the command stands.
    pub(crate) fn is_surely_inside(&self, field: &Field, state: &State) -> bool {
        let paths = state.place.cwd.resolve(&field.text);
        !paths.is_empty() && paths.iter().all(|path| self.is_inside(path))
    }

    /// Remembers what the text put into `path`.
    pub(crate) fn made(&mut self, path: &str, content: Content) {
        let joined = match self.files.made.remove(path) {
            None => content,
            Some(before) => before.or(content),
        };
        self.files.made.insert(path.to_owned(), joined);
    }

    /// Remembers an output that goes to `path`.
    pub(crate) fn made_by(&mut self, path: &str, output: &Output, append: bool) {
        let content = match (output, append, self.files.made.get(path)) {
            (Output::Known(text), false, _) => Content::OneOf(vec![text.clone()]),
            (Output::Known(more), true, Some(Content::OneOf(texts))) => {
                let longer = texts.iter().map(|text| format!("{text}{more}")).collect::<Vec<_>>();
                if longer.iter().any(|text| text.len() > bounds::VALUE_BYTES) {
                    Content::Unknown
                } else {
                    Content::OneOf(longer)
                }
            }
            (Output::Files(files), false, _) | (Output::Files(files), true, None) => Content::Names(files.clone()),
            (Output::Known(_) | Output::Files(_), true, _) | (Output::Unknown, _, _) => Content::Unknown,
        };
        self.spend(path.len() / 64 + 1);
        self.made(path, content);
    }

    /// What the text put into `field`, if it made that file; all that a pattern may stand for.
    pub(crate) fn content(&self, field: &Field, state: &State) -> Option<Content> {
        let mut found: Option<Content> = None;
        for path in state.place.cwd.resolve(&field.text) {
            let mut path = Some(path);
            // A link may lead to a link.
            for _ in 0..bounds::FILE_TEXTS {
                let Some(real) = path else { break };
                for content in self.files.held(&real) {
                    found = Some(found.map_or(content.clone(), |before| before.or(content)));
                }
                path = self.behind_link(&real).filter(|next| *next != real);
            }
        }
        found
    }

    /// What the text put into files below `folder`.
    pub(crate) fn made_below(&self, folder: &str) -> Vec<(String, Content)> {
        let below = self
            .files
            .made
            .iter()
            .filter(|(path, _)| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')));
        below.take(bounds::FILE_TEXTS * 8).map(|(path, held)| (path.clone(), held.clone())).collect()
    }

    /// What the text put into files whose names end with one of `endings`.
    pub(crate) fn made_with(&self, endings: &str) -> Vec<(String, Content)> {
        let ends = |path: &str| {
            let ending = paths::base_name(path).rsplit_once('.').map(|(_, ending)| ending);
            ending.is_some_and(|ending| endings.split(' ').any(|own| own == ending))
        };
        self.files.made.iter().filter(|(path, _)| ends(path)).map(|(path, held)| (path.clone(), held.clone())).collect()
    }

    /// Whether the text made a file of the name `base`.
    pub(crate) fn has_made(&self, base: &str) -> bool {
        self.files.made.keys().any(|path| paths::base_name(path) == base)
    }

    /// Remembers that the link `path` leads to `target`.
    pub(crate) fn linked(&mut self, path: String, target: String) {
        if path != target && self.files.links.len() < bounds::FILE_TEXTS * 8 {
            self.files.links.insert(path, target);
        }
    }

    /// Where `path` really lies, if a link that the text made leads there.
    pub(crate) fn behind_link(&self, path: &str) -> Option<String> {
        let under = |link: &str| path.strip_prefix(link).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let (rest, target) = self.files.links.iter().find_map(|(link, target)| Some((under(link)?, target)))?;
        // A link into itself has no end.
        if target.len() + rest.len() > path.len() + bounds::LINK_GROWTH {
            return None;
        }
        paths::resolve(&format!("{target}{rest}"), None)
    }

    /// Remembers that `folder` holds what was fetched.
    pub(crate) fn unpacked_into(&mut self, folder: &Field, state: &State) {
        self.files.unpacked.extend(state.place.cwd.resolve(&folder.text));
    }

    /// Remembers that `archive` holds all that is in `folder`.
    pub(super) fn archived(&mut self, archive: String, folder: String) {
        if self.files.packed.len() < bounds::FILE_TEXTS * 8 {
            self.files.packed.insert(archive, folder);
        }
    }

    /// The folder of which `archive` holds everything.
    pub(super) fn archived_in(&self, archive: &str) -> Option<String> {
        self.files.packed.get(archive).cloned()
    }

    /// Whether the text wrote what git runs by itself.
    pub(crate) fn has_made_hook(&self) -> bool {
        let runs = |path: &String| {
            path.contains("/.git/hooks/")
                || path.contains("/.husky/")
                || path.ends_with("/.git/config")
                || path.ends_with("/.gitconfig")
                || path.ends_with("/.gitattributes")
        };
        self.files.made.keys().any(runs)
    }

    /// A name for what a `<(…)` gives.
    pub(crate) fn process_file(&mut self, output: Output) -> String {
        self.processes += 1;
        let path = format!("/dev/fd/{}", 63 + self.processes);
        self.made_by(&path, &output, false);
        path
    }
}
