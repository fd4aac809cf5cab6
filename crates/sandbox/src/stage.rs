//! One run's engine: made afresh, stripped of all but the listed names, used once.

use std::cell::RefCell;
use std::rc::Rc;

use rquickjs::context::intrinsic;
use rquickjs::{Context, Ctx, Function, Object, Persistent, Runtime, Value};

use crate::frame::{Reply, ReplyBody, Request};
use crate::limits;

use self::console::Console;
use self::raised::{Phase, raised};

mod console;
mod raised;
mod text;

/// What scripts get, and `Promise`: the syntax of async functions is there without it, what they need is not.
type Intrinsics = (
    intrinsic::Eval,
    intrinsic::Date,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Promise,
);

const PRELUDE: &str = include_str!("stage/prelude.js");

/// An engine that is ready for a script.
pub(crate) struct Stage {
    // Values go before the runtime that they live in.
    freeze: Persistent<Function<'static>>,
    plain: Persistent<Object<'static>>,
    console: Rc<RefCell<Console>>,
    context: Context,
    runtime: Runtime,
}

/// What a script has defined, and what it will be given.
struct Loaded {
    handle: Persistent<Function<'static>>,
    event: Persistent<Value<'static>>,
}

impl Stage {
    /// Makes an engine. An error says what failed.
    pub(crate) fn new() -> Result<Self, String> {
        let runtime = Runtime::new().map_err(|error| error.to_string())?;
        runtime.set_memory_limit(limits::HEAP_BYTES);
        runtime.set_max_stack_size(limits::PARSE_STACK_BYTES);
        let context = Context::custom::<Intrinsics>(&runtime).map_err(|error| error.to_string())?;
        let console = Rc::new(RefCell::new(Console::default()));
        let (freeze, plain) = context.with(|ctx| {
            let stripped = strip(&ctx, &console);
            stripped.map_err(|error| format!("a fresh context: {:?}", raised(&ctx, &error, Phase::Run)))
        })?;
        Ok(Self { freeze, plain, console, context, runtime })
    }

    /// Runs one script, once. `stack_bytes` is what the calls of `handle` may take.
    pub(crate) fn run(&self, request: Request<'_>, stack_bytes: usize) -> Reply {
        let said = self.said(request, stack_bytes).unwrap_or_else(|fault| fault);
        Reply { console: self.console.take().into_text(), said }
    }

    fn said(&self, request: Request<'_>, stack_bytes: usize) -> Result<ReplyBody, ReplyBody> {
        let loaded = self.context.with(|ctx| self.load(&ctx, request))?;
        if request.event.is_none() {
            return Ok(ReplyBody::Checked);
        }
        // The limit can only be changed between two visits to the context.
        self.runtime.set_max_stack_size(stack_bytes);
        let returned = self.context.with(|ctx| call(&ctx, loaded));
        self.runtime.set_max_stack_size(limits::PARSE_STACK_BYTES);
        let returned = returned?;
        self.context.with(|ctx| self.read(&ctx, returned))
    }

    /// Freezes the event before the script can touch what freezing needs; then lets the script define things.
    fn load(&self, ctx: &Ctx<'_>, request: Request<'_>) -> Result<Loaded, ReplyBody> {
        let event = request.event.unwrap_or("null");
        let event = ctx.json_parse(event).map_err(|error| raised(ctx, &error, Phase::Run))?;
        let frozen = self.freeze.clone().restore(ctx).and_then(|freeze| freeze.call::<_, ()>((event.clone(),)));
        frozen.map_err(|error| raised(ctx, &error, Phase::Run))?;
        if let Some(at) = request.source.find('\0') {
            return Err(ReplyBody::Syntax(raised::nul(&request.source[..at])));
        }
        let loaded = ctx.eval::<(), _>(request.source);
        loaded.map_err(|error| raised(ctx, &error, Phase::Load))?;
        let handle: Value<'_> = ctx.globals().get("handle").map_err(|error| raised(ctx, &error, Phase::Run))?;
        let handle = handle.into_function().ok_or(ReplyBody::NoHandle)?;
        let takes: Value<'_> = handle.get("length").map_err(|error| raised(ctx, &error, Phase::Run))?;
        if takes.as_number().is_none_or(|takes| takes > 1.0) {
            return Err(ReplyBody::NoHandle);
        }
        Ok(Loaded { handle: Persistent::save(ctx, handle), event: Persistent::save(ctx, event) })
    }

    /// What a plain object says as JSON.
    fn read(&self, ctx: &Ctx<'_>, returned: Persistent<Value<'static>>) -> Result<ReplyBody, ReplyBody> {
        let fault = |error| raised(ctx, &error, Phase::Run);
        let value = returned.restore(ctx).map_err(fault)?;
        let plain = self.plain.clone().restore(ctx).map_err(fault)?;
        if !is_plain(&value, &plain) {
            return Err(ReplyBody::NotObject);
        }
        let Some(text) = ctx.json_stringify(value).map_err(fault)? else {
            return Err(ReplyBody::NotObject);
        };
        let text = text.to_cstring().map_err(fault)?;
        if text.len() > limits::RETURN_BYTES {
            return Err(ReplyBody::ReturnTooLarge(text.len()));
        }
        // A `toJSON` of the script's own may have made something else of it.
        let text = text::well_formed(text.as_ref());
        if text.starts_with('{') { Ok(ReplyBody::Returned(text)) } else { Err(ReplyBody::NotObject) }
    }
}

/// Leaves what the page of this family lists. Returns what freezes an event, and the prototype of plain objects.
fn strip(
    ctx: &Ctx<'_>,
    console: &Rc<RefCell<Console>>,
) -> rquickjs::Result<(Persistent<Function<'static>>, Persistent<Object<'static>>)> {
    let plain = Object::new(ctx.clone())?.get_prototype().ok_or(rquickjs::Error::Unknown)?;
    let strip: Function<'_> = ctx.eval(PRELUDE)?;
    let freeze: Function<'_> = strip.call((ctx.globals(), console::object(ctx, console)?))?;
    Ok((Persistent::save(ctx, freeze), Persistent::save(ctx, plain)))
}

fn call(ctx: &Ctx<'_>, loaded: Loaded) -> Result<Persistent<Value<'static>>, ReplyBody> {
    let called = || {
        let (handle, event) = (loaded.handle.restore(ctx)?, loaded.event.restore(ctx)?);
        handle.call::<_, Value<'_>>((event,))
    };
    let returned = called().map_err(|error| raised(ctx, &error, Phase::Run))?;
    Ok(Persistent::save(ctx, returned))
}

fn is_plain<'js>(value: &Value<'js>, plain: &Object<'js>) -> bool {
    let special = value.is_array() || value.is_function() || value.is_error() || value.is_promise();
    let Some(object) = value.as_object().filter(|_| !special) else { return false };
    object.get_prototype().is_none_or(|prototype| prototype == *plain)
}
