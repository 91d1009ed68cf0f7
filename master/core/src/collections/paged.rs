//! An ordered map for keys that rise as a rule, as the numbers of jobs do: it has no more room than
//! it needs, where the leaves of a B-tree that only grows at its end stay half empty. One whose
//! pages are shared is copied at the cost of its pages, not of its entries: each page is copied
//! when it changes in one of the two.

#[cfg(test)]
mod tests;

use proto::id::{JobNumber, SubmitSeq, TaskId, TaskKey};
use proto::time::Tick;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, Index, RangeBounds};
use std::sync::Arc;

/// The most bytes of a page: what is taken out of its middle has the rest moved, and an array's
/// tasks end at its front.
const PAGE_BYTES: usize = 4096;

/// The fewest and the most entries of a full page, whatever their size.
const LEAST: usize = 8;
const MOST: usize = 64;

/// A key of which it can be told about where it is among others.
pub trait NumberedKey: Ord + Copy {
    /// A number that rises with the key as a rule: it says only where the search begins. Where it
    /// rises evenly, that is where the key is.
    fn number(&self) -> u64;
}

impl NumberedKey for SubmitSeq {
    fn number(&self) -> u64 {
        self.0
    }
}

impl NumberedKey for JobNumber {
    fn number(&self) -> u64 {
        u64::from(self.0)
    }
}

impl NumberedKey for TaskId {
    fn number(&self) -> u64 {
        u64::from(self.0)
    }
}

/// Rises for jobs of one task, and for the tasks of one job.
impl NumberedKey for TaskKey {
    fn number(&self) -> u64 {
        self.seq.0 << 32 | u64::from(self.task.0)
    }
}

/// Rises also for what begins at one time.
impl NumberedKey for (Tick, TaskKey) {
    fn number(&self) -> u64 {
        let (Tick(at), TaskKey { seq, task, .. }) = self;
        at << 20 | seq.0.wrapping_add(u64::from(task.0)) & 0xF_FFFF
    }
}

/// Entries of a page, owned or shared.
pub trait Page<K, V>: From<Vec<(K, V)>> {
    /// They.
    fn entries(&self) -> &Vec<(K, V)>;

    /// The same, to be changed here alone.
    fn entries_mut(&mut self) -> &mut Vec<(K, V)>;
}

impl<K, V> Page<K, V> for Vec<(K, V)> {
    #[inline]
    fn entries(&self) -> &Vec<(K, V)> {
        self
    }

    #[inline]
    fn entries_mut(&mut self) -> &mut Vec<(K, V)> {
        self
    }
}

impl<K: Clone, V: Clone> Page<K, V> for Arc<Vec<(K, V)>> {
    #[inline]
    fn entries(&self) -> &Vec<(K, V)> {
        self
    }

    #[inline]
    fn entries_mut(&mut self) -> &mut Vec<(K, V)> {
        Arc::make_mut(self)
    }
}

/// One that can be copied while it is large.
pub type SharedMap<K, V> = PagedMap<K, V, Arc<Vec<(K, V)>>>;

/// An ordered map in pages.
///
/// Invariants: entries rise; those of `rest` come after those of `first`, none below the start that
/// is kept of its page, and all below that of the next page; no page of `rest` is empty, and there
/// is none of it without pages; `first` is empty only where nothing is; `len` is how many there
/// are.
#[derive(Clone)]
pub struct PagedMap<K, V, P = Vec<(K, V)>> {
    /// Beside the others, so that what is small is one list.
    first: Vec<(K, V)>,
    rest: Option<Box<Pages<K, P>>>,
    len: usize,
}

/// Pages in order, and apart from them, to be looked through, the least key of each.
#[derive(Clone)]
struct Pages<K, P> {
    starts: VecDeque<K>,
    pages: VecDeque<P>,
}

impl<K, P> Pages<K, P> {
    const fn new() -> Pages<K, P> {
        Pages {
            starts: VecDeque::new(),
            pages: VecDeque::new(),
        }
    }
}

impl<K: NumberedKey, P> Pages<K, P> {
    /// How many pages begin at a key or before it.
    #[inline]
    fn until(&self, key: &K) -> usize {
        match self.starts.back() {
            // Keys rise as a rule.
            Some(last) if last > key => match search(self.starts.len(), |at| &self.starts[at], key) {
                Ok(at) => at + 1,
                Err(at) => at,
            },
            Some(_) => self.starts.len(),
            None => 0,
        }
    }

    fn insert<V>(&mut self, at: usize, page: Vec<(K, V)>)
    where
        P: Page<K, V>,
    {
        self.starts.insert(at, page[0].0);
        self.pages.insert(at, page.into());
    }

    fn remove(&mut self, at: usize) -> Option<P> {
        self.starts.remove(at);
        self.pages.remove(at)
    }
}

impl<K, V, P> PagedMap<K, V, P> {
    /// The most entries of a page.
    const PAGE: usize = match PAGE_BYTES.checked_div(size_of::<(K, V)>()) {
        Some(fit) if fit < LEAST => LEAST,
        Some(fit) if fit < MOST => fit,
        Some(_) | None => MOST,
    };

