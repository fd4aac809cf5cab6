//! `pintle mcp accept`: a person looks at what a server changed about its tools, and takes it or not.

use anstyle::Style;
use clap::Args;
use pintle_doors::mcp::pins::{PinnedDefinition, ToolPin};
use pintle_host::config::Env;

use crate::clean::clean;
use crate::cli::guard::diff_lines;
use crate::cli::{Global, terminal};
use crate::error::{CliError, FAILED};
use crate::guard::places::GuardPlaces;
use crate::guard::tool_door::check_name;
use crate::guard::tool_pins::PinFile;
use crate::operator;

const BOLD: Style = Style::new().bold();

/// Flags of `mcp accept`.
#[derive(Debug, Args)]
pub(in crate::cli) struct AcceptArgs {
    /// The server, as `mcp proxy --name` has it
    #[arg(value_name = "NAME")]
    name: String,
    /// One of its tools, by the server's own name [default: all that changed]
    #[arg(value_name = "TOOL")]
    tool: Option<String>,
}

pub(super) fn run(global: &Global, args: &AcceptArgs) -> Result<u8, CliError> {
    operator::require()?;
    check_name(&args.name)?;
    let env = Env::of_process()?;
    let file = PinFile::of(&GuardPlaces::of(&env, global.home.as_deref(), None)?, &args.name);
    let known = file.known();
    if !known.contains(&args.name) {
        let error = CliError::usage(format!("the tool door knows no server `{}`", args.name));
        return Err(match known.as_slice() {
            [] => error.hint("it knows a server once a client has listed its tools through the door"),
            known => error.hint(format!("it knows {}", known.join(", "))),
        });
    }
    let failed = |error: std::io::Error| CliError::failed(format!("what was pinned cannot be used: {error}"));
    let pins = file.read().map_err(failed)?;
    let is_meant = |tool: &str| args.tool.as_deref().is_none_or(|meant| meant == tool);
    let waiting: Vec<(&str, &ToolPin)> = pins.waiting().filter(|(tool, _)| is_meant(tool)).collect();
    if waiting.is_empty() {
        let what = args.tool.as_ref().map_or_else(String::new, |tool| format!(" about `{tool}`"));
        terminal::tell(&format!("nothing to accept: nothing{what} has changed at `{}`\n", args.name))?;
        return Ok(0);
    }
    for (tool, pin) in waiting {
        let Some(offered) = &pin.offered else { continue };
        let (before, after) = (lines(&pin.accepted), lines(offered));
        terminal::tell(&format!("{BOLD}{}{BOLD:#}\n{}", clean(tool), diff_lines(&before, &after)))?;
        if !operator::confirm(&format!("accept `{tool}` as it is now?"))? {
            terminal::note("not accepted; the tool stays withheld");
            return Ok(FAILED);
        }
        if !file.change(|pins| pins.accept(tool, &offered.digest)).map_err(failed)? {
            return Err(CliError::failed(format!(
                "`{tool}` changed while you were looking at it; nothing was accepted"
            ))
            .hint("run it again"));
        }
        terminal::tell(&format!("accepted: {}\n", clean(tool)))?;
    }
    Ok(0)
}

/// A definition on lines of its own.
fn lines(definition: &PinnedDefinition) -> String {
    let value = pintle_domain::json::parse(&definition.shown).unwrap_or_else(|_| definition.shown.as_str().into());
    format!("{}\n", pintle_guard::settings::pretty(&value, "  ", "\n", ""))
}
