//! One look into the folder of one skill.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_dialects::skill::manifest::{self, MAX_MANIFEST_BYTES, Manifest, ManifestContext, ManifestEntry};
use pintle_dialects::skill::name;
use pintle_dialects::skill::text::{self, LONG_TEXT_BYTES, MAX_TEXT_BYTES};
use pintle_domain::nearest::nearest;

use crate::front;
use pintle_domain::skill::SkillHook;
use pintle_domain::skill::finding::{FileRefusal, Finding, FindingCode};
use pintle_domain::skill::scan::Skill;
use pintle_domain::skill::seal::SkillSeal;

use super::SkillSelection;
use super::choosing::{SkillPlace, is_glob, is_skill};
use super::folder::{BODY, HOOKS, ReadLimits, SkillFileError, SkillFolder, folders};

/// The manifest in the folder of hooks.
const MANIFEST: &str = "hooks.json";

/// Largest file that is read for a model, in bytes: a large part of what one can take at once.
pub const MAX_BODY_BYTES: usize = 256 << 10;

/// What one look yields.
pub(super) struct ReadSkill {
    /// The skill; none if there is none of this name.
    pub(super) skill: Option<Skill>,
    /// What is wrong.
    pub(super) findings: Vec<Finding>,
    /// Whether the manifest as a whole cannot be read.
    pub(super) broken: bool,
}

/// Looks at the skill called `name`.
pub(super) fn look(wanted: SkillSelection<'_>, name: &str) -> ReadSkill {
    let none = |found: Finding| ReadSkill { skill: None, findings: vec![found], broken: false };
    if is_glob(name) {
        let dirs: Vec<String> = wanted.dirs().map(|dir| dir.display().to_string()).collect();
        let message = format!("`{name}` fits no skill in {}", dirs.join(", "));
        return none(Finding::new(FindingCode::S2, name, message).instead("the name of a skill, or a glob", name));
    }
    if let Err(why) = name::component(name) {
        let message = format!("{name:?} is not the name of a skill: it {why}; a skill is named by its folder");
        return none(Finding::new(FindingCode::S1, name, message).instead("one plain name of a folder", name));
    }
    let SkillPlace { path, first } = wanted.place(name);
    let accepted = |seals: &super::SkillSeals| seals.get(name).cloned().unwrap_or_default();
    let seal: Option<Arc<SkillSeal>> = wanted.seals.filter(|_| first).map(accepted);
    let limits = ReadLimits { seal: seal.as_deref(), hidden: wanted.hidden };
    let folder = match SkillFolder::open(&path, limits) {
        Ok(folder) => folder,
        Err(error) => return none(absent(wanted, name, &error)),
    };
    if !is_skill(&path) {
        let message =
            format!("there is no skill in {}: it holds neither `{BODY}` nor `{HOOKS}/{MANIFEST}`", path.display());
        return none(Finding::new(FindingCode::S2, name, message).instead(BODY, "none"));
    }
    let mut eye = SkillReader { wanted, name, path: &path, folder: &folder, found: Vec::new() };
    let hooks = eye.hooks();
    let description = eye.description();
    let broken = hooks.is_none();
    let hooks = hooks.unwrap_or_default();
    let findings = eye.found;
    let skill = Skill { name: name.to_owned(), folder: path, description, hooks, stale: false, seal: seal.clone() };
    ReadSkill { skill: Some(skill), findings, broken }
}

fn absent(wanted: SkillSelection<'_>, name: &str, error: &io::Error) -> Finding {
    let dir = wanted.dir;
    let (path, is) = (dir.join(name), |kind| error.kind() == kind);
    let why = if is(io::ErrorKind::NotFound) && !dir.is_dir() {
        format!("the folder of skills, {}, does not exist", dir.display())
    } else if is(io::ErrorKind::NotFound) {
        format!("there is no folder {}", path.display())
    } else if is(io::ErrorKind::NotADirectory) {
        format!("{} is not a folder", path.display())
    } else {
        format!("{} cannot be opened: {error}", path.display())
    };
    let mut found = Finding::new(FindingCode::S2, name, format!("there is no skill `{name}`: {why}"));
    let known: Vec<String> = wanted.dirs().flat_map(folders).collect();
    found.nearest = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
    found.instead("a folder with a skill", "none")
}

/// Looks at one skill.
struct SkillReader<'a> {
    wanted: SkillSelection<'a>,
    name: &'a str,
    path: &'a Path,
    folder: &'a SkillFolder<'a>,
    found: Vec<Finding>,
}

