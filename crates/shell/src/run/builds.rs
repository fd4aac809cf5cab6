//! Programs that build, edit, or ask a database: known commands, unless an option makes them run something else.

use crate::programs::Builds;
use crate::read::Reading;
use crate::run::Run;
use crate::state::{Certainty, Field, Output, State, Stdin};

/// Files that a build runs, by their names.
const RUN_BY_BUILDS: &[&str] = &[
    "Makefile",
    "makefile",
    "GNUmakefile",
    "package.json",
    "build.rs",
    "CMakeLists.txt",
    "build.ninja",
    "meson.build",
    "justfile",
    "Justfile",
    "Taskfile.yml",
    "Rakefile",
    "build.xml",
    "build.gradle",
    "pom.xml",
    "tox.ini",
    "noxfile.py",
    "conftest.py",
    "setup.py",
    "SConstruct",
];

impl Reading<'_> {
    pub(super) fn building(&mut self, run: &Run<'_>, builds: Builds, state: &mut State) -> Output {
        match builds {
            Builds::Makes => self.make(run, state),
            Builds::Compiles => self.compile(run, state),
            Builds::Editor => self.editor(run, state),
            Builds::Man => self.man(run, state),
            Builds::Database => self.database(run, state),
            Builds::Crontab => {
                let asks = run.argv.iter().any(|field| field.text == "-l");
                if !asks {
                    self.unknown("`crontab` changes what is run later".to_owned());
                }
            }
        }
        Output::Unknown
    }

    fn make(&mut self, run: &Run<'_>, state: &mut State) {
        let words = &run.argv[1..];
        if RUN_BY_BUILDS.iter().any(|name| self.has_made(name)) {
            self.pipes(format!("`{}` runs what the text has just written", run.name));
        }
        self.settings(run);
        self.rule_files(run, state);
        for field in words.iter().filter(|_| matches!(run.name, "make" | "gmake")) {
            let value = field
                .text
                .split_once('=')
                .filter(|(name, _)| crate::syntax::is_name(name.trim_end_matches([':', '+', '?'])))
                .map(|(_, value)| value);
            let command =
                value.filter(|value| value.contains(char::is_whitespace) && !value.trim_start().starts_with('-'));
            if let Some(text) = command {
                self.inner_text(&Field { text: text.to_owned(), certainty: field.certainty }, run.name, state);
            }
        }
        for field in words {
            let folder =
                ["DESTDIR=", "prefix=", "PREFIX=", "--prefix="].iter().find_map(|name| field.text.strip_prefix(name));
            if let Some(folder) = folder {
                self.touches(&Field { text: folder.to_owned(), certainty: field.certainty }, run.name, state);
            }
        }
        if let [_, verb, set, rest @ ..] = run.argv
            && verb.text == "pkg"
            && set.text == "set"
        {
            for (_, text) in rest.iter().filter_map(|field| field.text.split_once('=')) {
                self.inner_text(&Field::known(text), run.name, state);
            }
        }
        // A value of a variable may hold a command of its own.
        for field in words.iter().filter(|field| {
            field.text.replace("$((", "").contains("$(") || field.text.contains("${") || field.text.contains('`')
        }) {
            self.unknown(format!("`{}`, given to `{}`, may run a command", field.text, run.name));
        }
        self.package_runner(run, state);
        if matches!(run.name, "cmake" | "ctest") {
            self.cmake(words, state);
        }
    }

    /// What the text has just written and the program reads, and what a setting of it says from now on.
    fn settings(&mut self, run: &Run<'_>) {
        let words = &run.argv[1..];
        self.refuse_made(built(run.name), run);
        if matches!(run.name, "npm" | "npx" | "pnpm" | "yarn") && (self.has_made(".npmrc") || self.has_made(".yarnrc"))
        {
            self.unknown(format!("`{}` does what settings say that the text has just written", run.name));
        }
        if words.iter().any(|field| ["config", "set", "env"].contains(&field.text.as_str())) {
            // A setting may name who is asked from now on.
            for field in words {
                let value = field.text.split_once('=').map_or(field.text.as_str(), |(_, value)| value);
                if crate::paths::is_url(value) {
                    self.url(value);
                }
            }
        }
    }

    /// Where the rules come from: a file of the workspace, or the text itself.
    fn rule_files(&mut self, run: &Run<'_>, state: &mut State) {
        let words = &run.argv[1..];
        for (index, field) in words.iter().enumerate() {
            let text = field.text.as_str();
            let odd = (text.starts_with("--ev") || (text.starts_with("-E") && run.name != "ctest"))
                && !matches!(run.name, "cmake" | "rake" | "just")
                || text.starts_with("SHELL=")
                || text.starts_with(".SHELLFLAGS=")
                || text.starts_with("MAKEFLAGS=");
            if odd || (matches!(run.name, "make" | "gmake") && field.certainty == Certainty::Many) {
                self.unknown(format!("what `{}` runs cannot be known", run.name));
            }
            let long = text.split_once('=').filter(|(name, _)| name.len() > 4);
            let names = |name: &str| "--file".starts_with(name) || "--makefile".starts_with(name);
            let file = if text == "-f" || (text.len() > 4 && names(text)) {
                words.get(index + 1).cloned()
            } else if let Some((_, file)) = long.filter(|(name, _)| names(name)) {
                Some(Field::known(file))
            } else {
                text.strip_prefix("-f").map(Field::known)
            };
            if let Some(file) = file.filter(|_| matches!(run.name, "make" | "gmake" | "just" | "ninja")) {
                if file.text == "-" || file.text.starts_with("/dev/") || self.content(&file, state).is_some() {
                    self.pipes(format!("the rules of `{}` are not in a file of the workspace", run.name));
                } else {
                    self.script_outside(&file, run.name, state);
                }
            }
        }
    }

    /// `cmake -E rm -rf x`, `cmake -P script`.
    fn cmake(&mut self, words: &[Field], state: &mut State) {
        let Some(at) = words.iter().position(|field| field.text == "-E" || field.text == "-P") else { return };
        let rest = &words[at + 1..];
        if words[at].text == "-P" {
            rest.first().into_iter().for_each(|file| self.script_outside(file, "cmake", state));
            return;
        }
        let Some(verb) = rest.first() else { return };
        let renamed = match verb.text.as_str() {
            "rm" | "remove" | "remove_directory" => "rm",
            "copy" | "copy_directory" | "copy_if_different" => "cp",
            "rename" => "mv",
            "touch" | "make_directory" => "touch",
            "env" | "time" => "env",
            "chdir" => {
                self.inner(rest.get(2..).unwrap_or_default(), state);
                return;
            }
            _ => return,
        };
        let mut argv = vec![Field::known(renamed)];
        argv.extend_from_slice(&rest[1..]);
        self.inner(&argv, state);
    }

    /// `npx CMD`, `npm exec CMD`, `pnpm dlx CMD`, `npm install URL`.
    fn package_runner(&mut self, run: &Run<'_>, state: &mut State) {
        if !matches!(run.name, "npm" | "npx" | "pnpm" | "pnpx" | "yarn" | "bunx" | "corepack") {
            return;
        }
        let words = &run.argv[1..];
        if let Some(text) = words.windows(2).find(|pair| {
            matches!(
                pair[0].text.as_str(),
                "-c" | "--call" | "--shell-auto-fallback" | "--script-shell" | "--node-options"
            )
        }) {
            self.inner_text(&text[1], run.name, state);
        }
        for field in words.iter().filter(|field| {
            field.text.starts_with("--script-shell=")
                || field.text.starts_with("--call=")
                || field.text.starts_with("--node-options=")
        }) {
            self.unknown(format!("`{}` makes `{}` run something else", field.text, run.name));
        }
        let (_, end) = run.leading(words);
        let rest = &words[end..];
        let carries = matches!(run.name, "npx" | "pnpx" | "bunx");
        let verb = rest.first().map(|field| field.text.as_str()).unwrap_or_default();
        let skip = if carries {
            0
        } else if matches!(verb, "exec" | "dlx" | "x") {
            1
        } else {
            usize::MAX
        };
        if rest.iter().any(|field| field.certainty >= Certainty::Unknown)
            && (skip <= 1 || rest.first().is_some_and(|field| !field.is_known()))
        {
            self.unknown(format!("what `{}` runs cannot be known", run.name));
        }
        if let Some(inner) = rest.get(skip..).filter(|inner| !inner.is_empty()) {
            let (_, options) = run.leading(inner);
            if inner[options..].first().is_some_and(|field| field.text.contains("://")) {
                self.pipes(format!("`{}` runs what it fetches", run.name));
            }
            self.inner(&inner[options..], state);
        }
        if skip == usize::MAX && rest.len() > 1 && crate::programs::is_grave(verb) && !["rm", "unlink"].contains(&verb)
            || verb == "rimraf"
        {
            self.inner(rest, state);
        }
        if matches!(verb, "install" | "i" | "add") {
            let names = |before: &Field| ["--proxy", "--https-proxy", "--registry"].contains(&before.text.as_str());
            let packages = rest.windows(2).filter(|pair| !names(&pair[0])).map(|pair| &pair[1]);
            for field in packages.filter(|field| field.text.contains("://")) {
                self.pipes(format!("`{}` runs the installation of `{}`", run.name, field.text));
            }
        }
    }

    fn compile(&mut self, run: &Run<'_>, state: &mut State) {
        let verb = run.argv.get(1).map(|verb| verb.text.as_str()).unwrap_or_default();
        if matches!(verb, "run" | "r" | "test" | "t" | "bench" | "nextest" | "generate" | "install") {
            self.refuse_made("rs go java cs fs zig cargo", run);
        }
        let made = run.argv[1..].iter().any(|field| self.content(field, state).is_some());
        let runs = RUN_BY_BUILDS.iter().any(|name| self.has_made(name)) || self.has_made("Cargo.toml");
        if made || runs {
            self.pipes(format!("`{}` compiles what the text has just written", run.name));
        }
        let piped = run.argv[1..].iter().any(|field| field.text == "-" || field.text == "/dev/stdin");
        if piped
            && matches!(
                run.name,
                "gcc" | "g++" | "cc" | "c++" | "clang" | "clang++" | "tcc" | "rustc" | "ghc" | "gfortran"
            )
        {
            self.pipes(format!("`{}` compiles what is piped into it", run.name));
        }
        let odd = run.argv[1..].iter().any(|field| {
            ["-wrapper", "-fplugin=", "-B", "-specs=", "-Clinker", "-toolexec", "-exec", "-e"]
                .iter()
                .any(|odd| field.text.starts_with(odd))
        });
        let config = run.argv.windows(2).any(|pair| {
            run.name == "cargo"
                && pair[0].text == "--config"
                && ["runner", "linker", "wrapper", "alias"].iter().any(|key| pair[1].text.contains(key))
        });
        if (odd && run.name != "cargo" && run.name != "dotnet") || config {
            self.unknown(format!("an option of `{}` runs something else", run.name));
        }
        let output =
            run.argv.windows(2).find(|pair| pair[0].text == "-o" && !matches!(run.name, "cargo" | "dotnet" | "java"));
        if let Some(pair) = output {
            self.touches(&pair[1], run.name, state);
        }
        if run.name == "go"
            && run
                .argv
                .get(1)
                .is_some_and(|verb| verb.text == "run" || verb.text == "install" || verb.text == "generate")
            && run.argv.iter().any(|field| field.text.contains('@'))
        {
            self.pipes("`go` runs what it fetches".to_owned());
        }
        if run.name == "cargo"
            && run.argv.get(1).is_some_and(|verb| verb.text == "install")
            && run.argv.iter().any(|field| field.text == "--git")
        {
            self.pipes("`cargo` builds and installs what it fetches".to_owned());
        }
    }

    fn editor(&mut self, run: &Run<'_>, state: &mut State) {
        let words = &run.argv[1..];
        let gui = run.name == "code";
        self.home_of_client(state);
        let odd = words.iter().any(|field| {
            let text = field.text.as_str();
            (text.starts_with('+') && text.len() > 1 && !text[1..].bytes().all(|byte| byte.is_ascii_digit()))
                || (text.starts_with('-')
                    && !gui
                    && !["-R", "-d", "-O", "-o", "-p", "-n", "--version", "--help", "-nw", "-g", "--goto"]
                        .contains(&text))
        });
        let piped = state.stdin != Stdin::Inherited && matches!(run.name, "ed" | "ex" | "red" | "vim" | "vi" | "nvim");
        if odd || piped || words.iter().any(|field| field.certainty == Certainty::Many) {
            self.unknown(format!("what `{}` is told to do is not read", run.name));
        }
        for field in words.iter().filter(|field| !field.text.starts_with(['-', '+'])) {
            self.reads(field, state);
            if !matches!(run.name, "view" | "rview") {
                self.touches(field, run.name, state);
            }
        }
    }

    fn man(&mut self, run: &Run<'_>, state: &mut State) {
        let arguments = run.arguments();
        if let Some(pager) = arguments.value(&["-P", "--pager"]) {
            self.inner_text(pager, run.name, state);
        }
        let browser = run.argv.iter().any(|field| field.text.starts_with("-H") || field.text.starts_with("--ht"));
        if browser || arguments.has(&["-C", "--config-file"]) {
            self.unknown("`man` is told what to run".to_owned());
        }
        for field in arguments.operands.iter().filter(|field| field.text.contains('/')) {
            self.reads(field, state);
        }
    }

    /// What reads its settings in the home folder may find commands there, if the text chose that folder.
    pub(super) fn home_of_client(&mut self, state: &State) {
        if state.variables.contains_key("HOME") || state.variables.contains_key("XDG_CONFIG_HOME") {
            self.unknown("settings are read in a home folder that the text chose".to_owned());
        }
    }

    fn database(&mut self, run: &Run<'_>, state: &mut State) {
        let mut texts: Vec<String> = run.argv[1..].iter().map(|field| field.text.clone()).collect();
        if let Stdin::Known(text) = &state.stdin {
            texts.push(text.to_string());
        }
        if state.stdin == Stdin::Unknown || run.argv.iter().any(|field| field.certainty == Certainty::Many) {
            self.unknown(format!("what `{}` is told to do cannot be known", run.name));
        }
        if matches!(run.name, "sqlite3" | "duckdb")
            && let Some(file) =
                run.argv[1..].iter().find(|field| !field.text.starts_with('-') && field.text != ":memory:")
        {
            let file = &of_uri(file);
            self.reads(file, state);
            self.touches(file, run.name, state);
        }
        let sets = run.name == "redis-cli" && texts.iter().any(|text| text.eq_ignore_ascii_case("config"));
        let begins =
            matches!(run.name, "sqlite3" | "duckdb") && texts.iter().any(|text| text == "-init" || text == "--init");
        self.home_of_client(state);
        if sets || begins || texts.iter().any(|text| is_odd_query(text)) {
            self.unknown(format!("what `{}` is told to do is not read", run.name));
        }
        if matches!(run.name, "mongosh" | "mongo" | "redis-cli") && run.argv.iter().any(|field| field.text == "--eval")
        {
            self.unknown(format!("code of `{}` is not read", run.name));
        }
    }
}

