//! A PostgreSQL server of a test's own: its binaries, a free port, a folder that goes with it.
//!
//! The server dies with the thread that started it, however that ends; what a killed test left on the disk is removed
//! by the next one.

use std::fs::{self, DirBuilder};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, process};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, geteuid};

/// Who owns the databases.
const OWNER: &str = "pintle";

/// Whom the server runs as, where the test runs as root: the server refuses root.
const SYSTEM_USER: &str = "postgres";

/// What the folders of servers are called; the number of the process follows.
const FOLDER: &str = "pintle-postgres-";

/// How long a server may take to be ready, also after it was killed. It takes a second; a machine that builds
/// something meanwhile takes many.
const READY: Duration = Duration::from_secs(60);

/// How often a start is tried: another program may take the port first, or the server that was killed is not quite
/// gone.
const TRIES: u32 = 50;

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// What the server says once it takes connections.
const READY_WORDS: &str = "database system is ready to accept connections";

/// Numbers the folders and databases of this process.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A running server, or one that was killed and can be started again. Everything of it goes when it is dropped.
#[derive(Debug)]
pub struct Server {
    binaries: PathBuf,
    folder: PathBuf,
    user: Option<(u32, u32)>,
    port: u16,
    /// Whether the disk has what is committed; a test that kills no machine does without.
    syncs: bool,
    running: Option<Child>,
}

impl Server {
    /// Whether there is a PostgreSQL here.
    pub fn is_installed() -> bool {
        installed().is_some()
    }

    /// Starts a server and waits until it is ready.
    ///
    /// # Panics
    /// There is no PostgreSQL here, or it does not start.
    pub fn start() -> Self {
        Self::start_with(false)
    }

    /// The same with a server that syncs its commits, as one does that is not for tests: for those who measure.
    ///
    /// # Panics
    /// As [`Server::start`].
    pub fn start_syncing() -> Self {
        Self::start_with(true)
    }

