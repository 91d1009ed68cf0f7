//! The text of a name, made to be compared.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// How many bytes of the text are kept beside the pointer to it.
const HEAD: usize = 16;

/// A text of which the first bytes are at hand, so that most comparisons need not look at the rest,
/// which lies elsewhere.
#[derive(Clone)]
pub struct Name {
    /// The first bytes, the foremost highest; zeros where there are no more.
    head: [u64; 2],
    text: Arc<str>,
}

impl Name {
    /// The text.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// A number that is the same for the same text, in every process, and most often another for
    /// another.
    #[inline]
    pub fn digest(&self) -> u64 {
        digest(self.head, &self.text)
    }

    /// The digest of a name with this text.
    pub fn digest_of(text: &str) -> u64 {
        digest(head(text), text)
    }

    /// Whether the head tells all: nothing is behind it.
    fn is_short(&self) -> bool {
        self.text.len() <= HEAD
    }
}

impl From<Arc<str>> for Name {
    fn from(text: Arc<str>) -> Self {
        Self {
            head: head(&text),
            text,
        }
    }
}

/// The first bytes of a text.
fn head(text: &str) -> [u64; 2] {
    let mut head = [0; HEAD];
    let known = text.len().min(HEAD);
    head[..known].copy_from_slice(&text.as_bytes()[..known]);
    let head = u128::from_be_bytes(head);
    [(head >> 64) as u64, head as u64]
}

/// Folds a text into a number: its head, its length, and what is behind the head in words.
#[inline]
fn digest(head: [u64; 2], text: &str) -> u64 {
    // An odd number whose bits are spread well: that of Fibonacci hashing.
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let fold = |digest: u64, word: u64| (digest.rotate_left(26) ^ word).wrapping_mul(SPREAD);
    let begin = head.into_iter().fold(text.len() as u64, fold);
    let behind = text.as_bytes().get(HEAD..).unwrap_or_default().chunks(8);
    let words = behind.map(|chunk| chunk.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    let all = words.fold(begin, fold);
    all ^ all >> 32
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Arc::<str>::from(text).into()
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Arc::<str>::from(text).into()
    }
}

impl PartialEq for Name {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.head == other.head
            && self.text.len() == other.text.len()
            && (self.is_short() || Arc::ptr_eq(&self.text, &other.text) || self.text == other.text)
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// That of the texts.
impl Ord for Name {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.head.cmp(&other.head).then_with(|| {
            if self == other {
                Ordering::Equal
            } else {
                self.text.cmp(&other.text)
            }
        })
    }
}

/// That of the text.
impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

/// As the text.
impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

/// As the text.
impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::hash::DefaultHasher;

    fn hash(value: &(impl Hash + ?Sized)) -> u64 {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        hasher.finish()
    }

    proptest! {
        #[test]
        fn names_compare_as_their_texts(one in "[a\u{0}é]{0,20}", other in "[a\u{0}é]{0,20}", tail in "[ab]{0,3}") {
            for other in [other, format!("{one}{tail}"), format!("{one}\u{0}")] {
                let (left, right) = (Name::from(one.as_str()), Name::from(other.as_str()));
                prop_assert_eq!(left.cmp(&right), one.cmp(&other), "{:?} and {:?}", one, other);
                prop_assert_eq!(left == right, one == other);
                prop_assert_eq!(hash(&left), hash(one.as_str()));
                prop_assert_eq!(left.digest(), Name::digest_of(&one));
                prop_assert!(one == other || left.digest() != right.digest(), "{:?} and {:?}", one, other);
            }
        }
    }

    #[test]
    fn a_name_is_stored_as_its_text() {
        let name = Name::from("a \"quoted\" host");
        let text = serde_json::to_string(&name).unwrap();
        assert_eq!(text, r#""a \"quoted\" host""#);
        assert_eq!(serde_json::from_str::<Name>(&text).unwrap().as_str(), name.as_str());
    }
}
