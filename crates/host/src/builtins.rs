//! Hooks that are compiled in and switched on by name: a name, and a factory over what is written under `config`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pintle_dialects::process::config::raw::RawBuiltin;
use pintle_dialects::process::config::{Defaults, EntryContext, builtin, idle};
use pintle_domain::hook::{Family, Hook, HookState};
use pintle_domain::json::Value;

use pintle_domain::hook::OBSERVER_TIMEOUT;
use pintle_engine::Engine;
use pintle_engine::hook_set::Mount;
use pintle_engine::native::{NativeHandler, NativeHook};
use pintle_process::mounting::EntryError;

/// Makes a hook from what is written under its `config`; the error is for whoever wrote it.
pub type Factory = Box<dyn Fn(&Value) -> Result<Arc<dyn NativeHook>, String> + Send + Sync>;

/// The hooks that a host has compiled in, by name.
#[derive(Default)]
pub struct Builtins(BTreeMap<String, Factory>);

/// A builtin cannot be registered under this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuiltinNameError {
    /// It is empty.
    #[error("a builtin hook needs a name")]
    Empty,
    /// Another one has it.
    #[error("builtin hook \"{0}\" is registered twice")]
    Repeated(String),
}

impl Builtins {
    /// Registers `factory` under `name`.
    ///
    /// # Errors
    /// The name is empty or taken.
    pub fn register(&mut self, name: &str, factory: Factory) -> Result<(), BuiltinNameError> {
        if name.is_empty() {
            return Err(BuiltinNameError::Empty);
        }
        if self.0.contains_key(name) {
            return Err(BuiltinNameError::Repeated(name.to_owned()));
        }
        self.0.insert(name.to_owned(), factory);
        Ok(())
    }

    /// Prepares the builtin `name` from what would stand under `hooks.builtins.NAME` in a configuration.
    ///
    /// # Errors
    /// What is wrong with the entry, that no builtin has this name, or what its factory says.
    pub fn mount(&self, engine: &Engine, name: &str, entry: &Value) -> Result<Mount, EntryError> {
        let bad = |problems: Vec<String>| EntryError { name: name.to_owned(), problems };
        let raw: RawBuiltin =
            pintle_domain::json::from_value(entry.clone()).map_err(|error| bad(vec![error.to_string()]))?;
        let around = EntryContext { name, origin: "code", folder: Path::new(""), defaults: Defaults::default() };
        if raw.enabled != Some(true) {
            return Ok(Mount::idle(idle(&around, Family::Native, entry, HookState::Disabled)));
        }
        let (hook, entry) = builtin(&around, &raw, &self.names())
            .map_err(|problems| bad(problems.iter().map(ToString::to_string).collect()))?;
        let factory = self.0.get(name).ok_or_else(|| bad(vec!["it is not registered".to_owned()]))?;
        let native = factory(&entry.config).map_err(|error| bad(vec![format!("config: {error}")]))?;
        let stages = entry.policy.stages(&native.stages());
        let handler = NativeHandler::new(native, OBSERVER_TIMEOUT, engine.tasks());
        Ok(Mount { hook: Hook { stages, ..hook }, handler })
    }

    /// The registered names.
    pub fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use pintle_domain::checkpoint::{CheckpointKind, PreToolUse};
    use pintle_domain::id::{CallId, TurnId};
    use pintle_domain::identity::Identity;
    use pintle_domain::json::json;
    use pintle_domain::tool::ToolCall;
    use pintle_domain::verdict::Verdict;
    use pintle_engine::Clearance;
    use pintle_engine::evidence::NullStore;
    use pintle_engine::native::{HookCx, NativeAnswer};

    /// Blocks the tool that its configuration names.
    struct Blocks(String);

    #[async_trait]
    impl NativeHook for Blocks {
        fn stages(&self) -> Vec<CheckpointKind> {
            vec![CheckpointKind::PreToolUse]
        }

        async fn pre_tool_use(&self, _cx: &HookCx<'_>, at: &PreToolUse) -> NativeAnswer<PreToolUse> {
            Ok(if at.call.tool == self.0 { Verdict::deny("blocked by name") } else { Verdict::Continue })
        }
    }

    fn builtins() -> Builtins {
        let mut builtins = Builtins::default();
        let factory: Factory = Box::new(|config| match config.get("tool").and_then(Value::as_str) {
            Some(tool) => Ok(Arc::new(Blocks(tool.to_owned()))),
            None => Err("expected a `tool`".to_owned()),
        });
        builtins.register("blocks", factory).unwrap();
        builtins
    }

    async fn runs(engine: &Engine, tool: &str) -> bool {
        let hooks = engine.dispatcher(Identity::top("main", "s", TurnId::fresh()));
        let (id, arguments) = (CallId::from("c"), pintle_domain::json::Object::new());
        let call = ToolCall { id, tool: tool.into(), raw_tool: tool.into(), arguments };
        matches!(hooks.clear(call).await, Clearance::Run(..))
    }

    #[tokio::test]
    async fn a_builtin_is_made_from_its_config_and_acts_where_its_code_says() {
        let engine = Engine::new(Arc::new(NullStore), Vec::new());
        let entry = json!({ "enabled": true, "config": { "tool": "exec" } });
        engine.replace(vec![builtins().mount(&engine, "blocks", &entry).unwrap()]).unwrap();
        assert!(!runs(&engine, "exec").await);
        assert!(runs(&engine, "read_file").await);
        let off = json!({ "config": { "tool": "exec" } });
        engine.replace(vec![builtins().mount(&engine, "blocks", &off).unwrap()]).unwrap();
        assert!(runs(&engine, "exec").await, "it is off unless switched on");
        engine.close().await;
    }

    #[tokio::test]
    async fn a_bad_entry_says_what_is_wrong() {
        let engine = Engine::new(Arc::new(NullStore), Vec::new());
        let check = |name: &str, entry: Value, expected: &str| {
            let error = builtins().mount(&engine, name, &entry).err().expect("it is bad").to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("blocks", json!({ "enabled": true }), "hook \"blocks\": config: expected a `tool`");
        check("bloks", json!({ "enabled": true }), "builtin hook \"bloks\" is not registered");
        check("blocks", json!({ "enabled": true, "mather": "x" }), "unknown field `mather`");
        let mut builtins = builtins();
        let again = || -> Factory { Box::new(|_| Err(String::new())) };
        assert_eq!(builtins.register("blocks", again()), Err(BuiltinNameError::Repeated("blocks".into())));
        assert_eq!(builtins.register("", again()), Err(BuiltinNameError::Empty));
        engine.close().await;
    }
}
