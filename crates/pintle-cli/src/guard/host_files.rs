//! The files of agents on this machine: where they are, what stands in them, and what was there before we came.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use guard::settings::KeptFile;
use guard::{GuardHost, HOSTS};
use host::config::Env;
use nix::fcntl::OFlag;
use serde_json::{Value, json};
use uuid::Uuid;

use super::places::GuardPlaces;

/// Longest file of settings that is read, in bytes: those of people are some kilobytes long.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Folders that a variable moves elsewhere.
const MOVED: [(&str, &str); 2] = [("~/.config/", "XDG_CONFIG_HOME"), ("~/.local/share/", "XDG_DATA_HOME")];

/// The file that `path` of the table means here, with what variables move elsewhere.
pub(crate) fn file_of(path: &str, env: &Env) -> Option<PathBuf> {
    let moved = MOVED.iter().find_map(|(folder, name)| {
        let folder_here = env.text(name).map(Path::new).filter(|dir| dir.is_absolute())?;
        Some(folder_here.join(path.strip_prefix(folder)?))
    });
    if moved.is_some() {
        return moved;
    }
    match (path.strip_prefix("~/"), path.strip_prefix("./")) {
        (Some(below), _) => Some(Path::new(env.text("HOME")?).join(below)),
        (None, Some(below)) => Some(env.cwd.join(below)),
        (None, None) => Some(PathBuf::from(path)),
    }
}

/// The files that `path` of the table means here, where its names may have a `*`: of such ones those that are there.
pub(crate) fn files_of(path: &str, env: &Env) -> Vec<PathBuf> {
    let Some(file) = file_of(path, env) else { return Vec::new() };
    let mut found = vec![PathBuf::new()];
    for part in file.components() {
        let name = part.as_os_str().to_str().unwrap_or_default();
        found = match name.contains('*') {
            false => found.into_iter().map(|folder| folder.join(part)).collect(),
            true => found.iter().flat_map(|folder| named(folder, name)).collect(),
        };
    }
    found
}

/// What in `folder` has a name that fits `pattern`, in order.
fn named(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_named = |entry: &fs::DirEntry| entry.file_name().to_str().is_some_and(|name| fits(pattern, name));
    let mut found: Vec<PathBuf> = entries.filter(is_named).map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Whether `name` is `pattern`, in which `*` is any text.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|name| {
            name.char_indices().map(|(at, _)| at).chain([name.len()]).any(|at| fits(rest, &name[at..]))
        }),
    }
}

/// The folders of agents that are protected, where something has moved them to another place than the table says.
pub(crate) fn moved_folders(env: &Env) -> Vec<String> {
    let all = HOSTS.iter().flat_map(|host| host.config.protects.iter().copied());
    let folders =
        all.filter(|pattern| pattern.starts_with("~/.config/")).filter_map(|pattern| pattern.strip_suffix("/**"));
    folders.filter_map(|folder| Some(file_of(folder, env)?.to_str()?.to_owned())).collect()
}

/// The file, if it is there, and one.
pub(super) fn opened(file: &Path) -> io::Result<Option<File>> {
    // Whoever opens a pipe would wait for its other end.
    let opened = match File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !opened.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(Some(opened))
}

/// What stands in `file`, if it is there.
///
/// # Errors
/// It cannot be read, or it is not a file of a length that settings have.
pub(crate) fn text_of(file: &Path) -> io::Result<Option<String>> {
    let Some(opened) = opened(file)? else { return Ok(None) };
    let mut text = String::new();
    let length = opened.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if length as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("it is longer than {MAX_FILE_BYTES} bytes")));
    }
    Ok(Some(text))
}

/// Puts `bytes` in the place of what stands in `file`, for nobody else to read. Whoever reads it meanwhile, or replaces it too,
/// finds all of the one or of the other.
///
/// # Errors
/// It cannot be written.
pub(super) fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = file.with_extension(format!("{}.new", Uuid::new_v4()));
    let mut made = File::options().write(true).create_new(true).mode(0o600).open(&beside)?;
    let placed = made.write_all(bytes).and_then(|()| fs::rename(&beside, file));
    if placed.is_err() {
        fs::remove_file(&beside)?;
    }
    placed
}

/// Where it is kept what `file` of the host called `host` was before it was changed.
fn kept_file(places: &GuardPlaces, host: &str, file: &Path) -> PathBuf {
    let name = Uuid::new_v5(&Uuid::NAMESPACE_URL, file.as_os_str().as_encoded_bytes());
    places.folder.join("kept").join(format!("{host}-{name}.json"))
}

