//! What stood when a rule came, and may stand until somebody mends it. These lists only get shorter.

/// Names of public types that mean two things until everything is renamed. A name that stays goes to `TWO_MEANINGS`
/// with its reason.
pub(crate) const BEFORE_THE_RENAMES: &[&str] = &[];

/// Functions that hide parameters in tuples, by file.
pub(crate) const HIDDEN_PARAMETERS: &[(&str, &str)] = &[
    ("crates/agent/src/driver/model.rs", "ask"),
    ("crates/domain/tests/simulation/evidence.rs", "play"),
    ("crates/domain/tests/simulation/person.rs", "ask_person"),
    ("crates/host/src/host_rules.rs", "rule_admin"),
    ("crates/host/src/host_rules.rs", "parts"),
    ("crates/pintle-cli/src/cli/turn.rs", "work"),
    ("crates/rules/src/admin/changing.rs", "write"),
    ("crates/rules/tests/it/admin/stage.rs", "parts"),
    ("crates/shell/src/expand/parameter.rs", "operation"),
    ("crates/store/src/rows/group.rs", "write"),
    ("crates/store/tests/it/random.rs", "ask"),
    ("crates/testkit/src/rules/state.rs", "log"),
];
