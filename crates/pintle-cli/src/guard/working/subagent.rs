//! What a call says of the sub-agent that it wants, in the words of whichever host. Pure.

use pintle_domain::json::{Object, Value};

/// The name of a sub-agent that has none.
pub(super) const SUBAGENT: &str = "subagent";

/// The kind of sub-agent that a call wants. Source: what hosts were seen to hand over.
pub(super) fn kind_of(arguments: &Object) -> String {
    first_of(arguments, &["subagent_type", "agent_type", "agent_name", "agent", "name"]).unwrap_or(SUBAGENT).to_owned()
}

/// What it is to do. Source: the same.
pub(super) fn task_of(arguments: &Object) -> String {
    first_of(arguments, &["prompt", "task", "message", "objective", "description"]).unwrap_or_default().to_owned()
}

fn first_of<'a>(arguments: &'a Object, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| arguments.get(name).and_then(Value::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sub_agent_has_a_kind_and_a_task() {
        let arguments =
            pintle_domain::json::json!({"description": "child", "prompt": "work", "subagent_type": "general"});
        let arguments = arguments.as_object().unwrap();
        assert_eq!((kind_of(arguments).as_str(), task_of(arguments).as_str()), ("general", "work"));
        assert_eq!((kind_of(&Object::new()).as_str(), task_of(&Object::new()).as_str()), ("subagent", ""));
    }
}
