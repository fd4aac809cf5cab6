//! `pintle demo`: one whole turn through real hooks, offline, without a key.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use pintle_agent::TurnHandle;
use pintle_engine::Watcher;
use tokio_util::sync::CancellationToken;

use self::scratch::{PROMPT, Scratch, check, write};
use super::stops::Stops;
use super::turn::AtTheEnd;
use super::{Global, session, terminal, why};
use crate::clean::foreign;
use crate::error::CliError;
use crate::table::out_columns;
use crate::timeline::Timeline;

mod scratch;
mod serving;

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
