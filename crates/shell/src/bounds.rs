//! How much of a shell text is read; beyond it the text counts as unknown.

/// Longest text, in bytes. Four times the longest command that a model wrote in the samples at hand.
pub(crate) const TEXT_BYTES: usize = 64 * 1024;

/// Most commands that are told. A condition that walks them stays within its own cost.
pub(crate) const COMMANDS: usize = 1000;

/// Deepest nesting of shells, wrappers, substitutions and calls that is told as `depth`.
pub(crate) const DEPTH: u32 = 20;

/// Deepest nesting of brackets, quotes and compound commands in one text; keeps the stack small.
pub(crate) const SYNTAX_NESTING: u32 = 24;

/// Deepest nesting of everything that is being read at once; 48 levels fit a stack of 1 MiB in a debug build.
pub(crate) const LEVELS: u32 = 48;

/// Most words that one word may become by braces, and most fields of one command.
pub(crate) const WORDS: usize = 1000;

/// Longest value, output or field, in bytes; the same as the longest text, so that doubling a variable ends.
pub(crate) const VALUE_BYTES: usize = TEXT_BYTES;

/// Steps of work for one text; a step is one command, field, path or 64 copied bytes. About a tenth of a second.
pub(crate) const STEPS: usize = 200_000;

/// Most variables that are followed at once; each branch copies them.
pub(crate) const VARIABLES: usize = 500;

/// Most `return`, `break` and `continue` whose states are kept at once.
pub(crate) const JUMPS: usize = 200;

/// Times that the body of a loop is read until its variables stay the same.
pub(crate) const LOOP_PASSES: usize = 4;

/// Texts that one file may hold by different branches.
pub(crate) const FILE_TEXTS: usize = 8;

/// Longest that a path may grow by one link; the longest path of the system.
pub(crate) const LINK_GROWTH: usize = 4096;

/// Most paths in one list of the facts; as many as commands.
pub(crate) const PATHS: usize = 1000;

/// Most folders that are followed at once: four `cd` in a row, each of which may fail.
pub(crate) const FOLDERS: usize = 16;
