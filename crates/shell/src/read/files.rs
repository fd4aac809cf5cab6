//! Files as far as the text itself tells of them.

use crate::bounds;
use crate::paths;
use crate::read::{List, Reading};
use crate::state::{Field, Output, State};

/// What a file that the text makes holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// One of these texts, by which branch was taken.
    OneOf(Vec<String>),
    Unknown,
}

impl Reading<'_> {
    /// Notes that `field` is read. What is not known may be read: reading harms nothing that could be named.
    pub(crate) fn reads(&mut self, field: &Field, state: &State) {
        if !field.is_known() && field.text.contains(['$', '`', '…']) {
            return;
        }
        if let Some(path) = paths::resolve(&field.text, state.cwd.as_deref())
            && !paths::is_harmless_device(&path, false)
        {
            self.note(List::Reads, &path);
        }
    }

    /// Notes that `field` is written by `who`; an unknown target is unknown.
    pub(crate) fn writes(&mut self, field: &Field, who: &str, state: &State) -> Option<String> {
        let path = self.target(field, who, state)?;
        self.note(List::Writes, &path);
        self.made(&path, Content::Unknown);
        Some(path)
    }

    /// Notes that `field` is deleted by `who`; an unknown target is unknown.
    pub(crate) fn deletes(&mut self, field: &Field, who: &str, state: &State) {
        if let Some(path) = self.target(field, who, state) {
            self.note(List::Deletes, &path);
        }
    }

    /// The path that `who` changes, if it is one that matters.
    pub(crate) fn target(&mut self, field: &Field, who: &str, state: &State) -> Option<String> {
        if !field.is_known() {
            self.unknown(format!("`{}`, which `{who}` would change, cannot be known", field.text));
            return None;
        }
        if field.text.is_empty() {
            return None;
        }
        let Some(path) = paths::resolve(&field.text, state.cwd.as_deref()) else {
            self.unknown(format!("where `{}` lies, which `{who}` would change, cannot be known", field.text));
            return None;
        };
        (!paths::is_harmless_device(&path, true)).then_some(path)
    }

    /// Remembers what the text put into `path`.
    pub(crate) fn made(&mut self, path: &str, content: Content) {
        let joined = match (self.made.remove(path), content) {
            (None, content) => content,
            (Some(Content::OneOf(mut texts)), Content::OneOf(more)) => {
                texts.extend(more);
                texts.dedup();
                if texts.len() > bounds::FILE_TEXTS { Content::Unknown } else { Content::OneOf(texts) }
            }
            (Some(_), _) => Content::Unknown,
        };
        self.made.insert(path.to_owned(), joined);
    }

    /// Remembers an output that goes to `path`.
    pub(crate) fn made_by(&mut self, path: &str, output: &Output, append: bool) {
        let content = match (output, append, self.made.get(path)) {
            (Output::Known(text), false, _) => Content::OneOf(vec![text.clone()]),
            (Output::Known(more), true, Some(Content::OneOf(texts))) => {
                let longer = texts.iter().map(|text| format!("{text}{more}")).collect::<Vec<_>>();
                if longer.iter().any(|text| text.len() > bounds::VALUE_BYTES) {
                    Content::Unknown
                } else {
                    Content::OneOf(longer)
                }
            }
            (Output::Known(_), true, _) | (Output::Files(_) | Output::Unknown, _, _) => Content::Unknown,
        };
        self.spend(path.len() / 64 + 1);
        self.made(path, content);
    }

    /// What the text put into `field`, if it made that file.
    pub(crate) fn content(&self, field: &Field, state: &State) -> Option<Content> {
        let path = paths::resolve(&field.text, state.cwd.as_deref())?;
        let fetched = || self.unpacked.iter().any(|folder| paths::is_inside(&path, folder)).then_some(Content::Unknown);
        self.made.get(&path).cloned().or_else(fetched)
    }

    /// Whether the text made a file of the name `base`.
    pub(crate) fn has_made(&self, base: &str) -> bool {
        self.made.keys().any(|path| paths::base_name(path) == base)
    }

    /// Remembers that the link `path` leads to `target`.
    pub(crate) fn linked(&mut self, path: String, target: String) {
        if path != target && self.links.len() < bounds::FILE_TEXTS * 8 {
            self.links.insert(path, target);
        }
    }

    /// Where `path` really lies, if a link that the text made leads there.
    pub(crate) fn behind_link(&self, path: &str) -> Option<String> {
        let under = |link: &str| path.strip_prefix(link).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let (rest, target) = self.links.iter().find_map(|(link, target)| Some((under(link)?, target)))?;
        // A link into itself has no end.
        if target.len() + rest.len() > path.len() + bounds::LINK_GROWTH {
            return None;
        }
        paths::resolve(&format!("{target}{rest}"), None)
    }

    /// Remembers that `folder` holds what was fetched.
    pub(crate) fn unpacked_into(&mut self, folder: &Field, state: &State) {
        if let Some(path) = paths::resolve(&folder.text, state.cwd.as_deref()) {
            self.unpacked.insert(path);
        }
    }

    /// Whether the text wrote what git runs by itself.
    pub(crate) fn has_made_hook(&self) -> bool {
        let runs = |path: &String| {
            path.contains("/.git/hooks/")
                || path.ends_with("/.git/config")
                || path.ends_with("/.gitconfig")
                || path.ends_with("/.gitattributes")
        };
        self.made.keys().any(runs)
    }

    /// A name for what a `<(…)` gives.
    pub(crate) fn process_file(&mut self, output: Output) -> String {
        self.processes += 1;
        let path = format!("/dev/fd/{}", 63 + self.processes);
        self.made_by(&path, &output, false);
        path
    }
}
