//! What several uses of one option make together.

/// The rule for an option that is given more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The last use counts.
    Last,
    /// Given once it is given.
    Once,
    /// Lists make one list.
    List(ListRule),
    /// Requests add up; of those for one resource the last counts.
    Requests,
    /// Letters add up; a use with `n` takes away those before it.
    Letters,
    /// Each use changes what those before it left, in their order.
    InOrder,
    /// It says how the options behind it on the same line are read.
    Mark,
    /// It drops all that stands before it, of every source.
    Clear,
    /// It is for the command, and not a part of the job.
    Command,
}

/// How lists make one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListRule {
    /// They add up.
    AddUp,
    /// They add up; of the entries for one thing, which is named here, the last counts.
    LastPer(&'static str),
    /// They add up; a later one replaces the entries of earlier ones that have the host of one of
    /// its own.
    PerMailHost,
}

impl ListRule {
    /// Adds what one more use of an option names to what the uses before it named. `is_same` says
    /// whether two entries are for one thing.
    pub fn add<T: Clone>(self, list: &mut Option<Vec<T>>, more: Vec<T>, is_same: impl Fn(&T, &T) -> bool) {
        let list = list.get_or_insert_default();
        match self {
            ListRule::AddUp => list.extend(more),
            ListRule::LastPer(_) => {
                for entry in more {
                    match list.iter_mut().find(|known| is_same(known, &entry)) {
                        Some(known) => *known = entry,
                        None => list.push(entry),
                    }
                }
            }
            ListRule::PerMailHost => {
                let mut new = more.clone();
                for known in std::mem::take(list) {
                    if !more.iter().any(|entry| is_same(entry, &known)) {
                        list.push(known);
                        continue;
                    }
                    let (here, later) = new.into_iter().partition::<Vec<T>, _>(|entry| is_same(entry, &known));
                    list.extend(here);
                    new = later;
                }
                list.extend(new);
            }
        }
    }
}

#[cfg(test)]
impl Rule {
    /// The rule in a few words, for the users' guide.
    pub fn words(self) -> String {
        let words = match self {
            Rule::Last => "the last counts",
            Rule::Once => "once is enough",
            Rule::List(ListRule::AddUp) => "add up",
            Rule::List(ListRule::LastPer(what)) => return format!("add up, the last for each {what}"),
            Rule::List(ListRule::PerMailHost) => "add up, a later one replaces those of the same host",
            Rule::Requests => "add up, the last for each resource",
            Rule::Letters => "letters add up, `n` takes away those before it",
            Rule::InOrder => "in the order given",
            Rule::Mark => "until the end of its line",
            Rule::Clear => "drops all that stands before it",
            Rule::Command => "for the command itself",
        };
        words.to_owned()
    }
}
