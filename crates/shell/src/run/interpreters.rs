//! Programs that run code in other languages.

use crate::bounds;
use crate::code;
use crate::programs::{self, Language, Role};
use crate::read::{Content, Reading};
use crate::run::Run;
use crate::run::shells::is_stdin;
use crate::state::{Field, Output, State};

/// Modules that come with Python; what is made under their names is read where it is made.
const OF_PYTHON: &[&str] = &[
    "json",
    "http",
    "venv",
    "unittest",
    "doctest",
    "compileall",
    "zipfile",
    "tarfile",
    "base64",
    "calendar",
    "ensurepip",
    "py_compile",
    "site",
    "platform",
    "sysconfig",
    "pydoc",
    "dis",
    "ast",
    "tokenize",
    "webbrowser",
    "gzip",
    "asyncio",
];

/// Who runs a file by its first line.
pub(super) enum Shebang {
    Shell,
    Language(Language),
}

/// What the first line of a script says; without one it is a shell script.
pub(super) fn shebang(text: &str) -> Shebang {
    let Some(line) = text.strip_prefix("#!").and_then(|rest| rest.lines().next()) else {
        // What begins with no text at all is a program.
        return if text.starts_with('\u{7f}') { Shebang::Language(Language::Other) } else { Shebang::Shell };
    };
    let mut words = line.split_whitespace().filter(|word| !word.starts_with('-') && !word.contains('='));
    let program = words.next().map(crate::paths::base_name).unwrap_or_default();
    let program = if program == "env" { words.next().unwrap_or_default() } else { program };
    match programs::find(program).map(|program| program.role) {
        Some(Role::Shell) => Shebang::Shell,
        Some(Role::Language(language)) => Shebang::Language(language),
        _ => Shebang::Language(Language::Other),
    }
}

/// What the options of an interpreter say.
#[derive(Default)]
struct Given {
    code: Vec<Field>,
    module: Option<(Field, usize)>,
    in_place: bool,
    loops: bool,
    only_told: bool,
    odd: Option<String>,
    rest: usize,
}

/// What programs that are also build tools do without reading code from their arguments.
const VERBS: &[&str] =
    &["test", "run", "fmt", "lint", "check", "install", "compile", "build", "add", "remove", "task", "deps", "--check"];

