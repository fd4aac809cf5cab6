//! Rules in the store and in files, and how they run.

use pintle_domain::rule::Edition;
use pintle_egress::Allow;

use crate::rule_files::RuleFolder;

/// Rules in the store and in files, and how they run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RulesConfig {
    /// Folders of files with rules.
    pub dirs: Vec<RuleFolder>,
    /// Folders of files with rules that nobody accepted.
    pub untrusted_dirs: Vec<RuleFolder>,
    /// Built-in rules that are forced off.
    pub builtin_disable: Vec<String>,
    /// Secret variables that command hooks may list nevertheless.
    pub command_env: Vec<String>,
    /// Whether what observers are told survives a restart.
    pub durable_outbox: bool,
    /// How long what they leave is kept.
    pub kept: RetentionConfig,
    /// How many observers run at once.
    pub workers: Option<usize>,
    /// How many wait.
    pub queue: Option<usize>,
    /// The model of judges.
    pub judge: JudgeConfig,
    /// The model for work in the background.
    pub background: JudgeConfig,
    /// The addresses that requests may reach beyond the public internet.
    pub http_allow: Vec<Allow>,
    /// `gateway.edition`, as far as it is said.
    pub edition: Option<Edition>,
    /// Why rules in files that somebody accepted are not in force: then gates are shut.
    pub changed: Option<String>,
}

/// How long what rules leave is kept, in days.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionConfig {
    /// Executions.
    pub execution_days: Option<u32>,
    /// The details of faults, and what programs of hooks wrote.
    pub detail_days: Option<u32>,
    /// The audit chain.
    pub audit_days: Option<u32>,
}

/// Which model to ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JudgeConfig {
    /// The provider.
    pub provider: Option<String>,
    /// Its model.
    pub model: Option<String>,
}
