//! What is read is compared with what real shells do: every text runs in a dash and a bash, with recorders in the
//! place of all programs, and who was run has to be who the reader named, or the reader said *unknown*.

mod jail;
mod texts;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pintle_domain::shell::{ShellFacts, ShellKind};

use self::jail::{Jail, Recorded, World};
use crate::corpus::{Entry, entries};
use crate::facts_as;

/// Texts that run at once; each has a place of its own. One more than there are cores: some wait for their place to be
/// made empty.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get) + 1
}

/// The shells, and as what they are read.
const REAL: [(&str, ShellKind); 2] = [("dash", ShellKind::Dash), ("bash", ShellKind::Bash)];

/// The worlds of a text: one where folders are there and programs fail, and one where it is the other way round.
const WORLDS: [World; 2] = [World { folders: true, status: 1 }, World { folders: false, status: 0 }];

/// A text that runs.
struct Twin {
    name: String,
    cwd: String,
    text: String,
}

/// What came of all of them.
#[derive(Default)]
struct Tally {
    runs: usize,
    programs: usize,
    named: usize,
    unknown: usize,
    unended: usize,
    missed: Vec<String>,
}

/// The text as it runs: nothing of it can reach a network.
fn harmless(text: &str) -> String {
    text.replace("/dev/tcp/", "/dev/tcq/").replace("/dev/udp/", "/dev/udq/")
}

/// Why `text` is not run, if it is not.
fn left_out(text: &str) -> Option<&'static str> {
    if text.contains('\0') {
        return Some("a zero byte cannot be handed to a program");
    }
    if text.len() > 100_000 {
        return Some("it is longer than an argument of a program may be");
    }
    None
}

/// Every word that may become the name of a program, and what is known of programs.
fn names(texts: &[Twin]) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = texts::PROGRAMS.iter().map(|name| (*name).to_owned()).collect();
    for twin in texts {
        let cut = |letter: char| letter.is_whitespace() || ";|&()<>'\"`$={}\\,/".contains(letter);
        for word in twin.text.split(cut).chain(twin.text.split_whitespace()) {
            let plain = !word.is_empty() && word.len() < 60 && !word.contains(['/', '\0']) && !word.starts_with('.');
            if plain {
                names.insert(word.to_owned());
            }
        }
    }
    // Shells stand there as they are; commands of bash alone and words like options are programs that nobody installs.
    let stands = ["sh", "bash", "dash", "rbash", "pushd", "popd"];
    names.retain(|name| !stands.contains(&name.as_str()) && !name.starts_with('-'));
    names
}

/// Whether `facts` name `run` of `text`: the program, its arguments and the folder.
fn is_named(facts: &ShellFacts, run: &Recorded, text: &str) -> bool {
    // For what cannot be known, its usual value is told, such as the `a` of `${x:-a}`; for what `find` finds, the folder
    // where it begins, which stands for any number of files.
    let loose = ["${", "$(find ", "`find "].iter().any(|mark| text.contains(mark));
    // A shell looks for a script elsewhere if it is not there.
    let script = |told: &[String]| told.first().is_some_and(|shell| ["sh", "bash", "dash"].contains(&shell.as_str()));
    if facts.commands.iter().any(|command| script(&command.argv) && command.argv[1..] == run.argv) {
        return true;
    }
    facts.commands.iter().any(|command| {
        let name = run.argv[0].rsplit('/').next().unwrap_or_default();
        // Which number a calculation comes to is not told.
        let number = command.name.starts_with('$') && name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        (command.name == name || number)
            && (command.cwd.is_empty() || fits(&command.cwd, &run.cwd))
            && (loose || arguments_fit(&command.argv[1..], &run.argv[1..]))
    })
}

/// Whether `told` stands for `real`: it is the same, or holds something that only the shell knows.
fn fits(told: &str, real: &str) -> bool {
    let home = told.replace('~', "/root");
    // The numbers of open files are the shell's choice.
    let pipe = told.starts_with("/dev/fd/") && real.starts_with("/dev/fd/");
    told == real || home == real || pipe || told.contains(['$', '`', '*', '?', '[', '…']) || told.starts_with("~+")
}

/// As [`fits`], for all arguments; one that is not known may be any number of them.
fn arguments_fit(told: &[String], real: &[String]) -> bool {
    // A word with a blank may be the usual value of what is not known, and so several words.
    // A pattern of `extglob` is told as all that it may stand for.
    let extended = |word: &String| ["@(", "+(", "!("].iter().any(|begin| word.contains(begin));
    let open = |word: &String| word.contains(['$', '`', '*', '?', '[', '…', ' ']) || extended(word);
    match told.iter().position(open) {
        Some(_) if told == real => true,
        Some(open) => real.len() >= open && told[..open].iter().zip(real).all(|(told, real)| fits(told, real)),
        None => told.len() == real.len() && told.iter().zip(real).all(|(told, real)| fits(told, real)),
    }
}

/// What `facts` name, a line each.
fn named(facts: &ShellFacts) -> String {
    facts.commands.iter().map(|told| format!("\n    {:?} in {}", told.argv, told.cwd)).collect()
}