impl Reading<'_> {
    pub(super) fn language(&mut self, run: &Run<'_>, language: Language, state: &mut State) -> Output {
        if language == Language::Other {
            self.other_language(run, state);
            return Output::Unknown;
        }
        let given = given(run, language);
        if let Some(odd) = &given.odd {
            self.unknown(format!("`{odd}` makes `{}` load code", run.name));
        }
        if !given.only_told {
            self.loads_made(language, run, state);
        }
        let rest = run.argv.get(given.rest..).unwrap_or_default();
        for code in &given.code {
            if code.is_exact() {
                self.code(language, &code.text, state);
            } else {
                let why = format!("the code that `{}` runs cannot be known", run.name);
                if code.text.contains("$(") { self.pipes(why) } else { self.unknown(why) }
            }
        }
        if !given.code.is_empty() {
            let opens = matches!(language, Language::Perl | Language::Ruby);
            let names = given.loops && given.code.iter().any(|code| code.text.contains("ARGV"));
            if opens
                && (names
                    || rest.iter().any(|field| {
                        field.text.contains('|')
                            || field.text.starts_with('>')
                            || (given.loops && field.text.contains("$("))
                    }))
            {
                self.unknown(format!("`{}` may run the names of its files", run.name));
            }
            for file in rest.iter().filter(|_| given.in_place || given.loops) {
                self.reads(file, state);
                if given.in_place {
                    self.refuse_unsure(run, &run.arguments());
                    self.writes(file, run.name, state);
                }
            }
            return Output::Unknown;
        }
        if let Some((module, at)) = given.module {
            let argv: Vec<Field> = [module].into_iter().chain(run.argv[at..].iter().cloned()).collect();
            self.module(&argv, run, state);
            return Output::Unknown;
        }
        let Some(file) = rest.first() else {
            if !given.only_told {
                self.code_from_stdin(language, run, state);
            }
            return Output::Unknown;
        };
        if given.only_told {
            rest.iter().for_each(|field| self.reads(field, state));
        } else if is_stdin(&file.text) {
            self.code_from_stdin(language, run, state);
        } else {
            self.code_file(language, file, run, state);
        }
        Output::Unknown
    }

    /// Files of its language that the text made: a program may load them, whatever it is told to run.
    pub(super) fn loads_made(&mut self, language: Language, run: &Run<'_>, state: &State) {
        let endings = match language {
            Language::Python => "py pyc pyw pth",
            Language::Node => "js mjs cjs ts mts cts jsx tsx node",
            Language::Perl => "pl pm t",
            Language::Ruby => "rb",
            Language::Php => "php inc",
            Language::Other => "",
        };
        for (path, content) in self.made_with(endings) {
            match content {
                Content::OneOf(texts) => texts.iter().for_each(|text| self.code(language, text, state)),
                Content::Unknown | Content::Names(_) => self
                    .pipes(format!("`{}` may load `{path}`, and what it holds is not written in the text", run.name)),
            }
        }
    }

    /// Programs that run what they find, such as tests, if the text has just written some of it.
    pub(super) fn runs_found(&mut self, run: &Run<'_>, state: &State) {
        match run.name {
            "pytest" | "py.test" | "coverage" | "mypy" | "flask" | "uvicorn" | "gunicorn" | "celery" | "alembic"
            | "sphinx-build" => self.loads_made(Language::Python, run, state),
            "jest" | "vitest" | "mocha" | "eslint" | "cypress" | "playwright" | "webpack" | "vite" | "rollup"
            | "babel" => self.loads_made(Language::Node, run, state),
            "gh" | "glab" if run.argv.get(1).is_some_and(|verb| verb.text == "alias" || verb.text == "extension") => {
                let asks = run.argv.get(2).is_none_or(|verb| verb.text == "list" || verb.text == "delete");
                if !asks {
                    self.unknown(format!("`{}` changes what its commands run", run.name));
                }
            }
            "rspec" | "rubocop" | "jekyll" => self.loads_made(Language::Ruby, run, state),
            "phpunit" => self.loads_made(Language::Php, run, state),
            "bats" | "act" => self.refuse_made("bats sh bash yml yaml", run),
            _ => {}
        }
    }

    /// Refuses to know what `run` does, if the text has just written files with one of `endings`.
    pub(super) fn refuse_made(&mut self, endings: &str, run: &Run<'_>) {
        if let Some((path, _)) = self.made_with(endings).first() {
            self.unknown(format!("`{}` runs `{path}`, which the text has just written", run.name));
        }
    }

    fn code_from_stdin(&mut self, language: Language, run: &Run<'_>, state: &State) {
        if let Some(text) = self.run_stdin(run.name, state) {
            self.code(language, &text, state);
        }
    }

    fn code_file(&mut self, language: Language, file: &Field, run: &Run<'_>, state: &State) {
        match self.content(file, state) {
            Some(Content::OneOf(texts)) => {
                self.reads(file, state);
                for text in texts {
                    self.code(language, &text, state);
                }
            }
            Some(Content::Unknown | Content::Names(_)) => {
                self.pipes(format!("`{}` is run, and what it holds is not written in the text", file.text));
            }
            None if !file.is_known() => {
                self.unknown(format!("`{}`, which `{}` runs, cannot be known", file.text, run.name))
            }
            None => {
                // A folder or a name without its ending stands for a file in it.
                for name in ["__main__.py", "__init__.py", "index.js", "package.json"] {
                    let inside = Field { text: format!("{}/{name}", file.text), certainty: file.certainty };
                    if self.content(&inside, state).is_some() {
                        self.unknown(format!("`{}` runs `{}`, which the text has just written", run.name, inside.text));
                    }
                }
                self.script_outside(file, run.name, state);
            }
        }
    }

    /// Looks through code for what could do harm.
    pub(super) fn code(&mut self, language: Language, text: &str, state: &State) {
        self.spend(text.len() / 8 + 1);
        if text.len() > bounds::VALUE_BYTES {
            self.cut("the code of a program is too long to read".to_owned());
            return;
        }
        match code::look(language, text) {
            Ok(touched) => {
                touched.reads.into_iter().for_each(|path| self.reads(&Field::known(path), state));
                for path in touched.writes {
                    self.writes(&Field::known(path), "a program", state);
                }
            }
            Err(why) => self.unknown(why),
        }
    }

    /// `python -m module`.
    fn module(&mut self, argv: &[Field], run: &Run<'_>, state: &mut State) {
        let module = &argv[0];
        let runs_code = [
            "timeit", "pdb", "code", "trace", "cProfile", "profile", "runpy", "idlelib", "IPython", "zipapp", "shutil",
            "pty",
        ];
        if !module.is_exact() || runs_code.contains(&module.text.as_str()) {
            self.unknown(format!("what `{} -m {}` runs cannot be known", run.name, module.text));
        } else if programs::find(&module.text).is_some() {
            self.inner(argv, state);
        } else {
            self.made_module(module, run, state);
            let operands = argv[1..].iter().filter(|field| !field.text.starts_with('-'));
            // These write what they are given.
            let writes =
                ["venv", "virtualenv", "zipfile", "tarfile", "compileall", "ensurepip", "lib2to3", "black", "isort"]
                    .contains(&module.text.as_str());
            for field in operands {
                self.reads(field, state);
                if writes {
                    self.touches(field, run.name, state);
                }
            }
        }
    }

    /// A module that the text made, or fetched.
    fn made_module(&mut self, module: &Field, run: &Run<'_>, state: &State) {
        let path = module.text.replace('.', "/");
        let first = path.split('/').next().unwrap_or_default();
        if first != path && OF_PYTHON.contains(&first) || OF_PYTHON.contains(&path.as_str()) {
            return;
        }
        for name in [format!("{path}.py"), format!("{path}/__main__.py"), format!("{path}/__init__.py")] {
            let file = Field::known(name);
            if self.content(&file, state).is_some() {
                self.code_file(Language::Python, &file, run, state);
            }
        }
    }

    /// A language that is not read: a script of the workspace is a command like others, code is not.
    fn other_language(&mut self, run: &Run<'_>, state: &State) {
        let words = &run.argv[1..];
        let asks = |field: &Field| ["--version", "-v", "-V", "--help", "-h", "-version"].contains(&field.text.as_str());
        if words.len() == 1 && asks(&words[0]) {
            return;
        }
        let network = matches!(run.name, "nc" | "ncat" | "netcat" | "socat" | "telnet");
        if !network && words.iter().any(|field| is_stdin(&field.text)) {
            if self.run_stdin(run.name, state).is_some() {
                self.unknown(format!("code of `{}` is not read", run.name));
            }
            return;
        }
        if matches!(run.name, "gdb" | "lldb") && only_looks(words) {
            return;
        }
        let builds = matches!(run.name, "deno" | "bun" | "swift" | "nim" | "crystal" | "v");
        let verb = words.first().is_some_and(|verb| builds && VERBS.contains(&verb.text.as_str()));
        let words = &words[usize::from(verb)..];
        if verb
            && words.iter().all(|field| field.is_known())
            && !words.iter().any(|field| field.text.starts_with("http"))
        {
            for field in words {
                if self.content(field, state).is_some() {
                    self.unknown(format!("`{}` was made just now, and `{}` runs it", field.text, run.name));
                }
            }
            return;
        }
        match words.first() {
            Some(file)
                if !network
                    && file.is_exact()
                    && file.text.contains('.')
                    && !file.text.starts_with('-')
                    && !file.text.contains("://") =>
            {
                if self.content(file, state).is_some() {
                    self.pipes(format!("`{}` is run, and its language is not read", file.text));
                } else {
                    self.script_outside(file, run.name, state);
                }
            }
            None if !network && self.run_stdin(run.name, state).is_none_or(|text| text.is_empty()) => {}
            _ => self.unknown(format!("code of `{}` is not read", run.name)),
        }
    }
}

