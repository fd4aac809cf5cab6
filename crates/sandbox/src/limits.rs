//! What a script may use.

use std::time::Duration;

/// Heap of a script: far more than a decision about one event needs, and ten of them fit every host.
pub const HEAP_BYTES: usize = 32 << 20;
/// Calls within calls. Reading a tree of JSON needs a few dozens.
pub const FRAMES: usize = 256;
/// Console text that is kept: it is for the author's eyes.
pub const CONSOLE_BYTES: usize = 4096;
/// What the console text ends with when there was more.
pub const CONSOLE_CUT: &str = "... truncated";
/// JSON of an event: a tool input of some MiB, and room for what surrounds it.
pub const EVENT_BYTES: usize = 8 << 20;
/// Source of a script, of any origin; what users may store is less and is checked where they store it.
pub const SOURCE_BYTES: usize = 1 << 20;
/// JSON that a script may return: as much as a reply of any other handler.
pub const RETURN_BYTES: usize = 1 << 20;
/// The text of a throw: one line that people read.
pub const THROW_BYTES: usize = 512;
/// Scripts of gates of one tenant that run at the same time.
pub const TENANT_SLOTS: usize = 3;
/// Scripts of gates that run at the same time.
pub const SLOTS: usize = 10;
/// Scripts of observers of one tenant that run at the same time, beside those of gates: nobody waits for them.
pub const TENANT_OBSERVER_SLOTS: usize = 2;
/// Scripts of observers that run at the same time, beside those of gates.
pub const OBSERVER_SLOTS: usize = 5;
/// The least time that is left for a script to begin: in less, no child could answer.
pub(crate) const LEAST_TIME: Duration = Duration::from_millis(1);
/// How long checking a script may take: it runs what stands outside of its functions.
pub const COMPILE_TIME: Duration = Duration::from_secs(1);
/// Scripts that are checked at the same time: a person waits for one of them, a reload for the sum.
pub const COMPILE_SLOTS: usize = 2;
/// Runs of one child: bounds what the engine may leak, and costs one start in so many.
pub(crate) const CHILD_RUNS: u32 = 500;
/// Children that wait for work, beyond those that run: a start takes milliseconds, a child a few MiB.
pub(crate) const IDLE_CHILDREN: usize = 4;
/// Seconds after which a child ends itself, past the deadline: the host has killed it long before, if it lives.
pub(crate) const ORPHAN_S: u64 = 2;
/// Address space beyond the child's own at its start: the heap, copies of the longest texts, and what the allocator
/// keeps for itself.
pub(crate) const ADDRESS_BYTES: u64 = 160 << 20;
/// Stack of the child's only thread; the kernel's usual figure.
pub(crate) const STACK_BYTES: u64 = 8 << 20;
/// What the engine may use of that stack for reading a source or a JSON text, which it does by recursion.
pub(crate) const PARSE_STACK_BYTES: usize = 2 << 20;