fn check(twin: &Twin, jail: &mut Jail, (shells, worlds): &(Vec<usize>, Vec<World>), tally: &mut Tally) {
    let text = harmless(&twin.text);
    for (shell, kind) in shells.iter().map(|shell| REAL[*shell]) {
        let facts = facts_as(kind, &text, &twin.cwd);
        let either = facts_as(ShellKind::Unknown, &text, &twin.cwd);
        if facts.unknown {
            // Whatever was run, the reader has said that it does not know.
            tally.unknown += worlds.len();
            continue;
        }
        for world in worlds {
            let ran = jail.run(shell, &text, &twin.cwd, *world).unwrap_or_else(|e| panic!("{}: {e}", twin.name));
            tally.runs += 1;
            tally.programs += ran.runs.len();
            tally.unended += usize::from(!ran.ended);
            tally.named += 1;
            for (reading, facts) in [(kind, &facts), (ShellKind::Unknown, &either)] {
                let missed: Vec<&Recorded> =
                    ran.runs.iter().filter(|run| !facts.unknown && !is_named(facts, run, &text)).collect();
                if !missed.is_empty() {
                    let told = named(facts);
                    tally.missed.push(format!(
                        "{}, {shell}, read as {reading:?}, {world:?}:\n{text}\n  was run: {missed:?}\n  named:{told}\n",
                        twin.name
                    ));
                }
            }
        }
    }
}

/// Runs all of `twins`, prints what came of it, and fails where somebody was run whom nobody named.
fn compare(what: &str, twins: Vec<Twin>, runs: impl Fn(usize) -> (Vec<usize>, Vec<World>) + Sync) {
    let (twins, out): (Vec<Twin>, Vec<Twin>) = twins.into_iter().partition(|twin| left_out(&twin.text).is_none());
    for twin in &out {
        println!("left out: {}: {}", twin.name, left_out(&twin.text).unwrap_or_default());
    }
    let names = names(&twins);
    let first = match Jail::new(&names) {
        Ok(jail) => jail,
        Err(why) => {
            println!("skipped: this system lets nobody make a place where texts can run: {why}");
            return;
        }
    };
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Tally::default());
    let work = |mut jail: Jail| {
        let mut tally = Tally::default();
        while let Some(twin) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            twins.get(index).map(|twin| (index, twin))
        } {
            check(twin.1, &mut jail, &runs(twin.0), &mut tally);
        }
        let mut all = all.lock().unwrap();
        all.runs += tally.runs;
        all.programs += tally.programs;
        all.named += tally.named;
        all.unknown += tally.unknown;
        all.unended += tally.unended;
        all.missed.append(&mut tally.missed);
    };
    std::thread::scope(|scope| {
        let work = &work;
        for _ in 1..workers() {
            scope.spawn(|| work(Jail::new(&names).unwrap()));
        }
        scope.spawn(move || work(first));
    });
    let all = all.into_inner().unwrap();
    println!(
        "{what}: {} texts, {} left out, {} runs of {} programs: {} read whole, {} unknown, {} did not end, {} missed",
        twins.len(),
        out.len(),
        all.runs,
        all.programs,
        all.named,
        all.unknown,
        all.unended,
        all.missed.len()
    );
    assert!(all.missed.is_empty(), "{} misses:\n{}", all.missed.len(), all.missed.concat());
    // Of a long collection only some texts run, unless more time is given.
    assert!(all.programs > (all.runs + all.unknown) / 3, "hardly anything was run");
}

/// The shells and the worlds of the text `index`: one world, or all if more time is given.
fn everywhere(index: usize) -> (Vec<usize>, Vec<World>) {
    let worlds =
        if std::env::var_os("PINTLE_SHELL_WORLDS").is_some() { WORLDS.to_vec() } else { vec![WORLDS[index % 2]] };
    ((0..REAL.len()).collect(), worlds)
}

/// As [`everywhere`], but in one of the shells; in all if more time is given.
fn somewhere(index: usize) -> (Vec<usize>, Vec<World>) {
    let (all, worlds) = everywhere(index);
    let given = ["PINTLE_SHELL_WORLDS", "PINTLE_SHELL_TEXTS"].iter().any(|name| std::env::var_os(name).is_some());
    (if given { all } else { vec![index / 2 % 2] }, worlds)
}

/// As [`somewhere`], but one text in three, mostly in bash, which has more ways round; all if more time is given.
fn seldom(index: usize) -> (Vec<usize>, Vec<World>) {
    let (shells, worlds) = somewhere(index);
    match (shells.len(), index % 3) {
        (1, 0) => (vec![usize::from(!index.is_multiple_of(4))], worlds),
        (1, _) => (Vec::new(), worlds),
        (_, _) => (shells, worlds),
    }
}

fn twins(name: &str, collection: &str) -> Vec<Twin> {
    let twin = |entry: Entry<'_>| Twin {
        name: format!("{name}, line {}", entry.line),
        cwd: entry.cwd.to_owned(),
        text: entry.text,
    };
    entries(collection).into_iter().map(twin).collect()
}

#[test]
fn who_is_run_by_harmless_texts_is_named() {
    compare("harmless", twins("harmless", include_str!("../corpus/harmless.txt")), somewhere);
}

#[test]
fn who_is_run_by_dangerous_texts_is_named() {
    compare("ways round", twins("ways round", include_str!("../corpus/ways_round.txt")), seldom);
}

#[test]
fn who_is_run_by_generated_texts_is_named() {
    let number = |name: &str, usual: u64| std::env::var(name).ok().map_or(usual, |text| text.parse().unwrap());
    let (count, seed) = (number("PINTLE_SHELL_TEXTS", 150), number("PINTLE_SHELL_SEED", 20_260_101));
    let generated = (0..count).map(|index| Twin {
        name: format!("PINTLE_SHELL_SEED={}", seed + index),
        cwd: crate::WORKSPACE.to_owned(),
        text: texts::generate(seed + index),
    });
    compare("generated", generated.collect(), everywhere);
}
