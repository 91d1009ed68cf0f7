use crate::collections::paged::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const PAGE: usize = PagedMap::<u32, u32>::PAGE;

impl NumberedKey for u32 {
    fn number(&self) -> u64 {
        u64::from(*self)
    }
}

impl NumberedKey for (u64, u64) {
    fn number(&self) -> u64 {
        self.1
    }
}

proptest! {
    #[test]
    fn a_key_is_found_wherever_its_number_says_that_it_is(mut keys in prop::collection::vec((0u64..50, any::<u64>()), 0..90)) {
        keys.sort_unstable();
        keys.dedup();
        let page: Vec<((u64, u64), ())> = keys.iter().map(|key| (*key, ())).collect();
        for key in keys.iter().flat_map(|(one, other)| [(*one, *other), (*one, other / 2), (one + 1, *other)]) {
            prop_assert_eq!(find(&page, &key), keys.binary_search(&key));
        }
    }
}

#[test]
fn keys_that_rise_evenly_are_where_they_ought_to_be() {
    use proto::id::CellId;
    let key = |seq: u64, task: u64| {
        let task = TaskId(u32::try_from(task).unwrap());
        TaskKey {
            cell: CellId(1),
            seq: SubmitSeq(seq),
            task,
            pe_task: 0,
            attempt: 1,
        }
    };
    let numbers: [(&str, &dyn Fn(u64) -> u64); 5] = [
        ("jobs", &|n| SubmitSeq(7 + n).number()),
        ("every thousandth job", &|n| SubmitSeq(1_000 * n).number()),
        ("tasks of jobs of one", &|n| key(5_000_000 + n, 1).number()),
        ("tasks of one job", &|n| key(9, 1 + n).number()),
        ("tasks that begin at one time", &|n| {
            (Tick(1_000_000_000), key(77 + n, 1)).number()
        }),
    ];
    for (what, number) in numbers {
        for len in [2, 64, 16_000] {
            let found = (0..len as u64).map(|n| likely(len, number(0), number(len as u64 - 1), number(n)));
            assert!(found.eq(0..len), "{what}, {len} of them");
        }
    }
}

#[test]
fn a_page_has_as_many_entries_as_fit_into_4_kib() {
    assert_eq!((PagedMap::<u32, u32>::PAGE, PagedMap::<u64, [u64; 7]>::PAGE), (64, 64));
    assert_eq!(
        (PagedMap::<u64, [u64; 8]>::PAGE, PagedMap::<u64, [u64; 31]>::PAGE),
        (56, 16)
    );
    assert_eq!(
        PagedMap::<u64, [u64; 500]>::PAGE,
        8,
        "what is large has some together all the same"
    );
}

fn check<P: Page<u32, u32>>(paged: &PagedMap<u32, u32, P>, known: &BTreeMap<u32, u32>) {
    assert_eq!(paged.iter().collect::<Vec<_>>(), known.iter().collect::<Vec<_>>());
    assert_eq!((paged.len(), paged.is_empty()), (known.len(), known.is_empty()));
    assert_eq!(
        (paged.first(), paged.last()),
        (known.first_key_value(), known.last_key_value())
    );
    assert!(
        paged.first.len() <= PAGE && (!paged.first.is_empty() || paged.is_empty()),
        "{paged:?}"
    );
    let none = Pages::<u32, P>::new();
    let rest = paged.rest.as_deref().unwrap_or(&none);
    let starts: Vec<u32> = rest.starts.iter().copied().collect();
    assert_eq!(starts.len(), rest.pages.len());
    assert!(paged.rest.is_none() || !starts.is_empty(), "{paged:?}");
    assert!(
        paged
            .first
            .last()
            .is_none_or(|(key, _)| starts.first().is_none_or(|next| key < next)),
        "{starts:?}"
    );
    for (at, (start, page)) in starts.iter().zip(&rest.pages).enumerate() {
        let page = page.entries();
        let is_below = |key: u32| starts.get(at + 1).is_none_or(|next| key < *next);
        assert!(!page.is_empty() && page.len() <= PAGE, "{} entries", page.len());
        assert!(
            page.iter().all(|(key, _)| key >= start && is_below(*key)),
            "{start} of {starts:?}: {page:?}"
        );
    }
}

