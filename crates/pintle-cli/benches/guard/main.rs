//! What a guarded coding agent waits for at each of its calls: the hook, from its start to its end, with a daemon that
//! is warm; beside it the least that a hook could do.
//!
//! `cargo bench -p pintle-cli --bench guard` measures, anything else runs each case once. `PINTLE_HOOK` names the hook,
//! as `cargo xtask hook` builds it; otherwise the one beside the program is taken.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use pintle_domain::json::json;
use pintle_domain::rule::{HandlerType, Rule};
use pintle_domain::store::{Actor, RuleChange};
use pintle_host::error::HostError;
use pintle_host::host::load;
use pintle_host::host_rules::RuleEnvironment;
use report::{Report, shown};
use rows::gate;
use tempfile::TempDir;

#[expect(dead_code, reason = "it is shared, and notes are for others")]
#[path = "../../../process/benches/hooks/report.rs"]
mod report;
#[expect(dead_code, reason = "it is shared, and rules that are not reached are for others")]
#[path = "../rules/rows.rs"]
mod rows;

/// The median may be so many times that of the floor.
const RATIO_LIMIT: f64 = 3.0;
/// Most that nineteen of twenty calls may take.
const P95_LIMIT: Duration = Duration::from_millis(5);
/// Most memory that an idle daemon may hold, in KiB.
const IDLE_LIMIT_KIB: u64 = 30 << 10;
/// After how long without a call a daemon is idle.
const IDLE_AFTER: Duration = Duration::from_secs(8);
/// How many rules each call passes.
const RULES: usize = 10;
/// A condition about the text of the shell that does not hold, as most do not at most calls.
const HOLDS_NEVER: &str = "shell.commands.exists(command, command.name == 'git')";
/// Calls of a round.
const CALLS: usize = 40;
/// A call of the shell, as Claude Code 2.1.330 tells its hooks of it.
const PAYLOAD: &str = include_str!("call.json");

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("guard: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> anyhow::Result<()> {
    let Some(mut report) = Report::from_args() else { return Ok(()) };
    if report.wants("guard") {
        hooks(&mut report)?;
    }
    report.print()
}

/// The hook against its floor, then what the daemon holds.
fn hooks(report: &mut Report) -> anyhow::Result<()> {
    let (home, looked) = (Home::new("depth < 100")?, Home::new(HOLDS_NEVER)?);
    let (daemon, _looking) = (Daemon::open(&home)?, Daemon::open(&looked)?);
    let floor = Floor::new(&home)?;
    let [all, by_condition] = [const { Mutex::new(Vec::new()) }; 2];
    let mut hook = |times| took(times, &mut home.hook(), &mut |one| all.lock().expect("one thread").push(one));
    let mut look =
        |times| took(times, &mut looked.hook(), &mut |one| by_condition.lock().expect("one thread").push(one));
    let mut bare = |times| took(times, &mut floor.command(), &mut |_| ());
    let [asked, conditions, least] = report.medians(CALLS, [&mut hook, &mut look, &mut bare])?;
    for (what, ours, all) in [
        (format!("a call that {RULES} scripts are asked about: the hook"), asked, all),
        (format!("a call that {RULES} conditions let pass: the hook"), conditions, by_condition),
    ] {
        let mut all = all.into_inner().expect("one thread");
        all.sort();
        let p95 = all[all.len() * 95 / 100];
        let ratio = ours.as_secs_f64() / least.as_secs_f64();
        let told = [shown(ours), shown(least), format!("{ratio:.2}"), format!("<= {RATIO_LIMIT}")];
        report.row(&what, told, Some(ratio <= RATIO_LIMIT));
        report.limited("  19 of 20 of them", p95, P95_LIMIT, shown);
    }
    let show = |kib: u64| format!("{:.1} MiB", kib as f64 / 1024.0);
    // What nobody has asked for longer is idle.
    thread::sleep(IDLE_AFTER);
    report.limited("the daemon, idle: resident memory", daemon.resident_kib()?, IDLE_LIMIT_KIB, show);
    Ok(())
}

/// Runs a hook so many times, each with the call for its input.
fn took(times: usize, hook: &mut Command, each: &mut dyn FnMut(Duration)) -> anyhow::Result<Duration> {
    let mut sum = Duration::ZERO;
    for _ in 0..times {
        let start = Instant::now();
        let mut child = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        // Dropped at once: the hook reads to its end.
        child.stdin.take().context("it has an input")?.write_all(PAYLOAD.as_bytes())?;
        let output = child.wait_with_output()?;
        let one = start.elapsed();
        let answer = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success() && !answer.contains("\"deny\""), "the call was refused: {output:?}");
        each(one);
        sum += one;
    }
    Ok(sum)
}

