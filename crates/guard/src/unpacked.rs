//! What archives, patches and commits hold, whatever that is, and into which folder it is put.

use pintle_domain::shell::ShellCommand;

use crate::filled::GIT_VALUED;
use crate::taken::{is_tar, join, sources, tar};

/// Commands of git that put whatever a commit, an index or a stash holds into the folder of work.
const CHECKS_OUT: [&str; 11] = [
    "checkout",
    "switch",
    "restore",
    "reset",
    "stash",
    "merge",
    "pull",
    "rebase",
    "cherry-pick",
    "read-tree",
    "checkout-index",
];

/// The words of a command behind its name.
struct Words<'c>(Vec<&'c str>);

impl<'c> Words<'c> {
    fn of(command: &'c ShellCommand) -> Self {
        Self(command.argv.iter().skip(1).map(String::as_str).collect())
    }

    fn operands(&self) -> Vec<&'c str> {
        self.0.iter().copied().filter(|word| !word.starts_with('-')).collect()
    }

    fn has(&self, list: &[&str]) -> bool {
        self.0.iter().any(|word| list.contains(word))
    }

    /// Whether `letter` stands in a row of letters.
    fn letter(&self, letter: char) -> bool {
        self.0.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
    }

    /// The value of an option, behind it in its word or in the next one.
    fn value(&self, option: &str) -> Option<&'c str> {
        let at = self.0.iter().position(|word| word.starts_with(option))?;
        let word: &'c str = self.0[at];
        let rest = word[option.len()..].trim_start_matches('=');
        if rest.is_empty() { self.0.get(at + 1).copied() } else { Some(rest) }
    }
}

/// The folder into which `command` puts all that an archive or a patch holds, whatever that is.
pub(crate) fn unpacked(command: &ShellCommand) -> Option<String> {
    let words = Words::of(command);
    let here = Some(".");
    let folder = match command.name.as_str() {
        _ if is_tar(command) => {
            let tar = tar(command);
            // Where names lose folders on their way, the folder of any of them may be left.
            let is_renamed =
                words.0.iter().any(|word| ["--strip", "--tra", "--xf"].iter().any(|begin| word.starts_with(*begin)));
            let is_any = tar.members.is_empty() || is_renamed;
            let is_whole = tar.takes && is_any && !words.has(&["-O", "--to-stdout"]);
            let folder = if tar.folder.is_empty() { ".".to_owned() } else { tar.folder };
            return is_whole.then_some(folder);
        }
        "unzip" | "bsdunzip" => {
            let zip = Zip::of(&words)?;
            Some(zip.folder).filter(|_| zip.is_whole)
        }
        "pax" => here.filter(|_| taken_by_pax(&words).is_some_and(|members| members.is_empty())),
        "ar" => match words.operands().as_slice() {
            [letters, _] => here.filter(|_| letters.trim_start_matches('-').contains('x')),
            _ => None,
        },
        "unar" => words.value("-output-directory").or_else(|| words.value("-o")).or(here),
        "7z" | "7za" | "7zr" | "7zz" => {
            let takes = matches!(words.operands().as_slice(), ["x" | "e", _]) && !words.has(&["-so"]);
            words.value("-o").or(here).filter(|_| takes)
        }
        "cpio" => {
            let takes = words.0.iter().any(|word| word.starts_with("-i") || *word == "--extract");
            let told = words.value("-D").or_else(|| words.value("--directory"));
            told.or(here).filter(|_| takes && !words.has(&["-t", "--list", "--to-stdout"]))
        }
        "unrar" => match words.operands().as_slice() {
            ["x" | "e", .., last] => Some(if last.ends_with('/') { *last } else { "." }),
            _ => None,
        },
        "jar" => {
            let is_letters = |first: &str| !first.starts_with("--") && first.contains('x');
            let takes = words.0.first().is_some_and(|first| *first == "--extract" || is_letters(first));
            words.value("-C").or_else(|| words.value("--dir")).or(here).filter(|_| takes)
        }
        "dpkg" | "dpkg-deb" => {
            let takes = words.has(&["-x", "-X", "--extract", "--vextract", "-R", "--raw-extract"]);
            let root = words.value("--instdir").or_else(|| words.value("--root"));
            root.or_else(|| words.operands().get(1).copied().filter(|_| takes))
        }
        "rpm" => words.value("--root").or_else(|| words.value("--prefix")),
        "git" => return GitWork::of(&words).and_then(|git| checked_out(&git).or_else(|| patched_by_git(&git))),
        "patch" => patched(&words),
        name if name.starts_with("python") || name.starts_with("pypy") => unpacked_by_module(&words),
        "rsync" | "scp" => {
            let (sources, target) = sources(command);
            let is_remote = |source: &&str| {
                source.split('/').next().is_some_and(|first| first.contains(':')) && source.ends_with(['/', '.', '*'])
            };
            target.filter(|_| sources.iter().any(is_remote))
        }
        _ => None,
    };
    folder.map(str::to_owned)
}

