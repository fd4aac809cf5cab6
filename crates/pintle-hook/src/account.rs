//! Where the daemon of the account is that this process runs as. Entries for the whole machine name no socket and no key:
//! whoever's agent starts the hook, their own daemon is asked. Nothing of the environment is read for it, since a
//! project's settings can set that.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::{geteuid, getuid};

use crate::key;
use crate::start::{FoundDaemon, START_FILE, Start};

/// What the machine says of its accounts.
const ACCOUNTS: &str = "/etc/passwd";

/// Where an account keeps what the guard needs, below its home folder.
const FOLDER: &str = ".local/share/pintle/guard";

/// The name of its key there.
const KEY: &str = "key";

/// The name of the socket there, where the daemon has not said another one.
const SOCKET: &str = "guard.sock";

/// The program of the daemon, beside this one.
const PROGRAM: &str = "pintle";

/// Where the daemon of an account finds programs.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// One line of the file of accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Account {
    name: String,
    home: PathBuf,
}

/// The daemon of the account that runs this process.
///
/// # Errors
/// It has none: the machine does not know the account, the process runs with somebody else's rights, or what the account
/// keeps there is not its own.
pub fn find() -> io::Result<FoundDaemon> {
    let user = getuid();
    if user != geteuid() {
        return Err(io::Error::other("the hook runs with the rights of another account"));
    }
    let accounts = fs::read_to_string(ACCOUNTS)?;
    let account = account(&accounts, user.as_raw()).ok_or_else(|| {
        io::Error::other(format!("{ACCOUNTS} has no home folder of the account {user}, so its daemon cannot be found"))
    })?;
    let folder = account.home.join(FOLDER);
    let key_file = folder.join(KEY);
    // It says where the daemon listens, and only its owner may have written it.
    if let Some(start) = kept(&folder)? {
        let socket = socket_of(&start).unwrap_or_else(|| folder.join(SOCKET));
        return Ok(FoundDaemon { socket, key_file, first: None });
    }
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let program = std::env::current_exe()?.with_file_name(PROGRAM);
    let first = first(&account, &program, &folder.join(SOCKET))?;
    Ok(FoundDaemon { socket: folder.join(SOCKET), key_file, first: Some(first) })
}

/// The key of the daemon of the account that runs this process, whether or not it is there; none of an account that the
/// machine does not know.
pub fn key_file() -> Option<PathBuf> {
    let accounts = fs::read_to_string(ACCOUNTS).ok()?;
    Some(account(&accounts, getuid().as_raw())?.home.join(FOLDER).join(KEY))
}

/// Whether a guard was set up in the home folder of the account that runs this process; where nobody can see that, one
/// was.
pub fn is_set_up() -> bool {
    key_file().is_some_and(|key| key.with_file_name(START_FILE).try_exists().unwrap_or(true))
}

/// What `folder` keeps of how its daemon is started, if it does.
fn kept(folder: &Path) -> io::Result<Option<Start>> {
    match key::own(&folder.join(START_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(file) => Start::read(file).map(Some),
    }
}

fn account(accounts: &str, user: u32) -> Option<Account> {
    accounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, id, _, _, home, _] = fields.as_slice() else { return None };
        let is_it = id.parse() == Ok(user) && home.starts_with('/') && *home != "/";
        is_it.then(|| Account { name: (*name).to_owned(), home: PathBuf::from(home) })
    })
}

/// The socket that a daemon was started with.
fn socket_of(start: &Start) -> Option<PathBuf> {
    let at = start.argv.iter().position(|word| word == "--socket")?;
    start.argv.get(at + 1).map(PathBuf::from).filter(|socket| socket.is_absolute())
}

fn first(account: &Account, program: &Path, socket: &Path) -> io::Result<Start> {
    let text = |path: &Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| io::Error::other(format!("{} is not UTF-8", path.display())))
    };
    let argv = [text(program)?, "guard".into(), "serve".into(), "--by-hook".into(), "--socket".into(), text(socket)?];
    let env = [("HOME", text(&account.home)?), ("USER", account.name.clone()), ("LOGNAME", account.name.clone())];
    let env = env.into_iter().chain([("PATH", PATH.to_owned())]);
    Ok(Start { argv: argv.into(), env: env.map(|(name, value)| (name.to_owned(), value)).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &str = "root:x:0:0:root:/root:/bin/sh\n# none\nanna:x:1000:1000:Anna,,,:/people/anna:/bin/zsh\n\
                         odd:x:1001:1001::home:/bin/sh\nnobody:x:1002:1002::/:/bin/false\nshort:x:1003\n";

    #[test]
    fn an_account_has_its_own_daemon() {
        let anna = Account { name: "anna".into(), home: "/people/anna".into() };
        assert_eq!(account(KNOWN, 1000), Some(anna.clone()));
        for user in [1, 1001, 1002, 1003] {
            assert_eq!(account(KNOWN, user), None, "{user}");
        }
        let start = first(&anna, Path::new("/usr/bin/pintle"), Path::new("/people/anna/s")).unwrap();
        assert_eq!(start.argv.join(" "), "/usr/bin/pintle guard serve --by-hook --socket /people/anna/s");
        assert_eq!(start.env[0], ("HOME".to_owned(), "/people/anna".to_owned()));
        assert_eq!(socket_of(&start), Some(PathBuf::from("/people/anna/s")));
        assert_eq!(socket_of(&Start { argv: vec!["p".into(), "--socket".into(), "s".into()], ..start }), None);
    }
}