/// What stands behind `-m` in a word of short options, such as the `p` of `-Bmp`; nothing if there is no `-m`.
fn module_of(text: &str) -> Option<&str> {
    let letters = text.strip_prefix('-')?;
    let at = letters.find(['m', 'c', 'W', 'X', 'Q'])?;
    letters[at..].strip_prefix('m')
}

/// Sorts the options of the interpreter of `language`.
fn given(run: &Run<'_>, language: Language) -> Given {
    let mut given = Given { rest: 1, ..Given::default() };
    while let Some(field) = run.argv.get(given.rest) {
        let text = field.text.as_str();
        if text == "--" {
            given.rest += 1;
            break;
        }
        if !text.starts_with('-') || text == "-" {
            break;
        }
        given.rest += 1;
        let next = run.argv.get(given.rest);
        if text.starts_with("--") {
            long_option(&mut given, run, field, next);
        } else if let Some(attached) = module_of(text).filter(|_| language == Language::Python) {
            let separate = attached.is_empty();
            let module =
                if separate { next.cloned() } else { Some(Field { text: attached.to_owned(), ..field.clone() }) };
            given.module = module.map(|module| (module, given.rest + usize::from(separate)));
            given.rest = run.argv.len();
        } else {
            short_options(&mut given, language, field, next);
        }
        if language == Language::Python && !given.code.is_empty() {
            break;
        }
    }
    given
}

