//! The agents of one host. An agent finds those that it may delegate to in the registry, and the registry holds the
//! agents: they stand together.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use pintle_domain::checkpoint::AgentInfo;
use pintle_domain::id::{HookName, agent_uuid};
use pintle_domain::identity::Identity;
use pintle_domain::json::Rendered;
use pintle_domain::llm::ToolDef;
use pintle_domain::skill::Skills;
use pintle_engine::{Approvals, Dispatcher, Engine};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::known::TurnAgentInfo;
use crate::front_ends::FrontEnds;
use crate::media::MediaStore;
use crate::models::Models;
use crate::settings::AgentSettings;
use crate::skills::{SkillSet, Tags, ToolNeedJudge};
use crate::tools::Tools;

/// How many sub-agents of one host may work at once: more would rather wait for the same provider.
pub const MAX_CHILDREN: usize = 8;

/// One agent, ready to work turns.
pub struct Runner {
    pub(super) settings: AgentSettings,
    pub(super) models: Arc<Models>,
    pub(super) tools: Arc<Tools>,
    pub(super) offered: Vec<Rendered<ToolDef>>,
    pub(super) engine: Arc<Engine>,
    pub(super) approvals: Option<Arc<Approvals>>,
    /// Where files are kept that tools and hooks hand over.
    pub(super) media: Option<Arc<MediaStore>>,
    /// The agents that this one may delegate to.
    pub(super) registry: Weak<AgentRegistry>,
    /// The texts of its skills.
    pub(super) skill_set: Arc<SkillSet>,
    /// Says whether a plan needs tools.
    pub(super) need_tool: Arc<dyn ToolNeedJudge>,
    /// What is believed of histories that come with requests.
    pub(super) front_ends: FrontEnds,
}

impl Runner {
    /// An agent with these settings, models and tools, whose hooks are those of `engine`.
    pub fn new(settings: AgentSettings, models: Arc<Models>, tools: Arc<Tools>, engine: Arc<Engine>) -> Self {
        let offered = tools.definitions().into_iter().cloned().map(Rendered::new).collect();
        let (registry, skill_set, need_tool) = (Weak::new(), Arc::new(SkillSet::new(Skills::none())), Arc::new(Tags));
        let (approvals, media, front_ends) = (None, None, FrontEnds::default());
        Self { settings, models, tools, offered, engine, approvals, media, registry, skill_set, need_tool, front_ends }
    }

    /// The same agent; the texts of its skills lie on `shelf`.
    #[must_use]
    pub fn with_skills(self, skill_set: Arc<SkillSet>) -> Self {
        Self { skill_set, ..self }
    }

    /// The same agent; requests may bring a history, of which `front_ends` says what is believed.
    #[must_use]
    pub fn with_front_ends(self, front_ends: FrontEnds) -> Self {
        Self { front_ends, ..self }
    }

    /// The same agent; `need_tool` says whether its plans need tools.
    #[must_use]
    pub fn with_need_tool(self, need_tool: Arc<dyn ToolNeedJudge>) -> Self {
        Self { need_tool, ..self }
    }

    /// The same agent; where a person must say, they are asked through `approvals`.
    #[must_use]
    pub fn with_approvals(self, approvals: Arc<Approvals>) -> Self {
        Self { approvals: Some(approvals), ..self }
    }

    /// The same agent; files that tools and hooks hand over are kept in `media`.
    #[must_use]
    pub fn with_media(self, media: Arc<MediaStore>) -> Self {
        Self { media: Some(media), ..self }
    }

    /// The same agent as a member of `team`.
    #[must_use]
    fn in_registry(self, registry: Weak<AgentRegistry>) -> Self {
        Self { registry, ..self }
    }

    /// The settings.
    pub fn settings(&self) -> &AgentSettings {
        &self.settings
    }

    /// The tools.
    pub fn tools(&self) -> &Tools {
        &self.tools
    }

    /// The hooks for questions outside a turn: `doctor`, `hooks test`.
    pub fn dispatcher(&self, who: Identity) -> Dispatcher {
        let known = self.known(BTreeMap::new(), &who);
        self.engine.dispatcher(who).with_known(known)
    }

    pub(super) fn known(&self, owners: BTreeMap<String, HookName>, who: &Identity) -> Arc<dyn AgentInfo> {
        let agents = std::iter::once(&who.agent_id).chain(&who.ancestors).cloned().collect();
        let agent_uuid = agent_uuid(&who.tenant_id, who.agent_id.as_str());
        Arc::new(TurnAgentInfo::new((self.tools.clone(), self.models.clone()), owners, agents, agent_uuid))
    }
}

/// Every agent of one configuration.
pub struct AgentRegistry {
    runners: BTreeMap<String, Runner>,
    slots: Arc<Semaphore>,
}

impl AgentRegistry {
    /// A team of `runners`, each under the name of its agent; of two with one name the last stays.
    pub fn new(runners: Vec<Runner>) -> Arc<Self> {
        Arc::new_cyclic(|registry| {
            let named = |runner: Runner| (runner.settings().id.to_string(), runner.in_registry(registry.clone()));
            let slots = Arc::new(Semaphore::new(MAX_CHILDREN));
            Self { runners: runners.into_iter().map(named).collect(), slots }
        })
    }

    /// The agent called `name`.
    pub fn runner(&self, name: &str) -> Option<&Runner> {
        self.runners.get(name)
    }

    /// The names of the agents.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.runners.keys().map(String::as_str)
    }

    /// How many sub-agents work now, in the background or not.
    pub fn at_work(&self) -> usize {
        MAX_CHILDREN.saturating_sub(self.slots.available_permits())
    }

    /// Waits until no sub-agent works. What each of them brought is delivered then, or waits in its session.
    pub async fn at_rest(&self) {
        let all = u32::try_from(MAX_CHILDREN).unwrap_or(u32::MAX);
        // The places are never closed.
        drop(self.slots.acquire_many(all).await);
    }

    /// Room for one more sub-agent, if there is any; it is given back when the result is dropped.
    pub(super) fn slot(&self) -> Option<OwnedSemaphorePermit> {
        self.slots.clone().try_acquire_owned().ok()
    }
}