/// The files and folders of an archive that `command` unpacks alone, each where it comes to lie; patterns of archives among
/// them.
pub(crate) fn unpacked_alone(command: &ShellCommand) -> Vec<String> {
    let words = Words::of(command);
    let (folder, members, is_bare) = match command.name.as_str() {
        _ if is_tar(command) => {
            let tar = tar(command);
            let shows = words.letter('O') || words.0.first().is_some_and(|row| !row.contains('/') && row.contains('O'));
            let is_put = tar.takes && !shows && !words.has(&["--to-stdout"]);
            return if is_put { tar.members } else { Vec::new() };
        }
        "unzip" | "bsdunzip" => match Zip::of(&words) {
            Some(zip) => (zip.folder, zip.members, words.letter('j')),
            None => return Vec::new(),
        },
        "7z" | "7za" | "7zr" | "7zz" => match words.operands().as_slice() {
            [verb @ ("x" | "e"), _, members @ ..] if !words.has(&["-so"]) => {
                (words.value("-o").unwrap_or("."), members.to_vec(), *verb == "e")
            }
            _ => return Vec::new(),
        },
        "pax" => (".", taken_by_pax(&words).unwrap_or_default(), false),
        _ => return Vec::new(),
    };
    let bare = |member: &str| member.rsplit('/').next().unwrap_or_default().to_owned();
    let bares = members.iter().filter(|_| is_bare).map(|member| join(folder, &bare(member)));
    members.iter().map(|member| join(folder, member)).chain(bares).collect()
}

/// What `pax` unpacks alone; empty where that is all, none where it unpacks nothing.
fn taken_by_pax<'c>(words: &Words<'c>) -> Option<Vec<&'c str>> {
    let operands = words.operands().into_iter().skip(usize::from(words.letter('f')));
    (words.letter('r') && !words.letter('w')).then(|| operands.collect())
}

/// What the words of `unzip` say.
struct Zip<'c> {
    /// The folder into which it unpacks.
    folder: &'c str,
    /// Whether it may unpack all of the archive.
    is_whole: bool,
    /// What it unpacks alone.
    members: Vec<&'c str>,
}

impl<'c> Zip<'c> {
    /// None where it only shows what an archive holds.
    fn of(words: &Words<'c>) -> Option<Self> {
        let shows = |word: &&str| {
            word.starts_with('-') && word.trim_start_matches('-').starts_with(['l', 'p', 't', 'v', 'Z', 'z', 'c'])
        };
        if words.0.iter().any(shows) {
            return None;
        }
        let (mut folder, mut operands, mut is_value) = (".", Vec::new(), false);
        for word in words.0.iter().copied() {
            match word.strip_prefix('-').and_then(|letters| letters.split_once('d')) {
                _ if is_value => (folder, is_value) = (word, false),
                Some((_, "")) => is_value = true,
                Some((_, rest)) => folder = rest,
                None if word.starts_with('-') => {}
                None => operands.push(word),
            }
        }
        let is_whole = operands.len() == 1 || words.has(&["-x", "-P"]);
        Some(Self { folder, is_whole, members: operands.into_iter().skip(1).collect() })
    }
}