fn long_option(given: &mut Given, run: &Run<'_>, field: &Field, next: Option<&Field>) {
    let (name, value) = match field.text.split_once('=') {
        Some((name, value)) => (name, Some(Field { text: value.to_owned(), certainty: field.certainty })),
        None => (field.text.as_str(), None),
    };
    match name {
        "--eval" | "--print" | "--run" => {
            if value.is_none() && next.is_some() {
                given.rest += 1;
            }
            given.code.extend(value.or_else(|| next.cloned()));
        }
        "--version" | "--help" | "--check" | "--syntax-check" => given.only_told = true,
        "--require"
        | "--import"
        | "--loader"
        | "--experimental-loader"
        | "--process-begin"
        | "--process-code"
        | "--process-end" => {
            given.odd = Some(name.to_owned());
            given.rest += usize::from(value.is_none());
        }
        _ if value.is_none() && run.valued.split(' ').any(|valued| valued == name) => given.rest += 1,
        _ => {}
    }
}

/// One word of short options.
fn short_options(given: &mut Given, language: Language, field: &Field, next: Option<&Field>) {
    let (code, valued, told) = match language {
        Language::Python => ("c", "WX", "Vh"),
        Language::Node => ("ep", "rC", "vhc"),
        Language::Perl => ("eE", "MmIFCDx", "vVhc"),
        Language::Ruby => ("e", "rIFCEWTx", "vhc"),
        Language::Php => ("rBER", "dSctz", "vmilh"),
        Language::Other => ("", "", ""),
    };
    let text = &field.text;
    // `-pe` of node is `-p` and `-e` at once.
    if language == Language::Node && (text == "-pe" || text == "-ep") {
        given.code.extend(next.cloned());
        given.rest += 1;
        return;
    }
    for (index, letter) in text.char_indices().skip(1) {
        let rest = &text[index + letter.len_utf8()..];
        if code.contains(letter) {
            let value =
                if rest.is_empty() { next.cloned() } else { Some(Field { text: rest.to_owned(), ..field.clone() }) };
            given.rest += usize::from(rest.is_empty());
            given.code.extend(value);
            return;
        }
        if letter == 'i' && matches!(language, Language::Perl | Language::Ruby) {
            given.in_place = true;
            return;
        }
        if valued.contains(letter) {
            let separate =
                rest.is_empty() && !matches!(letter, 'F' | 'C' | 'D' | 'x' | 'T' | 'W' if language != Language::Python);
            let value = if rest.is_empty() { next.map(|next| next.text.as_str()).unwrap_or_default() } else { rest };
            if letter == 'F' && value.contains(['(', '`', ';', '{']) {
                given.odd = Some(format!("-F {value}"));
            }
            if "Mmrd".contains(letter) && !code::is_plain_module(language, value) {
                given.odd = Some(format!("-{letter} {value}"));
            }
            given.rest += usize::from(separate);
            return;
        }
        if letter == 'd' && language == Language::Perl {
            given.odd = Some("-d".to_owned());
        }
        given.loops |= letter == 'n' || letter == 'p';
        given.only_told |= told.contains(letter);
    }
}

/// Whether a debugger is only told to look around.
fn only_looks(words: &[Field]) -> bool {
    let plain = ["bt", "backtrace", "where", "quit", "info", "thread", "frame"];
    let told = |pair: &&[Field]| pair[0].text == "-ex" || pair[0].text == "-o";
    let first = |field: &Field| field.text.split_whitespace().next().unwrap_or_default().to_owned();
    let options = ["-ex", "-o", "--batch", "-batch", "-p", "-q", "--args", "-nx"];
    words.windows(2).any(|pair| told(&pair))
        && words.windows(2).filter(told).all(|pair| plain.contains(&first(&pair[1]).as_str()))
        && words.iter().all(|field| !field.text.starts_with('-') || options.contains(&field.text.as_str()))
}
