//! Any JSON value.

use std::borrow::Cow;
use std::fmt;

use indexmap::IndexMap;

use super::Number;

/// Any JSON value: numbers have the digits and objects the order that they were written with.
///
/// ```
/// use pintle_domain::json::{Value, json, parse};
/// let call = parse(r#"{"amount": 1.50, "to": ["a"]}"#)?;
/// assert_eq!(call["amount"].to_string(), "1.50");
/// assert_eq!(call["to"][0], "a");
/// assert_eq!(json!({ "to": call["to"] }).to_string(), r#"{"to":["a"]}"#);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    String(String),
    /// A list.
    Array(Vec<Value>),
    /// Named values.
    Object(Object),
}

/// A JSON object: its members in the order in which they were written, each name once.
///
/// Two objects are equal if their members are, in whatever order.
// It stands here because a value holds objects, which hold values; what it can do stands in `object.rs`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Object(pub(super) IndexMap<String, Value>);

/// The value of everything that is not there.
pub(super) static NULL: Value = Value::Null;

/// Makes for each kind of value the question, the look and the look that may change it.
macro_rules! looks {
    ($($shape:ident $kind:ty: $is:ident $as:ident $as_mut:ident;)*) => {$(
        /// Whether it is of this kind.
        pub fn $is(&self) -> bool {
            matches!(self, Self::$shape(_))
        }

        /// The content, if the value is of this kind.
        pub fn $as(&self) -> Option<&$kind> {
            if let Self::$shape(inner) = self { Some(inner) } else { None }
        }

        /// The content, to change it, if the value is of this kind.
        pub fn $as_mut(&mut self) -> Option<&mut $kind> {
            if let Self::$shape(inner) = self { Some(inner) } else { None }
        }
    )*};
}

impl Value {
    looks! {
        Array Vec<Self>: is_array as_array as_array_mut;
        Object Object: is_object as_object as_object_mut;
    }

    /// Whether it is `null`.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Whether it is `true` or `false`.
    pub fn is_boolean(&self) -> bool {
        matches!(self, Self::Bool(_))
    }

    /// Whether it is a number.
    pub fn is_number(&self) -> bool {
        matches!(self, Self::Number(_))
    }

    /// Whether it is a text.
    pub fn is_string(&self) -> bool {
        matches!(self, Self::String(_))
    }

    /// Whether it is a number that is written as an integer from 0 to 2^64-1.
    pub fn is_u64(&self) -> bool {
        self.as_number().is_some_and(Number::is_u64)
    }

    /// Whether it is a number that is written as an integer from -2^63 to 2^63-1.
    pub fn is_i64(&self) -> bool {
        self.as_number().is_some_and(Number::is_i64)
    }

    /// Whether it is a number that is written with a fraction or an exponent.
    pub fn is_f64(&self) -> bool {
        self.as_number().is_some_and(Number::is_f64)
    }

    /// The boolean, if it is one.
    #[inline]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(inner) = self { Some(*inner) } else { None }
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<&Number> {
        if let Self::Number(inner) = self { Some(inner) } else { None }
    }

    /// The text, if it is one.
    #[inline]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(inner) = self { Some(inner) } else { None }
    }

    /// The number, if it is written as an integer of this size.
    #[inline]
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number()?.as_u64()
    }

    /// The number, if it is written as an integer of this size.
    #[inline]
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number()?.as_i64()
    }

    /// The double nearest to the number, if there is one.
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number()?.as_f64()
    }

    /// The member of this name of an object, or the element at this place of an array.
    #[inline]
    pub fn get<P: Place>(&self, place: P) -> Option<&Self> {
        place.of(self)
    }

    /// The member of this name of an object, or the element at this place of an array, to change it.
    pub fn get_mut<P: Place>(&mut self, place: P) -> Option<&mut Self> {
        place.of_mut(self)
    }

    /// The value at an RFC 6901 pointer.
    pub fn pointer(&self, pointer: &str) -> Option<&Self> {
        steps(pointer)?.try_fold(self, |value, step| match value {
            Self::Object(members) => members.get(&step),
            Self::Array(items) => items.get(element(&step)?),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => None,
        })
    }

    /// The value at an RFC 6901 pointer, to change it.
    pub fn pointer_mut(&mut self, pointer: &str) -> Option<&mut Self> {
        steps(pointer)?.try_fold(self, |value, step| match value {
            Self::Object(members) => members.get_mut(&step),
            Self::Array(items) => items.get_mut(element(&step)?),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => None,
        })
    }

    /// The value; `null` stays behind.
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