    /// Nothing yet.
    pub const fn new() -> PagedMap<K, V, P> {
        PagedMap {
            first: Vec::new(),
            rest: None,
            len: 0,
        }
    }
}

impl<K: NumberedKey, V, P: Page<K, V>> PagedMap<K, V, P> {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many pages of `rest` begin at a key or before it. Where the key is among the first, they
    /// are not looked at.
    fn until(&self, key: &K) -> usize {
        let is_later = |(last, _): &(K, V)| last < key;
        let rest = self.rest.as_ref().filter(|_| self.first.last().is_some_and(is_later));
        rest.map_or(0, |rest| rest.until(key))
    }

    /// The page where a key is or would be.
    fn page(&self, key: &K) -> &Vec<(K, V)> {
        let at = self.until(key).checked_sub(1);
        at.and_then(|at| self.rest.as_ref()?.pages.get(at))
            .map_or(&self.first, P::entries)
    }

    /// The same to be changed, with how many pages there are before the next.
    fn page_mut(&mut self, key: &K) -> (usize, &mut Vec<(K, V)>) {
        let until = self.until(key);
        let later = until
            .checked_sub(1)
            .and_then(|at| self.rest.as_mut()?.pages.get_mut(at));
        (until, later.map_or(&mut self.first, P::entries_mut))
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let page = self.page(key);
        let at = find(page, key).ok()?;
        Some(&page[at].1)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (_, page) = self.page_mut(key);
        let at = find(page, key).ok()?;
        Some(&mut page[at].1)
    }

    /// Whether there is a value of a key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Puts a value in, and returns the one that was there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (until, page) = self.page_mut(&key);
        // Keys rise as a rule.
        let is_last = page.last().is_some_and(|(last, _)| *last < key);
        let at = match if is_last { Err(page.len()) } else { find(page, &key) } {
            Ok(at) => return Some(std::mem::replace(&mut page[at].1, value)),
            Err(at) => at,
        };
        let mut upper = None;
        if page.len() < Self::PAGE {
            // Many have one entry only, and none is to get more room than a page has.
            if page.is_empty() {
                page.reserve_exact(1);
            } else if page.len() == page.capacity() && page.len() * 2 > Self::PAGE {
                page.reserve_exact(Self::PAGE - page.len());
            }
            page.insert(at, (key, value));
        } else if at == Self::PAGE {
            upper = Some(vec![(key, value)]);
        } else {
            let mut split = page.split_off(Self::PAGE / 2);
            if at <= Self::PAGE / 2 {
                page.insert(at, (key, value));
            } else {
                split.insert(at - Self::PAGE / 2, (key, value));
            }
            upper = Some(split);
        }
        if let Some(upper) = upper {
            self.rest
                .get_or_insert_with(|| Box::new(Pages::new()))
                .insert(until, upper);
        }
        self.len += 1;
        None
    }

    /// Takes a value out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let (until, page) = self.page_mut(key);
        let at = find(page, key).ok()?;
        let (_, value) = page.remove(at);
        if page.is_empty() {
            let rest = self.rest.as_mut();
            match until.checked_sub(1) {
                None => {
                    let next = rest.and_then(|rest| rest.remove(0));
                    self.first = next
                        .map(|mut page| std::mem::take(page.entries_mut()))
                        .unwrap_or_default();
                }
                Some(at) => drop(rest.and_then(|rest| rest.remove(at))),
            }
            self.rest.take_if(|rest| rest.pages.is_empty());
        } else if page.len() * 4 <= page.capacity() {
            page.shrink_to(page.len() * 2);
        }
        self.len -= 1;
        Some(value)
    }

    /// The first entry.
    pub fn first(&self) -> Option<(&K, &V)> {
        self.first.first().map(|(key, value)| (key, value))
    }

    /// The last entry.
    pub fn last(&self) -> Option<(&K, &V)> {
        let last = self
            .rest
            .as_ref()
            .and_then(|rest| rest.pages.back())
            .map_or(&self.first, P::entries);
        last.last().map(|(key, value)| (key, value))
    }

    /// The first entry after a key, which need not be there.
    pub fn after(&self, key: &K) -> Option<(&K, &V)> {
        let until = self.until(key);
        let page = self.page(key);
        let at = find(page, key).map_or_else(|at| at, |at| at + 1);
        let next = page
            .get(at)
            .or_else(|| self.rest.as_ref()?.pages.get(until)?.entries().first());
        next.map(|(key, value)| (key, value))
    }

    /// Entries of a range, rising.
    pub fn range(&self, range: impl RangeBounds<K>) -> impl Iterator<Item = (&K, &V)> {
        let (from, to) = (range.start_bound().cloned(), range.end_bound().cloned());
        let is_before = move |key: &K| match from {
            Bound::Included(from) => *key < from,
            Bound::Excluded(from) => *key <= from,
            Bound::Unbounded => false,
        };
        let until = match &from {
            Bound::Unbounded => 0,
            Bound::Included(from) | Bound::Excluded(from) => self.rest.as_ref().map_or(0, |rest| rest.until(from)),
        };
        let rest = self.rest.as_ref();
        let here = until
            .checked_sub(1)
            .and_then(|at| rest?.pages.get(at))
            .map_or(&self.first, P::entries);
        let at = here.partition_point(|(key, _)| is_before(key));
        let later = rest
            .into_iter()
            .flat_map(move |rest| rest.pages.range(until..))
            .flat_map(P::entries);
        let entries = here[at..].iter().chain(later).map(|(key, value)| (key, value));
        entries.take_while(move |(key, _)| match to {
            Bound::Included(to) => **key <= to,
            Bound::Excluded(to) => **key < to,
            Bound::Unbounded => true,
        })
    }

    /// All entries, rising.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        let later = self.rest.iter().flat_map(|rest| &rest.pages).flat_map(P::entries);
        self.first.iter().chain(later).map(|(key, value)| (key, value))
    }

    /// All entries, rising, their values to be changed.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&K, &mut V)> {
        let later = self
            .rest
            .iter_mut()
            .flat_map(|rest| &mut rest.pages)
            .flat_map(P::entries_mut);
        self.first.iter_mut().chain(later).map(|(key, value)| (&*key, value))
    }

    /// All keys, rising.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// All values, by rising keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// All values, by rising keys, to be changed.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }
}

