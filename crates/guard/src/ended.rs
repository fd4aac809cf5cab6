//! Commands that end, stop or slow down the guard's own programs: by their names, by patterns that mean them, or with all
//! other processes. Pure.

use pintle_domain::matcher::Matcher;
use pintle_domain::shell::{ShellCommand, ShellFacts};

use crate::program_name::{SEARCHES, UNKNOWN, may_be};

/// What names the guard in a text, in small letters.
const MARKS: [&str; 2] = ["pintle", "guard.sock"];

/// What its processes are called.
const NAMES: [&str; 2] = ["pintle", "pintle-hook"];

/// The command lines with which they run.
const LINES: [&str; 3] = [
    "/usr/local/bin/pintle guard serve --by-hook --socket .local/share/pintle/guard/guard.sock",
    "pintle serve",
    "/usr/local/bin/pintle-hook hook --host claude",
];

/// Programs that end others, by their names or by the numbers that another one found.
const ENDING: [&str; 7] = ["pkill", "killall", "skill", "snice", "kill", "xargs", "killall5"];

/// Programs that slow others down or take from them what they need, where they are told the number of one.
const STARVING: [&str; 7] = ["renice", "prlimit", "chrt", "ionice", "taskset", "cpulimit", "schedtool"];

/// Programs that list processes.
const LISTING: [&str; 8] = ["htop", "lsof", "netstat", "procs", "ps", "pstree", "ss", "top"];

/// Where the processes are, each by its number.
const PROCESSES: &str = "/proc/";

/// Programs whose patterns stand between slashes among other words.
const OF_LINES: [&str; 6] = ["awk", "gawk", "gsed", "mawk", "nawk", "sed"];

/// How many letters are said of a command that is refused: enough to know it by.
const SAID: usize = 200;

/// How code sends a signal to every process.
const FOR_ALL: &str = "kill(-1";

/// How often a text that is not read as one of a shell may name a program that ends others, and how long what follows is.
const MOST_SAID: usize = 1024;
const LONGEST: usize = 4096;

/// Why `text`, of which `facts` tell, must not run: it ends, stops or slows down what guards the agent.
pub(crate) fn refused(text: &str, facts: &ShellFacts) -> Option<String> {
    let commands = &facts.commands;
    let is_named = || {
        let small = text.to_lowercase();
        MARKS.iter().any(|mark| small.contains(mark))
    };
    let by_name = || commands.iter().find(|command| ends(command) || starves(command)).filter(|_| is_named());
    let found =
        || commands.iter().any(|command| command.name == "pgrep" && means_guard(command)) || lists_guard(text, facts);
    let by_number = || commands.iter().find(|command| is_fed(command)).filter(|_| found());
    let command = commands.iter().find(|command| is_for_guard(command)).or_else(by_name).or_else(by_number)?;
    Some(said_of(&command.argv.join(" ")))
}

