//! Children that nobody asks: what they cost the host, and whether they let it sleep.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{bail, ensure};
use pintle_domain::checkpoint::BeforeTool;
use pintle_domain::ruling::Ruling;

use crate::child::Answers;
use crate::home::Home;
use crate::proc;
use crate::report::Report;
use crate::stage::{Stage, call, forgetful, interceptor, sized, who};

/// The variable that makes this program a host that waits; its value is the number of its children.
const VARIABLE: &str = "PINTLE_BENCH_IDLE";
/// What such a host says when its children have answered.
const READY: &str = "ready";
/// What `pintle chat` says when its conversation has begun.
const GREETING: &str = "session ";

/// How many children there are.
const CHILDREN: usize = 50;
/// Most memory of the host that each may take, in KiB.
const MEMORY_LIMIT_KIB: f64 = 50.0;
/// Most threads of the host that each may take.
const THREADS_LIMIT: f64 = 0.2;
/// Most descriptors of the host that each may take.
const DESCRIPTORS_LIMIT: f64 = 4.0;
/// Most wake-ups of the program in a minute: it looks at its store once, which wakes some threads.
const CHAT_WAKES_LIMIT: u64 = 40;
/// The runtime lets threads go that had nothing to do for ten seconds; they are not of idle children.
const SETTLING: Duration = Duration::from_secs(15);
/// How long wake-ups are counted.
const WATCHED: Duration = Duration::from_secs(60);

/// The number of children, if this program was started to wait with them.
pub(crate) fn wanted() -> Option<usize> {
    std::env::var(VARIABLE).ok()?.parse().ok()
}

/// A host with so many children and nothing else, each of which is asked once. Waits until its input ends.
pub(crate) fn serve(children: usize) -> anyhow::Result<()> {
    let (stage, engine) = (Stage::new()?, forgetful());
    stage.mount_children(&engine, children, &interceptor(Answers::Continue)?)?;
    let hooks = engine.dispatcher(who());
    stage.run(async move {
        let (_, ruling) = hooks.check(BeforeTool { call: call("idle"), owner: None }).await;
        ensure!(matches!(ruling, Ruling::Proceed), "the call did not pass: {ruling:?}");
        Ok(())
    })?;
    writeln!(std::io::stdout(), "{READY}")?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    stage.runtime.block_on(engine.close());
    stage.close()
}

/// A process that waits until its input ends.
struct Waiting(Child);

impl Waiting {
    /// Starts `command`, until a line of its output or its errors has `word` in it.
    fn start(mut command: Command, word: &str) -> anyhow::Result<Self> {
        let mut waiting = Self(command.stdin(Stdio::piped()).spawn()?);
        let child = &mut waiting.0;
        let said: Box<dyn std::io::Read> = match (child.stdout.take(), child.stderr.take()) {
            (Some(stdout), None) => Box::new(stdout),
            (_, Some(stderr)) => Box::new(stderr),
            (None, None) => bail!("one of its outputs is piped"),
        };
        let mut heard = String::new();
        for line in BufReader::new(said).lines() {
            heard.push_str(&line?);
            if heard.contains(word) {
                return Ok(waiting);
            }
            heard.push('\n');
        }
        bail!("a process that was to wait ended:\n{heard}")
    }

    fn host(children: usize) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.env(VARIABLE, children.to_string()).stdout(Stdio::piped());
        Self::start(command, READY)
    }

    fn chat(home: &Home) -> anyhow::Result<Self> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pintle"));
        command.env_clear().current_dir(home.path()).stdout(Stdio::null()).stderr(Stdio::piped());
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
            command.env(name, home.path());
        }
        command.args(["chat", "--config", "pintle.toml", "--home", "data"]);
        Self::start(command, GREETING)
    }

    fn status(&self, name: &str) -> anyhow::Result<f64> {
        Ok(proc::status(Path::new(&format!("/proc/{}", self.0.id())), name)? as f64)
    }

    fn sleeps(&self) -> anyhow::Result<BTreeMap<u32, u64>> {
        proc::sleeps(self.0.id())
    }

    fn end(mut self) -> anyhow::Result<()> {
        drop(self.0.stdin.take());
        let status = self.0.wait()?;
        ensure!(status.success(), "a process that waited failed: {status}");
        Ok(())
    }
}

/// How often the threads of each process were woken in a minute.
fn wakes_a_minute(processes: [&Waiting; 4]) -> anyhow::Result<[u64; 4]> {
    let look = || processes.iter().map(|process| process.sleeps()).collect::<anyhow::Result<Vec<_>>>();
    let watched = sized(WATCHED, Duration::ZERO);
    let before = look()?;
    sleep(watched);
    let mut wakes = before.iter().zip(look()?).map(|(before, after)| proc::wakes(before, &after));
    Ok([(); 4].map(|()| wakes.next().unwrap_or_default()))
}

/// A host alone and one with children, and the program itself alone and with children, all at once.
pub(crate) fn children(_: &Stage, report: &mut Report) -> anyhow::Result<()> {
    let number = sized(CHILDREN, 3);
    let (none, some) = (Home::new(0)?, Home::new(number)?);
    let (alone, with) = (Waiting::host(0)?, Waiting::host(number)?);
    let (chat, chat_with) = (Waiting::chat(&none)?, Waiting::chat(&some)?);
    sleep(sized(SETTLING, Duration::ZERO));
    let [woken_alone, woken, chat_woken, chat_with_woken] = wakes_a_minute([&alone, &with, &chat, &chat_with])?;
    let each = |name| Ok::<_, anyhow::Error>((with.status(name)? - alone.status(name)?) / number as f64);
    let (memory, threads) = (each("RssAnon:")?, each("Threads:")?);
    let open = |process: &Waiting| proc::descriptors(process.0.id());
    let descriptors = (open(&with)? as f64 - open(&alone)? as f64) / number as f64;
    let chat_memory = (chat_with.status("RssAnon:")? - chat.status("RssAnon:")?) / number as f64;
    for process in [alone, with, chat, chat_with] {
        process.end()?;
    }
    let kib = |kib: f64| format!("{kib:.1} KiB");
    report.limited("50 idle children: wake-ups of their host and adopters a minute", woken, 0, |n| n.to_string());
    report.noted("  a host without children: wake-ups a minute", woken_alone.to_string());
    report.limited("  memory of the host, each", memory, MEMORY_LIMIT_KIB, kib);
    report.limited("  threads of the host, each", threads, THREADS_LIMIT, |n| format!("{n:.2}"));
    report.limited("  descriptors of the host, each", descriptors, DESCRIPTORS_LIMIT, |n| format!("{n:.2}"));
    let of_chat = |n: u64| n.to_string();
    report.limited("pintle chat with 50 idle children: wake-ups a minute", chat_with_woken, CHAT_WAKES_LIMIT, of_chat);
    report.limited("  pintle chat without children: wake-ups a minute", chat_woken, CHAT_WAKES_LIMIT, of_chat);
    report.noted("  memory of the program, each", kib(chat_memory));
    Ok(())
}
