//! `pintle trust [PATH]`: what a configuration that was merely found would run, and its acceptance by content.

use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use clap::Args;
use pintle_domain::json::Value;

use super::{Global, terminal};
use crate::clean::clean;
use crate::error::{CliError, FAILED};
use crate::operator;
use crate::text::not_watched;
use pintle_host::config::trust::{Coverage, Survey, TrustEntry, TrustStanding, accept, covers, survey, unread};
use pintle_host::config::{Env, LoadOptions};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();

/// How much of a digest is shown: enough to compare two by eye.
const SHOWN_DIGEST: usize = 12;

/// Flags of `trust`.
#[derive(Debug, Args)]
pub struct TrustArgs {
    /// A configuration file, or the folder that it is in [default: the nearest one in this folder or above]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
}

pub(super) fn run(global: &Global, args: &TrustArgs) -> Result<u8, CliError> {
    if global.config.is_some() {
        return Err(CliError::usage("`trust` takes no --config").hint("name the file behind it: `pintle trust FILE`"));
    }
    let allowed = operator::require();
    let env = Env::of_process()?;
    let options = LoadOptions { home: global.home.as_deref(), ..LoadOptions::default() };
    let survey = match (survey(&env, &options, args.path.as_deref()), &allowed) {
        (Ok(survey), _) => survey,
        // From inside the agent not even what was accepted can be read, and that is not what is wrong.
        (Err(_), Err(refused)) => return Err(refused.clone()),
        (Err(error), Ok(())) => return Err(error.into()),
    };
    let shown = coverages(&env, &survey);
    terminal::tell(&plain(&survey, &shown))?;
    if survey.entries.iter().all(|(_, standing)| *standing == TrustStanding::Trusted) {
        terminal::tell("nothing to accept: all of it was accepted before\n")?;
        return Ok(0);
    }
    allowed?;
    if !operator::confirm("accept?")? {
        terminal::note("not accepted; nothing has changed");
        return Ok(FAILED);
    }
    if coverages(&env, &survey) != shown {
        return Err(CliError::failed("a file changed while you were looking at it; nothing was accepted")
            .hint("run `pintle trust` again"));
    }
    accept(&env.home(global.home.as_deref())?, &survey)?;
    terminal::tell(&format!("accepted: {}\n", clean(&survey.file.display().to_string())))?;
    Ok(0)
}

/// What is covered of each entry now.
fn coverages(env: &Env, survey: &Survey) -> Vec<Coverage> {
    let path = env.vars.get("PATH").map(AsRef::as_ref);
    survey.entries.iter().map(|(entry, _)| covers(entry, path)).collect()
}

fn plain(survey: &Survey, coverages: &[Coverage]) -> String {
    let mut text = format!("{BOLD}{}{BOLD:#}\n", clean(&survey.file.display().to_string()));
    // Settings that nobody wrote are nothing to look at.
    let written =
        |(entry, _): &&(TrustEntry, TrustStanding)| entry.value.as_object().is_none_or(|members| !members.is_empty());
    for ((entry, standing), coverage) in survey.entries.iter().zip(coverages).filter(|(entry, _)| written(entry)) {
        let (style, word) = match standing {
            TrustStanding::Trusted => (GOOD, "accepted before"),
            TrustStanding::Unknown => (NOTE, "new"),
            TrustStanding::Changed { .. } => (BAD, "changed since it was accepted"),
        };
        text.push_str(&format!("\n{BOLD}{}{BOLD:#}  {style}{word}{style:#}\n", clean(&entry.path)));
        match standing {
            TrustStanding::Trusted => {}
            TrustStanding::Unknown => text.push_str(&contents(entry, coverage)),
            TrustStanding::Changed { diff, .. } => {
                text.push_str(&run_line(entry));
                for line in diff {
                    let style = if line.starts_with('-') { BAD } else { GOOD };
                    text.push_str(&format!("  {style}{}{style:#}\n", clean(line)));
                }
            }
        }
    }
    if !survey.never.is_empty() {
        let keys = clean(&survey.never.join(", "));
        text.push_str(&format!("\n{NOTE}never counts in a found file{NOTE:#}, accepted or not: {keys}\n"));
    }
    for refused in &survey.refused {
        text.push_str(&format!("\n{NOTE}not loaded{NOTE:#}: {}\n", clean(refused)));
    }
    text.push_str(&format!("\n{DIM}What these programs and files load in turn is not covered.{DIM:#}\n"));
    text
}

/// What the entry would run, what is written in it, and the files that are accepted with it.
fn contents(entry: &TrustEntry, coverage: &Coverage) -> String {
    let mut text = run_line(entry);
    let written = entry.value.get("entry").filter(|_| entry.path.starts_with("hooks.")).unwrap_or(&entry.value);
    if entry.path.starts_with("skill ") {
        let files = written.get("files").and_then(Value::as_object);
        for (path, digest) in files.into_iter().flatten() {
            let digest: String = value_text(digest).chars().take(SHOWN_DIGEST).collect();
            text.push_str(&format!("{}  {DIM}sha256 {digest}…{DIM:#}\n", line("file", path).trim_end()));
        }
        return text;
    }
    for (key, value) in written.as_object().into_iter().flatten().filter(|(key, _)| *key != "command") {
        text.push_str(&line(key, &value_text(value)));
    }
    for part in coverage.parts.iter().filter(|part| part.what != "entry") {
        let (what, path) = part.what.split_once(' ').unwrap_or((&part.what, ""));
        // The folder of a command is told before everything else.
        if what == "dir" {
            continue;
        }
        let digest: String = part.sha256.chars().take(SHOWN_DIGEST).collect();
        let digest = if ["file", "script"].contains(&what) {
            format!("  {DIM}sha256 {digest}…{DIM:#}")
        } else {
            String::new()
        };
        text.push_str(&format!("{}{digest}\n", line(what, path).trim_end()));
    }
    text
}

fn run_line(entry: &TrustEntry) -> String {
    let Some(command) = &entry.command else { return String::new() };
    let words: Vec<String> = command.argv.iter().map(|word| quoted(word)).collect();
    let real = command.dir.canonicalize().unwrap_or_else(|_| command.dir.clone());
    let parts: Vec<String> = command.texts.iter().flat_map(|text| unread(text, Some(&command.dir))).collect();
    let unwatched = not_watched(&parts).map(|why| line("note", &why)).unwrap_or_default();
    line("runs", &words.join(" ")) + &line("in", &real.display().to_string()) + &unwatched
}

fn line(what: &str, text: &str) -> String {
    format!("  {:<10} {}\n", clean(what), clean(text))
}

fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A word of a command, in quotes if it is not plain.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("{word:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_not_plain_stand_in_quotes() {
        assert_eq!([quoted("guard.py"), quoted("a b"), quoted("")], ["guard.py", "\"a b\"", "\"\""]);
    }
}
