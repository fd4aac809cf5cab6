//! A serialiser that makes a value, without a text in between.

use std::fmt::Display;

use serde::ser::{self, Error as _, Serialize};
use serde_json::Error;

use super::{Number, Object, Value};

/// How serde_json's `RawValue` is called where it is read and written.
pub(super) const RAW: &str = "$serde_json::private::RawValue";

/// The serialiser.
pub(super) struct Tree;

/// Makes for each number of the machine the method that takes it.
macro_rules! numbers {
    ($($method:ident $kind:ty;)*) => {$(
        fn $method(self, number: $kind) -> Result<Value, Error> {
            Ok(Value::Number(Number::from(number)))
        }
    )*};
}

impl ser::Serializer for Tree {
    type Ok = Value;
    type Error = Error;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Items;
    type SerializeMap = Members;
    type SerializeStruct = Members;
    type SerializeStructVariant = Members;

    numbers! {
        serialize_i8 i8; serialize_i16 i16; serialize_i32 i32; serialize_i64 i64; serialize_i128 i128;
        serialize_u8 u8; serialize_u16 u16; serialize_u32 u32; serialize_u64 u64; serialize_u128 u128;
    }

    fn serialize_f32(self, number: f32) -> Result<Value, Error> {
        // Its own shortest digits, as serde_json writes them, and not those of the double that it becomes.
        if !number.is_finite() {
            return Ok(Value::Null);
        }
        serde_json::to_string(&number).map(|digits| Value::Number(Number::of(&digits)))
    }

    fn serialize_f64(self, number: f64) -> Result<Value, Error> {
        Ok(number.into())
    }

    fn serialize_bool(self, inner: bool) -> Result<Value, Error> {
        Ok(Value::Bool(inner))
    }

    fn serialize_char(self, inner: char) -> Result<Value, Error> {
        Ok(Value::String(inner.into()))
    }

    fn serialize_str(self, text: &str) -> Result<Value, Error> {
        Ok(Value::String(text.to_owned()))
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Value, Error> {
        Ok(bytes.iter().copied().collect())
    }

    fn serialize_unit(self) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Value, Error> {
        Ok(Value::String(variant.to_owned()))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, inner: &T) -> Result<Value, Error> {
        inner.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        inner: &T,
    ) -> Result<Value, Error> {
        Ok(tagged(Some(variant), inner.serialize(self)?))
    }

    fn serialize_none(self) -> Result<Value, Error> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, inner: &T) -> Result<Value, Error> {
        inner.serialize(self)
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Items, Error> {
        Ok(Items { variant: None, items: Vec::with_capacity(len.unwrap_or_default()) })
    }

    fn serialize_tuple(self, len: usize) -> Result<Items, Error> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Items, Error> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Items, Error> {
        Ok(Items { variant: Some(variant), items: Vec::with_capacity(len) })
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Members, Error> {
        Ok(Members::Named { variant: None, members: Object::with_capacity(len.unwrap_or_default()), name: None })
    }

    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Members, Error> {
        if name == RAW { Ok(Members::Raw(Value::Null)) } else { self.serialize_map(Some(len)) }
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Members, Error> {
        Ok(Members::Named { variant: Some(variant), members: Object::with_capacity(len), name: None })
    }

    fn collect_str<T: Display + ?Sized>(self, shown: &T) -> Result<Value, Error> {
        Ok(Value::String(shown.to_string()))
    }
}

/// A value, or the object that has it as the only member where it belongs to a variant.
fn tagged(variant: Option<&str>, value: Value) -> Value {
    match variant {
        Some(variant) => Value::Object(Object::from([(variant.to_owned(), value)])),
        None => value,
    }
}

/// A list that grows.
pub(super) struct Items {
    variant: Option<&'static str>,
    items: Vec<Value>,
}

impl Items {
    fn push<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Error> {
        self.items.push(item.serialize(Tree)?);
        Ok(())
    }

    fn finish(self) -> Value {
        tagged(self.variant, Value::Array(self.items))
    }
}

/// Makes of [`Items`] what takes each kind of list.
macro_rules! lists {
    ($($kind:ident $method:ident;)*) => {$(
        impl ser::$kind for Items {
            type Ok = Value;
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Error> {
                self.push(item)
            }

            fn end(self) -> Result<Value, Error> {
                Ok(self.finish())
            }
        }
    )*};
}

lists! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

/// An object that grows, or the one text in which a raw value stands.
pub(super) enum Members {
    Named { variant: Option<&'static str>, members: Object, name: Option<String> },
    Raw(Value),
}

impl Members {
    fn insert<T: Serialize + ?Sized>(&mut self, field: &'static str, what: &T) -> Result<(), Error> {
        let value = what.serialize(Tree)?;
        match self {
            Self::Named { members, .. } => {
                members.insert(field.to_owned(), value);
            }
            Self::Raw(raw) => *raw = super::parse(value.as_str().unwrap_or_default()).map_err(Error::custom)?,
        }
        Ok(())
    }

    fn finish(self) -> Value {
        match self {
            Self::Named { variant, members, .. } => tagged(variant, Value::Object(members)),
            Self::Raw(value) => value,
        }
    }
}

impl ser::SerializeMap for Members {
    type Ok = Value;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        let key = match key.serialize(Tree)? {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            Value::Bool(inner) => inner.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => return Err(Error::custom("key must be a string")),
        };
        if let Self::Named { name, .. } = self {
            *name = Some(key);
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, what: &T) -> Result<(), Error> {
        if let Self::Named { members, name, .. } = self {
            let name = name.take().ok_or_else(|| Error::custom("a value came before its key"))?;
            members.insert(name, what.serialize(Tree)?);
        }
        Ok(())
    }

    fn end(self) -> Result<Value, Error> {
        Ok(self.finish())
    }
}

/// Makes of [`Members`] what takes each kind of struct.
macro_rules! structs {
    ($($kind:ident)*) => {$(
        impl ser::$kind for Members {
            type Ok = Value;
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, field: &'static str, what: &T) -> Result<(), Error> {
                self.insert(field, what)
            }

            fn end(self) -> Result<Value, Error> {
                Ok(self.finish())
            }
        }
    )*};
}

structs!(SerializeStruct SerializeStructVariant);

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;

    use crate::json::{Value, to_value};

    #[derive(Serialize)]
    enum Each {
        Unit,
        Newtype(Option<u8>),
        Tuple(f32, f64),
        Struct { c: char, i: i128 },
    }

    /// Every shape that serde knows.
    #[test]
    fn types_become_what_serde_json_writes() {
        let all = (
            [Each::Unit, Each::Newtype(None), Each::Newtype(Some(1)), Each::Tuple(0.1, 0.1)],
            Each::Struct { c: 'é', i: i128::MIN },
            BTreeMap::from([(-1, (true, ())), (2, (false, ()))]),
            (f64::NAN, f32::INFINITY, u128::MAX, "text", b"bytes", std::net::Ipv4Addr::LOCALHOST),
        );
        let value = to_value(&all).unwrap();
        assert_eq!(value.to_string(), serde_json::to_string(&all).unwrap());
    }

    #[test]
    fn a_key_is_a_text() {
        let map = BTreeMap::from([(vec![1], 1)]);
        assert_eq!(to_value(&map).unwrap_err().to_string(), "key must be a string");
        assert_eq!(
            to_value(BTreeMap::from([(true, 1)])).map(|value: Value| value.to_string()).unwrap(),
            "{\"true\":1}"
        );
    }
}
