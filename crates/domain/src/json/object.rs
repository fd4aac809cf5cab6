//! The members of an object, in the order in which they were written.

use std::fmt;
use std::ops;

use indexmap::IndexMap;
use indexmap::map::Entry;

use super::value::{Object, Value};

/// The members, borrowed, in order.
pub type Iter<'a> = indexmap::map::Iter<'a, String, Value>;

impl Object {
    /// An object without members.
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// An object without members that has room for `members`.
    #[inline]
    pub fn with_capacity(members: usize) -> Self {
        Self(IndexMap::with_capacity(members))
    }

    /// The number of members.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no member.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of `name`.
    #[inline]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// The value of `name`, to change it.
    #[inline]
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.0.get_mut(name)
    }

    /// Whether there is a member `name`.
    #[inline]
    pub fn contains_key(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Puts `value` under `name`, at the end or in the place of the old value, which is returned.
    #[inline]
    pub fn insert(&mut self, name: String, value: Value) -> Option<Value> {
        self.0.insert(name, value)
    }

    /// The place of `name`, whether taken or not.
    #[inline]
    pub fn entry(&mut self, name: impl Into<String>) -> Entry<'_, String, Value> {
        self.0.entry(name.into())
    }

    /// Takes the member `name` out; the others keep their order.
    #[inline]
    pub fn shift_remove(&mut self, name: &str) -> Option<Value> {
        self.0.shift_remove(name)
    }

    /// Takes out all members for which `keep` says no.
    #[inline]
    pub fn retain(&mut self, keep: impl FnMut(&String, &mut Value) -> bool) {
        self.0.retain(keep);
    }

    /// Takes out all members.
    #[inline]
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The members.
    #[inline]
    pub fn iter(&self) -> Iter<'_> {
        self.0.iter()
    }

    /// The members, to change their values.
    #[inline]
    pub fn iter_mut(&mut self) -> indexmap::map::IterMut<'_, String, Value> {
        self.0.iter_mut()
    }

    /// The names.
    #[inline]
    pub fn keys(&self) -> indexmap::map::Keys<'_, String, Value> {
        self.0.keys()
    }

    /// The values.
    #[inline]
    pub fn values(&self) -> indexmap::map::Values<'_, String, Value> {
        self.0.values()
    }

    /// The values, to change them.
    #[inline]
    pub fn values_mut(&mut self) -> indexmap::map::ValuesMut<'_, String, Value> {
        self.0.values_mut()
    }
}

impl fmt::Debug for Object {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl IntoIterator for Object {
    type Item = (String, Value);
    type IntoIter = indexmap::map::IntoIter<String, Value>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Object {
    type Item = (&'a String, &'a Value);
    type IntoIter = Iter<'a>;

    #[inline]
    fn into_iter(self) -> Iter<'a> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a mut Object {
    type Item = (&'a String, &'a mut Value);
    type IntoIter = indexmap::map::IterMut<'a, String, Value>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut()
    }
}

impl FromIterator<(String, Value)> for Object {
    #[inline]
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Self {
        Self(members.into_iter().collect())
    }
}

impl Extend<(String, Value)> for Object {
    #[inline]
    fn extend<I: IntoIterator<Item = (String, Value)>>(&mut self, members: I) {
        self.0.extend(members);
    }
}

impl<const N: usize> From<[(String, Value); N]> for Object {
    #[inline]
    fn from(members: [(String, Value); N]) -> Self {
        Self(members.into())
    }
}

impl ops::Index<&str> for Object {
    type Output = Value;

    /// The value of a member that has to be there; it panics where it is not.
    #[inline]
    fn index(&self, name: &str) -> &Value {
        &self.0[name]
    }
}

impl ops::IndexMut<&str> for Object {
    /// The value of a member that has to be there; it panics where it is not.
    #[inline]
    fn index_mut(&mut self, name: &str) -> &mut Value {
        &mut self.0[name]
    }
}

#[cfg(test)]
mod tests {
    use crate::json::{Object, json};

    #[test]
    fn members_keep_their_order() {
        let mut object = Object::new();
        for name in ["b", "a", "c", "b"] {
            object.insert(name.into(), json!(object.len()));
        }
        assert_eq!(object.to_string(), r#"{"b":3,"a":1,"c":2}"#);
        assert_eq!(object.shift_remove("b"), Some(json!(3)));
        object.entry("d").or_insert(json!(null));
        object.entry("a").and_modify(|value| *value = json!("x"));
        assert_eq!(object.to_string(), r#"{"a":"x","c":2,"d":null}"#);
        object.retain(|_, value| !value.is_null());
        object.iter_mut().for_each(|(_, value)| *value = json!([value.take()]));
        assert_eq!(object.to_string(), r#"{"a":["x"],"c":[2]}"#);
        assert_eq!((object["c"][0].as_u64(), object.get("d"), object.contains_key("a")), (Some(2), None, true));
    }

    #[test]
    fn order_has_no_part_in_equality() {
        let object = |text: &str| crate::json::parse(text).unwrap();
        assert_eq!(object(r#"{"a":1,"b":2}"#), object(r#"{"b":2,"a":1}"#));
        assert_ne!(object(r#"{"a":1,"b":2}"#), object(r#"{"b":1,"a":2}"#));
    }
}
