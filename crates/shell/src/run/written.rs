//! Programs that write what only some of their operands or options name.

use crate::paths;
use crate::read::Reading;
use crate::run::Run;
use crate::state::{Field, State};

/// Programs that change their operands in place: their names, and the words of which one has to be there; none if
/// they always do.
const IN_PLACE: &[(&str, &str)] = &[
    ("black isort autopep8 autoflake pyupgrade", ""),
    ("rustfmt", ""),
    ("gofmt goimports shfmt yapf buildifier", "-w -i"),
    ("prettier", "--write -w"),
    ("eslint stylelint biome standard", "--fix --write"),
    ("ruff", "--fix format"),
    ("clang-format yq", "-i --inplace --in-place"),
    ("virtualenv", ""),
];

/// Words with which those of [`IN_PLACE`] only look.
const LOOKS: &[&str] = &["--check", "--diff", "--check-only", "--version", "--help", "-h", "--stdin", "-"];

/// Programs that copy their last operand from elsewhere: their names, and the word that has to be there.
const INTO_LAST: &[(&str, &str)] = &[
    ("docker podman nerdctl kubectl oc lxc incus", "cp"),
    ("aws", "cp"),
    ("aws", "sync"),
    ("aws", "mv"),
    ("gsutil gcloud rclone s3cmd", "cp"),
    ("gsutil rclone s3cmd", "sync"),
    ("hg", "clone"),
    ("svn", "checkout"),
    ("svn", "co"),
    ("svn", "export"),
    ("gh glab", "clone"),
    ("ffmpeg convert magick", ""),
    ("unrar", "x"),
    ("unrar", "e"),
];