    fn start_with(syncs: bool) -> Self {
        remove_leftovers();
        let folder =
            env::temp_dir().join(format!("{FOLDER}{}-{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
        DirBuilder::new().mode(0o700).create(&folder).expect("the temporary folder can be written");
        let user = geteuid().is_root().then(|| {
            let user = User::from_name(SYSTEM_USER).ok().flatten().expect("PostgreSQL's package made its user");
            chown(&folder, Some(user.uid.as_raw()), Some(user.gid.as_raw())).expect("root may");
            (user.uid.as_raw(), user.gid.as_raw())
        });
        let mut server = Self { binaries: binaries(), folder, user, port: 0, syncs, running: None };
        let data = server.data();
        let made = server
            .command("initdb")
            .args(["--auth", "trust", "--username", OWNER, "--encoding", "UTF8", "--locale", "C", "--no-sync", "-D"])
            .arg(&data)
            .output();
        succeeded("initdb", made);
        for _ in 0..TRIES {
            server.port = free_port();
            if server.try_run() {
                return server;
            }
        }
        panic!("the server does not start in `{}`", server.folder.display());
    }

    /// The URL of a new, empty database.
    ///
    /// # Panics
    /// The server does not make it.
    pub fn fresh_database(&self) -> String {
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        self.execute("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// The URL of the database `name`.
    pub fn url(&self, name: &str) -> String {
        format!("postgres://{OWNER}@127.0.0.1:{}/{name}", self.port)
    }

    /// Where it listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of its data, where `pg_hba.conf` and `postgresql.conf` stand.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Gives a file of the test to the server, which reads no secrets of others.
    ///
    /// # Panics
    /// It cannot be given away.
    pub fn own(&self, file: &Path) {
        if let Some((uid, gid)) = self.user {
            chown(file, Some(uid), Some(gid)).expect("root may");
        }
    }

    /// Runs SQL in `database`, as a client that has nothing to do with the code under test, and says what came of it:
    /// a line for each row, columns apart by `|`.
    ///
    /// # Panics
    /// It fails.
    pub fn execute(&self, database: &str, sql: &str) -> String {
        let url = if database.contains("://") { database.to_owned() } else { self.url(database) };
        let psql = Command::new(self.binaries.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &url, "-c", sql])
            .stdin(Stdio::null())
            .output();
        succeeded("psql", psql)
    }

    /// The schema of a database as SQL: all that `pg_dump` knows of it, without rows.
    ///
    /// # Panics
    /// It fails.
    pub fn schema(&self, url: &str) -> String {
        let dump = Command::new(self.binaries.join("pg_dump")).args(["--schema-only", "-d", url]).output();
        let dump = succeeded("pg_dump", dump);
        // Newer ones put a random word into each dump.
        dump.lines().filter(|line| !line.contains("restrict")).collect::<Vec<_>>().join("\n")
    }

    /// A database as SQL, rows and all, that servers of other versions take as well.
    ///
    /// # Panics
    /// It fails.
    pub fn dump(&self, url: &str) -> String {
        let args = ["--inserts", "--no-owner", "--no-privileges", "-d", url];
        let dump = succeeded("pg_dump", Command::new(self.binaries.join("pg_dump")).args(args).output());
        // The first word is the newest `psql`'s own, the setting one that older servers do not have.
        let is_of_all = |line: &&str| !line.starts_with("\\") && !line.starts_with("SET transaction_timeout");
        dump.lines().filter(is_of_all).map(|line| format!("{line}\n")).collect()
    }

    /// Runs the SQL of a file in the database at `url`, as one transaction.
    ///
    /// # Panics
    /// It fails.
    pub fn execute_file(&self, url: &str, file: &Path) {
        let mut psql = Command::new(self.binaries.join("psql"));
        psql.args(["-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-d", url, "-f"]).arg(file).stdin(Stdio::null());
        succeeded("psql", psql.output());
    }

    /// Kills the server and all its children, as a crash of the machine's system would (`kill -9`); nothing is written,
    /// nobody is told.
    ///
    /// # Panics
    /// It does not run.
    pub fn kill(&mut self) {
        let mut server = self.running.take().expect("it runs");
        // Stopped, it makes no more of them.
        kill(pid(&server), Signal::SIGSTOP).expect("it is ours");
        let children = children(&server);
        server.kill().expect("it is ours");
        server.wait().expect("it is ours");
        for child in children {
            // One that has ended is as good.
            let killed = kill(child, Signal::SIGKILL);
            assert!(killed.is_ok() || killed == Err(Errno::ESRCH), "{killed:?}");
            while is_alive(child) {
                thread::yield_now();
            }
        }
    }

    /// Stops the server for a while without a word: connections stay, answers stay away. [`Server::go_on`] ends it.
    ///
    /// # Panics
    /// It does not run.
    pub fn freeze(&self) {
        // Each connection has a process of its own. Stopped first, the server makes no more of them.
        self.signal(Signal::SIGSTOP);
        self.signal_children(Signal::SIGSTOP);
    }

    /// Ends [`Server::freeze`].
    ///
    /// # Panics
    /// It does not run.
    pub fn go_on(&self) {
        self.signal_children(Signal::SIGCONT);
        self.signal(Signal::SIGCONT);
    }

    /// Starts it again after [`Server::kill`], at the same port, and waits until it is ready.
    ///
    /// # Panics
    /// It does not start.
    pub fn restart(&mut self) {
        if let Some(server) = self.running.take() {
            stop(server);
        }
        for _ in 0..TRIES {
            if self.try_run() {
                return;
            }
            thread::sleep(PAUSE);
        }
        panic!("the server does not start again in `{}`", self.folder.display());
    }

    fn signal(&self, signal: Signal) {
        let server = self.running.as_ref().expect("it runs");
        kill(pid(server), signal).expect("it is ours");
    }

    fn signal_children(&self, signal: Signal) {
        for child in children(self.running.as_ref().expect("it runs")) {
            // One that has ended is as good.
            let told = kill(child, signal);
            assert!(told.is_ok() || told == Err(Errno::ESRCH), "{told:?}");
        }
    }

    /// Starts the server; says whether it became ready.
    fn try_run(&mut self) -> bool {
        let (port, data) = (self.port.to_string(), self.data());
        let fsync = if self.syncs { "fsync=on" } else { "fsync=off" };
        let mut server = self
            .command("setpriv")
            // With the thread that started it, however that ends.
            .args(["--pdeathsig", "KILL", "--"])
            .arg(self.binaries.join("postgres"))
            .arg("-D")
            .arg(&data)
            .args(["-p", &port, "-c", "listen_addresses=127.0.0.1", "-c", fsync, "-c"])
            .arg(format!("unix_socket_directories={}", self.folder.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("`setpriv` of util-linux");
        let lines = listen(&mut server);
        let end = Instant::now() + READY;
        loop {
            match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(READY_WORDS) => {
                    self.running = Some(server);
                    return true;
                }
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => panic!("the server is not ready after {READY:?}"),
                Err(RecvTimeoutError::Disconnected) => {
                    server.wait().expect("it is ours");
                    return false;
                }
            }
        }
    }

    /// A program of the server, as its user.
    fn command(&self, name: &str) -> Command {
        let own = self.binaries.join(name);
        let mut command = Command::new(if own.exists() { own } else { name.into() });
        command.stdin(Stdio::null()).current_dir(&self.folder);
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(server) = self.running.take() {
            stop(server);
        }
        remove(&self.folder);
    }
}

fn pid(server: &Child) -> Pid {
    Pid::from_raw(server.id().try_into().expect("a number of a process"))
}

fn children(server: &Child) -> Vec<Pid> {
    let pid = server.id();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("Linux says");
    children.split_ascii_whitespace().map(|pid| Pid::from_raw(pid.parse().expect("a number"))).collect()
}

/// Whether a process still runs; one that has ended may stay in the table until somebody asks for it.
fn is_alive(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// At once and in order: clients are cut off, children end.
fn stop(mut server: Child) {
    // They may have been left standing, and would never hear that the server ends. Some may have ended by now.
    for child in children(&server) {
        kill(child, Signal::SIGCONT).ok();
    }
    let told = [Signal::SIGCONT, Signal::SIGQUIT].map(|signal| kill(pid(&server), signal));
    if told != [Ok(()), Ok(())] || server.wait().is_err() {
        drop(server.kill());
    }
}

/// What the server says, line by line. Somebody has to read it as long as it lives.
fn listen(server: &mut Child) -> Receiver<String> {
    let (say, hear) = channel();
    let said = BufReader::new(server.stderr.take().expect("it is piped"));
    thread::spawn(move || {
        for line in said.lines().map_while(Result::ok) {
            // Once it is ready, nobody listens any more.
            drop(say.send(line));
        }
    });
    hear
}

fn succeeded(what: &str, how: std::io::Result<Output>) -> String {
    let output = how.unwrap_or_else(|e| panic!("{what}: {e}"));
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what}: {said}{complained}");
    said.trim_end().to_owned()
}

/// The newest version's folder of programs.
fn binaries() -> PathBuf {
    installed().expect("PostgreSQL is missing; install it: apt-get install -y postgresql")
}

/// The same, if there is any.
fn installed() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin"))))
        .filter(|(_, folder)| folder.join("initdb").exists())
        .max();
    let on_path = || {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path).find(|folder| folder.join("initdb").exists() && folder.join("postgres").exists())
    };
    newest.map(|(_, folder)| folder).or_else(on_path)
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
    listener.local_addr().expect("it listens").port()
}

/// Removes the folders of tests that were killed; their servers died with them.
fn remove_leftovers() {
    for entry in fs::read_dir(env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(FOLDER)?.split('-').next()?.parse::<i32>().ok());
        if owner.is_some_and(|owner| kill(Pid::from_raw(owner), None) == Err(Errno::ESRCH)) {
            remove(&entry.path());
        }
    }
}

fn remove(folder: &Path) {
    // Children that end right now may still write there, and another test may be faster.
    for _ in 0..TRIES {
        match fs::remove_dir_all(folder) {
            Ok(()) => return,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return,
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_starts_is_killed_starts_again_and_leaves_nothing() {
        let mut server = Server::start();
        let url = server.fresh_database();
        server.execute(&url, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)");
        server.kill();
        server.restart();
        assert_eq!(server.execute(&url, "SELECT n, 'x' FROM kept"), "7|x");
        assert!(server.schema(&url).contains("CREATE TABLE public.kept"));
        let (folder, owner) = (server.folder.clone(), server.running.as_ref().map(pid).expect("it runs"));
        drop(server);
        assert!(!folder.exists());
        assert_eq!(kill(owner, None), Err(Errno::ESRCH));
    }

    #[test]
    fn what_a_killed_test_left_is_removed() {
        let mut gone = Command::new("true").spawn().expect("there is `true`");
        gone.wait().expect("it ends");
        let left = env::temp_dir().join(format!("{FOLDER}{}-0", gone.id()));
        let ours = env::temp_dir().join(format!("{FOLDER}{}-x", process::id()));
        fs::create_dir_all(left.join("data")).expect("a folder");
        fs::create_dir_all(&ours).expect("a folder");
        remove_leftovers();
        let there = (left.exists(), ours.exists());
        fs::remove_dir_all(&ours).expect("it is there");
        assert_eq!(there, (false, true));
    }
}
