//! What looking through many skills costs, at a start and at a reload.
//!
//! `cargo bench -p pintle-skills --bench skills` measures, anything else runs each case once.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::ensure;
use pintle_skills::{Scanner, SkillSelection, scan_hooks};
use report::Report;

#[expect(dead_code, reason = "it is shared, and comparisons with a floor are for others")]
#[path = "../../process/benches/hooks/report.rs"]
mod report;

/// Skills that are enabled: a hundred times what a well equipped agent has.
const SKILLS: usize = 1000;
/// Hooks of each.
const HOOKS: usize = 3;
/// How often they are looked through in a round.
const LOOKS: usize = 3;
/// Most that a look may take: a start is not felt.
const LIMIT: Duration = Duration::from_millis(300);

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("skills: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> anyhow::Result<()> {
    let Some(mut report) = Report::from_args() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let enabled: Vec<String> = (0..SKILLS).map(|number| format!("skill-{number}")).collect();
    enabled.iter().try_for_each(|name| write(&folder.path().join(name)))?;
    let (dir, enabled) = (folder.path(), enabled.as_slice());
    if report.wants("skills-start") {
        let [took] = report
            .medians(LOOKS, [&mut |times| timed(times, || check(scan_hooks(enabled, dir).hooks().hooks.len()))])?;
        report.limited("skills-start: 1000 skills, 3 hooks each", took, LIMIT, |took| format!("{took:.1?}"));
    }
    if report.wants("skills-again") {
        let mut scanner = Scanner::default();
        let wanted = SkillSelection::of(dir, enabled);
        scanner.look(wanted);
        let mut again = || {
            ensure!(!scanner.look(wanted), "nothing changed");
            Ok(())
        };
        let [took] = report.medians(LOOKS, [&mut |times| timed(times, &mut again)])?;
        report.limited("skills-again: the same, nothing changed", took, LIMIT, |took| format!("{took:.1?}"));
    }
    report.print()
}

fn timed(times: usize, mut look: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let began = Instant::now();
    (0..times).try_for_each(|_| look())?;
    Ok(began.elapsed())
}

fn check(hooks: usize) -> anyhow::Result<()> {
    ensure!(hooks == SKILLS * HOOKS, "expected {} hooks, found {hooks}", SKILLS * HOOKS);
    Ok(())
}

/// A skill as people write them.
fn write(folder: &Path) -> anyhow::Result<()> {
    let hooks = folder.join("hooks");
    std::fs::create_dir_all(&hooks)?;
    let entries: Vec<String> = (0..HOOKS)
        .map(|number| {
            format!(
                r#"{{"name": "hook-{number}", "file": "text-{number}.md", "timing": "after_tool_call", "role": "system", "persistent": false, "tool_filter": ["read_file"]}}"#
            )
        })
        .collect();
    std::fs::write(hooks.join("hooks.json"), format!("{{\"hooks\": [{}]}}", entries.join(",\n")))?;
    for number in 0..HOOKS {
        std::fs::write(hooks.join(format!("text-{number}.md")), "Say where each claim comes from.\n".repeat(20))?;
    }
    let front = "---\nname: x\ndescription: Cites sources for every claim that a reader may want to check.\n---\n";
    std::fs::write(folder.join("SKILL.md"), format!("{front}{}", "Do it well.\n".repeat(100)))?;
    Ok(())
}
