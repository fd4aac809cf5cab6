//! `pintle demo`: one whole turn through real hooks, offline, without a key.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::TurnHandle;
use clap::Args;
use engine::Watcher;
use tokio_util::sync::CancellationToken;

use super::stops::Stops;
use super::turn::AtTheEnd;
use super::{Global, session, terminal, why};
use crate::clean::foreign;
use crate::error::CliError;
use crate::table::out_columns;
use crate::timeline::Timeline;

mod serving;

/// What the demo asks.
const PROMPT: &str =
    "What is the weather in Beijing, what do my notes say, what is my key, and force-push main for me.";

/// The demo's files, as they are written.
const FILES: [(&str, &str); 8] = [
    ("pintle.toml", include_str!("../demo/pintle.toml")),
    ("replies.json", include_str!("../demo/replies.json")),
    ("weather.sh", include_str!("../demo/weather.sh")),
    ("guard.sh", include_str!("../demo/guard.sh")),
    ("redactor.sh", include_str!("../demo/redactor.sh")),
    ("hooks.d/secrets.toml", include_str!("../demo/secrets.toml")),
    ("workspace/notes.txt", include_str!("../demo/notes.txt")),
    ("workspace/.env", include_str!("../demo/env.txt")),
];

/// Flags of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Keep the demo's files in this folder, to change them and run it again
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Serve the console over the demo, with an approval that waits and a made-up history, until Ctrl-C
    #[arg(long, conflicts_with = "keep")]
    serve: bool,
    /// With --serve: where to listen [default: 127.0.0.1:18790]
    #[arg(long, value_name = "ADDR", num_args = 1.., requires = "serve")]
    listen: Vec<String>,
}

pub(super) fn run(global: &Global, args: &DemoArgs) -> Result<u8, CliError> {
    if args.serve {
        return serving::run(global, &args.listen);
    }
    let scratch = Scratch::new(args.keep.clone())?;
    check(&scratch.folder)?;
    write(&scratch.folder)?;
    let own = Global {
        config: Some(scratch.folder.join("pintle.toml")),
        home: Some(scratch.folder.join("home")),
        ..global.clone()
    };
    let runtime = terminal::runtime()?;
    // The store goes with the folder: a command that asks it later would lead nowhere.
    let why = args.keep.is_some().then(|| session::flags(&own));
    let code = runtime.block_on(turn(&own, why))?;
    terminal::say("\nThe model was scripted; the hooks, the tools, the permit and the record were real.\n")?;
    if args.keep.is_some() {
        let folder = scratch.folder.display();
        terminal::say(&format!(
            "Everything is in {folder}. Look at what every hook did and why:\n  \
             pintle why --last -c {folder}/pintle.toml --home {folder}/home\n"
        ))?;
    } else {
        terminal::say(&format!("\nWhat `pintle why` says of it:\n\n{}", why::newest(&own)?))?;
        terminal::say(
            "\nNext: `pintle demo --keep DIR` keeps the files, `pintle init` writes your own configuration.\n",
        )?;
    }
    Ok(code)
}

async fn turn(global: &Global, why: Option<String>) -> Result<u8, CliError> {
    let timeline: Vec<Arc<dyn Watcher>> =
        vec![Arc::new(Timeline::new(anstream::stdout(), true).explained_by(why).fitting(out_columns()))];
    let host = session::open(global, timeline)?;
    let runner = host.runner(None, None)?;
    session::ready(&host, true).await?;
    let by = session::WorkedBy { agent: &runner.settings().id, agent_changed: false };
    let mut conversation = session::conversation(&host, None, by)?;
    let user_output = Arc::new(AtTheEnd::default());
    let cancel = CancellationToken::new();
    let turn_handle = TurnHandle::new(&cancel);
    let mut stops = Stops::listen(true)?;
    let turn = runner.turn(&mut conversation, PROMPT, user_output.clone(), &turn_handle);
    let (report, _asked) = stops.work(turn, &cancel).await;
    host.close().await;
    let (code, complaint) = session::verdict(&report);
    if let Some(complaint) = complaint {
        terminal::note(&complaint);
    }
    terminal::say(&foreign(&format!("\n{}", user_output.text(&report.reply))))?;
    Ok(code)
}

/// Where the demo's files stand; removed afterwards unless the user keeps them.
struct Scratch {
    folder: PathBuf,
    kept: bool,
}

impl Scratch {
    fn new(keep: Option<PathBuf>) -> Result<Self, CliError> {
        let cwd = std::env::current_dir()
            .map_err(|error| CliError::failed(format!("the working directory cannot be read: {error}")))?;
        match keep {
            Some(folder) => Ok(Self { folder: cwd.join(folder), kept: true }),
            None => {
                let folder = std::env::temp_dir().join(format!("pintle-demo-{}", uuid::Uuid::new_v4()));
                Ok(Self { folder, kept: false })
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.kept
            && self.folder.exists()
            && let Err(error) = std::fs::remove_dir_all(&self.folder)
        {
            tracing::warn!("the demo's files in {} stay: {error}", self.folder.display());
        }
    }
}

/// Refuses a folder with files that are not the demo's, since what the configuration in it says is run without being
/// accepted first. A folder that the demo made has all of its files, changed or not.
fn check(folder: &Path) -> Result<(), CliError> {
    let mut entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(CliError::failed(format!("{} cannot be used: {error}", folder.display()))),
    };
    let is_ours = |name: &str| folder.join(name).symlink_metadata().is_ok_and(|of| of.is_file());
    let Some((missing, _)) = FILES.iter().find(|(name, _)| !is_ours(name)) else { return Ok(()) };
    if entries.next().is_none() {
        return Ok(());
    }
    let folder = folder.display();
    Err(CliError::usage(format!("{folder} is not a folder of the demo: it is not empty, and has no file `{missing}`"))
        .hint("name a folder that is new or empty")
        .hint("to run what is in it: `pintle trust` and `pintle run` there"))
}

/// Writes the demo's files. A file that the user changed is not overwritten.
fn write(folder: &Path) -> Result<(), CliError> {
    let failed = |what: &Path, error: std::io::Error| {
        CliError::failed(format!("the demo's files cannot be written: {}: {error}", what.display()))
    };
    for (name, text) in FILES {
        let file = folder.join(name);
        let around = file.parent().unwrap_or(folder);
        std::fs::create_dir_all(around).map_err(|error| failed(around, error))?;
        if !file.exists() {
            std::fs::write(&file, text).map_err(|error| failed(&file, error))?;
        }
    }
    Ok(())
}
