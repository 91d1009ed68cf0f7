//! One pattern: a plain text, or wildcards as fnmatch(3) of glibc matches them without flags.
//!
//! Leading dots and slashes are ordinary characters. Equivalence classes and collating symbols are
//! deliberately absent.

use super::Case;

/// Characters that make a text a pattern with wildcards.
const WILDCARDS: [char; 4] = ['*', '?', '[', ']'];

/// A pattern, ready for both ways to compare case.
#[derive(Clone)]
pub(super) struct Pattern {
    exact: Matcher,
    folded: Matcher,
}

impl Pattern {
    /// A text without wildcards, backslashes included.
    pub(super) fn plain(text: &str) -> Pattern {
        let matcher = |text: &str| Matcher::Plain(text.chars().collect());
        Pattern {
            exact: matcher(text),
            folded: matcher(&text.to_lowercase()),
        }
    }

    /// A text that may have wildcards.
    pub(super) fn parse(text: &str) -> Pattern {
        if !text.contains(WILDCARDS) {
            return Pattern::plain(text);
        }
        let matcher = |text: &str| Matcher::Wildcards(pieces(&text.chars().collect::<Vec<_>>()));
        Pattern {
            exact: matcher(text),
            folded: matcher(&text.to_lowercase()),
        }
    }

    /// Whether the value matches; for [`Case::Folded`] it is in lower case already.
    pub(super) fn matches(&self, offered: &[char], case: Case) -> bool {
        let matcher = match case {
            Case::Counts => &self.exact,
            Case::Folded => &self.folded,
        };
        match matcher {
            Matcher::Plain(text) => text == offered,
            Matcher::Wildcards(pieces) => matches(pieces, offered),
        }
    }
}

#[derive(Clone)]
enum Matcher {
    Plain(Vec<char>),
    Wildcards(Vec<Piece>),
}

/// What stands for characters of a value.
#[derive(Clone)]
enum Piece {
    /// `*`: any run, also none.
    Run,
    /// `?`: any one.
    One,
    /// This one.
    Exactly(char),
    /// `[…]`: one of these, or none of these.
    Set { negated: bool, members: Vec<Member> },
    /// A backslash at the end: nothing matches.
    Never,
}

/// What a set contains.
#[derive(Clone)]
enum Member {
    /// From one character to another.
    Range(char, char),
    /// `[:alpha:]` and the like.
    Class(Membership),
}

impl Piece {
    fn fits(&self, character: char) -> bool {
        match self {
            Piece::Run | Piece::Never => false,
            Piece::One => true,
            Piece::Exactly(own) => *own == character,
            Piece::Set { negated, members } => members.iter().any(|member| member.contains(character)) != *negated,
        }
    }
}

impl Member {
    fn contains(&self, character: char) -> bool {
        match self {
            Member::Range(first, last) => (*first..=*last).contains(&character),
            Member::Class(is_member) => is_member(&character),
        }
    }
}

/// Whether the pieces match the whole value.
///
/// A mismatch goes back to the latest `*` only, which is enough, so the work is bounded by the
/// product of the lengths.
fn matches(pieces: &[Piece], offered: &[char]) -> bool {
    let (mut piece, mut at) = (0, 0);
    let mut latest_run: Option<(usize, usize)> = None;
    while at < offered.len() {
        match pieces.get(piece) {
            Some(Piece::Run) => {
                latest_run = Some((piece + 1, at));
                piece += 1;
            }
            Some(fitting) if fitting.fits(offered[at]) => {
                piece += 1;
                at += 1;
            }
            Some(_) | None => {
                let Some((after, start)) = latest_run else { return false };
                latest_run = Some((after, start + 1));
                piece = after;
                at = start + 1;
            }
        }
    }
    pieces[piece..].iter().all(|rest| matches!(rest, Piece::Run))
}

/// The pieces of a text.
fn pieces(text: &[char]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let [first, after @ ..] = rest {
        rest = after;
        pieces.push(match first {
            '*' => Piece::Run,
            '?' => Piece::One,
            '\\' => match after.split_first() {
                Some((quoted, after)) => {
                    rest = after;
                    Piece::Exactly(*quoted)
                }
                None => Piece::Never,
            },
            '[' => match set(after) {
                Some((set, after)) => {
                    rest = after;
                    set
                }
                // A bracket that is never closed is an ordinary character.
                None => Piece::Exactly('['),
            },
            ordinary => Piece::Exactly(*ordinary),
        });
    }
    pieces
}

/// The set after an opening bracket, and what follows it; none if it is not closed.
///
/// `^` and `!` negate at the beginning, as glibc has it; in an expression `!` never gets here,
/// because it is an operator. A `]` at the beginning is a member.
fn set(text: &[char]) -> Option<(Piece, &[char])> {
    let (negated, mut rest) = match text {
        ['^' | '!', after @ ..] => (true, after),
        _ => (false, text),
    };
    let mut members = Vec::new();
    loop {
        match rest {
            [']', after @ ..] if !members.is_empty() => return Some((Piece::Set { negated, members }, after)),
            ['[', ':', after @ ..] if class(after).is_some() => {
                let (class, after) = class(after)?;
                members.push(Member::Class(class));
                rest = after;
            }
            _ => {
                let (first, after) = member(rest)?;
                let (last, after) = match after {
                    ['-', end @ ..] if !end.starts_with(&[']']) => member(end)?,
                    _ => (first, after),
                };
                members.push(Member::Range(first, last));
                rest = after;
            }
        }
    }
}

/// One character of a set, which a backslash may quote; none at the end of the text.
fn member(text: &[char]) -> Option<(char, &[char])> {
    match text {
        ['\\', quoted, after @ ..] => Some((*quoted, after)),
        ['\\'] | [] => None,
        [first, after @ ..] => Some((*first, after)),
    }
}

/// Whether a character belongs to a class.
type Membership = fn(&char) -> bool;

/// The class whose name stands before `:]`, and what follows it.
fn class(text: &[char]) -> Option<(Membership, &[char])> {
    let end = text.windows(2).position(|pair| pair == [':', ']'])?;
    let name: String = text[..end].iter().collect();
    let is_member: Membership = match &*name {
        "alnum" => char::is_ascii_alphanumeric,
        "alpha" => char::is_ascii_alphabetic,
        "blank" => |c| matches!(c, ' ' | '\t'),
        "cntrl" => char::is_ascii_control,
        "digit" => char::is_ascii_digit,
        "graph" => char::is_ascii_graphic,
        "lower" => char::is_ascii_lowercase,
        "print" => |c| c.is_ascii_graphic() || *c == ' ',
        "punct" => char::is_ascii_punctuation,
        "space" => char::is_ascii_whitespace,
        "upper" => char::is_ascii_uppercase,
        "xdigit" => char::is_ascii_hexdigit,
        _unknown => return None,
    };
    Some((is_member, &text[end + 2..]))
}