/// The file that `name` of a database means, which may be a URI: `file:a.db?mode=rw`.
fn of_uri(name: &Field) -> Field {
    let Some(rest) = name.text.strip_prefix("file:") else { return name.clone() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let path = rest.strip_prefix("//localhost/").or_else(|| rest.strip_prefix("///"));
    let path = path.map_or_else(|| rest.to_owned(), |path| format!("/{path}"));
    // Letters that are escaped may be any.
    let mut parts = path.split('%');
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut certainty = name.certainty;
    for part in parts {
        certainty = certainty.max(Certainty::Glob);
        text.push('?');
        text.push_str(part.get(2..).unwrap_or_default());
    }
    Field { text, certainty }
}

/// Commands of the shells of databases that run nothing and write nothing elsewhere.
const DOT_COMMANDS: &[&str] = &[
    ".tables",
    ".schema",
    ".mode",
    ".headers",
    ".databases",
    ".indexes",
    ".dump",
    ".quit",
    ".exit",
    ".width",
    ".help",
    ".timeout",
    ".stats",
    ".timer",
];

/// What makes a database run a program or touch a file.
const ODD_QUERIES: &[&str] = &[
    "\\!",
    "\\copy",
    "\\o",
    "\\w",
    "\\g |",
    "\\g|",
    "program",
    "system ",
    "\\sys",
    "load_extension",
    "writefile",
    "readfile",
    "into outfile",
    "into dumpfile",
    "load_file",
    "pg_read_file",
    "pg_ls_dir",
    "lo_export",
    "lo_import",
    "attach",
    "eval",
    "exec(",
    "run(",
    "plpython",
    "plperl",
    "edit(",
    "copy ",
    "vacuum into",
];

fn is_odd_query(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let path = text.starts_with("./") || text.starts_with("../");
    let mut commands = lower.lines().filter(|line| line.trim_start().starts_with('.') && !path);
    let dots = commands.any(|line| !line.split_whitespace().next().is_some_and(|word| DOT_COMMANDS.contains(&word)));
    dots || ODD_QUERIES.iter().any(|odd| lower.contains(odd))
}

/// Endings of the files that the build `name` makes something of, and may run.
fn built(name: &str) -> &'static str {
    match name {
        "make" | "gmake" | "mmake" => "mk c cc cpp cxx h hpp s S f rs go java",
        "npm" | "npx" | "pnpm" | "pnpx" | "yarn" | "bunx" | "turbo" | "nx" | "lerna" => "js mjs cjs ts mts cts jsx tsx",
        "gradle" | "mvn" | "ant" | "bazel" => "java kt groovy kts scala bzl",
        "tox" | "nox" | "scons" | "meson" => "py",
        "rake" => "rb rake",
        "cmake" | "ninja" | "ctest" => "cmake c cc cpp cxx h hpp",
        _ => "mk",
    }
}
