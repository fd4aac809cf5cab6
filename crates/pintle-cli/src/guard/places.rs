//! Where the daemon listens, and what it keeps beside the state of its user.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use pintle_hook::key::{self, KEY_BYTES};
use pintle_hook::start::{LOG_FILE, START_FILE, Start};
use pintle_host::config::Env;

use super::daemon_process::DaemonProcess;
use crate::error::CliError;

/// The folder of the guard, in the home folder.
const FOLDER: &str = "guard";

/// The name of the file with what is known of the sessions of hosts.
pub(super) const SESSIONS_FILE: &str = "sessions.json";

/// The name of the file that is there while agents may change their own settings.
const SELF_EDIT: &str = "self-edit";

/// The name of the file that says where the model door of the daemon is.
const MODEL_DOOR: &str = "model-door";

/// The name of the socket, wherever it stands.
const SOCKET: &str = "guard.sock";

/// How often is looked whether the lock is free: whoever waits is a daemon, and a hook waits for that.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Longest log of a daemon that a hook started, in bytes; what is longer is put aside, and the one before it forgotten.
const MAX_LOG_BYTES: u64 = 1 << 20;

/// Longest path of a socket, in bytes. Source: `sun_path` of unix(7), which ends with a zero byte.
const MAX_SOCKET_BYTES: usize = 107;

/// The variables that a daemon is started with when a hook starts it: what says where things are and whose they are. A
/// key that a configuration names is none of them, so that none lies in a file.
const STARTED_WITH: [&str; 11] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "PINTLE_HOME",
    "USER",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "TMPDIR",
];

/// Where the daemon of one home listens, and the folder of what it keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GuardPlaces {
    /// The socket.
    pub(crate) socket: PathBuf,
    /// The folder.
    pub(crate) folder: PathBuf,
}

impl GuardPlaces {
    /// Those of the home that `named` (`--home`) or the surroundings say. The runtime folder is only for the home that
    /// nobody named: others have daemons of their own.
    ///
    /// # Errors
    /// There is no home, or the path of the socket is too long.
    pub(crate) fn of(env: &Env, named: Option<&Path>, socket: Option<&Path>) -> Result<Self, CliError> {
        let folder = folder_of(env, named)?;
        let is_default = named.is_none() && env.text("PINTLE_HOME").is_none();
        let runtime = env.text("XDG_RUNTIME_DIR").map(Path::new).filter(|dir| dir.is_absolute() && dir.is_dir());
        let socket = match (socket, runtime.filter(|_| is_default)) {
            (Some(socket), _) => env.cwd.join(socket),
            (None, Some(runtime)) => runtime.join("pintle").join(SOCKET),
            (None, None) => folder.join(SOCKET),
        };
        if socket.as_os_str().len() > MAX_SOCKET_BYTES {
            let message = format!(
                "the path of the socket is too long for the system, which takes {MAX_SOCKET_BYTES} bytes: {}",
                socket.display()
            );
            return Err(CliError::usage(message).hint("name a shorter one with --socket PATH"));
        }
        Ok(Self { socket, folder })
    }

    /// The home that it belongs to.
    pub(crate) fn home(&self) -> &Path {
        self.folder.parent().unwrap_or(&self.folder)
    }

    /// The key by which hooks know the daemon.
    pub(crate) fn key_file(&self) -> PathBuf {
        self.folder.join("key")
    }

    /// What is known of the sessions of hosts.
    pub(crate) fn sessions_file(&self) -> PathBuf {
        self.folder.join(SESSIONS_FILE)
    }

    /// What only one daemon holds.
    pub(crate) fn lock_file(&self) -> PathBuf {
        self.folder.join("lock")
    }

