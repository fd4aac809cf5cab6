//! Variables that make programs do something else than they say.

/// What setting a variable does to the programs that see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Influence {
    None,
    /// Programs are looked for elsewhere.
    SearchPath,
    /// The value is run as a shell text.
    Runs,
    /// The value makes programs load code.
    Loads,
    /// The value names a file or a folder that programs write.
    Written,
    /// Programs talk to others by the machine that it names.
    Proxy,
}

const RUNS: &[&str] = &[
    "PROMPT_COMMAND",
    "PAGER",
    "MANPAGER",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "GIT_PAGER",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "GIT_PROXY_COMMAND",
    "RSYNC_RSH",
    "CVS_RSH",
    "SUDO_EDITOR",
    "PS0",
    "LESSOPEN",
    "LESSCLOSE",
    "FCEDIT",
    "RUSTC_WRAPPER",
    "CC",
    "CXX",
    "LD",
    "SHELL",
    "MAKESHELL",
    "SYSTEMD_PAGER",
    "BAT_PAGER",
    "DELTA_PAGER",
    "AWS_PAGER",
    "GH_PAGER",
    "PSQL_PAGER",
    "PSQL_EDITOR",
    "PARALLEL_SHELL",
    "PARALLEL_SSH",
    "RUSTC_WORKSPACE_WRAPPER",
];

const LOADS: &[&str] = &[
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "BASH_ENV",
    "ENV",
    "PERL5OPT",
    "PERL5LIB",
    "PERLLIB",
    "RUBYOPT",
    "RUBYLIB",
    "NODE_OPTIONS",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONBREAKPOINT",
    "PYTHONWARNINGS",
    "JAVA_TOOL_OPTIONS",
    "TAR_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "BASHOPTS",
    "SHELLOPTS",
    "PS4",
    "GOFLAGS",
    "GIT_CONFIG",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "MAKEFLAGS",
    "GNUMAKEFLAGS",
    "VIMINIT",
    "EXINIT",
    "GVIMINIT",
    "INPUTRC",
    "LUA_INIT",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "AWKPATH",
    "DYLD_INSERT_LIBRARIES",
    "GCONV_PATH",
    "ZDOTDIR",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "HISTFILE",
    "LESS",
    "RUSTFLAGS",
    "BASH_LOADABLES_PATH",
    "MAKEFILES",
    "LESSKEY",
    "LESSKEYIN",
    "LESSKEYIN_SYSTEM",
    "LESSKEY_SYSTEM",
    "LESSKEY_CONTENT",
    "PARALLEL",
    "PSQLRC",
    "CURL_HOME",
    "WGETRC",
    "SYSTEM_WGETRC",
    "PIP_CONFIG_FILE",
    "NPM_CONFIG_USERCONFIG",
    "npm_config_userconfig",
    "NPM_CONFIG_GLOBALCONFIG",
    "npm_config_globalconfig",
    "PS1",
    "PS2",
];

const WRITTEN: &[&str] = &[
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_INSTALL_ROOT",
    "GOBIN",
    "PYTHONPYCACHEPREFIX",
    "NODE_V8_COVERAGE",
    "SSLKEYLOGFILE",
    "COVERAGE_FILE",
    "LLVM_PROFILE_FILE",
];

/// What setting `name` does.
pub(crate) fn influence(name: &str) -> Influence {
    let name = name.trim_end_matches('+');
    if name == "PATH" {
        Influence::SearchPath
    } else if RUNS.contains(&name) || is_runner_of_cargo(name) {
        Influence::Runs
    } else if LOADS.contains(&name) || name.starts_with("BASH_FUNC_") || name.starts_with("GIT_CONFIG_") {
        Influence::Loads
    } else if name.starts_with("GIT_TRACE") || WRITTEN.contains(&name) {
        Influence::Written
    } else if leads(name) {
        Influence::Proxy
    } else {
        Influence::None
    }
}

/// Whether cargo starts what it built by the program that the variable `name` names, or links it so.
fn is_runner_of_cargo(name: &str) -> bool {
    name.starts_with("CARGO_TARGET_") && (name.ends_with("_RUNNER") || name.ends_with("_LINKER"))
}

/// Whether programs talk to the machine that the variable `name` names.
fn leads(name: &str) -> bool {
    let ends = |end: &str| {
        name.len()
            .checked_sub(end.len())
            .and_then(|at| name.get(at..))
            .is_some_and(|rest| rest.eq_ignore_ascii_case(end))
    };
    (ends("proxy") || ends("_index_url") || ends("_registry")) && !ends("no_proxy") && !ends("noproxy")
}

/// Whether `value` is one that many people give `name`, and that loads nothing.
pub(crate) fn is_plain_setting(name: &str, value: &str) -> bool {
    let words = || value.split_whitespace();
    match name {
        _ if value.is_empty() => true,
        "NODE_OPTIONS" => words().all(|word| {
            word.starts_with("--max-old-space-size=") || word == "--no-warnings" || word == "--enable-source-maps"
        }),
        "PYTHONWARNINGS" => {
            ["ignore", "default", "error", "always", "once"].contains(&value.split(':').next().unwrap_or_default())
        }
        "MAKEFLAGS" | "GNUMAKEFLAGS" => words()
            .all(|word| word.strip_prefix("-j").is_some_and(|rest| rest.bytes().all(|digit| digit.is_ascii_digit()))),
        "GOFLAGS" => !value.contains("exec"),
        "LESS" => {
            words().all(|word| word.starts_with('-') && word[1..].chars().all(|letter| "FRXSiMKQ".contains(letter)))
        }
        "GIT_CONFIG_GLOBAL" | "GIT_CONFIG_SYSTEM" | "HISTFILE" | "GIT_CONFIG" | "INPUTRC" | "PIP_CONFIG_FILE"
        | "WGETRC" => value == "/dev/null",
        "RUSTFLAGS" => !value.contains("linker") && !value.contains("link-arg"),
        "PS1" | "PS2" => !value.contains("$(") && !value.contains('`'),
        "PS4" => !value.contains(['$', '`']),
        _ => false,
    }
}
