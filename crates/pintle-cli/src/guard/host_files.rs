//! The files of agents on this machine: where they are, what stands in them, and what was there before we came.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nix::fcntl::OFlag;
use pintle_guard::settings::KeptFile;
use pintle_guard::{GuardHost, HOSTS};
use pintle_host::config::Env;
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

/// What is kept of the installations of one host, as far as something is to be said of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptOf {
    /// The files into which entries of it were put, and which have none any more, though nobody uninstalled them. A folder
    /// that is gone took its own along.
    pub(crate) taken: Vec<PathBuf>,
    /// What of it cannot be read, and why: whether something was taken away is not known there.
    pub(crate) unread: Vec<String>,
}

/// What is kept of the installations of `host`.
pub(crate) fn kept_of(places: &GuardPlaces, host: &GuardHost) -> KeptOf {
    let (folder, mut of_host) = (places.folder.join("kept"), KeptOf::default());
    let unread = |file: &Path, error: &io::Error| format!("{}: {error}", file.display());
    if let Some(error) = fs::read_dir(&folder).err().filter(|error| error.kind() != io::ErrorKind::NotFound) {
        of_host.unread.push(unread(&folder, &error));
    }
    for state in named(&folder, &format!("{}-*.json", host.id)) {
        match taken_from(&state) {
            Ok(taken) => of_host.taken.extend(taken),
            Err(error) => of_host.unread.push(unread(&state, &error)),
        }
    }
    of_host
}

/// The file of which `state` is kept, if our entries were taken from it.
fn taken_from(state: &Path) -> io::Result<Option<PathBuf>> {
    let kept: Value = serde_json::from_slice(&fs::read(state)?)?;
    let file = PathBuf::from(kept["file"].as_str().ok_or_else(damaged)?);
    if !kept["after"].as_str().ok_or_else(damaged)?.contains(CLIENT) {
        return Ok(None);
    }
    let text = text_of(&file).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
    let has = text.is_some_and(|text| text.contains(CLIENT));
    let is_taken = !has && file.parent().is_some_and(Path::is_dir);
    Ok(is_taken.then_some(file))
}

fn damaged() -> io::Error {
    io::Error::other("it is damaged")
}

/// What the last installation left in `file`, and what was there before; none where nobody installed there.
///
/// # Errors
/// It cannot be read, or is damaged: what was there before is not known. The error names what is kept.
pub(crate) fn kept(places: &GuardPlaces, host: &str, file: &Path) -> io::Result<Option<KeptFile>> {
    let at = kept_file(places, host, file);
    let read = |bytes: &[u8]| -> io::Result<KeptFile> {
        let kept: Value = serde_json::from_slice(bytes)?;
        let after = kept["after"].as_str().ok_or_else(damaged)?.to_owned();
        Ok(KeptFile { before: kept["before"].as_str().map(str::to_owned), after })
    };
    match fs::read(&at).and_then(|bytes| read(&bytes)) {
        Ok(kept) => Ok(Some(kept)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", at.display()))),
    }
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
    fn what_is_kept_and_cannot_be_read_is_not_taken_as_absent() {
        let dir = tempfile::tempdir().unwrap();
        let places = GuardPlaces { socket: dir.path().join("s"), folder: dir.path().join("guard") };
        let (host, file) = (&HOSTS[0], dir.path().join("settings.json"));
        let known = KeptFile { before: None, after: format!("run {CLIENT}") };
        assert_eq!(kept(&places, host.id, &file).unwrap(), None);
        assert_eq!(kept_of(&places, host), KeptOf::default());
        write_kept(&places, host.id, (&file, Some(&known))).unwrap();
        assert_eq!(kept(&places, host.id, &file).unwrap(), Some(known));
        assert_eq!(kept_of(&places, host), KeptOf { taken: vec![file.clone()], unread: Vec::new() });
        let at = kept_file(&places, host.id, &file);
        for bytes in ["", "{}", r#"{"file": 7, "after": 7}"#] {
            fs::write(&at, bytes).unwrap();
            let error = kept(&places, host.id, &file).unwrap_err().to_string();
            assert!(error.contains(&at.display().to_string()), "{error}");
            let of_host = kept_of(&places, host);
            assert!(of_host.taken.is_empty() && of_host.unread.len() == 1, "{of_host:?}");
        }
        fs::remove_dir_all(places.folder.join("kept")).unwrap();
        fs::write(places.folder.join("kept"), "").unwrap();
        assert_eq!(kept_of(&places, host).unread.len(), 1);
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