    /// The lock that only one daemon of this home holds; none where another process has it.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(crate) fn alone(&self) -> io::Result<Option<Flock<File>>> {
        let lock = File::options().create(true).truncate(false).write(true).open(self.lock_file())?;
        Ok(Flock::lock(lock, FlockArg::LockExclusiveNonblock).ok())
    }

    /// The same lock, for which whoever has it only for a moment is waited for at most `limit`.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(crate) fn alone_within(&self, limit: Duration) -> io::Result<Option<Flock<File>>> {
        let began = Instant::now();
        loop {
            let alone = self.alone()?;
            if alone.is_some() || began.elapsed() >= limit {
                return Ok(alone);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// What the newest daemon wrote into the lock; nothing where none ever did.
    pub(crate) fn signature(&self) -> Vec<u8> {
        fs::read(self.lock_file()).unwrap_or_default()
    }

    /// Does `work` if no daemon has had the lock since `signature` was read from it; none has it meanwhile.
    ///
    /// # Errors
    /// The lock cannot be made, or the work failed.
    pub(crate) fn unless_guarded(&self, signature: &[u8], work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match self.alone()? {
            Some(_alone) if self.signature() == signature => work(),
            Some(_) | None => Ok(()),
        }
    }

    /// The process id of the daemon, for people and service managers.
    pub(crate) fn pid_file(&self) -> PathBuf {
        self.folder.join("pid")
    }

    /// What daemons that hooks started had to say.
    pub(crate) fn log_file(&self) -> PathBuf {
        self.folder.join(LOG_FILE)
    }

    /// Puts a log aside that has become too long. Whoever writes to it goes on at its beginning.
    ///
    /// # Errors
    /// It cannot be copied or emptied.
    pub(crate) fn bound_log(&self) -> io::Result<()> {
        let file = self.log_file();
        let is_long = fs::symlink_metadata(&file).is_ok_and(|found| found.is_file() && found.len() > MAX_LOG_BYTES);
        if !is_long {
            return Ok(());
        }
        let (old, beside) = (file.with_extension("old"), file.with_extension("new"));
        fs::copy(&file, &beside)?;
        fs::rename(beside, old)?;
        // The file stays the same one: the daemon has it open, and adds to its end.
        File::options().write(true).open(file)?.set_len(0)
    }

    /// The process of the daemon that runs, as far as it said so.
    pub(crate) fn daemon(&self) -> Option<DaemonProcess> {
        DaemonProcess::of_lock(&fs::read_to_string(self.lock_file()).ok()?)
    }

    /// Whether a daemon holds the lock of this home.
    pub(crate) fn is_guarded(&self) -> bool {
        let Ok(lock) = File::options().write(true).open(self.lock_file()) else { return false };
        // Shared: those that look do not see each other.
        Flock::lock(lock, FlockArg::LockSharedNonblock).is_err()
    }

    /// Makes the folders, for this user alone.
    ///
    /// # Errors
    /// They cannot be made.
    pub(crate) fn make(&self) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&self.folder)?;
        self.socket.parent().map_or(Ok(()), |parent| builder.create(parent))
    }

    /// The key, which is made where there is none.
    ///
    /// # Errors
    /// It cannot be made or read, or is not this user's alone.
    pub(crate) fn key(&self) -> io::Result<[u8; KEY_BYTES]> {
        let file = self.key_file();
        if !file.exists() {
            // Whole or not at all: two that begin at the same time take the same one.
            let fresh: [u8; KEY_BYTES] = key::random()?;
            let beside = self.folder.join(format!("key.{}", std::process::id()));
            fs::remove_file(&beside).ok();
            own_file(&beside, &fresh)?;
            let linked = fs::hard_link(&beside, &file);
            fs::remove_file(&beside)?;
            match linked {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        key::read(&file)
    }

    /// Whether the daemon that was started last lets agents change their own settings.
    pub(crate) fn allows_self_edit(&self) -> bool {
        self.folder.join(SELF_EDIT).exists()
    }

    /// Says so, or the contrary, for commands that run beside the daemon.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn mark_self_edit(&self, allows: bool) -> io::Result<()> {
        let file = self.folder.join(SELF_EDIT);
        match allows {
            true => fs::write(file, ""),
            false => match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                Ok(()) | Err(_) => Ok(()),
            },
        }
    }

    /// Says that this process has a model door at `address`, for commands that run beside it.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn mark_model_door(&self, address: SocketAddr) -> io::Result<()> {
        fs::write(self.folder.join(MODEL_DOOR), format!("{} {address}\n", std::process::id()))
    }

    /// Where the model door of the daemon that runs is, if it has one.
    pub(crate) fn model_door(&self) -> Option<SocketAddr> {
        let said = fs::read_to_string(self.folder.join(MODEL_DOOR)).ok()?;
        let (pid, address) = said.trim().split_once(' ')?;
        let daemon = self.daemon().filter(|_| self.is_guarded())?;
        // An earlier one may have left it.
        address.parse().ok().filter(|_| pid.parse().ok() == Some(daemon.pid))
    }

    /// The flags with which a hook starts the daemon; none where that is not written yet.
    pub(crate) fn start_flags(&self) -> StartFlags {
        let kept = fs::read(self.folder.join(START_FILE)).ok();
        let argv = kept.and_then(|bytes| Start::of_bytes(&bytes)).map(|start| start.argv).unwrap_or_default();
        StartFlags::of(&argv)
    }

    /// Writes how a hook starts the daemon: this program, with the flags of `home` and `config`. Whether it looks for
    /// programs elsewhere than the one before.
    ///
    /// # Errors
    /// It cannot be written, or a path is not UTF-8.
    pub(crate) fn write_start(&self, env: &Env, flags: &[(&str, Option<&Path>)]) -> io::Result<bool> {
        let program = std::env::current_exe()?;
        let mut argv = vec![text(program.as_os_str())?, "guard".into(), "serve".into(), "--by-hook".into()];
        argv.extend(["--socket".into(), text(self.socket.as_os_str())?]);
        for (flag, path) in flags {
            if let Some(path) = path {
                argv.extend([(*flag).to_owned(), text(env.cwd.join(path).as_os_str())?]);
            }
        }
        let variable = |name: &&str| Some(((*name).to_owned(), env.vars.get(*name)?.to_str()?.to_owned()));
        let start = Start { argv, env: STARTED_WITH.iter().filter_map(variable).collect() };
        let (file, beside) = (self.folder.join(START_FILE), self.folder.join("start.new"));
        let path = |start: &Start| start.env.iter().find(|(name, _)| name == "PATH").cloned();
        let before = fs::read(&file).ok().and_then(|bytes| Start::of_bytes(&bytes));
        fs::remove_file(&beside).ok();
        own_file(&beside, &start.to_bytes())?;
        fs::rename(beside, file)?;
        Ok(before.is_some_and(|before| path(&before) != path(&start)))
    }
}

