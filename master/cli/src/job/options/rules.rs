//! What several uses of one option make together.

/// The rule for an option that is given more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The last use counts.
    Last,
    /// Given once it is given.
    Once,
    /// Lists add up.
    AddUp,
    /// Lists add up; of the entries with one key the last counts.
    LastPer(Key),
    /// Lists add up; a later use replaces the entries of earlier ones that have the host of one of
    /// its own.
    PerMailHost,
    /// Letters add up; a use with `n` takes away those before it.
    Letters,
    /// Each use changes what those before it left, in their order.
    InOrder,
    /// The lists of earlier sources are dropped.
    Replace,
    /// It says how the options behind it on the same line are read.
    Mark,
    /// It drops all that stands before it, of every source.
    Clear,
    /// It is for the command, and not a part of the job.
    Command,
}

/// What makes two entries of a list the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// The resource.
    Attribute,
    /// The host of a path; none is one, too.
    Host,
    /// The name of the variable.
    Variable,
}

impl Merge {
    /// Adds what one more use of an option names to what the uses before it named. `is_same`
    /// compares two entries by the key of the rule: the later takes the place of the earlier. Where
    /// the rule keeps the last use alone, the earlier ones are dropped.
    pub fn add<T: Clone>(self, list: &mut Option<Vec<T>>, more: Vec<T>, is_same: impl Fn(&T, &T) -> bool) {
        match self {
            Merge::AddUp => list.get_or_insert_default().extend(more),
            Merge::LastPer(_) => {
                let list = list.get_or_insert_default();
                for entry in more {
                    match list.iter_mut().find(|known| is_same(known, &entry)) {
                        Some(known) => *known = entry,
                        None => list.push(entry),
                    }
                }
            }
            Merge::PerMailHost => {
                let mut new = more.clone();
                let mut merged = Vec::new();
                for known in list.take().unwrap_or_default() {
                    if !more.iter().any(|entry| is_same(entry, &known)) {
                        merged.push(known);
                        continue;
                    }
                    let (here, later) = new.into_iter().partition::<Vec<T>, _>(|entry| is_same(entry, &known));
                    merged.extend(here);
                    new = later;
                }
                merged.extend(new);
                *list = Some(merged);
            }
            Merge::Last
            | Merge::Once
            | Merge::Letters
            | Merge::InOrder
            | Merge::Replace
            | Merge::Mark
            | Merge::Clear
            | Merge::Command => *list = Some(more),
        }
    }

    /// The rule in a few words, for the users' guide.
    #[cfg(test)]
    pub fn words(self) -> &'static str {
        match self {
            Merge::Last => "the last counts",
            Merge::Once => "once is enough",
            Merge::AddUp => "add up",
            Merge::LastPer(Key::Attribute) => "add up, the last for each resource",
            Merge::LastPer(Key::Host) => "add up, the last for each host",
            Merge::LastPer(Key::Variable) => "add up, the last for each variable",
            Merge::PerMailHost => "add up, a later one replaces those of the same host",
            Merge::Letters => "letters add up, `n` takes away those before it",
            Merge::InOrder => "in the order given",
            Merge::Replace => "a later source replaces both lists, hard and soft",
            Merge::Mark => "until the end of its line",
            Merge::Clear => "drops all that stands before it",
            Merge::Command => "for the command itself",
        }
    }
}