/// The names of a pointer, which begins with a slash unless it is empty.
fn steps(pointer: &str) -> Option<impl Iterator<Item = Cow<'_, str>>> {
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return None;
    }
    Some(
        pointer.split('/').skip(1).map(|step| {
            if step.contains('~') { step.replace("~1", "/").replace("~0", "~").into() } else { step.into() }
        }),
    )
}

/// The place in an array: digits without a sign and without zeros before them.
fn element(step: &str) -> Option<usize> {
    let spelled = step == "0" || !step.starts_with(['0', '+']);
    spelled.then(|| step.parse().ok()).flatten()
}

/// A place inside a value: a name or a number.
pub trait Place: sealed::Sealed {
    /// The value that stands there.
    fn of(self, value: &Value) -> Option<&Value>;
    /// The value that stands there, to change it.
    fn of_mut(self, value: &mut Value) -> Option<&mut Value>;
    /// The value that is made there: a member is added to an object or to `null`; it panics where nothing can be.
    fn made(self, value: &mut Value) -> &mut Value;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for &str {}
    impl Sealed for &String {}
    impl Sealed for usize {}
    impl<P: Sealed + Copy> Sealed for &P {}
}

impl Place for &str {
    fn of(self, value: &Value) -> Option<&Value> {
        value.as_object()?.get(self)
    }

    fn of_mut(self, value: &mut Value) -> Option<&mut Value> {
        value.as_object_mut()?.get_mut(self)
    }

    fn made(self, value: &mut Value) -> &mut Value {
        if value.is_null() {
            *value = Value::Object(Object::new());
        }
        let Value::Object(members) = value else { panic!("`{self}` cannot be a member of {value}") };
        members.entry(self).or_default()
    }
}

impl Place for &String {
    fn of(self, value: &Value) -> Option<&Value> {
        self.as_str().of(value)
    }

    fn of_mut(self, value: &mut Value) -> Option<&mut Value> {
        self.as_str().of_mut(value)
    }

    fn made(self, value: &mut Value) -> &mut Value {
        self.as_str().made(value)
    }
}

impl<P: Place + Copy> Place for &P {
    fn of(self, value: &Value) -> Option<&Value> {
        (*self).of(value)
    }

    fn of_mut(self, value: &mut Value) -> Option<&mut Value> {
        (*self).of_mut(value)
    }

    fn made(self, value: &mut Value) -> &mut Value {
        (*self).made(value)
    }
}

impl Place for usize {
    fn of(self, value: &Value) -> Option<&Value> {
        value.as_array()?.get(self)
    }

    fn of_mut(self, value: &mut Value) -> Option<&mut Value> {
        value.as_array_mut()?.get_mut(self)
    }

    fn made(self, value: &mut Value) -> &mut Value {
        let Value::Array(items) = value else { panic!("{value} has no elements") };
        &mut items[self]
    }
}

impl<P: Place> std::ops::Index<P> for Value {
    type Output = Value;

    /// The value that stands there; `null` where nothing does.
    fn index(&self, place: P) -> &Value {
        place.of(self).unwrap_or(&NULL)
    }
}