/// The folder into which a module of Python puts all of an archive.
fn unpacked_by_module<'c>(words: &Words<'c>) -> Option<&'c str> {
    let (at, rest) = words.0.iter().enumerate().find_map(|(at, word)| Some((at, word.strip_prefix("-m")?)))?;
    let (module, begin) = if rest.is_empty() { (*words.0.get(at + 1)?, at + 2) } else { (rest, at + 1) };
    if !matches!(module, "zipfile" | "tarfile") {
        return None;
    }
    let words = Words(words.0.get(begin..)?.to_vec());
    let takes = words.0.iter().any(|word| word.starts_with("-e") || word.starts_with("--e"));
    words.operands().get(1).copied().or(Some(".")).filter(|_| takes)
}

/// A command of git: where it works, what it does, and the words behind that.
struct GitWork<'c> {
    folder: String,
    /// The folder of its files, where that is told by itself.
    tree: Option<String>,
    verb: &'c str,
    rest: Words<'c>,
}

impl<'c> GitWork<'c> {
    fn of(words: &Words<'c>) -> Option<Self> {
        let (mut folder, mut tree, mut at) = (String::new(), None::<String>, 0);
        let verb = loop {
            let word = *words.0.get(at)?;
            at += 1;
            let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
            let next = words.0.get(at).copied().unwrap_or_default();
            match name {
                "-C" => folder = join(&folder, next),
                "--work-tree" => tree = Some(value.unwrap_or(next).to_owned()),
                "-c" => tree = next.strip_prefix("core.worktree=").map(str::to_owned).or(tree),
                _ if !word.starts_with('-') => break word,
                _ => {}
            }
            at += usize::from(GIT_VALUED.contains(&name) && value.is_none());
        };
        Some(Self { folder, tree, verb, rest: Words(words.0.get(at..).unwrap_or_default().to_vec()) })
    }

    /// The folder whose files it changes.
    fn place(&self) -> String {
        let place = self.tree.as_ref().map_or_else(|| self.folder.clone(), |tree| join(&self.folder, tree));
        if place.is_empty() { ".".to_owned() } else { place }
    }
}

/// The folder into which git puts all that something holds: where an option says which one, or where it works.
fn checked_out(git: &GitWork<'_>) -> Option<String> {
    let GitWork { folder, tree, verb, rest } = git;
    let verb = *verb;
    if verb == "config" {
        let at = rest.0.iter().position(|word| word.eq_ignore_ascii_case("core.worktree"))?;
        return rest.0.get(at + 1).map(|tree| join(folder, tree));
    }
    if !CHECKS_OUT.contains(&verb) {
        return None;
    }
    if verb == "checkout-index"
        && let Some(prefix) = rest.value("--prefix")
    {
        return Some(join(folder, prefix));
    }
    let is_elsewhere = tree.is_some();
    // What is named alone is told by its name.
    let names_files = rest.has(&["--"]) || (verb == "restore" && !rest.operands().iter().any(|word| is_all(word)));
    let is_whole = match verb {
        "read-tree" => rest.letter('u'),
        "checkout-index" => rest.letter('a') || rest.has(&["--all"]),
        "reset" => rest.has(&["--hard", "--merge", "--keep"]),
        "stash" => rest.has(&["pop", "apply", "branch"]),
        "checkout" => is_elsewhere || !(names_files || rest.has(&["-b", "-B", "--orphan"])),
        "switch" => is_elsewhere || !rest.has(&["-c", "-C", "--create", "--orphan"]),
        "restore" => is_elsewhere || !names_files,
        _ => true,
    };
    is_whole.then(|| git.place())
}

/// Whether `word` is all of a folder to git, or a pattern.
fn is_all(word: &str) -> bool {
    word == "." || word.starts_with(':') || word.contains(['*', '?', '['])
}

/// The folder in which git changes whatever a patch names.
fn patched_by_git(git: &GitWork<'_>) -> Option<String> {
    let looks =
        git.rest.has(&["--check", "--stat", "--numstat", "--summary", "--cached"]) && !git.rest.has(&["--apply"]);
    let below = git.rest.value("--directory");
    let is_patching = matches!(git.verb, "apply" | "am") && !looks;
    is_patching.then(|| below.map_or_else(|| git.place(), |folder| join(&git.place(), folder)))
}

