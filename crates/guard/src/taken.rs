//! What programs that copy, pack and unpack take as a whole, and where it comes to lie.

use pintle_domain::shell::ShellCommand;

use crate::filled::named;

/// Programs whose last operand is where they put the others.
const INTO_LAST: [&str; 7] = ["cp", "mv", "install", "ln", "rsync", "scp", "ditto"];

/// Those of them that know `-t`.
const WITH_TARGET: [&str; 4] = ["cp", "mv", "install", "ln"];

/// Options of `tar` that take a value: letters, and long names.
const OF_TAR: [char; 10] = ['f', 'C', 'T', 'X', 'b', 'I', 'H', 'F', 'K', 'N'];
const LONG_OF_TAR: [&str; 9] =
    ["file", "files-from", "exclude", "exclude-from", "use-compress-program", "transform", "xform", "owner", "group"];

/// What the contents of one folder become: those of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    /// The folder whose contents are taken, from where the first command runs.
    pub(crate) from: String,
    /// The folder in which they come to lie, from where the second command runs.
    pub(crate) to: String,
    /// The commands that take and that put, by their places in the list; mostly one.
    pub(crate) by: (usize, usize),
}

/// What the words of `tar` say.
#[derive(Debug, Default)]
pub(crate) struct Tar {
    makes: bool,
    /// Whether it unpacks.
    pub(crate) takes: bool,
    /// The folder that it works in; empty where none is said.
    pub(crate) folder: String,
    /// What is packed or unpacked alone, by name.
    pub(crate) members: Vec<String>,
    /// How many folders names lose at their beginning.
    strips: usize,
}

/// `word` as it is meant in `folder`.
pub(crate) fn join(folder: &str, word: &str) -> String {
    let is_whole = folder.is_empty() || word.starts_with(['/', '~']);
    if is_whole { word.to_owned() } else { format!("{folder}/{word}") }
}

pub(crate) fn is_tar(command: &ShellCommand) -> bool {
    matches!(command.name.as_str(), "tar" | "bsdtar" | "gtar")
}

pub(crate) fn tar(command: &ShellCommand) -> Tar {
    let mut tar = Tar::default();
    let mut words = command.argv.iter().skip(1).map(String::as_str);
    let mut is_first = true;
    while let Some(word) = words.next() {
        let is_row = is_first && !word.is_empty() && word.chars().all(|letter| letter.is_ascii_alphabetic());
        is_first = false;
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let is = |whole: &str| name.len() > 2 && whole.starts_with(name);
            tar.takes |= is("extract") || is("get");
            tar.makes |= is("create") || is("append") || is("update");
            if is("directory") {
                tar.folder = join(&tar.folder, value.or_else(|| words.next()).unwrap_or_default());
            } else if is("strip-components") {
                tar.strips = value.or_else(|| words.next()).and_then(|count| count.parse().ok()).unwrap_or_default();
            } else if value.is_none() && LONG_OF_TAR.contains(&name) {
                words.next();
            }
            continue;
        }
        let letters = if is_row { Some(word) } else { word.strip_prefix('-').filter(|letters| !letters.is_empty()) };
        let Some(letters) = letters else {
            tar.members.push(join(&tar.folder, word));
            continue;
        };
        for (at, letter) in letters.char_indices() {
            tar.takes |= letter == 'x';
            tar.makes |= matches!(letter, 'c' | 'r' | 'u');
            if !OF_TAR.contains(&letter) {
                continue;
            }
            let rest = &letters[at + 1..];
            let value = if is_row || rest.is_empty() { words.next() } else { Some(rest) };
            if letter == 'C' {
                tar.folder = join(&tar.folder, value.unwrap_or_default());
            }
            if !is_row {
                break;
            }
        }
    }
    tar
}

/// What `command`, which puts things into a folder, takes, and that folder.
pub(crate) fn sources(command: &ShellCommand) -> (Vec<&str>, Option<&str>) {
    let (mut operands, mut target) = (Vec::new(), None);
    let mut words = command.argv.iter().skip(1).map(String::as_str);
    while let Some(word) = words.next() {
        let knows = WITH_TARGET.contains(&command.name.as_str());
        if word == "--" {
            operands.extend(words.by_ref());
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            if knows && !name.is_empty() && "target-directory".starts_with(name) {
                target = value.or_else(|| words.next());
            } else if value.is_none() && knows && name.len() > 1 && "suffix".starts_with(name) {
                words.next();
            }
        } else if word.len() > 1 && word.starts_with('-') {
            match word.find(['t', 'S']).filter(|_| knows) {
                Some(at) => {
                    let rest = &word[at + 1..];
                    let value = if rest.is_empty() { words.next() } else { Some(rest) };
                    if word[at..].starts_with('t') {
                        target = value;
                    }
                }
                None if command.name == "rsync" && word.ends_with('e') => {
                    words.next();
                }
                None => {}
            }
        } else {
            operands.push(word);
        }
    }
    let target = target.or_else(|| operands.pop());
    (operands, target)
}

