//! Values written as JSON in Rust.

/// A [`Value`](crate::json::Value) that is written as JSON. In the place of each value, and of a name in
/// parentheses, an expression may stand; values are taken by reference and have to be `Serialize`.
///
/// ```
/// use pintle_domain::json::json;
/// let names = vec!["a", "b"];
/// let value = json!({ "names": names, ("x".to_owned() + "y"): [1 + 1, null, true], "empty": {} });
/// assert_eq!(value.to_string(), r#"{"names":["a","b"],"xy":[2,null,true],"empty":{}}"#);
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! json_value {
    // Elements: what is done stands in the first brackets.
    (@list [$($done:expr,)*]) => { ::std::vec![$($done,)*] };
    (@list [$($done:expr),*]) => { ::std::vec![$($done),*] };
    (@list [$($done:expr,)*] null $($rest:tt)*) => {
        $crate::json_value!(@list [$($done,)* $crate::json_value!(null)] $($rest)*)
    };
    (@list [$($done:expr,)*] [$($inner:tt)*] $($rest:tt)*) => {
        $crate::json_value!(@list [$($done,)* $crate::json_value!([$($inner)*])] $($rest)*)
    };
    (@list [$($done:expr,)*] {$($inner:tt)*} $($rest:tt)*) => {
        $crate::json_value!(@list [$($done,)* $crate::json_value!({$($inner)*})] $($rest)*)
    };
    (@list [$($done:expr,)*] $next:expr, $($rest:tt)*) => {
        $crate::json_value!(@list [$($done,)* $crate::json_value!($next),] $($rest)*)
    };
    (@list [$($done:expr,)*] $last:expr) => {
        $crate::json_value!(@list [$($done,)* $crate::json_value!($last)])
    };
    (@list [$($done:expr),*] , $($rest:tt)*) => { $crate::json_value!(@list [$($done,)*] $($rest)*) };

    // Members: the object, the tokens of the name so far, and what is left.
    (@member $object:ident ()) => {};
    (@member $object:ident () , $($rest:tt)*) => { $crate::json_value!(@member $object () $($rest)*) };
    (@member $object:ident ($($name:tt)+) : null $($rest:tt)*) => {
        $object.insert(($($name)+).into(), $crate::json_value!(null));
        $crate::json_value!(@member $object () $($rest)*)
    };
    (@member $object:ident ($($name:tt)+) : [$($inner:tt)*] $($rest:tt)*) => {
        $object.insert(($($name)+).into(), $crate::json_value!([$($inner)*]));
        $crate::json_value!(@member $object () $($rest)*)
    };
    (@member $object:ident ($($name:tt)+) : {$($inner:tt)*} $($rest:tt)*) => {
        $object.insert(($($name)+).into(), $crate::json_value!({$($inner)*}));
        $crate::json_value!(@member $object () $($rest)*)
    };
    (@member $object:ident ($($name:tt)+) : $value:expr, $($rest:tt)*) => {
        $object.insert(($($name)+).into(), $crate::json_value!($value));
        $crate::json_value!(@member $object () $($rest)*)
    };
    (@member $object:ident ($($name:tt)+) : $value:expr) => {
        $object.insert(($($name)+).into(), $crate::json_value!($value));
    };
    (@member $object:ident () ($name:expr) : $($rest:tt)*) => {
        $crate::json_value!(@member $object ($name) : $($rest)*)
    };
    (@member $object:ident ($($name:tt)*) $next:tt $($rest:tt)*) => {
        $crate::json_value!(@member $object ($($name)* $next) $($rest)*)
    };

    (null) => { $crate::json::Value::Null };
    ([]) => { $crate::json::Value::Array(::std::vec::Vec::new()) };
    ([$($inner:tt)+]) => { $crate::json::Value::Array($crate::json_value!(@list [] $($inner)+)) };
    ({}) => { $crate::json::Value::Object($crate::json::Object::new()) };
    ({$($inner:tt)+}) => {{
        let mut object = $crate::json::Object::new();
        $crate::json_value!(@member object () $($inner)+);
        $crate::json::Value::Object(object)
    }};
    ($other:expr) => {
        $crate::json::to_value(&$other).expect("what stands in `json!` has string keys and no failing serialiser")
    };
}

#[cfg(test)]
mod tests {
    use crate::json::{Value, json};

    #[test]
    fn what_is_written_is_what_is_meant() {
        #[derive(serde::Serialize)]
        struct Inner {
            b: Option<u8>,
        }
        let (name, list) = ("n", vec![1_u8, 2]);
        let value = json!({
            "z": null, "a": [null, true, {"x": [], "y": {}}, [1, -2.5], if list.is_empty() { 0 } else { 7 },],
            name: list.len(), (format!("{name}2")): Inner { b: None }, "list": list, "text": &name[..1],
            "call": Some(list.iter().map(|n| n + 1).collect::<Vec<_>>()),
        });
        let expected = concat!(
            r#"{"z":null,"a":[null,true,{"x":[],"y":{}},[1,-2.5],7],"n":2,"n2":{"b":null},"list":[1,2],"#,
            r#""text":"n","call":[2,3]}"#
        );
        assert_eq!(value.to_string(), expected);
        assert_eq!(
            [json!(null), json!([]), json!({}), json!("a")].map(|v: Value| v.to_string()),
            ["null", "[]", "{}", "\"a\""]
        );
        assert_eq!(json!([1, [2], {"a": 3}, null, ]).to_string(), r#"[1,[2],{"a":3},null]"#);
    }
}