/// The folder in which `patch` changes whatever a patch names.
fn patched<'c>(words: &Words<'c>) -> Option<&'c str> {
    let folder = words.value("-d").or_else(|| words.value("--directory"));
    let told = [folder, words.value("-i")];
    // With `-p 1`, a number is no file.
    let is_file = |word: &&str| !told.contains(&Some(*word)) && !word.bytes().all(|letter| letter.is_ascii_digit());
    let is_of_file = words.operands().iter().any(is_file);
    folder.or(Some(".")).filter(|_| !is_of_file && !words.has(&["--dry-run"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taken::tests::commands;

    #[test]
    fn what_holds_anything_is_known_by_where_it_goes() {
        for (text, folder) in [
            ("tar xf a.tar", Some(".")),
            ("tar -xzf a.tgz -C ..", Some("..")),
            ("tar xf a.tar b.md", None),
            ("tar tf a.tar", None),
            ("unzip -o a.zip -d ..", Some("..")),
            ("unzip a.zip", Some(".")),
            ("unzip -l a.zip", None),
            ("unzip a.zip b.md", None),
            ("7z x a.7z -o..", Some("..")),
            ("tar xf a.tar b -C .. --strip-components 1", Some("..")),
            ("pax -r", Some(".")),
            ("pax -rf a", Some(".")),
            ("pax -rw a b", None),
            ("ar x a.a", Some(".")),
            ("ar t a.a", None),
            ("unar -o .. a.zip", Some("..")),
            ("patch -p1", Some(".")),
            ("patch -p1 -d .. -i a", Some("..")),
            ("patch a.md a.patch", None),
            ("git -C .. apply a.patch", Some("..")),
            ("git --no-pager -C .. apply a.patch", Some("..")),
            ("git -c x=y -C .. -C a am a.patch", Some("../a")),
            ("git --git-dir=x --work-tree=.. apply a.patch", Some("..")),
            ("git apply --directory=.. a.patch", Some("./..")),
            ("git apply --stat --apply a.patch", Some(".")),
            ("git apply -C1 a.patch", Some(".")),
            ("git apply --check a.patch", None),
            ("git log apply", None),
            ("dpkg -x a.deb ..", Some("..")),
            ("dpkg --instdir=.. -i a.deb", Some("..")),
            ("dpkg -i a.deb", None),
            ("python3 -m zipfile -e a.zip ..", Some("..")),
            ("python3.12 -mtarfile --extract a.tar", Some(".")),
            ("python3 -m zipfile -l a.zip", None),
            ("python3 -m http.server -e ..", None),
            ("git --git-dir=.git --work-tree=.. read-tree -u --reset q", Some("..")),
            ("git --work-tree .. restore -s q -W :/", Some("..")),
            ("git -C a -c core.worktree=b checkout q", Some("a/b")),
            ("git config core.worktree ..", Some("..")),
            ("git checkout-index -f -a --prefix=../", Some("../")),
            ("git checkout-index a", None),
            ("git -C .. pull", Some("..")),
            ("git checkout -b x", None),
            ("git checkout -- a", None),
            ("git restore a", None),
            ("git reset a", None),
            ("git stash", None),
            ("git read-tree q", None),
            ("git status", None),
            ("jar xf a.jar", Some(".")),
            ("rsync -a h:a/ ..", Some("..")),
            ("rsync -a a/ ..", None),
        ] {
            assert_eq!(unpacked(&commands(&[text])[0]).as_deref(), folder, "{text}");
        }
    }

    #[test]
    fn what_is_unpacked_alone_is_known_by_its_name() {
        for (text, members) in [
            ("tar xf a.tar -C .. b c/*", "../b ../c/*"),
            ("tar cf a.tar b", ""),
            ("tar xOf a.tar b", ""),
            ("tar -x -O -f a.tar b", ""),
            ("unzip -o a.zip b c/* -d ..", "../b ../c/*"),
            ("unzip -l a.zip b", ""),
            ("7z x a.7z b -o..", "../b"),
            ("7z l a.7z b", ""),
            ("pax -r b", "./b"),
            ("unzip -j a.zip c/b -d ..", "../c/b ../b"),
            ("pax -rf a b", "./b"),
        ] {
            assert_eq!(unpacked_alone(&commands(&[text])[0]).join(" "), members, "{text}");
        }
    }
}
