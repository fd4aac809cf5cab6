//! The agent's loop, with scripted models and real hooks.

#![cfg(test)]

use pintle_providers::capabilities;

mod host;
mod hooks;
mod test_agents;
mod turns;
mod rehearsals;
mod requests;
mod denials;
mod responding;
mod rewriting;
mod aborts;
mod calling;
mod cancelling;
mod overlap;
mod faults;
mod evidence;
mod long;
mod checkpoints;
mod steering;
mod stored;
mod interrupts;
mod subagents;
mod sessions;
mod skills;
mod skill_rules;
mod lowering;
mod any_answer;
mod placing;
mod caching;
mod odd_ends;
mod waits;
mod front_ends;
mod approving;
mod compacting;
mod long_results;
mod plugin;
mod real_model;