#[test]
fn a_full_page_has_no_room_left_over() {
    let paged: PagedMap<u32, [u64; 16]> = (0..200).map(|key| (key, [0; 16])).collect();
    let full = PagedMap::<u32, [u64; 16]>::PAGE;
    assert_eq!(full, 30);
    let rest = paged.rest.as_ref().expect("several pages");
    assert!(
        rest.pages
            .iter()
            .rev()
            .skip(1)
            .all(|page| (page.len(), page.capacity()) == (full, full))
    );
}

proptest! {
    #[test]
    fn it_holds_what_a_tree_holds(steps in prop::collection::vec((0u8..4, 0u32..400), 1..800)) {
        let (mut paged, mut known) = (PagedMap::<u32, u32>::new(), BTreeMap::new());
        for (round, (what, key)) in (0u32..).zip(steps) {
            match what {
                0 | 1 => prop_assert_eq!(paged.insert(key, round), known.insert(key, round)),
                2 => prop_assert_eq!(paged.remove(&key), known.remove(&key)),
                _ => {
                    prop_assert_eq!(paged.get(&key), known.get(&key));
                    prop_assert_eq!(paged.get_mut(&key), known.get_mut(&key));
                    let later = (Bound::Excluded(key), Bound::Unbounded);
                    prop_assert_eq!(paged.after(&key), known.range(later).next());
                    let (of_paged, of_known) = (paged.range(key..key + 90), known.range(key..key + 90));
                    prop_assert!(of_paged.eq(of_known), "{:?} from {}", paged, key);
                }
            }
        }
        check(&paged, &known);
    }
}

proptest! {
    #[test]
    fn a_copy_stays_as_it_was(len in 0u32..400, steps in prop::collection::vec((0u8..5, 0u32..400), 1..200)) {
        let mut paged: SharedMap<u32, u32> = (0..len).map(|key| (key, key)).collect();
        let mut known: BTreeMap<u32, u32> = (0..len).map(|key| (key, key)).collect();
        let (copy, before) = (paged.clone(), known.clone());
        for (round, (what, key)) in (1_000u32..).zip(steps) {
            match what {
                0 => prop_assert_eq!(paged.insert(key, round), known.insert(key, round)),
                1 => prop_assert_eq!(paged.remove(&key), known.remove(&key)),
                2 => prop_assert_eq!(paged.get_mut(&key).map(|value| *value = round), known.get_mut(&key).map(|value| *value = round)),
                3 => paged.values_mut().chain(known.values_mut()).for_each(|value| *value += 1),
                _ => while paged.first().is_some_and(|(first, _)| *first < key) {
                    let first = *paged.first().expect("there is one").0;
                    prop_assert_eq!(paged.remove(&first), known.remove(&first));
                },
            }
        }
        check(&paged, &known);
        check(&copy, &before);
    }
}

#[test]
fn keys_that_rise_fill_their_pages() {
    let mut paged: PagedMap<u32, u32> = (0..1000).map(|key| (key, key)).collect();
    let rest = paged.rest.as_ref().expect("several pages");
    assert_eq!(rest.pages.len() + 1, 1000usize.div_ceil(PAGE));
    let full = rest.pages.iter().rev().skip(1).chain([&paged.first]);
    assert!(
        full.into_iter().all(|page| page.capacity() == PAGE),
        "nothing is left over"
    );
    for key in 0..990 {
        paged.remove(&key);
    }
    check(&paged, &(990..1000).map(|key| (key, key)).collect());
    assert!(paged.rest.is_none());
}

#[test]
fn it_is_stored_as_any_map() {
    let (paged, known) = (
        (0..100).map(|key| (key, key)).collect::<PagedMap<u32, u32>>(),
        (0..100).map(|key| (key, key)).collect(),
    );
    let text = serde_json::to_string(&paged).unwrap();
    assert_eq!(text, serde_json::to_string::<BTreeMap<u32, u32>>(&known).unwrap());
    let back: PagedMap<u32, u32> = serde_json::from_str(&text).unwrap();
    assert_eq!(back, paged);
    assert_eq!(format!("{back:?}"), format!("{known:?}"));
    assert_eq!((back[&7], back.contains_key(&100)), (7, false));
}