/// The paths that `command` reads, as far as its words are such.
pub(crate) fn read_by(command: &ShellCommand) -> Vec<String> {
    let name = command.name.as_str();
    if is_tar(command) {
        let tar = tar(command);
        return if tar.makes { tar.members } else { Vec::new() };
    }
    if INTO_LAST.contains(&name) {
        return sources(command).0.into_iter().map(str::to_owned).collect();
    }
    let here = searches_below(command).then(|| ".".to_owned());
    // `curl` is told so which file to send.
    let plain = named(command).map(|word| word.rsplit('@').next().unwrap_or(word).to_owned());
    plain.chain(here).collect()
}

/// Whether `command` searches folders for texts. Without one it looks into the one in which it stands.
pub(crate) fn searches_below(command: &ShellCommand) -> bool {
    let recursive = |word: &String| match word.strip_prefix("--") {
        Some(long) => !long.is_empty() && (long.starts_with("rec") || long.starts_with("deref")),
        None => word.starts_with('-') && word.contains(['r', 'R']),
    };
    match command.name.as_str() {
        "grep" | "egrep" | "fgrep" | "ggrep" => command.argv.iter().any(recursive),
        name => matches!(name, "rg" | "ag" | "ack" | "ugrep"),
    }
}

/// What `commands` of one text take from one folder into another. Where patterns stand for `hidden` names, too, all that a
/// folder holds is what `*` takes.
pub(crate) fn carried(commands: &[ShellCommand], hidden: bool) -> Vec<Carried> {
    let mut all = Vec::new();
    for (at, command) in commands.iter().enumerate() {
        let mut add = |from: &str, to: &str| {
            all.push(Carried { from: from.to_owned(), to: to.to_owned(), by: (at, at) });
        };
        if INTO_LAST.contains(&command.name.as_str()) && command.name != "ln" {
            let (sources, target) = sources(command);
            let Some(target) = target else { continue };
            for source in sources {
                let (from, name) = contents(command, source, hidden);
                add(from, &name.map_or_else(|| target.to_owned(), |name| format!("{target}/{name}")));
            }
        } else if command.name == "find" {
            for (from, to) in found_and_copied(command) {
                add(from, to);
            }
        } else if matches!(command.name.as_str(), "cpio" | "pax") {
            let has = |letter: char| {
                command
                    .argv
                    .iter()
                    .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
            };
            let words: Vec<&str> = named(command).collect();
            let Some((target, sources)) = words.split_last() else { continue };
            if command.name == "cpio" && (has('p') || command.argv.iter().any(|word| word == "--pass-through")) {
                add(".", target);
            } else if command.name == "pax" && has('r') && has('w') {
                for source in sources {
                    let (from, name) = contents(command, source, hidden);
                    add(from, &name.map_or_else(|| (*target).to_owned(), |_| format!("{target}/{source}")));
                }
                add(".", target);
            }
        }
    }
    all.extend(packed_and_unpacked(commands, hidden));
    all
}

/// The folder whose contents `command` takes with `source`, and the name under which it does so; none if it takes them
/// without their folder.
fn contents<'s>(command: &ShellCommand, source: &'s str, hidden: bool) -> (&'s str, Option<&'s str>) {
    let plain = source.trim_end_matches('/');
    let (folder, last) = plain.rsplit_once('/').unwrap_or((".", plain));
    let whole = |word: &String| word == "--no-target-directory" || (word.starts_with('-') && word.contains('T'));
    let is_bare = match command.name.as_str() {
        "rsync" => source.ends_with('/'),
        "ditto" => true,
        "cp" | "mv" | "install" => command.argv.iter().skip(1).any(whole),
        _ => false,
    };
    // A pattern that begins with a dot stands for hidden names.
    let is_pattern = last.contains(['*', '?', '[']);
    if is_pattern && (last.starts_with('.') || hidden) {
        return (if folder.is_empty() { "/" } else { folder }, None);
    }
    let is_all = is_bare || matches!(last, "" | "." | "..");
    (if plain.is_empty() { "/" } else { plain }, (!is_all).then_some(last))
}