/// The same of `code` in any language, in which such commands stand as texts, or as lists of words.
pub(crate) fn coded(code: &str) -> Option<String> {
    let plain: String = code.chars().filter(|letter| !matches!(letter, '"' | '\'' | '\\')).collect();
    // Many blanks push nothing out of sight.
    let lines =
        plain.split('\n').map(|line| line.replace(',', " ").split_whitespace().collect::<Vec<&str>>().join(" "));
    let plain = lines.collect::<Vec<String>>().join("\n");
    let is_all = |rest: &str| !rest.starts_with(|letter: char| letter.is_ascii_digit());
    if plain.split(FOR_ALL).skip(1).any(is_all) {
        return Some(said_of("kill(-1)"));
    }
    let begins =
        |at: usize| !plain[..at].ends_with(|letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_'));
    let names = ["kill", "pkill", "skill", "renice", "prlimit"];
    let mut places: Vec<usize> = names.iter().flat_map(|name| plain.match_indices(*name)).map(|(at, _)| at).collect();
    places.retain(|at| begins(*at));
    if places.len() > MOST_SAID {
        return Some(format!(
            "it names programs that end others more often than the {MOST_SAID} times that are looked at"
        ));
    }
    places.iter().find_map(|at| {
        let rest = &plain[*at..];
        let end = rest.find([')', ']', '}', ';', '\n']).unwrap_or(rest.len());
        let end = rest.floor_char_boundary(end.min(LONGEST));
        let argv: Vec<String> = rest[..end].split_whitespace().map(str::to_owned).collect();
        let command = ShellCommand { name: argv.first()?.clone(), argv, ..ShellCommand::default() };
        let is_marked = || {
            let small = command.argv.join(" ").to_lowercase();
            (ends(&command) || starves(&command)) && MARKS.iter().any(|mark| small.contains(mark))
        };
        (is_for_guard(&command) || is_marked()).then(|| said_of(&command.argv.join(" ")))
    })
}

fn said_of(command: &str) -> String {
    let said: String = command.chars().take(SAID).collect();
    format!("`{said}` would end what guards this agent, or keep it from its work")
}

/// Whether `command` ends processes.
fn ends(command: &ShellCommand) -> bool {
    let kills = |word: &String| match word.strip_prefix("--") {
        Some(long) => long == "kill",
        None => word.starts_with('-') && word.contains('k'),
    };
    let by_file = command.name == "fuser" && command.argv.iter().skip(1).any(kills);
    by_file || ENDING.iter().any(|own| may_be(&command.name, own))
}

/// Whether `command` takes from a process that runs.
fn starves(command: &ShellCommand) -> bool {
    let words = command.argv.get(1..).unwrap_or_default();
    // What it starts itself begins with a letter, as the name of a class does.
    let is_own = |at: usize| {
        let is_class = at > 0 && matches!(words[at - 1].as_str(), "-c" | "--class");
        is_class || !words[at].starts_with(|letter: char| letter.is_alphabetic() || letter == '/')
    };
    let is_number = |word: &String| word.starts_with("--pid") || (word.starts_with('-') && word.contains('p'));
    let is_told = || (0..words.len()).take_while(|at| is_own(*at)).any(|at| is_number(&words[at]));
    STARVING.contains(&command.name.as_str()) && (command.name == "renice" || is_told())
}

/// Whether `command` ends or slows down processes whose numbers another one says.
fn is_fed(command: &ShellCommand) -> bool {
    let takes = command.name == "kill" || starves(command);
    let mut words = command.argv.iter().skip(1);
    takes && words.any(|word| word.contains(UNKNOWN) || word == "{}")
}

/// Whether `command` is sure to mean the guard among others, though it does not name it.
fn is_for_guard(command: &ShellCommand) -> bool {
    let has = |options: &[&str]| command.argv.iter().skip(1).any(|word| options.contains(&word.as_str()));
    match command.name.as_str() {
        "killall5" => true,
        "kill" => is_for_all(command.argv.get(1..).unwrap_or_default()),
        "pkill" | "killall" => means_guard(command),
        "renice" | "skill" | "snice" => has(&["-u", "--user"]),
        _ => false,
    }
}

/// Whether `kill` with `words` is for every process.
fn is_for_all(words: &[String]) -> bool {
    let signal = match words.first().map(String::as_str) {
        Some("-s" | "-n" | "--signal") => 2,
        Some(word) if word.starts_with('-') && word != "--" => 1,
        Some(_) | None => 0,
    };
    words.get(signal..).unwrap_or_default().iter().any(|word| word == "-1")
}

/// What a program looks for among processes.
#[derive(Debug, Default)]
struct Sought<'c> {
    pattern: Option<&'c str>,
    /// Whose children, session or terminal alone is meant; empty where it is not said.
    narrowed: &'c str,
    /// The letters of its options, of long ones the letter that says the same.
    letters: String,
}

/// Long options of `pgrep` and `pkill`, their letters, and whether they take a value. `killall` has some of them.
const OPTIONS: [(&str, char, bool); 21] = [
    ("cgroup", 'Z', true),
    ("delimiter", 'd', true),
    ("env", 'E', true),
    ("euid", 'u', true),
    ("exact", 'x', false),
    ("full", 'f', false),
    ("group", 'G', true),
    ("ignore-case", 'i', false),
    ("inverse", 'v', false),
    ("ns", 'N', true),
    ("nslist", 'N', true),
    ("older", 'O', true),
    ("parent", 'P', true),
    ("pgroup", 'g', true),
    ("pidfile", 'F', true),
    ("regexp", 'r', false),
    ("runstates", 'R', true),
    ("session", 's', true),
    ("signal", 'S', true),
    ("terminal", 't', true),
    ("uid", 'U', true),
];

