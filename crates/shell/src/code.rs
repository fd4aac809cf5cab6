//! Looks through code of other languages: what is plainly harmless is known, all else is not.
//!
//! No language is parsed. Text in quotes is set aside where it cannot run; what is left may only hold names that run
//! nothing, write nothing and open no connection.

mod awk;
mod lexer;
mod node;
mod perl;
mod php;
mod python;
mod sed;

pub(crate) use awk::look as look_awk;
pub(crate) use sed::look as look_sed;

use crate::programs::Language;

/// The files that code touches, or why it cannot be known what it does.
pub(crate) type Look = Result<Touched, String>;

/// The files that harmless code names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(crate) reads: Vec<String>,
    pub(crate) writes: Vec<String>,
}

/// Looks through `code`.
pub(crate) fn look(language: Language, code: &str) -> Look {
    match language {
        Language::Python => python::look(code),
        Language::Node => node::look(code),
        Language::Perl => perl::look(code, "perl"),
        Language::Ruby => perl::look(code, "ruby"),
        Language::Php => php::look(code),
        Language::Other => Err("code of this language is not read".to_owned()),
    }
}

/// Whether an option that loads `module` loads nothing that harms.
pub(crate) fn is_plain_module(language: Language, module: &str) -> bool {
    let name = module.split('=').next().unwrap_or_default();
    if module.contains([';', '(', ' ', '{', '\'', '"', '`']) {
        return false;
    }
    match language {
        Language::Perl => [
            "strict",
            "warnings",
            "utf8",
            "feature",
            "List::Util",
            "POSIX",
            "JSON::PP",
            "Data::Dumper",
            "Time::HiRes",
            "MIME::Base64",
            "5.010",
            "v5.10",
        ]
        .contains(&name),
        Language::Ruby => {
            ["json", "yaml", "set", "time", "date", "pp", "csv", "digest", "securerandom"].contains(&name)
        }
        Language::Php => [
            "memory_limit",
            "display_errors",
            "error_reporting",
            "xdebug.mode",
            "zend.assertions",
            "opcache.enable_cli",
        ]
        .contains(&name),
        Language::Python | Language::Node | Language::Other => false,
    }
}

/// The refusal that names what was found.
fn unread(language: &str, found: &str) -> String {
    format!("code of {language} is not read: `{}`", found.chars().take(40).collect::<String>())
}