/// A person's folders, with rules that let calls of the shell pass.
struct Home(TempDir);

impl Home {
    /// Where each rule asks its script if `condition` holds.
    fn new(condition: &str) -> anyhow::Result<Self> {
        let home = Self(tempfile::tempdir()?);
        fs::create_dir_all(home.path().join("config/pintle"))?;
        let config = home.path().join("config/pintle/pintle.toml");
        fs::write(&config, "")?;
        let (env, loaded) = load(Some(&config), Some(&home.path().join("data/pintle"))).map_err(said)?;
        let rules = RuleEnvironment::of(&loaded.config, &env).map_err(said)?;
        let store = rules.open_store(&loaded.config).map_err(said)?;
        let by = Actor { name: "bench".into(), at: jiff::Timestamp::now(), reason: String::new() };
        store.change((0..RULES).map(|number| RuleChange::Create(Box::new(rule(number, condition)))).collect(), &by)?;
        Ok(home)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn pintle(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pintle"));
        command.env_clear().env("PATH", "/usr/bin:/bin").current_dir(self.path()).args(words);
        for (name, folder) in [("HOME", ""), ("XDG_CONFIG_HOME", "config"), ("XDG_DATA_HOME", "data")] {
            command.env(name, self.path().join(folder));
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The hook as an installation writes it into the settings.
    fn hook(&self) -> Command {
        let beside = || PathBuf::from(env!("CARGO_BIN_EXE_pintle")).with_file_name("pintle-hook");
        let mut command = Command::new(std::env::var_os("PINTLE_HOOK").map_or_else(beside, PathBuf::from));
        command.env_clear().args(["--host", "claude", "--event", "PreToolUse", "--deadline", "60000"]);
        command.arg("--socket").arg(self.path().join("data/pintle/guard/guard.sock"));
        command.arg("--key-file").arg(self.path().join("data/pintle/guard/key"));
        command
    }
}

/// A script that is asked at each call of the shell for which `condition` holds.
fn rule(number: usize, condition: &str) -> Rule {
    let source = format!(
        "function handle(event) {{ const command = event.toolInput.command ?? ''; \
         return {{ decision: /never-{number}/.test(command) ? 'block' : 'allow' }}; }}"
    );
    Rule {
        matcher: "^exec$".to_owned(),
        if_expr: condition.to_owned(),
        ..gate(&format!("bench-{number}"), HandlerType::Script, &json!({ "source": source }))
    }
}

fn said(error: HostError) -> anyhow::Error {
    anyhow::Error::msg(error.message)
}

/// `pintle guard serve`, ended when it is dropped.
struct Daemon(Child);

impl Daemon {
    fn open(home: &Home) -> anyhow::Result<Self> {
        let mut daemon = Self(home.pintle(&["guard", "serve"]).spawn()?);
        let stderr = daemon.0.stderr.take().context("it has an error output")?;
        let mut lines = BufReader::new(stderr).lines();
        let listens = lines.by_ref().map_while(Result::ok).any(|line| line.contains("guarding at"));
        ensure!(listens, "the daemon does not listen");
        // What it says later is read, so that it never waits to say it.
        thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("daemon: {line}")));
        Ok(daemon)
    }

    fn resident_kib(&self) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        line.trim().trim_end_matches(" kB").parse().context("VmRSS is not a number")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The least that a hook can do, and somebody who answers it at once.
struct Floor {
    program: PathBuf,
    socket: PathBuf,
}

impl Floor {
    fn new(home: &Home) -> anyhow::Result<Self> {
        let floor = Self { program: home.path().join("floor"), socket: home.path().join("floor.sock") };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/guard/floor.c");
        let built = Command::new("cc").args(["-O2", "-static", "-o"]).arg(&floor.program).arg(source).status()?;
        ensure!(built.success(), "the floor cannot be built");
        let listener = UnixListener::bind(&floor.socket)?;
        // Ends with the benchmark.
        thread::spawn(move || {
            for mut hook in listener.incoming().flatten() {
                let mut call = Vec::new();
                let answered = hook.read_to_end(&mut call).and_then(|_| hook.write_all(b"{}\n"));
                answered.unwrap_or_else(|error| eprintln!("floor: {error}"));
            }
        });
        Ok(floor)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().arg(&self.socket);
        command
    }
}