/// The letters of options that take a value: of `pgrep` and `pkill`, and of `killall`.
const VALUED: &str = "dFGgPsqtuUrO";
const VALUED_BY_NAME: &str = "suyonZ";

/// Those that leave the guard out, whose processes belong to no session, group or terminal of another program.
const NARROWING: &str = "FgPst";

impl<'c> Sought<'c> {
    /// What `command`, a `pgrep`, `pkill` or `killall`, looks for.
    fn of(command: &'c ShellCommand) -> Self {
        let by_name = command.name == "killall";
        let valued = if by_name { VALUED_BY_NAME } else { VALUED };
        let mut sought = Self::default();
        let mut words = command.argv.iter().skip(1).map(String::as_str);
        while let Some(word) = words.next() {
            let Some(row) = word.strip_prefix('-').filter(|row| !row.is_empty()) else {
                sought.pattern = sought.pattern.or(Some(word));
                continue;
            };
            let (letters, value) = match row.strip_prefix('-') {
                Some(long) => of_long(long),
                None => of_row(row, valued),
            };
            let value = value.map(|value| if value.is_empty() { words.next().unwrap_or_default() } else { value });
            if !by_name && letters.ends_with(|letter: char| NARROWING.contains(letter)) {
                sought.narrowed = value.unwrap_or_default();
            }
            sought.letters.push_str(&letters);
        }
        sought
    }

    fn has(&self, letters: &[char]) -> bool {
        self.letters.contains(letters)
    }
}

/// The letter of the option `long`, and its value; that is empty where the next word is it.
fn of_long(long: &str) -> (String, Option<&str>) {
    let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
    let name = if name == "user" { "uid" } else { name };
    let Some((_, letter, is_valued)) = OPTIONS.iter().find(|(own, ..)| *own == name) else {
        return (String::new(), None);
    };
    (letter.to_string(), if *is_valued { Some(value.unwrap_or_default()) } else { None })
}

/// The letters of `row`, up to the first that takes a value, and that; it is empty where the next word is it. A signal has none.
fn of_row<'r>(row: &'r str, valued: &str) -> (String, Option<&'r str>) {
    let is_signal = row.bytes().all(|byte| byte.is_ascii_digit())
        || (row.len() > 2 && row.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()));
    if is_signal {
        return (String::new(), None);
    }
    match row.find(|letter: char| valued.contains(letter)) {
        Some(at) => {
            let end = at + row[at..].chars().next().map_or(0, char::len_utf8);
            (row[..end].to_owned(), Some(&row[end..]))
        }
        None => (row.to_owned(), None),
    }
}

/// Whether the guard's processes are among those that `command`, a `pgrep`, `pkill` or `killall`, looks for.
fn means_guard(command: &ShellCommand) -> bool {
    let (sought, by_name) = (Sought::of(command), command.name == "killall");
    let of_first = sought.narrowed.split(',').any(|one| one == "1");
    if !sought.narrowed.is_empty() && !of_first {
        return false;
    }
    let is_inverse = !by_name && sought.has(&['v']);
    let Some(pattern) = sought.pattern else {
        return of_first || is_inverse || sought.has(&['u', 'U']);
    };
    if is_unknown(pattern) {
        return false;
    }
    let subjects: &[&str] = if sought.has(&['f']) { &LINES } else { &NAMES };
    if by_name && !sought.has(&['r']) {
        return NAMES.contains(&pattern);
    }
    let pattern = if sought.has(&['x']) { format!("^(?:{pattern})$") } else { pattern.to_owned() };
    let found = Found::of(&pattern, sought.has(&['i', 'I']));
    subjects.iter().any(|subject| found.is_in(subject) != is_inverse)
}

/// What a pattern finds.
enum Found {
    Pattern(Matcher),
    Text(String),
}

impl Found {
    fn of(pattern: &str, is_caseless: bool) -> Self {
        let flags = if is_caseless { "(?i)" } else { "" };
        match Matcher::compile(&format!("{flags}{pattern}")) {
            Ok(matcher) => Self::Pattern(matcher),
            Err(_) => Self::Text(pattern.to_owned()),
        }
    }

