//! Rules: their records, their administration, their cache, and what runs them.
//!
//! [`record`] reads a rule as people write it, [`condition`] its expression, [`payload`] and [`reply`] the words of its
//! handlers. [`admin`] changes rules, [`cache`] keeps them in force, [`handler`] runs them. [`team`] is how they go from a
//! gateway to the machines of a team.
//!
//! | module | holds |
//! |---|---|
//! | `record` | the members of a rule and of each handler type, with the published error messages |
//! | `condition` | matcher and CEL; evaluation is metered, because models write the input |
//! | `admin` | every operation on rules, and who may perform it |
//! | `cache` | the rules in force; notices changes made elsewhere |
//! | `handler` | one run (`running.rs`), judges' caches and caps (`judging.rs`) and budgets (`booking.rs`), the observer pool (`observing.rs`) |
//! | `http`, `judge` | one signed request; the question a judge is asked |
//! | `builtin` | the rules that are shipped: builtins and starter guards |
//! | `team` | rules as a gateway signs them, a machine reads them and reports back |

pub mod admin;
pub mod builtin;
pub mod cache;
pub mod condition;
pub mod handler;
pub mod http;
pub mod judge;
pub mod payload;
pub mod record;
pub mod reply;
pub mod team;
