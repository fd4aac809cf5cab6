//! The rules of one tenant: where they are listed, written and deleted.

use pintle_domain::id::TenantId;
use pintle_domain::json::Value;
use pintle_rules::admin::{AdminError, Caller, CallerRole, HistoryQuery, ListFilter, RuleAdmin};
use pintle_rules::record::Lang;

/// The rules of one tenant, where they are managed. What is written is in force when a method returns, also for turns in
/// progress.
pub struct Rules {
    rule_admin: RuleAdmin,
    by: Caller,
}

/// Why something is not done with a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RuleError {
    /// The kind, for programs: `INVALID_REQUEST`, `NOT_FOUND`, `FAILED_PRECONDITION`, `UNAVAILABLE` and the like.
    pub code: &'static str,
    /// For people.
    pub message: String,
}

impl From<AdminError> for RuleError {
    fn from(refused: AdminError) -> Self {
        Self { code: refused.code.word(), message: refused.message }
    }
}

/// A rule that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenRule {
    /// Its id.
    pub id: String,
    /// Settings that are allowed and probably not meant.
    pub warnings: Vec<String>,
}

impl Rules {
    pub(crate) fn new(rule_admin: RuleAdmin, tenant: TenantId) -> Self {
        let by = Caller { tenant, role: CallerRole::Admin, name: "host".to_owned(), user: None, lang: Lang::Cli };
        Self { rule_admin, by }
    }

    /// These rules for the person called `name`: the log of changes names them.
    #[must_use]
    pub fn by(self, name: &str) -> Self {
        Self { by: Caller { name: name.to_owned(), ..self.by }, ..self }
    }

    /// Writes a rule, as a record of the published form.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub async fn create(&self, record: &Value) -> Result<WrittenRule, RuleError> {
        let created = self.rule_admin.create(&self.by, record).await?;
        Ok(WrittenRule { id: created.id.to_string(), warnings: created.warnings })
    }

    /// Changes these members of a rule.
    ///
    /// # Errors
    /// There is no such rule of this tenant, or what is wrong with the change.
    pub async fn update(&self, id: &str, members: &Value) -> Result<WrittenRule, RuleError> {
        let updated = self.rule_admin.update(&self.by, id, members, None).await?;
        Ok(WrittenRule { id: id.to_owned(), warnings: updated.warnings })
    }

    /// Switches a rule on or off.
    ///
    /// # Errors
    /// There is no such rule of this tenant.
    pub async fn enable(&self, id: &str, enabled: bool) -> Result<(), RuleError> {
        self.rule_admin.toggle(&self.by, id, enabled).await?;
        Ok(())
    }

    /// Closes the circuit breaker of a rule.
    ///
    /// # Errors
    /// There is no such rule of this tenant.
    pub async fn reset(&self, id: &str) -> Result<(), RuleError> {
        self.rule_admin.reset(&self.by, id, None).await?;
        Ok(())
    }

    /// Deletes a rule.
    ///
    /// # Errors
    /// There is no such rule of this tenant.
    pub async fn delete(&self, id: &str) -> Result<(), RuleError> {
        Ok(self.rule_admin.delete(&self.by, id).await?)
    }

    /// The rules that hold for this tenant, secrets left out.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self) -> Result<Vec<Value>, RuleError> {
        Ok(self.rule_admin.list(&self.by, &ListFilter::default()).await?)
    }

    /// One rule.
    ///
    /// # Errors
    /// There is no such rule of this tenant.
    pub async fn get(&self, id: &str) -> Result<Value, RuleError> {
        Ok(self.rule_admin.get(&self.by, id).await?)
    }

    /// The last executions of the rules, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn history(&self, limit: usize) -> Result<Vec<Value>, RuleError> {
        let query = HistoryQuery { limit: Some(limit), ..HistoryQuery::default() };
        Ok(self.rule_admin.history(&self.by, &query).await?.executions)
    }

    /// Sets what judges may cost this tenant in a month, in tokens.
    ///
    /// # Errors
    /// It is not a number of tokens, or the store cannot be written.
    pub async fn set_budget(&self, tokens: i64) -> Result<(), RuleError> {
        // The host itself owns all of its tenants; whoever it hands these rules to does not.
        let owner = Caller { role: CallerRole::Owner, ..self.by.clone() };
        self.rule_admin.set_budget(&owner, &self.by.tenant, (tokens, "")).await?;
        Ok(())
    }
}
