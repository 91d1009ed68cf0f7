//! An answer whose values are to be shown to people: control characters in them are escaped while
//! they are read.
//!
//! Behind this point a value is a part of some line, and nobody can tell its line breaks from ours.
//! JSON and XML escape values by themselves and are given them as they are.

use crate::output::escape;
use proto::wire::client::{Answer, Reply};
use proto::wire::view::Data;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A [`Reply`] with the strings of its data escaped. What the master says in words of its own has
/// lines on purpose.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ShownReply {
    more: bool,
    answers: Vec<Answer>,
    #[serde(deserialize_with = "escaped")]
    data: Option<Data>,
}

impl From<ShownReply> for Reply {
    fn from(ShownReply { more, answers, data }: ShownReply) -> Self {
        Self { more, answers, data }
    }
}

fn escaped<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Data>, D::Error> {
    Option::deserialize(Escaping(source))
}

/// Any part of reading a value, passed through; every string on the way is escaped.
struct Escaping<T>(T);

/// Asks the source for what the target wants, with a visitor that escapes.
macro_rules! ask {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            self.0.$method(Escaping(visitor))
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Escaping<D> {
    type Error = D::Error;

    ask! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
        deserialize_char deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf deserialize_option
        deserialize_unit deserialize_seq deserialize_map deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_unit_struct(name, Escaping(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, Escaping(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(len, Escaping(visitor))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple_struct(name, len, Escaping(visitor))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, Escaping(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, Escaping(visitor))
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// Gives the target what holds no string.
macro_rules! give {
    ($($method:ident($value:ty))*) => {
        $(fn $method<E: Error>(self, value: $value) -> Result<V::Value, E> {
            self.0.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Escaping<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }

    give! {
        visit_bool(bool) visit_i8(i8) visit_i16(i16) visit_i32(i32) visit_i64(i64) visit_i128(i128) visit_u8(u8) visit_u16(u16)
        visit_u32(u32) visit_u64(u64) visit_u128(u128) visit_f32(f32) visit_f64(f64) visit_char(char) visit_bytes(&[u8])
        visit_borrowed_bytes(&'de [u8]) visit_byte_buf(Vec<u8>)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<V::Value, E> {
        match escape::value(text) {
            Cow::Borrowed(text) => self.0.visit_str(text),
            Cow::Owned(text) => self.0.visit_string(text),
        }
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<V::Value, E> {
        match escape::value(text) {
            Cow::Borrowed(text) => self.0.visit_borrowed_str(text),
            Cow::Owned(text) => self.0.visit_string(text),
        }
    }

    fn visit_string<E: Error>(self, text: String) -> Result<V::Value, E> {
        let escaped = escape::value(&text).into_owned();
        self.0.visit_string(escaped)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, source: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Escaping(source))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, source: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Escaping(source))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, source: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Escaping(source))
    }

    fn visit_map<A: MapAccess<'de>>(self, source: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Escaping(source))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, source: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Escaping(source))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Escaping<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Escaping(source))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Escaping<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Escaping(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Escaping<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(Escaping(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Escaping(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Escaping<A> {
    type Error = A::Error;
    type Variant = Escaping<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        self.0
            .variant_seed(Escaping(seed))
            .map(|(value, variant)| (value, Escaping(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Escaping<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Escaping(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, Escaping(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Escaping(visitor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::id::JobNumber;
    use proto::wire::frame::{Frame, Kind};
    use proto::wire::view::ShareNode;

    fn read(reply: &Reply) -> [Reply; 2] {
        let frame = Frame::new(Kind::Reply, 1, reply);
        [frame.message().unwrap(), frame.message::<ShownReply>().unwrap().into()]
    }

    #[test]
    fn values_of_an_answer_are_escaped_and_the_words_of_the_master_are_not() {
        let submitted = |name: &str| Data::Submitted {
            number: JobNumber(1),
            name: name.to_owned(),
            array: None,
        };
        for (given, escaped) in [
            (
                submitted("\x1b[31mEVIL\nowner root"),
                submitted("\\u{1b}[31mEVIL\\nowner root"),
            ),
            (
                Data::Names(vec!["a".into(), "b\tc\u{9b}".into()]),
                Data::Names(vec!["a".into(), "b\\tc\\u{9b}".into()]),
            ),
        ] {
            let answers = vec![Answer::Done("a\nb".to_owned())];
            let [raw, shown] = read(&Reply {
                answers: answers.clone(),
                data: Some(given.clone()),
                more: true,
            });
            assert_eq!(
                raw,
                Reply {
                    answers: answers.clone(),
                    data: Some(given),
                    more: true
                }
            );
            assert_eq!(
                shown,
                Reply {
                    answers,
                    data: Some(escaped),
                    more: true
                }
            );
        }
    }

    #[test]
    fn an_answer_without_control_characters_is_the_same_in_both_ways() {
        for data in [
            Data::Shares(vec![ShareNode::default()]),
            Data::Names(vec!["all.q".to_owned(), "Grüße".to_owned()]),
        ] {
            let [raw, shown] = read(&Reply::data(data));
            assert_eq!(raw, shown);
        }
    }
}