    fn is_in(&self, text: &str) -> bool {
        match self {
            Self::Pattern(matcher) => matcher.is_match(text),
            Self::Text(pattern) => text.contains(pattern.as_str()),
        }
    }
}

/// Whether the programs that `facts` tell of list processes and leave those of the guard in the list.
fn lists_guard(text: &str, facts: &ShellFacts) -> bool {
    let lists = |command: &ShellCommand| LISTING.contains(&command.name.as_str());
    if !text.contains(PROCESSES) && !facts.commands.iter().any(lists) {
        return false;
    }
    let filters: Vec<(Found, bool)> = facts.commands.iter().flat_map(filters).collect();
    let mut subjects = NAMES.iter().chain(&LINES);
    let is_any = filters.iter().any(|(_, keeps)| *keeps);
    is_any && subjects.any(|subject| filters.iter().all(|(found, keeps)| found.is_in(subject) == *keeps))
}

/// What `command` looks for in lines that it is given, each with whether it keeps those lines.
fn filters(command: &ShellCommand) -> Vec<(Found, bool)> {
    let words = command.argv.get(1..).unwrap_or_default();
    let name = command.name.as_str();
    if OF_LINES.contains(&name) {
        let codes = words.iter().filter(|word| !word.starts_with('-'));
        return codes
            .flat_map(|code| between_slashes(code))
            .map(|(pattern, keeps)| (Found::of(&pattern, false), keeps))
            .collect();
    }
    if !SEARCHES.contains(&name) {
        return Vec::new();
    }
    let has = |letter: char, long: &str| {
        words.iter().any(|word| match word.strip_prefix("--") {
            Some(told) => told == long,
            None => word.starts_with('-') && word.contains(letter),
        })
    };
    let operands: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    // What follows the pattern are files, in which other lines stand.
    let is_given = operands.len() == 1 || operands.iter().skip(1).any(|word| word.contains(PROCESSES));
    let Some(pattern) = operands.first().filter(|word| is_given && !word.starts_with('^') && !is_unknown(word)) else {
        return Vec::new();
    };
    let is_basic = matches!(name, "grep" | "ggrep") && !has('E', "extended-regexp") && !has('P', "perl-regexp");
    let plain = if is_basic { extended(pattern) } else { (*pattern).clone() };
    let is_text = name == "fgrep" || has('F', "fixed-strings");
    let found = if is_text { Found::Text(plain) } else { Found::of(&plain, has('i', "ignore-case")) };
    vec![(found, !has('v', "invert-match"))]
}

/// `pattern` of plain `grep`, as other programs write it.
fn extended(pattern: &str) -> String {
    let signs = ["|", "(", ")", "+", "?"];
    signs.iter().fold(pattern.to_owned(), |all, sign| all.replace(&format!("\\{sign}"), sign))
}

/// Whether `pattern` has something in it that is not known.
fn is_unknown(pattern: &str) -> bool {
    pattern.strip_suffix('$').unwrap_or(pattern).contains(UNKNOWN)
}

