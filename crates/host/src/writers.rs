//! Who else may write where Pintle keeps what it goes by: whoever can put a file into the folder of the configuration, or
//! of a hook's script, decides what runs. A command of an agent may change the mode of files that it cannot write, and so
//! let somebody else in.

use std::collections::BTreeMap;
use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Group, Uid, User, getegid, geteuid};

use crate::config::places::FILE_NAMES;
use crate::config::{Env, Loaded};
use crate::home;
use crate::protected::beside;

/// That everybody may write, among the bits of a mode.
const EVERYBODY: u32 = 0o002;

/// That the group may write, among the bits of a mode.
const GROUP: u32 = 0o020;

/// That only the owner of an entry may rename and remove it, whoever else may make new ones.
const STICKY: u32 = 0o1000;

/// Takes from others what is ours and they may write: the folder of the user's configuration, its files, the home folder.
/// Says what was taken, and what else of the host others may write, a line each.
pub fn keep_out(env: &Env, loaded: &Loaded) -> Vec<String> {
    let (config, own) = (&loaded.config, env.config_folder());
    let files = own.iter().flat_map(|folder| FILE_NAMES.map(|name| folder.join(name)));
    let state = Some(config.home.clone()).filter(|home| home::holds_only_ours(home));
    let ours: Vec<PathBuf> = own.iter().cloned().chain(files).chain(state).collect();
    let mut lines: Vec<String> = ours.iter().filter_map(|path| take(path)).collect();
    lines.extend(places(env, loaded).iter().filter_map(|(path, what)| told(path, what)));
    lines
}

/// The places that are not Pintle's own, or cannot be taken from others, with what they are.
fn places(env: &Env, loaded: &Loaded) -> BTreeMap<PathBuf, String> {
    let config = &loaded.config;
    let mut places = BTreeMap::new();
    places.extend(beside(config).into_iter().map(|(folder, of)| (folder, format!("the folder of what runs as {of}"))));
    places.extend(config.agent_hooks.dirs.iter().map(|of| (of.dir.clone(), "the folder of rules".to_owned())));
    let store = config.store_url.strip_prefix("sqlite://").map(|file| config.home.join(file));
    let store = store.as_deref().and_then(Path::parent).map(Path::to_owned);
    places.extend(store.map(|folder| (folder, "the folder of the store".to_owned())));
    places.extend(loaded.in_force.iter().map(|file| (env.cwd.join(file), "the configuration".to_owned())));
    places.insert(config.home.clone(), "the home folder of Pintle".to_owned());
    // Who may write above may put another folder in its place.
    let user = env.vars.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let is_inside = |path: &&Path| user.as_ref().is_some_and(|user| path.starts_with(user));
    let way = |folder: PathBuf| -> Vec<PathBuf> {
        folder.ancestors().skip(1).filter(is_inside).map(Path::to_owned).collect()
    };
    let ways = env.config_folder().into_iter().chain([config.home.clone()]).flat_map(way);
    for folder in ways {
        let what = if user.as_ref() == Some(&folder) { "your home folder" } else { "the way to Pintle's files" };
        places.entry(folder).or_insert_with(|| what.to_owned());
    }
    places.extend(env.config_folder().map(|folder| (folder, "the folder of your configuration".to_owned())));
    places
}

/// Takes `path` from others, if it is ours and they may write it. What became of it.
fn take(path: &Path) -> Option<String> {
    let of = fs::symlink_metadata(path).ok()?;
    // Of a link, what it leads to is not ours; it is told of.
    if of.is_symlink() || of.uid() != geteuid().as_raw() || !others_may_write(&of) {
        return None;
    }
    let mode = of.mode() & 0o7777;
    let closed = fs::set_permissions(path, Permissions::from_mode(mode & !(EVERYBODY | GROUP)));
    // Where it stays open it is told of below.
    closed.is_ok().then(|| {
        format!(
            "others could write {} (mode {mode:04o}), and cannot any more; look at what stands there now",
            path.display()
        )
    })
}

fn told(path: &Path, what: &str) -> Option<String> {
    let of = fs::metadata(path).ok().filter(others_may_write)?;
    let mode = of.mode() & 0o7777;
    Some(format!(
        "others may write {}, {what} (mode {mode:04o}), and so change what Pintle does: look at what stands there, and \
         close it with `chmod go-w`",
        path.display()
    ))
}

/// Whether somebody else than its owner may write what is described by `of`, or put something else in the place of what
/// stands in it. A group of the owner alone, as systems make one for each user, is nobody else.
fn others_may_write(of: &Metadata) -> bool {
    let mode = of.mode();
    let is_open = mode & EVERYBODY != 0 || (mode & GROUP != 0 && is_shared(of.gid(), of.uid()));
    is_open && !(of.is_dir() && mode & STICKY != 0)
}

/// Whether the group has others in it than the user `owner`. Who has it as their first group is not listed there; of a
/// group that is ours, and not called like us, others have it too.
fn is_shared(group: u32, owner: u32) -> bool {
    let is_ours = getegid().as_raw() == group;
    let owner = User::from_uid(Uid::from_raw(owner)).ok().flatten().map(|user| user.name).unwrap_or_default();
    match Group::from_gid(Gid::from_raw(group)) {
        Ok(Some(group)) => group.mem.iter().any(|member| *member != owner) || (is_ours && group.name != owner),
        Ok(None) | Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn open(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_is_ours_is_taken_from_others_and_the_rest_is_told() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in ["user/.config/pintle", "state", "scripts"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        let file = at("user/.config/pintle/pintle.toml");
        let script = at("scripts/guard.sh");
        fs::write(&script, "").unwrap();
        fs::write(
            &file,
            format!("[hooks.processes.g]\nenabled = true\nobserve = ['*']\ncommand = ['sh', '{}']\n", script.display()),
        )
        .unwrap();
        let env = Env { vars: [("HOME".to_owned(), at("user").into_os_string())].into(), cwd: at("state") };
        let home = at("state");
        let options = crate::config::LoadOptions { home: Some(&home), ..crate::config::LoadOptions::default() };
        let loaded = crate::config::load(&env, &options).unwrap();
        assert_eq!(keep_out(&env, &loaded), Vec::<String>::new());

        for (path, mode) in [("user/.config/pintle", 0o777), ("state", 0o757), ("scripts", 0o777), ("user", 0o777)] {
            open(&at(path), mode);
        }
        open(&file, 0o666);
        let lines = keep_out(&env, &loaded);
        let line = |path: &Path| {
            let path = path.display().to_string();
            lines.iter().find(|line| line.split([' ', ',']).any(|word| word == path)).cloned().unwrap_or_default()
        };
        assert_eq!(lines.len(), 5, "{lines:?}");
        for path in [at("user/.config/pintle"), file.clone(), at("state")] {
            assert!(line(&path).contains("and cannot any more"), "{lines:?}");
        }
        assert!(line(&at("scripts")).contains("the folder of what runs as hook \"g\" (mode 0777)"), "{lines:?}");
        assert!(line(&at("user")).contains("your home folder (mode 0777)"), "{lines:?}");
        let modes = ["user/.config/pintle", "state", "scripts", "user"].map(|path| mode(&at(path)));
        assert_eq!((modes, mode(&file)), ([0o755, 0o755, 0o777, 0o777], 0o644));
        // What is told is told until it is mended; where only owners rename and remove, nobody puts anything in a place.
        open(&at("user"), 0o1777);
        open(&at("scripts"), 0o755);
        assert_eq!(keep_out(&env, &loaded), Vec::<String>::new());
    }
}