impl<P: Place> std::ops::IndexMut<P> for Value {
    /// The value that stands there. A member that is not there is made; a missing element panics.
    fn index_mut(&mut self, place: P) -> &mut Value {
        place.made(self)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<bool> for Value {
    fn from(inner: bool) -> Self {
        Self::Bool(inner)
    }
}

impl From<Number> for Value {
    fn from(inner: Number) -> Self {
        Self::Number(inner)
    }
}

impl From<f64> for Value {
    /// The number, or `null` where JSON has no digits for it.
    fn from(inner: f64) -> Self {
        Number::from_f64(inner).map_or(Self::Null, Self::Number)
    }
}

impl From<String> for Value {
    fn from(inner: String) -> Self {
        Self::String(inner)
    }
}

impl From<&str> for Value {
    fn from(inner: &str) -> Self {
        Self::String(inner.to_owned())
    }
}

impl From<Cow<'_, str>> for Value {
    fn from(inner: Cow<'_, str>) -> Self {
        Self::String(inner.into_owned())
    }
}

impl From<Object> for Value {
    fn from(inner: Object) -> Self {
        Self::Object(inner)
    }
}

impl<T: Into<Self>> From<Vec<T>> for Value {
    fn from(inner: Vec<T>) -> Self {
        inner.into_iter().collect()
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(inner: Option<T>) -> Self {
        inner.map_or(Self::Null, Into::into)
    }
}

impl<T: Into<Self>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

impl FromIterator<(String, Self)> for Value {
    fn from_iter<I: IntoIterator<Item = (String, Self)>>(members: I) -> Self {
        Self::Object(members.into_iter().collect())
    }
}

/// Makes values of the numbers of the machine, and compares with them.
macro_rules! numbers {
    ($($kind:ty)*) => {$(
        impl From<$kind> for Value {
            fn from(inner: $kind) -> Self {
                Self::Number(inner.into())
            }
        }

        impl PartialEq<$kind> for Value {
            fn eq(&self, other: &$kind) -> bool {
                self.as_number().is_some_and(|number| *number == Number::from(*other))
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

impl PartialEq<bool> for Value {
    fn eq(&self, other: &bool) -> bool {
        self.as_bool() == Some(*other)
    }
}

impl PartialEq<f64> for Value {
    fn eq(&self, other: &f64) -> bool {
        self.as_f64() == Some(*other)
    }
}

impl PartialEq<str> for Value {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == Some(other)
    }
}

impl PartialEq<&str> for Value {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == Some(*other)
    }
}

impl PartialEq<String> for Value {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == Some(other)
    }
}

impl PartialEq<Value> for &str {
    fn eq(&self, other: &Value) -> bool {
        other.as_str() == Some(*self)
    }
}

impl PartialEq<Value> for String {
    fn eq(&self, other: &Value) -> bool {
        other.as_str() == Some(self)
    }
}

#[cfg(test)]
mod tests {
    use crate::json::{Value, json};

    #[test]
    fn a_pointer_leads_to_a_value() {
        let mut value = json!({"a": [{"b/c": 1}, 2], "~": "t", "": 0});
        let found = ["", "/a/0/b~1c", "/a/1", "/~0", "/"].map(|p| value.pointer(p).cloned());
        let expected = [value.clone(), json!(1), json!(2), json!("t"), json!(0)].map(Some);
        assert_eq!(found, expected);
        for nowhere in ["a", "/a/2", "/a/01", "/a/+1", "/a/-", "/x", "/~0/0"] {
            assert_eq!(value.pointer(nowhere), None, "{nowhere}");
        }
        *value.pointer_mut("/a/0/b~1c").unwrap() = json!(5);
        assert_eq!(value["a"][0]["b/c"], 5);
    }

    #[test]
    fn what_is_not_there_is_null_and_is_made_by_writing() {
        let mut value = Value::Null;
        assert_eq!(value["a"][3]["b"], Value::Null);
        value["a"]["b"] = json!([1]);
        value["a"]["b"][0] = json!("x");
        assert_eq!(value, json!({"a": {"b": ["x"]}}));
        assert_eq!((value["a"].take(), value), (json!({"b": ["x"]}), json!({"a": null})));
    }

    #[test]
    fn values_compare_with_texts_and_numbers() {
        assert!(json!("a") == "a" && "a" == json!("a") && json!("a") != "b" && json!(1) != "1");
        assert!(json!(5) == 5 && json!(5) == 5_u64 && json!(-5) == -5 && json!("5") != 5 && json!(5.0) == 5.0);
        assert!(json!(true) == true && json!(1) != true);
    }
}