/// The folder of what the daemon keeps in the home that `named` (`--home`) or the surroundings say, wherever it listens.
///
/// # Errors
/// There is no home.
pub(super) fn folder_of(env: &Env, named: Option<&Path>) -> Result<PathBuf, CliError> {
    Ok(env.home(named)?.join(FOLDER))
}

/// Where the daemon that a hook starts has its configuration and its state, if somebody named them, and where it listens.
#[derive(Debug, Default)]
pub(crate) struct StartFlags {
    pub(crate) config: Option<PathBuf>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) socket: Option<PathBuf>,
}

impl StartFlags {
    /// Those among the words `argv`.
    pub(super) fn of(argv: &[String]) -> Self {
        let value = |flag: &str| {
            let at = argv.iter().position(|word| word == flag)?;
            argv.get(at + 1).map(PathBuf::from)
        };
        Self {
            config: value("--config"),
            home: value("--home"),
            socket: value("--socket").filter(|socket| socket.is_absolute()),
        }
    }
}

fn text(path: &OsStr) -> io::Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| io::Error::other("a path is not UTF-8"))
}

/// Makes a file that only this user reads.
fn own_file(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut made = File::options().write(true).create_new(true).mode(0o600).open(file)?;
    made.write_all(bytes)?;
    made.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::daemon_process::{DaemonOf, sign};
    use std::os::unix::fs::PermissionsExt as _;

    fn env(vars: &[(&str, &Path)]) -> Env {
        let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), value.as_os_str().to_owned()));
        Env { vars: vars.collect(), cwd: "/w".into() }
    }

    #[test]
    fn only_the_home_that_nobody_named_listens_in_the_runtime_folder() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = dir.path();
        let places = |vars: &[(&str, &Path)], home: Option<&str>, socket: Option<&str>| {
            GuardPlaces::of(&env(vars), home.map(Path::new), socket.map(Path::new)).unwrap().socket
        };
        let (home, own) = (("HOME", Path::new("/h")), ("PINTLE_HOME", Path::new("/p")));
        let at = ("XDG_RUNTIME_DIR", runtime);
        assert_eq!(places(&[home, at], None, None), runtime.join("pintle/guard.sock"));
        assert_eq!(places(&[home], None, None), Path::new("/h/.local/share/pintle/guard/guard.sock"));
        assert_eq!(places(&[home, at, own], None, None), Path::new("/p/guard/guard.sock"));
        assert_eq!(places(&[home, at], Some("state"), None), Path::new("/w/state/guard/guard.sock"));
        assert_eq!(places(&[home, at], None, Some("s.sock")), Path::new("/w/s.sock"));
        let long = "x".repeat(MAX_SOCKET_BYTES);
        let error = GuardPlaces::of(&env(&[home]), Some(Path::new(&long)), None).unwrap_err();
        assert!(error.message.contains("too long for the system"), "{error}");
    }

    #[test]
    fn whoever_has_the_lock_says_which_process_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let places = GuardPlaces { socket: dir.path().join("s"), folder: dir.path().to_owned() };
        assert_eq!(places.daemon(), None);
        fs::write(places.lock_file(), "1 of an earlier daemon, which is gone\n").unwrap();
        assert_eq!(places.daemon(), None);
        let alone = places.alone().unwrap().unwrap();
        sign(&alone, DaemonOf::Serve).unwrap();
        let daemon = places.daemon().map(|it| (it.pid, it.of));
        assert_eq!(daemon, Some((std::process::id(), DaemonOf::Serve)));
        assert!(places.is_guarded());
    }

    #[test]
    fn a_model_door_is_that_of_the_daemon_that_runs() {
        let dir = tempfile::tempdir().unwrap();
        let places = GuardPlaces { socket: dir.path().join("s"), folder: dir.path().to_owned() };
        let address = SocketAddr::from(([127, 0, 0, 1], 8787));
        places.mark_model_door(address).unwrap();
        assert_eq!(places.model_door(), None, "nobody guards");
        let alone = places.alone().unwrap().unwrap();
        sign(&alone, DaemonOf::GuardServe).unwrap();
        assert_eq!(places.model_door(), Some(address));
        fs::write(places.folder.join(MODEL_DOOR), "1 127.0.0.1:8787\n").unwrap();
        assert_eq!(places.model_door(), None, "an earlier daemon left it");
    }

    #[test]
    fn whoever_has_the_lock_for_a_moment_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let places = GuardPlaces { socket: dir.path().join("s"), folder: dir.path().to_owned() };
        let alone = places.alone().unwrap().unwrap();
        assert!(places.alone_within(Duration::ZERO).unwrap().is_none());
        let waiting = std::thread::spawn({
            let places = places.clone();
            move || places.alone_within(Duration::from_secs(60)).unwrap().is_some()
        });
        drop(alone);
        assert!(waiting.join().unwrap());
    }

    #[test]
    fn what_a_command_knows_is_not_kept_over_what_a_daemon_does() {
        let dir = tempfile::tempdir().unwrap();
        let places = GuardPlaces { socket: dir.path().join("s"), folder: dir.path().to_owned() };
        let signature = places.signature();
        let is_done = || {
            let mut is_done = false;
            let work = || {
                is_done = true;
                Ok(())
            };
            places.unless_guarded(&signature, work).unwrap();
            is_done
        };
        assert!(is_done() && !places.is_guarded(), "nobody guards, and the lock is free again");
        let alone = places.alone().unwrap().unwrap();
        assert!(!is_done(), "one guards");
        sign(&alone, DaemonOf::GuardServe).unwrap();
        drop(alone);
        assert!(!is_done(), "one has guarded since");
    }

    #[test]
    fn a_long_log_is_put_aside_and_whoever_has_it_open_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let places = GuardPlaces { socket: dir.path().join("s"), folder: dir.path().to_owned() };
        places.bound_log().unwrap();
        own_file(&places.log_file(), b"short\n").unwrap();
        let mut open = File::options().append(true).open(places.log_file()).unwrap();
        places.bound_log().unwrap();
        assert_eq!(fs::read(places.log_file()).unwrap(), b"short\n");
        let long = vec![b'x'; usize::try_from(MAX_LOG_BYTES).unwrap()];
        for _ in 0..2 {
            open.write_all(&long).unwrap();
            open.write_all(b"\n").unwrap();
            places.bound_log().unwrap();
            open.write_all(b"on\n").unwrap();
            assert_eq!(fs::read(places.log_file()).unwrap(), b"on\n");
        }
        let old = fs::metadata(dir.path().join("log.old")).unwrap();
        assert!(old.len() > MAX_LOG_BYTES && old.len() < MAX_LOG_BYTES + 10);
        assert_eq!(old.permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn the_key_is_made_once_and_for_its_user_alone() {
        let dir = tempfile::tempdir().unwrap();
        let places = GuardPlaces { socket: dir.path().join("s/guard.sock"), folder: dir.path().join("guard") };
        places.make().unwrap();
        let key = places.key().unwrap();
        assert_eq!(places.key().unwrap(), key);
        let mode = fs::metadata(places.key_file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(&places.folder).unwrap().count(), 1);
        fs::set_permissions(places.key_file(), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(places.key().is_err());
    }
}