fn find<K: NumberedKey, V>(page: &[(K, V)], key: &K) -> Result<usize, usize> {
    search(page.len(), |at| &page[at].0, key)
}

/// Where a key is among so many that rise, or would be. It is looked for from where it ought to be
/// if they rise evenly, farther each time.
#[inline]
fn search<'k, K: NumberedKey + 'k>(len: usize, at: impl Fn(usize) -> &'k K, key: &K) -> Result<usize, usize> {
    let (mut from, mut to, mut stride) = (0, len, 1);
    let mut next = if len < 2 {
        0
    } else {
        likely(len, at(0).number(), at(len - 1).number(), key.number())
    };
    while from < to {
        match at(next).cmp(key) {
            Ordering::Equal => return Ok(next),
            Ordering::Less => {
                from = next + 1;
                next = from.midpoint(to).min(next + stride);
            }
            Ordering::Greater => {
                to = next;
                next = from.midpoint(to).max(next.saturating_sub(stride));
            }
        }
        stride *= 2;
    }
    Err(from)
}

/// Where a number is among so many that rise evenly.
#[inline]
fn likely(len: usize, first: u64, last: u64, number: u64) -> usize {
    let (span, before) = (last.saturating_sub(first), number.saturating_sub(first));
    if before >= span {
        return if number < last { 0 } else { len - 1 };
    }
    // Of a large span the last bits do not matter, and the product would be too large.
    let excess = (u64::BITS - span.leading_zeros()).saturating_sub(40);
    let likely = (before >> excess).saturating_mul(len as u64 - 1) / (span >> excess);
    usize::try_from(likely).map_or(len - 1, |likely| likely.min(len - 1))
}

impl<K, V, P> Default for PagedMap<K, V, P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: NumberedKey, V, P: Page<K, V>> Index<&K> for PagedMap<K, V, P> {
    type Output = V;

    fn index(&self, key: &K) -> &V {
        self.get(key).expect("the key is there")
    }
}

impl<K: NumberedKey, V, P: Page<K, V>> FromIterator<(K, V)> for PagedMap<K, V, P> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut paged = Self::new();
        paged.extend(entries);
        paged
    }
}

impl<K: NumberedKey, V, P: Page<K, V>> Extend<(K, V)> for PagedMap<K, V, P> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        entries
            .into_iter()
            .for_each(|(key, value)| drop(self.insert(key, value)));
    }
}

/// Equal entries are enough, wherever pages begin.
impl<K: NumberedKey, V: PartialEq, P: Page<K, V>> PartialEq for PagedMap<K, V, P> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<K: NumberedKey + fmt::Debug, V: fmt::Debug, P: Page<K, V>> fmt::Debug for PagedMap<K, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: NumberedKey + Serialize, V: Serialize, P: Page<K, V>> Serialize for PagedMap<K, V, P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len))?;
        self.iter()
            .try_for_each(|(key, value)| map.serialize_entry(key, value))?;
        map.end()
    }
}

impl<'de, K, V, P> Deserialize<'de> for PagedMap<K, V, P>
where
    K: NumberedKey + Deserialize<'de>,
    V: Deserialize<'de>,
    P: Page<K, V>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntryVisitor<K, V, P>(PhantomData<(K, V, P)>);

        impl<'de, K, V, P> Visitor<'de> for EntryVisitor<K, V, P>
        where
            K: NumberedKey + Deserialize<'de>,
            V: Deserialize<'de>,
            P: Page<K, V>,
        {
            type Value = PagedMap<K, V, P>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut paged = PagedMap::new();
                while let Some((key, value)) = map.next_entry()? {
                    paged.insert(key, value);
                }
                Ok(paged)
            }
        }

        deserializer.deserialize_map(EntryVisitor(PhantomData))
    }
}
