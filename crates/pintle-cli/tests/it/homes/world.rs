//! A home with everything around it, at the one path where it may lie: the digests in `trust.json` and the audit chain
//! cover paths, so it can be moved nowhere else.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pintle_store::keyring::{KEY_FILE, KeySource, Keyring};
use pintle_testkit::http::{HttpStub, ReceivedRequest as Request, StubAnswer};
use pintle_testkit::postgres::Server;
use tokio::runtime::Runtime;

use crate::env::{PINTLE, Seen, TestEnv};
use crate::secrets::on_terminal;

/// Longer than a session stays somebody's who was killed, on PostgreSQL.
const LEASE: Duration = Duration::from_secs(20);

/// Where homes lie while a test works on them.
const PLACE: &str = "/tmp/pintle-homes";

/// The port of the endpoint that the rule `service` asks.
const PORT: u16 = 7471;

/// How many requests the endpoint answers, more than any test makes.
const ANSWERS: usize = 50;

/// The key of secrets where the home has none of its own, as on edition standard.
const KEY: (&str, &str) = ("PINTLE_ENCRYPTION_KEY", "5f0c1e2d3b4a59687786958493a2b1c0dfeeedfc0b1a29384756657483920a1b");

/// Prints all rows of a file.
const ROWS: &str = "import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
tables = [name for (name,) in db.execute(\"SELECT name FROM sqlite_master WHERE type = 'table'\").fetchall()]
for table in tables:
    for row in db.execute(f'SELECT * FROM \"{table}\"'):
        print(table, repr(row))";

/// The database of a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Sqlite,
    Postgres,
}

impl Kind {
    /// The folder of homes of this kind.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }

    /// An address of loopback of its own, so that the port is free whatever else runs.
    fn host(self) -> &'static str {
        match self {
            Self::Sqlite => "127.71.0.1",
            Self::Postgres => "127.71.0.2",
        }
    }
}

/// A home at work.
pub(super) struct World {
    pub(super) env: TestEnv,
    pub(super) kind: Kind,
    server: Option<(Server, String)>,
    /// Held as long as the home lies there.
    _alone: File,
}

/// The endpoint of the rule `service`.
pub(super) struct Endpoint {
    stub: HttpStub,
    /// What it runs on.
    _runtime: Runtime,
}

impl Endpoint {
    /// What it was asked so far.
    pub(super) fn seen(&self) -> Vec<Request> {
        self.stub.seen()
    }
}

/// The folder of the fixture, in the crate.
pub(super) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/homes")
}

impl World {
    /// Lays a copy of the folder `from` at its place, beside an empty database or one that holds what `from` dumped.
    pub(super) fn of(from: &Path, kind: Kind) -> Self {
        let place = Path::new(PLACE);
        fs::create_dir_all(place).unwrap();
        let alone = File::create(place.join(format!("{}.lock", kind.word()))).unwrap();
        alone.lock().unwrap();
        // A test that was killed left its copy.
        fs::remove_dir_all(place.join(kind.word())).ok();
        let env = TestEnv::at(place, kind.word());
        copy(from, &env.path(""));
        let server = (kind == Kind::Postgres).then(|| {
            let server = Server::start();
            let url = server.fresh_database();
            let dump = env.path("dump.sql");
            if dump.exists() {
                server.execute_file(&url, &dump);
            }
            (server, url)
        });
        let world = Self { env, kind, server, _alone: alone };
        world.name_places();
        world
    }

    /// Writes into the configuration where the database and the endpoint are.
    fn name_places(&self) {
        let store = self.server.as_ref().map_or("sqlite://pintle.db", |(_, url)| url);
        for name in ["config/pintle/pintle.toml", "rules.toml"] {
            let file = self.env.path(name);
            if let Ok(text) = fs::read_to_string(&file) {
                fs::write(&file, text.replace("@HOST@", self.kind.host()).replace("@STORE@", store)).unwrap();
            }
        }
    }

