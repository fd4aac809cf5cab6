//! Programs that run the command or the text in their arguments.

use std::rc::Rc;

use crate::programs::{Carries, Wrap};
use crate::read::{Content, Reading};
use crate::run::Run;
use crate::run::options::{begun, bundled};
use crate::state::{Certainty, Field, Folders, Output, State, Stdin, Value};

impl Reading<'_> {
    /// Programs such as `nohup` and `sudo`: options, then a command.
    pub(super) fn wrapping(&mut self, run: &Run<'_>, wrap: Wrap, state: &mut State) -> Output {
        let mut inner = state.clone();
        let (arguments, end) = run.leading(&run.argv[1..]);
        let mut rest = &run.argv[1 + end..];
        if matches!(run.name, "sudo" | "doas") && arguments.has(&["-i", "-s", "--login", "--shell"]) && rest.is_empty()
        {
            return self.shell_of(run, &inner);
        }
        while wrap.assigns && self.takes_assignment(rest, &mut inner) {
            rest = &rest[1..];
        }
        for _ in 0..wrap.skip {
            rest = rest.get(1..).unwrap_or_default();
            if let [option, text, ..] = rest
                && run.name == "flock"
                && (option.text == "-c" || option.text == "--command")
            {
                return self.inner_text(text, run.name, &inner);
            }
            if run.name == "flock"
                && let Some(option) = rest.first()
                && let Some(text) = option.text.strip_prefix("--command=").or(option.text.strip_prefix("-c"))
            {
                return self.inner_text(&Field { text: text.to_owned(), ..option.clone() }, run.name, &inner);
            }
            let (_, more) = run.leading(rest);
            rest = &rest[more..];
        }
        if let Some(folder) = arguments
            .value(&["--chdir", "--working-directory"])
            .or(arguments.value(&["-D"]).filter(|_| run.name == "sudo"))
        {
            inner.place.cwd = inner.place.cwd.below(&folder.text);
        }
        // `sudo -e file` edits it.
        if run.name == "sudo" && arguments.has(&["-e", "--edit"]) {
            rest.iter().for_each(|field| self.touches(field, run.name, state));
            return Output::Unknown;
        }
        if rest.is_empty() {
            return Output::Unknown;
        }
        self.inner(rest, &inner)
    }

    fn takes_assignment(&mut self, words: &[Field], state: &mut State) -> bool {
        let Some((name, value)) = words.first().and_then(|field| field.text.split_once('=')) else { return false };
        if name.is_empty() || name.contains('/') {
            return false;
        }
        let value = if words[0].is_known() { Value::Text(Field::known(value)) } else { Value::Unknown };
        self.influenced(name, &value, state);
        if crate::syntax::is_name(name) {
            state.set(name, value);
            state.export(name);
        }
        true
    }

    /// A shell that reads what comes in.
    pub(super) fn shell_of(&mut self, run: &Run<'_>, state: &State) -> Output {
        match self.run_stdin(run.name, state) {
            Some(text) => self.text_anywhere(&text, &state.another_shell()),
            None => Output::Unknown,
        }
    }

    pub(super) fn carrying(&mut self, run: &Run<'_>, carries: Carries, state: &mut State) -> Output {
        match carries {
            Carries::At => self.at(run, state),
            Carries::BusyBox => {
                let rest = &run.argv[1..];
                if rest.first().is_none_or(|first| first.text.starts_with('-')) {
                    if rest.first().is_some_and(|first| first.text == "--install") {
                        let folders = rest.iter().filter(|field| !field.text.starts_with('-'));
                        folders.for_each(|field| self.touches(field, run.name, state));
                    }
                    return Output::Unknown;
                }
                self.inner(rest, state)
            }
            Carries::Container => self.container(run, state),
            Carries::Env => self.env(run, state),
            Carries::Parallel => self.parallel(run, state),
            Carries::RunsText => self.runs_text(run, state),
            Carries::Ssh => self.ssh(run, state),
            Carries::Su => self.su(run, state),
            Carries::Xargs => self.xargs(run, state),
        }
    }

    fn env(&mut self, run: &Run<'_>, state: &mut State) -> Output {
        let mut inner = state.clone();
        let mut rest: Vec<Field> = run.argv[1..].to_vec();
        let mut splits = 0;
        while let Some(first) = rest.first().cloned() {
            let text = first.text.as_str();
            if let Some(attached) = split_string(text) {
                rest.remove(0);
                let separate = attached.is_empty() && !rest.is_empty();
                let field =
                    if separate { rest.remove(0) } else { Field { text: attached.to_owned(), ..first.clone() } };
                splits += 1;
                let words = self.split_words(&field, run.name);
                if splits > 4 || words.is_empty() {
                    self.unknown("what `env -S` runs cannot be known".to_owned());
                    return Output::Unknown;
                }
                rest.splice(0..0, words);
            } else if text.starts_with('-') {
                rest.remove(0);
                let value = if (["-u", "-C", "-a"].contains(&text)
                    || is_begun(text, &["--unset", "--chdir", "--argv0"]))
                    && !rest.is_empty()
                {
                    rest.remove(0).text
                } else {
                    String::new()
                };
                let folder = if text == "-C" || is_begun(text, &["--chdir"]) {
                    Some(value.as_str())
                } else if let Some((name, folder)) = text.split_once('=') {
                    Some(folder).filter(|_| is_begun(name, &["--chdir"]))
                } else {
                    text.strip_prefix("-C")
                };
                if let Some(folder) = folder {
                    inner.place.cwd = inner.place.cwd.below(folder);
                }
            } else if self.takes_assignment(&rest, &mut inner) {
                rest.remove(0);
            } else {
                return self.inner(&rest, &inner);
            }
        }
        Output::Unknown
    }

    /// The words of a text that a program splits itself, quotes minded.
    pub(super) fn split_words(&mut self, field: &Field, who: &str) -> Vec<Field> {
        if !field.is_known() || field.text.contains(['$', '`', '\\']) {
            self.unknown(format!("the text that `{who}` runs cannot be known"));
            return Vec::new();
        }
        let (mut words, mut current, mut quote) = (Vec::new(), None::<String>, None);
        for letter in field.text.chars() {
            match (quote, letter) {
                (Some(open), _) if open == letter => quote = None,
                (Some(_), _) => current.get_or_insert_default().push(letter),
                (None, '\'' | '"') => {
                    quote = Some(letter);
                    current.get_or_insert_default();
                }
                (None, _) if letter.is_whitespace() => words.extend(current.take()),
                (None, _) => current.get_or_insert_default().push(letter),
            }
        }
        words.extend(current);
        if words.len() > crate::bounds::WORDS {
            self.cut(format!("a command has more than {} words", crate::bounds::WORDS));
            words.truncate(crate::bounds::WORDS);
        }
        words.into_iter().map(Field::known).collect()
    }

    fn su(&mut self, run: &Run<'_>, state: &mut State) -> Output {
        let words = &run.argv[1..];
        for (index, field) in words.iter().enumerate() {
            let option = field.text.as_str();
            let long = || begun(option, &["--command", "--session-command"]);
            let text = bundled(option, "cC", "sgGwuT").or_else(long);
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                return self.inner_text(&Field { text: text.to_owned(), ..field.clone() }, run.name, state);
            }
            if text.is_some()
                && let Some(text) = words.get(index + 1)
            {
                return self.inner_text(text, run.name, state);
            }
            if option == "--" && run.name == "runuser" {
                return self.inner(&words[index + 1..], state);
            }
        }
        if run.name == "runuser" && words.first().is_some_and(|first| first.text == "-u") && words.len() > 2 {
            return self.inner(&words[2..], state);
        }
        self.shell_of(run, state)
    }

    fn at(&mut self, run: &Run<'_>, state: &mut State) -> Output {
        let arguments = run.arguments();
        if let Some(file) = arguments.value(&["-f"]) {
            self.script_file(file, run, state);
        }
        if arguments.has(&["-l", "-r", "-c"]) {
            return Output::Unknown;
        }
        self.shell_of(run, state)
    }

    fn ssh(&mut self, run: &Run<'_>, state: &mut State) -> Output {
        let (arguments, end) = run.leading(&run.argv[1..]);
        for option in &arguments.options {
            if option.name == "-o"
                && let Some(value) = &option.value
            {
                self.ssh_option(value, state);
            }
            if option.name == "-I" {
                self.unknown("`ssh -I` loads code".to_owned());
            }
            match (option.name.as_str(), &option.value) {
                ("-W" | "-J", Some(value)) => self.host(&value.text),
                // The last two of `[address:]port:host:port`.
                ("-L", Some(value)) => {
                    let host = value.text.rsplitn(3, ':').take(2).collect::<Vec<_>>();
                    if let [port, host] = host.as_slice() {
                        self.url(&format!("tcp://{host}:{port}"));
                    }
                }
                (_, _) => {}
            }
            if option.name == "-F" {
                self.unknown("`ssh -F` reads a configuration that may run commands".to_owned());
            }
        }
        let mut rest = run.argv.get(1 + end + 1..).unwrap_or_default();
        // Options may stand after the host too.
        if rest.first().is_some_and(|first| first.text.starts_with('-')) {
            let (_, more) = run.leading(rest);
            rest = &rest[more..];
        }
        let mut there = state.clone();
        // A shell over there begins in a home folder.
        there.place.cwd = Folders::one("~");
        if rest.is_empty() {
            return if arguments.has(&["-N", "-V", "-G", "-O"]) { Output::Unknown } else { self.shell_of(run, &there) };
        }
        let text = joined(rest);
        self.inner_text(&text, run.name, &there);
        Output::Unknown
    }

    fn ssh_option(&mut self, value: &Field, state: &State) {
        let (name, text) = value.text.split_once(['=', ' ']).unwrap_or((&value.text, ""));
        let name = name.trim().to_ascii_lowercase();
        if ["proxycommand", "localcommand", "knownhostscommand", "pkcs11provider", "include", "match"]
            .contains(&name.as_str())
        {
            if !value.is_known() || text.is_empty() || name == "pkcs11provider" || name == "include" || name == "match"
            {
                self.unknown("what an option of `ssh` runs cannot be known".to_owned());
            } else if text.trim() != "none" {
                self.inner_text(&Field::known(text), "ssh", state);
            }
        }
    }

    fn parallel(&mut self, run: &Run<'_>, state: &mut State) -> Output {
        let (arguments, end) = run.leading(&run.argv[1..]);
        let rest = &run.argv[1 + end..];
        if arguments.has(&["--pipe", "--pipepart", "--pipe-part", "--onall", "--spreadstdin"]) {
            self.unknown("what `parallel` runs cannot be known".to_owned());
        }
        let sources = rest
            .iter()
            .position(|field| [":::", "::::", ":::+", "::::+"].contains(&field.text.as_str()))
            .unwrap_or(rest.len());
        let command = &rest[..sources];
        let from_file =
            arguments.has(&["-a", "--arg-file"]) || rest.get(sources).is_some_and(|mark| mark.text.starts_with("::::"));
        let chosen = command.first().is_some_and(|program| program.text.contains('{'));
        if (command.is_empty() && from_file) || chosen || arguments.has(&["--shebang", "--shebang-wrap", "--hashbang"])
        {
            self.unknown("what `parallel` runs cannot be known".to_owned());
        }
        let fed: Vec<Field> = rest.get(sources + 1..).unwrap_or_default().to_vec();
        if command.is_empty() {
            // The lines that come in are the commands.
            for field in &fed {
                self.inner_text(field, run.name, state);
            }
            return if fed.is_empty() { self.shell_of(run, state) } else { Output::Unknown };
        }
        let lines: Vec<Field> = if sources < rest.len() {
            if rest[sources].text == "::::" { vec![Field::unknown("{}")] } else { fed }
        } else {
            self.lines_of(state)
        };
        for line in lines.iter().take(64) {
            let mut text = joined(command);
            let known = line.is_known() && text.is_known();
            let quoted = crate::read::quote(&line.text);
            let replaced = if text.text.contains('{') {
                text.text.replace("{}", &quoted)
            } else {
                format!("{} {quoted}", text.text)
            };
            if known && replaced.len() <= crate::bounds::VALUE_BYTES {
                text.text = replaced;
                self.inner_text(&text, run.name, state);
            } else {
                let mut argv = command.to_vec();
                argv.push(Field { text: line.text.clone(), certainty: Certainty::Many });
                self.inner(&argv, state);
                if command.len() == 1 && command[0].text.contains(char::is_whitespace) {
                    self.unknown("what `parallel` runs cannot be known".to_owned());
                }
            }
        }
        if lines.len() > 64 {
            self.unknown("`parallel` runs more commands than are read".to_owned());
        }
        Output::Unknown
    }

    fn lines_of(&self, state: &State) -> Vec<Field> {
        match &state.stdin {
            Stdin::Known(text) => text.lines().map(Field::known).collect(),
            Stdin::Files(files) => files.to_vec(),
            Stdin::Inherited | Stdin::Unknown => vec![Field::unknown("{}")],
        }
    }

    fn xargs(&mut self, run: &Run<'_>, state: &mut State) -> Output {
        let (arguments, end) = run.leading(&run.argv[1..]);
        let command = &run.argv[1 + end..];
        let mut fed = self.fed(&arguments, run, state);
        let mut inner = state.clone();
        inner.stdin = Stdin::Known(Rc::from(""));
        let replace = arguments.value(&["-I", "--replace"]).map(|field| field.text.clone());
        let replace = replace.or_else(|| arguments.has(&["-i"]).then(|| "{}".to_owned()));
        if command.is_empty() {
            let mut argv = vec![Field::known("echo")];
            argv.append(&mut fed);
            return self.inner(&argv, &inner);
        }
        let Some(mark) = replace else {
            let mut argv = command.to_vec();
            argv.append(&mut fed);
            return self.inner(&argv, &inner);
        };
        for item in fed.iter().take(64) {
            let put = |field: &Field| {
                if !field.text.contains(&mark) || mark.is_empty() {
                    return field.clone();
                }
                let certainty = field.certainty.max(if item.is_known() { item.certainty } else { Certainty::Unknown });
                Field { text: field.text.replace(&mark, &item.text), certainty }
            };
            let argv: Vec<Field> = command.iter().map(put).collect();
            self.inner(&argv, &inner);
        }
        if fed.len() > 64 {
            self.unknown("`xargs` runs more commands than are read".to_owned());
        }
        Output::Unknown
    }

    /// The words that come in by the standard input or a file.
    fn fed(&mut self, arguments: &crate::run::options::Arguments, run: &Run<'_>, state: &State) -> Vec<Field> {
        let stdin = match arguments.value(&["-a", "--arg-file"]) {
            Some(file) => match self.content(file, state) {
                Some(Content::OneOf(texts)) if texts.len() == 1 => Stdin::Known(texts[0].as_str().into()),
                Some(Content::Names(files)) => Stdin::Files(files.into()),
                Some(Content::OneOf(_) | Content::Unknown) | None => Stdin::Unknown,
            },
            None => state.stdin.clone(),
        };
        if let Stdin::Files(files) = &stdin {
            return files.to_vec();
        }
        let Stdin::Known(text) = &stdin else {
            return vec![Field { text: "…".to_owned(), certainty: Certainty::Many }];
        };
        let delimiter = match arguments.value(&["-d", "--delimiter"]) {
            Some(field) => field.text.chars().next(),
            None => arguments.has(&["-0", "--null"]).then_some('\0'),
        };
        let lines = arguments.has(&["-I", "-i", "--replace"]);
        match delimiter {
            Some('\\') => vec![Field { text: "…".to_owned(), certainty: Certainty::Many }],
            Some(mark) => text.split(mark).map(str::trim).filter(|item| !item.is_empty()).map(Field::known).collect(),
            None if lines => text.lines().map(str::trim).filter(|item| !item.is_empty()).map(Field::known).collect(),
            None => self.split_words(&Field::known(text.to_string()), run.name),
        }
    }
}

/// The words with blanks between, as programs join them that hand one text to a shell.
pub(super) fn joined(words: &[Field]) -> Field {
    let certainty = words.iter().map(|field| field.certainty).max().unwrap_or_default();
    Field { text: words.iter().map(|field| field.text.as_str()).collect::<Vec<_>>().join(" "), certainty }
}

/// Whether `text` is one of the long `options`, or enough of its beginning.
fn is_begun(text: &str, options: &[&str]) -> bool {
    text.len() > 3 && options.iter().any(|option| option.starts_with(text))
}

/// What stands after `-S` or `--split-string=`.
fn split_string(text: &str) -> Option<&str> {
    let name = text.split('=').next().unwrap_or_default();
    if name.len() > 3 && "--split-string".starts_with(name) {
        return Some(text[name.len()..].strip_prefix('=').unwrap_or_default());
    }
    let cluster = text.strip_prefix('-').filter(|cluster| !cluster.starts_with(['-', 'u', 'C']))?;
    cluster.find('S').map(|at| &cluster[at + 1..])
}
