//! `.config/tests.toml`: which tests run every day, which in `--all` besides, and which by a command of their own.

use anyhow::{Context, ensure};
use serde::Deserialize;

/// Where the plan stands.
pub const PLAN: &str = ".config/tests.toml";

/// The whole plan.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestPlan {
    /// What is not run every day.
    pub rest: Vec<TestGroup>,
    /// What is not run by `.ci/run` at all.
    pub elsewhere: Vec<TestElsewhere>,
}

/// Tests that `./pintle test --all` has more than `./pintle test`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestGroup {
    /// What they have in common, for people.
    pub group: String,
    /// A filterset of nextest.
    pub tests: String,
    /// Why they are not run every day.
    pub reason: String,
}

/// A file of tests that only a command of its own runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestElsewhere {
    /// The file, from the root.
    pub place: String,
    /// The command.
    pub command: String,
    /// Why.
    pub reason: String,
}

impl TestPlan {
    /// Reads the plan.
    ///
    /// # Errors
    /// It is not TOML, lacks a member, or gives no reason.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let plan: Self = toml::from_str(text).with_context(|| format!("`{PLAN}` is not as it should be"))?;
        let reasons = plan.rest.iter().map(|group| (&group.group, &group.reason));
        let reasons = reasons.chain(plan.elsewhere.iter().map(|tests| (&tests.place, &tests.reason)));
        for (what, reason) in reasons {
            ensure!(!reason.trim().is_empty(), "`{what}` in `{PLAN}` needs a reason");
        }
        Ok(plan)
    }

    /// The filterset of what is run in `--all` only.
    pub fn rest_filter(&self) -> String {
        let groups: Vec<String> = self.rest.iter().map(|group| format!("({})", one_line(&group.tests))).collect();
        groups.join(" | ")
    }

    /// The filterset of what is run every day.
    pub fn everyday_filter(&self) -> String {
        format!("not ({})", self.rest_filter())
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "[[rest]]\ngroup = 'a'\ntests = \"\"\"\ntest(a)\n| test(b)\"\"\"\nreason = 'slow'\n";

    #[test]
    fn what_is_not_in_the_list_is_run_every_day() {
        let more = "[[rest]]\ngroup = 'c'\ntests = 'test(c)'\nreason = 'large'\n";
        let plan = TestPlan::parse(&format!("elsewhere = []\n{REST}{more}")).unwrap();
        assert_eq!(plan.rest_filter(), "(test(a) | test(b)) | (test(c))");
        assert_eq!(plan.everyday_filter(), "not ((test(a) | test(b)) | (test(c)))");
    }

    #[test]
    fn a_group_without_a_reason_is_refused() {
        let text = format!("elsewhere = []\n{}", REST.replace("slow", " "));
        assert!(TestPlan::parse(&text).unwrap_err().to_string().contains("`a` in"));
        assert!(TestPlan::parse("rest = []").is_err());
    }
}