/// When `host` was last installed into, as far as anything is kept of that.
pub(crate) fn installed_at(places: &GuardPlaces, host: &GuardHost) -> Option<SystemTime> {
    let kept = named(&places.folder.join("kept"), &format!("{}-*.json", host.id));
    kept.iter().filter_map(|file| fs::metadata(file).ok()?.modified().ok()).max()
}

/// What settings name that start our client.
const CLIENT: &str = "pintle-hook";

/// The files into which an installation put entries of `host`, and which have none any more, though nobody uninstalled them.
/// A folder that is gone took its own along.
pub(crate) fn taken_from(places: &GuardPlaces, host: &GuardHost) -> Vec<PathBuf> {
    let taken = |state: PathBuf| {
        let kept: Value = serde_json::from_slice(&fs::read(state).ok()?).ok()?;
        let file = PathBuf::from(kept["file"].as_str()?);
        let had = kept["after"].as_str()?.contains(CLIENT);
        let has = match text_of(&file) {
            Ok(text) => text.is_some_and(|text| text.contains(CLIENT)),
            Err(_) => true,
        };
        let is_taken = had && !has && file.parent()?.is_dir();
        is_taken.then_some(file)
    };
    named(&places.folder.join("kept"), &format!("{}-*.json", host.id)).into_iter().filter_map(taken).collect()
}

/// What the last installation left in `file`, and what was there before.
pub(crate) fn kept(places: &GuardPlaces, host: &str, file: &Path) -> Option<KeptFile> {
    let bytes = fs::read(kept_file(places, host, file)).ok()?;
    let kept: Value = serde_json::from_slice(&bytes).ok()?;
    let before = kept["before"].as_str().map(str::to_owned);
    Some(KeptFile { before, after: kept["after"].as_str()?.to_owned() })
}

/// Keeps that, for nobody else to read; or forgets it.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write_kept(places: &GuardPlaces, host: &str, (file, kept): (&Path, Option<&KeptFile>)) -> io::Result<()> {
    let at = kept_file(places, host, file);
    match kept {
        Some(kept) => {
            fs::create_dir_all(at.parent().unwrap_or(&places.folder))?;
            let text = json!({"file": file, "before": kept.before, "after": kept.after}).to_string();
            // Whole or not at all: what was there before stands nowhere else.
            let beside = at.with_extension("new");
            let mut made = File::options().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
            made.write_all(text.as_bytes())?;
            made.sync_all()?;
            fs::rename(beside, at)
        }
        None if at.exists() => fs::remove_file(at),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;

    #[test]
    fn a_file_that_several_replace_at_once_is_always_whole() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.json");
        let texts: Vec<Vec<u8>> = (1..=8_u8).map(|number| vec![number; usize::from(number) * 5000]).collect();
        let (all, at) = (&texts, file.as_path());
        let replaces = |text: &[u8]| {
            for _ in 0..50 {
                replace(at, text).unwrap();
                assert!(all.contains(&fs::read(at).unwrap()));
            }
        };
        std::thread::scope(|scope| all.iter().for_each(|text| drop(scope.spawn(|| replaces(text)))));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_star_is_any_text_in_a_name() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["a/x.json", "a/y.txt", "b/x.json", "b/.json"] {
            let file = dir.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let env = Env { vars: [("HOME".into(), dir.path().into())].into(), cwd: "/w".into() };
        let found = |path: &str| {
            let below = |file: &PathBuf| file.strip_prefix(dir.path()).unwrap().to_str().unwrap().to_owned();
            files_of(path, &env).iter().map(below).collect::<Vec<_>>()
        };
        assert_eq!(found("~/a/*.json"), ["a/x.json"]);
        assert_eq!(found("~/*/x.json"), ["a/x.json", "b/x.json"]);
        assert_eq!(found("~/*/*x*.*"), ["a/x.json", "b/x.json"]);
        assert_eq!(found("~/b/*.json"), ["b/.json", "b/x.json"]);
        assert_eq!(found("~/c/*.json"), [""; 0]);
        assert_eq!(found("~/c/x.json"), ["c/x.json"], "without a star it need not be there");
    }

    #[test]
    fn only_files_are_read_and_nothing_waits() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        assert_eq!(text_of(&at("none")).unwrap(), None);
        fs::write(at("some"), "{}").unwrap();
        assert_eq!(text_of(&at("some")).unwrap().as_deref(), Some("{}"));
        nix::unistd::mkfifo(&at("pipe"), Mode::S_IRWXU).unwrap();
        for name in ["pipe", "."] {
            assert!(text_of(&at(name)).unwrap_err().to_string().contains("not a regular file"), "{name}");
        }
    }
}