/// The patterns of `code` of awk or sed, each with whether it keeps what it finds.
fn between_slashes(code: &str) -> Vec<(String, bool)> {
    let (mut patterns, mut rest, mut before) = (Vec::new(), code, String::new());
    while let Some(at) = rest.find(['/', '"']) {
        before.push_str(&rest[..at]);
        let quote = &rest[at..=at];
        let inside = &rest[at + 1..];
        let Some(end) = inside.find(quote) else { break };
        let sign = before.trim_end();
        let is_told = if quote == "/" {
            sign.is_empty() || sign.ends_with(['(', '!', '~', '{', ';', '&', '|', ',', '}'])
        } else {
            sign.ends_with('~')
        };
        if is_told && end > 0 {
            patterns.push((inside[..end].to_owned(), !sign.ends_with('!') && !sign.ends_with("!~")));
        }
        before = String::from("x");
        rest = &inside[end + 1..];
    }
    patterns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taken::tests::commands;

    #[test]
    fn what_stands_far_behind_is_seen_and_too_much_is_refused() {
        let far = format!("os.system('kill{}pintle')", " ".repeat(2 * LONGEST));
        let cut = format!("kill {}", "é".repeat(LONGEST));
        let many = format!("{}pkill pintle", "kill x;".repeat(MOST_SAID));
        assert!(coded(&far).is_some() && coded(&cut).is_none() && coded(&many).is_some());
    }

    #[test]
    fn what_a_pattern_means_among_processes_is_told_as_the_program_does() {
        for (text, means) in [
            ("pkill pint", true),
            ("pkill -9 tle", true),
            ("pkill -STOP -f guard.sock", true),
            ("pkill -f guar[d]", true),
            ("pkill -f serve", true),
            ("pkill -fx pint", false),
            ("pkill -x pintle", true),
            ("pkill -i PINT", true),
            ("pkill PINT", false),
            ("pkill -v node", true),
            ("pkill -u ann", true),
            ("pkill -P 1", true),
            ("pkill -P 12 pint", false),
            ("pkill -t pts/3", false),
            ("pkill -u ann node", false),
            ("pkill -f server", false),
            ("pkill node", false),
            ("pkill guard", false),
            ("pkill -f $x", false),
            ("pkill -f --signal STOP guard", true),
            ("killall -r pint.*", true),
            ("killall -STOP -r ^p.*e$", true),
            ("killall -u ann", true),
            ("killall pint", false),
            ("killall node", false),
        ] {
            assert_eq!(means_guard(&commands(&[text])[0]), means, "{text}");
        }
    }

    #[test]
    fn a_signal_is_for_all_where_its_number_says_so() {
        for (text, is_it) in [
            ("kill -STOP -1", true),
            ("kill -9 -1", true),
            ("kill -- -1", true),
            ("kill -s KILL -- -1", true),
            ("kill -1 -1", true),
            ("kill -1 12", false),
            ("kill -1", false),
            ("kill -9 -12", false),
            ("kill 0", false),
        ] {
            assert_eq!(is_for_guard(&commands(&[text])[0]), is_it, "{text}");
        }
    }

    #[test]
    fn what_is_taken_from_a_process_is_told_by_its_number() {
        for (text, is_it) in [
            ("renice 19 12", true),
            ("prlimit --nofile=3 -p 12", true),
            ("taskset -cp 0 12", true),
            ("ionice -c idle -p 12", true),
            ("ionice -c3 cargo build -p x", false),
            ("taskset -c 0-3 cargo test -p x", false),
            ("prlimit --nofile=9 make", false),
        ] {
            assert_eq!(starves(&commands(&[text])[0]), is_it, "{text}");
        }
    }

    #[test]
    fn a_list_keeps_what_its_filters_keep() {
        for (filters, keeps) in [
            (&["ps ax", "awk /guard/{print}"][..], true),
            (&["ps ax", "grep pint", "grep -v grep", "awk {print}"], true),
            (&["ps ax", "grep [p]int", "xargs kill"], true),
            (&["ps ax", "grep pint\\|x"], true),
            (&["ps ax", "grep node"], false),
            (&["ps ax", "grep serve", "grep 3000"], false),
            (&["ps ax", "awk $11~\"pint\"{print}"], true),
            (&["ps ax", "sed -n /guard/p"], true),
            (&["ps ax", "awk !/pint/{print}", "grep node"], false),
            (&["ps ax"], false),
            (&["cat x", "grep pint"], false),
            (&["ps ax", "grep -q serve log"], false),
        ] {
            let facts = ShellFacts { commands: commands(filters), ..ShellFacts::default() };
            assert_eq!(lists_guard("", &facts), keeps, "{filters:?}");
        }
    }

    #[test]
    fn code_says_such_commands_as_texts_or_lists() {
        for (code, is_refused) in [
            ("os.system('pkill -f guard.sock')", true),
            ("run(['pkill', '-f', 'guard.sock'])", true),
            ("1e kill -9 -1", true),
            ("system(\"killall -r \\\"pin.*\\\"\")", true),
            ("os.kill(-1, 9)", true),
            ("os.kill(-12, 9)", false),
            ("os.system('pkill -f \"npm run dev\"')", false),
            ("child.kill('SIGTERM')", false),
            ("skill_level = 'pintle'", false),
        ] {
            assert_eq!(coded(code).is_some(), is_refused, "{code}");
        }
    }
}
