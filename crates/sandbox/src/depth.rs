//! How much stack so many frames are.
//!
//! The engine bounds the bytes of its stack, not its frames, and how many bytes a frame takes depends on how the
//! engine was compiled. So a child measures it once.

use rquickjs::{Context, Error, Runtime};

use crate::limits;

/// Calls itself until the stack is at its end, with as many values in each frame as most functions have.
const PROBE: &str = "let depth = 0;
function probe(a, b) { let c = a; depth = depth + 1; return probe(b, c) + 1; }
try { probe(1, 2); } catch { }
depth";

/// The two stacks that are compared: their difference is frames only, without what is there before the first.
const SMALL_BYTES: usize = 256 << 10;
const LARGE_BYTES: usize = 1 << 20;

/// The stack that [`limits::FRAMES`] frames of common size take.
pub(crate) fn stack_bytes() -> Result<usize, String> {
    let measure = |bytes| measure(bytes).map_err(|error| format!("the size of a frame: {error}"));
    let (small, large) = (measure(SMALL_BYTES)?, measure(LARGE_BYTES)?);
    let more = large.checked_sub(small).filter(|more| *more > 0).ok_or("a larger stack has no more frames")?;
    let frame_bytes = (LARGE_BYTES - SMALL_BYTES) / more;
    let base_bytes = SMALL_BYTES.saturating_sub(small * frame_bytes);
    Ok((base_bytes + limits::FRAMES * frame_bytes).min(limits::PARSE_STACK_BYTES))
}

fn measure(stack_bytes: usize) -> Result<usize, Error> {
    let runtime = Runtime::new()?;
    runtime.set_max_stack_size(stack_bytes);
    let depth: f64 = Context::full(&runtime)?.with(|ctx| ctx.eval(PROBE))?;
    // A count of calls is a small whole number.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of calls")]
    Ok(depth as usize)
}
