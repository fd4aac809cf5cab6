//! The methods of the protocol: who may is asked here, once, and each group has a file.

use std::sync::Arc;

use pintle_domain::json::Value;

use crate::Shared;
use crate::error::ApiError;
use crate::hub::Connection;
use crate::{frame, roles};

mod agents;
mod approvals;
mod chat;
mod checking;
mod health;
mod identity;
mod listing;
mod nodes;
mod overview;
mod sessions;
mod turns;
mod webhooks;

pub(crate) use crate::error::going_away;

impl Shared {
    /// Does what `request` asks for, if `connection` may.
    pub(crate) async fn call(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        request: &frame::Request,
    ) -> Result<Value, ApiError> {
        let who = &connection.who;
        let method = roles::allow(who, &request.method)?;
        let params = &request.params;
        self.guests.rates.request(who, self.life.nodes.count())?;
        match method.name {
            "agents.list" => self.agents_list(who, params).await,
            "sessions.list" => self.sessions_list(who, params).await,
            "sessions.preview" => self.sessions_preview(who, params).await,
            "sessions.patch" => self.sessions_patch(who, params).await,
            "sessions.delete" => self.sessions_delete(who, params).await,
            "sessions.reset" => self.sessions_forget(who, params, false).await,
            "sessions.compact" => self.sessions_forget(who, params, true).await,
            "chat.history" => self.chat_history(who, params).await,
            "chat.session.status" => self.chat_status(who, params).await,
            "chat.send" => self.chat_send(connection, (&request.id, params)).await,
            "chat.inject" => self.chat_inject(who, params).await,
            "chat.abort" => self.chat_abort(who, params).await,
            "turns.list" => self.turns_list(who, params).await,
            "turns.get" => self.turns_get(who, params).await,
            "turns.seen" => self.turns_seen(who, params).await,
            "overview.get" => self.overview_get(who, params).await,
            "health.get" => self.health_get(who, params).await,
            "doctor.run" => self.doctor_run(params).await,
            "hooks.check" => self.hooks_check(params).await,
            "nodes.list" => self.nodes_list(params).await,
            "approvals.list" => self.approvals_list(who, params).await,
            "approvals.get" => self.approvals_get(who, params).await,
            "approvals.approve" => self.approvals_answer(who, params, true).await,
            "approvals.refuse" => self.approvals_answer(who, params, false).await,
            "auth.sessions.list" => self.console_sessions(who, params).await,
            "auth.sessions.revoke" => self.console_sign_out(who, params).await,
            "api_keys.create" => self.keys_create(who, params).await,
            "api_keys.list" => self.keys_list(who, params).await,
            "api_keys.revoke" => self.keys_revoke(who, params).await,
            "members.list" => self.members_list(who, params).await,
            "members.add" => self.members_add(who, params).await,
            "members.update" => self.members_update(who, params).await,
            "members.remove" => self.members_remove(who, params).await,
            "tenants.list" => self.tenants_list(params).await,
            "tenants.create" => self.tenants_create(who, params).await,
            "tenants.update" => self.tenants_update(who, params).await,
            "hooks.watch" => self.hooks_watch(connection, params).await,
            "webhooks.list" => self.webhooks_list(params).await,
            "webhooks.retry" => self.webhooks_retry(params).await,
            "hooks.list" => self.hooks_list(who, params).await,
            "hooks.chain" => self.hooks_chain(who, params).await,
            "hooks.counts" => self.hooks_counts(who, params).await,
            "hooks.test" => self.hooks_test(who, params).await,
            rule => Ok(self.rule_admin.call(&who.caller(), rule, params).await?),
        }
    }

    /// Does something with the store that blocks.
    pub(crate) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let shared = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&shared)).await;
        done.unwrap_or_else(|error| Err(ApiError::new(crate::error::ErrorCode::Internal, error.to_string())))
    }
}