impl SkillReader<'_> {
    /// The hooks of the manifest; none if there is one that cannot be read.
    fn hooks(&mut self) -> Option<Vec<SkillHook>> {
        let hooks = Path::new(HOOKS);
        match self.folder.is_folder(hooks) {
            Ok(None) => return Some(Vec::new()),
            Ok(Some(true)) => {}
            Ok(Some(false)) => return self.unreadable(&self.path.join(HOOKS), "is not a folder", "a file"),
            Err(why) => return self.unreadable(&self.path.join(HOOKS), &why.to_string(), why.why.word()),
        }
        let file = self.path.join(HOOKS).join(MANIFEST);
        let bytes = match self.folder.read(&hooks.join(MANIFEST), MAX_MANIFEST_BYTES) {
            Ok(bytes) => bytes,
            Err(gone) if gone == SkillFileError::plain(FileRefusal::Missing) => {
                self.forgotten(hooks);
                return Some(Vec::new());
            }
            Err(why) => return self.unreadable(&file, &why.to_string(), why.why.word()),
        };
        let around = ManifestContext { skill: self.name, file: &file, agent: self.wanted.agent };
        let Manifest { entries, findings, broken } = manifest::read(around, &bytes);
        self.found.extend(findings);
        let mut texts = BTreeMap::new();
        let hooks = entries.into_iter().filter_map(|entry| self.hook(around, entry, &mut texts)).collect();
        // Texts are read last; whoever mends a manifest goes through it from the top.
        self.found.sort_by_key(|found| (found.line, found.column));
        (!broken).then_some(hooks)
    }

    fn unreadable(&mut self, file: &Path, why: &str, got: &str) -> Option<Vec<SkillHook>> {
        let message = format!("`{}` {why}", shown(file));
        let found = Finding::new(FindingCode::F2, self.name, message).of(file);
        self.found.push(found.instead("a regular file of at most 256 KiB in the folder of its skill", got));
        None
    }

    /// Says so if there are texts and no manifest.
    fn forgotten(&mut self, hooks: &Path) {
        if self.folder.has(hooks, name::is_text) {
            let message = "there are texts in `hooks/`, and no `hooks.json` says when they go in: none does";
            let found = Finding::new(FindingCode::F1, self.name, message).of(self.path.join(HOOKS));
            self.found.push(found.instead("hooks.json", "none"));
        }
    }

    /// The hook of an entry, with its text. Two entries may share one.
    fn hook(
        &mut self,
        around: ManifestContext<'_>,
        entry: ManifestEntry,
        texts: &mut BTreeMap<String, Result<String, SkillFileError>>,
    ) -> Option<SkillHook> {
        let read = || {
            let bytes = self.folder.read(&Path::new(HOOKS).join(&entry.file), MAX_TEXT_BYTES)?;
            text::read(&bytes).map_err(SkillFileError::plain)
        };
        let content = match texts.entry(entry.file.clone()).or_insert_with(read) {
            Ok(text) => text.clone(),
            Err(why) => {
                let message = format!("the text `{}` {why}; the entry is skipped", entry.file);
                let found = manifest::finding(around, FindingCode::E8, &entry.file_at, message);
                self.found.push(found.instead("a .md file of at most 64 KiB of UTF-8 in hooks/", why.why.word()));
                return None;
            }
        };
        self.odd(around, &entry, &content);
        Some(SkillHook {
            skill: self.name.to_owned(),
            name: entry.name,
            content,
            timing: entry.timing,
            role: entry.role,
            persistent: entry.persistent,
            tool_filter: entry.tool_filter,
        })
    }

    fn odd(&mut self, around: ManifestContext<'_>, entry: &ManifestEntry, content: &str) {
        if content.len() > LONG_TEXT_BYTES {
            let bytes = content.len();
            let message = format!("the text `{}` has {bytes} bytes: every call that sees it pays for it", entry.file);
            let found = manifest::finding(around, FindingCode::W8, &entry.file_at, message);
            self.found.push(found.instead(format!("at most {LONG_TEXT_BYTES} bytes"), bytes.to_string()));
        }
        if let Some(what) = text::hidden(content) {
            let message = format!("the text `{}` holds {what}", entry.file);
            self.found.push(manifest::finding(around, FindingCode::W11, &entry.file_at, message));
        }
    }

    /// What the skill is for, as its `SKILL.md` says.
    fn description(&mut self) -> Option<String> {
        let file = self.path.join(BODY);
        let text = match self.folder.read_alike(Path::new(BODY), MAX_BODY_BYTES) {
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| SkillFileError::plain(FileRefusal::NotUtf8)),
            Err(gone) if gone.why == FileRefusal::Missing => return None,
            Err(why) => Err(why),
        };
        let text = match text {
            Ok(text) => text,
            Err(why) => {
                let found =
                    Finding::new(FindingCode::M1, self.name, format!("`{BODY}` {why}: the model is not told of it"));
                self.found.push(found.of(file).instead("a regular file of at most 256 KiB of UTF-8", why.why.word()));
                return None;
            }
        };
        if front::has_hooks(&text) {
            let message = format!(
                "`hooks` in the front matter of `{BODY}` is of another kind of hooks (`foreign_manifest`); nothing of it runs here"
            );
            self.found.push(Finding::new(FindingCode::F5, self.name, message).of(&file));
        }
        match front::read(&text) {
            Ok((front, _)) => self.described(file, front),
            Err(why) => {
                let message = format!("the front matter of `{BODY}` cannot be read: {}", why.message);
                self.found.push(Finding::new(FindingCode::M2, self.name, message).of(file).at((why.line, why.column)));
                None
            }
        }
    }

    fn described(&mut self, file: PathBuf, front: front::FrontMatter) -> Option<String> {
        let description = front.description.filter(|text| !text.trim().is_empty());
        match &description {
            None => {
                let message = format!("`{BODY}` has no `description`: the model is not told of it");
                self.found.push(Finding::new(FindingCode::M3, self.name, message).of(&file));
            }
            Some(text) => {
                if let Some(what) = text::hidden(text) {
                    let message = format!("the description in `{BODY}` holds {what}");
                    self.found.push(Finding::new(FindingCode::W11, self.name, message).of(&file));
                }
            }
        }
        if let Some(own) = front.name.filter(|own| own != self.name) {
            let message = format!("`{BODY}` calls the skill {own:?}; its name is that of its folder, `{}`", self.name);
            self.found.push(Finding::new(FindingCode::M4, self.name, message).of(file).instead(self.name, own));
        }
        description
    }
}

/// The last two parts of a path, which say enough where the whole stands beside it.
fn shown(file: &Path) -> String {
    let parts: Vec<_> = file.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/")
}
