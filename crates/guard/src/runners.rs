//! Programs that run others: one of a package or a project, the script of a file, or code that stands among their words. Pure.

use pintle_domain::shell::ShellCommand;

/// Programs that run another one of a package.
const OF_PACKAGES: [&str; 9] = ["bunx", "corepack", "npm", "npx", "pipx", "pnpm", "pnpx", "uvx", "yarn"];

/// Programs that run another one of a project, or one that they fetch or build, and the words with which they do so.
const OF_PROJECTS: [(&str, &[&str]); 26] = [
    ("asdf", &["exec"]),
    ("bazel", &["run"]),
    ("bazelisk", &["run"]),
    ("bundle", &["exec"]),
    ("cabal", &["exec", "run"]),
    ("cargo", &["r", "run"]),
    ("conda", &["run"]),
    ("dart", &["run"]),
    ("direnv", &["exec"]),
    ("dotnet", &["exec", "run"]),
    ("go", &["run"]),
    ("hatch", &["run"]),
    ("mamba", &["run"]),
    ("micromamba", &["run"]),
    ("mise", &["exec", "run", "x"]),
    ("nix", &["develop", "run", "shell"]),
    ("pdm", &["run"]),
    ("pipenv", &["run"]),
    ("pixi", &["exec", "run"]),
    ("poetry", &["run"]),
    ("rustup", &["run"]),
    ("rye", &["run"]),
    ("stack", &["exec", "run"]),
    ("swift", &["run"]),
    ("uv", &["run"]),
    ("volta", &["run"]),
];

/// Programs that run a script, and the letters behind which its text stands.
const OF_SCRIPTS: [(&str, &str); 9] = [
    ("bun", "ep"),
    ("deno", "ep"),
    ("node", "ep"),
    ("nodejs", "ep"),
    ("perl", "eE"),
    ("php", "r"),
    ("pypy", "c"),
    ("python", "c"),
    ("ruby", "e"),
];

/// Those of them that run programs of packages, too.
const SCRIPTS_AND_PACKAGES: [&str; 3] = ["bun", "deno", "node"];

/// Shells, and the letters behind which a text stands.
const SHELLS: [(&str, &str); 8] =
    [("ash", "c"), ("bash", "c"), ("dash", "c"), ("fish", "c"), ("ksh", "c"), ("mksh", "c"), ("sh", "c"), ("zsh", "c")];

/// Programs that run code of another language which stands among their words, beside those that run scripts.
const OF_CODE: [&str; 39] = [
    "awk",
    "clisp",
    "duckdb",
    "ed",
    "elixir",
    "emacs",
    "emacsclient",
    "erl",
    "ex",
    "gawk",
    "gdb",
    "gjs",
    "groovy",
    "guile",
    "gvim",
    "irb",
    "julia",
    "lldb",
    "lua",
    "luajit",
    "mawk",
    "nawk",
    "nvim",
    "ocaml",
    "osascript",
    "psql",
    "pwsh",
    "racket",
    "raku",
    "sbcl",
    "scala",
    "sqlite",
    "tclsh",
    "ts-node",
    "tsx",
    "vi",
    "view",
    "vim",
    "wish",
];

/// Programs that run no code, but a text of a shell where a letter, an option or a variable says so.
const OF_TEXTS: [&str; 8] = ["gmake", "gsed", "less", "make", "man", "more", "sed", "zless"];

/// Programs that run the program of a file which is told to them.
const OF_FILES: [&str; 7] = ["box64", "dotnet", "java", "mono", "qemu-aarch64", "qemu-x86_64", "wine"];

/// `name` without the number of a version.
fn bare(name: &str) -> &str {
    name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.')
}

/// Whether the program `name` runs another one of a package.
pub(crate) fn is_of_packages(name: &str) -> bool {
    OF_PACKAGES.contains(&name)
}

/// Whether `command` starts a program of a project, or one that it fetches or builds.
pub(crate) fn starts_of_project(command: &ShellCommand) -> bool {
    let own = || command.argv.iter().skip(1).take_while(|word| *word != "--");
    let is_told = |words: &[&str]| own().any(|word| words.contains(&word.as_str()));
    OF_PROJECTS.iter().any(|(program, words)| *program == command.name && is_told(words))
}

/// Whether `command` starts a program of a package or a project.
pub(crate) fn starts_others(command: &ShellCommand) -> bool {
    let name = command.name.as_str();
    is_of_packages(name) || SCRIPTS_AND_PACKAGES.contains(&name) || starts_of_project(command)
}

/// The letters behind which the text of a script stands for the program `name`; none where it runs no scripts.
pub(crate) fn letters_of_script(name: &str) -> Option<&'static str> {
    let bare = bare(name);
    OF_SCRIPTS.iter().chain(&SHELLS).find(|(program, _)| *program == bare).map(|(_, letters)| *letters)
}

/// Whether the program `name` runs code of another language which stands among its words.
pub(crate) fn takes_code(name: &str) -> bool {
    let bare = bare(name);
    OF_CODE.contains(&bare) || OF_SCRIPTS.iter().any(|(program, _)| *program == bare)
}

/// Whether the program `name` may run a text that it is told, or that stands in its variables, in its own way.
pub(crate) fn takes_text(name: &str) -> bool {
    takes_code(name) || OF_TEXTS.contains(&name)
}

/// Whether the program `name` runs the file that it is told first.
pub(crate) fn runs_file(name: &str) -> bool {
    letters_of_script(name).is_some() || takes_code(name) || OF_FILES.contains(&name)
}

/// Whether `command` is a shell that runs a text which stands among its words.
pub(crate) fn is_shell_with_text(command: &ShellCommand) -> bool {
    SHELLS.iter().any(|(shell, _)| *shell == command.name) && command.argv.get(1).is_some_and(|word| word == "-c")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::taken::tests::commands;

    #[test]
    fn each_program_stands_in_the_list_of_what_it_runs() {
        for (name, letters, is_code, is_file) in [
            ("python3.12", Some("c"), true, true),
            ("node", Some("ep"), true, true),
            ("bash", Some("c"), false, true),
            ("sqlite3", None, true, true),
            ("java", None, false, true),
            ("npx", None, false, false),
            ("ls", None, false, false),
        ] {
            let found = (letters_of_script(name), takes_code(name), runs_file(name));
            assert_eq!(found, (letters, is_code, is_file), "{name}");
        }
        assert!(takes_text("sed") && takes_text("perl") && !takes_text("cat"));
        let scripts = OF_SCRIPTS.iter().map(|(name, _)| *name);
        assert!(scripts.clone().all(|name| !OF_CODE.contains(&name)), "none stands twice");
        assert!(SCRIPTS_AND_PACKAGES.iter().all(|name| scripts.clone().any(|script| script == *name)));
    }

    #[test]
    fn a_runner_of_projects_runs_by_its_word_alone() {
        for (text, is_start) in [
            ("npx x", true),
            ("cargo run -p x -- y", true),
            ("cargo test -p x", false),
            ("cargo test -- run", false),
            ("uv tool run x", true),
            ("cargo +nightly r -- x", true),
            ("uv pip install x", false),
            ("go run ./x", true),
            ("node x.js", true),
            ("python3 x.py", false),
        ] {
            assert_eq!(starts_others(&commands(&[text])[0]), is_start, "{text}");
        }
    }

    #[test]
    fn a_text_stands_behind_the_option_of_a_shell() {
        for (text, is_it) in [("sh -c x", true), ("sh x.sh -c", false), ("python3 -c x", false)] {
            assert_eq!(is_shell_with_text(&commands(&[text])[0]), is_it, "{text}");
        }
    }
}
