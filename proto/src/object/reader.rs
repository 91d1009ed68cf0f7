//! Filling a typed object from its fields while collecting every refusal.

use super::value::MalformedValue;
use super::{Fields, ObjectKind};
use crate::diagnostic::Diagnostic;

/// Reads the attributes of one object; what does not parse leaves its target as it was and adds a
/// refusal.
pub(crate) struct Reader<'a> {
    fields: &'a Fields,
    refusals: Vec<Diagnostic>,
}

impl<'a> Reader<'a> {
    /// Starts with the refusals of attributes that `known` does not list and of `required` ones
    /// that are missing.
    pub(crate) fn new(kind: ObjectKind, fields: &'a Fields, known: &[&str], required: &[&str]) -> Self {
        Self {
            fields,
            refusals: fields.check_keys(kind, known, required),
        }
    }

    /// Sets `target` to the value of an attribute; leaves it if the attribute is missing.
    pub(crate) fn read<T>(&mut self, key: &str, target: &mut T, parse: impl FnOnce(&str) -> Result<T, MalformedValue>) {
        let Some(value) = self.fields.value(key) else { return };
        match parse(value) {
            Ok(parsed) => *target = parsed,
            Err(malformed) => self.refuse(malformed.refusal(key, value).at(self.fields.place(key))),
        }
    }

    /// Adds a refusal.
    pub(crate) fn refuse(&mut self, refusal: Diagnostic) {
        self.refusals.push(refusal);
    }

    /// The object, if nothing was refused.
    pub(crate) fn finish<T>(self, object: T) -> Result<T, Vec<Diagnostic>> {
        if self.refusals.is_empty() {
            Ok(object)
        } else {
            Err(self.refusals)
        }
    }
}
