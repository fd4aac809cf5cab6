//! The guard that this account has in a home: how a hook starts its daemon, for a process that takes the daemon's place.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::unistd::geteuid;
use pintle_hook::start::{START_FILE, Start};
use pintle_host::config::Env;

use super::places::{GuardPlaces, StartFlags, folder_of};

/// A guard that somebody set up.
pub(crate) struct SetUpGuard {
    /// Where its hooks look for a daemon.
    pub(crate) places: GuardPlaces,
    /// What its daemon is told.
    pub(crate) flags: StartFlags,
    /// The surroundings of its daemon, and nothing of this process's own.
    pub(crate) env: Env,
}

impl SetUpGuard {
    /// The one in the home that `named` (`--home`) or `env` say; none where nobody set one up, or another account did, or
    /// where it belongs to another home, of which this one is a copy.
    pub(crate) fn find(env: &Env, named: Option<&Path>) -> Option<Self> {
        let folder = folder_of(env, named).ok()?;
        let file = folder.join(START_FILE);
        // The hooks of another account would not believe this process, and its lock would keep their own daemon out.
        if fs::metadata(&file).ok()?.uid() != geteuid().as_raw() {
            return None;
        }
        let start = Start::of_bytes(&fs::read(file).ok()?)?;
        let flags = StartFlags::of(&start.argv);
        let vars = start.env.into_iter().map(|(name, value)| (name, OsString::from(value))).collect();
        let env = Env { vars, cwd: "/".into() };
        let places = GuardPlaces::of(&env, flags.home.as_deref(), flags.socket.as_deref()).ok()?;
        let is_its_own = fs::canonicalize(&places.folder).ok()? == fs::canonicalize(folder).ok()?;
        is_its_own.then_some(Self { places, flags, env })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_is_found_in_its_own_home_with_the_surroundings_of_its_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let (home, copy) = (dir.path().join("home"), dir.path().join("copy"));
        let mut env =
            Env { vars: [("HOME".to_owned(), OsString::from(dir.path()))].into(), cwd: dir.path().to_owned() };
        assert!(SetUpGuard::find(&env, Some(home.as_path())).is_none(), "nobody set one up");
        let places = GuardPlaces::of(&env, Some(home.as_path()), None).unwrap();
        places.make().unwrap();
        let config = dir.path().join("own.toml");
        places.write_start(&env, &[("--config", Some(config.as_path())), ("--home", Some(home.as_path()))]).unwrap();

        env.vars.insert("SECRET".to_owned(), "s".into());
        env.vars.insert("HOME".to_owned(), "/elsewhere".into());
        let found = SetUpGuard::find(&env, Some(Path::new("home"))).unwrap();
        assert_eq!(found.places, places);
        assert_eq!((found.flags.config, found.flags.home), (Some(config), Some(home.clone())));
        assert_eq!((found.env.text("HOME"), found.env.text("SECRET")), (dir.path().to_str(), None));

        let copied = copy.join("guard");
        fs::create_dir_all(&copied).unwrap();
        fs::copy(home.join("guard/start"), copied.join("start")).unwrap();
        assert!(SetUpGuard::find(&env, Some(copy.as_path())).is_none(), "its hooks ask the daemon of another home");
    }
}