    fn vars(&self) -> &'static [(&'static str, &'static str)] {
        match self.kind {
            Kind::Sqlite => &[],
            Kind::Postgres => &[KEY],
        }
    }

    /// The program with `args`.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.env.command(PINTLE);
        command.args(args).envs(self.vars().iter().copied()).stdin(Stdio::null());
        command
    }

    /// How the program ends and what it says, with nothing taken out but where the database is.
    pub(super) fn said(&self, args: &[&str]) -> Seen {
        let output = self.command(args).output().unwrap();
        let text = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.server.iter().fold(text, |text, (_, url)| text.replace(url, "[store]"))
        };
        Seen { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// What the program writes to standard output, where it ends well.
    pub(super) fn out(&self, args: &[&str]) -> String {
        let until = Instant::now() + LEASE;
        loop {
            let seen = self.said(args);
            // Whoever was killed has their session for a while.
            if seen.err.contains("is in use by") && Instant::now() < until {
                continue;
            }
            assert_eq!(seen.code, Some(0), "{args:?}: {seen}");
            return seen.out;
        }
    }

    /// What a person sees on a terminal, who says yes to everything; the command ends well.
    pub(super) fn operate(&self, args: &[&str]) -> String {
        let seen = on_terminal(&self.env, self.vars(), args);
        assert_eq!(seen.code, Some(0), "{args:?}: {seen}");
        seen.out
    }

    /// The endpoint that lets every call pass.
    pub(super) fn endpoint(&self) -> Endpoint {
        let runtime = Runtime::new().unwrap();
        let answers = vec![StubAnswer::json(r#"{"decision":"allow"}"#); ANSWERS];
        let stub = runtime.block_on(HttpStub::start_at(&format!("{}:{PORT}", self.kind.host()), answers));
        Endpoint { stub, _runtime: runtime }
    }

    /// The text of a file in the agents' workspace.
    pub(super) fn work(&self, name: &str) -> String {
        fs::read_to_string(self.env.path("work").join(name)).unwrap_or_default()
    }

    /// The keys that this home is sealed with.
    pub(super) fn keyring(&self) -> Keyring {
        let primary =
            self.vars().iter().find(|(name, _)| *name == KEY.0).map(|(name, key)| (*name, OsString::from(key)));
        let file = Some(self.env.path("data/pintle").join(KEY_FILE));
        Keyring::open(&KeySource { primary, old: None, file }).unwrap()
    }

    /// Changes rows behind the program's back.
    pub(super) fn execute(&self, sql: &str) {
        let Some((server, url)) = &self.server else {
            let script = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.executescript(sys.argv[2])";
            let mut python = self.env.command("python3");
            python.args(["-c", script]).arg(self.env.path("data/pintle/pintle.db")).arg(sql);
            assert!(python.status().unwrap().success(), "{sql}");
            return;
        };
        server.execute(url, sql);
    }

    /// Takes the database to the schema `number`.
    pub(super) fn migrate(&self, number: u32) {
        let url = self.server.as_ref().map_or("sqlite://pintle.db", |(_, url)| url);
        pintle_store::migrate_to(url, &self.env.path("data/pintle"), number).unwrap();
    }

    /// All rows of all tables, a line each.
    pub(super) fn rows(&self) -> Vec<String> {
        let lines = match &self.server {
            Some((server, url)) => {
                let tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1";
                let of = |table: &str| server.execute(url, &format!("SELECT '{table}', to_jsonb(t) FROM {table} t"));
                server.execute(url, tables).lines().map(of).collect::<Vec<_>>().join("\n")
            }
            None => {
                let mut python = self.env.command("python3");
                let output = python.args(["-c", ROWS]).arg(self.env.path("data/pintle/pintle.db")).output().unwrap();
                String::from_utf8(output.stdout).unwrap()
            }
        };
        let mut lines: Vec<String> = lines.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
        assert!(lines.len() > 100, "a home has more rows: {lines:?}");
        lines.sort();
        lines
    }

    /// The database as SQL, if it is none in the home.
    pub(super) fn dump(&self) -> Option<String> {
        self.server.as_ref().map(|(server, url)| server.dump(url))
    }
}

/// Copies a folder with all that is in it. Only its owner can read what lies in the home, which git does not keep.
pub(super) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
        if target.parent().is_some_and(|folder| folder.ends_with("data/pintle")) {
            let mode = if target.is_dir() { 0o700 } else { 0o600 };
            fs::set_permissions(&target, Permissions::from_mode(mode)).unwrap();
        }
    }
    if to.ends_with("data/pintle") {
        fs::set_permissions(to, Permissions::from_mode(0o700)).unwrap();
    }
}