impl Reading<'_> {
    /// Notes what `run` writes because of its name alone.
    pub(super) fn written(&mut self, run: &Run<'_>, state: &mut State) {
        self.handed(run, state);
        let words = &run.argv[1..];
        let has = |list: &str| list.split(' ').any(|word| words.iter().any(|field| field.text == word));
        let named = |list: &str| list.split(' ').any(|name| name == run.name);
        let operands: Vec<&Field> = words.iter().filter(|field| !field.text.starts_with('-')).collect();
        let looks = words.iter().any(|field| LOOKS.contains(&field.text.as_str()));
        if IN_PLACE.iter().any(|(names, need)| named(names) && (need.is_empty() || has(need))) && !looks {
            operands.iter().for_each(|field| self.goes_to(field, run, state));
        }
        if INTO_LAST.iter().any(|(names, need)| named(names) && (need.is_empty() || has(need)))
            && operands.len() > 2 - usize::from(matches!(run.name, "ffmpeg" | "convert" | "magick"))
            && let Some(last) = operands.last()
        {
            self.goes_to(last, run, state);
        }
        match run.name {
            "gio" => self.gio(&operands, run, state),
            "history" if has("-w -a") => {
                operands.iter().for_each(|field| self.writes(field, run.name, state));
            }
            "mktemp" => operands.iter().for_each(|field| self.goes_to(field, run, state)),
            "make" | "gmake" | "ninja" => self.elsewhere(run, state),
            "ssh-keygen" | "ssh-add" if has("-D") || (run.name == "ssh-add" && has("-s")) => {
                self.unknown(format!("`{}` loads code", run.name));
            }
            "meson" if has("setup") => operands[1..].iter().for_each(|field| self.goes_to(field, run, state)),
            "openssl" => {
                for host in super::option_values(words, "-connect") {
                    self.url(&format!("https://{}", host.text));
                }
            }
            "uniq" => self.uniq(run, state),
            "ping" | "ping6" | "fping" | "hping3" | "arping" | "traceroute" | "traceroute6" | "tracepath" | "mtr"
            | "nmap" | "masscan" | "nc" | "ncat" | "netcat" | "telnet" | "socat" | "ftp" | "tftp" | "ab" | "wrk"
            | "hey" | "siege" | "httping" | "tcping" | "grpcurl" | "websocat" => self.contacts(run),
            "envsubst" => self.substituted(state),
            _ => self.written_besides(run, state),
        }
    }

    /// Notes that `field` is written, if it is a path and not the name of another machine's.
    fn goes_to(&mut self, field: &Field, run: &Run<'_>, state: &State) {
        let first = field.text.split('/').next().unwrap_or_default();
        if !first.contains(':') && field.is_known() {
            self.touches(field, run.name, state);
        }
    }

    fn gio(&mut self, operands: &[&Field], run: &Run<'_>, state: &State) {
        let Some((verb, files)) = operands.split_first() else { return };
        match verb.text.as_str() {
            "trash" | "remove" => files.iter().for_each(|field| self.deletes(field, run.name, state)),
            "move" => {
                files.iter().for_each(|field| self.deletes(field, run.name, state));
                files.last().into_iter().for_each(|field| self.goes_to(field, run, state));
            }
            "copy" | "save" | "mkdir" | "rename" => {
                files.last().into_iter().for_each(|field| self.goes_to(field, run, state));
            }
            _ => {}
        }
    }

    /// A build in a folder outside of the workspace writes there.
    fn elsewhere(&mut self, run: &Run<'_>, state: &State) {
        for folder in super::option_values(&run.argv[1..], "-C --directory") {
            if folder.is_known() && state.place.cwd.resolve(&folder.text).iter().any(|path| !self.is_inside(path)) {
                self.touches(&folder, run.name, state);
            }
        }
    }

    /// The second operand of `uniq` is what it writes.
    fn uniq(&mut self, run: &Run<'_>, state: &State) {
        if let [_, output, ..] = run.arguments().operands.as_slice() {
            self.writes(output, run.name, state);
        }
    }

    /// `envsubst` shows the variables that its input names.
    fn substituted(&mut self, state: &State) {
        let crate::state::Stdin::Known(text) = &state.stdin else { return };
        let letters = |letter: char| letter != '_' && !letter.is_ascii_alphanumeric();
        if text.split(letters).any(crate::programs::is_secret_variable) {
            self.note(crate::read::List::Reads, "/proc/self/environ");
        }
    }

    /// `cpio`, `ar`, `7z`, `pax`: a word says what they do.
    pub(super) fn packed(&mut self, run: &Run<'_>, state: &mut State) {
        match run.name {
            "cpio" | "pax" => self.listed_files_packed(run, state),
            "ar" => self.library(run, state),
            _ => self.seven_zip(run, state),
        }
    }

    /// `cpio` and `pax`: which files, somebody else says, or the operands do.
    fn listed_files_packed(&mut self, run: &Run<'_>, state: &mut State) {
        let arguments = run.arguments();
        let operands = &arguments.operands;
        let writes = run.name == "pax" && arguments.has(&["-w"]) && !arguments.has(&["-r"]);
        if (run.name == "cpio" && arguments.has(&["-o", "--create"])) || (writes && operands.is_empty()) {
            match &state.stdin {
                crate::state::Stdin::Files(files) => {
                    files.iter().for_each(|field| self.shown(field, run.name, state));
                }
                crate::state::Stdin::Known(text) => {
                    text.lines().for_each(|line| self.reads(&Field::known(line), state));
                }
                // Nobody types into it: names come out of a file that was there before.
                crate::state::Stdin::Unknown | crate::state::Stdin::Inherited => {
                    self.unknown(format!("what `{}` packs cannot be known", run.name))
                }
            }
        }
        if writes {
            operands.iter().for_each(|field| self.reads(field, state));
            self.packs(arguments.value(&["-f"]), operands, (state, state));
        }
        let both = run.name == "pax" && arguments.has(&["-w"]) && arguments.has(&["-r"]);
        let passes = arguments.has(&["-p", "--pass-through"]) || both;
        let takes = arguments.has(&["-i", "--extract"]) || (run.name == "pax" && arguments.has(&["-r"]));
        if passes && let Some(target) = operands.last() {
            self.touches(target, run.name, state);
        }
        let tells = arguments.has(&["-t", "--list", "--to-stdout"]);
        if takes && !tells && arguments.value(&["-D", "--directory"]).is_none() {
            if !arguments.has(&["--no-absolute-filenames"]) && !passes {
                self.unknown(format!("`{}` may unpack anywhere", run.name));
            }
            self.touches(&Field::known("."), run.name, state);
        }
        if let Some(archive) = arguments.value(&["-F", "-O", "-f", "--file"]) {
            self.touches(archive, run.name, state);
        }
    }

    /// `ar`: letters say what it does.
    fn library(&mut self, run: &Run<'_>, state: &mut State) {
        let letters = run.argv.get(1).map(|field| field.text.trim_start_matches('-')).unwrap_or_default();
        let archive = run.argv[1..].iter().find(|field| field.text.trim_start_matches('-') != letters);
        if letters.contains(['r', 'q', 'd', 'm', 's', 'x']) {
            archive.into_iter().for_each(|field| self.touches(field, run.name, state));
            if letters.contains('x') {
                self.touches(&Field::known("."), run.name, state);
            }
        } else {
            archive.into_iter().for_each(|field| self.reads(field, state));
        }
    }

    /// `7z`: a word says what it does.
    fn seven_zip(&mut self, run: &Run<'_>, state: &mut State) {
        let arguments = run.arguments();
        let operands = &arguments.operands;
        let [verb, archive, files @ ..] = operands.as_slice() else { return };
        self.reads(archive, state);
        files.iter().for_each(|field| self.reads(field, state));
        let to_output = run.argv.iter().any(|field| field.text == "-so");
        if !to_output && matches!(verb.text.as_str(), "x" | "e") {
            let told = super::option_values(&run.argv[1..], "-o");
            let folder = told.first().cloned().unwrap_or_else(|| Field::known("."));
            self.touches(&folder, run.name, state);
            self.members(files, &folder, run, state);
        }
        match verb.text.as_str() {
            "x" | "e" if to_output => self.shown(archive, run.name, state),
            "x" | "e" if self.content(archive, state).is_some() => {
                // What comes out of an archive is not written in the text.
                self.unpacked_into(&Field::known("."), state);
            }
            // It goes to whoever reads the output; a name of the archive may be missing.
            "a" | "u" if to_output => self.packs(None, &operands[1..], (state, state)),
            "a" | "u" => {
                self.touches(archive, run.name, state);
                self.packs(Some(archive), files, (state, state));
            }
            "d" | "rn" => self.touches(archive, run.name, state),
            _ => {}
        }
        if run.argv.iter().any(|field| field.text == "-sdel") {
            files.iter().for_each(|field| self.deletes(field, run.name, state));
        }
    }

    /// `split` writes pieces whose names begin as it is told.
    pub(super) fn pieces(&mut self, run: &Run<'_>, state: &State) {
        let arguments = run.arguments();
        let prefix = arguments.operands.get(1).cloned().unwrap_or_else(|| Field::known("x"));
        for path in state.place.cwd.resolve(&prefix.text) {
            if !paths::is_pattern(&path) {
                self.made(&format!("{path}[a-z0-9][a-z0-9]"), crate::read::Content::Unknown);
            }
        }
        if let Some(text) = arguments.value(&["--filter"]) {
            let mut fed = state.clone();
            fed.stdin = crate::state::Stdin::Unknown;
            fed.set("FILE", crate::state::Value::Unknown);
            fed.export("FILE");
            self.inner_text(text, run.name, &fed);
        }
    }
}
