//! `nodes.list`: the processes that serve one database together.

use pintle_domain::json::{Value, json};
use pintle_domain::node::{SeenNode, in_force};

use crate::Shared;
use crate::error::ApiError;
use crate::params::Params;

impl Shared {
    pub(super) async fn nodes_list(&self, params: &Value) -> Result<Value, ApiError> {
        Params::of(params, &[])?;
        let mut seen = self.life.nodes.seen();
        let me = self.life.nodes.me(self.lanes.all().len());
        match seen.iter_mut().find(|node| node.state.id == me.id) {
            Some(own) => own.state = me.clone(),
            None => seen.push(SeenNode { state: me.clone(), since_ms: 0, silent_ms: 0 }),
        }
        let shown = |node: &SeenNode| {
            let state = &node.state;
            let differs = |(agent, digest): (&String, &String)| {
                in_force(&seen, agent).is_some_and(|counts| counts != digest).then(|| agent.clone())
            };
            json!({
                "id": state.id,
                "name": state.name,
                "self": state.id == me.id,
                "online": node.is_there(),
                "version": state.version,
                "schemaLevel": state.level,
                "addresses": state.addresses,
                "turns": state.turns,
                "configDigest": state.config,
                "differs": state.agents.iter().filter_map(differs).collect::<Vec<_>>(),
                "silentMs": node.silent_ms,
            })
        };
        Ok(json!({ "nodes": seen.iter().map(shown).collect::<Vec<_>>() }))
    }
}