/// The folders that `find` copies as a whole, each with where it does so.
fn found_and_copied(command: &ShellCommand) -> Vec<(&str, &str)> {
    let words: Vec<&str> = command.argv.iter().skip(1).map(String::as_str).collect();
    let begin = words.iter().position(|word| word.starts_with('-') || *word == "(" || *word == "!");
    let (starts, tests) = words.split_at(begin.unwrap_or(words.len()));
    // What it finds by a name is told as such.
    let is_narrow = tests.iter().any(|test| matches!(*test, "-name" | "-iname" | "-path" | "-ipath" | "-regex"));
    let Some(at) = tests.iter().position(|test| test.starts_with("-exec") || test.starts_with("-ok")) else {
        return Vec::new();
    };
    let Some((program, words)) = tests[at + 1..].split_first() else { return Vec::new() };
    if is_narrow || !INTO_LAST.contains(&program.rsplit('/').next().unwrap_or(program)) {
        return Vec::new();
    }
    let words = words.iter().take_while(|word| !matches!(**word, ";" | "+"));
    let targets: Vec<&str> = words.copied().filter(|word| !word.starts_with('-') && *word != "{}").collect();
    let starts = if starts.is_empty() { &["."][..] } else { starts };
    starts.iter().flat_map(|start| targets.iter().map(move |target| (*start, *target))).collect()
}

/// What one `tar` of a text packs and another one unpacks.
fn packed_and_unpacked(commands: &[ShellCommand], hidden: bool) -> Vec<Carried> {
    let tars = || commands.iter().enumerate().filter(|(_, command)| is_tar(command));
    let takers: Vec<(usize, Tar)> =
        tars().map(|(at, command)| (at, tar(command))).filter(|(_, tar)| tar.takes).collect();
    let mut all = Vec::new();
    for (maker, command) in tars().filter(|_| !takers.is_empty()) {
        let made = tar(command);
        for member in made.members.iter().filter(|_| made.makes) {
            let (from, name) = contents(command, member, hidden);
            let name = name.and_then(|_| member.strip_prefix(made.folder.as_str()).or(Some(member.as_str())));
            for (taker, taken) in &takers {
                let to = match name {
                    Some(name) => join(&taken.folder, &stripped(name.trim_start_matches(['/', '~']), taken.strips)),
                    None if taken.folder.is_empty() => ".".to_owned(),
                    None => taken.folder.clone(),
                };
                all.push(Carried { from: from.to_owned(), to, by: (maker, *taker) });
            }
        }
    }
    all
}

/// `name` without its first folders, as many as `count`.
fn stripped(name: &str, count: usize) -> String {
    let names: Vec<&str> = name.split('/').filter(|name| !matches!(*name, "" | ".")).skip(count).collect();
    if count == 0 { name.to_owned() } else { names.join("/") }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Commands as whose words stand between single blanks.
    pub(crate) fn commands(texts: &[&str]) -> Vec<ShellCommand> {
        let command = |text: &&str| {
            let argv: Vec<String> = text.split(' ').map(str::to_owned).collect();
            ShellCommand { name: argv[0].clone(), argv, ..ShellCommand::default() }
        };
        texts.iter().map(command).collect()
    }

    #[test]
    fn what_is_taken_as_a_whole_is_known_by_its_folder() {
        for (texts, expected) in [
            (&["cp -r a/. ."][..], "a/.>."),
            (&["cp -rT a ."], "a>."),
            (&["cp -r a ."], "a>./a"),
            (&["cp -rt .. a b/."], "a>../a b/.>.."),
            (&["mv a/.* ."], "a>."),
            (&["mv a/* ."], "a/*>./*"),
            (&["rsync -a a/ ."], "a>."),
            (&["rsync -a -e ssh a b"], "a>b/a"),
            (&["find a -maxdepth 1 -exec cp -r {} . ;"], "a>."),
            (&["find a -name x -exec cp {} . ;"], ""),
            (&["cpio -pdm .."], ".>.."),
            (&["tar c .", "tar x"], ".>."),
            (&["tar -cf - -C a .", "tar xf - -C b"], "a/.>b"),
            (&["tar cC a b", "tar x"], "a/b>b"),
            (&["tar c a/b/c", "tar x --strip-components=1 -C d"], "a/b/c>d/b/c"),
            (&["tar c a/b", "tar x --strip-components 1"], "a/b>b"),
            (&["tar c a"], ""),
            (&["ln -s a b"], ""),
        ] {
            let found = carried(&commands(texts), false);
            let found: Vec<String> = found.iter().map(|one| format!("{}>{}", one.from, one.to)).collect();
            assert_eq!(found.join(" "), expected, "{texts:?}");
        }
    }
}
