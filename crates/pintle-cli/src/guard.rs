//! The daemon behind the hooks of coding agents: what they ask is put to the hooks of the folder that they work in.
//!
//! [`listening`] takes questions from hooks that `pintle-hook` runs as, [`question_room`] bounds how many are in
//! memory, [`working`] answers one, with what `pintle-guard` knows of its host; [`links`] follows the paths of a call
//! to where they lead; [`hook_door`] is all of that as one piece, for a daemon and for a gateway, [`set_up`] how a hook
//! would start it, and [`daemon_process`] which process does it; [`folders`] keeps the configurations of the folders
//! warm, [`sessions`] what is known of the hosts' sessions, [`kept_sessions`] the same for whoever asks beside the
//! daemon, [`open_matters`] what is open between two events of one, [`session_files`] where sessions are written down,
//! [`known`] what hooks may know of an event, [`armed`] whether anything of it may go on, [`rulings`] what the host is
//! told. [`installs`] finds our hooks in the settings of hosts, [`host_files`] reads those and keeps what they were,
//! [`accepted`] asks a host that wants to be told that hooks may run, [`versions`] which version is there. [`canary`]
//! is the model that proves a host to be guarded, [`proofs`] what was proven, [`proving`] does it, and [`newcomers`]
//! has it done when an agent has a new version; [`host_program`] knows that version, [`host_process`] the process of a
//! host; [`call_log`] keeps which calls were asked about, [`reconciling`] finds those that were not, and
//! [`looking_after`] does so while sessions run; [`model_door`] is where agents without hooks ask their model,
//! [`tool_door`] stands before an MCP server, and [`tool_pins`] keeps what that said of its tools; [`places`] says
//! where all that lies. No rule is here.

pub(crate) mod accepted;
mod armed;
mod begun;
pub(crate) mod call_log;
pub(crate) mod canary;
pub(crate) mod daemon_process;
pub(crate) mod folders;
mod found_files;
pub(crate) mod heartbeat;
pub(crate) mod hook_door;
pub(crate) mod host_files;
mod host_process;
pub(crate) mod host_program;
pub(crate) mod installs;
pub(crate) mod kept_sessions;
pub(crate) mod known;
mod links;
pub(crate) mod listening;
pub(crate) mod looking_after;
pub(crate) mod model_door;
pub(crate) mod newcomers;
mod open_matters;
mod own_process;
pub(crate) mod places;
pub(crate) mod proofs;
pub(crate) mod proving;
mod question_room;
pub(crate) mod reconciling;
pub(crate) mod rulings;
pub(crate) mod session_files;
pub(crate) mod sessions;
pub(crate) mod set_up;
pub(crate) mod tool_door;
pub(crate) mod tool_pins;
pub(crate) mod versions;
pub(crate) mod working;
mod written_down;
